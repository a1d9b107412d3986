"""Finds all sources: the JSON trees and every database, side by side (docs/reliability.md, S1 and S4).

We look at the files and tables, not at a version number: other release channels use ``opencode-<channel>.db``,
``OPENCODE_DB`` names any file, and the newer tables stand beside frozen older ones in one file. Databases of OpenCode's
under other names, such as backups, are not read; the status names them.
"""

from __future__ import annotations

import fnmatch
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from daemon.errors import SourceBusy, SourceMissing, Unreadable
from daemon.filesystem import regular_file
from daemon.filesystem.large_files import LargeFiles
from daemon.opencode import DATABASE_2, JSON_TREE, Source
from daemon.opencode.connection import Connection, irregular
from daemon.opencode.database import Database
from daemon.opencode.database_v2 import Database2
from daemon.opencode.json_tree import JsonTree
from daemon.opencode.newest import Newest, newest_files, newest_rows

KNOWN = frozenset({"session", "message", "part", "session_message", "session_v2"})

_REST_S = 5.0
"""We do not open an unreadable file again for this long, because opening and closing it may wake our own watch (S5)."""
_HEADER = b"SQLite format 3\0"
_TABLES = ({"session", "message", "part"}, {"session", "session_message"}, {"session_v2"})
"""A database with one of these sets of tables is OpenCode's."""


class Sources:
    """All sources of the data directories and of `databases` elsewhere; `refresh` finds those that have appeared."""

    def __init__(
        self,
        data_dir: Path,
        record_mb: int,
        large: LargeFiles | None = None,
        *,
        further: Sequence[Path] = (),
        databases: Sequence[Path] = (),
    ) -> None:
        self._data_dirs = (data_dir, *further)
        self._databases = tuple(databases)
        self._record_mb = record_mb
        self._large = large
        self._sources: dict[str, Source] = {}
        self._connections: dict[Path, Connection] = {}
        self._failed: dict[Path, float] = {}
        self._unconfigured = OtherDatabases()
        self.has_looked = False
        """Whether `refresh` was called; until then `current` says nothing."""
        self.troubles: dict[str, str] = {}
        self.unfollowed: list[Path] = []
        """OpenCode's databases beside the ones we read, which no setting names."""

    def current(self) -> list[Source]:
        """The sources as of the last refresh, oldest generation first."""
        return sorted(self._sources.values(), key=lambda source: (source.generation, source.name))

    def refresh(self, *, anew: bool = False) -> list[Source]:
        """Look for sources again. Unusable ones are named in `troubles`, by place; the others still work.

        With `anew`, first open every database again, because a full scan trusts no open connection.

        Call this before every scan. It is cheap, and no event reports that tables were created in a file.
        """
        if anew:
            for connection in self._connections.values():
                connection.close()
        troubles: dict[str, str] = {}
        databases: list[Path] = []
        files: list[Path] = []
        for folder in self._data_dirs:
            try:
                names = sorted(os.listdir(folder))
                if "storage" in names and (folder / "storage").is_dir():
                    self._add_tree(folder / "storage")
            except FileNotFoundError:
                troubles[str(folder)] = (
                    f"{folder}: no such directory; OpenCode has not run here yet, or opencode.data_dir is wrong"
                )
            except OSError as error:
                troubles[str(folder)] = f"{folder}: cannot be read: {error.strerror}; check its permissions"
            else:
                files += [folder / name for name in names]
                databases += [folder / name for name in fnmatch.filter(names, "opencode*.db")]
        # One database may have several names, of which the first counts.
        followed = {os.path.realpath(path): path for path in reversed((*databases, *self._databases))}
        for path in sorted(followed.values()):
            self._add_database(path, troubles)
        self.unfollowed = self._unconfigured.among(path for path in files if os.path.realpath(path) not in followed)
        self.troubles, self.has_looked = troubles, True
        return self.current()

    def _add_tree(self, storage: Path) -> None:
        self._add(f"json:{storage}", lambda: JsonTree(storage, self._record_mb, large=self._large))

    def _add(self, name: str, make: Callable[[], Source]) -> None:
        if name not in self._sources:
            self._sources[name] = make()

    def _add_database(self, path: Path, troubles: dict[str, str]) -> None:
        if time.monotonic() - self._failed.get(path, -_REST_S) < _REST_S:
            troubles[str(path)] = self.troubles.get(str(path), f"{path}: could not be read")
            return
        connection = self._connections.setdefault(path, Connection(path))
        try:
            tables = set(connection.tables())
            has_newer = "session_message" in tables and _has_rows(connection, "session_message")
        except SourceBusy as error:
            troubles[str(path)] = str(error)
            return
        except (SourceMissing, Unreadable) as error:
            troubles[str(path)] = str(error)
            self._failed[path] = time.monotonic()
            return
        self._failed.pop(path, None)
        if {"session", "message", "part"} <= tables:
            self._add(f"db:{path}", lambda: Database(connection, self._record_mb, large=self._large))
        if has_newer or "session_v2" in tables:
            self._add(f"db2:{path}", lambda: Database2(connection, self._record_mb, large=self._large))
        if tables and not tables & KNOWN:
            troubles[str(path)] = (
                f"{path}: unknown layout: none of {', '.join(sorted(KNOWN))} among its tables "
                f"({', '.join(sorted(tables))}); this OpenCode may be newer than this Reconstitute"
            )

    def newest(self, source: Source) -> list[Newest]:
        """The newest messages of a source of `current`, newest first; its records are not read.

        Raises:
            SourceBusy, SourceMissing: it cannot be read now.
        """
        place = Path(source.name.partition(":")[2])
        if source.generation == JSON_TREE:
            return newest_files(place)
        table = "session_message" if source.generation == DATABASE_2 else "message"
        return newest_rows(self._connections[place], table)

    def close(self) -> None:
        """Close every source and connection."""
        for source in self._sources.values():
            source.close()
        for connection in self._connections.values():
            connection.close()


def _has_rows(connection: Connection, table: str) -> bool:
    try:
        return bool(connection.rows(f"SELECT 1 FROM {table} LIMIT 1"))
    except Unreadable:
        return True  # its first page is damaged; others may not be


class OtherDatabases:
    """Recognises OpenCode's databases among other files. A file is read again only if it has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], bool]] = {}

    def among(self, paths: Iterable[Path]) -> list[Path]:
        """Those of `paths` that are OpenCode's databases. None of them may be open in this process.

        Closing a file that SQLite has open in the same process would release SQLite's locks on it.
        """
        known: dict[Path, tuple[tuple[int, int, int], bool]] = {}
        for path in paths:
            try:
                status = path.lstat()
            except OSError:
                continue  # gone since it was listed
            if stat.S_ISREG(status.st_mode):
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
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
