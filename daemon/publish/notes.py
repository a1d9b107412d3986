"""The Notes place: the end of every Markdown page, in which a person may write, and which is kept for ever.

A page in which only this place was changed is still ours. Byte order marks, line ends and blanks at the ends of lines
do not count as changes, because editors touch them without being asked. Pure functions on bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

OPEN = b"<!-- notes: what you write between these marks is kept -->"
CLOSE = b"<!-- /notes -->"
EMPTY = b"\n\n"
_HEADING = b"\n## Notes\n\n"
_MOST_MARKS = 50
"""Opening marks that are tried; each costs a hash of the page up to it."""
_BOM = b"\xef\xbb\xbf"


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
        found = _normal(data[:start])
        if found in signatures:
            return found, data[start + len(OPEN) : end]
    return None


def joined(pieces: Collection[bytes]) -> bytes:
    """Several notes as one, whole and in order; those without a word are left out."""
    said = [piece for piece in pieces if piece.strip()]
    return b"\n".join(said) if said else EMPTY


def _normal(text: bytes) -> str:
    lines = (line.rstrip(b" \t\r") for line in text.removeprefix(_BOM).split(b"\n"))
    return hashlib.sha256(b"\n".join(lines).rstrip(b"\n")).hexdigest()
