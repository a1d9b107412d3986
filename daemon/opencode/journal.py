"""OpenCode 1.18's event journal, which still has what a revert removed from the tables (opencode-formats.md, Writing).

``event`` is append-only per session, numbered by ``seq``; each event holds the whole record. We keep a cursor per
session in memory: the first time we read all its events, in short queries, and later only the new ones. Part events
are read only for sessions that lost something. A missing table or one of another layout counts as empty. OpenCode
deletes the events of a session with the session.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from daemon import records
from daemon.errors import BadRecord
from daemon.model import Part
from daemon.opencode import Problem, RevertMark
from daemon.opencode.connection import Connection
from daemon.opencode.shared import Stamps, pending_revert
from daemon.records import time_of, time_until

_COLUMNS = frozenset({"id", "aggregate_id", "seq", "type", "data"})
_AT_ONCE = 500
"""Events per query, so that no read transaction is long."""

_SETTLING_MS = 10_000
"""A message without a row and without a removal event counts as removed only at this age."""

_VERSION = re.compile(r"\.\d+$")
_AT_ONE_STROKE_MS = 5_000
"""When a revert becomes final, its clearing and the removal of messages come within this time, in either order."""

_PART_EVENTS = "type LIKE 'message.part.updated%'"
_HEAD_PATHS = (
    "info.id", "messageID", "partID", "info.time.updated",
    "info.revert.messageID", "info.revert.partID", "info.revert.snapshot", "info.revert.diff",
)  # fmt: skip
_PART_PATHS = ("part.id", "part.messageID", "part.type", "part.state.status")


class RemovedRows(NamedTuple):
    """Records of a message that have no row: (part id or "" for the message, event), and when they changed."""

    rows: list[tuple[str, str]]
    changed: int


class _Event(NamedTuple):
    seq: int
    id: str
    kind: str  # the type without its version
    values: list[Any] | None  # at the queried paths; None: not queried, or unreadable
    size: int


class _MessageState(NamedTuple):
    first: int
    last: int
    time: int


class _PartState(NamedTuple):
    seq: int
    is_done_call: bool


@dataclass(slots=True)
class _Log:
    """The state of one session's journal up to `cursor`; of its parts up to `parts_cursor`."""

    cursor: int = -1
    messages: dict[str, _MessageState] = field(default_factory=dict)
    removed: dict[str, tuple[int, int]] = field(default_factory=dict)  # message id -> (event number, time)
    removed_parts: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    marks: list[RevertMark] = field(default_factory=list)
    revert: RevertMark | None = None
    is_final: bool = False  # something was removed since `revert`
    parts_cursor: int = -1
    parts: dict[str, _PartState] = field(default_factory=dict)
    of_message: dict[str, list[str]] = field(default_factory=dict)
    bad: dict[int, tuple[str, int]] = field(default_factory=dict)  # event number -> (event id, size)


class Journal:
    """The ``event`` table of one database file."""

    def __init__(self, connection: Connection, limit: int, clock: Callable[[], float] = time.time) -> None:
        self._connection = connection
        self._limit = limit
        self._clock = clock
        self._logs: dict[str, _Log] = {}
        self._replaced = connection.replaced

    # -- following -----------------------------------------------------------------------------------------------

    def follow(self, session_id: str) -> None:
        """Read this session's new events. Call it before listing rows, so that no message is missed in between.

        Raises:
            SourceBusy, SourceMissing: as for every query.
        """
        if not self._connection.columns("event") >= _COLUMNS:
            self._logs.clear()
            return
        rows = self._connection.rows("SELECT max(seq) FROM event WHERE aggregate_id = ?", (session_id,))
        if self._connection.replaced != self._replaced:
            self._logs, self._replaced = {}, self._connection.replaced
        top = rows[0][0] if rows else None
        if not isinstance(top, int):
            self._logs[session_id] = _Log()
            return
        log = self._logs.get(session_id)
        if log is None or top < log.cursor:  # another history has come in its place
            log = self._logs[session_id] = _Log()
        for event in self._events(session_id, log.cursor, f"NOT ({_PART_EVENTS})", _HEAD_PATHS):
            self._take(log, event)
            log.cursor = event.seq

    def _events(self, session_id: str, after: int, kinds: str, paths: tuple[str, ...]) -> Iterator[_Event]:
        """The events after `after`; for those that match the SQL condition `kinds`, also the values at `paths`."""
        queried = ", ".join(f"'$.{path}'" for path in paths)
        sound = "CASE WHEN typeof(data) = 'text' AND length(data) <= ? THEN json_valid(data) ELSE 0 END"
        sql = (
            f"SELECT seq, id, type, {kinds}, CASE WHEN {kinds} AND {sound} THEN json_extract(data, {queried}) END, "
            f"CASE WHEN {kinds} THEN length(data) ELSE 0 END "
            "FROM event WHERE aggregate_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        )
        while True:
            rows = self._connection.rows(sql, (self._limit, session_id, after, _AT_ONCE))
            for seq, id_, type_, is_wanted, values, size in rows:
                after = seq
                kind = _VERSION.sub("", _text(type_)) if is_wanted else ""
                yield _Event(seq, _text(id_), kind, _values(values), size)
            if len(rows) < _AT_ONCE:
                return

    def _take(self, log: _Log, event: _Event) -> None:
        if not event.kind:
            return
        if event.values is None:
            log.bad[event.seq] = (event.id, event.size)
            return
        id_, message_id, part_id, updated, *revert = event.values
        now = self._time(event.id, records.integer(updated))
        match event.kind:
            case "message.updated" if isinstance(id_, str):
                state = log.messages.get(id_)
                log.messages[id_] = _MessageState(state.first if state else event.seq, event.seq, now)
                log.removed.pop(id_, None)
            case "message.removed" if isinstance(message_id, str):
                log.removed[message_id] = (event.seq, now)
                _removed(log, message_id, now)
            case "message.part.removed" if isinstance(message_id, str) and isinstance(part_id, str):
                log.removed_parts.setdefault(message_id, {})[part_id] = (event.seq, now)
                _removed(log, message_id, now)
            case "session.updated":
                _revert(log, revert, now)

    def _time(self, event_id: str, default: int) -> int:
        return (time_of(event_id, default) if default else time_until(event_id, int(self._clock() * 1000))) or 0

    def _follow_parts(self, session_id: str, log: _Log) -> None:
        for event in self._events(session_id, log.parts_cursor, _PART_EVENTS, _PART_PATHS):
            if event.kind and event.values is None:
                log.bad[event.seq] = (event.id, event.size)
            elif event.values is not None:
                part_id, message_id, type_, status = event.values
                if isinstance(part_id, str) and isinstance(message_id, str):
                    if part_id not in log.parts:
                        log.of_message.setdefault(message_id, []).append(part_id)
                    is_done_call = type_ == "tool" and status == "completed"
                    log.parts[part_id] = _PartState(event.seq, is_done_call)
            log.parts_cursor = event.seq

    # -- answers -------------------------------------------------------------------------------------------------

    def removals(self, session_id: str, listed: Mapping[str, Stamps]) -> dict[str, RemovedRows]:
        """What was removed: whole messages, and completed tool calls of messages that still exist.

        `listed` are the messages that have rows, with those of their parts, read after `follow`.
        """
        log = self._logs.get(session_id)
        if log is None:
            return {}
        gone = [message_id for message_id in {**log.messages, **log.removed} if message_id not in listed]
        gone = [message_id for message_id in gone if self._is_gone(log, message_id)]
        incomplete = [message_id for message_id in log.removed_parts if message_id in listed]
        if not gone and not incomplete:
            return {}
        self._follow_parts(session_id, log)
        removals: dict[str, RemovedRows] = {}
        for message_id in gone:
            rows = [(part_id, f"event {log.parts[part_id].seq}") for part_id in log.of_message.get(message_id, ())]
            state, removed = log.messages.get(message_id), log.removed.get(message_id)
            if state is not None:
                rows.append(("", f"event {state.last}"))
            elif removed is not None and any(seq < removed[0] for seq in log.bad):
                rows = rows or [("", f"unreadable before {removed[0]}")]  # reading it reports the damage
            if rows:
                removals[message_id] = RemovedRows(rows, max(state.time if state else 0, removed[1] if removed else 0))
        for message_id in incomplete:
            lost = self._lost_calls(log, message_id, listed[message_id])
            if lost:
                rows = [(part_id, f"event {log.parts[part_id].seq}") for part_id in lost]
                removals[message_id] = RemovedRows(
                    rows, max(log.removed_parts[message_id][part_id][1] for part_id in lost)
                )
        return removals

    def _is_gone(self, log: _Log, message_id: str) -> bool:
        """Whether a message without a row was removed (by the journal, or by its age), not moved to OpenCode 2."""
        if message_id not in log.removed and self._clock() * 1000 - log.messages[message_id].time < _SETTLING_MS:
            return False
        if not self._connection.columns("session_message"):
            return True
        return not self._connection.rows("SELECT 1 FROM session_message WHERE id = ?", (message_id,))

    def _lost_calls(self, log: _Log, message_id: str, known_ids: Collection[str]) -> list[str]:
        removed = log.removed_parts.get(message_id, {})
        return [i for i in removed if i not in known_ids and i in log.parts and log.parts[i].is_done_call]

    def parts(
        self, session_id: str, message_id: str, known_ids: Collection[str], problems: list[Problem], *, calls_only: bool
    ) -> list[Part]:
        """The last version of each removed part of a message; `calls_only` where the message itself is still there."""
        log = self._known(session_id)
        if log is None or (calls_only and message_id not in log.removed_parts):
            return []
        self._follow_parts(session_id, log)
        if calls_only:
            wanted_ids = self._lost_calls(log, message_id, known_ids)
        else:
            wanted_ids = [part_id for part_id in log.of_message.get(message_id, ()) if part_id not in known_ids]
            problems += self._damage(session_id, log, message_id)
        parts = []
        for part_id in wanted_ids:
            seq = log.parts[part_id].seq
            try:
                parts.append(records.part(self._record(session_id, seq, "part"), message_id, session_id))
            except BadRecord as error:
                problems.append(Problem(self._place(session_id, seq), f"{self._place(session_id, seq)}: {error}"))
        return parts

    def message(self, session_id: str, message_id: str, problems: list[Problem]) -> bytes | None:
        """The last record of a removed message, as written into the journal; None if there is no readable one."""
        log = self._known(session_id)
        state = log.messages.get(message_id) if log is not None else None
        if state is None:
            return None
        try:
            return self._record(session_id, state.last, "info")
        except BadRecord as error:
            place = self._place(session_id, state.last)
            problems.append(Problem(place, f"{place}: {error}"))
            return None

    def reverts(self, session_id: str) -> list[RevertMark]:
        """Each revert and each undoing of one, in order."""
        self.follow(session_id)
        log = self._logs.get(session_id)
        return list(log.marks) if log is not None else []

    def _known(self, session_id: str) -> _Log | None:
        if session_id not in self._logs:
            self.follow(session_id)
        return self._logs.get(session_id)

    def _record(self, session_id: str, seq: int, name: str) -> bytes:
        sql = (
            f"SELECT CASE WHEN json_valid(data) THEN json_extract(data, '$.{name}') END "
            "FROM event WHERE aggregate_id = ? AND seq = ? AND typeof(data) = 'text'"
        )
        rows = self._connection.rows(sql, (session_id, seq))
        if not rows or not isinstance(rows[0][0], bytes):
            raise BadRecord("gone since it was listed" if not rows else f"no record under {name!r}")
        return bytes(rows[0][0])

    def _damage(self, session_id: str, log: _Log, message_id: str) -> list[Problem]:
        """Events that cannot be read and may concern this message: between its first and its removal."""
        state, removed = log.messages.get(message_id), log.removed.get(message_id)
        first, last = state.first if state else 0, removed[0] if removed else log.cursor
        problems = []
        for seq, (event_id, size) in log.bad.items():
            if not first <= seq <= last:
                continue
            place = f"{self._place(session_id, seq)} ({event_id})"
            why = "not JSON" if size <= self._limit else f"{size} bytes, more than limits.record_mb allows"
            sql = "SELECT data FROM event WHERE aggregate_id = ? AND seq = ? AND length(data) <= ?"
            rows = self._connection.rows(sql, (session_id, seq, self._limit))
            raw = rows[0][0] if rows and isinstance(rows[0][0], bytes) else b""
            problems.append(Problem(place, f"{place}: {why}", size, hashlib.sha256(raw).hexdigest() if raw else ""))
        return problems

    def _place(self, session_id: str, seq: int) -> str:
        return f"{self._connection.path}: event {seq} of {session_id}"


def _removed(log: _Log, message_id: str, now: int) -> None:
    """A removal makes a pending revert final, even if the session's record was cleared a moment before."""
    log.is_final = True
    last = log.marks[-1] if log.marks else None
    if last is not None and last.is_undone and last.message_id == message_id and now - last.time < _AT_ONE_STROKE_MS:
        log.marks.pop()


def _revert(log: _Log, fields: list[Any], now: int) -> None:
    """Follow the session's `revert` from state to state: set, moved, undone, or made final."""
    marks = pending_revert(dict(zip(("messageID", "partID", "snapshot", "diff"), fields, strict=True)), now)
    before, log.revert = log.revert, replace(marks[0], is_exact=True) if marks else None
    if log.revert is None:
        if before is not None and not log.is_final:
            log.marks.append(RevertMark(now, before.message_id, before.part_id, before.snapshot, is_undone=True))
    elif before is None or replace(before, time=now) != log.revert:  # else the record was touched for another reason
        log.marks.append(log.revert)
        log.is_final = False


def _values(raw: bytes | None) -> list[Any] | None:
    """The result of ``json_extract``; also None if it is not valid UTF-8, which SQLite accepts."""
    if raw is None:
        return None
    try:
        return list(records.loads(raw))
    except BadRecord:
        return None


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
