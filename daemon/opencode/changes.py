"""Which sessions of a database may have changed, found by a few short queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from daemon import records
from daemon.errors import Unreadable
from daemon.opencode.connection import Connection
from daemon.opencode.shared import stored_text as _text

_HOT_S = 900.0
"""We keep looking at a session this long after it was last active, because its rows may be updated in place."""

_NO_ROW = (0, None)
_RECENT = 64
"""Rows to read again if the newest row is gone, because SQLite gives its number to the next row."""

_LOOK_S, _REST, _LONGEST_S = 2.0, 50.0, 30.0
"""Seconds between two looks at what is costly to look at, or so many times as long as the rows took to be counted, and
the most: counting 150,000 takes 12 ms, and reading a session of 5,000 messages 20, while an answer that is being
written changes the database many times a second."""

_STILL_S = 0.4
"""Seconds without a change after which we look at once: an answer that ended without saying so is read then."""

_NEWEST = 64
"""Rows of messages whose update times are compared each time."""


class Changes:
    """Follows the ``session``, ``message`` and ``part`` tables of one file, and its journal."""

    def __init__(self, connection: Connection, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._clock = clock
        self._version: tuple[int, int] | None = None
        self._replaced = connection.replaced
        self._last_row: dict[str, tuple[int, object]] = {"message": _NO_ROW, "part": _NO_ROW}
        self._counts = {"session": 0, "message": 0}
        self._changed_at = self._look_at = 0.0
        self._is_owing = False
        """Whether something has changed since the last look."""
        self._is_named = False
        """Whether the journal has named a session since the last look."""
        self._newest: dict[tuple[object, object], object] = {}
        self._events: dict[str, int] = {}
        self._updated = 0
        self._at_last: set[str] = set()
        """The sessions whose own row has the latest time of all, `_updated`, and is known."""
        self._hot: dict[str, float] = {}

    def touched(self) -> Iterable[str] | None:
        """See Source. Sessions with new rows, new event numbers, or whose own row or newest messages have changed.

        At every look, also the last one and those that were active a short while ago. None if a session is gone, or
        rows of which the journal does not say whose they were; also if a page is damaged.
        """
        version, now = self._connection.data_version(), self._clock()
        is_new = version != self._version
        is_look = now >= self._look_at or (not is_new and now >= self._changed_at + _STILL_S)
        if not is_new and not (self._is_owing and is_look):
            return ()
        self._changed_at = now if is_new else self._changed_at
        try:
            return self._changed(version, now, is_look=is_look)
        except Unreadable:
            self._version, self._is_owing, self._look_at = version, False, now + _LOOK_S
            return None

    def _changed(self, version: tuple[int, int], now: float, *, is_look: bool) -> Iterable[str] | None:
        if not self._connection.columns("part") or not self._connection.columns("message"):
            self._version = version
            return None
        first = self._version is None or self._connection.replaced != self._replaced
        if first:
            self._replaced = self._connection.replaced
            self._last_row = dict.fromkeys(self._last_row, _NO_ROW)
            self._counts, self._events, self._updated = dict.fromkeys(self._counts, 0), {}, 0
            self._at_last = set()
        is_look |= first
        journaled, is_lost = self._journaled()
        self._is_named |= bool(journaled)
        is_less = self._has_less()
        if is_look:
            is_lost |= "session" in (fewer := self._fewer())
            is_less |= bool(fewer)
        is_lost |= is_less and not self._is_named
        self._is_named &= not is_look
        added, rewritten = {*self._added("message"), *self._added("part")}, self._rewritten()
        changed = journaled | added | self._altered() | rewritten
        self._version, self._is_owing = version, not is_look
        # At first all are new; those of the newest messages may have been active a moment before we were.
        self._hot |= dict.fromkeys(rewritten if first else changed, now)
        self._hot = {session: active for session, active in self._hot.items() if now - active < _HOT_S}
        if first or is_lost:
            return None
        return list(self._hot.keys() | self._at_last if is_look else changed)

    def _journaled(self) -> tuple[set[str], bool]:
        """The sessions with new events in the journal, and whether one is gone, which goes with its events."""
        has_journal = self._connection.columns("event_sequence")
        rows = self._connection.rows("SELECT aggregate_id, seq FROM event_sequence") if has_journal else []
        before, self._events = self._events, {_text(session_id): number for session_id, number in rows}
        changed = {session_id for session_id, number in self._events.items() if before.get(session_id) != number}
        return changed, not before.keys() <= self._events.keys()

    def _has_less(self) -> bool:
        """Whether the newest row of a table is gone, even if new rows have come."""
        is_less = False
        for table, (row, id_) in self._last_row.items():
            if row and self._connection.rows(f"SELECT id FROM {table} WHERE rowid = ?", (row,)) != [(id_,)]:
                is_less = True
                ((newest,),) = self._connection.rows(f"SELECT max(rowid) FROM {table}")
                self._last_row[table] = (max(0, min(row, newest or 0) - _RECENT), None)
        return is_less

    def _fewer(self) -> set[str]:
        """The tables that have fewer rows than at the last look.

        Parts are not counted, there are too many; they go with their messages.
        """
        before, begun = dict(self._counts), self._clock()
        for table in self._counts:
            ((self._counts[table],),) = self._connection.rows(f"SELECT count(*) FROM {table}")
        now = self._clock()
        self._look_at = now + min(_LONGEST_S, max(_LOOK_S, _REST * (now - begun)))
        return {table for table, count in before.items() if self._counts[table] < count}

    def _added(self, table: str) -> set[str]:
        """The sessions with rows after the last one that we have read."""
        changed: set[str] = set()
        # "+", or SQLite reads the whole index over sessions for the sake of its order.
        sql = f"SELECT session_id, max(rowid), id FROM {table} WHERE rowid > ? GROUP BY +session_id"
        for session_id, row, id_ in self._connection.rows(sql, (self._last_row[table][0],)):
            changed.add(_text(session_id))
            self._last_row[table] = max(self._last_row[table], (row, id_), key=lambda last: last[0])
        return changed

    def _altered(self) -> set[str]:
        """The sessions whose own row has changed."""
        sql = "SELECT id, time_updated FROM session WHERE time_updated >= ?"
        rows = [(_text(id_), records.integer(updated)) for id_, updated in self._connection.rows(sql, (self._updated,))]
        changed = {id_ for id_, updated in rows if updated > self._updated or id_ not in self._at_last}
        latest = max([self._updated, *(updated for _, updated in rows)])
        self._at_last = {id_ for id_, updated in rows if updated == latest}
        self._updated = latest
        return changed

    def _rewritten(self) -> set[str]:
        """The sessions of the newest messages whose own row has changed, as at the end of an answer."""
        if "time_updated" not in self._connection.columns("message"):
            return set()
        sql = f"SELECT session_id, id, time_updated FROM message ORDER BY rowid DESC LIMIT {_NEWEST}"
        before, rows = self._newest, self._connection.rows(sql)
        self._newest = {(session_id, id_): updated for session_id, id_, updated in rows}
        return {_text(row[0]) for row, updated in self._newest.items() if before.get(row) != updated}
