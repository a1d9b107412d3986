"""The call `recall`: a question as clients ask it becomes the answer they get.

The steps, each in a module of its own: where to look (filters), what the indexes have (candidates), in which order
(order), one result a group (group), what is shown of it (answers), more of the best (expand), what else must be said
(hints). The work is bounded in time: what is not there by then is left out, and said to be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from daemon.archive import STAGES, Archive
from daemon.errors import BadRequest, ReconstituteError
from daemon.index import Filters
from daemon.model import Json
from daemon.recall.answer import hints
from daemon.recall.answer import results as answers
from daemon.recall.answer.expand import Expansion, expand
from daemon.recall.answer.snippet import counted
from daemon.recall.answer.suggestions import Helper
from daemon.recall.catalog import Catalog, Row
from daemon.recall.query import parse
from daemon.recall.query.parse import Query
from daemon.recall.query.request import Recall as Asked
from daemon.recall.query.scope import Scope, resolve
from daemon.recall.ranking import grouping
from daemon.recall.ranking.candidates import MODEL_LATE, Candidates
from daemon.recall.ranking.grouping import Find
from daemon.recall.ranking.lists import NEAR, WORDS, Found
from daemon.recall.ranking.order import Archived, held, ordered
from daemon.recall.ranking.other_sessions import Wanted, spread
from daemon.recall.touched import by_all_names
from daemon.redact import redact

BUDGET_S = 2.0
"""Seconds that all searching of one question may take."""

_SHARE_OF_HELP = 0.01
"""The part of the budget that looking for hints may always take, 20 ms; else as long as the answer has taken."""
_DEPTH_OF_GROUPS = 200
"""Candidates for results that stand for many: a session that has several good messages should show all of them."""
_ONE_BY_ONE = ("part", "message")
_LEAST_LOOK = 0.05
"""The part of the budget that looking again beside a noisy session may always take; else as long as the first look."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a question is answered from. `model` names the embedder; `budget_s` bounds the searching, which begins when
    `prepare` has loaded what searching by meaning needs.
    """

    archive: Archive
    candidates: Candidates
    catalog: Catalog
    model: str
    budget_s: float = BUDGET_S
    prepare: Callable[[], None] = lambda: None


@dataclass(slots=True)
class _Looked:
    """What the searches of one question came to."""

    finds: list[Find] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    frequencies: dict[str, int] = field(default_factory=dict)
    is_inside: bool = False
    is_full: bool = False
    rounds: int = 0
    candidates: int = 0
    gone: int = 0
    fallback: str = ""


def answer(room: Room, asked: Asked, here: str, now: int) -> Json:
    """The answer to `asked`, from the directory `here` ("" where unknown), at `now` (epoch ms).

    ``{ok, query, results, total, truncated, matchMode, degradeKind, degraded, group, warnings, suggestions, coverage,
    nearMisses, expanded?}``. A result is that of answers.result, `expanded` that of expand.expand, a suggestion
    ``{reason, action, example}``, a near miss ``{sessionID, title, directory, reason, terms}``. `total` counts what was
    found; `truncated` says that there is, or may be, more than is shown. `matchMode` is the one asked for, or the one
    fallen back on. `degradeKind` is the gravest of index (one failed), time (searching was ended), fallback (answered
    in another way, or from farther away, than asked), budget (an expansion was cut) and none; `degraded` says in words
    what did not answer.

    Raises:
        BadRequest: an empty or overlong query, filters that make no sense (filters.resolve), a bad regular expression.
        ReconstituteError: nothing could be searched.
    """
    parse.check(asked.query)
    return _Asking(room, asked, here, now).answer()


class _Asking:
    def __init__(self, room: Room, asked: Asked, here: str, now: int) -> None:
        self._room, self._asked, self._now = room, asked, now
        self._began = time.monotonic()
        self._deadline = self._began + room.budget_s
        self._rows: Mapping[str, Row] = room.catalog.rows()
        self._scope: Scope = by_all_names(room.archive, resolve(asked, self._rows, here, now))
        self._query = Query(asked.query) if asked.match == "regex" else parse.parse(asked.query)
        self._known: dict[str, Archived | None] = {}

    def answer(self) -> Json:
        asked = self._asked
        looked = self._look()
        page = self._told(looked.finds[: asked.results])
        place, allowed = self._scope.place, self._scope.allowed
        looks = answers.Looks(self._query, asked.width, asked.explain, asked.group, place, self._now, allowed)
        shown = [
            (find, made)
            for find in page
            if (made := answers.result(self._room.archive, self._rows, find, looks)) is not None
        ]
        expansion = expand(self._room.archive, self._rows, asked, [find for find, _ in shown])
        results = [made for _, made in shown]
        missing = self._missing(looked, page)
        warnings = self._warnings(looked, page, results, missing) + expansion.warnings
        notes, suggestions, misses = self._help(page, missing)
        body: Json = {
            "ok": True,
            "query": redact(asked.query),
            "results": results,
            "total": len(looked.finds),
            "truncated": len(looked.finds) > len(page) or looked.is_full,
            "matchMode": looked.fallback or asked.match,
            "degradeKind": self._degraded(looked, expansion),
            "degraded": [*looked.warnings, *looked.late],
            "group": asked.group,
            "warnings": [*notes, *warnings],
            "suggestions": suggestions,
            "coverage": self._coverage(looked),
            "nearMisses": misses,
        }
        return body | ({"expanded": expansion.expanded} if asked.expand != "none" else {})

    def _told(self, page: Sequence[Find]) -> list[Find]:
        """With the texts of what was found by meaning."""
        matches = self._room.candidates.told([find.match for find in page])
        return [
            replace(find, match=replace(match, terms=find.match.terms))
            for find, match in zip(page, matches, strict=True)
        ]

    # -- searching -----------------------------------------------------------------------------------------------

    def _look(self) -> _Looked:
        looked = _Looked()
        if self._scope.emptied_by:
            return looked
        if self._asked.match in {"hybrid", "semantic"}:
            self._prepare()
        for relevance, filters in self._scope.rounds:
            if looked.rounds and (len(looked.finds) >= self._asked.results or self._is_over()):
                break
            self._round(looked, self._asked.match, filters, relevance)
        is_bare = self._query.is_exact and not self._query.words
        if not looked.finds and self._asked.match == "smart" and not is_bare and not self._is_over():
            self._fall_back(looked)
        return looked

    def _fall_back(self, looked: _Looked) -> None:
        """No text has the words: what is near in meaning, where meaning can be asked at all."""
        self._prepare()
        try:
            for relevance, filters in self._scope.rounds[:1]:
                self._round(looked, "semantic", filters, relevance)
        except BadRequest:
            raise
        except ReconstituteError as error:
            looked.warnings.append(f"meaning was not searched: {redact(str(error))}")
            looked.states["semantic"] = "failed"
        else:
            looked.fallback = "semantic" if looked.finds else ""

    def _prepare(self) -> None:
        """Load what searching by meaning needs; that is none of the time that searching may take."""
        began = time.monotonic()
        with suppress(Exception):  # the question meets the same failure, and reports it
            self._room.prepare()
        waited = time.monotonic() - began
        self._began += waited
        self._deadline += waited

    def _round(self, looked: _Looked, mode: str, filters: Filters, relevance: str) -> None:
        """Search within one set of filters; deeper, at most twice, where too few groups came of full lists."""
        asked = self._asked
        one_by_one = asked.group in _ONE_BY_ONE
        depth = max(50, 3 * asked.results) if one_by_one else _DEPTH_OF_GROUPS
        # The nearest in meaning are always as many as are asked for: only words tell that there is more to be had.
        telling = WORDS if mode != "semantic" else NEAR
        for deeper in (True, True, False):
            found, finds, is_full, is_all = self._searched(mode, filters, depth, telling)
            is_enough = len(finds) >= asked.results or (one_by_one and len(found.best()) >= asked.results)
            if is_enough or is_all or not is_full or not deeper or self._is_over():
                break
            depth *= 4
        looked.rounds += 1
        looked.is_full |= is_full and (one_by_one or not is_all)
        looked.is_inside |= found.is_inside
        looked.states |= found.states
        looked.warnings += [warning for warning in found.warnings if warning not in looked.warnings]
        looked.late += [late for late in found.late if late not in looked.late]
        looked.held |= held(self._query, found)
        for term, count in found.facts.frequencies.items():
            looked.frequencies[term.lower()] = max(count, looked.frequencies.get(term.lower(), 0))
        looked.candidates += sum(self._known[i] is not None for i in found.best())
        looked.gone += sum(self._known[i] is None for i in found.best())
        seen = {find.key(asked.group) for find in looked.finds}
        ceiling = looked.finds[-1].score if looked.finds else 1.0
        new = [find for find in finds if find.key(asked.group) not in seen]
        looked.finds += [
            replace(find, relevance=relevance, score=min(find.score, ceiling))
            if find.relevance != relevance or find.score > ceiling
            else find
            for find in new
        ]

    def _searched(
        self, mode: str, filters: Filters, depth: int, telling: Sequence[str]
    ) -> tuple[Found, list[Find], bool, bool]:
        """What one depth has, as finds; whether lists were full; whether other sessions have nothing more."""

        def gather(mode: str, besides: frozenset[str], until: float) -> Found:
            narrowed, until = replace(filters, besides=besides), min(until, self._deadline)
            return self._room.candidates.gather(self._query, mode, narrowed, depth, is_wide=True, deadline=until)

        def arranged(found: Found) -> list[Find]:
            return self._finds(found, mode, 4 * self._asked.results if one_by_one else depth * 4)

        one_by_one = self._asked.group in _ONE_BY_ONE
        began = time.monotonic()
        found = gather(mode, frozenset(), self._deadline)
        is_full = found.is_full(depth, telling)
        if self._is_near_only(mode):  # the nearest are always as many as are asked for
            is_full = is_full and found.near().issuperset(found.ids("semantic"))
        if filters.session_id or not is_full or self._is_over():
            return found, arranged(found), is_full, False
        within_s = max(_LEAST_LOOK * self._room.budget_s, time.monotonic() - began)
        wanted = Wanted(mode, self._asked.results, one_by_one, depth, within_s, self._session_of)
        found, finds, is_all = spread(wanted, found, arranged, gather)
        return found, finds, is_full, is_all

    def _finds(self, found: Found, mode: str, needed: int) -> list[Find]:
        """Candidates as results: ordered, one a group, the first page diverse, scores falling."""
        return grouping.falling(self._arranged(found, mode, needed))

    def _arranged(self, found: Found, mode: str, needed: int) -> list[Find]:
        archived = {i: about for i in found.best() if (about := self._about(i)) is not None}
        if self._is_near_only(mode):
            near = found.near()
            archived = {i: about for i, about in archived.items() if i in near}
        waiting = {stage: self._room.archive.waiting(stage) for stage in STAGES}
        is_partly = waiting["semantic"] > waiting["lexical"]
        finds = ordered(
            self._query,
            mode,
            found,
            archived,
            needed,
            is_partly_embedded=is_partly,
            explain=self._asked.explain,
        )
        level = self._asked.group
        if level not in _ONE_BY_ONE:
            return grouping.gathered(finds, level) if mode in {"smart", "hybrid"} else grouping.grouped(finds, level)
        finds = grouping.without_echoes(finds)
        if level == "part" and mode in {"smart", "hybrid"}:
            finds = sorted(finds, key=lambda find: (find.grade, -find.score, -find.created))
        grouped = grouping.grouped(finds, level)
        return grouped if self._asked.sessionID else grouping.diverse(grouped, self._asked.results)

    def _is_near_only(self, mode: str) -> bool:
        """Whether nobody asked for likeness, and only what is near enough counts."""
        return mode == "semantic" and self._asked.match == "smart"

    def _about(self, message_id: str) -> Archived | None:
        """What the archive knows of a candidate, read once; None for one that it does not have."""
        if message_id not in self._known:
            state = self._room.archive.state(message_id)
            row = self._rows.get(state["session"]) if state is not None else None
            self._known[message_id] = (
                Archived(state["session"], row.project_id if row else "", state["created"]) if state else None
            )
        return self._known[message_id]

    def _session_of(self, message_id: str) -> str:
        about = self._about(message_id)
        return about.session_id if about is not None else ""

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    # -- what is said beside it ----------------------------------------------------------------------------------

    def _missing(self, looked: _Looked, page: Sequence[Find]) -> hints.Missing:
        """What of the query was not found; nothing where the results hold it as it stands."""
        if page and self._asked.match in {"literal", "regex"}:
            return hints.Missing()
        return hints.absent(self._query, looked.held, looked.frequencies)

    def _warnings(
        self, looked: _Looked, page: Sequence[Find], results: Sequence[Json], missing: hints.Missing
    ) -> list[str]:
        said, aside = [*self._scope.warnings, *looked.warnings], self._room.catalog.aside.now()
        if looked.late:
            is_index = any(MODEL_LATE not in late for late in looked.late)  # a model knows no filters
            fix = "narrower filters help" if is_index else "ask again in a moment"
            said.append(f"searching was ended after {self._room.budget_s:g} s: {'; '.join(looked.late)}; {fix}")
        if looked.fallback:
            said.append("nothing was found by words; what follows was found by meaning")
        farther = sum(find.relevance in {"project", "global"} for find in page)
        if farther:
            said.append(f"{counted(farther, 'result')} from beyond the directory: see directoryRelevance")
        if not self._scope.emptied_by:
            said += hints.word_warnings(
                self._query,
                self._asked.match,
                page,
                missing,
                is_inside=looked.is_inside,
                is_limited=bool(self._scope.limited_by),
                is_sure=looked.states.get("lexical") == "used" and not looked.late and not aside.count,
            )
        if not page or (missing.parts and self._asked.match != "semantic"):
            said += aside.warnings()
        if looked.gone:
            gone = counted(looked.gone, "indexed message")
            said.append(f"not in the archive: {gone}; the index is behind, rebuild it")
        deleted = sum(made["deleted"] for made in results)
        if deleted:
            said.append(f"deleted in OpenCode, and only in this archive: {counted(deleted, 'result')}")
        needs = {"semantic": ("semantic",), "hybrid": STAGES}.get(self._asked.match, ("lexical",))
        behind = max((self._room.archive.waiting(stage) for stage in needs), default=0)
        if behind:
            said.append(f"{counted(behind, 'archived message')} still waiting to be indexed")
        return list(dict.fromkeys(said))

    def _help(self, page: Sequence[Find], missing: hints.Missing) -> tuple[list[str], list[Json], list[Json]]:
        """(warnings, suggestions, near misses): where there is little or nothing by words, and in a short time."""
        now = time.monotonic()
        until = min(self._deadline, now + max(_SHARE_OF_HELP * self._room.budget_s, now - self._began))
        helper = Helper(self._room.candidates, self._asked, self._query, self._scope, self._rows, until, self._finds)
        return helper.help(page, missing)

    def _degraded(self, looked: _Looked, expansion: Expansion) -> str:
        """The gravest of what went less well than asked."""
        if "failed" in looked.states.values():
            return "index"
        if looked.late:
            return "time"
        if looked.fallback or any(find.relevance in {"project", "global"} for find in looked.finds):
            return "fallback"
        return "budget" if expansion.is_short else "none"

    def _coverage(self, looked: _Looked) -> Json:
        states = {"lexical": "not asked", "semantic": "not asked"} | looked.states
        limited = [*self._scope.limited_by, *(["timeBudget"] if looked.late else [])]
        return {
            "sessions": len(self._rows),
            "messages": self._room.archive.message_count(),
            "eligible": self._scope.eligible,
            **states,
            "model": self._room.model if states["semantic"] == "used" else "",
            "candidates": looked.candidates,
            "waiting": {stage: self._room.archive.waiting(stage) for stage in STAGES},
            "limitedBy": limited,
            **self._room.catalog.aside.now().coverage(),
        }
