"""The text that apply_patch takes, as the files it names and their hunks.

Follows what OpenCode's reader does, quirks included, since the recorded result is what that reader made of the text: a
file name runs to the end of its line, a line without ``+``, ``-`` or space in front is dropped, a line that begins with
``***`` ends a file. It parses; it applies nothing (files.apply does) and never raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from daemon.transcript.javascript import BLANK_RUN, BLANKS
from daemon.transcript.tool_calls import release

Hunk: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...], bool]
"""Context line, lines before, lines after, whether ``*** End of File`` followed: as FileEdit.hunks."""

_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File:", "*** Delete File:", "*** Update File:", "*** Move to:"
_HEREDOC = re.compile(
    rf"(?:cat{BLANK_RUN})?<<['\"]?([A-Za-z0-9_]+)['\"]?(?:{BLANK_RUN})?\n([\s\S]*?)\n\1(?:{BLANK_RUN})?"
)
_LAST_CUT = (1, 2, 6)
_FIRST_OTHER = (2, 0, 0)
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


def parse(text: str, version: str = "") -> list[FilePatch]:
    """The files of a patch in order; empty when the markers are missing.

    Up to 1.2.6 a file name with a colon was cut off there; for a version that is not known it is taken to be whole.
    All of 1.x passes the same lines over; only OpenCode 2 reads, or refuses, some of them.
    """
    text = text.strip(BLANKS)
    number = release(version)
    cuts = number is not None and number <= _LAST_CUT
    heredoc = _HEREDOC.fullmatch(text)
    lines = (heredoc[2] if heredoc else text).split("\n")
    marks = [line.strip(BLANKS) for line in lines]
    if "*** Begin Patch" not in marks or "*** End Patch" not in marks:
        return []
    begin, end = marks.index("*** Begin Patch"), marks.index("*** End Patch")
    files: list[FilePatch] = []
    at = begin + 1
    while at < end:
        kind = next((head for head in _KINDS if lines[at].startswith(head)), None)
        name = _name(lines[at], cuts) if kind else ""
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
                file.move_to = _name(lines[at], cuts)
                at += 1
            at = _read_hunks(file, lines, at, end)
    if number is not None and number < _FIRST_OTHER:
        for file in files:
            file.is_complete = True
    return files


def _name(line: str, cuts: bool) -> str:
    """The file name behind a mark's own colon."""
    name = line.partition(":")[2]
    return (name.partition(":")[0] if cuts else name).strip(BLANKS)


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
        context = lines[at][2:].strip(BLANKS)
        old: list[str] = []
        new: list[str] = []
        at += 1
        while at < end and not lines[at].startswith(("@@", "***")):
            sign, text = lines[at][:1], lines[at][1:]
            if sign in (" ", "-"):
                old.append(text)
            if sign in (" ", "+"):
                new.append(text)
            at += 1
        ends_file = at < end and lines[at].strip() == "*** End of File"
        file.hunks.append((context, tuple(old), tuple(new), ends_file))
    return at
