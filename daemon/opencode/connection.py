"""One long-lived read-only connection to one of OpenCode's SQLite files (formats section 5, reliability S2 and S5-S8).

Never writes, never checkpoints, never holds a read transaction open between calls: every query is fetched whole.
``mode=ro`` and nothing else: ``immutable=1`` reads stale data, and a read-write open deletes the user's WAL at close.
Columns are selected by name and may be missing: they grow with every version.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from daemon.errors import SourceBusy, SourceMissing


class Connection:
    """Opens on first use, and again when the file has been replaced."""

    def __init__(self, path: Path, busy_ms: int = 5000) -> None:
        self.path = path
        self._busy_ms = busy_ms
        self._lock = threading.RLock()
        self._open: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._columns: dict[str, frozenset[str]] = {}
        self.replaced = 0

    def close(self) -> None:
        """Close; the next query opens again."""
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None
            self._columns = {}

    def _connect(self) -> sqlite3.Connection:
        try:
            found = os.stat(self.path)
        except OSError:
            self.close()
            raise SourceMissing(f"{self.path}: the database is gone; nothing is concluded from that") from None
        identity = (found.st_dev, found.st_ino)
        if self._open is not None and identity == self._identity:
            return self._open
        if self._open is not None:
            self.replaced += 1
        self.close()
        self._check_kinds()
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA busy_timeout={self._busy_ms}")
        connection.execute("PRAGMA query_only=1")
        connection.text_factory = bytes  # what is stored may not be valid UTF-8, and a message must not be lost for it
        self._open, self._identity = connection, identity
        return connection

    def _check_kinds(self) -> None:
        """Nothing but regular files: SQLite would wait for whoever writes into a FIFO."""
        for suffix in ("", "-wal", "-shm", "-journal"):
            path = f"{self.path}{suffix}"
            if os.path.exists(path) and not os.path.isfile(path):
                raise SourceMissing(f"{path}: not a regular file; move it away")

    def rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one short query; texts come as bytes.

        Raises:
            SourceBusy: locked longer than the busy timeout, or OpenCode is just creating it.
            SourceMissing: gone, not a database, or unreadable.
        """
        with self._lock:
            try:
                return self._connect().execute(sql, arguments).fetchall()
            except sqlite3.DatabaseError as error:
                raise self._failure(error) from None

    @contextmanager
    def value(self, table: str, column: str, row: int) -> Iterator[sqlite3.Blob]:
        """One text or blob by its rowid, to be read in pieces; keep it open for a moment only.

        Raises:
            SourceBusy: as for `rows`, or the row is gone since it was listed.
            SourceMissing: as for `rows`.
        """
        with self._lock:
            try:
                with self._connect().blobopen(table, column, row, readonly=True) as blob:
                    yield blob
            except sqlite3.DatabaseError as error:
                if "no such rowid" in str(error):
                    raise SourceBusy(f"{self.path}: {table} {row} is gone since it was listed") from None
                raise self._failure(error) from None

    def _failure(self, error: sqlite3.DatabaseError) -> SourceBusy | SourceMissing:
        if not isinstance(error, sqlite3.OperationalError):
            self.close()
            return SourceMissing(f"{self.path}: {error}; OpenCode may be able to repair it")
        if "locked" in str(error) or "busy" in str(error):
            return SourceBusy(f"{self.path}: {error}; trying again later")
        self.close()
        if "no such column" in str(error):
            fix = "its tables are not those of an OpenCode that this Reconstitute knows"
        else:
            fix = "check the file's permissions and its -wal and -shm"
        return SourceMissing(f"{self.path}: {error}; {fix}")

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; empty when it does not exist. An empty answer is asked for again each time."""
        with self._lock:
            if not self._columns.get(table):
                found = self.rows("SELECT name FROM pragma_table_info(?)", (table,))
                self._columns[table] = frozenset(name.decode() for (name,) in found)
            return self._columns[table]

    def tables(self) -> list[str]:
        """All tables, sorted."""
        return sorted(name.decode() for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'"))

    def data_version(self) -> tuple[int, int, int]:
        """Changes when another connection has committed, or the file was replaced."""
        (version,) = self.rows("PRAGMA data_version")[0]
        return (version, self.replaced, self._identity[1] if self._identity else 0)
