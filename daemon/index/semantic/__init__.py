"""The semantic index: one Chroma collection for each fingerprint, and one for the notes of models (`notes`).

The only module that imports chromadb, and only when an index is opened, because the import takes 0.9 s.

Chroma is a cache here, never the truth (docs/reliability.md, C1 to C12). This wrapper guarantees what Chroma does not:
checked vectors, bounded pages, metadata without stale keys, one caller at a time, no mixing of models or versions. It
does not check a directory before opening it: `process` does, because a damaged one kills the process. Every
error that may be the store's becomes IndexBroken; after three equal failures in a row we stop calling it.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from daemon.errors import IndexBroken, ReconstituteError, Retry
from daemon.filesystem.durable import atomic_write
from daemon.index import AllowedIds, Filters, Match, VectorRow
from daemon.index.semantic import notes
from daemon.index.semantic.chroma import NUDGE, PAGE, check, put, unit
from daemon.index.semantic.vector_search import EF_SEARCH, VectorSearch
from daemon.model import Vector

PREFIX = "opencode_messages_v1-"
HNSW = {"space": "cosine", "ef_construction": 200, "max_neighbors": 32, "ef_search": EF_SEARCH}
"""With Chroma's defaults 85 of the 100 nearest among 3,000 random vectors of 384 dimensions are found; with these all,
as fast."""

_PER_QUERY = 100
"""Messages of one search for leftover chunks, and vectors of one query of the probe."""

_PATIENCE = 3
_NEIGHBOURS = (10, 200, 1000)
_SAME = 1e-3
_TOLERATED = 10
"""One in so many records may fail to find itself, because the graph is approximate. In a healthy index of 474,000 rows,
5 of 400 were not among the 200 nearest to themselves, and 2 not among 1000. When 2 of 50 counted as damage, one start
in eight would have rebuilt the index, for an hour.
"""


class Semantic:
    """SemanticIndex over a directory (embedded Chroma) or the URL of a Chroma server.

    Raises:
        IndexBroken: unreadable, or written by another chromadb version.
        Retry: the server does not answer.
    """

    def __init__(
        self, place: Path | str, fingerprint: str, dims: int, calibrated: Callable[[float], float] | None = None
    ) -> None:
        """`calibrated` maps cosines to scores without changing their order. None: the score is the cosine."""
        self._place = place
        self._dims = dims
        self._calibrated = calibrated
        self._lock = threading.RLock()
        self._failures: list[str] = []
        self._client: Any = None
        with self._gate("opening it"):
            self._client = self._connect()
            self._collection = self._collected(PREFIX + fingerprint)
            self._search = VectorSearch(self._collection, dims, self._gate)
            self.notes = notes.NoteVectors(self._collected(notes.PREFIX + fingerprint), dims, self._gate)
            """Findings of models, in their own collection."""

    def upsert(self, rows: Sequence[VectorRow]) -> None:
        """Write these chunks; they replace those of the same ids. Of equal ids the last one counts.

        Raises:
            BadInput: a vector of wrong length, not finite or zero: Chroma would take it and never find it.
        """
        latest = {row.chunk.id: row for row in rows}
        for row in latest.values():
            check(row.chunk.id, row.vector, self._dims)
        unique = list(latest.values())
        for start in range(0, len(unique), PAGE):
            page = unique[start : start + PAGE]
            with self._gate("writing to it"):
                put(self._collection, page)
                for row in page:  # also unchanged ones: the reply to an earlier write may have been lost
                    self._search.wrote(row.chunk.id, row.chunk.kinds, row.vector)

    def keep(self, chunks: Mapping[str, Collection[str]]) -> None:
        """Remove those chunks of these messages whose ids are not given; one query for all of them."""
        ids = list(chunks)
        for start in range(0, len(ids), _PER_QUERY):
            with self._gate("removing from it"):
                stored = self._collection.get(
                    where={"message_id": {"$in": ids[start : start + _PER_QUERY]}}, include=[]
                )
                stale = [record for record in stored["ids"] if record not in chunks[record.rpartition("#")[0]]]
                for first in range(0, len(stale), PAGE):
                    self._collection.delete(ids=stale[first : first + PAGE])
                self._search.removed(stale)

    def clear(self) -> None:
        """Delete the collections of every model, with their texts; open the index again to go on."""
        with self._gate("clearing it"):
            for collection in self._client.list_collections():
                if collection.name.startswith((PREFIX, notes.PREFIX)):
                    self._client.delete_collection(collection.name)

    def query(
        self,
        vector: Vector,
        filters: Filters,
        limit: int,
        allowed_ids: AllowedIds | None = None,
        *,
        without_texts: bool = False,
    ) -> list[Match]:
        """See SemanticIndex; `vector_search` chooses how Chroma is queried."""
        if limit < 1 or (filters.sessions is not None and not filters.sessions):
            return []
        check("the query", vector, self._dims)
        with self._gate("searching it"):
            matches = self._scored(self._search.best(vector, filters, limit, allowed_ids))
            return matches if without_texts else self._search.with_texts(matches)

    def similarities(self, vector: Vector, filters: Filters, message_ids: Collection[str]) -> list[Match]:
        """See SemanticIndex."""
        if not message_ids:
            return []
        check("the query", vector, self._dims)
        with self._gate("searching it"):
            return self._scored(self._search.similarities(vector, filters, message_ids))

    def _scored(self, matches: list[Match]) -> list[Match]:
        if self._calibrated is None:
            return matches
        return [replace(match, score=self._calibrated(match.score)) for match in matches]

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """See SemanticIndex."""
        with self._gate("reading it"):
            return self._search.with_texts(matches)

    def prepare(self, within_s: float = math.inf) -> bool:
        """Load the vectors that make filtered queries fast, for about `within_s` seconds; whether all are loaded.

        Worth it only for a process that keeps the index open.
        """
        return self._search.is_read or self._search.read(within_s)

    def probe(self, sample: Sequence[tuple[str, Vector]]) -> None:
        """Check that each sampled (record id, vector) finds itself and that ids, texts and vectors can be read (C2).

        The notes are read and searched too, but this index does not know which notes there should be.

        Raises:
            IndexBroken: naming what failed.
        """
        with self._gate("probing it"):
            self._collection.count()
            for start in range(0, len(sample), PAGE):
                page = dict(sample[start : start + PAGE])
                page_rows = self._collection.get(ids=list(page), include=["embeddings", "documents", "metadatas"])
                stored = dict(zip(page_rows["ids"], page_rows["embeddings"], strict=True))
                texts = dict(zip(page_rows["ids"], page_rows["documents"], strict=True))
                for record, vector in page.items():
                    if record not in stored or not texts[record]:
                        raise IndexBroken(f"{self._place}: the probe misses record {record}; it must be rebuilt")
                    if float(np.linalg.norm(unit(stored[record]) - unit(vector))) > 3 * NUDGE:
                        raise IndexBroken(f"{self._place}: record {record} holds another vector; it must be rebuilt")
            hidden = self._hidden(sample)
            if len(hidden) > len(sample) // _TOLERATED:
                raise IndexBroken(
                    f"{self._place}: {len(hidden)} of {len(sample)} records, {hidden[0]} among them, are not found by "
                    "their own vectors; it must be rebuilt"
                )
            self.notes.probe()

    def count(self) -> int:
        """How many chunks it holds (from Chroma's SQLite, so no proof of health)."""
        with self._gate("counting"):
            return int(self._collection.count())

    def close(self) -> None:
        """Release files. Never fails, because the caller parks a broken index anyway."""
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                with contextlib.suppress(Exception):
                    # chromadb 1.5.9 leaves the connections of its two HTTP clients open.
                    servers = [
                        getattr(part, "_server", None) for part in (client, getattr(client, "_admin_client", None))
                    ]
                    client.close()
                    for session in (getattr(server, "_session", None) for server in servers):
                        if session is not None:
                            session.close()

    def _collected(self, name: str) -> Any:
        return self._client.get_or_create_collection(
            name,
            configuration={"hnsw": HNSW},
            embedding_function=None,  # never theirs: it downloads a model (C10)
        )

    def _connect(self) -> Any:
        # Imported late: it takes 0.9 s and 76 MB, and only a search by meaning needs it.
        import chromadb  # noqa: PLC0415 - see above
        from chromadb.config import Settings  # noqa: PLC0415 - see above

        settings = Settings(anonymized_telemetry=False)
        if isinstance(self._place, str):
            parts = urlsplit(self._place)
            secure = parts.scheme == "https"
            port = parts.port or (443 if secure else 8000)
            return chromadb.HttpClient(host=parts.hostname or "", port=port, ssl=secure, settings=settings)
        self._stamp(self._place)
        return chromadb.PersistentClient(str(self._place), settings=settings)

    def _stamp(self, place: Path) -> None:
        """Check Chroma's version, because a store of another version cannot be used (C9)."""
        mark, ours = place / "version", f"chromadb {version('chromadb')}\n"
        if (place / "chroma.sqlite3").exists():
            stamp = mark.read_text("utf-8", "replace") if mark.is_file() else "no version"
            if stamp != ours:
                raise IndexBroken(f"{place}: written by {stamp.strip()}, this is {ours.strip()}; it must be rebuilt")
        else:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            atomic_write(mark, ours.encode())

    def _hidden(self, sample: Sequence[tuple[str, Vector]]) -> list[str]:
        """The records that their own vectors do not find. Batched, because single queries take nine times as long."""
        hidden = list(sample)
        for depth in _NEIGHBOURS:
            candidates, hidden = hidden, []
            for start in range(0, len(candidates), _PER_QUERY):
                page = candidates[start : start + _PER_QUERY]
                vectors = [np.asarray(vector, dtype=np.float32) for _, vector in page]
                answer = self._collection.query(query_embeddings=vectors, n_results=depth, include=["distances"])
                for row, ids, distances in zip(page, answer["ids"], answer["distances"], strict=True):
                    # If many texts are equal, all at distance 0, they may displace the record.
                    crowded = len(distances) == depth and distances[-1] < _SAME
                    if row[0] not in ids and not crowded:
                        hidden.append(row)
        return [record for record, _ in hidden]

    @contextlib.contextmanager
    def _gate(self, doing: str) -> Iterator[None]:
        """Wraps every call of Chroma: one at a time, its errors become ours, none after three equal ones (C4)."""
        with self._lock:
            if len(self._failures) >= _PATIENCE:
                raise IndexBroken(
                    f"{self._place}: not asked any more after {_PATIENCE} equal failures: {self._failures[0]}"
                )
            if self._client is None and doing != "opening it":
                raise IndexBroken(f"{self._place}: the semantic index is closed; open it again")
            try:
                yield
            except (ReconstituteError, ImportError):  # the second says nothing about the store
                raise
            except BaseException as error:
                if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                    raise
                raise self._failed(doing, error) from error
            self._failures.clear()

    def _failed(self, doing: str, error: BaseException) -> Exception:
        cause = f"{type(error).__name__}: {error}"
        if isinstance(error, MemoryError):  # says nothing about the store
            return Retry(f"{self._place}: Chroma cannot run: {cause}; it is tried again")
        if isinstance(self._place, str) and _is_connection(error):
            return Retry(
                f"{self._place}: the Chroma server does not answer ({cause}); start it, or use index.chroma = embedded"
            )
        if self._failures and self._failures[0] != cause:
            self._failures.clear()
        self._failures.append(cause)
        return IndexBroken(f"{self._place}: Chroma failed while {doing}: {cause}; it is rebuilt from the archive")


def _is_connection(error: BaseException) -> bool:
    named = f"{type(error).__module__}.{type(error).__name__}"
    return named.startswith(("httpx.", "httpcore.")) or "Could not connect" in str(error)
