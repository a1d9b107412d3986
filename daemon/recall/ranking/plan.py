"""The plan of a search, its time budget and its outcome."""

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
    newest or oldest. Results below `threshold`, and those that `passes` refuses, are left out.
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
    """The results of a search, and how it went.

    * `states`: for each index, whether it was used; `late`: what the deadline cut off
    * `held_terms`: names and words of the query that candidates hold
    * `fallback`: the mode that was used because the requested one found nothing
    * `instead`: (name that no text has, name that was searched for instead)
    * `candidates`: number of messages; `gone`: how many of them are not in the archive
    * `order_note`: a sentence that says what was sorted by date
    * `below`: results under the threshold, by key; `is_below_partly`: there may be more of them
    * `is_unchecked`: `Plan.passes` refused candidates, and never saw the rest
    """

    results: list[Result] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    held_terms: set[str] = field(default_factory=set)
    frequencies: dict[str, int] = field(default_factory=dict)
    is_inside: bool = False
    is_full: bool = False
    is_unchecked: bool = False
    rounds: int = 0
    candidates: int = 0
    gone: int = 0
    fallback: str = ""
    order_note: str = ""
    below: dict[tuple[str, ...], Result] = field(default_factory=dict)
    is_below_partly: bool = False
    instead: tuple[tuple[str, str], ...] = ()


_SHARE_OF_SEARCH = 0.9
"""The share of a budget for searching; the rest is for excerpts, expansions and hints."""


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
        """Do work that the budget does not count. Errors are ignored: the search meets them again and reports them."""
        began = time.monotonic()
        with suppress(Exception):
            work()
        self.began += time.monotonic() - began
