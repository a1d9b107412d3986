"""OpenCode's databases that lie beside the followed ones under other names: backups, or those of an ``OPENCODE_DB``.

They are only named, for the status. Each is looked into once, and again when it has changed.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from daemon.filesystem import regular_file
from daemon.opencode.connection import irregular

_HEADER = b"SQLite format 3\0"
_TABLES = ({"session", "message", "part"}, {"session", "session_message"}, {"session_v2"})
"""One of these sets of tables is what makes a database OpenCode's."""


class Others:
    """Tells OpenCode's databases from other files, and remembers what it told."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], bool]] = {}

    def among(self, paths: Iterable[Path]) -> list[Path]:
        """Those of `paths` that are databases of OpenCode's. None of them may be open in this process.

        Closing a file that SQLite has open in the same process would release SQLite's locks on it.
        """
        known: dict[Path, tuple[tuple[int, int, int], bool]] = {}
        for path in paths:
            try:
                found = path.lstat()
            except OSError:
                continue  # gone since it was listed
            if stat.S_ISREG(found.st_mode):
                stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
                before = self._known.get(path)
                known[path] = before if before and before[0] == stamp else (stamp, _is_opencodes(path))
        self._known = known
        return [path for path, (_, is_opencodes) in known.items() if is_opencodes]


def _is_opencodes(path: Path) -> bool:
    try:
        with regular_file.opened(path) as file:
            if file.read(len(_HEADER)) != _HEADER or irregular(str(path)):
                return False
        # Without a WAL the file holds everything, and `immutable` keeps SQLite from making one. With a WAL the tables
        # may stand there alone.
        mode = "mode=ro" if os.path.lexists(f"{path}-wal") else "mode=ro&immutable=1"
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=0.1)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (OSError, sqlite3.Error):
        return False  # unreadable, locked or damaged: looked into again when it changes
    return any({name for (name,) in rows} >= tables for tables in _TABLES)
