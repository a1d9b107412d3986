"""The bytes of a file at one moment, held so that thousands of revisions of one file fit into memory.

A content is kept whole, as the difference from the one that followed it, or as the id of an archived blob that is read
when needed. Its git id is computed once, on demand: snapshot trees are compared by id, without bytes. What records do
not show of a text (a byte order mark, CRs, the final newline) is tried here, too.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterator
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


def _common(first: bytes, second: bytes) -> int:
    """How many first bytes are the same; by halves, since comparing slices is fast and comparing bytes is not."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(first: bytes, second: bytes, most: int) -> int:
    """How many last bytes are the same, at most `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if first[len(first) - middle : len(first) - low] == second[len(second) - middle : len(second) - low]:
            low = middle
        else:
            high = middle - 1
    return low


MARK: Final = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8."""


def variant_with_id(text: str, id_: str) -> Content | None:
    """`text` with or without byte order mark, CRs and final newline, so that its git blob id is `id_`; None: no such.

    A snapshot tree names the hash of every file, also of those whose content was not captured.
    """
    for data in _variants(text):
        if blob_id(data) == id_:
            return Content(data, id_=id_)
    return None


def _variants(text: str) -> Iterator[bytes]:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
    for lines in dict.fromkeys((text.removeprefix("\ufeff"), plain, plain + "\n")):
        for ended in dict.fromkeys((lines, lines.replace("\r\n", "\n").replace("\n", "\r\n"))):
            data = ended.encode("utf-8", "replace")
            yield data
            yield MARK + data


_WINDOWS = ".cs .csproj .vb .vbproj .fs .fsproj .sln .resx .xaml .config .ps1 .psm1 .psd1 .reg .inf .rc .nuspec"
_EDITORS = (
    ".txt .csv .tsv .srt .sub .vtt .xml .xsd .xsl .xslt .htm .html .ini .sql .rtf .tex .bib "
    ".cpp .hpp .h .c .cc .java .bat"
)
_MARKED = frozenset(_WINDOWS.split())
_MAYBE_MARKED = _MARKED | frozenset(_EDITORS.split())


def may_begin_with_mark(path: str, *, was_read: bool = False) -> bool:
    """Whether a file of this kind may begin with a byte order mark that no record shows.

    Reads hide it, and so do diffs since 1.15. Most files have none, but editors for Windows put one before some kinds;
    for all others a text that was read counts as the whole file. Where the whole file `was_read`, only the kinds that
    usually have a mark count.
    """
    return posixpath.splitext(path)[1].lower() in (_MARKED if was_read else _MAYBE_MARKED)
