"""The bytes of a file at one moment, stored so that thousands of revisions of one file fit into memory.

A content is stored whole, as the difference from the next one, or as the id of an archived blob that is read on demand.
Its git id is computed once, on demand, because snapshot trees are compared by id, without bytes. We also try variants
that records do not show (a byte order mark, CRs, the final newline).

`Fragments` are the known parts of a partly known file: runs of lines, with or without their place.

A read of some lines gives a run with a place. An edit whose old text is in a run changes it and moves the runs after
it; any other edit leaves only its new text, without a place, because the runs may have moved.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from daemon.records import blob_id

_SMALL: Final = 2048
"""Bytes; a smaller content is stored whole."""

_STRIDE: Final = 64
"""One of so many contents in a row is stored whole, so that reading an old one takes at most that many steps."""

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
        """`newer` is the next content: keep only the difference from it, if that saves memory."""
        if self._data is None or newer._data is None or newer is self or len(self._data) < _SMALL:
            return
        if newer._newer is not None or self._depth >= _STRIDE:
            return
        prefix = _common(self._data, newer._data)
        limit = min(len(self._data), len(newer._data)) - prefix
        suffix = _common_end(self._data, newer._data, limit)
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
    """The variant of `text` (byte order mark, CRs, final newline) whose git blob id is `id_`; None if there is none.

    A snapshot tree has the hash of every file, even if the content was not captured.
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
    """Whether a file of this kind may begin with a byte order mark that is not recorded.

    Reads hide it, and so do diffs since 1.15. Most files have none, but editors for Windows add one to some kinds; for
    all others a text that was read counts as the whole file. If the whole file `was_read`, only kinds that usually have
    a mark count.
    """
    return posixpath.splitext(path)[1].lower() in (_MARKED if was_read else _MAYBE_MARKED)


# -- partly known files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """Known lines in a row, without their ends; `first` counts from 1, None if their place is unknown.

    Without a place, the first and the last may be parts of lines.
    """

    first: int | None
    lines: tuple[str, ...]

    @property
    def first_line(self) -> int:
        """`first`, where the place is known."""
        return self.first or 0

    @property
    def end(self) -> int:
        """The number of the line after the last."""
        return self.first_line + len(self.lines)


@dataclass(frozen=True, slots=True)
class Fragments:
    """The known runs, those with a place first, in the file's order, apart from one another.

    `is_all`: they are all lines of the file, and only their ends are unknown. `newline`: whether a newline ends the
    file, None if unknown. `is_stale`: something may have changed the file since.
    """

    runs: tuple[Run, ...] = ()
    is_all: bool = False
    newline: bool | None = None
    is_stale: bool = False

    def with_lines(self, first: int, lines: tuple[str, ...]) -> Fragments:
        """The fragments with these lines added; an older run that contradicts them is dropped."""
        new = Run(first, lines)
        kept_runs = []
        for run in self.runs:
            if run.first is None or run.end < new.first_line or run.first > new.end:
                kept_runs.append(run)
            elif (joined := _joined(run, new)) is not None:
                new = joined
        if not self.has_gaps and self.runs == (new,):
            return self
        placed = sorted([*(run for run in kept_runs if run.first is not None), new], key=lambda run: run.first or 0)
        return Fragments((*placed, *(run for run in kept_runs if run.first is None)))

    def edited(self, old: str, new: str, *, everywhere: bool = False) -> Fragments:
        """The fragments after an edit that replaced `old`: its only occurrence, or each one (`everywhere`)."""
        grown = new.count("\n") - old.count("\n")
        runs: list[Run] = []
        replaced, shift, is_all = 0, 0, self.is_all
        for run in self.runs:
            text = "\n".join(run.lines)
            times = text.count(old) if old else 0
            first = None if run.first is None else run.first + shift
            inner = {line.rstrip("\r") for line in old.split("\n")} - {""}
            remaining = set(text.replace(old, "").split("\n")) if everywhere and old else set()
            if times and (everywhere or times == 1) and not (replaced and not everywhere) and not inner & remaining:
                lines = tuple(text.replace(old, new).split("\n"))
                if len(lines) > 1 and lines[-1] == "" != run.lines[-1]:
                    # An empty line follows only if a newline ended the run, which no record shows.
                    lines, is_all = lines[:-1], False
                runs.append(Run(first, lines))
                replaced += times
                shift += grown * times
            elif (times and not everywhere) or not (inner & set(run.lines) or _reaches_into(inner, run)):
                # Known lines that the old text may overlap are dropped.
                runs.append(replace(run, first=first))
        # Places after an edit are known only if its own place is, and no unknown line was edited too.
        is_placed = not grown or (not everywhere and replaced == 1 and self._has_place(old))
        if not is_placed:
            runs = [replace(run, first=None) for run in runs]
        written = new.removeprefix("\n").removesuffix("\n")  # an end of the line before, and of its own last one
        if not replaced and written:
            runs = [
                *(replace(run, first=None) if grown else run for run in runs),
                Run(None, tuple(written.split("\n"))),
            ]
        return Fragments(tuple(runs), is_all and bool(replaced))

    def added(self, text: str) -> Fragments:
        """With `text` after the last line. If no newline is known to end that line, it may continue in `text`."""
        if not text:
            return self
        if not self.has_gaps and self.newline is not None:
            lines = "\n".join(self.runs[0].lines) + "\n" * self.newline + text
            return Fragments((Run(1, _lines(lines)),), is_all=True, newline=text.endswith("\n"))
        placed = [run for run in self.runs if run.first is not None]
        runs = [replace(run, lines=run.lines[:-1]) if run in placed[-1:] else run for run in self.runs]
        return Fragments((*(run for run in runs if run.lines), Run(None, _lines(text))))

    def _has_place(self, old: str) -> bool:
        return any(run.first is not None and old in "\n".join(run.lines) for run in self.runs)

    @property
    def count(self) -> int:
        """How many lines are known."""
        return sum(len(run.lines) for run in self.runs)

    @property
    def has_gaps(self) -> bool:
        """Whether lines are missing; without, only their ends are not known."""
        return not (self.is_all and len(self.runs) == 1 and self.runs[0].first == 1)

    def marked(self) -> str:
        """The known lines with the gaps marked, for people; without gaps all lines, with their known ends."""
        if not self.has_gaps:
            return "\n".join(self.runs[0].lines) + ("" if self.newline is False else "\n")
        pieces = ["<<< so it was once: any of these lines may have changed since >>>"] if self.is_stale else []
        line = 1
        for run in self.runs:
            if run.first is None:
                pieces.append(
                    f"<<< {len(run.lines)} known lines, their place is not known; the outer ones may be parts >>>"
                )
            elif run.first > line:
                pieces.append(f"<<< lines {line} to {run.first - 1} are not known >>>")
            pieces += run.lines
            line = run.end if run.first is not None else line
        pieces.append(f"<<< whether anything follows{f' line {line - 1}' if line > 1 else ''} is not known >>>")
        return "\n".join(pieces) + "\n"


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def _reaches_into(lines: set[str], run: Run) -> bool:
    """Whether one of these lines may contain the partial first or last line of a run without a place."""
    return run.first is None and any(part in line for part in (run.lines[0], run.lines[-1]) for line in lines)


def _joined(run: Run, new: Run) -> Run | None:
    """Both as one run if they touch or overlap and agree; None if they disagree."""
    first = run.first or 0
    start, end = max(first, new.first_line), min(run.end, new.end)
    if run.lines[start - first : end - first] != new.lines[start - new.first_line : end - new.first_line]:
        return None
    if first <= new.first_line:
        return Run(first, run.lines[: new.first_line - first] + new.lines + run.lines[max(0, new.end - first) :])
    return Run(
        new.first, new.lines[: first - new.first_line] + run.lines + new.lines[max(0, run.end - new.first_line) :]
    )
