"""One search: a round for each set of filters, deeper if there are few results, until the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from daemon.archive import TOOLS, Archive
from daemon.errors import BadRequest, Retry, Skip
from daemon.index import Filters, Match
from daemon.recall.candidates import CandidateSearch
from daemon.recall.candidates.lists import WITHOUT_WORDS, WORDS, CandidateLists
from daemon.recall.catalog import Row
from daemon.recall.query import names
from daemon.recall.query.parse import Query, Tier, parse, with_names
from daemon.recall.query.parse import split as parsed_words
from daemon.recall.ranking import grouping
from daemon.recall.ranking.grouping import Contents, PageTarget, Result, folded, spread
from daemon.recall.ranking.order import Archived, ordered
from daemon.recall.ranking.plan import Budget, Outcome, Plan
from daemon.recall.ranking.tiers import DEPTH, held_terms, order_note, sort_by_date
from daemon.recall.weights import SIMILAR_SPELLING_SHARE
from daemon.redact import redact

_GROUP_DEPTH = 200
"""Candidates for results that group several: a session with several good messages should have all of them."""
_SINGLE_LEVELS = ("part", "message")
_LEAST_LOOK = 0.05
"""The share of the budget that a second search, without a noisy session, may always take."""


class Search:
    """Searches once, by a plan."""

    def __init__(
        self,
        archive: Archive,
        candidates: CandidateSearch,
        rows: Mapping[str, Row],
        plan: Plan,
        budget: Budget,
        *,
        prepare: Callable[[bool], None],
    ) -> None:
        """`prepare` loads what searching by meaning needs, and gets whether only meaning can answer. The budget does
        not count it.
        """
        self._archive, self._candidates, self._rows = archive, candidates, rows
        self._plan, self._budget, self._prepare = plan, budget, prepare
        self._known: dict[str, Archived | None] = {}
        self._below: dict[tuple[str, ...], Result] = {}
        self._refuses = False
        self._contents = Contents(archive, is_part=plan.group == "part")

    def run(self) -> Outcome:
        """The results in order.

        Raises:
            BadRequest: a bad regular expression.
            ReconstituteError: nothing could be searched.
        """
        plan, outcome = self._plan, Outcome()
        if plan.match in {"hybrid", "semantic"} and plan.rounds:
            self._budget.pause(lambda: self._prepare(plan.match == "semantic"))
        for relevance, filters in plan.rounds:
            if outcome.rounds and (len(outcome.results) >= plan.results or self._budget.is_over):
                break
            self._round(outcome, plan.match, filters, relevance)
        is_bare = plan.query.is_exact and not plan.query.words
        if plan.rounds and plan.query.is_exact and plan.match in {"smart", "hybrid"} and not outcome.late:
            self._search_instead(outcome)
        is_nothing = not outcome.results and not outcome.below
        if plan.rounds and is_nothing and plan.match == "smart" and not is_bare and not self._budget.is_over:
            self._fall_back(outcome)
        for result in outcome.results:
            outcome.below.pop(result.key(plan.group), None)
        return outcome

    def arrange(self, candidates: CandidateLists, mode: str, needed: int) -> list[Result]:
        """The candidates as results: in order, one for each group, the first page diverse, scores falling."""
        return grouping.falling(self._arranged(candidates, mode, needed))

    def _search_instead(self, outcome: Outcome) -> None:
        """Search again if no text has the names: for paths without the line, or for the most similar spelling."""
        all_results = [*outcome.results, *outcome.below.values()]
        plan, held = self._plan, [result for result in all_results if result.is_by_words]
        if any(result.grade <= Tier.SOME for result in held) or redact(plan.query.text) != plan.query.text:
            return
        instead = {name: path for name in plan.query.named if (path := names.without_line(name))}
        if not instead and not all_results and len(plan.query.named) == 1 and not plan.query.words:
            name = plan.query.named[0]
            instead = {name: self._candidates.closest_spelling(name, self._budget.deadline)}
        if not instead or not all(instead.values()) or self._budget.is_over:
            return
        text = with_names(plan.query.text, instead)
        query = parse(text, plan.query.plain)
        if set(instead.values()).isdisjoint(query.named):  # the substitute is a plain word, but stands for a name
            query = Query(text, tuple(instead.values()))
        retry = Outcome()
        self._plan = replace(plan, query=query, threshold=0.0)
        for relevance, filters in plan.rounds:
            self._round(retry, plan.match, filters, relevance)
        if not any(result.is_by_words and result.grade <= Tier.SOME for result in retry.results):
            self._plan = plan
            return
        self._plan = replace(plan, query=query)
        substitutes = parsed_words(instead.values())
        results = [
            replace(
                result,
                spelling_pairs=tuple(instead.items()),
                terms=tuple(term for term in result.terms if not parsed_words((term,)) <= substitutes),
                score=round(result.score * SIMILAR_SPELLING_SHARE, 4),
            )
            for result in retry.results
            if result.grade <= Tier.SOME
        ]
        outcome.results, outcome.below = self._above(results), self._below
        outcome.instead, outcome.is_inside, outcome.is_full = tuple(instead.items()), False, retry.is_full
        outcome.is_below_partly = retry.is_full
        if retry.order_note:
            is_newest, number = plan.sort == "newest", len(outcome.results)
            outcome.order_note = order_note(
                "contain what was searched for instead", number, is_newest_first=is_newest, is_full=retry.is_full
            )

    def _fall_back(self, outcome: Outcome) -> None:
        """No text has the words, so search for similar spellings of all of them, then by meaning."""
        (relevance, filters), is_full = self._plan.rounds[0], outcome.is_full
        self._round(outcome, "fuzzy", filters, relevance)
        outcome.results = [result for result in outcome.results if self._has_all_terms(result)]
        outcome.below = {key: result for key, result in outcome.below.items() if self._has_all_terms(result)}
        if outcome.results or outcome.below:
            outcome.fallback = "fuzzy" if outcome.results else ""
            return
        outcome.is_full = is_full
        if self._candidates.meaning.is_off:
            return
        self._budget.pause(lambda: self._prepare(False))
        try:
            if not self._candidates.meaning.reads(self._plan.query):
                outcome.warnings.append(self._candidates.meaning.unread(self._plan.match))
                return
            self._round(outcome, "semantic", filters, relevance)
        except BadRequest:
            raise
        except (Retry, Skip) as error:
            outcome.warnings.append(f"meaning was not searched: {redact(str(error))}")
            outcome.states["semantic"] = "failed"
        else:
            outcome.fallback = "semantic" if outcome.results else ""

    def _has_all_terms(self, result: Result) -> bool:
        query, pairs = self._plan.query, result.spelling_pairs
        query_words = parsed_words((*query.named, *query.words))
        return bool(pairs) and parsed_words((*result.terms, *(term for term, _ in pairs))) >= query_words

    def _round(self, outcome: Outcome, mode: str, filters: Filters, relevance: str) -> None:
        """Search with one set of filters; deeper, at most twice, if full lists gave too few groups."""
        plan = self._plan
        is_single = plan.group in _SINGLE_LEVELS
        depth = max(50, 3 * plan.results) if is_single else _GROUP_DEPTH
        # A search by meaning always fills its list, so only the lists by words tell whether there is more.
        telling = WORDS if mode != "semantic" else WITHOUT_WORDS
        if plan.sort != "relevance":
            self._add_dated(outcome, mode, filters, telling)
            return
        for deeper in (True, True, False):
            candidates, results, is_full, is_all = self._searched(mode, filters, depth, telling)
            copies = sum(len(result.copies) for result in results)
            # Scores fall with depth only in a list by meaning.
            is_cut = bool(self._below) and mode == "semantic"
            is_enough = len(results) >= plan.results or is_cut
            if is_single and plan.passes is None and not self._below:
                is_enough = is_enough or len(candidates.best()) - copies >= plan.results
            if is_enough or is_all or not is_full or not deeper or self._budget.is_over:
                break
            depth *= 4
        outcome.rounds += 1
        outcome.is_unchecked |= self._refuses and is_full and not is_all and len(results) < plan.results
        outcome.is_below_partly |= is_full and bool(self._below)
        outcome.is_full |= is_full and (is_single or not is_all) and not is_cut
        self._note(outcome, candidates)
        existing = {result.key(plan.group) for result in outcome.results}
        ceiling = outcome.results[-1].score if outcome.results else 1.0
        new = [result for result in results if result.key(plan.group) not in existing]
        outcome.results += [
            replace(result, relevance=relevance, score=min(result.score, ceiling))
            if result.relevance != relevance or result.score > ceiling
            else result
            for result in new
        ]
        if self._folds and outcome.rounds > 1:
            outcome.results = folded(outcome.results, self._contents)

    def _add_dated(self, outcome: Outcome, mode: str, filters: Filters, telling: Sequence[str]) -> None:
        """Add all results that pass one set of filters and hold the query, sorted by date with the results so far."""
        plan, is_newest_first = self._plan, self._plan.sort == "newest"
        candidates, is_full = self._gather_all(mode, filters, telling)
        self._add_texts(candidates, mode)
        selection = sort_by_date(
            self._ordered(candidates, mode, DEPTH), plan.query, mode, is_newest_first=is_newest_first
        )
        results = self._above(selection.results)
        outcome.rounds += 1
        outcome.is_full |= is_full
        outcome.is_unchecked |= self._refuses and is_full and len(results) < plan.results
        self._note(outcome, candidates)
        outcome.is_below_partly |= is_full and bool(self._below)
        both = sort_by_date(
            [*outcome.results, *results], plan.query, "literal", is_newest_first=is_newest_first
        ).results
        outcome.results = grouping.grouped(both, plan.group)
        if self._folds:
            outcome.results = folded(outcome.results, self._contents)
        outcome.order_note = order_note(
            selection.description, len(outcome.results), is_newest_first=is_newest_first, is_full=outcome.is_full
        )

    def _gather_all(self, mode: str, filters: Filters, telling: Sequence[str]) -> tuple[CandidateLists, bool]:
        """The DEPTH best candidates of each list, and whether there may be more.

        Matches of a literal or pattern come newest first, so to find the oldest we search on before the last of them.
        """

        def gather(limits: Filters) -> CandidateLists:
            return self._candidates.gather(self._plan.query, mode, limits, DEPTH, deadline=self._budget.deadline)

        candidates = more = gather(filters)
        is_in_order = mode in {"literal", "regex"} and self._plan.sort == "oldest"
        while is_in_order and more.is_full(DEPTH, telling) and not self._budget.is_over:
            before = 1 + max(self._oldest(matches) for matches in more.lists.values() if len(matches) >= DEPTH)
            if filters.before is not None and before >= filters.before:
                break  # more than DEPTH matches in one millisecond
            filters = replace(filters, before=before)
            more = gather(filters)
            candidates = grouping.together(candidates, more)
            candidates.late += [late for late in more.late if late not in candidates.late]
        return candidates, more.is_full(DEPTH, telling)

    def _oldest(self, matches: Sequence[Match]) -> int:
        return min((about.created for match in matches if (about := self._about(match.message_id))), default=0)

    def _note(self, outcome: Outcome, candidates: CandidateLists) -> None:
        """Add the warnings, states and counts of a round to the outcome."""
        outcome.is_inside |= candidates.is_inside
        outcome.states |= {i: state for i, state in candidates.states.items() if outcome.states.get(i) != "failed"}
        outcome.warnings += [warning for warning in candidates.warnings if warning not in outcome.warnings]
        outcome.late += [late for late in candidates.late if late not in outcome.late]
        outcome.below |= self._below
        outcome.held_terms |= held_terms(self._plan.query, candidates)
        for term, count in candidates.stats.frequencies.items():
            outcome.frequencies[term.lower()] = max(count, outcome.frequencies.get(term.lower(), 0))
        outcome.candidates += sum(self._known[i] is not None for i in candidates.best())
        outcome.gone += sum(self._known[i] is None for i in candidates.best())

    def _searched(
        self, mode: str, filters: Filters, depth: int, telling: Sequence[str]
    ) -> tuple[CandidateLists, list[Result], bool, bool]:
        """(candidates, results, whether lists were full, whether other sessions have nothing more), for one depth."""

        def gather(mode: str, besides: frozenset[str], until: float) -> CandidateLists:
            limits, until = replace(filters, besides=besides), min(until, self._budget.deadline)
            candidates = self._candidates.gather(self._plan.query, mode, limits, depth, deadline=until)
            self._add_texts(candidates, mode)
            return candidates

        def arranged(candidates: CandidateLists) -> list[Result]:
            return self.arrange(candidates, mode, 4 * self._plan.results if is_single else depth * 4)

        is_single = self._plan.group in _SINGLE_LEVELS
        began = time.monotonic()
        candidates = gather(mode, frozenset(), self._budget.deadline)
        is_full = candidates.is_full(depth, telling)
        if self._is_semantic_fallback(mode):  # a list by meaning is always full
            is_full = is_full and candidates.similar().issuperset(candidates.ids("semantic"))
        if filters.session_id or not is_full or self._budget.is_over:
            return candidates, arranged(candidates), is_full, False
        within_s = max(_LEAST_LOOK * self._budget.seconds, time.monotonic() - began)
        target = PageTarget(mode, self._plan.results, is_single, depth, within_s, self._session_of)
        candidates, results, is_all = spread(target, candidates, arranged, gather)
        return candidates, results, is_full, is_all

    def _ordered(self, candidates: CandidateLists, mode: str, needed: int) -> list[Result]:
        """The candidates by relevance, one result for each matching part."""
        plan = self._plan
        archived = {i: about for i in candidates.best() if (about := self._about(i)) is not None}
        if self._is_semantic_fallback(mode) or (mode == "semantic" and plan.sort != "relevance"):
            similar = candidates.similar()
            archived = {i: about for i, about in archived.items() if i in similar}
        candidates = replace(candidates, legible_texts=self._legible_texts(candidates))
        to_embed = self._archive.waiting("semantic") + self._archive.waiting(TOOLS)
        is_partly = to_embed > self._archive.waiting("lexical")
        results = ordered(
            plan.query, mode, candidates, archived, needed, is_partly_embedded=is_partly, explain=plan.explain
        )
        passing = results if plan.passes is None else [result for result in results if plan.passes(result)]
        self._refuses |= len(passing) < len(results)
        return passing

    def _legible_texts(self, candidates: CandidateLists) -> float:
        """The share of the messages with words of the question that the model can read, so that they have vectors."""
        with_words = candidates.by_words()
        return 1 - len(self._archive.unread_among(with_words)) / max(1, len(with_words))

    def _above(self, results: list[Result]) -> list[Result]:
        """The results that reach the threshold. Of each other group the best result is stored in `_below`."""
        plan = self._plan
        above = [result for result in results if result.score >= plan.threshold]
        low = sorted((result for result in results if result.score < plan.threshold), key=lambda result: result.score)
        keys = {result.key(plan.group) for result in above} if low else set()
        self._below = {key: result for result in low if (key := result.key(plan.group)) not in keys}
        return above

    def _arranged(self, candidates: CandidateLists, mode: str, needed: int) -> list[Result]:
        plan, results = self._plan, self._ordered(candidates, mode, needed)
        if plan.group not in _SINGLE_LEVELS:
            by_score = mode in {"smart", "hybrid"}
            groups = grouping.gathered(results, plan.group) if by_score else grouping.grouped(results, plan.group)
            return self._above(groups)
        results = grouping.without_echoes(results)
        if plan.group == "part" and mode in {"smart", "hybrid"}:
            results = sorted(results, key=lambda result: (result.band, -result.score, -result.created))
        grouped = grouping.grouped(results, plan.group)
        if self._folds:
            grouped = folded(grouped, self._contents)
        grouped = self._above(grouped)
        return grouped if plan.is_single_session else grouping.diverse(grouped, plan.results)

    @property
    def _folds(self) -> bool:
        return self._plan.folds and self._plan.group in _SINGLE_LEVELS

    def _add_texts(self, candidates: CandidateLists, mode: str) -> None:
        """Add the texts that decide what is similar enough, except where everything similar counts."""
        if mode == "hybrid" or self._is_semantic_fallback(mode):
            candidates.add_texts(self._candidates.meaning.with_texts)

    def _is_semantic_fallback(self, mode: str) -> bool:
        """Whether mode smart fell back on meaning, so that only similar enough messages count."""
        return mode == "semantic" and self._plan.match == "smart"

    def _about(self, message_id: str) -> Archived | None:
        """A candidate's state in the archive, read once; None if it is not there."""
        if message_id not in self._known:
            state = self._archive.state(message_id)
            row = self._rows.get(state["session"]) if state is not None else None
            self._known[message_id] = (
                Archived(state["session"], row.project_id if row else "", state["created"]) if state else None
            )
        return self._known[message_id]

    def _session_of(self, message_id: str) -> str:
        about = self._about(message_id)
        return about.session_id if about is not None else ""
