"""Reads and writes rows of Chroma: checked vectors and texts, filters, and only rows that changed.

Chroma takes useless vectors, raises at lone surrogates, and loses vectors that are all equal (docs/reliability.md,
S14, C7). A message is indexed again whenever it changes, with all its chunks, most of which are unchanged. Rewriting a
vector takes Chroma three times as long as a new one and loses links of its graph: after tens of thousands of rewrites
6 of 50 rows were no longer found (chromadb 1.5.9, 474,000 rows). So we read rows first, at a hundredth of the cost, and
write only those that differ.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from daemon.errors import BadInput
from daemon.index import Filters, VectorRow
from daemon.model import Vector

PAGE = 500
"""Rows of one call; Chroma refuses more than 5461, and SQLite more than some thousand variables."""

NUDGE = 3e-3
"""How far each stored vector is moved, in a direction derived from its id; similarity changes by 0.000005.

Equal vectors make an HNSW graph fall apart: with 400 equal texts ("continue", one file read many times) Chroma 1.5.9
found none of three others, even with a filter (measured). Moved apart, all are found.
"""


def plain(text: str) -> str:
    """`text` without lone surrogates, for which Chroma raises an error."""
    return text.encode("utf-8", "replace").decode()


def unit(vector: object) -> Vector:
    """As 32-bit floats of length 1."""
    values = np.asarray(vector, dtype=np.float32)
    return values / max(float(np.linalg.norm(values)), 1e-12)


def nudged(record: str, vector: Vector) -> Vector:
    """`vector` as it is stored for a record."""
    seed = int.from_bytes(blake2b(record.encode(), digest_size=8).digest(), "little")
    direction = np.random.default_rng(seed).standard_normal(len(vector), dtype=np.float32)
    return unit(unit(vector) + NUDGE * unit(direction))


def check(name: str, vector: Vector, dims: int) -> None:
    """Chroma would take a useless vector and never find it.

    Raises:
        BadInput: it has another length than `dims`, or is not finite, or zero.
    """
    if vector.shape != (dims,) or not np.isfinite(vector).all() or not float(np.linalg.norm(vector)) > 0:
        raise BadInput(f"{name}: a vector of shape {vector.shape} that is not {dims} finite numbers, not all 0")


_MOST_SESSIONS = 200  # filtered by Chroma


def where(filters: Filters) -> dict[str, Any] | None:
    """The filters that Chroma can evaluate, so without directory and path."""
    exact = {"session_id": filters.session_id, "project_id": filters.project_id, "role": filters.role}
    clauses: list[dict[str, Any]] = [{key: value} for key, value in exact.items() if value]
    if filters.sessions is not None and len(filters.sessions) <= _MOST_SESSIONS:
        clauses.append({"session_id": {"$in": sorted(filters.sessions)}})
    if filters.besides:
        clauses.append({"session_id": {"$nin": sorted(filters.besides)}})
    if filters.deleted:  # only True, because rows of older versions lack the key
        clauses.append({"deleted": True})
    for key, values in (("tools", filters.tools), ("kinds", filters.kinds)):
        held = [{key: {"$contains": value}} for value in values]
        clauses += [{"$or": held}] if len(held) > 1 else held
    if filters.after is not None:
        clauses.append({"created_at": {"$gte": filters.after}})
    if filters.before is not None:
        clauses.append({"created_at": {"$lt": filters.before}})
    if len(clauses) > 1:
        return {"$and": clauses}
    return clauses[0] if clauses else None


def passes(data: Any, filters: Filters) -> bool:
    """Whether a record with this metadata passes."""
    created = int(data.get("created_at", 0))
    exact = (
        ("session_id", filters.session_id),
        ("project_id", filters.project_id),
        ("role", filters.role),
    )
    return (
        all(not value or data.get(key) == value for key, value in exact)
        and (not filters.kinds or not set(filters.kinds).isdisjoint(data.get("kinds") or ()))
        and (not filters.tools or not set(filters.tools).isdisjoint(data.get("tools") or ()))
        and (filters.after is None or created >= filters.after)
        and (filters.before is None or created < filters.before)
        and (filters.sessions is None or data.get("session_id") in filters.sessions)
        and data.get("session_id") not in filters.besides
        and (filters.deleted is None or bool(data.get("deleted")) == filters.deleted)
        and _is_within(str(data.get("directory", "")), filters.directory)
        and (not filters.path or any(_is_about(str(path), filters) for path in data.get("paths") or ()))
    )


def _is_about(path: str, filters: Filters) -> bool:
    return any(_is_within(path, name) for name in (filters.path, *filters.former))


def _is_within(directory: str, top: str) -> bool:
    if not top:
        return True
    if not directory:
        return False
    directory, top = posixpath.normpath(directory), posixpath.normpath(top)
    return directory == top or directory.startswith(top.rstrip("/") + "/")


_SAME = 1e-5
"""Numbers of a vector that differ by less count as equal, because Chroma normalises vectors again."""
_MOST_PATHS = 64
_OPTIONAL = ("paths", "kinds", "tools")


def put(collection: Any, rows: Sequence[VectorRow]) -> None:
    """Write the `rows` that are new or changed; their ids are distinct."""
    stored = collection.get(ids=[row.chunk.id for row in rows], include=["embeddings", "documents", "metadatas"])
    columns = (stored[name] for name in ("ids", "embeddings", "documents", "metadatas"))
    held = {record: (vector, text, data) for record, vector, text, data in zip(*columns, strict=True)}
    new, changed = [], []
    for row in rows:
        metadata = _metadata(row)
        vector, text, data = held.get(row.chunk.id, (None, None, None))
        if vector is None or text != plain(row.chunk.text) or not _is_same(vector, row):
            new.append((row, metadata))
        elif data != {key: value for key, value in metadata.items() if value is not None}:
            changed.append((row, metadata))
    if new:
        collection.upsert(
            ids=[row.chunk.id for row, _ in new],
            embeddings=[nudged(row.chunk.id, row.vector) for row, _ in new],
            documents=[plain(row.chunk.text) for row, _ in new],
            metadatas=[metadata for _, metadata in new],
        )
    if changed:  # without its vector, so that the graph stays as it is
        collection.update(ids=[row.chunk.id for row, _ in changed], metadatas=[metadata for _, metadata in changed])


def _is_same(stored: object, row: VectorRow) -> bool:
    return bool(np.abs(np.asarray(stored, dtype=np.float32) - nudged(row.chunk.id, row.vector)).max() < _SAME)


def _metadata(row: VectorRow) -> dict[str, Any]:
    """The metadata of a row. An upsert merges, so a key that no longer applies must be set to None (measured)."""
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
