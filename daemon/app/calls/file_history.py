"""What changed from one revision of a file to the next, as unified diffs that are bounded and redacted.

The texts are redacted before they are compared, so that a secret over several lines is hidden in all of them. When the
bounds are reached it is the oldest changes that are left out, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from daemon.control.calls import Progress
from daemon.files import Revision
from daemon.files.line_diffs import unified
from daemon.model import Json
from daemon.redact import redact

MOST_TEXT: Final = 4 << 20
"""Characters of all diffs of one answer together."""
MOST_READ: Final = 64 << 20
"""Bytes of content that are compared for one answer."""


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
