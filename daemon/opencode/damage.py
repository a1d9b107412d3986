"""Reads what can be read of a damaged table.

SQLite ends a query at the first page that is damaged or that the disk refuses. A table is a tree of rows in the order
of their numbers, so we step over the numbers whose pages cannot be read and copy the other rows into a temporary
database, where the same queries work. An index is not needed for that. The values of ``data``, which are large, are not
copied: they are read later, each by the number of its row.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.errors import Unreadable
from daemon.opencode import Listing
from daemon.opencode.connection import Connection

_AT_ONCE = 2000
_SINGLE_STEPS, _SINGLE_STEPS_S = 1000, 1.0
"""So many numbers, and so long, we try one by one behind a damaged place; then in growing steps."""

_LAST = (1 << 63) - 1
_REST = 10
"""A copy is used for so many times as long as it took to make, although the database has changed since."""

_VALUES = ("data",)
_OWNERS = ("id", "session_id", "message_id", "aggregate_id")


@dataclass(slots=True)
class _Copy:
    """`version` of the database that was read; `gaps` are the numbers of rows that could not be."""

    version: tuple[int, int]
    gaps: list[tuple[int, int]]
    reason: str
    until: float


class Tables:
    """Queries on single tables of one database, answered from copies where pages are damaged."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._outline = Outline(connection)

    def close(self) -> None:
        """Remove the copies; the next query makes them again."""
        self._outline.close()

    def listed(self, table: str, sql: str, arguments: Sequence[object], listing: Listing[Any]) -> list[tuple[Any, ...]]:
        """The rows of a query on one table; what is damaged is noted in the listing."""
        try:
            return self._connection.rows(sql, arguments)
        except Unreadable as error:
            try:
                rows, gap = self._outline.rows(table, sql, arguments)
            except Unreadable as nothing:
                rows, gap = [], str(nothing)
            listing.add(gap or f"{error}; all of {table} could be read without an index", is_whole=not gap)
            return rows

    def whole(self, table: str, sql: str, arguments: Sequence[object]) -> list[tuple[Any, ...]]:
        """All rows of a query on one table.

        Raises:
            Unreadable: they cannot all be read.
        """
        listing = Listing[object]()
        rows = self.listed(table, sql, arguments, listing)
        if not listing.is_whole:
            raise Unreadable(listing.problem)
        return rows

    def holding(self, table: str, ids: Iterable[str]) -> set[str]:
        """Those of these ids that the table's index over ids has, which is another than the listings use.

        Raises:
            Unreadable: that cannot be known now.
        """
        if not table or not self._connection.columns(table):
            return set()
        return {id_ for id_ in ids if self._connection.rows(f"SELECT 1 FROM {table} WHERE id = ?", (id_,))}


class Outline:
    """Copies of the damaged tables of one database, made on first use and again when the database has changed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._copies: dict[str, _Copy] = {}
        self._database: sqlite3.Connection | None = None

    def close(self) -> None:
        """Remove the copies; the next query makes them again."""
        if self._database is not None:
            self._database.close()
        self._database, self._copies = None, {}

    def rows(self, table: str, sql: str, arguments: Sequence[object]) -> tuple[list[tuple[Any, ...]], str]:
        """The rows of a query on `table`, and why some may be missing, or an empty text.

        Raises:
            Unreadable: nothing of the table can be read, or there is no room for the copy.
            SourceBusy, SourceMissing: as for every query.
        """
        version = self._connection.data_version()
        copy = self._copies.get(table)
        try:
            if copy is None or (copy.version != version and time.monotonic() > copy.until):
                copy = self._copies[table] = self._copied(table, version)
            rows = self._opened().execute(sql, arguments).fetchall()
        except sqlite3.Error as error:
            raise Unreadable(f"{self._connection.path}: {table} cannot be copied to be read: {error}") from None
        if copy.gaps:
            return rows, f"{self._connection.path}: {_places(copy.gaps)} of {table} cannot be read: {copy.reason}"
        stale = f"{self._connection.path}: {table} is damaged and changes while it is read"
        return rows, stale if copy.version != version else ""

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            # Without a name it is a temporary file that nobody else can open and that is gone when it is closed.
            self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            self._database.text_factory = bytes
        return self._database

    def _copied(self, table: str, version: tuple[int, int]) -> _Copy:
        began = time.monotonic()
        names = sorted(self._connection.columns(table))
        if not names:
            return _Copy(version, [], "", began)
        columns = ", ".join(f'"{name}"' for name in names)
        read = [f"typeof({name})" if name in _VALUES else f'"{name}"' for name in names]
        put = [
            "CASE ? WHEN x'74657874' THEN '' WHEN x'626c6f62' THEN x'' END"  # text, blob
            if name in _VALUES
            else "CASE typeof(?{n}) WHEN 'blob' THEN CAST(?{n} AS TEXT) ELSE ?{n} END".replace("{n}", str(number + 2))
            for number, name in enumerate(names)
        ]
        put = [part.replace("CASE ? ", f"CASE ?{number + 2} ") for number, part in enumerate(put)]
        database = self._opened()
        database.execute(f'DROP TABLE IF EXISTS "{table}"')
        database.execute(f'CREATE TABLE "{table}" ({columns})')
        for owner in set(_OWNERS) & set(names):
            database.execute(f'CREATE INDEX "{table}_{owner}" ON "{table}" ("{owner}")')
        select = f'SELECT rowid, {", ".join(read)} FROM "{table}" NOT INDEXED WHERE rowid >= ? ORDER BY rowid LIMIT ?'
        insert = f'INSERT OR IGNORE INTO "{table}" (rowid, {columns}) VALUES (?1, {", ".join(put)})'
        walk = _Walk(self._connection, select)
        database.execute("BEGIN")
        try:
            for rows in iter(walk.next_rows, []):
                database.executemany(insert, rows)
        finally:
            database.execute("COMMIT")
        now = time.monotonic()
        return _Copy(version, walk.gaps, walk.reason, now + _REST * (now - began))


class _Walk:
    """The readable rows of a table in their order, and the gaps between them."""

    def __init__(self, connection: Connection, select: str) -> None:
        self._connection = connection
        self._select = select
        self._next = 0
        self._size = _AT_ONCE
        self.gaps: list[tuple[int, int]] = []
        self.reason = ""

    def next_rows(self) -> list[tuple[Any, ...]]:
        """The next rows, at most 2000; none at the end."""
        while self._next <= _LAST:
            rows = self._read(self._next, self._size)
            if rows is None and self._size > 1:
                self._size = max(1, self._size // 8)
                continue
            if rows is None:
                self._step_over()
                continue
            self._size = min(_AT_ONCE, self._size * 2)
            last = max((row[0] for row in rows), default=_LAST)
            if rows and last < self._next:  # a page points back
                self.reason, rows = "its rows are out of order", []
                self.gaps.append((self._next, _LAST))
                last = _LAST
            self._next = last + 1
            if rows:
                return rows
        return []

    def _read(self, first: int, most: int) -> list[tuple[Any, ...]] | None:
        try:
            return self._connection.rows(self._select, (first, most))
        except Unreadable as error:
            self.reason = str(error).removeprefix(f"{self._connection.path}: ")
            return None

    def _step_over(self) -> None:
        """Go on at the first number behind the damaged place."""
        first = bad = self._next
        deadline = time.monotonic() + _SINGLE_STEPS_S
        step = 1
        while True:
            if bad - first >= _SINGLE_STEPS or time.monotonic() > deadline:
                step *= 2
            good = min(bad + step, _LAST + 1)
            if good > _LAST or self._read(good, 1) is not None:
                break
            bad = good
        while good - bad > 1:
            middle = (bad + good) // 2
            if self._read(middle, 1) is None:
                bad = middle
            else:
                good = middle
        self.gaps.append((first, bad))
        self._next = good


def _places(gaps: list[tuple[int, int]]) -> str:
    first, last = gaps[0]
    rows = f"row {first}" if first == last else f"rows {first} to {last}" if last < _LAST >> 1 else f"rows from {first}"
    return f"{rows} and {len(gaps) - 1} more places" if len(gaps) > 1 else rows
