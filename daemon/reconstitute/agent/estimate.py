"""What a run would cost now, before a model is asked anything: calls and tokens, by kind.

What is sent first is made and measured. How often a model looks further is not known before: `calls` and `tokens` are
what a question usually takes, `most_calls` and `most_tokens` what the limits allow. Paths that a model records while it
answers are asked about on top, and counted by nobody before.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from daemon.model import Json
from daemon.reconstitute.agent.limits import Limits

_USUAL_CALLS = 3
"""Of a question: two looks and the answer."""
_USUAL_RESULT = 1_000
"""Tokens of what a tool shows."""
_REPLY = 300
LARGE_CALLS = 50
"""A run of so many calls is announced."""


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
        looked = sum(range(calls)) * (_USUAL_RESULT + _REPLY)  # each step sends again what the steps before it showed
        self._add(self.questions, calls, calls * (first + _REPLY) + looked, limits.steps, max(limits.tokens, first))

    def summary(self, kind: str, sent: int) -> None:
        """One more file or session to be described, with `sent` tokens; what does not hold is asked for once more."""
        cost = self.files if kind == "file" else self.sessions
        self._add(cost, 1, sent + _REPLY, 2, 2 * sent + 3 * _REPLY)

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
        return sum(each.calls for each in (self.questions, self.files, self.sessions))

    @property
    def tokens(self) -> int:
        """What is usual, over all kinds."""
        return sum(each.tokens for each in (self.questions, self.files, self.sessions))

    def to_json(self) -> Json:
        """``{questions, files, sessions, later, calls, tokens, most_calls, most_tokens}``, kinds as Cost."""
        kinds = (self.questions, self.files, self.sessions)
        most = {name: sum(getattr(each, name) for each in kinds) for name in ("most_calls", "most_tokens")}
        return {**asdict(self), "calls": self.calls, "tokens": self.tokens, **most}
