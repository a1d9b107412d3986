"""What a question is, for a model and for the quotations that answer a person's own one without a model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `ask` is its wording; `queries` go to recall (none: it is not searched for).

    `in_time_order`: its statements are told oldest first, each with its day.
    """

    id: str
    heading: str
    ask: str
    queries: tuple[str, ...] = ()
    in_time_order: bool = False
