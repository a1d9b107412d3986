"""What changed from one text to another, as the hunks of a unified diff; the work it takes is bounded. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

CONTEXT: Final = 3
MOST_COMPARED: Final = 2000
"""Lines between the first and the last change; beyond that all of them are shown as replaced."""
_PLACE = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified(old: str, new: str) -> str:
    """The hunks of a unified diff, without a head. Lines end at newlines only; a missing last one is marked.

    Linear but for the lines between the first and the last difference.
    """
    before, after = _lines(old), _lines(new)
    start = _same(before, after)
    end = _same(before[start:][::-1], after[start:][::-1])
    top, bottom = max(0, start - CONTEXT), max(0, end - CONTEXT)
    one, other = before[top : len(before) - bottom], after[top : len(after) - bottom]
    if max(len(one), len(other)) > MOST_COMPARED:
        return _replaced(before, after, start, end)
    hunks = list(difflib.unified_diff(one, other, n=CONTEXT))[2:]
    return "".join(_shifted(line, top) if line.startswith("@@") else _ended(line) for line in hunks)


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        number += 1
    return number


def _shifted(head: str, lines: int) -> str:
    # An empty side begins at the line before it, which is 0 at the top of the compared part too.
    return _PLACE.sub(lambda m: f"@@ -{int(m[1]) + lines}{m[2]} +{int(m[3]) + lines}{m[4]} @@", head)


def _replaced(before: list[str], after: list[str], start: int, end: int) -> str:
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    head = f"@@ -{start + bool(gone)},{len(gone)} +{start + bool(come)},{len(come)} @@\n"
    return head + "".join(_ended(sign + line) for sign, side in (("-", gone), ("+", come)) for line in side)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
