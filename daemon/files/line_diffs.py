"""Compares lines: the unified diff of two texts, and the message that last wrote each line of a file.

The work is bounded; lines between the first and the last difference that would take longer count as replaced. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from daemon.files.history import FileHistory, Revision

CONTEXT: Final = 3
MOST_COMPARED: Final = 2000
"""Lines between the first and the last change; if there are more, all of them are displayed as replaced."""
_PLACE = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified(old: str, new: str) -> str:
    """The hunks of a unified diff, without a header. Only a newline ends a line; a missing last newline is marked.

    Linear except for the lines between the first and the last difference.
    """
    before, after = _lines(old), _lines(new)
    start = _same(before, after)
    end = _same(before[start:][::-1], after[start:][::-1])
    top, bottom = max(0, start - CONTEXT), max(0, end - CONTEXT)
    old_lines, new_lines = before[top : len(before) - bottom], after[top : len(after) - bottom]
    if max(len(old_lines), len(new_lines)) > MOST_COMPARED:
        return _replaced(before, after, start, end)
    hunks = list(difflib.unified_diff(old_lines, new_lines, n=CONTEXT))[2:]
    return "".join(_shifted(line, top) if line.startswith("@@") else _ended(line) for line in hunks)


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _same(first: Sequence[str], second: Sequence[str]) -> int:
    number = 0
    for old_line, new_line in zip(first, second, strict=False):
        if old_line != new_line:
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


_MOST_COMPARED = 4000
"""Lines of the differing middle of two revisions that we compare one by one; a larger middle counts as rewritten."""

_MOST_COUNTED = 500
"""The same for counting how many differ: of a larger middle, lines that only changed places count as kept."""
_LARGEST = 4 << 20
"""Bytes of a content whose lines are counted."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the newest known content, with the revision that last wrote it."""

    text: str
    time: int
    session_id: str
    message_id: str
    tool: str
    grade: str


def blame(history: FileHistory) -> list[Line]:
    """Each line of the newest revision with whole content; empty if there is none, or it is not text.

    A line from an observation was written before it; its revision is the first that has it. A line that a revert
    restored belongs to its original writer.
    """
    lines, owners = _owned(history)
    return [
        Line(text.rstrip("\r\n"), owner.time, owner.session_id, owner.message_id, owner.tool, owner.grade.value)
        for text, owner in zip(lines, owners, strict=True)
    ]


def authors(history: FileHistory) -> list[Revision]:
    """The revision that wrote each line, as `blame` says it."""
    return _owned(history)[1]


def _owned(history: FileHistory) -> tuple[list[str], list[Revision]]:
    """The lines of the newest revision with whole content, with their ends, and the revision that wrote each."""
    lines: list[str] = []
    owners: list[Revision] = []
    before: dict[str, list[Revision]] = {}
    for revision in history.revisions:
        content = revision.content
        if content is None:
            continue
        try:
            now = content.decode("utf-8").splitlines(keepends=True)
        except UnicodeDecodeError:
            lines, owners = [], []
            continue
        known = before.get(revision.sha256) if revision.tool == "revert" else None
        owners = _carried(lines, owners, now, revision) if known is None else known
        lines = now
        before[revision.sha256] = owners
    return lines, owners


def counts(before: bytes, after: bytes) -> tuple[int, int] | None:
    """How many lines were added and removed; None if a content is not text, or too large."""
    if max(len(before), len(after)) > _LARGEST or b"\0" in before or b"\0" in after:
        return None
    try:
        old, new = (content.decode("utf-8").splitlines(keepends=True) for content in (before, after))
    except UnicodeDecodeError:
        return None
    start, end = _common(old, new)
    was, now = old[start : len(old) - end], new[start : len(new) - end]
    if len(was) + len(now) > _MOST_COUNTED:
        common = (Counter(was) & Counter(now)).total()
    elif was and now:
        common = sum(
            block.size for block in difflib.SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
        )
    else:
        common = 0
    return len(now) - common, len(was) - common


def _carried(old: list[str], owners: list[Revision], new: list[str], revision: Revision) -> list[Revision]:
    """The owners of `new`: those of `old` for lines that stayed, `revision` for the others."""
    start, end = _common(old, new)
    owners_between = [revision] * (len(new) - start - end)
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if before and after and len(before) + len(after) <= _MOST_COMPARED:
        for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            owners_between[block.b : block.b + block.size] = owners[start + block.a : start + block.a + block.size]
    return (
        [*owners[:start], *owners_between, *owners[len(owners) - end :]] if end else [*owners[:start], *owners_between]
    )


def _common(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines are the same at the beginning, and at the end."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    return start, next((n for n in range(most - start) if old[-1 - n] != new[-1 - n]), most - start)
