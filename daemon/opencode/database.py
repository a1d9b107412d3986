"""The SQLite database of OpenCode 1.2 and later, as of 1.18 (opencode-formats.md, Records and Writing).

Rows are updated in place far more often than added, so a session's messages are listed with the update times of all
their rows, and content decides what changed. ``message.data`` and ``part.data`` are the JSON records without their ids.
What a revert removed is read from the journal, if there is one. Where a query meets a damaged page, its rows are read
without an index and one by one (damage.py), and what cannot be read is reported and never taken for removed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from daemon import records
from daemon.errors import BadRecord, SourceBusy, SourceMissing, Unreadable
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json, Session
from daemon.opencode import DATABASE, Listing, Problem, Reading, RevertMark, State, TodoList, Unit
from daemon.opencode.changes import Changes
from daemon.opencode.connection import Connection, TooLargeError
from daemon.opencode.damage import Tables
from daemon.opencode.journal import Journal, RemovedRows
from daemon.opencode.shared import (
    PIECE,
    Gathered,
    Stamps,
    orphan_record,
    oversize,
    pending_revert,
    project_record,
)
from daemon.opencode.shared import stored_text as _text
from daemon.opencode.units import SessionUnits

_Rows: TypeAlias = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The rows of a message's parts, and its own row: rowid, id, type of the value, and the value, or None if unread."""

_PARTS = "SELECT rowid, id, typeof(data), {data} FROM part WHERE message_id = ? ORDER BY id"
_MESSAGE = "SELECT rowid, id, typeof(data), {data} FROM message WHERE id = ?"
_MESSAGE_OF_SESSION = "SELECT rowid, id, typeof(data), NULL FROM message WHERE session_id = ? AND +id = ?"
"""Finds the row by the index over sessions, in case the one over ids is damaged."""

_AT_ONCE, _BYTES_AT_ONCE = 100, 4 << 20
"""The most messages, and bytes, that one query reads."""


class Database:
    """The ``session``, ``message`` and ``part`` tables of one file."""

    kind = "SQLite (OpenCode 1.2 and later)"
    generation = DATABASE
    session_table = "session"
    tables: Mapping[str, str] = {"session": "session", "message": "message", "part": "part"}
    """The tables of records by kind."""

    def __init__(
        self,
        connection: Connection,
        record_mb: int = 64,
        clock: Callable[[], float] = time.monotonic,
        *,
        large: LargeFiles | None = None,
    ) -> None:
        self._connection = connection
        self._limit = record_mb << 20
        self._large = large
        self.name = f"db:{connection.path}"
        self._changes = Changes(connection, clock)
        self._journal = Journal(connection, self._limit)
        self._tables = Tables(connection)
        self._units = SessionUnits(connection, self._tables)

    def close(self) -> None:
        """See Source."""
        self._connection.close()
        self._tables.close()

    def hint(self, path: str) -> None:
        """Does nothing: `data_version` shows whether anything was committed."""

    def touched(self) -> Iterable[str] | None:
        """See Source."""
        return self._changes.touched()

    def state(self) -> State | None:
        """See Source."""
        return self._connection.state()

    # -- listing -------------------------------------------------------------------------------------------------

    def sessions(self) -> Listing[str]:
        """See Source."""
        columns = self._connection.columns("session")
        if not columns:
            raise SourceMissing(f"{self._connection.path}: no table session (found: {self._connection.tables()})")
        stamps = Listing[str]()
        self._list_records("session", columns, stamps)
        self._list_owners("message", stamps)
        return stamps

    def _list_records(self, table: str, columns: frozenset[str], stamps: Listing[str]) -> None:
        """Add the sessions that have a record, with its stamp."""
        sql = f"SELECT id, {_or_null(columns, 'time_updated')}, {_or_null(columns, 'title')} FROM {table}"
        for session_id, updated, title in self._tables.listed(table, sql, (), stamps):
            stamps[_text(session_id)] = f"{updated}-{_text(title)}"

    def _list_owners(self, table: str, stamps: Listing[str]) -> None:
        """Add the sessions that have messages."""
        for (session_id,) in self._tables.listed(table, f"SELECT DISTINCT session_id FROM {table}", (), stamps):
            stamps.setdefault(_text(session_id), "none")

    def messages(self, session_id: str) -> Listing[Unit]:
        """See Source. Includes removed messages that the journal still has."""
        units = Listing[Unit]()
        try:
            self._journal.follow(session_id)
        except Unreadable as error:
            units.add(str(error), is_whole=False)
        units.update(self._units.of(session_id, units, lambda listed: self._removals(session_id, listed, units)))
        return units

    def _removals(
        self, session_id: str, listed: Mapping[str, Stamps], units: Listing[Unit]
    ) -> Mapping[str, RemovedRows]:
        """What the journal has of removed messages; nothing if the listing is not whole, because they may have rows."""
        if not units.is_whole:
            return {}
        try:
            return self._journal.removals(session_id, listed)
        except Unreadable as error:
            units.add(str(error), is_whole=False)
            return {}

    def holds(self, kind: str, ids: Iterable[str]) -> set[str]:
        """See Source."""
        return self._tables.holding(self.tables.get(kind, ""), ids)

    # -- reading -------------------------------------------------------------------------------------------------

    def read_session(self, session_id: str) -> Session:
        """See Source."""
        row = self._session_row(session_id)
        if row is None:
            return Session(session_id, "", "", "", 0, 0, b"{}")
        return Session(
            id=session_id,
            project_id=records.text(row.get("project_id")),
            directory=records.text(row.get("directory")),
            title=records.text(row.get("title")),
            created=records.integer(row.get("time_created")),
            updated=records.integer(row.get("time_updated")),
            raw=records.dumps(row),
            parent_id=records.text(row.get("parent_id")) or None,
            archived=records.integer(row.get("time_archived")) or None,
            version=records.text(row.get("version")),
        )

    def _session_row(self, session_id: str) -> Json | None:
        names = sorted(self._connection.columns(self.session_table))
        if not names:
            return None
        sql = f"SELECT {', '.join(_identifier(name) for name in names)} FROM {self.session_table} WHERE id = ?"
        for row in self._tables.whole(self.session_table, sql, (session_id,)):
            return {
                name: _text(value) if isinstance(value, bytes) else value
                for name, value in zip(names, row, strict=True)
            }
        return None

    def read_message(self, session_id: str, message_id: str) -> Reading:
        """See Source."""
        return self._of_rows(session_id, message_id, None)

    def readings(self, session_id: str, message_ids: Sequence[str]) -> Iterator[tuple[str, Callable[[], Reading]]]:
        """See Source."""
        place = 0
        while place < len(message_ids):
            batch = self._at_once(message_ids[place : place + _AT_ONCE])
            for message_id, rows in zip(message_ids[place:], batch, strict=False):
                yield message_id, partial(self._of_rows, session_id, message_id, rows)
            place += len(batch)

    def _at_once(self, message_ids: Sequence[str]) -> list[_Rows | None]:
        """The rows of the first of these messages, at least one; None for a message that is large or unavailable now.

        Such a message is then read alone, which reports the reason.
        """
        batch: list[_Rows | None] = []
        bytes_left = _BYTES_AT_ONCE
        try:
            with self._connection.moment(PIECE) as query:
                for message_id in message_ids:
                    rows: _Rows = [], []
                    try:
                        for target, sql in zip(rows, (_PARTS, _MESSAGE), strict=True):
                            for row in query(sql.format(data="data"), (message_id,)):
                                bytes_left -= len(row[3]) if isinstance(row[3], bytes) else 0
                                if bytes_left < 0:
                                    return batch or [None]
                                target.append(row)
                    except TooLargeError:
                        batch.append(None)
                    else:
                        batch.append(rows)
        except (SourceBusy, SourceMissing):
            return [None] * len(message_ids)
        except Unreadable:
            return batch or [None]
        return batch

    def _of_rows(self, session_id: str, message_id: str, rows: _Rows | None) -> Reading:
        """`rows` are the message's rows if just read; otherwise they are queried, and each value by itself."""
        problems: list[Problem] = []
        try:
            return self._gathered(session_id, message_id, rows, problems)
        except Unreadable as error:
            return Reading(None, (*problems, self._refused(f"message {message_id}", str(error))))

    def _gathered(self, session_id: str, message_id: str, rows: _Rows | None, problems: list[Problem]) -> Reading:
        gathered = Gathered(session_id, message_id, self._large)
        listing = Listing[object]()
        part_rows = rows[0] if rows else self._tables.listed("part", _PARTS.format(data="NULL"), (message_id,), listing)
        for part_row in part_rows:
            fields = {"id": _text(part_row[1]), "sessionID": session_id, "messageID": message_id}
            raw = self._record("part", part_row, fields, problems)
            if raw is not None:
                try:
                    gathered.add(raw)
                except BadRecord as error:
                    problems.append(self._problem(f"part {fields['id']}", error, raw))
        own_rows = rows[1] if rows else self._own_rows(session_id, message_id, listing)
        if not listing.is_whole:
            problems.append(self._refused(f"message {message_id}", listing.problem))
        if not own_rows:
            if not listing.is_whole:
                return Reading(None, tuple(problems))
            return self._removed(session_id, message_id, gathered, problems)
        self._add_journaled(session_id, message_id, gathered, problems)
        ids = {"id": message_id, "sessionID": session_id}
        raw = self._record("message", own_rows[0], ids, problems)
        if raw is None:
            return Reading(None, tuple(problems))
        try:
            return Reading(records.message(raw, gathered.parts(), session_id), tuple(problems))
        except BadRecord as error:
            problems.append(self._problem(f"message {message_id}", error, raw))
            return Reading(None, tuple(problems))

    def _add_journaled(self, session_id: str, message_id: str, gathered: Gathered, problems: list[Problem]) -> None:
        """Add the completed calls that a revert removed from a message that is still there."""
        try:
            for part in self._journal.parts(session_id, message_id, gathered.ids, problems, calls_only=True):
                gathered.put(part)
        except Unreadable as error:
            problems.append(self._refused(f"message {message_id}", str(error)))

    def _own_rows(self, session_id: str, message_id: str, listing: Listing[object]) -> list[tuple[Any, ...]]:
        rows = self._tables.listed("message", _MESSAGE.format(data="NULL"), (message_id,), listing)
        if rows or not listing.is_whole:
            return rows
        return self._connection.rows(_MESSAGE_OF_SESSION, (session_id, message_id))

    def _record(
        self, table: str, row: tuple[Any, ...], fields: dict[str, str], problems: list[Problem]
    ) -> bytes | None:
        """The ``data`` of a row as a record with `fields` put before its own.

        If that fails: None, and an entry in `problems`.
        """
        number, id_, type_, raw = row
        place = f"{table} {_text(id_)}"
        if type_ not in (b"text", b"blob"):
            problems.append(self._problem(place, BadRecord(f"data is {_text(type_)}, not JSON text"), b""))
            return None
        if raw is None:
            try:
                with self._connection.value(table, "data", number, id_) as value:
                    size = len(value)
                    if size > self._limit:
                        pieces = iter(lambda: value.read(PIECE), b"")
                        part_id = _text(id_) if table == "part" else ""
                        problems.append(oversize(self._large, self._place(place), part_id, size, pieces))
                        return None
                    raw = value.read()
            except Unreadable as error:
                problems.append(self._refused(place, str(error)))
                return None
        try:
            return records.with_fields(fields, raw)
        except BadRecord as error:
            problems.append(self._problem(place, error, raw))
            return None

    def _removed(self, session_id: str, message_id: str, gathered: Gathered, problems: list[Problem]) -> Reading:
        """A message without a row: its record in the journal, with the parts that still have rows."""
        self._journal.follow(session_id)
        raw = self._journal.message(session_id, message_id, problems)
        for part in self._journal.parts(session_id, message_id, gathered.ids, problems, calls_only=False):
            gathered.put(part)
        parts = gathered.parts()
        if raw is None and not parts:
            return Reading(None, (*problems, Problem(self._place(f"message {message_id}"), "gone, and not in events")))
        if raw is None:
            raw = orphan_record(session_id, message_id, parts, int(time.time() * 1000))
        try:
            return Reading(records.message(raw, parts, session_id), tuple(problems), orphan=True)
        except BadRecord as error:
            problems.append(self._problem(f"message {message_id}, removed", error, raw))
            return Reading(None, tuple(problems))

    def reverts(self, session_id: str) -> list[RevertMark]:
        """See Source. From the journal; if it has none, the pending revert."""
        return self._journal.reverts(session_id) or self._pending_revert(session_id)

    def _pending_revert(self, session_id: str) -> list[RevertMark]:
        row = self._session_row(session_id) or {}
        if not records.text(row.get("revert")):
            return []
        return pending_revert(records.load_object(row["revert"].encode()), records.integer(row.get("time_updated")))

    def todos(self, session_id: str) -> TodoList | None:
        """See Source. The list may be empty: OpenCode removes the rows of a list that was emptied."""
        names = sorted(self._connection.columns("todo") - {"session_id"})
        if not names:
            return None
        sql = f"SELECT {', '.join(map(_identifier, names))} FROM todo WHERE session_id = ?"
        rows = self._tables.whole("todo", sql, (session_id,))
        items = [{n: _text(v) if isinstance(v, bytes) else v for n, v in zip(names, row, strict=True)} for row in rows]
        items.sort(key=lambda item: records.integer(item.get("position")))
        if not items:
            session = self._session_row(
                session_id
            )  # the rows of a deleted session go with it: its list was not emptied
            return None if session is None else TodoList((), records.integer(session.get("time_updated")))
        return TodoList(tuple(items), max(records.integer(item.get("time_updated")) for item in items))

    def projects(self) -> list[Json]:
        """See Source."""
        names = sorted(self._connection.columns("project"))
        if "id" not in names:
            return []
        folders: dict[str, list[str]] = {}
        if self._connection.columns("project_directory") >= {"project_id", "directory"}:
            for project_id, folder in self._connection.rows("SELECT project_id, directory FROM project_directory"):
                folders.setdefault(_text(project_id), []).append(_text(folder))
        projects: list[Json] = []
        for row in self._connection.rows(f"SELECT {', '.join(map(_identifier, names))} FROM project ORDER BY id"):
            data = {name: _text(v) if isinstance(v, bytes) else v for name, v in zip(names, row, strict=True)}
            times = {"created": data.get("time_created"), "updated": data.get("time_updated")}
            projects.append(project_record(data, times, records.dumps(data), folders.get(_text(data["id"]))))
        return projects

    def _place(self, row: str) -> str:
        return f"{self._connection.path}: {row}"

    def _refused(self, row: str, reason: str) -> Problem:
        return Problem(self._place(row), reason, waits=True)

    def _problem(self, row: str, error: BadRecord, raw: bytes) -> Problem:
        return Problem(self._place(row), f"{self._place(row)}: {error}", len(raw), hashlib.sha256(raw).hexdigest())


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _or_null(columns: frozenset[str], name: str) -> str:
    return name if name in columns else "NULL"
