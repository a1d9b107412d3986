"""Where a path may have changed although none of its own edits says so: reverts, and commands that name a folder.

A revert restores files and is itself recorded as no edit (formats section 6 and 9, 13). Behind the last edit that one
may have undone, an UNCLEAR edit is put in, so that nothing later is proven by what came before. What exactly a revert
restored, the snapshots tell; that evidence joins in `history`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from daemon import records
from daemon.errors import BadRecord
from daemon.model import FileEdit, Operation, Session

REMOVED = "its message was removed from the session: the change may have been reverted"
PENDING = "a revert of the session covers it: the file was set back"
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_SPAN = 1 << 48  # ids keep the low 48 bits of their clock


def with_reverts(
    edits: Iterable[FileEdit], session: Callable[[str], Session | None], is_removed: Callable[[FileEdit], bool]
) -> list[FileEdit]:
    """`edits` of one path, with an UNCLEAR edit behind each that a revert may have undone.

    `is_removed`: whether the source has dropped the edit's message while its session goes on.
    """
    found: list[FileEdit] = []
    marks: dict[str, str] = {}
    for edit in edits:
        found.append(edit)
        if edit.operation in (Operation.READ, Operation.READ_RANGE):
            continue
        if edit.session_id not in marks:
            marks[edit.session_id] = _reverted_from(session(edit.session_id))
        mark = marks[edit.session_id]
        if mark and _is_from(edit.message_id, mark):
            found.append(_doubt(edit, edit.path, PENDING))
        elif is_removed(edit):
            found.append(_doubt(edit, edit.path, REMOVED))
    return found


def of_folder(path: str, edits: Iterable[FileEdit]) -> list[FileEdit]:
    """What the `edits` of a folder mean for a `path` in it: a command that named the folder may have changed it."""
    return [_doubt(edit, path, edit.note) for edit in edits if edit.operation is Operation.UNCLEAR]


def folders(path: str) -> list[str]:
    """The folders that hold `path`, the nearest first, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, 1, -1)]


def _doubt(edit: FileEdit, path: str, note: str) -> FileEdit:
    plain = FileEdit(path, edit.time, edit.session_id, edit.message_id, edit.part_id, edit.tool, Operation.UNCLEAR)
    return replace(plain, note=note, version=edit.version)


def _reverted_from(session: Session | None) -> str:
    """The first message that a pending revert covers; empty without one. The database keeps it as a text of JSON."""
    if session is None:
        return ""
    try:
        revert = records.table(records.loads(session.raw)).get("revert")
        revert = records.loads(revert.encode()) if isinstance(revert, str) and revert else revert
    except BadRecord:
        return ""
    return records.text(records.table(revert).get("messageID"))


def _is_from(message_id: str, first: str) -> bool:
    """Whether a message of the same session is `first` or came after it, by their ids' clock, which wraps."""
    one, other = _ID.match(message_id), _ID.match(first)
    if one is None or other is None:
        return message_id >= first
    return message_id == first or 0 < (int(one[1], 16) - int(other[1], 16)) % _SPAN < _SPAN // 2
