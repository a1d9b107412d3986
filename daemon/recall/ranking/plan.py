"""What to search for, in what time, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from daemon.index import Filters
from daemon.recall.query.parse import Query
from daemon.recall.ranking.grouping import Result


@dataclass(frozen=True, slots=True)
class Plan:
    """What to search for.

    `rounds` are (relevance, filters), searched one after the other until there are `results`. `is_single_session`: the
    results need not be spread over several sessions. `folds`: copies of a message are one result. `sort`: relevance,
    newest or oldest. Results below `threshold` are left out, and those that `passes`, where there is one, refuses.
    """

    query: Query
    match: str
    rounds: tuple[tuple[str, Filters], ...]
    results: int
    group: str = "message"
    is_single_session: bool = False
    explain: bool = False
    folds: bool = False
    sort: str = "relevance"
    threshold: float = 0.0
    passes: Callable[[Result], bool] | None = None


@dataclass(slots=True)
class Outcome:
    """What a search came to.

    `states` says of each index whether it was used; `late` names what the deadline cut off; `held` are the names and
    words of the query that candidates hold; `fallback` is the mode fallen back on; `instead` are names that no text
    has, each with what was searched for instead; `candidates` counts messages, and `gone` those of them that the
    archive does not have; `dated` says what was sorted by date; `below` are results that the threshold left out, by
    their keys, and `is_below_partly` says that there may be more of them; `is_unchecked`: `Plan.passes` refused
    candidates, and there are more that it never saw.
    """

    results: list[Result] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    frequencies: dict[str, int] = field(default_factory=dict)
    is_inside: bool = False
    is_full: bool = False
    is_unchecked: bool = False
    rounds: int = 0
    candidates: int = 0
    gone: int = 0
    fallback: str = ""
    dated: str = ""
    below: dict[tuple[str, ...], Result] = field(default_factory=dict)
    is_below_partly: bool = False
    instead: tuple[tuple[str, str], ...] = ()


_SHARE_OF_SEARCH = 0.9
"""The part of a budget that searching may take; the rest is for excerpts, expansions and hints."""


class Budget:
    """The seconds that one answer may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.began = time.monotonic()

    @property
    def deadline(self) -> float:
        """When searching ends, on time.monotonic's clock."""
        return self.began + _SHARE_OF_SEARCH * self.seconds

    @property
    def end(self) -> float:
        """When the answer is due, on the same clock."""
        return self.began + self.seconds

    @property
    def is_over(self) -> bool:
        """Whether the time for searching is up."""
        return time.monotonic() >= self.deadline

    def pause(self, work: Callable[[], None]) -> None:
        """Do work that does not count. Its failure is left to the search, which meets it again and reports it."""
        began = time.monotonic()
        with suppress(Exception):
            work()
        self.began += time.monotonic() - began
