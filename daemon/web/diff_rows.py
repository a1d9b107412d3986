"""A unified diff as rows to be shown: which lines are added, removed, kept, or say something about the diff itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")

Kind = Literal["add", "del", "same", "hunk", "note"]
_KINDS: dict[str, Kind] = {"+": "add", "-": "del", " ": "same", "\\": "note"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff, with its sign; a ``hunk`` says where the lines after it are, or of which file."""

    kind: Kind
    text: str


def rows(diff: str) -> list[Row]:
    """The lines of a diff; only a newline ends one.

    Hunks with counts hold what they count, so that a removed line ``-- x`` is no file header. Lines without any counted
    hunk, as of a patch of OpenCode's, are told by their sign.
    """
    return list(_rows(diff))


def _rows(diff: str) -> Iterator[Row]:
    lines = diff.removesuffix("\n").split("\n") if diff else []
    is_counted = any(map(_HUNK.match, lines))
    old = new = 0
    for line in lines:
        sign = line[:1]
        if old > 0 or new > 0:
            # Some tools cut the blank off an empty line that was kept.
            kind = _KINDS.get(sign or " ", "hunk")
            old -= kind in ("del", "same")
            new -= kind in ("add", "same")
        elif head := _HUNK.match(line):
            kind = "hunk"
            old, new = (1 if count is None else int(count) for count in head.groups())
        elif is_counted:
            kind = "note" if sign == "\\" else "hunk"
        else:
            kind = _KINDS.get(sign or " ", "hunk")
        yield Row(kind, line)
