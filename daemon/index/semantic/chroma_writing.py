"""Rows on their way into a collection of Chroma's: what is new or other than it was, and nothing else.

A message is indexed anew whenever it changes, each time with all its chunks, of which most are as they were. To write a
vector anew costs Chroma three times what a new one does, and each time some links of its graph are lost: after tens of
thousands of such rewrites 6 of 50 rows were no longer found (chromadb 1.5.9, 474,000 rows). To read one costs a
hundredth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from daemon.index import VectorRow
from daemon.index.semantic.chroma_values import nudged, plain

_SAME = 1e-5
"""Numbers of a vector that differ by less are equal: Chroma scales what it stores to length 1 once more."""
_MOST_PATHS = 64
_OPTIONAL = ("paths", "kinds", "tools")


def put(collection: Any, rows: Sequence[VectorRow]) -> None:
    """Write those of `rows`, each of another id, that the collection does not hold as they are."""
    found = collection.get(ids=[row.chunk.id for row in rows], include=["embeddings", "documents", "metadatas"])
    columns = (found[name] for name in ("ids", "embeddings", "documents", "metadatas"))
    held = {record: (vector, text, data) for record, vector, text, data in zip(*columns, strict=True)}
    new, told = [], []
    for row in rows:
        wanted = _metadata(row)
        vector, text, data = held.get(row.chunk.id, (None, None, None))
        if vector is None or text != plain(row.chunk.text) or not _is_same(vector, row):
            new.append((row, wanted))
        elif data != {key: value for key, value in wanted.items() if value is not None}:
            told.append((row, wanted))
    if new:
        collection.upsert(
            ids=[row.chunk.id for row, _ in new],
            embeddings=[nudged(row.chunk.id, row.vector) for row, _ in new],
            documents=[plain(row.chunk.text) for row, _ in new],
            metadatas=[wanted for _, wanted in new],
        )
    if told:  # without its vector, so that the graph stays as it is
        collection.update(ids=[row.chunk.id for row, _ in told], metadatas=[wanted for _, wanted in told])


def _is_same(stored: Any, row: VectorRow) -> bool:
    return bool(np.abs(np.asarray(stored, dtype=np.float32) - nudged(row.chunk.id, row.vector)).max() < _SAME)


def _metadata(row: VectorRow) -> dict[str, Any]:
    """Design section 5. An upsert merges: a key that no longer applies stays unless it is set to None (measured)."""
    entry = row.entry
    lists = {
        "paths": [plain(path) for path in entry.document.paths[:_MOST_PATHS]],
        "kinds": list(row.chunk.kinds),
        "tools": list(row.chunk.tools),
    }
    return {
        "session_id": entry.document.session_id,
        "session_title": plain(entry.session_title),
        "message_id": entry.document.message_id,
        "message_index": entry.message_index,
        "role": entry.role,
        "created_at": entry.created,
        "project_id": entry.project_id,
        "directory": plain(entry.directory),
        "deleted": entry.deleted,
        **{key: lists[key] or None for key in _OPTIONAL},
    }
