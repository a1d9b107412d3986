"""What a question is, for a model and for the extractive answer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `kinds` weighs what a passage was, `favours` is ``early``, ``late`` or empty.

    `cues` are (regular expression, weight); without a cue or a shared word a passage is no answer. `commands` says
    whether shell commands that ended well may answer too; `in_time_order`: the best quotes, oldest first.
    """

    id: str
    heading: str
    ask: str
    queries: tuple[str, ...]
    cues: tuple[tuple[str, float], ...] = ()
    kinds: dict[str, float] = field(default_factory=dict)
    favours: str = ""
    opening: float = 0.0
    commands: bool = False
    in_time_order: bool = False
