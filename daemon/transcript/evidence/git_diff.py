"""What a `git diff` over several files tells of each: which blob it had, which it has, and the lines in between.

OpenCode stores one with a revert (`revert.diff`): from the snapshot tree before it to the files after it. Blank space
at the end of the whole text is cut off there. A result of `patched` is to be held against the blob ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from daemon.transcript.paths import unquoted

_INDEX = re.compile(r"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})(?: \d+)?", re.ASCII)
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", re.ASCII)
_NO_NEWLINE = b"\\"


@dataclass(frozen=True, slots=True)
class Change:
    """One path of a diff. `source` is the path it had before; `blob` begins the git id of its content afterwards.

    `blob` is empty where the content stayed as it was. `is_gone`: there is no file any more. `hunks` are the lines
    from the first ``@@`` on.
    """

    source: str
    blob: str = ""
    is_gone: bool = False
    hunks: tuple[str, ...] = ()


def changes(diff: str) -> dict[str, Change] | None:
    """Path -> what became of it; None where the diff cannot be read, so that nothing follows from it."""
    changes_by_path: dict[str, Change] = {}
    sections = re.split(r"^diff --git ", diff.strip("\n"), flags=re.MULTILINE)
    if sections[0].strip():
        return None
    for section in sections[1:]:
        lines = section.split("\n")
        at = next((number for number, line in enumerate(lines) if line.startswith("@@ ")), len(lines))
        paths = _paths(lines[0], lines[1:at])
        if paths is None:
            return None
        old, new = paths
        index = next(filter(None, map(_INDEX.fullmatch, lines[1:at])), None)
        is_gone = any(line.startswith("deleted file mode ") for line in lines[1:at])
        changes_by_path[new] = Change(old, index[2] if index and not is_gone else "", is_gone, tuple(lines[at:]))
        if any(line.startswith("rename from ") for line in lines[1:at]):
            changes_by_path[old] = replace(changes_by_path.get(old, Change(old)), is_gone=True)
    return changes_by_path


_NAMES = (("rename from ", "", 0), ("rename to ", "", 1), ("--- ", "a/", 0), ("+++ ", "b/", 1))
"""How a line begins that names one side: the mark, what stands before the path, and which side."""


def _paths(title: str, head: list[str]) -> tuple[str, str] | None:
    """The path before and after, by the lines that name it alone, else by the title, which names both."""
    named = ["", ""]
    for line in head:
        for mark, prefix, side in _NAMES:
            if line.startswith(mark):
                name = unquoted(line[len(mark) :].removesuffix("\t"))
                if name == "/dev/null":
                    continue
                if not name.startswith(prefix):
                    return None
                named[side] = name[len(prefix) :]
    if not any(named):
        half = (len(title) - 1) // 2
        old, new = unquoted(title[:half]), unquoted(title[half + 1 :])
        named = [old[2:], new[2:]] if old[:2] == "a/" and new[:2] == "b/" and old[2:] == new[2:] else named
    old, new = named[0] or named[1], named[1] or named[0]
    return (old, new) if old else None


def patched(before: bytes, hunks: tuple[str, ...]) -> bytes | None:
    """`before` with the hunks applied where they say; None where they do not fit."""
    old = re.findall(rb"[^\n]*\n|[^\n]+", before)
    made: list[bytes] = []
    at = 0
    lines = [line.encode("utf-8", "surrogatepass") for line in hunks]
    for first, body in _hunks(lines):
        if not at <= first <= len(old):
            return None
        made += old[at:first]
        at = first
        for sign, words in body:
            if sign != b"+":
                if at >= len(old) or old[at] != words:
                    return None
                at += 1
            if sign != b"-":
                made.append(words)
    return b"".join([*made, *old[at:]])


def _hunks(lines: list[bytes]) -> Iterator[tuple[int, list[tuple[bytes, bytes]]]]:
    """Each hunk: how many lines stand before it in the old text, and its lines as (sign, text with its newline)."""
    first = -1
    body: list[tuple[bytes, bytes]] = []
    for line in lines:
        header = _HUNK.match(line)
        if header is not None:
            if first >= 0:
                yield first, body
            first, body = int(header[1]) - (header[2] != b"0"), []
        elif line[:1] == _NO_NEWLINE and body:
            body[-1] = body[-1][0], body[-1][1].removesuffix(b"\n")
        elif first >= 0:
            body.append((line[:1], line[1:] + b"\n"))
    if first >= 0:
        yield first, body
