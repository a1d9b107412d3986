"""The lines around a change as an edit's result shows them (1.15 and later), without common indentation and CRs.

They are no patch (opencode-formats.md, Records); they tell at which line it was, and what stood there.
"""

from __future__ import annotations

import re

from daemon import records
from daemon.transcript.evidence.call_results import files
from daemon.transcript.patch_text import Hunk
from daemon.transcript.tool_calls import Call, valid_text

NO_NEWLINE = "\\ No newline at end of file"
"""Stands behind the last line of a side that ends without a newline."""
_LONGEST = 256 * 1024  # bytes
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@.*", re.ASCII)


def of_edit(made: Call, path: str) -> tuple[Hunk, ...]:
    """The hunks that the result of an edit of `path` shows; none where it shows none, or not whole ones."""
    texts = [records.table(made.metadata.get("filediff")).get("patch"), made.metadata.get("diff")]
    told = files(made)
    if len(told) == 1 and told[0]["path"] == path:
        texts.append(told[0].get("patch"))
    return next((hunks(text) for text in texts if isinstance(text, str) and text), ())


def hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff of one file; none if any of them is not whole, or the diff is very long."""
    if len(diff) > _LONGEST or len(diff.encode("utf-8", "surrogatepass")) > _LONGEST:
        return ()
    lines = valid_text(diff).split("\n")
    at = next((number for number, line in enumerate(lines) if _HEADER.fullmatch(line)), len(lines))
    found: list[Hunk] = []
    while at < len(lines):
        header = _HEADER.fullmatch(lines[at])
        if header is None:
            return tuple(found) if not "".join(lines[at:]) else ()
        hunk, at = _hunk(header, lines, at + 1)
        if hunk is None:
            return ()
        found.append(hunk)
    return tuple(found)


def _hunk(header: re.Match[str], lines: list[str], at: int) -> tuple[Hunk | None, int]:
    before, after = (int(header[number] or 1) if header[number] != "0" else 0 for number in (2, 4))
    old: list[str] = []
    new: list[str] = []
    last = ""
    while at < len(lines):
        sign, text = lines[at][:1], lines[at][1:]
        if sign == "\\" and last:
            old += [NO_NEWLINE] if last in " -" else []
            new += [NO_NEWLINE] if last in " +" else []
            before, after = before + (last in " -"), after + (last in " +")
            last = ""
        elif sign and sign in " -+" and (len(old) < before or len(new) < after):
            old += [text] if sign in " -" else []
            new += [text] if sign in " +" else []
            last = sign
        else:
            break
        at += 1
    if len(old) != before or len(new) != after:
        return None, at
    place = f"@@ -{header[1]},{header[2] or 1} +{header[3]},{header[4] or 1} @@"
    return (place, tuple(old), tuple(new), False), at
