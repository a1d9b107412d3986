"""What changed from one revision of a file to the next, as unified diffs that are bounded and redacted.

The texts are redacted before they are compared, so that a secret over several lines is hidden in all of them. When the
bounds are reached it is the oldest changes that are left out, and that is said.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

from daemon.control.protocol import Progress
from daemon.files import Revision
from daemon.model import Json
from daemon.redact import redact

CONTEXT: Final = 3
MOST_TEXT: Final = 4 << 20
"""Characters of all diffs of one answer together."""
MOST_READ: Final = 64 << 20
"""Bytes of content that are compared for one answer."""
MOST_COMPARED: Final = 2000
"""Lines between the first and the last change; beyond that all of them are shown as replaced."""
_PLACE = re.compile(r"^@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def changes(revisions: Sequence[Revision], progress: Progress) -> list[Json]:
    """For each revision `diff`, what changed since the last known content, and `diff_note`; neither where unknown."""
    made: list[Json] = [{} for _ in revisions]
    left_text, left_read = MOST_TEXT, MOST_READ
    known = [number for number, revision in enumerate(revisions) if revision.whole is not None or revision.deleted]
    for done, (before, number) in enumerate(reversed(list(zip([-1, *known], known, strict=False)))):
        if left_text <= 0 or left_read <= 0:
            made[number] = {"diff": "", "diff_note": "the change is left out: together they would be too long"}
            continue
        old = b"" if before < 0 else revisions[before].content or b""
        new = revisions[number].content or b""
        left_read -= len(old) + len(new)
        made[number] = _change(old, new)
        left_text -= len(made[number]["diff"])
        if done % 100 == 0:
            progress({"phase": "comparing revisions", "done": done, "total": len(known)})
    return made


def _change(old: bytes, new: bytes) -> Json:
    if old == new:
        return {"diff": "", "diff_note": "no change"}
    try:
        texts = [redact(data.decode()) for data in (old, new)]
    except UnicodeDecodeError:
        return {"diff": "", "diff_note": f"not text: {len(old)} bytes became {len(new)}"}
    if "\0" in texts[0] or "\0" in texts[1]:
        return {"diff": "", "diff_note": f"binary: {len(old)} bytes became {len(new)}"}
    text = unified(*texts)
    if len(text) > MOST_TEXT:
        return {"diff": "", "diff_note": f"too long to show: {len(old)} bytes became {len(new)}"}
    return {"diff": text, "diff_note": "" if text else "only what is redacted changed"}


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
