"""Shared by the readers of tool calls: the version that made a call, whether it counts, and its result or error.

The error texts are those of the released bundles; an ambiguous error is ignored.

Three forms of a read's output were seen (opencode-formats.md, Records and Tools): ``<file>`` with ``00001| `` (1.0),
``<content>1: `` (1.1.65) and ``<content>`` on its own line with ``1: `` behind (1.18). Up to 1.1.65 the text is split
at newlines only, so that final newline and CR show; later versions show neither. No version shows a byte order mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daemon import records
from daemon.model import FileEdit, Json, Operation, Session
from daemon.transcript.tool_calls import Call, absolute, file_edit, first_text, release, unclear, valid_text

INEXACT_READ = "final newline and line ends do not show in it"
"""Begins the note of a READ whose text is the file's except for final newline, CR and byte order mark."""
_NOT_AS_TEXT = ("Image read successfully", "PDF read successfully")
_NEWEST_WITH_AFTER = (1, 2, 1)
MODIFIED = "OpenCode found it modified since it was last read"
"""The note of a call that was refused for this reason: the change came from outside, before the call."""

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


def version_of(tool_call: Call, session: Session | None) -> str:
    """The OpenCode version that made the call: the session's, unless the record has a newer form than that version's.

    A session keeps the version that created it, even if a newer OpenCode continues it.
    """
    version = session.version if session else ""
    number = release(version)
    newer = "display" in tool_call.metadata or "patch" in records.table(tool_call.metadata.get("filediff"))
    newer = newer or any("patch" in records.table(file) for file in listed(tool_call.metadata.get("files")))
    return "" if number is not None and number <= _NEWEST_WITH_AFTER and newer else version


def settled(
    reader: Callable[[Call, str], list[FileEdit]],
    more: Callable[[Call, str], Iterable[str]] = lambda _call, _version: (),
) -> Callable[[Call, str], list[FileEdit]]:
    """`reader` for completed calls only; an interrupted call may have changed the files it names and those of `more`.

    A call that the user did not allow is REFUSED, without a text: it shows the intent, and nothing of the file.
    """

    def checked(tool_call: Call, version: str) -> list[FileEdit]:
        if tool_call.status == "completed":
            return reader(tool_call, version)
        if saw_change(tool_call):
            return unclear(tool_call, version, [tool_call.path()], MODIFIED)
        is_refused = is_by_user(tool_call)
        if not tool_call.is_aborted and not is_refused:
            return []
        names = dict.fromkeys(
            [tool_call.path(), *(file["path"] for file in files(tool_call)), *more(tool_call, version)]
        )
        if is_refused:
            return [
                file_edit(tool_call, version, path, Operation.REFUSED, note="not allowed")
                for path in names
                if path is not None
            ]
        return unclear(tool_call, version, names, f"{tool_call.tool} was cut off: {tool_call.status}")

    return checked


def listed(value: object) -> list[object]:
    """A list from a record, or an empty one."""
    return value if isinstance(value, list) else []


def files(tool_call: Call) -> list[Json]:
    """`metadata.files` with each file's absolute path as `path`, whichever name its version gave it."""
    entries = []
    for item in listed(tool_call.metadata.get("files")):
        name = first_text(records.table(item), ("filePath", "file", "path", "relativePath"))
        path = absolute(name, tool_call.base)
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
    # Equal texts are evidence too: a formatter may have undone the change. Two empty texts are none.
    if not isinstance(before, str) or not isinstance(after, str) or not (before or after):
        return None
    return Texts(before, after)


def read_as_picture(tool_call: Call, version: str, path: str) -> list[FileEdit]:
    """The READ_RANGE of a file that was read as a picture or document, which shows nothing of its text."""
    output = records.text(tool_call.state.get("output"))
    if not output.startswith(_NOT_AS_TEXT):
        return []
    return [file_edit(tool_call, version, path, Operation.READ_RANGE, note="not as text")]


def observation(tool_call: Call, version: str, path: str, lines: ReadLines) -> FileEdit:
    """The edit for a read of `path`: the whole file, or some lines."""
    if lines.is_whole:
        note = "" if lines.is_exact else INEXACT_READ
        return file_edit(tool_call, version, path, Operation.READ, content=lines.text, note=note)
    content = None if lines.is_cut else lines.text
    return file_edit(tool_call, version, path, Operation.READ_RANGE, content=content, note=lines.span)


def is_not_found(tool_call: Call) -> bool:
    """Whether an edit was refused because its old text was not found in the file."""
    return tool_call.status == "error" and not tool_call.is_aborted and _NOT_FOUND.match(_error(tool_call)) is not None


def saw_change(tool_call: Call) -> bool:
    """Whether a call was refused because the file had changed since it was last read."""
    return tool_call.status == "error" and "has been modified since it was last read" in _error(tool_call)


def is_by_user(tool_call: Call) -> bool:
    """Whether the user, or a rule of theirs, did not allow the call."""
    return tool_call.status == "error" and _BY_USER.match(_error(tool_call)) is not None


def is_before_work(tool_call: Call) -> bool:
    """Whether the call was refused as a whole, before anything was done."""
    error = _error(tool_call)
    return is_by_user(tool_call) or (_NOT_FOUND.match(error) is None and _BEFORE_WORK.search(error) is not None)


def found_no_file(tool_call: Call, version: str, path: str) -> bool:
    """Whether a read found no file at `path`. False before 1.1.65, which said the same of a folder."""
    number = release(version)
    error = _error(tool_call)
    begin = _NO_FILE.match(error)
    if tool_call.status != "error" or begin is None or number is None or number < _FIRST_WITH_FOLDERS:
        return False
    return absolute(error[begin.end() :].partition(_SUGGESTION)[0], tool_call.base) == path


def _error(tool_call: Call) -> str:
    return records.text(tool_call.state.get("error"))


# -- what a read shows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadLines:
    """Lines of a file as displayed: `first` counts from 1; `path` is as the output names it, or empty.

    `is_whole`: these are all lines, none cut. `is_exact`: joined by newlines they are the file's text, except for a
    byte order mark; otherwise final newline and line ends are unknown. `is_cut`: some line is not displayed in full.
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
    """The lines in a read's output; None for a folder, an image, or an unknown form."""
    header = _HEADER.match(output)
    if header is None:
        return None
    is_old = header["path"] is None
    lines, first, trailer = _numbered(output[header.end() :].split("\n"), is_old=is_old)
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
        and _ends(trailer, len(lines), is_old),
        is_exact=not is_streamed,
        is_cut=is_cut,
        path=header["path"] or "",
    )


def _numbered(lines: list[str], *, is_old: bool) -> tuple[list[str], int, list[str]]:
    """The numbered lines, the number of the first, and the lines after them."""
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


def _ends(trailer: list[str], count: int, is_old: bool) -> bool:
    """Whether what follows the last line says that it was the last."""
    if is_old and trailer[:1] == ["</file>"]:
        return count > 0  # 1.0.61 says something only when lines are left
    if not count and trailer[:1] == [""]:
        trailer = trailer[1:] if trailer[1:2] == [""] else trailer
    total = _TOTAL.fullmatch(trailer[1]) if len(trailer) > 2 and trailer[0] == "" else None
    return total is not None and int(total[1]) == count and trailer[2] in ("</content>", "</file>")
