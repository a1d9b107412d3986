"""The vectors of a collection in memory, by message and kind, for filtered queries.

A chunk of 384 dimensions takes 384 bytes, because its numbers are stored as integers, in steps of a 127th of the
largest one. Similarities differ by 0.0005 from the exact ones (standard deviation, measured), less than stored vectors
are moved on purpose (chroma.NUDGE).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from daemon.index import number_of
from daemon.index.semantic.chroma import unit
from daemon.model import Kind, Vector

Rows: TypeAlias = NDArray[np.int64]

_HELD = 1 << 15
_BITS = {str(kind): 1 << place for place, kind in enumerate(Kind)}
_FIRST = 1024  # rows at first; a quarter more whenever they are full
_STEPS = 127
_AT_ONCE = (
    512  # rows compared at a time, so that their floats fit the processor's cache; with 8192 it takes twice as long
)
_NONE = 0xFFFFFFFF


class VectorCache:
    """Record ids are those of the semantic index, `{message id}#{place}`. Not thread-safe: the caller locks."""

    def __init__(self, dims: int) -> None:
        self._rows: dict[int, tuple[str, array[int]]] = {}  # number_of(message): (message, its rows by place)
        self._free: list[int] = []
        self._used = 0
        self._unknown = 0
        self._owner = np.zeros(_FIRST, dtype=np.int64)
        self._place = np.zeros(_FIRST, dtype=np.uint32)
        self._mask = np.zeros(_FIRST, dtype=np.uint16)
        self._step = np.zeros(_FIRST, dtype=np.float32)  # the value of one step; 0 while the vector is not known
        self._vectors = np.zeros((_FIRST, dims), dtype=np.int8)

    # -- what there is -------------------------------------------------------------------------------------------

    def put(self, record: str, kinds: Iterable[str] = (), vector: Vector | None = None) -> None:
        """Add a chunk of these kinds, or replace what is known of it."""
        row = self._row_of(record)
        if row is None:
            row = self._new(record)
        elif self._step[row] == 0:
            self._unknown -= 1
        self._mask[row], self._step[row] = _HELD | _mask(kinds), 0
        self._unknown += 1
        if vector is not None:
            self.set_vector(record, vector)

    def set_vector(self, record: str, vector: object) -> None:
        """Set the vector of a chunk; an unknown chunk is ignored."""
        row = self._row_of(record)
        if row is None:
            return
        values = unit(vector)
        step = max(float(np.abs(values).max()), 1e-12) / _STEPS
        self._unknown -= bool(self._step[row] == 0)
        self._vectors[row], self._step[row] = np.rint(values / step), step

    def add_kind(self, record: str, kind: str) -> None:
        """Add a kind to a chunk; an unknown chunk is ignored."""
        row = self._row_of(record)
        if row is not None:
            self._mask[row] |= _mask((kind,))

    def remove(self, record: str) -> None:
        """Remove a chunk, if it is there."""
        row = self._row_of(record)
        if row is None:
            return
        message_id, place = _parts(record)
        rows = self._rows[number_of(message_id)][1]
        rows[place] = _NONE
        if all(place_row == _NONE for place_row in rows):
            del self._rows[number_of(message_id)]
        self._unknown -= bool(self._step[row] == 0)
        self._mask[row], self._step[row] = 0, 0
        self._free.append(row)

    def without_vector(self, most: int) -> list[str]:
        """At most `most` chunks whose vector is not known yet."""
        if not self._unknown:
            return []
        used = slice(0, self._used)
        rows = np.flatnonzero((self._mask[used] != 0) & (self._step[used] == 0))[:most]
        return [self.record(row) for row in rows.tolist()]

    @property
    def is_whole(self) -> bool:
        """Whether the vectors of all chunks are known."""
        return not self._unknown

    def has(self, record: str, kinds: Collection[str] = ()) -> bool:
        """Whether the chunk is here and of any of these kinds; without kinds, whether it is here."""
        row = self._row_of(record)
        return row is not None and bool(self._mask[row] & (_mask(kinds) if kinds else _HELD))

    # -- asking --------------------------------------------------------------------------------------------------

    def rows(self, numbers: Iterable[int], kinds: Collection[str] = ()) -> Rows:
        """The chunks of these messages (index.number_of), of any of these kinds, as rows of the columns."""
        all_rows = array("I")
        for number in numbers:
            if number in self._rows:
                all_rows.extend(self._rows[number][1])
        rows: Rows = np.frombuffer(all_rows, dtype=np.uint32).astype(np.int64)
        rows = rows[rows != _NONE]
        matching: Rows = rows[(self._mask[rows] & (_mask(kinds) if kinds else _HELD)) != 0]
        return matching

    def of_kinds(self, kinds: Collection[str] = ()) -> Rows:
        """The chunks of any of these kinds; without kinds, all."""
        rows: Rows = np.flatnonzero(self._mask[: self._used] & (_mask(kinds) if kinds else _HELD))
        return rows

    def record(self, row: int) -> str:
        """The chunk of a row."""
        return f"{self._rows[int(self._owner[row])][0]}#{self._place[row]}"

    def most_similar(self, rows: Rows, vector: Vector, limit: int) -> list[tuple[str, float]]:
        """The `limit` nearest of these rows with their cosine similarity, best first; their vectors must be known."""
        query = unit(vector)
        similarities = np.empty(len(rows), dtype=np.float32)
        ordered = np.sort(rows)  # sorted, so that memory is read in one direction
        for start in range(0, len(ordered), _AT_ONCE):
            batch = ordered[start : start + _AT_ONCE]
            # Not a matrix product, which wakes a second thread that waits by spinning and takes time from others.
            products = np.einsum("ij,j->i", self._vectors[batch].astype(np.float32), query)
            similarities[start : start + len(batch)] = products * self._step[batch]
        best = (
            np.argpartition(-similarities, limit)[:limit] if limit < len(similarities) else np.arange(len(similarities))
        )
        best = best[np.argsort(-similarities[best], kind="stable")]
        return [(self.record(row), float(similarities[place])) for row, place in zip(ordered[best], best, strict=True)]

    # -- rows ----------------------------------------------------------------------------------------------------

    def _row_of(self, record: str) -> int | None:
        message_id, place = _parts(record)
        _, rows = self._rows.get(number_of(message_id), ("", ()))
        return rows[place] if place < len(rows) and rows[place] != _NONE else None

    def _new(self, record: str) -> int:
        message_id, place = _parts(record)
        number = number_of(message_id)
        _, rows = self._rows.setdefault(number, (message_id, array("I")))
        rows.extend([_NONE] * (place + 1 - len(rows)))
        row = self._free.pop() if self._free else self._used
        if row == self._used:
            self._used += 1
            if row == len(self._mask):
                self._grow()
        rows[place] = row
        self._owner[row], self._place[row] = number, place
        return row

    def _grow(self) -> None:
        more = len(self._mask) + len(self._mask) // 4
        for name in ("_owner", "_place", "_mask", "_step", "_vectors"):
            old = getattr(self, name)
            new = np.zeros((more, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)


def _parts(record: str) -> tuple[str, int]:
    message_id, _, place = record.rpartition("#")
    return message_id, int(place)


def _mask(kinds: Iterable[str]) -> int:
    return sum({_BITS.get(kind, 0) for kind in kinds})
