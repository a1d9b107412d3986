"""The newest messages of a source, found without listing it: for the status, which says how far the archive is behind.

A database gives its last rows. The JSON tree gives the last files of the folders that changed last.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from daemon.errors import SourceMissing, Unreadable
from daemon.opencode.connection import Connection

_MOST = 16
_FOLDERS = 4


@dataclass(frozen=True, slots=True)
class Newest:
    """A message of a source; `time` is when it was created, in a JSON tree when its file was written (epoch ms)."""

    time: int
    session_id: str
    message_id: str


def newest_rows(connection: Connection, table: str) -> list[Newest]:
    """The newest of the last rows of a table, newest first.

    Raises:
        SourceBusy, SourceMissing: they cannot be read.
    """
    if not {"id", "session_id", "time_created"} <= connection.columns(table):
        return []
    # Rows get ascending numbers, so these are the latest without an index over the times.
    sql = f"SELECT time_created, session_id, id FROM {table} ORDER BY rowid DESC LIMIT {_MOST}"
    try:
        last = connection.rows(sql)
    except Unreadable as error:
        raise SourceMissing(str(error)) from None
    rows = [
        Newest(time, _text(session_id), _text(message_id))
        for time, session_id, message_id in last
        if isinstance(time, int)
    ]
    return sorted(rows, key=attrgetter("time"), reverse=True)


def newest_files(storage: Path) -> list[Newest]:
    """The messages whose files were written last, newest first, of the session folders that changed last.

    Raises:
        SourceMissing: the tree cannot be listed.
    """
    try:
        folders = sorted(_entries(storage / "message"), key=_changed, reverse=True)[:_FOLDERS]
        files = [(entry, folder.name) for folder in folders for entry in _entries(Path(folder.path))]
        messages = [
            Newest(_changed(entry) // 1_000_000, session_id, entry.name.removesuffix(".json"))
            for entry, session_id in files
            if entry.name.endswith(".json")
        ]
    except OSError as error:
        raise SourceMissing(f"{storage}: cannot be listed: {error.strerror}; check its permissions") from error
    return sorted(messages, key=attrgetter("time"), reverse=True)[:_MOST]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):  # no session yet, just deleted, or a stray file
        return []


def _changed(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return 0


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
