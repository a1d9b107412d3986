"""What the readers of tool calls share: which version made a call, whether it counts, the files its result names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from daemon import records
from daemon.model import FileEdit, Json, Operation, Session
from daemon.transcript.evidence import reads, refusals
from daemon.transcript.tool_calls import Call, absolute, file_edit, first_text, unclear

INEXACT_READ = "final newline and line ends do not show in it"
"""Begins the note of a READ whose text is the file's but for final newline, CR and byte order mark."""
_NOT_AS_TEXT = ("Image read successfully", "PDF read successfully")
_NEWEST_WITH_AFTER = (1, 2, 1)


def version_of(made: Call, session: Session | None) -> str:
    """The OpenCode that made the call: the session's, unless the record has a newer form than that one writes.

    A session keeps the version that began it, also when a newer OpenCode goes on with it.
    """
    version = session.version if session else ""
    number = reads.release(version)
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
        if refusals.saw_change(made):
            return unclear(made, version, [made.path()], refusals.MODIFIED)
        is_refused = refusals.is_by_user(made)
        if not made.is_aborted and not is_refused:
            return []
        names = dict.fromkeys([made.path(), *(file["path"] for file in files(made)), *more(made)])
        if is_refused:
            told = [path for path in names if path is not None]
            return [file_edit(made, version, path, Operation.REFUSED, note="not allowed") for path in told]
        return unclear(made, version, names, f"{made.tool} was cut off: {made.status}")

    return checked


def listed(value: Any) -> list[Any]:
    """A list out of somebody else's record, or an empty one."""
    return value if isinstance(value, list) else []


def files(made: Call) -> list[Json]:
    """`metadata.files` with each file's absolute path as `path`, whichever name its version gave it."""
    found = []
    for item in listed(made.metadata.get("files")):
        name = first_text(records.table(item), ("filePath", "file", "path", "relativePath"))
        path = absolute(name, made.base)
        if path is not None:
            found.append(records.table(item) | {"path": path})
    return found


def recorded(diff: Any) -> dict[str, Any]:
    """`before` and `after` as OpenCode up to 1.2.1 recorded them; both or nothing."""
    table = records.table(diff)
    before, after = table.get("before"), table.get("after")
    # Equal ones tell something too: a formatter may have set the change back. Two empty ones tell nothing.
    both = isinstance(before, str) and isinstance(after, str) and bool(before or after)
    return {"before": before, "after": after} if both else {}


def glance(made: Call, version: str, path: str) -> list[FileEdit]:
    """That `path` was read as a picture or document: of its text nothing is known by it."""
    output = records.text(made.state.get("output"))
    if not output.startswith(_NOT_AS_TEXT):
        return []
    return [file_edit(made, version, path, Operation.READ_RANGE, note="not as text")]


def observation(made: Call, version: str, path: str, seen: reads.Seen) -> FileEdit:
    """What a read shows of `path`: all of it, or some lines."""
    if seen.is_whole:
        note = "" if seen.is_exact else INEXACT_READ
        return file_edit(made, version, path, Operation.READ, content=seen.text, note=note)
    content = None if seen.is_cut else seen.text
    return file_edit(made, version, path, Operation.READ_RANGE, content=content, note=seen.span)
