"""Notes of models, searched by meaning: a second collection in the same Chroma as the messages.

The semantic index owns the client and its lock, counts failures and translates errors. It passes in a collection and
its gate, so chromadb is not imported here. A row's id is a digest of its content, so a row is never rewritten.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from daemon.errors import IndexBroken
from daemon.index import NoteMatch, NoteRow
from daemon.index.semantic.chroma import PAGE, check, nudged, plain
from daemon.model import Vector

PREFIX = "reconstitution_notes_v1-"
_PROBED, _NEIGHBOURS = 50, 10


class NoteVectors:
    """NotesIndex over a collection of Chroma's; it lives as long as the semantic index that made it.

    Every method raises IndexBroken or Retry as the semantic index does. `gate` is that of the semantic index
    (`Semantic._gate`): one call at a time, and Chroma's errors become ours.
    """

    def __init__(self, collection: Any, dims: int, gate: Callable[[str], AbstractContextManager[None]]) -> None:
        self._collection, self._dims, self._gate = collection, dims, gate
        self.is_whole = False

    def ids(self, owner: str, target: str = "") -> set[str]:
        """The rows of an archive, all or those of one target."""
        with self._gate("listing its notes"):
            rows = self._collection.get(where=_all(owner=owner, target=target), include=[])
            return set(rows["ids"])

    def upsert(self, rows: Sequence[NoteRow]) -> None:
        """Add these.

        Raises:
            BadInput: a vector that Chroma would take and never find; nothing is written.
        """
        for row in rows:
            check(row.id, row.vector, self._dims)
        unique = list({row.id: row for row in rows}.values())
        for start in range(0, len(unique), PAGE):
            page = unique[start : start + PAGE]
            with self._gate("writing notes"):
                self._collection.upsert(
                    ids=[row.id for row in page],
                    embeddings=[nudged(row.id, row.vector) for row in page],
                    documents=[plain(row.text) for row in page],
                    metadatas=[_metadata(row) for row in page],
                )

    def remove(self, ids: Sequence[str]) -> None:
        """Remove these; a missing one is no error."""
        for start in range(0, len(ids), PAGE):
            with self._gate("removing notes"):
                self._collection.delete(ids=list(ids[start : start + PAGE]))

    def query(
        self, vector: Vector, owner: str, limit: int, *, besides: str = "", until: int | None = None
    ) -> list[NoteMatch]:
        """Nearest notes of an archive, best first; none of the question `besides`, none newer than `until`."""
        check("the query", vector, self._dims)
        with self._gate("searching notes"):
            total = int(self._collection.count())
            if not total or limit < 1:
                return []
            reply = self._collection.query(
                query_embeddings=[vector],
                n_results=min(limit, total),
                where=_all(owner=owner, question={"$ne": besides}, created_at={"$lte": until} if until else None),
                include=["metadatas", "distances"],
            )
            rows = zip(reply["ids"][0], reply["metadatas"][0], reply["distances"][0], strict=True)
            return [NoteMatch(record, str(data["target"]), 1.0 - float(distance)) for record, data, distance in rows]

    def probe(self) -> None:
        """Read a sample, and search for it by its own vectors (C1, C2).

        Raises:
            IndexBroken: many of them are not found.
        """
        with self._gate("probing its notes"):
            ids = self._collection.get(include=[])["ids"]
            if not ids:
                return
            chosen = random.sample(ids, min(_PROBED, len(ids)))
            sample = self._collection.get(ids=chosen, include=["embeddings", "documents", "metadatas"])
            reply = self._collection.query(
                query_embeddings=list(sample["embeddings"]), n_results=min(_NEIGHBOURS, len(ids)), include=["distances"]
            )
            hidden = [record for record, ids in zip(sample["ids"], reply["ids"], strict=True) if record not in ids]
            if len(hidden) * 4 > len(sample["ids"]):
                raise IndexBroken(
                    f"{len(hidden)} of {len(sample['ids'])} notes, {hidden[0]} among them, are not found by their own "
                    "vectors; the index must be rebuilt"
                )

    def count(self) -> int:
        """How many notes it holds, of every archive."""
        with self._gate("counting notes"):
            return int(self._collection.count())


def _metadata(row: NoteRow) -> dict[str, Any]:
    facts = {key: plain(value) for key, value in row.facts.items()}
    return facts | {"owner": row.owner, "target": row.target, "question": row.question, "created_at": row.created}


def _all(**conditions: Any) -> dict[str, Any]:
    clauses = [{key: value} for key, value in conditions.items() if value]
    return {"$and": clauses} if len(clauses) > 1 else clauses[0]
