"""Collects the candidates of a search from both indexes, as ranked lists that are not merged yet.

Words and meaning are searched at the same time, each in a thread of its own: the libraries release the interpreter lock
while they work. At the deadline we take what there is. An index that fails is reported and left out; that is an error
only if no other index answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from daemon.embed import Embedder
from daemon.errors import BadRequest, IndexBroken, ReconstituteError, Stop
from daemon.index import Filters, LexicalIndex, SemanticIndex
from daemon.recall.candidates import words
from daemon.recall.candidates.index_query import IndexQuery, is_over, missing_scores, seconds_until
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.candidates.meaning import MeaningSearch
from daemon.recall.candidates.words import WordSearch, newest
from daemon.recall.query import parse
from daemon.recall.query.parse import Query
from daemon.redact import redact

_OF_NAMES = 20
"""Chunks requested by meaning for a bare name. Only those that hold the name count, and the word index finds these."""
MODEL_LATE = "has not embedded the question yet"
"""The warning about a late model: a server may be loading it."""

_LABELS = {"lexical": "words were not searched", "semantic": "meaning was not searched"}


class CandidateSearch:
    """Queries the indexes for one search; each search has its own."""

    def __init__(
        self,
        lexical: LexicalIndex,
        semantic: Callable[[], SemanticIndex | None],
        embedder: Embedder,
        on_failure: Callable[[str, Exception], None],
        is_behind: Callable[[], bool] = lambda: False,
        *,
        is_off: bool = False,
    ) -> None:
        """`is_behind`: whether the word index may lack messages that the semantic index has.

        `is_off`: search by meaning is disabled in the configuration.
        """
        self._lexical, self._semantic = lexical, semantic
        self._on_failure, self._is_behind = on_failure, is_behind
        self.meaning = MeaningSearch(lexical, semantic, embedder, on_failure, is_behind, is_off=is_off)

    def gather(
        self,
        query: Query,
        mode: str,
        filters: Filters,
        depth: int,
        *,
        deadline: float,
        with_windows: bool = True,
    ) -> CandidateLists:
        """Lists of at most `depth` matches; `deadline` is on time.monotonic's clock.

        `with_windows`: also messages that are found by their neighbours. Matches by meaning come without texts, which
        `MeaningSearch.with_texts` adds, unless the order depends on the texts.

        Raises:
            BadRequest: no regular expression.
            ReconstituteError: no index answered.
        """
        words = WordSearch(self._lexical, query, filters, depth, deadline, with_windows=with_windows)
        if query.is_of_days:
            return self._all({"lexical": words.of_days}, deadline)

        def by_meaning(candidates: CandidateLists) -> None:
            is_for_names = mode == "hybrid" and query.is_exact  # names are searched in the texts
            is_bare_name = is_for_names and not query.words and not self._is_behind()
            deep = min(depth, _OF_NAMES) if is_bare_name else depth
            self.meaning.search(candidates, query, mode, filters, deep, without_texts=not is_for_names)

        questions = {"lexical": words.in_mode(mode)} if mode != "semantic" else {}
        if mode in {"hybrid", "semantic"}:
            questions["semantic"] = by_meaning
        candidates = self._all(questions, deadline)
        self._complete(candidates, query, mode, filters, deadline)
        if mode == "hybrid" and query.is_short:
            self._add_texts(candidates, deadline)
        return candidates

    def _complete(self, candidates: CandidateLists, query: Query, mode: str, filters: Filters, deadline: float) -> None:
        """Score each candidate by the lists that did not have it, until the deadline."""
        if mode not in {"smart", "hybrid"} or is_over(deadline):
            return
        fills = missing_scores(candidates, query, filters, self._lexical, self._semantic, vector=self.meaning.vector)
        running = [IndexQuery(index, fill) for index, fill in fills.items()]
        for index_query in running:
            index_query.start()
        for index_query in running:
            index_query.join(seconds_until(deadline))
            candidates.more |= dict(index_query.candidates.more)
            if index_query.error is not None:  # the candidates so far are kept
                self._failed(candidates, index_query.index, index_query.error, "not all candidates were scored")
            elif not index_query.is_done and not candidates.late:
                candidates.late.append("not all candidates were scored")

    def _add_texts(self, candidates: CandidateLists, deadline: float) -> None:
        """Add the texts of matches by meaning in messages that hold a word of a short query: one that holds the whole
        phrase is ranked higher. Each text costs 0.2 ms.
        """
        index, held, matches = self._semantic(), candidates.terms(), candidates.lists.get("semantic", [])
        with_words = [match for match in matches if match.message_id in held]
        if index is None or not with_words or is_over(deadline) or candidates.states.get("semantic") == "failed":
            return

        def fetch(own: CandidateLists) -> None:
            with_texts = {match.record: match for match in index.with_texts(with_words)}
            own.lists["semantic"] = [with_texts.get(match.record, match) for match in matches]

        fetching = IndexQuery("semantic", fetch)
        fetching.start()
        fetching.join(seconds_until(deadline))
        if fetching.is_done:
            self._merge(candidates, fetching)
        else:
            candidates.late.append("not all texts were looked at")

    def spellings(self, word: str, limit: int, deadline: float) -> list[tuple[str, int]]:
        """Words of the index with a similar spelling; none if the index is late, or fails, which is reported.

        `deadline` is on time.monotonic's clock.
        """
        similar: list[tuple[str, int]] = []
        self._in_time(lambda: similar.extend(self._lexical.spellings(word, limit)), deadline)
        return list(similar)

    def is_written(self, word: str, deadline: float) -> bool | None:
        """Whether any text has the word, by the word index; None if the index is late."""
        with_texts: list[bool] = []
        self._in_time(lambda: with_texts.append(bool(self._lexical.search(word, Filters(), 1))), deadline)
        return with_texts[0] if with_texts else None

    def closest_spelling(self, name: str, deadline: float) -> str:
        """The most similar spelling of `name` in any text, of the whole or word by word; "" if there is none."""
        spellings: list[str] = []
        self._in_time(lambda: spellings.append(words.closest_spelling(name, self._lexical)), deadline)
        return spellings[0] if spellings else ""

    def interpret(self, query: Query, filters: Filters, now: datetime | None, deadline: float) -> Query:
        """The query with its names and days checked against the archive; unchanged if the index is late.

        A name that is none in this archive counts as words. Words that name days count as days if messages of these
        days pass the filters. `now` is naive and local; without it no days are read.
        """
        queries = [query]

        def lookup() -> None:
            resolved = words.resolve_names(query, self._lexical) if query.is_exact else query
            queries.append(resolved)
            if now is not None:
                queries.append(
                    parse.with_days(resolved, now, lambda days: bool(newest(self._lexical, days, filters, 1)))
                )

        self._in_time(lookup, deadline)
        return queries[-1]

    def _in_time(self, lookup: Callable[[], None], deadline: float) -> None:
        if is_over(deadline):
            return
        running = IndexQuery("lexical", lambda _candidates: lookup())
        running.start()
        running.join(seconds_until(deadline))
        if running.error is not None:  # a hint is no reason to fail; the owner is notified
            self._on_failure("lexical", running.error)

    # -- threads -----------------------------------------------------------------------------------------------------

    def _all(self, fills: Mapping[str, Callable[[CandidateLists], None]], deadline: float) -> CandidateLists:
        running = [IndexQuery(index, fill) for index, fill in fills.items()]
        for index_query in running:
            index_query.start()
        for index_query in running:
            index_query.join(seconds_until(deadline))
        candidates, failures = CandidateLists(), []
        for index_query in running:
            failures += self._merge(candidates, index_query)
        if failures and len(failures) == len(fills):
            raise failures[0]
        return candidates

    def _merge(self, candidates: CandidateLists, index_query: IndexQuery) -> list[ReconstituteError]:
        """Add one query's candidates to the others; a failure becomes a warning."""
        is_done, error, own = (
            index_query.is_done,
            index_query.error,
            index_query.candidates,
        )  # read once, because it may end meanwhile
        if error is not None:
            if isinstance(error, BadRequest | Stop):
                raise error
            self._failed(candidates, index_query.index, error, _LABELS[index_query.index])
            if isinstance(error, ReconstituteError):
                return [error]
            named = IndexBroken(f"the {index_query.index} index failed: {error}; it can be rebuilt from the archive")
            named.__cause__ = error
            return [named]
        candidates.lists |= dict(own.lists)
        candidates.is_inside |= own.is_inside
        candidates.stats = own.stats if index_query.index == "lexical" else candidates.stats
        candidates.legible = min(candidates.legible, own.legible)
        candidates.known = min(candidates.known, own.known)
        candidates.late += own.late
        candidates.warnings += own.warnings
        candidates.states[index_query.index] = own.states.get(index_query.index, "used")
        if not is_done:
            candidates.states[index_query.index] = "late"
            why = f": {own.waits_for} {MODEL_LATE}" if own.waits_for else " to the end" if own.lists else ""
            candidates.late.append(_LABELS[index_query.index] + why)
        return []

    def _failed(self, candidates: CandidateLists, index: str, error: Exception, problem: str) -> None:
        self._on_failure(index, error)
        candidates.states[index] = "failed"
        candidates.warnings.append(f"{problem}: {redact(str(error)) or type(error).__name__}")
