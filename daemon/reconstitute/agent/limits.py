"""What one question may cost, and why it ended.

All limits are on by default (docs/reliability.md, A2: a loop that nobody watched ran for two hours and wrote 11 GB).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from daemon import config


class Ended(StrEnum):
    """How a question ended; each goes on after "it ended because"."""

    ANSWERED = "the question was answered"
    FINISHED = "the model said that it had nothing to add"
    STEPS = "the limit of steps was reached (agent.steps)"
    TIME = "the time was over (agent.minutes)"
    TOKENS = "the limit of tokens was reached (agent.tokens)"
    REPEATS = "the model repeated the same call (agent.repeats)"
    FORMAT = "three replies in a row could not be used"
    CONTEXT = "the conversation did not fit into the model's context (chat.num_ctx)"


LIMITED = frozenset({Ended.STEPS, Ended.TIME, Ended.TOKENS, Ended.REPEATS})
"""Other limits could have made another end."""


PASSING = frozenset({Ended.FORMAT, Ended.CONTEXT})
"""Another try may end otherwise: a model's bad day, a server that was given more room."""


class Over(Exception):  # noqa: N818 - not a failure: how the loop ends
    """The question is over."""

    def __init__(self, why: Ended) -> None:
        super().__init__(why.value)
        self.why = why


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one question: model calls, seconds, tokens read and written, equal calls in a row."""

    steps: int = 40
    seconds: float = 900.0
    tokens: int = 400_000
    repeats: int = 3

    @classmethod
    def of(cls, section: config.Agent) -> Limits:
        """Those of the configuration."""
        return cls(section.steps, section.minutes * 60, section.tokens, section.repeats)


class Meter:
    """What a question has cost so far. `clock` is seconds on any scale that only grows."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._last: object = None
        self._equal = 0
        self.steps = 0
        self.tokens = 0

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self._clock() - self._began

    def step(self) -> None:
        """Before each model call.

        Raises:
            Over: a limit is reached.
        """
        self.check_time()
        if self.tokens >= self._limits.tokens:
            raise Over(Ended.TOKENS)
        if self.steps >= self._limits.steps:
            raise Over(Ended.STEPS)
        self.steps += 1

    def check_time(self) -> None:
        """Before whatever may take long.

        Raises:
            Over: the time is.
        """
        if self.seconds >= self._limits.seconds:
            raise Over(Ended.TIME)

    def spend(self, tokens: int) -> None:
        """After each model call."""
        self.tokens += tokens

    def repeat(self, action: object) -> None:
        """Before each tool call, with what tells it from others.

        Raises:
            Over: it is the same as so many before it.
        """
        self._equal = self._equal + 1 if action == self._last else 1
        self._last = action
        if self._equal >= self._limits.repeats:
            raise Over(Ended.REPEATS)
