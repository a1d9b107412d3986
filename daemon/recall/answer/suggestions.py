"""What to try where there is little or nothing by words; each next call is tried before it is offered.

Texts of hints are made by `hints`; here the indexes are asked for them, until a time is over. What could not be tried
by then is not offered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from daemon.errors import Retry, Skip
from daemon.index import Filters
from daemon.model import Json
from daemon.recall.answer import hints, query_warnings
from daemon.recall.candidates import CandidateSearch
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.catalog import Row
from daemon.recall.query import Recall, parse
from daemon.recall.query.parse import Query
from daemon.recall.query.scope import Scope
from daemon.recall.ranking.grouping import Result

_NEAR_MISSES = 20
_SPELLINGS = 3
_BY_WORDS = {"hybrid": "smart", "semantic": "smart"}


@dataclass(frozen=True, slots=True)
class Suggester:
    """Knows the question and whom to ask; `until` is on time.monotonic's clock.

    `arranged` orders candidates of a mode as finds, as many as are needed.
    """

    candidates: CandidateSearch
    request: Recall
    query: Query
    scope: Scope
    rows: Mapping[str, Row]
    until: float
    arranged: Callable[[CandidateLists, str, int], list[Result]]

    def help(self, page: Sequence[Result], missing: query_warnings.Missing) -> tuple[list[str], list[Json], list[Json]]:
        """(warnings, suggestions, near misses) beside the results of a page."""
        notes, suggestions = hints.emptied(self.request, self.scope, self.rows)
        is_weak = not any(result.is_by_words for result in page) or (self.query.is_exact and bool(missing.parts))
        if notes:
            return notes, suggestions, self._near_misses()
        if page and not is_weak:
            return notes, self._spelt(missing.unwritten), []
        if not is_weak or (page and self.request.match in {"semantic", "regex"}):
            return notes, suggestions, []
        suggestions += self._spelt(missing.parts)
        if page:
            return notes, suggestions, []
        misses = self._near_misses()
        suggestions += self._other_case()
        if misses or self._is_over():  # else nothing lies outside the filters either
            suggestions += hints.limiting(self.request, self.scope, len(self.rows))
        return notes, suggestions + self._other_mode(), misses

    def _spelt(self, missing: Sequence[str]) -> list[Json]:
        """Near spellings of what no text has, within the filters if these let one through, else without them."""

        def similar(word: str) -> list[tuple[str, int]]:
            is_tried, is_written = self._is_written(word)
            return self.candidates.spellings(word, _SPELLINGS, self.until) if is_tried and not is_written else []

        if self.request.match in {"regex", "semantic"}:
            return []
        made = hints.spelt(missing, similar, self.request)
        if not self.scope.limited_by and self.request.match != "literal":
            return made  # the spellings are of the index
        tried: list[Json] = []
        for suggestion in made:
            text = suggestion["example"]["query"]
            if self._finds(text):
                tried.append(suggestion)
            elif self.scope.limited_by and self._finds(text, among=(Filters(),)):
                tried.append(hints.beyond(suggestion, self.request, self.scope))
        return tried

    def _is_written(self, word: str) -> tuple[bool, bool]:
        """Whether it could be told, and whether any text has the word: what only the filters leave out is no error."""
        written = self.candidates.is_written(word, self.until)
        return written is not None, bool(written)

    def _other_case(self) -> list[Json]:
        """A tool is asked for by its exact name, which OpenCode writes in small letters."""
        tool = self.request.toolName.strip()
        fitting = [replace(filters, tools=(tool.lower(),)) for _, filters in self.scope.rounds]
        if tool == tool.lower() or not self._finds(self.request.query, among=fitting):
            return []
        return hints.other_tool(self.request, tool.lower())

    def _other_mode(self) -> list[Json]:
        for mode in hints.other_modes(self.request, self.query):
            if self._finds(self.request.query, mode):
                return hints.other_mode(self.request, mode)
        return []

    def _finds(self, text: str, mode: str = "", among: Sequence[Filters] = ()) -> bool:
        """Whether a call like this one, but in this mode and with these filters, finds anything; hybrid, by words."""
        mode = mode or self.request.match
        query = Query(text) if mode == "regex" else parse.parse(text)
        for filters in among or [filters for _, filters in self.scope.rounds]:
            results = self._candidates(query, "smart" if mode == "hybrid" else mode, filters)
            if results is not None and (results.similar() if mode == "semantic" else results.best()):
                return True
        return False

    def _near_misses(self) -> list[Json]:
        """Sessions that hold it outside the filters, in the mode asked for; else such that hold nearly such words."""
        request, scope = self.request, self.scope
        if request.match == "regex" and not scope.limited_by:
            return []
        mode = _BY_WORDS.get(request.match, request.match) if scope.limited_by else "fuzzy"
        results = self._candidates(self.query, mode, Filters(), _NEAR_MISSES)
        if results is None:
            return []
        outside = f", but is outside the filters ({hints.limits(scope)})" if scope.limited_by else ""
        return hints.near_misses(
            self.arranged(results, mode, _NEAR_MISSES),
            self.rows,
            lambda result: hints.held_by(result, self.query, mode) + outside,
        )

    def _candidates(self, query: Query, mode: str, filters: Filters, depth: int = 1) -> CandidateLists | None:
        if self._is_over():
            return None
        try:
            return self.candidates.gather(query, mode, filters, depth, deadline=self.until, with_windows=False)
        except (Retry, Skip):  # the owner of the index was told; a hint is no reason to fail
            return None

    def _is_over(self) -> bool:
        return time.monotonic() >= self.until
