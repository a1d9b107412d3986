"""The text that apply_patch takes, as the files it names and their hunks.

Follows what OpenCode's reader does, quirks included, since the recorded result is what that reader made of the text: a
file name runs to the end of its line, a line without ``+``, ``-`` or space in front is dropped, a line that begins with
``***`` ends a file. It parses; it applies nothing (files.matching does) and never raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Hunk: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], bool]
"""Context line, lines before, lines after, whether ``*** End of File`` followed: as FileEdit.hunks."""

_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"
_HEREDOC = re.compile(r"(?:cat\s+)?<<['\"]?(\w+)['\"]?\s*\n([\s\S]*?)\n\1\s*")
_KINDS: dict[str, Literal["add", "delete", "update"]] = {_ADD: "add", _DELETE: "delete", _UPDATE: "update"}


@dataclass(slots=True)
class FilePatch:
    """One file of a patch; `path` and `move_to` as written, mostly relative; `contents` belongs to an added file."""

    kind: Literal["add", "delete", "update"]
    path: str
    move_to: str = ""
    contents: str = ""
    hunks: list[Hunk] = field(default_factory=list)
    is_complete: bool = True
    """False where lines were skipped whose reading differs between OpenCode's versions."""


def parse(text: str) -> list[FilePatch]:
    """The files of a patch in order; empty when the markers are missing."""
    text = text.strip()
    heredoc = _HEREDOC.fullmatch(text)
    lines = (heredoc[2] if heredoc else text).split("\n")
    marks = [line.strip() for line in lines]
    if "*** Begin Patch" not in marks or "*** End Patch" not in marks:
        return []
    begin, end = marks.index("*** Begin Patch"), marks.index("*** End Patch")
    files: list[FilePatch] = []
    at = begin + 1
    while at < end:
        kind = next((head for head in _KINDS if lines[at].startswith(head)), None)
        name = lines[at][len(kind) :].strip() if kind else ""
        at += 1
        if kind is None or not name:
            if files and lines[at - 1] and not lines[at - 1].startswith("***"):
                files[-1].is_complete = False  # hunks behind "*** End of File" are passed over
            continue
        file = FilePatch(_KINDS[kind], name)
        files.append(file)
        if kind == _ADD:
            at = _read_added(file, lines, at, end)
        elif kind == _UPDATE:
            if at < end and lines[at].startswith(_MOVE):
                file.move_to = lines[at][len(_MOVE) :].strip()
                at += 1
            at = _read_hunks(file, lines, at, end)
    return files


def _read_added(file: FilePatch, lines: list[str], at: int, end: int) -> int:
    added = []
    while at < end and not lines[at].startswith("***"):
        if lines[at].startswith("+"):
            added.append(lines[at][1:])
        at += 1
    # One newline ends the file, whether or not the last line was an empty one.
    joined = "\n".join(added)
    file.contents = joined if not joined or joined.endswith("\n") else joined + "\n"
    return at


def _read_hunks(file: FilePatch, lines: list[str], at: int, end: int) -> int:
    while at < end and not lines[at].startswith("***"):
        if not lines[at].startswith("@@"):
            file.is_complete = file.is_complete and not lines[at]
            at += 1
            continue
        context = lines[at][2:].strip()
        old: list[str] = []
        new: list[str] = []
        at += 1
        while at < end and not lines[at].startswith(("@@", "***")):
            sign, rest = lines[at][:1], lines[at][1:]
            if sign in (" ", "-"):
                old.append(rest)
            if sign in (" ", "+"):
                new.append(rest)
            at += 1
        ends_file = at < end and lines[at].strip() == "*** End of File"
        file.hunks.append((context, tuple(old), tuple(new), ends_file))
    return at
