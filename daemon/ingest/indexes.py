"""Opens and checks the indexes, and rebuilds damaged ones from the archive.

Each index directory contains a name from when it was first filled, and the archive has the same name. If an index is
missing, empty, swapped or broken (then it is parked), every message goes back into that stage's outbox, so that we
never search an unchecked index (docs/reliability.md, C1, C2, C11). The semantic index and a local model live in a
worker process. If it crashes, the next use starts another one, which checks the index again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from daemon.archive import CONTENTS, TOOLS, Archive
from daemon.embed import Embedder, LocalEmbedder
from daemon.embed.calibration import Calibration
from daemon.errors import BadInput, BadRequest, IndexBroken, Retry, Skip
from daemon.index import Filters, LexicalIndex, NotesIndex, SemanticIndex
from daemon.index.lexical import Lexical
from daemon.index.semantic.process import WorkerIndex, park
from daemon.ingest import claims
from daemon.ingest.outbox import (
    EMBEDDER,
    LexicalDrain,
    SemanticDrain,
    calibrated,
    index_contents,
    index_fingerprint,
    sample,
)
from daemon.model import Json
from daemon.worker import Worker

_SHOWN_REASONS = 5
NOT_TELLING = "it finds related texts no more similar than unrelated ones, so choose another model for meaning"
_LOADING_S = (5.0, 25.0)  # a question waits this long, or if only meaning can answer; 474,000 rows take 20 s
_RETRY_S = 15.0  # after a failure, until the next question tries again
_CRASHES = 3  # of the worker with the index open, one after the other, count as damage that the check does not see

OnEvent = Callable[[str, str], None]
"""Called with (component, message) when an index was broken or rebuilt."""


class Upkeep:
    """Owns both indexes. `lexical` exists from the start, `semantic` once `open_semantic` has checked it."""

    def __init__(
        self,
        archive: Archive,
        directory: Path,
        *,
        chroma: str,
        choose: Callable[[], tuple[Embedder, str]],
        on_event: OnEvent,
        indexed_kb: int,
        embedded_kb: int,
        batch: int,
        embed_scope: str = "all",
    ) -> None:
        """`embed_scope`: embedding.what of the configuration."""
        self._archive = archive
        self._embed_scope = embed_scope
        archive.off = {"none": frozenset({"semantic", TOOLS}), "said": frozenset({TOOLS})}.get(embed_scope, frozenset())
        self._directory = directory
        self._chroma = chroma
        self._choose, self._on_event = choose, on_event
        self._kb, self._batch = (indexed_kb, embedded_kb), batch
        self._opening, self._choosing, self._loading, self._starting = (threading.Lock() for _ in range(4))
        self._loaded: tuple[Embedder, SemanticIndex] | None = None
        self._loader: threading.Thread | None = None
        self._is_closed = False
        self._used, self._next_try, self._crashes = time.monotonic(), 0.0, 0
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lexical_state, self.semantic_state, self.choice = "ready", "", ""
        self._embedder: Embedder | None = None
        self._semantic: WorkerIndex | None = None
        self.worker = Worker()  # has the semantic index and a local model
        self.lexical: LexicalIndex = self._open_lexical()
        if waiting := claims.redact_anew(archive):
            on_event("indexes", f"what is redacted has changed: {waiting} messages are indexed again")

    # -- lexical -------------------------------------------------------------------------------------------------

    def _open_lexical(self) -> Lexical:
        place = self._directory / "lexical"
        try:
            index = Lexical(place)
        except IndexBroken as error:
            self._set_aside("lexical", error)
            index = Lexical(place)
        self._claim("lexical", place)
        return index

    def lexical_drain(self) -> LexicalDrain:
        """A drain into the current lexical index."""
        return LexicalDrain(self._archive, self.lexical, self._kb[0])

    def rebuild_lexical(self, error: IndexBroken) -> None:
        """Park the broken index and start a new one.

        Raises:
            IndexBroken: `error` itself, after `close`: an index is not broken for having been closed under a caller.
            IndexBroken, OSError: the new one is broken, or the old one cannot be parked; call it again.
        """
        if self._is_closed:
            raise error
        self.lexical.close()
        self.lexical_state = f"rebuilding: {error}"
        self._set_aside("lexical", error)
        self.lexical = self._open_lexical()
        self.lexical_state = "ready"

    # -- semantic ------------------------------------------------------------------------------------------------

    @property
    def embedder(self) -> Embedder:
        """The embedder, chosen on first use, which may ask the model server."""
        with self._choosing:  # a question may come before the index is open
            if self._embedder is None:
                self._embedder, self.choice = self._choose()
                self._on_event("embedder", self.choice)
            return self._embedder

    @property
    def semantic(self) -> SemanticIndex | None:
        """The semantic index, or None while it is not open, checked and in memory. Access counts as use."""
        self._used = time.monotonic()
        return None if self._loader is not None and self._loader.is_alive() else self._open_index()

    @property
    def is_open(self) -> bool:
        """Whether the semantic index is open."""
        return self._open_index() is not None

    def _open_index(self) -> WorkerIndex | None:
        """The semantic index; None also after its worker has crashed."""
        return index if (index := self._semantic) is not None and index.is_alive else None

    @property
    def notes(self) -> NotesIndex | None:
        """The models' notes in the semantic index; opened, lost and rebuilt with it.

        Its owner fills it: a new one reports that it is incomplete.
        """
        self._used = time.monotonic()
        return index.notes if (index := self._open_index()) is not None else None

    def open_semantic(self) -> SemanticIndex:
        """Check and open it in the worker, and make sure that it belongs to this archive and embedder.

        Raises:
            IndexBroken: not even an empty one works (the caller waits before trying again).
            Retry: the model or the Chroma server does not answer.
        """
        with self._opening:
            index = self._open_index()
            if index is not None:
                return index
            if self._is_closed:
                raise IndexBroken(f"{self._directory}: the indexes are closed; open them again")
            if self.is_off:
                raise BadRequest('nothing is found by meaning: embedding.what is "none"')
            self._crashes += self._semantic is not None and self._semantic.has_crashed
            self._semantic = None
            embedder, place = self.embedder, self._directory / "semantic"
            self.semantic_state = "being checked"
            try:
                index = self._opened(place, embedder)
                if self.is_embedded:
                    self._claim("semantic", place, index_contents(embedder, self._embed_scope))
                self._archive.set_note(CONTENTS, index_contents(embedder, self._embed_scope))
            except IndexBroken as error:
                self.semantic_state = f"broken: {error}"
                raise
            except Retry as error:
                self.semantic_state = f"waiting: {error}"
                raise
            self.semantic_state = "ready"
            self._semantic = index
            return index

    def prepare_semantic(self, within_s: float) -> bool:
        """Load the caches for filtered queries of the open index, for about so long; returns whether more is to load.

        Raises:
            Retry: as any call of the index.
        """
        semantic = self._open_index()
        return semantic is not None and not semantic.prepare(within_s)

    def _opened(self, place: Path, embedder: Embedder) -> WorkerIndex:
        arguments = self._arguments(embedder)
        if not self.is_embedded:
            index = WorkerIndex(self.worker, self._chroma, *arguments)
            unread = self._archive.unread(index_contents(embedder, self._embed_scope))
            if index.count() == 0 and unread < self._archive.message_count():
                self._archive.enqueue_all("semantic")
            return index
        if self._crashes >= _CRASHES:
            self._set_aside("semantic", f"{place}: its process has crashed {self._crashes} times")
            self._crashes = 0
        contents = index_contents(embedder, self._embed_scope)
        is_filled = place.exists() and self._archive.note("semantic index").endswith(f" {contents}")
        held = sample(self._archive, embedder, self._kb, self._embed_scope) if is_filled else []
        try:
            return WorkerIndex(self.worker, place, *arguments, sample=held)
        except IndexBroken as error:
            if self._is_closed:  # `close` ended the worker
                raise
            self._set_aside("semantic", error)
            return WorkerIndex(self.worker, place, *arguments)

    def _arguments(self, embedder: Embedder) -> tuple[str, int, Calibration | None]:
        return index_fingerprint(embedder), embedder.dims, self._calibrated(embedder)

    def _calibrated(self, embedder: Embedder) -> Calibration | None:
        calibration = calibrated(self._archive, embedder)
        if calibration is not None and not calibration.is_telling and NOT_TELLING not in self.choice:
            self.choice += f"; {NOT_TELLING}"
            self._on_event("embedder", self.choice)
        return calibration

    def _set_aside(self, index: str, reason: object) -> None:
        self._on_event(f"{index} index", f"{reason}; parked, rebuilding from the archive")
        park(self._directory / index)

    def load(self, *, is_needed: bool = False, within_s: float = 0.0) -> None:
        """For a semantic query: open the index, and load it and a local model into memory.

        If that takes longer, it goes on meanwhile, and there is no answer by meaning. The caller reports errors.
        """
        self._used = time.monotonic()
        is_loaded = self._loaded is not None and (self._embedder, self._open_index()) == self._loaded
        if is_loaded or self.is_off or self._is_closed or (not self.is_open and time.monotonic() < self._next_try):
            return
        with self._starting:
            if (loader := self._loader) is None or not loader.is_alive():
                loader = self._loader = threading.Thread(target=self._load, name="loading", daemon=True)
                loader.start()
        loader.join(within_s or _LOADING_S[is_needed])

    def _load(self) -> None:
        try:
            self.open_semantic()
        except (Retry, Skip):  # the state reports it, and so does the waiting query
            self._next_try = time.monotonic() + _RETRY_S
        with self._loading, contextlib.suppress(Retry, Skip):
            if (semantic := self._open_index()) is None or self._is_closed or (self.embedder, semantic) == self._loaded:
                return
            if isinstance(embedder := self.embedder, LocalEmbedder):
                embedder.load()
                if not isinstance(vector := embedder.embed(["."])[0], BadInput):
                    semantic.query(vector, Filters(), 1)  # Chroma loads its graph for the first query
            self._loaded = (embedder, semantic)

    def end_worker_if_idle(self, after_s: float) -> bool:
        """End the worker, which has the semantic index and a local model, if they were not used for so long."""
        with self._loading, self._opening:
            if self.worker.pid is None or self.worker.is_busy or time.monotonic() - self._used < after_s:
                return False
            self._semantic, self._loaded, self.semantic_state, self._crashes = None, None, "", 0
            self.worker.end()
            return True

    def semantic_drain(self) -> SemanticDrain:
        """A drain into the semantic index, which is opened if necessary."""
        self._used = time.monotonic()
        return SemanticDrain(
            self._archive,
            self.open_semantic(),
            self.embedder,
            indexed_kb=self._kb[0],
            embedded_kb=self._kb[1],
            batch=self._batch,
            embed_scope=self._embed_scope,
        )

    def rebuild_semantic(self, error: IndexBroken) -> None:
        """Park the broken index; the next use opens a new one and fills it from the archive's vectors.

        Raises:
            IndexBroken: as `rebuild_lexical`.
        """
        with self._opening:
            if self._is_closed:
                raise error
            self.semantic_state = f"rebuilding: {error}"
            self._semantic = None
            self.worker.end()
            if self.is_embedded:
                self._set_aside("semantic", error)

    @property
    def is_off(self) -> bool:
        """Whether semantic search is off."""
        return self._embed_scope == "none"

    @property
    def is_embedded(self) -> bool:
        """Whether Chroma is ours and writes on this disk."""
        return self._chroma == "embedded"

    def let_go_of_semantic(self) -> None:
        """Close it; the next use checks and opens it again."""
        with self._opening:
            self._semantic = None
            self.worker.end()
            self.semantic_state = "waiting: the disk is full"

    def start_over(self) -> None:
        """Delete both indexes and begin new ones, which are filled from the archive.

        Raises:
            Retry: the Chroma server does not answer.
        """
        with self._loading, self._opening:
            self._semantic = self._loaded = None
            self.semantic_state = ""
            self.worker.end()
            self.lexical.close()
            claims.remove(self._directory)
            self.lexical = self._open_lexical()
        if self.is_off:
            return
        self._archive.enqueue_all("semantic")
        if not self.is_embedded:
            WorkerIndex(self.worker, self._chroma, *self._arguments(self.embedder)).clear()

    # -- ownership by the archive --------------------------------------------------------------------------------

    def _claim(self, stage: str, place: Path, fingerprint: str = "") -> None:
        """See claims.claim."""
        waiting = claims.claim(self._archive, stage, place, fingerprint)
        if waiting:
            self._on_event(f"{stage} index", f"new: {waiting} messages of the archive wait to be put in")

    def expect_semantic(self) -> None:
        """If the semantic index is not the one that the archive filled, by its name, put everything into the outbox."""
        if self.is_off or not self.is_embedded or self.is_open:
            return
        is_ours = claims.is_ours(self._archive, "semantic", self._directory / "semantic")
        if not is_ours and self._archive.waiting("semantic") < self._archive.message_count():
            self._archive.enqueue_all("semantic")

    def expect_model(self) -> None:
        """As `open_semantic`, but only if another model, or other settings, filled the index."""
        try:
            is_same = self.is_off or self._archive.note(CONTENTS) == index_contents(self.embedder, self._embed_scope)
        except Retry:
            is_same = False  # opening it will report the problem
        if not is_same:
            self.open_semantic()
        elif not self.is_open:
            self.semantic_state = ""

    def state(self) -> Json:
        """Both indexes, in plain words, for the status."""
        refused, index = self._archive.quarantined(EMBEDDER), self._open_index()
        return {
            "lexical": {"state": self.lexical_state, "count": _count(self.lexical)},
            "semantic": {
                "state": self.semantic_state or self._unopened_state(),
                "count": _count(index),
                "notes": _count(None if index is None else index.notes),
                "embedder": self.choice,
                "unread": self._archive.unread(),
                "refused": len(refused),
                "reasons": sorted({entry["reason"] for entry in refused.values()})[:_SHOWN_REASONS],
            },
        }

    def _unopened_state(self) -> str:
        """The state of the semantic index without opening it, which would take seconds."""
        if self.is_off:
            return "off (embedding.what is none)"
        if self.is_embedded and not claims.has_name(self._directory / "semantic"):
            return "not built yet"
        return "built; opened when it is needed" if self.is_embedded else "opened when it is needed"

    def close(self) -> None:
        """Close the indexes and the embedder, but not the archive, which belongs to the caller."""
        self._is_closed = True
        self.worker.end()  # first, because checking a large index takes a minute, with the lock held
        with self._opening:
            self.lexical.close()
            self._semantic = None
            self.worker.end()
            if self._embedder is not None:
                self._embedder.close()


def _count(index: LexicalIndex | SemanticIndex | NotesIndex | None) -> int | None:
    """The index's size; None if there is no index or it fails, because the status must not fail with it."""
    try:
        return None if index is None else index.count()
    except Retry:
        return None
