"""The bytes of a file at one moment, held so that thousands of revisions of one file fit into memory.

A content is either kept whole, as the difference from the one that followed it, or as the id of an archived blob that
is read when it is asked for. Its git id is computed once, on demand: snapshot trees are compared by id, without bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from daemon.records import blob_id

_SMALL: Final = 2048
"""Bytes; a smaller content is kept whole."""

_STRIDE: Final = 64
"""One of so many contents in a row is kept whole, so that an old one costs at most that many steps."""

Load = Callable[[str], bytes | None]


class Content:
    """Whole content of a file. Equal ids mean equal bytes."""

    __slots__ = ("_data", "_depth", "_id", "_load", "_middle", "_newer", "_prefix", "_sha256", "_size", "_suffix")

    def __init__(self, data: bytes | None, *, id_: str = "", load: Load | None = None) -> None:
        """Bytes, or the id of a blob and how to read it."""
        self._data = data
        self._id = id_
        self._load = load
        self._size = -1 if data is None else len(data)
        self._sha256 = ""
        self._newer: Content | None = None
        self._middle = b""
        self._prefix = self._suffix = 0
        self._depth = 0

    @property
    def id(self) -> str:
        """The git blob id."""
        if not self._id:
            self._id = blob_id(self.data or b"")
        return self._id

    @property
    def data(self) -> bytes | None:
        """The bytes; None when the blob is not in the archive."""
        if self._data is not None:
            return self._data
        if self._newer is not None:
            return self._unpacked()
        return self._load(self._id) if self._load is not None else None

    @property
    def size(self) -> int:
        """In bytes; -1 when the blob is not in the archive."""
        if self._size < 0:
            data = self.data
            self._size = -1 if data is None else len(data)
        return self._size

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes; empty when the blob is not in the archive."""
        if not self._sha256:
            data = self.data
            self._sha256 = "" if data is None else hashlib.sha256(data).hexdigest()
        return self._sha256

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self.is_same(other)

    def __hash__(self) -> int:
        return hash(self.id)

    def is_same(self, other: Content) -> bool:
        """Whether both are the same bytes."""
        if self is other:
            return True
        if self._data is not None and other._data is not None:
            return self._data == other._data
        return self.id == other.id

    def settle(self, newer: Content) -> None:
        """`newer` has followed: keep only what differs from it, where that saves memory."""
        if self._data is None or newer._data is None or newer is self or len(self._data) < _SMALL:
            return
        if newer._newer is not None or self._depth >= _STRIDE:
            return
        prefix = _common(self._data, newer._data)
        left = min(len(self._data), len(newer._data)) - prefix
        suffix = _common_end(self._data, newer._data, left)
        middle = self._data[prefix : len(self._data) - suffix]
        if len(middle) * 2 > len(self._data):
            return
        newer._depth = self._depth + 1
        self._newer, self._prefix, self._suffix, self._middle = newer, prefix, suffix, middle
        self._data = None

    def _unpacked(self) -> bytes:
        steps: list[tuple[int, bytes, int]] = []
        at: Content = self
        while at._data is None and at._newer is not None:
            steps.append((at._prefix, at._middle, at._suffix))
            at = at._newer
        data = at.data or b""
        for prefix, middle, suffix in reversed(steps):
            data = data[:prefix] + middle + data[len(data) - suffix :]
        return data


def _common(one: bytes, other: bytes) -> int:
    """How many first bytes are the same; by halves, since comparing slices is fast and comparing bytes is not."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    """How many last bytes are the same, at most `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
