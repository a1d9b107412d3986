"""The SQLite database of OpenCode 1.2 and later, as of 1.18 (opencode-formats.md, Records and Writing).

Rows are updated in place far more often than added, so a session's messages are listed with the update times of all
their rows, and content decides what changed. ``message.data`` and ``part.data`` are the JSON records without their ids.
What a revert removed is read from the journal, if there is one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from daemon import records
from daemon.errors import BadRecord, SourceBusy, SourceMissing
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json, Session
from daemon.opencode import DATABASE, Problem, Reading, RevertMark, TodoList, Unit
from daemon.opencode.connection import Connection, TooLargeError
from daemon.opencode.journal import Journal
from daemon.opencode.shared import (
    PIECE,
    Gathered,
    Stamps,
    Units,
    orphan_record,
    oversize,
    pending_revert,
    project_record,
)

_HOT_S = 900.0
"""We keep checking a session this long after its last insert, because its rows may be updated in place."""

_Rows: TypeAlias = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The rows of a message's parts, and its own row: rowid, id, type of the value, and the value, or None if unread."""

_PARTS = "SELECT rowid, id, typeof(data), {data} FROM part WHERE message_id = ? ORDER BY id"
_MESSAGE = "SELECT rowid, id, typeof(data), {data} FROM message WHERE id = ?"
_AT_ONCE, _BYTES_AT_ONCE = 100, 4 << 20
"""The most messages, and bytes, that one query reads."""

_NO_ROW = (0, None)
_RECENT = 64
"""Rows to read again if the newest row is gone, because SQLite gives its number to the next row."""


class Database:
    """The ``session``, ``message`` and ``part`` tables of one file."""

    kind = "SQLite (OpenCode 1.2 and later)"
    generation = DATABASE
    session_table = "session"

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
        self._clock = clock
        self.name = f"db:{connection.path}"
        self._version: tuple[int, int] | None = None
        self._replaced = connection.replaced
        self._last_row: dict[str, tuple[int, object]] = {"message": _NO_ROW, "part": _NO_ROW}
        self._counts = {"session": 0, "message": 0}
        self._events: dict[str, int] = {}
        self._updated = 0
        self._hot: dict[str, float] = {}
        self._units = Units()
        self._journal = Journal(connection, self._limit)

    def close(self) -> None:
        """See Source."""
        self._connection.close()

    def hint(self, path: str) -> None:
        """Does nothing: `data_version` shows whether anything was committed."""

    # -- what may have changed -----------------------------------------------------------------------------------

    def touched(self) -> Iterable[str] | None:
        """See Source. Sessions with new rows, new event numbers or a changed session row, and recently active ones.

        Also None if rows are gone and the journal does not say which session they belonged to.
        """
        version = self._connection.data_version()
        if version == self._version:
            return ()
        if not self._connection.columns("part") or not self._connection.columns("message"):
            self._version = version
            return None
        first = self._version is None or self._connection.replaced != self._replaced
        if first:
            self._replaced = self._connection.replaced
            self._last_row = dict.fromkeys(self._last_row, _NO_ROW)
            self._counts, self._events, self._updated = dict.fromkeys(self._counts, 0), {}, 0
        journaled = self._journaled()
        is_less = self._has_less()
        changed = journaled.union(*(self._added(table) for table in self._last_row), self._altered())
        self._version = version
        if not first:
            now = self._clock()
            self._hot |= dict.fromkeys(changed, now)
            self._hot = {session: inserted for session, inserted in self._hot.items() if now - inserted < _HOT_S}
        return None if first or (is_less and not journaled) else list(self._hot)

    def _journaled(self) -> set[str]:
        """The sessions with new events in the journal."""
        changed: set[str] = set()
        if self._connection.columns("event_sequence"):
            for session_id, number in self._connection.rows("SELECT aggregate_id, seq FROM event_sequence"):
                if self._events.get(_text(session_id)) != number:
                    self._events[_text(session_id)] = number
                    changed.add(_text(session_id))
        return changed

    def _has_less(self) -> bool:
        """Whether a table has lost rows: it has fewer, or its newest row is gone, even if new rows have come.

        Parts are not counted, there are too many; they go with their messages.
        """
        is_less = False
        for table, before in self._counts.items():
            ((count,),) = self._connection.rows(f"SELECT count(*) FROM {table}")
            is_less |= count < before
            self._counts[table] = count
        for table, (row, id_) in self._last_row.items():
            if row and self._connection.rows(f"SELECT id FROM {table} WHERE rowid = ?", (row,)) != [(id_,)]:
                is_less = True
                ((newest,),) = self._connection.rows(f"SELECT max(rowid) FROM {table}")
                self._last_row[table] = (max(0, min(row, newest or 0) - _RECENT), None)
        return is_less

    def _added(self, table: str) -> set[str]:
        """The sessions with rows after the last one that we have read."""
        changed: set[str] = set()
        sql = f"SELECT session_id, max(rowid), id FROM {table} WHERE rowid > ? GROUP BY session_id"
        for session_id, row, id_ in self._connection.rows(sql, (self._last_row[table][0],)):
            changed.add(_text(session_id))
            self._last_row[table] = max(self._last_row[table], (row, id_), key=lambda last: last[0])
        return changed

    def _altered(self) -> set[str]:
        """The sessions whose own row has changed."""
        changed: set[str] = set()
        sql = "SELECT id, time_updated FROM session WHERE time_updated >= ?"
        for session_id, updated in self._connection.rows(sql, (self._updated,)):
            changed.add(_text(session_id))
            self._updated = max(self._updated, records.integer(updated))
        return changed

    # -- listing -------------------------------------------------------------------------------------------------

    def sessions(self) -> Mapping[str, str]:
        """See Source."""
        columns = self._connection.columns("session")
        if not columns:
            raise SourceMissing(f"{self._connection.path}: no table session (found: {self._connection.tables()})")
        rows = self._connection.rows(f"SELECT id, time_updated, {_or_null(columns, 'title')} FROM session")
        stamps = {_text(row[0]): f"{row[1]}-{_text(row[2])}" for row in rows}
        for (session_id,) in self._connection.rows("SELECT DISTINCT session_id FROM message"):
            stamps.setdefault(_text(session_id), "none")
        return stamps

    def messages(self, session_id: str) -> Mapping[str, Unit]:
        """See Source. Includes removed messages that the journal still has."""
        self._journal.follow(session_id)
        sql = f"SELECT id, {_telling(self._connection.columns('message'))} FROM message WHERE session_id = ?"
        listed: dict[str, Stamps] = {}
        for message_id, updated in self._connection.rows(sql, (session_id,)):
            listed[_text(message_id)] = [("", updated)]
        telling = _telling(self._connection.columns("part"))
        sql = f"SELECT message_id, id, {telling} FROM part WHERE session_id = ?"
        for message_id, part_id, updated in self._connection.rows(sql, (session_id,)):
            listed.setdefault(_text(message_id), []).append((_text(part_id), updated))
        removed = self._journal.removals(session_id, {name: {row[0] for row in rows} for name, rows in listed.items()})
        for message_id, (rows, _) in removed.items():
            listed.setdefault(message_id, []).extend(rows)
        changes = {message_id: removal.changed for message_id, removal in removed.items()}
        return self._units.of(session_id, listed, changes)

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
        for row in self._connection.rows(sql, (session_id,)):
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
        return batch

    def _of_rows(self, session_id: str, message_id: str, rows: _Rows | None) -> Reading:
        """`rows` are the message's rows if just read; otherwise they are queried, and each value by itself."""
        problems: list[Problem] = []
        gathered = Gathered(session_id, message_id, self._large)
        part_rows = rows[0] if rows else self._connection.rows(_PARTS.format(data="NULL"), (message_id,))
        for part_row in part_rows:
            fields = {"id": _text(part_row[1]), "sessionID": session_id, "messageID": message_id}
            raw = self._record("part", part_row, fields, problems)
            if raw is not None:
                try:
                    gathered.add(raw)
                except BadRecord as error:
                    problems.append(self._problem(f"part {fields['id']}", error, raw))
        own_rows = rows[1] if rows else self._connection.rows(_MESSAGE.format(data="NULL"), (message_id,))
        if not own_rows:
            return self._removed(session_id, message_id, gathered, problems)
        for part in self._journal.parts(session_id, message_id, gathered.ids, problems, calls_only=True):
            gathered.put(part)
        ids = {"id": message_id, "sessionID": session_id}
        raw = self._record("message", own_rows[0], ids, problems)
        if raw is None:
            return Reading(None, tuple(problems))
        try:
            return Reading(records.message(raw, gathered.parts(), session_id), tuple(problems))
        except BadRecord as error:
            problems.append(self._problem(f"message {message_id}", error, raw))
            return Reading(None, tuple(problems))

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
            with self._connection.value(table, "data", number, id_) as value:
                size = len(value)
                if size > self._limit:
                    pieces = iter(lambda: value.read(PIECE), b"")
                    part_id = _text(id_) if table == "part" else ""
                    problems.append(oversize(self._large, self._place(place), part_id, size, pieces))
                    return None
                raw = value.read()
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
        rows = self._connection.rows(sql, (session_id,))
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

    def _problem(self, row: str, error: BadRecord, raw: bytes) -> Problem:
        return Problem(self._place(row), f"{self._place(row)}: {error}", len(raw), hashlib.sha256(raw).hexdigest())


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) if value is not None else ""


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _or_null(columns: frozenset[str], name: str) -> str:
    return name if name in columns else "NULL"


def _telling(columns: frozenset[str]) -> str:
    """The column that shows whether a row changed: its update time, or the content if there is none."""
    return "time_updated" if "time_updated" in columns else "data"
