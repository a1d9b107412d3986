"""Search over one archive and its indexes: the one engine behind every search.

`RecallEngine.answer` takes a request as clients write it and gives the JSON they get; `RecallEngine.search` is the same
search for callers in this process, limited by index filters, with typed results. Both read the indexes and the archive
and change neither. The answer names everything that was unavailable, left out or deleted at its source.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from daemon.archive import STAGES, TOOLS, Archive
from daemon.days import local
from daemon.embed import Embedder
from daemon.errors import BadRequest
from daemon.index import Filters, LexicalIndex, SemanticIndex
from daemon.index import Match as IndexMatch
from daemon.model import Hit, Json, Kind
from daemon.recall.answer import Response
from daemon.recall.answer.query_warnings import Backlog
from daemon.recall.answer.results import Display, as_json
from daemon.recall.candidates import CandidateSearch
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import Match, Recall, parse
from daemon.recall.query.conditions import kinds_of
from daemon.recall.query.parse import Query
from daemon.recall.query.scope import Scope, SectionFilter, by_all_names, facts_of, resolve
from daemon.recall.ranking import Search
from daemon.recall.ranking.grouping import Result
from daemon.recall.ranking.plan import Budget, Plan

BUDGET_S = 2.0
"""Seconds that all searching of one client's request may take."""
PATIENT_S = 120.0
"""The same for a caller in this process, whose result should not depend on how busy the machine is."""
MOST = 200
_SNIPPET = 240
_END_OF_TIME = 1 << 62

ANY = Filters()


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits, best first. `degraded` are the warnings that say what did not answer."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


class RecallEngine:
    """Searches one archive."""

    def __init__(
        self,
        archive: Archive,
        lexical: LexicalIndex,
        semantic: Callable[[], SemanticIndex | None],
        embedder: Embedder,
        *,
        on_failure: Callable[[str, Exception], None] = lambda _index, _error: None,
        catalog: Catalog | None = None,
        budget_s: float = BUDGET_S,
        prepare: Callable[[bool], None] = lambda _: None,
        in_memory: int = 0,
        is_served: bool = False,
    ) -> None:
        """`semantic` returns the current semantic index, or None while it is being rebuilt.

        `on_failure` gets the name of an index that failed, lexical or semantic, and its error, so that its owner can
        repair it. `prepare` loads what a search by meaning needs, before the search's time begins; it may take longer
        if it gets true, because only meaning can answer. `in_memory` is the number of waiting messages that `lexical`
        already has in memory.
        """
        self._archive, self._lexical, self._on_failure = archive, lexical, on_failure
        is_off = "semantic" in archive.off
        self._candidates = partial(
            CandidateSearch, lexical, semantic, embedder, on_failure, self._is_behind, is_off=is_off
        )
        self._model = "" if is_off else embedder.name
        self._catalog = catalog or Catalog(archive)
        self._budget_s = budget_s
        self._prepare = prepare
        self._in_memory = in_memory
        self._is_served = is_served  # by the service, which indexes waiting messages

    def _is_behind(self) -> bool:
        """Whether the word index may lack messages that the semantic index has: only while it is rebuilt."""
        return self._archive.waiting("lexical") > self._archive.waiting("semantic")

    def answer(self, request: Recall, cwd: str = "", now: int | None = None) -> Json:
        """The answer to the call `recall` (Response.body).

        `cwd` is the caller's directory, "" where that is unknown; `now` is epoch ms, None for the clock's.

        Raises:
            BadRequest: an empty or overlong query, contradicting filters, a bad regular expression.
            ReconstituteError: nothing could be searched.
        """
        parse.check(request.query)
        now = time.time_ns() // 1_000_000 if now is None else now
        budget = Budget(self._budget_s)
        scope = by_all_names(self._archive, resolve(request, self._catalog.rows(), cwd, now))
        return self._respond(request, scope, budget, now, folds=True).body()

    def search(self, query: str, match: Match = "hybrid", limit: int = 10, filters: Filters = ANY) -> SearchResults:
        """At most `limit` messages that pass `filters`.

        Raises:
            BadRequest: an empty or overlong query, a limit outside 1 to MOST, a bad regular expression.
            ReconstituteError: nothing could be searched.
        """
        parse.check(query)
        if not 1 <= limit <= MOST:
            raise BadRequest(f"limit {limit} is out of range: use 1 to {MOST}")
        request = Recall(query=query, match=match, results=limit, width=_SNIPPET)
        limited_by = ("filters",) if filters != ANY else ()
        section_filter = SectionFilter(filters.kinds, filters.tools)
        scope = Scope((("", filters),), len(self._catalog.rows()), limited_by, section_filter=section_filter)
        response = self._respond(request, scope, Budget(max(PATIENT_S, self._budget_s)), time.time_ns() // 1_000_000)
        page = response.page()
        items = [item for _, item in response.rendered(page)]
        warnings = tuple(response.warnings(page, items))
        return SearchResults(tuple(map(_hit, items)), warnings, tuple(response.degraded()))

    def newest(self, filters: Filters, limit: int, besides: Collection[str] = ()) -> tuple[Hit, ...]:
        """At most `limit` of the newest messages that pass `filters`, without those whose ids are in `besides`.

        If the lexical index fails, `on_failure` is called and the hits so far are returned.
        """
        rows, excluded, hits = self._catalog.rows(), set(besides), list[Hit]()
        display = Display(Query(""), _SNIPPET, False, "message", None, 0, SectionFilter(filters.kinds, filters.tools))
        depth, is_all = 2 * (limit + len(excluded)), False
        while len(hits) < limit and not is_all:
            matches = self._newest(filters, depth)
            is_all, depth = len(matches) < depth, 4 * depth
            for match in matches:
                state = self._archive.state(match.message_id) if match.message_id not in excluded else None
                excluded.add(match.message_id)
                if state is not None:
                    result = Result(match.message_id, state["session"], "", state["created"], match, "kind")
                    item = as_json(self._archive, rows, result, display)
                    hits += [_hit(item)] if item is not None else []
        return tuple(sorted(hits, key=lambda hit: (-hit.created, hit.message_id))[:limit])

    def _newest(self, filters: Filters, limit: int) -> list[IndexMatch]:
        try:
            return self._lexical.by_time(_END_OF_TIME, filters, limit, before=True)
        except Exception as error:  # noqa: BLE001 - an index may fail in its library's own ways
            self._on_failure("lexical", error)
            return []

    def _respond(self, request: Recall, scope: Scope, budget: Budget, now: int, *, folds: bool = False) -> Response:
        """Search; `folds`: copies of a message are one result."""
        query = Query(request.query) if request.match == "regex" else parse.parse(request.query)
        candidates, rows = self._candidates(), self._catalog.rows()
        if request.match in {"hybrid", "smart", "fuzzy"} and scope.rounds:
            then = None if request.match == "fuzzy" else local(now)
            query = candidates.interpret(query, scope.rounds[-1][1], then, budget.deadline)
        plan = Plan(
            query,
            request.match,
            () if scope.emptied_by else scope.rounds,
            request.offset + request.results,
            request.group,
            is_single_session=bool(request.sessionID),
            explain=request.explain,
            folds=folds,
            sort=request.sort,
            threshold=request.threshold,
            passes=self._passing(scope, rows, candidates),
        )
        search = Search(self._archive, candidates, rows, plan, budget, prepare=self._prepare)
        return Response(
            archive=self._archive,
            candidates=candidates,
            catalog=self._catalog,
            rows=rows,
            request=request,
            scope=scope,
            query=query,
            search=search,
            outcome=search.run(),
            budget=budget,
            model=self._model,
            now=now,
            backlog=self._backlog(),
        )

    def _passing(
        self, scope: Scope, rows: Mapping[str, Row], candidates: CandidateSearch
    ) -> Callable[[Result], bool] | None:
        """A predicate for the condition of the argument `where`; None without a condition."""
        condition = scope.condition
        if condition is None:
            return None
        shows_titles = Kind.TITLE in scope.section_filter.kinds
        roles = {filters.role for _, filters in scope.rounds}
        role = {"role": next(iter(roles))} if len(roles) == 1 and "" not in roles else {}

        def passes(result: Result) -> bool:
            row, match = rows.get(result.session_id), result.match
            facts = (facts_of(row) if row else {}) | role | {"time": result.created}
            if match.part_id:
                facts |= {"kind": match.kind, "tool": match.tool}
            verdict = condition.holds(facts)
            message = self._archive.message(result.message_id) if verdict is None else None
            if message is None:
                return verdict is not False
            facts |= {"role": message.role}
            kinds = kinds_of(
                message, candidates.meaning.with_texts([match])[0], row.title if row and shows_titles else ""
            )
            sections = [{}] if match.part_id else [{"kind": kind, "tool": tool} for kind, tool in kinds]
            return any(condition.holds(facts | section) is not False for section in sections)

        return passes

    def _backlog(self) -> Backlog:
        missing = {stage: self._archive.waiting(stage) for stage in (*STAGES, TOOLS)}
        missing["lexical"] = max(0, missing["lexical"] - self._in_memory)
        off = self._archive.off
        unread = 0 if "semantic" in off else self._archive.unread()
        return Backlog(self._archive.message_count(), missing, unread, self._is_served, has_tools=TOOLS not in off)


def _hit(result: Json) -> Hit:
    return Hit(
        message_id=result["messageID"],
        session_id=result["sessionID"],
        title=result["sessionTitle"],
        role=result["role"],
        created=result["time"],
        kind=result["kind"],
        score=result["score"],
        mode=result["matchMode"],
        snippet=result["snippet"],
        tool=result.get("toolName", ""),
        directory=result["directory"],
    )
