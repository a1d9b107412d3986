"""One long-lived read-only connection to one of OpenCode's SQLite files (opencode-formats.md, Writing, reliability S2
and S5-S8).

Never writes, never checkpoints, never holds a read transaction open between calls: every query is fetched whole.
``mode=ro`` and nothing else: ``immutable=1`` reads stale data, and a read-write open deletes the user's WAL at close.
Columns are selected by name and may be missing: they grow with every version.

A database is three files. SQLite keeps reading the ones it has opened, also when somebody has put others in their
place, and reports no error. So every query first compares the files at these paths with those that we opened.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from daemon.errors import SourceBusy, SourceMissing, Unreadable
from daemon.opencode import State

_SUFFIXES = ("", "-wal", "-shm")
_LOCKED_REST_S = 1.0
"""After a lock we do not try the database for this long, so that the other sources need not wait."""

_SWAPS = 3
"""How often we start opening again because a file was replaced meanwhile."""


@dataclass(frozen=True, slots=True)
class _Files:
    """The database file, its WAL and its shared memory: (device, inode) of each, None if it does not exist.

    `written` is the database file's (mtime, size), which checkpoints change; the WAL otherwise only grows.
    """

    identities: tuple[tuple[int, int] | None, ...]
    written: tuple[int, int]
    wal_size: int

    def are_others(self, opened: _Files) -> bool:
        """Whether one of the `opened` files is no longer at its path. A new file beside them does not count."""
        return any(was not in (None, now) for was, now in zip(opened.identities, self.identities, strict=True))

    def are_outdated(self, now: _Files) -> bool:
        """Whether the cache of a connection to these files may differ from the files as they are `now`."""
        if self.identities != now.identities or self.written != now.written:
            return True
        return now.wal_size < self.wal_size  # cut off: the shared memory may still promise what was behind


def irregular(database: str) -> str:
    """The file of a database that is not a regular file, or "". SQLite would block on a FIFO."""
    paths = [f"{database}{suffix}" for suffix in (*_SUFFIXES, "-journal")]
    return next((path for path in paths if os.path.exists(path) and not os.path.isfile(path)), "")


def _begin(connection: sqlite3.Connection) -> None:
    """A first query: only now the other two files are opened."""
    sql = "SELECT 1 FROM sqlite_master LIMIT 1"
    try:
        connection.execute(sql).fetchall()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT:
            raise
        connection.execute("PRAGMA writable_schema=1")  # nothing is written; it makes SQLite read a file that was cut
        connection.execute(sql).fetchall()


_READ_ERRORS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
"""The disk refuses a page of the database. Other errors of the disk concern its locks or shared memory."""


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)  # errors of Python's own have none
    return code & 0xFF == sqlite3.SQLITE_CORRUPT or code in _READ_ERRORS


class TooLargeError(Exception):
    """A value is larger than the caller allows."""


class Connection:
    """Opens on first use, and again whenever one of the three files has been replaced or rewritten.

    `replaced` counts how often the files were replaced. Nothing learned from the former files holds any more.
    """

    def __init__(self, path: Path, busy_ms: int = 200) -> None:
        self.path = path
        self._busy_ms = busy_ms
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._files: _Files | None = None  # as they were opened, also after closing
        self._real = str(path)  # SQLite keeps the other two files where a link leads to
        self._columns: dict[str, frozenset[str]] = {}
        self._opened = 0
        self._locked_until = 0.0
        self.replaced = 0

    def close(self) -> None:
        """Close; the next query opens again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None
            self._columns = {}

    def _connect(self) -> sqlite3.Connection:
        if time.monotonic() < self._locked_until:
            raise SourceBusy(f"{self.path}: database is locked; trying again later")
        files = self._look()
        if self._open is not None and self._files is not None and not self._files.are_outdated(files):
            self._files = files
            return self._open
        for _ in range(_SWAPS):
            self.close()
            connection = self._open = self._opening()
            before, files = files, self._look()
            if not files.are_others(before):
                break
        self.replaced += self._files is not None and files.are_others(self._files)
        self._files = files
        self._opened += 1
        return connection

    def _opening(self) -> sqlite3.Connection:
        self._real = os.path.realpath(self.path)
        path = irregular(self._real)
        if path:
            raise SourceMissing(f"{path}: not a regular file; move it away")
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA busy_timeout={self._busy_ms}")
            connection.execute("PRAGMA query_only=1")
            connection.text_factory = bytes  # stored text may not be UTF-8, and no message must be lost for that
            _begin(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _look(self) -> _Files:
        stats: list[os.stat_result | None] = []
        for suffix in _SUFFIXES:
            try:
                stats.append(os.stat(f"{self._real if suffix else self.path}{suffix}"))
            except FileNotFoundError:
                stats.append(None)
            except OSError as error:
                self.close()
                raise SourceMissing(
                    f"{self.path}{suffix}: cannot be read: {error.strerror}; check the permissions of its folder"
                ) from None
        database, wal, _ = stats
        if database is None:
            self.close()
            raise SourceMissing(f"{self.path}: the database is gone; nothing is concluded from that")
        if not database.st_size and wal is None:
            # OpenCode makes the file and then switches it to WAL. It fails to start if a reader has it open meanwhile.
            self.close()
            raise SourceBusy(f"{self.path}: still empty; OpenCode is just creating it")
        return _Files(
            tuple((stat.st_dev, stat.st_ino) if stat else None for stat in stats),
            (database.st_mtime_ns, database.st_size),
            wal.st_size if wal else 0,
        )

    def rows(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of one short query; texts come as bytes.

        Raises:
            SourceBusy: locked longer than the busy timeout or a moment ago, or OpenCode is just creating it.
            SourceMissing: gone, not a database, or unreadable.
            Unreadable: a page that the query needs is damaged, or the disk refuses it; others may be readable.
        """
        with self._lock:
            try:
                return self._connect().execute(sql, arguments).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._failure(error) from None

    @contextmanager
    def moment(self, largest: int) -> Iterator[Callable[[str, Sequence[object]], Iterator[tuple[Any, ...]]]]:
        """A query function; all its calls see the database as it is at this one moment.

        Keep it open for a moment only. Rows come one by one; texts come as bytes.

        Raises:
            TooLargeError: by the query, at a row with a value of more than `largest` bytes, which is not loaded.
            SourceBusy, SourceMissing, Unreadable: as for `rows`.
        """

        def query(sql: str, arguments: Sequence[object]) -> Iterator[tuple[Any, ...]]:
            try:
                yield from connection.execute(sql, arguments)
            except sqlite3.DataError as error:
                raise TooLargeError(str(error)) from None

        with self._lock:
            try:
                with self._moment(self._connect()) as connection:
                    before = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, largest)
                    try:
                        yield query
                    finally:
                        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
            except sqlite3.DatabaseError as error:
                raise self._failure(error) from None

    @contextmanager
    def value(self, table: str, column: str, row: int, id_: object) -> Iterator[sqlite3.Blob]:
        """One text or blob of the row with this rowid and id, to be read in pieces; keep it open for a moment only.

        Raises:
            SourceBusy: as for `rows`, or the row is gone since it was listed, or its rowid is another row's by now.
            SourceMissing, Unreadable: as for `rows`.
        """
        with self._lock:
            try:
                with self._moment(self._connect()) as connection:
                    sql = f"SELECT id FROM {table} WHERE rowid = ?"
                    if connection.execute(sql, (row,)).fetchall() != [(id_,)]:
                        raise SourceBusy(f"{self.path}: {table} {row} is gone since it was listed")
                    with connection.blobopen(table, column, row, readonly=True) as blob:
                        yield blob
            except sqlite3.DatabaseError as error:
                raise self._failure(error) from None

    @contextmanager
    def _moment(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        """The database as it is at one moment, whatever OpenCode writes meanwhile."""
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _failure(self, error: sqlite3.DatabaseError) -> SourceBusy | SourceMissing | Unreadable:
        if _is_damage(error):
            # It stays open: opening it anew would count as a change, and be looked into at once.
            return Unreadable(f"{self.path}: {error}; OpenCode may be able to repair it")
        if not isinstance(error, sqlite3.OperationalError):
            self.close()
            return SourceMissing(f"{self.path}: {error}; OpenCode may be able to repair it")
        if "locked" in str(error) or "busy" in str(error):
            self._locked_until = time.monotonic() + _LOCKED_REST_S
            return SourceBusy(f"{self.path}: {error}; trying again later")
        self.close()
        if "no such column" in str(error):
            fix = "its tables are not those of an OpenCode that this Reconstitute knows"
        else:
            fix = "check the file's permissions and its -wal and -shm"
        return SourceMissing(f"{self.path}: {error}; {fix}")

    def state(self) -> State | None:
        """The state of the database file and its WAL, from the file system; None if it cannot be had."""
        try:
            stats = [os.stat(self.path), *(os.stat(path) for path in [f"{self._real}-wal"] if os.path.exists(path))]
        except OSError:
            return None
        # Not the time of the last change of the inode, which SQLite sets when it opens a WAL, as we do.
        files = tuple((it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns) for it in stats)
        return State(files, max(it.st_mtime for it in stats))

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; empty when it does not exist. An empty result is not cached."""
        with self._lock:
            if not self._columns.get(table):
                rows = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
                self._columns[table] = frozenset(name.decode() for (name,) in rows)
            return self._columns[table]

    def tables(self) -> list[str]:
        """All tables, sorted."""
        return sorted(name.decode() for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def data_version(self) -> tuple[int, int]:
        """Changes when another connection has committed, or the files were opened anew."""
        (version,) = self.rows("PRAGMA data_version")[0]
        return (version, self._opened)
