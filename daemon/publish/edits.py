"""A cheap look at published pages: whether a person has edited or deleted one, or taken an edit back, since a run.

Stamps (`lstat`) decide whether a page is read at all; writing in a Notes place is no change. It is a hint, as a watch
is: what it misses, the next run sees.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path

from daemon.filesystem import regular_file
from daemon.filesystem.durable import Root
from daemon.publish import manifest
from daemon.publish.journal import sha256

OPEN = b"<!-- notes: what you write between these marks is kept -->"
CLOSE = b"<!-- /notes -->"
EMPTY = b"\n\n"
_HEADING = b"\n## Notes\n\n"
_MOST_MARKS = 50
"""Opening marks that are tried; each costs a hash of the page up to it."""
_BOM = b"\xef\xbb\xbf"
SLACK_NS = 50_000_000
"""Files are stamped by a clock that is some milliseconds behind."""


def has_place(path: str) -> bool:
    """Whether a page of this name has a Notes place: Markdown has, the plain text beside a page has not."""
    return path.casefold().endswith(".md")


def composed(body: bytes, notes: bytes = EMPTY) -> bytes:
    """The page: `body`, then the place with the bytes `notes` between its marks."""
    newline = b"" if body.endswith(b"\n") or not body else b"\n"
    return b"".join((body, newline, _HEADING, OPEN, notes, CLOSE, b"\n"))


def signature(body: bytes) -> str:
    """The hash of all that stands before the first mark of a page with this body, as `own_notes` compares it."""
    return _normal(composed(body).rpartition(OPEN)[0])


def own_notes(data: bytes, signatures: Collection[str]) -> tuple[str, bytes] | None:
    """The signature of a page that is one of these, and what stands between its marks; None: it is another page.

    The marks must end the page. They may also stand in its body, as in a quoted file, and in what a person wrote.
    """
    end = data.rfind(CLOSE)
    if end < 0 or data[end + len(CLOSE) :].strip():
        return None
    starts = [match.start() for match in re.finditer(re.escape(OPEN), data[:end])]
    for start in starts[-_MOST_MARKS:]:
        candidate = _normal(data[:start])
        if candidate in signatures:
            return candidate, data[start + len(OPEN) : end]
    return None


def joined(pieces: Collection[bytes]) -> bytes:
    """Several notes as one, whole and in order; those without a word are left out."""
    texts = [piece for piece in pieces if piece.strip()]
    return b"\n".join(texts) if texts else EMPTY


def _normal(text: bytes) -> str:
    lines = (line.rstrip(b" \t\r") for line in text.removeprefix(_BOM).split(b"\n"))
    return hashlib.sha256(b"\n".join(lines).rstrip(b"\n")).hexdigest()


Stamp = tuple[int, int, int, int]


def stamp(path: str) -> Stamp | None:
    """Type, size, modification time (ns) and inode of what stands at `path`; None where nothing is.

    Raises:
        OSError: it cannot be told.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)


class PageChangeCheck:
    """The pages of one tree, as they were when a run that began at `began_ns` had published them."""

    def __init__(self, output_root: Path, folder: str, began_ns: int) -> None:
        self._pages: dict[str, tuple[str, Stamp | tuple[()] | None]] = {}
        self._edited: set[str] = set()
        with Root(output_root) as root:
            listed = (manifest.read(root, folder) or {"pages": {}})["pages"]
        for name, entry in listed.items():
            path = os.path.join(output_root, folder, name)
            if entry.get("beside"):
                self._edited.add(os.path.join(os.path.dirname(path), entry["beside"]))
            known = _stamp(path)
            # One that was written during the run is read once to see by whom.
            is_new = known is not None and known[2] >= began_ns - SLACK_NS
            self._pages[path] = (str(entry.get("body", entry["sha256"])), () if is_new else known)

    def has_changed(self) -> bool:
        """Whether a page is other than at the last look, but for what a person may write in it."""
        return any(self._is_other(path, *page) for path, page in self._pages.items())

    def _is_other(self, path: str, body: str, known: Stamp | tuple[()] | None) -> bool:
        now = _stamp(path)
        if now == known:
            return False
        self._pages[path] = (body, now)
        return path in self._edited or not _is_ours(path, body)


def _stamp(path: str) -> Stamp | None:
    try:
        return stamp(path)
    except OSError:
        return None


def _is_ours(path: str, body: str) -> bool:
    try:
        with regular_file.opened(path) as file:
            data = file.read()
    except OSError:
        return False
    return own_notes(data, {body}) is not None or sha256(data) == body
