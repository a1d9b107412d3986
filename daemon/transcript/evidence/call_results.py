"""What the readers of tool calls share: which version made a call, whether it counts, what its result or error shows.

The wordings of errors are those of the released bundles; an error that could mean something else tells nothing.

Three forms of a read's output were seen (opencode-formats.md, Records and Tools): ``<file>`` with ``00001| `` (1.0),
``<content>1: `` (1.1.65) and ``<content>`` on its own line with ``1: `` behind (1.18). Up to 1.1.65 the text is split
at newlines only, so that final newline and CR show; later versions show neither. No version shows a byte order mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from daemon import records
from daemon.model import FileEdit, Json, Operation, Session
from daemon.transcript.tool_calls import Call, absolute, file_edit, first_text, release, unclear, valid_text

INEXACT_READ = "final newline and line ends do not show in it"
"""Begins the note of a READ whose text is the file's but for final newline, CR and byte order mark."""
_NOT_AS_TEXT = ("Image read successfully", "PDF read successfully")
_NEWEST_WITH_AFTER = (1, 2, 1)
MODIFIED = "OpenCode found it modified since it was last read"
"""The note of what a call that was refused for this tells: the change came from outside, before the call."""

_NOT_FOUND = re.compile(r"(?:Error: )?(?:oldString not found in content$|Could not find oldString in the file\.)")
"""1.0; 1.1.65 and later, and OpenCode 2, which looks for exact matches only. Up to 0.1 one text stood for "not found"
and "found twice", so that it is none of these."""
_BEFORE_WORK = re.compile(
    r"invalid arguments|unavailable tool|permission|rejected|denied|must have been read|has been modified since|"
    r"must be different|file not found|not found:|is a directory",
    re.IGNORECASE,
)
_BY_USER = re.compile(
    r"(?:Error: )?The user (?:rejected permission to use|has specified a rule which prevents you from using) this\b"
)
_NO_FILE = re.compile(r"(?:Error: )?File not found: ")
_SUGGESTION = "\n\nDid you mean one of these?\n"
_FIRST_WITH_FOLDERS = (1, 1, 65)
_HEADER = re.compile(r"(?:<path>(?P<path>[^\n]*)</path>\n<type>file</type>\n<content>(?P<break>\n?)|<file>\n)")
_TOTAL = re.compile(r"\(End of file - total (\d+) lines\)")
_LONGEST_LINE = 2000  # UTF-16 units; a longer line has been cut
_FIRST_INEXACT = (1, 1, 66)


def version_of(made: Call, session: Session | None) -> str:
    """The OpenCode that made the call: the session's, unless the record has a newer form than that one writes.

    A session keeps the version that began it, also when a newer OpenCode goes on with it.
    """
    version = session.version if session else ""
    number = release(version)
    newer = "display" in made.metadata or "patch" in records.table(made.metadata.get("filediff"))
    newer = newer or any("patch" in records.table(file) for file in listed(made.metadata.get("files")))
    return "" if number is not None and number <= _NEWEST_WITH_AFTER and newer else version


def settled(
    reader: Callable[[Call, str], list[FileEdit]], more: Callable[[Call], Iterable[str]] = lambda _: ()
) -> Callable[[Call, str], list[FileEdit]]:
    """`reader` for completed calls only; one that was cut off may have changed what it names (`more`: also these).

    One that the user did not allow is REFUSED, without a text: it tells that it was wanted, and nothing of the file.
    """

    def checked(made: Call, version: str) -> list[FileEdit]:
        if made.status == "completed":
            return reader(made, version)
        if saw_change(made):
            return unclear(made, version, [made.path()], MODIFIED)
        is_refused = is_by_user(made)
        if not made.is_aborted and not is_refused:
            return []
        names = dict.fromkeys([made.path(), *(file["path"] for file in files(made)), *more(made)])
        if is_refused:
            return [
                file_edit(made, version, path, Operation.REFUSED, note="not allowed")
                for path in names
                if path is not None
            ]
        return unclear(made, version, names, f"{made.tool} was cut off: {made.status}")

    return checked


def listed(value: object) -> list[Any]:
    """A list out of somebody else's record, or an empty one."""
    return value if isinstance(value, list) else []


def files(made: Call) -> list[Json]:
    """`metadata.files` with each file's absolute path as `path`, whichever name its version gave it."""
    entries = []
    for item in listed(made.metadata.get("files")):
        name = first_text(records.table(item), ("filePath", "file", "path", "relativePath"))
        path = absolute(name, made.base)
        if path is not None:
            entries.append(records.table(item) | {"path": path})
    return entries


@dataclass(frozen=True, slots=True)
class Texts:
    """A file's text before and after a change."""

    before: str
    after: str


def recorded(diff: object) -> Texts | None:
    """The texts before and after that OpenCode up to 1.2.1 recorded; None unless both are there."""
    table = records.table(diff)
    before, after = table.get("before"), table.get("after")
    # Equal ones tell something too: a formatter may have set the change back. Two empty ones tell nothing.
    if not isinstance(before, str) or not isinstance(after, str) or not (before or after):
        return None
    return Texts(before, after)


def read_as_picture(made: Call, version: str, path: str) -> list[FileEdit]:
    """That `path` was read as a picture or document: of its text nothing is known by it."""
    output = records.text(made.state.get("output"))
    if not output.startswith(_NOT_AS_TEXT):
        return []
    return [file_edit(made, version, path, Operation.READ_RANGE, note="not as text")]


def observation(made: Call, version: str, path: str, lines: ReadLines) -> FileEdit:
    """What a read shows of `path`: all of it, or some lines."""
    if lines.is_whole:
        note = "" if lines.is_exact else INEXACT_READ
        return file_edit(made, version, path, Operation.READ, content=lines.text, note=note)
    content = None if lines.is_cut else lines.text
    return file_edit(made, version, path, Operation.READ_RANGE, content=content, note=lines.span)


def is_not_found(made: Call) -> bool:
    """Whether an edit was refused because its old text was not found in the file."""
    return made.status == "error" and not made.is_aborted and _NOT_FOUND.match(_error(made)) is not None


def saw_change(made: Call) -> bool:
    """Whether a call was refused because the file had changed since it was last read."""
    return made.status == "error" and "has been modified since it was last read" in _error(made)


def is_by_user(made: Call) -> bool:
    """Whether the user, or a rule of theirs, did not allow the call."""
    return made.status == "error" and _BY_USER.match(_error(made)) is not None


def is_before_work(made: Call) -> bool:
    """Whether the call was refused as a whole, before anything was done."""
    error = _error(made)
    return is_by_user(made) or (_NOT_FOUND.match(error) is None and _BEFORE_WORK.search(error) is not None)


def found_no_file(made: Call, version: str, path: str) -> bool:
    """Whether a read found nothing at `path`. Versions before 1.1.65 said so of a folder, too: then it is not known."""
    number = release(version)
    error = _error(made)
    begin = _NO_FILE.match(error)
    if made.status != "error" or begin is None or number is None or number < _FIRST_WITH_FOLDERS:
        return False
    return absolute(error[begin.end() :].partition(_SUGGESTION)[0], made.base) == path


def _error(made: Call) -> str:
    return records.text(made.state.get("error"))


# -- what a read shows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Lines of a file as shown: `first` counts from 1; `path` is as the output names it, empty where it does not.

    `is_whole`: these are all lines, none cut. `is_exact`: joined by newlines they are the file's text, but for a byte
    order mark; otherwise final newline and line ends are not known. `is_cut`: some line is not shown to its end.
    """

    lines: tuple[str, ...]
    first: int
    is_whole: bool
    is_exact: bool
    is_cut: bool
    path: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def span(self) -> str:
        return f"lines {self.first} to {self.first + len(self.lines) - 1}"


def read_lines(output: str, metadata: Json, version: str) -> ReadLines | None:
    """The lines that a read shows; None for a folder, an image, or a form that is not known."""
    header = _HEADER.match(output)
    if header is None:
        return None
    is_old = header["path"] is None
    lines, first, rest = _numbered(output[header.end() :].split("\n"), is_old=is_old)
    if not lines and first != 1:
        return None
    is_cut = any(len(line.encode("utf-16-le", "surrogatepass")) > 2 * _LONGEST_LINE for line in lines)
    display = records.table(metadata.get("display"))
    number = release(version)
    is_streamed = bool(header["break"]) or bool(display) or number is None or number >= _FIRST_INEXACT
    return ReadLines(
        lines=tuple(valid_text(line) for line in lines),
        first=first,
        is_whole=first == 1
        and not is_cut
        and metadata.get("truncated") is not True
        and _ends(rest, len(lines), is_old),
        is_exact=not is_streamed,
        is_cut=is_cut,
        path=header["path"] or "",
    )


def _numbered(lines: list[str], *, is_old: bool) -> tuple[list[str], int, list[str]]:
    """The numbered lines, the first one's number, and what stands behind them."""
    form = re.compile(r"(\d{5,})\| " if is_old else r"(\d+): ")
    start = form.match(lines[0])
    if start is None:
        return [], 1, lines
    first = int(start[1])
    numbered = []
    for number, line in enumerate(lines, first):
        prefix = f"{number:05d}| " if is_old else f"{number}: "
        if not line.startswith(prefix):
            break
        numbered.append(line[len(prefix) :])
    return numbered, first, lines[len(numbered) :]


def _ends(rest: list[str], count: int, is_old: bool) -> bool:
    """Whether what follows the last line says that it was the last."""
    if is_old and rest[:1] == ["</file>"]:
        return count > 0  # 1.0.61 says something only when lines are left
    if not count and rest[:1] == [""]:
        rest = rest[1:] if rest[1:2] == [""] else rest
    total = _TOTAL.fullmatch(rest[1]) if len(rest) > 2 and rest[0] == "" else None
    return total is not None and int(total[1]) == count and rest[2] in ("</content>", "</file>")
