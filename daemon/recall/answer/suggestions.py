"""Suggestions if there are few or no results by words; each suggested call is tried before it is offered.

A suggestion is ``{reason, action, example}``; the example has the arguments of the next call. Functions write the
texts. `Suggester` tries the calls until a deadline, and offers none that it could not try. No text claims more than was
checked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from daemon import records
from daemon.display import counted, one_line
from daemon.errors import Retry, Skip
from daemon.index import Filters
from daemon.model import Json
from daemon.recall.answer import query_warnings
from daemon.recall.candidates import CandidateSearch
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.catalog import Row
from daemon.recall.query import Recall, parse
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.query.scope import Scope
from daemon.recall.ranking.grouping import Result
from daemon.redact import redact, redact_value

_MOST_MISSES = 20
_SPELLINGS = 3
_BY_WORDS = {"hybrid": "smart", "semantic": "smart"}


MOST_WORDS = 4
"""Absent words of a query for which we look up similar spellings."""


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "time": ("before", "after", "last", "from", "to", "since", "until"),
    "directory": ("directory", "within", "fallback"),
    "sessionsLimit": ("sessions",),
}
_OF_SESSIONS = frozenset({"sessionID", "scope", "projectID", "title", "archived", "directory", "sessionsLimit"})


def spelt(missing: Sequence[str], similar: Callable[[str], Sequence[tuple[str, int]]], request: Recall) -> list[Json]:
    """A suggestion for each absent word with similar spellings; `similar` returns (word, number of parts)."""
    suggestions = []
    for word in missing[:MOST_WORDS]:
        results = [(spelling, parts) for spelling, parts in similar(word) if spelling.lower() != word.lower()]
        if not results:
            continue
        spelling = redact(results[0][0])
        listed = ", ".join(f"{redact(name)!r} ({counted(parts, 'part')})" for name, parts in results)
        suggestions.append(
            {
                "reason": f"no searched text contains {redact(word)!r} as a whole word; similar spellings: {listed}",
                "action": f"search for {spelling!r} if you meant that"
                + ("" if request.match == "fuzzy" else ", or use `match=fuzzy`"),
                "example": _without(request) | {"query": _replaced(redact(request.query), redact(word), spelling)},
            }
        )
    return suggestions


def beyond(suggestion: Json, request: Recall, scope: Scope) -> Json:
    """A suggestion by `spelt` that finds something only without the filters."""
    action = f"{suggestion['action']}; only messages outside the filters ({limits(scope)}) contain it"
    example = _without(request, *scope.limited_by) | {"query": suggestion["example"]["query"]}
    return suggestion | {"action": action, "example": example}


def _replaced(text: str, word: str, replacement: str) -> str:
    """`text` with `replacement` for `word`, in whatever case it stands there; `replacement` alone where it does not."""
    replaced, times = re.subn(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: replacement, text, flags=re.IGNORECASE)
    return replaced if times else replacement


# -- filters ---------------------------------------------------------------------------------------------------------


def limits(scope: Scope) -> str:
    """The filters in force, as arguments."""
    return ", ".join(map(_limit, scope.limited_by))


def _limit(name: str) -> str:
    return {"time": "time", "sessionsLimit": "`sessions`"}.get(name, f"`{name}`")


def emptied(request: Recall, scope: Scope, rows: Mapping[str, Row]) -> tuple[list[str], list[Json]]:
    """(warnings, suggestions) if no session passes a filter."""
    name = scope.emptied_by
    if not name:
        return [], []
    values = {
        "directory": request.directory,
        "title": request.title,
        "projectID": request.projectID,
        "scope": request.scope,
        "archived": request.archived,
        "where": records.dumps(request.where).decode(),
    }
    value = redact(str(values.get(name, "")))
    sessions = counted(len(rows), "recorded session")
    reason = f"{_limit(name)} {value!r}: none of the {sessions} matches it and the other filters"
    action = f"remove {_limit(name)}, or list the sessions with `recall_sessions()`"
    return [reason], [{"reason": reason, "action": action, "example": _without(request, name)}]


def limiting(request: Recall, scope: Scope, known: int) -> list[Json]:
    """Suggestions to search without filters, if nothing was found with them."""
    if scope.emptied_by or not scope.limited_by:
        return []
    names = limits(scope)
    if scope.eligible < known:
        reason = f"only {scope.eligible} of {counted(known, 'session')} searched, limited by {names}"
    elif set(scope.limited_by) <= _OF_SESSIONS:
        return []  # they excluded nothing
    else:
        reason = f"only some messages of each session were searched, limited by {names}"
    return [
        {
            "reason": reason,
            "action": "search without these filters",
            "example": _without(request, *scope.limited_by),
        }
    ]


def tool_in_lower_case(request: Recall, tool: str) -> list[Json]:
    """A suggestion if the named tool has no results, but `tool`, in lower case, has."""
    name, spelling = redact(request.toolName.strip()), redact(tool)
    reason = f"`toolName` must be a tool's exact name: {name!r} matches nothing, {spelling!r} does"
    return [{"reason": reason, "action": f"use {spelling!r}", "example": _without(request) | {"toolName": spelling}}]


def alternative_modes(request: Recall, query: Query) -> tuple[str, ...]:
    """Other modes that may find something, the likeliest first."""
    if request.match in {"literal", "regex"}:
        return ("hybrid",)
    is_bare = query.is_exact and not query.words
    return tuple(mode for mode in ("literal", "fuzzy", "semantic") if mode != request.match) if is_bare else ()


def alternative_mode(request: Recall, mode: str) -> list[Json]:
    """A suggestion to use another mode."""
    reason = "a bare name finds only texts with that name"
    if request.match in {"literal", "regex"}:
        reason = f"there is no {request.match} match"
    return [{"reason": reason, "action": f"use `match={mode}` {_FINDS[mode]}", "example": _in_mode(request, mode)}]


_FINDS = {
    "hybrid": "for words in any order, stemmed, and meaning",
    "literal": "for a part of a longer name",
    "fuzzy": "for similar spellings, and parts of a name",
    "semantic": "for what is only similar",
}


def _in_mode(request: Recall, mode: str) -> Json:
    return _without(request, "match") | ({} if mode == Recall(query="").match else {"match": mode})


def _without(request: Recall, *names: str) -> Json:
    """The arguments of the request, without those of the named filters and without defaults.

    Another search begins with its first result.
    """
    gone = {"offset", *(argument for name in names for argument in _ARGUMENTS.get(name, (name,)))}
    defaults = Recall(query="")
    example: Json = {}
    for name, argument in zip(Recall.__struct_fields__, Recall.__struct_encode_fields__, strict=True):
        value: Any = getattr(request, name)
        if argument not in gone and value != getattr(defaults, name):
            example[argument] = _redacted(value)
    return example


def _redacted(value: object) -> Any:
    return redact(value) if isinstance(value, str) else redact_value(value)


# -- near misses -----------------------------------------------------------------------------------------------------


def held_by(result: Result, query: Query, mode: str) -> str:
    """A sentence about what a near miss found in `mode` holds of the query."""
    if mode in {"literal", "regex"}:
        return "contains it"
    if result.spelling_pairs:
        is_inside = any(name.lower() in spelling.lower() for name, spelling in result.spelling_pairs)
        return "contains it inside a longer name" if is_inside else "contains words with similar spellings"
    if not result.is_own:
        return "follows messages that contain some of the words"
    if query.is_exact and result.grade == Tier.INSIDE:
        return "contains it inside a longer name"
    is_whole = (
        mode == "smart" and result.grade == Tier.WHOLE
    )  # otherwise only the terms show whether it holds the names
    held = split(result.terms) | (split(query.named) if is_whole else set())
    return "contains all of the words" if held >= split((*query.named, *query.words)) else "contains some of the words"


def near_misses(
    results: Sequence[Result], rows: Mapping[str, Row], reason: Callable[[Result], str], most: int = 3
) -> list[Json]:
    """The sessions of results that are no answer, best first, each with the reason."""
    by_session: dict[str, Json] = {}
    for result in results:
        if len(by_session) == most:
            break
        if result.session_id in by_session:
            continue
        row = rows.get(result.session_id)
        terms = [redact(spelling) for _, spelling in result.spelling_pairs] or [redact(term) for term in result.terms]
        by_session[result.session_id] = {
            "sessionID": result.session_id,
            "title": one_line(redact(row.title)) if row else "",
            "directory": redact(row.directory) if row else "",
            "reason": reason(result),
            "terms": list(dict.fromkeys(terms)),
        }
    return list(by_session.values())


@dataclass(frozen=True, slots=True)
class Suggester:
    """Tries calls for suggestions, until `until` on time.monotonic's clock.

    `arranged` orders the candidates of a mode as results. `searched` are spellings, in lower case, that were searched
    already.
    """

    candidates: CandidateSearch
    request: Recall
    query: Query
    scope: Scope
    rows: Mapping[str, Row]
    until: float
    arranged: Callable[[CandidateLists, str, int], list[Result]]
    searched: frozenset[str] = frozenset()

    def help(
        self, page: Sequence[Result], missing: query_warnings.MissingTerms
    ) -> tuple[list[str], list[Json], list[Json]]:
        """(warnings, suggestions, near misses) beside the results of a page."""
        notes, suggestions = emptied(self.request, self.scope, self.rows)
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
        suggestions += self._tool_case()
        if misses or self._is_over():  # otherwise there is nothing outside the filters either
            suggestions += limiting(self.request, self.scope, len(self.rows))
        return notes, suggestions + self._alternative(), misses

    def _spelt(self, missing: Sequence[str]) -> list[Json]:
        """Similar spellings of words that no text has, within the filters if possible, else without them."""

        def similar(word: str) -> list[tuple[str, int]]:
            is_tried, is_written = self._is_written(word)
            spellings = self.candidates.spellings(word, _SPELLINGS, self.until) if is_tried and not is_written else []
            return [(spelling, parts) for spelling, parts in spellings if spelling.lower() not in self.searched]

        if self.request.match in {"regex", "semantic"}:
            return []
        suggestions = spelt(missing, similar, self.request)
        if not self.scope.limited_by and self.request.match != "literal":
            return suggestions  # all spellings are in the index, so they need no try
        tried: list[Json] = []
        for suggestion in suggestions:
            text = suggestion["example"]["query"]
            if self._finds(text):
                tried.append(suggestion)
            elif self.scope.limited_by and self._finds(text, among=(Filters(),)):
                tried.append(beyond(suggestion, self.request, self.scope))
        return tried

    def _is_written(self, word: str) -> tuple[bool, bool]:
        """(whether we know, whether any text has the word). A word that only the filters exclude is not misspelt."""
        written = self.candidates.is_written(word, self.until)
        return written is not None, bool(written)

    def _tool_case(self) -> list[Json]:
        """A suggestion for the tool in lower case, as OpenCode writes tool names."""
        tool = self.request.toolName.strip()
        fitting = [replace(filters, tools=(tool.lower(),)) for _, filters in self.scope.rounds]
        if tool == tool.lower() or not self._finds(self.request.query, among=fitting):
            return []
        return tool_in_lower_case(self.request, tool.lower())

    def _alternative(self) -> list[Json]:
        for mode in alternative_modes(self.request, self.query):
            if self._finds(self.request.query, mode):
                return alternative_mode(self.request, mode)
        return []

    def _finds(self, text: str, mode: str = "", among: Sequence[Filters] = ()) -> bool:
        """Whether the call finds anything in this mode and with these filters; hybrid counts by words."""
        mode = mode or self.request.match
        query = Query(text) if mode == "regex" else parse.parse(text)
        for filters in among or [filters for _, filters in self.scope.rounds]:
            results = self._candidates(query, "smart" if mode == "hybrid" else mode, filters)
            if results is not None and (results.similar() if mode == "semantic" else results.best()):
                return True
        return False

    def _near_misses(self) -> list[Json]:
        """Sessions outside the filters that hold the query; without filters, sessions with similar spellings."""
        request, scope = self.request, self.scope
        if request.match == "regex" and not scope.limited_by:
            return []
        mode = _BY_WORDS.get(request.match, request.match) if scope.limited_by else "fuzzy"
        results = self._candidates(self.query, mode, Filters(), _MOST_MISSES)
        if results is None:
            return []
        outside = f", but is outside the filters ({limits(scope)})" if scope.limited_by else ""
        return near_misses(
            self.arranged(results, mode, _MOST_MISSES),
            self.rows,
            lambda result: held_by(result, self.query, mode) + outside,
        )

    def _candidates(self, query: Query, mode: str, filters: Filters, depth: int = 1) -> CandidateLists | None:
        if self._is_over():
            return None
        try:
            return self.candidates.gather(query, mode, filters, depth, deadline=self.until, with_windows=False)
        except (Retry, Skip):  # the owner of the index was notified; a hint is no reason to fail
            return None

    def _is_over(self) -> bool:
        return time.monotonic() >= self.until
