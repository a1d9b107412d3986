"""What the indexes answer to a question, as ranked lists that are not yet one order.

Words and meaning are asked at the same time, each in a thread of its own: the libraries beneath let go of the
interpreter while they work. With a deadline the answer is what there is by then. An index that fails is reported and
left out, and is an error only where nothing else answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from daemon.embed import Embedder, reads
from daemon.errors import BadInput, BadRequest, IndexBroken, ModelUnavailable, ReconstituteError, Retry, Skip, Stop
from daemon.index import SAID, TOOLS, Filters, LexicalIndex, Match, SemanticIndex
from daemon.model import Vector
from daemon.recall.query import names, parse, vocabulary
from daemon.recall.query.parse import Query
from daemon.recall.ranking import dates, fuzzy, union
from daemon.recall.ranking.fuse import QueryStats, neighbours, text_to_embed
from daemon.recall.ranking.lists import CandidateLists
from daemon.recall.ranking.question import Question, is_over, left
from daemon.redact import redact

_MOST_NAMES = 5
_LEAST_SAID = 20
"""Parts that were said among the candidates by words, where there are as many: tools print most words far oftener."""
_OF_NAMES = 20
"""Chunks asked for by meaning beside a bare name: only those that hold it count, and these are found by words as long
as words are indexed first."""
_DEEPEST_MEANING = 200
"""Chunks asked for by meaning: each costs time, and what is farther off than so many is no answer."""
MODEL_LATE = "has not embedded the question yet"
"""Of a model that is late: a server may be loading it."""

_LABELS = {"lexical": "words were not searched", "semantic": "meaning was not searched"}


class CandidateSearch:
    """Asks the indexes for one answer; one for each search."""

    def __init__(
        self,
        lexical: LexicalIndex,
        semantic: Callable[[], SemanticIndex | None],
        embedder: Embedder,
        on_failure: Callable[[str, Exception], None],
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_behind`: whether the word index may lack messages that the semantic index has."""
        self._lexical = lexical
        self._semantic = semantic
        self._embedder = embedder
        self._on_failure = on_failure
        self._is_behind = is_behind
        self._vectors: dict[str, Vector] = {}
        """By text: one answer may take several looks, and to embed a question takes a fifth of one."""
        self._vector: Vector | None = None
        """The question's, once it was asked by meaning."""

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

        `with_windows`: also messages that are found by their neighbours. What was found by meaning comes without
        texts, which `with_texts` adds, unless the order depends on them.

        Raises:
            BadRequest: no regular expression.
            ReconstituteError: nothing could be asked.
        """
        if query.is_of_days:
            return self._all({"lexical": partial(dates.of_days, self._lexical, query, filters, depth)}, deadline)

        def words(candidates: CandidateLists) -> None:
            self._by_words(candidates, query, filters, depth, deadline, with_windows=with_windows)

        def literal(candidates: CandidateLists) -> None:
            self._literal(candidates, query, filters, depth, deadline)

        def fuzzy(candidates: CandidateLists) -> None:
            self._fuzzy(candidates, query, filters, depth, deadline)

        def regex(candidates: CandidateLists) -> None:
            within_s = max(0.05, deadline - time.monotonic())
            candidates.lists["named"], all_seen = self._lexical.regex(query.text, filters, depth, within_s * 0.9)
            if not all_seen and len(candidates.lists["named"]) < depth:
                candidates.late.append("not all texts were looked at")

        def by_meaning(candidates: CandidateLists) -> None:
            is_for_names = mode == "hybrid" and query.is_exact  # which are looked for in the texts
            is_bare_name = is_for_names and not query.words and not self._is_behind()
            deep = min(depth, _OF_NAMES) if is_bare_name else depth
            self._by_meaning(candidates, query, mode, filters, deep, without_texts=not is_for_names)

        by_words = {"literal": literal, "fuzzy": fuzzy, "regex": regex}.get(mode, words)
        questions = {"lexical": by_words} if mode != "semantic" else {}
        if mode in {"hybrid", "semantic"}:
            questions["semantic"] = by_meaning
        candidates = self._all(questions, deadline)
        self._complete(candidates, query, mode, filters, deadline)
        if mode == "hybrid" and query.is_short:
            self._tell_held(candidates, deadline)
        return candidates

    def _complete(self, candidates: CandidateLists, query: Query, mode: str, filters: Filters, deadline: float) -> None:
        """Score each candidate by the lists that did not have it, in what time is left."""
        if mode not in {"smart", "hybrid"} or is_over(deadline):
            return
        asked = union.questions(candidates, query, filters, self._lexical, self._semantic, vector=self._vector)
        asking = [Question(index, ask) for index, ask in asked.items()]
        for question in asking:
            question.start()
        for question in asking:
            question.join(left(deadline))
            candidates.more |= dict(question.candidates.more)
            if question.error is not None:  # what was found stands
                self._failed(candidates, question.index, question.error, "not all candidates were scored")
            elif not question.is_done and not candidates.late:
                candidates.late.append("not all candidates were scored")

    def reads(self, query: Query) -> bool:
        """Whether the model can read the question, so that what it finds similar means something.

        Raises:
            ModelUnavailable: the model does not load.
        """
        return reads(self._embedder, query.text)

    def unread(self, mode: str) -> str:
        """The warning where it cannot."""
        what = "what is similar is a guess" if mode == "semantic" else "only words are searched"
        fix = "name a multilingual model in embedding.model_dir, or one of Ollama's in embedding.model"
        return f"{self._embedder.name} cannot read this question, so {what}; {fix}"

    def _is_worth_embedding(self, candidates: CandidateLists, query: Query, mode: str) -> bool:
        """Beside words, meaning only disturbs where it cannot read the question; chosen alone, it gives what it has."""
        if self.reads(query):
            return True
        candidates.warnings.append(self.unread(mode))
        if mode == "hybrid":
            candidates.states["semantic"] = "not legible"
        return mode != "hybrid"

    def _tell_held(self, candidates: CandidateLists, deadline: float) -> None:
        """The texts of what was found by meaning in messages that hold a word of a short query: they may hold it as it
        stands, which decides about the order. Each text costs 0.2 ms.
        """
        index, held, matches = self._semantic(), candidates.terms(), candidates.lists.get("semantic", [])
        wanted = [match for match in matches if match.message_id in held]
        if index is None or not wanted or is_over(deadline) or candidates.states.get("semantic") == "failed":
            return

        def tell(own: CandidateLists) -> None:
            with_texts = {match.record: match for match in index.with_texts(wanted)}
            own.lists["semantic"] = [with_texts.get(match.record, match) for match in matches]

        asking = Question("semantic", tell)
        asking.start()
        asking.join(left(deadline))
        if asking.is_done:
            self._merge(candidates, asking)
        else:
            candidates.late.append("not all texts were looked at")

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """These with kind, tool and text, where they were found by meaning; as they are where the index fails."""
        index = self._semantic()
        if index is None or not any(match.record and not match.text for match in matches):
            return list(matches)
        try:
            return index.with_texts(matches)
        except (Retry, Skip) as error:  # its owner is told; what is shown is then the message's beginning
            self._on_failure("semantic", error)
            return list(matches)

    def spellings(self, word: str, limit: int, deadline: float) -> list[tuple[str, int]]:
        """Words of the index that are spelt nearly as `word`; none where it is late, or fails, which is reported.

        `deadline` is on time.monotonic's clock.
        """
        similar: list[tuple[str, int]] = []
        self._in_time(lambda: similar.extend(self._lexical.spellings(word, limit)), deadline)
        return list(similar)

    def is_written(self, word: str, deadline: float) -> bool | None:
        """Whether any text has the word, as the word index has it; None where that was not told in time."""
        with_texts: list[bool] = []
        self._in_time(lambda: with_texts.append(bool(self._lexical.search(word, Filters(), 1))), deadline)
        return with_texts[0] if with_texts else None

    def nearest(self, name: str, deadline: float) -> str:
        """`name` as texts have what is spelt most nearly as it, as a whole or word by word; "" where nothing is."""
        made: list[str] = []
        self._in_time(lambda: made.append(vocabulary.nearest(name, self._lexical)), deadline)
        return made[0] if made else ""

    def settled(self, query: Query, filters: Filters, now: datetime | None, deadline: float) -> Query:
        """The query as this archive takes it; as it is where that is not told in time.

        Those of its names that are none here count as words, and days that it names are days where messages of then
        pass the filters. `now` is naive and local; without it no days are looked for.
        """
        made = [query]

        def ask() -> None:
            settled = vocabulary.settled(query, self._lexical) if query.is_exact else query
            made.append(settled)
            if now is not None:
                made.append(
                    parse.with_days(settled, now, lambda days: bool(dates.newest(self._lexical, days, filters, 1)))
                )

        self._in_time(ask, deadline)
        return made[-1]

    def _in_time(self, ask: Callable[[], None], deadline: float) -> None:
        if is_over(deadline):
            return
        asking = Question("lexical", lambda _candidates: ask())
        asking.start()
        asking.join(left(deadline))
        if asking.error is not None:  # a suggestion is no reason to fail; the owner is told
            self._on_failure("lexical", asking.error)

    # -- asking ------------------------------------------------------------------------------------------------------

    def _all(self, questions: Mapping[str, Callable[[CandidateLists], None]], deadline: float) -> CandidateLists:
        asking = [Question(name, question) for name, question in questions.items()]
        for question in asking:
            question.start()
        for question in asking:
            question.join(left(deadline))
        candidates, failures = CandidateLists(), []
        for question in asking:
            failures += self._merge(candidates, question)
        if failures and len(failures) == len(questions):
            raise failures[0]
        return candidates

    def _merge(self, candidates: CandidateLists, question: Question) -> list[ReconstituteError]:
        """Put one question's answer with the others; a failure is a warning here."""
        is_done, error, own = question.is_done, question.error, question.candidates  # it may end while we look
        if error is not None:
            if isinstance(error, BadRequest | Stop):
                raise error
            self._failed(candidates, question.index, error, _LABELS[question.index])
            if isinstance(error, ReconstituteError):
                return [error]
            named = IndexBroken(f"the {question.index} index failed: {error}; it can be rebuilt from the archive")
            named.__cause__ = error
            return [named]
        candidates.lists |= dict(own.lists)
        candidates.is_inside |= own.is_inside
        candidates.stats = own.stats if question.index == "lexical" else candidates.stats
        candidates.legible = min(candidates.legible, own.legible)
        candidates.late += own.late
        candidates.warnings += own.warnings
        candidates.states[question.index] = own.states.get(question.index, "used")
        if not is_done:
            candidates.states[question.index] = "late"
            why = f": {own.waits_for} {MODEL_LATE}" if own.waits_for else " to the end" if own.lists else ""
            candidates.late.append(_LABELS[question.index] + why)
        return []

    def _failed(self, candidates: CandidateLists, index: str, error: Exception, what: str) -> None:
        self._on_failure(index, error)
        candidates.states[index] = "failed"
        candidates.warnings.append(f"{what}: {redact(str(error)) or type(error).__name__}")

    def _by_words(
        self,
        candidates: CandidateLists,
        query: Query,
        filters: Filters,
        depth: int,
        deadline: float,
        *,
        with_windows: bool,
    ) -> None:
        candidates.stats = self._facts(query)
        least_said = 0 if filters.kinds or filters.tools else _LEAST_SAID
        candidates.lists["lexical"] = self._lexical.search(query.searched, filters, depth, least_said=least_said)
        held = {term for match in candidates.lists["lexical"] for term in match.terms}
        for name in query.named[:_MOST_NAMES]:
            if name not in held:  # the word index knows whole names; this finds all else
                for list_, matches in self._standing(name, ("named", "tools"), filters, depth, deadline):
                    candidates.lists[list_] = [*candidates.lists.get(list_, []), *matches]
        if query.phrase and (len(query.words) > 1 or " " in query.phrase or not candidates.lists["lexical"]):
            # The word index finds content words that stand together too, and more of what tools printed helps nobody:
            # only of what was said every text counts. A phrase with stop words is found nowhere else.
            is_found = bool(candidates.lists["lexical"]) and len(query.words) == len(query.phrase.split())
            inside = False
            for list_, matches in self._standing(query.phrase, ("phrase", "printed"), filters, depth, deadline):
                candidates.lists[list_] = [match for match in matches if names.stands_in(query.phrase, match.text)]
                inside |= bool(matches)
                if is_found or len(candidates.lists[list_]) >= depth:
                    break
            candidates.is_inside = inside and not candidates.lists.get("phrase") and not candidates.lists.get("printed")
        is_narrow = bool(filters.kinds or filters.tools or filters.role)  # a window is of several messages and kinds
        if with_windows and not is_narrow and not is_over(deadline):
            candidates.lists["windows"] = self._lexical.windows(query.searched, filters, depth)

    def _literal(self, candidates: CandidateLists, query: Query, filters: Filters, depth: int, deadline: float) -> None:
        for list_, matches in self._standing(query.text, ("named", "tools"), filters, depth, deadline):
            candidates.lists[list_] = matches
        kinds = set(filters.kinds) or SAID | TOOLS
        if len(candidates.lists) < sum(bool(kinds & some) for some in (SAID, TOOLS)):
            candidates.late.append("not all texts were looked at")

    def _fuzzy(self, candidates: CandidateLists, query: Query, filters: Filters, depth: int, deadline: float) -> None:
        """Near spellings, and whatever smart finds; a name that the word index has as it stands is not looked for."""
        ranked = candidates.lists["lexical"] = self._lexical.fuzzy(query.searched, filters, depth)
        standing: list[Match] = []
        held = fuzzy.held_whole(query, ranked, is_all=len(ranked) < depth)
        wanted = {*query.named[:_MOST_NAMES], query.phrase} - held - {""}
        for text in sorted(wanted):
            for _, matches in self._standing(text, ("named", "tools"), filters, depth, deadline):
                standing += matches
        if standing or query.is_exact:
            candidates.lists["lexical"], candidates.is_inside = fuzzy.merged(query, ranked, standing)

    def _standing(
        self, text: str, lists: tuple[str, str], filters: Filters, depth: int, deadline: float
    ) -> Iterator[tuple[str, list[Match]]]:
        """What holds `text` as it stands, newest first, each list with its name; nothing more once the time is over.

        What was said, and apart from it what tools were given and printed.
        """
        for list_, kinds in zip(lists, (SAID, TOOLS), strict=True):
            chosen = kinds & set(filters.kinds) if filters.kinds else kinds
            if chosen and not is_over(deadline):
                yield list_, self._lexical.literal(text, replace(filters, kinds=tuple(sorted(chosen))), depth)

    def _by_meaning(
        self, candidates: CandidateLists, query: Query, mode: str, filters: Filters, depth: int, *, without_texts: bool
    ) -> None:
        if not self._is_worth_embedding(candidates, query, mode):
            return
        candidates.legible = self._embedder.legible(query.text)
        try:
            text = text_to_embed(query.searched, self._facts(query))
        except Exception:  # noqa: BLE001 - the question by words fails in the same way, and reports it
            text = query.searched
        # Before the index, which is not open without its model: the model says best what is wrong with it.
        vector = self._vectors.get(text)
        if vector is None:
            candidates.waits_for = self._embedder.name
            made = self._embedder.embed_query(text)
            candidates.waits_for = ""
            if isinstance(made, BadInput):
                raise made
            vector = self._vectors[text] = made
        self._vector = vector
        index = self._semantic()
        if index is None:
            raise ModelUnavailable("the semantic index is not ready: it is being built or mended; try again later")
        candidates.lists["semantic"] = self._semantic_matches(
            index, vector, filters, min(depth, _DEEPEST_MEANING), without_texts=without_texts
        )

    def _semantic_matches(
        self, index: SemanticIndex, vector: Vector, filters: Filters, depth: int, *, without_texts: bool
    ) -> list[Match]:
        """The word index tells which messages pass filters, as long as it has every message that the other has."""
        if self._is_behind():
            return index.query(vector, filters, depth, without_texts=without_texts)

        def allowed_ids(filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
            try:
                return self._lexical.allowed_ids(filters, most, among)
            except Exception as error:
                raise _LexicalFailed(str(error)) from error

        try:
            return index.query(vector, filters, depth, allowed_ids, without_texts=without_texts)
        except _LexicalFailed as failed:
            self._on_failure("lexical", failed.__cause__ if isinstance(failed.__cause__, Exception) else failed)
            return index.query(vector, filters, depth, without_texts=without_texts)

    def _facts(self, query: Query) -> QueryStats:
        """How rare the question's words are."""
        documents, held = self._lexical.frequencies(query.searched)
        pairs, is_worded = neighbours(query.searched, tuple(held)), len(query.words) > parse.MOST_SHORT
        return QueryStats(documents, held, is_exact=query.is_exact, is_worded=is_worded, neighbours=pairs)


class _LexicalFailed(ReconstituteError):
    """On its way through the semantic index, which did not fail and must not be mended for it."""
