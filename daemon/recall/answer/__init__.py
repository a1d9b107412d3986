"""The answer to the call `recall`, as JSON: results, warnings and suggestions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from daemon.archive import Archive
from daemon.display import counted
from daemon.model import Json
from daemon.recall.answer import query_warnings, results
from daemon.recall.answer.expand import Expansion, expand
from daemon.recall.answer.query_warnings import Backlog
from daemon.recall.answer.suggestions import Suggester
from daemon.recall.candidates import MODEL_LATE, CandidateSearch
from daemon.recall.candidates.lists import is_similar
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import Recall
from daemon.recall.query.parse import Query
from daemon.recall.query.scope import Scope
from daemon.recall.ranking import Search
from daemon.recall.ranking.grouping import Result
from daemon.recall.ranking.plan import Budget, Outcome
from daemon.redact import redact

_SHARE_OF_HELP = 0.01
"""The share of the budget, 20 ms, that hints may always take; otherwise they may take as long as the answer has."""


@dataclass(frozen=True, slots=True)
class Response:
    """A finished search with all that its answer needs. `model` names the embedder; `now` is epoch ms."""

    archive: Archive
    candidates: CandidateSearch
    catalog: Catalog
    rows: Mapping[str, Row]
    request: Recall
    scope: Scope
    query: Query
    search: Search
    outcome: Outcome
    budget: Budget
    model: str
    now: int
    backlog: Backlog

    def body(self) -> Json:
        """``{ok, query, results, onlySimilar, total, truncated, matchMode, degradeKind, degraded, group, sort,
        warnings, suggestions, coverage, nearMisses, expanded?}``.

        A result is that of results.as_json, `expanded` that of expand.expand, a suggestion ``{reason, action,
        example}``, a near miss ``{sessionID, title, directory, reason, terms}``. `onlySimilar`: no result
        holds a word of the query as it was asked. `total` counts what was found; `truncated` says that there is, or may
        be, more than is shown. `matchMode` is the one asked for, or the one fallen back on. `degradeKind` is the worst
        of index (one failed), time (the answer was ended), indexing (one that was asked lacks messages), fallback
        (answered in another way, or from farther away, than asked), budget (an expansion was cut, or `where`
        was not checked for every match) and none;
        `degraded` says in words what did not answer, or not completely.
        """
        request, outcome = self.request, self.outcome
        page = self.page()
        rendered = self.rendered(page)
        expansion = expand(self.archive, self.rows, request, [result for result, _ in rendered], self.budget.end)
        outcome.late += expansion.late
        items = [item for _, item in rendered]
        missing = self._missing(page)
        notes, suggestions, misses = self._help(page, missing)
        warnings = self._warnings(page, items, missing) + expansion.warnings
        body: Json = {
            "ok": True,
            "query": redact(request.query),
            "results": items,
            "onlySimilar": query_warnings.is_only_similar(self.query.undated, request.match, page),
            "total": len(outcome.results),
            "truncated": len(outcome.results) > request.offset + len(page) or outcome.is_full,
            "matchMode": outcome.fallback or request.match,
            "degradeKind": self._degraded(expansion),
            "degraded": [*self.degraded(), *self._shortfalls()],
            "group": request.group,
            "sort": request.sort,
            "warnings": [*notes, *warnings],
            "suggestions": suggestions,
            "coverage": self._coverage(),
            "nearMisses": misses,
        }
        return body | ({"expanded": expansion.expanded} if request.expand != "none" else {})

    def page(self) -> list[Result]:
        """The results to show. Those found by meaning get their texts here, and too short ones are dropped."""
        page, waiting = list[Result](), self.outcome.results
        while waiting and (room := self.request.offset + self.request.results - len(page)) > 0:
            following, waiting = waiting[:room], waiting[room:]
            matches = self.candidates.meaning.with_texts([result.match for result in following])
            page += [
                replace(result, match=replace(match, terms=result.match.terms))
                for result, match in zip(following, matches, strict=True)
                if self.request.match == "semantic" or result.sources != ("semantic",) or is_similar(match)
            ]
        self.outcome.results = [*page, *waiting]
        return page[self.request.offset :]

    def rendered(self, page: Sequence[Result]) -> list[tuple[Result, Json]]:
        """Each result with its JSON; without those whose message has left the archive meanwhile."""
        request, scope = self.request, self.scope
        display = results.Display(
            self.query,
            request.width,
            request.explain,
            request.group,
            scope.place,
            self.now,
            scope.section_filter,
            until=self.budget.end,
        )
        rendered = [(result, results.as_json(self.archive, self.rows, result, display)) for result in page]
        self.outcome.late += display.late
        self.outcome.gone += sum(item is None for _, item in rendered)
        return [(result, item) for result, item in rendered if item is not None]

    def degraded(self) -> list[str]:
        """What did not answer, in sentences."""
        return [*self.outcome.warnings, *self.outcome.late, *self._unchecked()]

    def _unchecked(self) -> list[str]:
        """A warning if there were too many candidates to check `where` on each of them."""
        warning = "`where` was checked only for the best or newest matches: there may be more that fulfil it; narrow it"
        return [warning] if self.outcome.is_unchecked else []

    def warnings(self, page: Sequence[Result], items: Sequence[Json]) -> list[str]:
        """The warnings for these results."""
        return self._warnings(page, items, self._missing(page))

    def _missing(self, page: Sequence[Result]) -> query_warnings.MissingTerms:
        """The terms of the query that were not found; none if literal and regex results hold the query as it is."""
        if page and self.request.match in {"literal", "regex"}:
            return query_warnings.MissingTerms()
        return query_warnings.absent(self.query.undated, self.outcome.held_terms, self.outcome.frequencies)

    def _warnings(
        self, page: Sequence[Result], items: Sequence[Json], missing: query_warnings.MissingTerms
    ) -> list[str]:
        outcome, match = self.outcome, self.request.match
        warnings, quarantine = [*self.scope.warnings, *outcome.warnings], self.catalog.quarantine.summary()
        warnings += [outcome.order_note] if outcome.order_note and outcome.results else []
        if outcome.late:
            is_index = any(MODEL_LATE not in late for late in outcome.late)  # a model knows no filters
            fix = "narrower filters help" if is_index else "ask again in a moment"
            cut = "; ".join(dict.fromkeys(outcome.late))
            warnings.append(f"the answer was ended after {self.budget.seconds:g} s: {cut}; {fix}")
        if outcome.fallback:
            description = (
                "was found by meaning" if outcome.fallback == "semantic" else "contains words with similar spellings"
            )
            warnings.append(f"nothing was found by words; what follows {description}")
        farther = sum(result.relevance in {"project", "global"} for result in page)
        if farther:
            warnings.append(f"{counted(farther, 'result')} from beyond the directory")
        warnings += query_warnings.empty_days(self.query, is_limited=bool(self.scope.limited_by))
        warnings += query_warnings.outside_days(self.query, [result.created for result in page])
        warnings += [*self._unchecked(), *self._below(page), *self._about_query(page, missing)]
        if not page or (missing.parts and match != "semantic"):
            warnings += quarantine.warnings()
        if outcome.gone:
            gone = counted(outcome.gone, "indexed message")
            warnings.append(f"not in the archive: {gone}; the index is behind, rebuild it")
        deleted = sum(item["deleted"] for item in items)
        if deleted:
            warnings.append(f"deleted in OpenCode, and only in this archive: {counted(deleted, 'result')}")
        return list(dict.fromkeys([*warnings, *self._shortfalls()]))

    def _below(self, page: Sequence[Result]) -> list[str]:
        """A warning about results under the threshold, if the page has room for more."""
        outcome = self.outcome
        if not outcome.below or len(page) >= self.request.results:
            return []
        is_partly = outcome.is_below_partly or outcome.late or outcome.is_unchecked
        number = f"{'at least ' if is_partly else ''}{counted(len(outcome.below), 'result')}"
        best = max(result.score for result in outcome.below.values())
        return [f"`threshold` {self.request.threshold:g} left out {number}, the best of score {best:g}"]

    def _shortfalls(self) -> list[str]:
        by_meaning_alone = "semantic" in {self.request.match, self.outcome.fallback}
        return self.backlog.shortfalls(
            self.outcome.states, self.model, by_meaning_alone=by_meaning_alone, kinds=self.scope.section_filter.kinds
        )

    def _about_query(self, page: Sequence[Result], missing: query_warnings.MissingTerms) -> list[str]:
        """Warnings about the terms of the query, and about those that were not found."""
        outcome, match, quarantine = self.outcome, self.request.match, self.catalog.quarantine.summary()
        is_sure = outcome.states.get("lexical") == "used" and not outcome.late
        if self.query.is_of_days and (page or (is_sure and not outcome.below)):
            return query_warnings.days_alone(self.query, {result.match.kind for result in page})
        if outcome.instead:
            return query_warnings.substituted_names(
                outcome.instead, is_limited=bool(self.scope.limited_by), is_any=bool(page)
            )
        if self.scope.emptied_by or (not page and (outcome.below or self.request.offset)):
            return []
        return query_warnings.word_warnings(
            self.query.undated,
            match,
            page,
            missing,
            is_inside=outcome.is_inside,
            is_limited=bool(self.scope.limited_by),
            is_sure=outcome.states.get("lexical") == "used"
            and not (outcome.late or outcome.is_unchecked or quarantine.count or self.backlog.missing["lexical"]),
        )

    def _help(
        self, page: Sequence[Result], missing: query_warnings.MissingTerms
    ) -> tuple[list[str], list[Json], list[Json]]:
        """(warnings, suggestions, near misses), if there are few or no results by words. Takes a short time only."""
        if not page and (self.outcome.below or self.request.offset):
            return [], [], []
        now, budget = time.monotonic(), self.budget
        until = min(budget.end, now + max(_SHARE_OF_HELP * budget.seconds, now - budget.began))
        helper = Suggester(
            self.candidates,
            self.request,
            self.query,
            self.scope,
            self.rows,
            until,
            self.search.arrange,
            frozenset(substitute.lower() for _, substitute in self.outcome.instead),
        )
        advice = helper.help(page, missing)
        if not page and until == budget.end <= time.monotonic():
            self.outcome.late.append("not all that may help was tried")
        return advice

    def _degraded(self, expansion: Expansion) -> str:
        """The worst `degradeKind`."""
        if "failed" in self.outcome.states.values():
            return "index"
        if self.outcome.late:
            return "time"
        if self._shortfalls():
            return "indexing"
        if (
            self.outcome.fallback
            or self.outcome.instead
            or self.outcome.states.get("semantic") == "not legible"
            or any(result.relevance in {"project", "global"} for result in self.outcome.results)
        ):
            return "fallback"
        return "budget" if expansion.is_short or self.outcome.is_unchecked else "none"

    def _coverage(self) -> Json:
        states = {"lexical": "not asked", "semantic": "not asked"} | self.outcome.states
        limited = [*self.scope.limited_by, *(["timeBudget"] if self.outcome.late else [])]
        return {
            "sessions": len(self.rows),
            "messages": self.backlog.messages,
            "eligible": self.scope.eligible,
            **states,
            "model": self.model if states["semantic"] == "used" else "",
            "candidates": self.outcome.candidates,
            "waiting": dict(self.backlog.missing),
            "unread": self.backlog.unread,
            "limitedBy": limited,
            **self.catalog.quarantine.summary().coverage(),
        }
