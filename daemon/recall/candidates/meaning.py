"""Candidates by meaning: the question is embedded once, and the semantic index asked for the nearest chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from daemon.embed import Embedder, reads
from daemon.errors import BadInput, BadRequest, ModelUnavailable, ReconstituteError, Retry, Skip
from daemon.index import Filters, LexicalIndex, Match, SemanticIndex
from daemon.model import Vector
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.candidates.stats import stats_of, text_to_embed
from daemon.recall.query.parse import MOST_SHORT, Query

_DEEPEST = 200
"""Chunks requested by meaning at most: each costs time, and more distant ones are no answer."""
_FEW = 0.25
"""A question with a smaller share of known words is probably in a language that the model was not made for."""
_FIX = "name a multilingual model in embedding.model_dir, or one of Ollama's in embedding.model"


class MeaningSearch:
    """Searches the semantic index; each search has its own."""

    def __init__(
        self,
        lexical: LexicalIndex,
        semantic: Callable[[], SemanticIndex | None],
        embedder: Embedder,
        on_failure: Callable[[str, Exception], None],
        is_behind: Callable[[], bool],
        *,
        is_off: bool = False,
    ) -> None:
        """See CandidateSearch."""
        self.is_off = is_off
        self._lexical, self._semantic, self._embedder = lexical, semantic, embedder
        self._on_failure, self._is_behind = on_failure, is_behind
        self._vectors: dict[str, Vector] = {}
        """By text: one answer may need several searches, and embedding takes a fifth of the time of one."""
        self.vector: Vector | None = None
        """The vector of the question, once it was searched by meaning."""

    def reads(self, query: Query) -> bool:
        """Whether the model can read the question, so that similarity means something.

        Raises:
            ModelUnavailable: the model does not load.
        """
        return reads(self._embedder, query.text)

    def unread(self, mode: str) -> str:
        """The warning for a question that the model cannot read."""
        consequence = "what is similar is a guess" if mode == "semantic" else "only words are searched"
        return f"{self._embedder.name} cannot read this question, so {consequence}; {_FIX}"

    def _strange(self, known: float, mode: str) -> str:
        """The warning for a question of which the model knows few words."""
        consequence = (
            "what is similar may be a guess" if mode == "semantic" else "what is similar counts less than words"
        )
        return f"{self._embedder.name} knows few words of this question ({known:.0%}), so {consequence}; {_FIX}"

    def _is_worth_embedding(self, candidates: CandidateLists, query: Query, mode: str) -> bool:
        """False in hybrid for a question that the model cannot read: its matches would disturb those by words."""
        if self.reads(query):
            return True
        candidates.warnings.append(self.unread(mode))
        if mode == "hybrid":
            candidates.states["semantic"] = "not legible"
        return mode != "hybrid"

    def search(
        self, candidates: CandidateLists, query: Query, mode: str, filters: Filters, depth: int, *, without_texts: bool
    ) -> None:
        """Fill the list of matches by meaning.

        Raises:
            BadInput: the model refuses the question.
            ModelUnavailable: there is no model, or the index is being built.
            BadRequest: search by meaning is disabled, and no other search was requested.
        """
        if self.is_off:
            if mode == "semantic":
                raise BadRequest('nothing is found by meaning: embedding.what is "none"; use `match=smart` for words')
            candidates.states["semantic"] = "off"
            return
        if not self._is_worth_embedding(candidates, query, mode):
            return
        candidates.legible = self._embedder.legible(query.text)
        candidates.known = self._embedder.known_words(query.text)
        if candidates.known < _FEW and len(query.words) > MOST_SHORT and not query.is_exact:
            candidates.warnings.append(self._strange(candidates.known, mode))
        try:
            text = text_to_embed(query.searched, stats_of(self._lexical, query))
        except Exception:  # noqa: BLE001 - the question by words fails in the same way, and reports it
            text = query.searched
        # Embed before asking for the index, because the error of the model is the clearer one.
        vector = self._vectors.get(text)
        if vector is None:
            candidates.waits_for = self._embedder.name
            embedding = self._embedder.embed_query(text)
            candidates.waits_for = ""
            if isinstance(embedding, BadInput):
                raise embedding
            vector = self._vectors[text] = embedding
        self.vector = vector
        index = self._semantic()
        if index is None:
            raise ModelUnavailable("the semantic index is not open: `reconstitute status` says why; try again later")
        depth = min(depth, _DEEPEST)
        candidates.lists["semantic"] = self._matches(index, vector, filters, depth, without_texts=without_texts)

    def _matches(
        self, index: SemanticIndex, vector: Vector, filters: Filters, depth: int, *, without_texts: bool
    ) -> list[Match]:
        """The word index supplies the ids that pass the filters, if it has all messages of the semantic index."""
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

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """The matches, those by meaning with kind, tool and text; unchanged if the index fails."""
        index = self._semantic()
        if index is None or not any(match.record and not match.text for match in matches):
            return list(matches)
        try:
            return index.with_texts(matches)
        except (Retry, Skip) as error:  # the owner is notified; the snippet is then the beginning of the message
            self._on_failure("semantic", error)
            return list(matches)


class _LexicalFailed(ReconstituteError):
    """Marks an error of the lexical index, so that the semantic index is not repaired for it."""
