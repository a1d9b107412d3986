"""What one question may cost, and why it ended.

All limits are on by default (docs/reliability.md, A2: a loop that nobody watched ran for two hours and wrote 11 GB).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from daemon import config
from daemon.chat.tokens import REPLY_ROOM, of_chat
from daemon.model import Json, OllamaMessage

OPENING = 2
"""The system's words, and the question with its context."""
LATEST = 4
"""The newest messages, which stay whole as long as that is possible."""
REPLY = 2048
"""Tokens kept free for the reply, or a quarter of a small context."""
LEFT_OUT = "(left out to make room; call the tool again if you need this)"
_OMISSION = "(earlier steps were left out to make room)"
_USUAL_CALLS = 3
"""Of a question: two looks and the answer."""
_USUAL_RESULT = 1_000
"""Tokens of what a tool shows."""
_REPLY = 300
LARGE_CALLS = 50
"""A run of so many calls is announced."""


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


class QuestionOver(Exception):  # not a failure: how the loop ends
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
            raise QuestionOver(Ended.TOKENS)
        if self.steps >= self._limits.steps:
            raise QuestionOver(Ended.STEPS)
        self.steps += 1

    def check_time(self) -> None:
        """Before whatever may take long.

        Raises:
            Over: the time is.
        """
        if self.seconds >= self._limits.seconds:
            raise QuestionOver(Ended.TIME)

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
            raise QuestionOver(Ended.REPEATS)


def sendable_tokens(context_tokens: int) -> int:
    """How many tokens of messages and tools may be sent to a model with such a context."""
    return context_tokens - max(REPLY_ROOM, min(REPLY, context_tokens // 4))


def count_tokens(messages: Sequence[OllamaMessage], tools: Sequence[Json] = ()) -> int:
    """The most that all of it may be, tokens."""
    return int(of_chat(messages, tools).most)


def fit_into(messages: Sequence[OllamaMessage], tools: Sequence[Json], limit: int) -> list[OllamaMessage]:
    """`messages`, with as much left out as is needed for `limit` tokens.

    Raises:
        Over: the opening alone does not fit.
    """
    fitting = list(messages)
    sizes = [count_tokens([message]) for message in fitting]
    remaining = limit - count_tokens([], tools)
    for stays in (LATEST, 1):
        for place in range(OPENING, max(OPENING, len(fitting) - stays)):
            if sum(sizes) <= remaining:
                return fitting
            if fitting[place]["role"] == "tool":
                fitting[place] = fitting[place] | {"content": LEFT_OUT}
                sizes[place] = count_tokens([fitting[place]])
    while count_tokens(fitting) > remaining:
        fitting = _without_oldest_turn(fitting)
    return fitting


def _without_oldest_turn(messages: list[OllamaMessage]) -> list[OllamaMessage]:
    """Without the first turn behind the opening: an assistant's message and what answers it."""
    start = OPENING + (1 if len(messages) > OPENING and messages[OPENING].get("content") == _OMISSION else 0)
    end = start + 1
    while end < len(messages) and messages[end]["role"] != "assistant":
        end += 1
    if start >= len(messages):
        raise QuestionOver(Ended.CONTEXT)
    return [*messages[:OPENING], {"role": "user", "content": _OMISSION}, *messages[end:]]


@dataclass(slots=True)
class Cost:
    """Of one kind: how many are to be asked, how many are kept, and what asking takes."""

    asked: int = 0
    kept: int = 0
    calls: int = 0
    tokens: int = 0
    most_calls: int = 0
    most_tokens: int = 0


@dataclass(slots=True)
class Estimate:
    """Of one run. `later` counts files and sessions that wait for a later run."""

    questions: Cost = field(default_factory=Cost)
    files: Cost = field(default_factory=Cost)
    sessions: Cost = field(default_factory=Cost)
    later: int = 0

    def question(self, first: int, limits: Limits) -> None:
        """One more question to be asked, with `first` tokens in its first messages and the tools' descriptions."""
        calls = min(_USUAL_CALLS, limits.steps)
        # Each step sends the results of all earlier steps again.
        result_tokens = sum(range(calls)) * (_USUAL_RESULT + _REPLY)
        self._add(
            self.questions, calls, calls * (first + _REPLY) + result_tokens, limits.steps, max(limits.tokens, first)
        )

    def summary(self, kind: str, tokens: int) -> None:
        """One more file or session to be described, with `sent` tokens; what does not hold is asked for once more."""
        cost = self.files if kind == "file" else self.sessions
        self._add(cost, 1, tokens + _REPLY, 2, 2 * tokens + 3 * _REPLY)

    @staticmethod
    def _add(cost: Cost, calls: int, tokens: int, most_calls: int, most_tokens: int) -> None:
        cost.asked += 1
        cost.calls += calls
        cost.tokens += tokens
        cost.most_calls += most_calls
        cost.most_tokens += most_tokens

    @property
    def calls(self) -> int:
        """What is usual, over all kinds."""
        return sum(cost.calls for cost in (self.questions, self.files, self.sessions))

    @property
    def tokens(self) -> int:
        """What is usual, over all kinds."""
        return sum(cost.tokens for cost in (self.questions, self.files, self.sessions))

    def to_json(self) -> Json:
        """``{questions, files, sessions, later, calls, tokens, most_calls, most_tokens}``, kinds as Cost."""
        kinds = (self.questions, self.files, self.sessions)
        maxima = {name: sum(getattr(cost, name) for cost in kinds) for name in ("most_calls", "most_tokens")}
        return {**asdict(self), "calls": self.calls, "tokens": self.tokens, **maxima}
