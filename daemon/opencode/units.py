"""The units of a session in the tables ``message`` and ``part``: which messages have rows, and which rows changed.

A session that grows is listed again and again, while most of its rows stay as they were. So what was listed twice
lately is remembered, and only rows updated since the latest known time are asked for. Their number and a digest, which
SQLite makes of all rows, then show whether anything else differs, as after a removal; if so, all are read again.
Listing 5,600 messages with 11,900 parts takes 44 ms of processor time, and 9 so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeAlias

from daemon import records
from daemon.errors import Unreadable
from daemon.opencode import Listing, Unit
from daemon.opencode.connection import Connection
from daemon.opencode.damage import Tables
from daemon.opencode.journal import RemovedRows
from daemon.opencode.shared import Stamps
from daemon.opencode.shared import stored_text as _text

_MOST_SESSIONS, _MOST_MESSAGES = 64, 20_000
"""How many sessions are remembered, and how many messages in all unless one session has more: some 15 MB."""

_TABLES = (("message", "id", "''"), ("part", "message_id", "id"))
"""Each table, and its columns of the message's and the part's id."""

_TIME, _ROW, _SHIFT, _PRIME = (1 << 30) - 1, (1 << 12) - 1, 18, (1 << 31) - 1
_PLACED = f"((time_updated & {_TIME}) + ((rowid & {_ROW}) << {_SHIFT}))"
_DIGEST = f"sum(({_PLACED} * {_PLACED}) % {_PRIME})"
"""A number that differs when rows come, go or get another time: the sum of the `_share` of each, which is squared so
that changes do not compensate one another. No step overflows SQLite's 64 bits."""

Removals: TypeAlias = Callable[[Mapping[str, Stamps]], Mapping[str, RemovedRows]]
"""What was removed of a session, given the messages that have rows."""
_Made: TypeAlias = tuple[Stamps, int, Unit]
"""A unit, and what it was made of: the stamps, and when rows of the message were last removed, in epoch ms."""


def telling(columns: frozenset[str]) -> str:
    """The column that shows whether a row changed: its update time, or the content if there is none."""
    return "time_updated" if "time_updated" in columns else "data"


@dataclass(slots=True)
class _Sum:
    """Of the rows of one session in one table: their number, their digest, the latest update time."""

    rows: int = 0
    digest: int = 0
    latest: int = 0

    def is_of(self, rows: int, digest: int | None) -> bool:
        """Whether these are the number and the digest of the same rows; no digest: of none."""
        return self.rows == rows and self.digest == (digest or 0)

    def add(self, row: int, updated: int) -> None:
        """Count a row."""
        self.rows, self.digest = self.rows + 1, self.digest + _share(row, updated)
        self.latest = max(self.latest, updated)

    def drop(self, row: int, updated: int) -> None:
        """Do not count it any more."""
        self.rows, self.digest = self.rows - 1, self.digest - _share(row, updated)


def _share(row: int, updated: int) -> int:
    placed = (updated & _TIME) + ((row & _ROW) << _SHIFT)
    return placed * placed % _PRIME


@dataclass(slots=True)
class _Known:
    """The rows of one session. `replaced`: see Connection. `sums` by table; none if a row has no update time."""

    replaced: int
    stamps: dict[str, Stamps] = field(default_factory=dict)
    sums: dict[str, _Sum] = field(default_factory=dict)
    made: dict[str, _Made] = field(default_factory=dict)

    def put(self, total: _Sum, changed: Iterable[tuple[Any, ...]]) -> bool:
        """Note changed rows of one table; False if one has no update time."""
        for row, message, part, updated in changed:
            if not isinstance(updated, int):
                return False
            message_id, part_id = _text(message), _text(part)
            stamps = self.stamps.get(message_id, {})
            if isinstance(former := stamps.get(part_id), int):
                total.drop(row, former)
            total.add(row, updated)
            self.stamps[message_id] = {**stamps, part_id: updated}  # another one than a unit was made of
        return True


class SessionUnits:
    """The units of one database by session. Not thread-safe."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        self._last: dict[str, _Known] = {}

    def of(self, session_id: str, listing: Listing[Unit], removals: Removals) -> dict[str, Unit]:
        """The units of a session's messages; what is damaged is noted in the listing.

        Raises:
            SourceBusy, SourceMissing: as for every query.
        """
        before = self._last.pop(session_id, None)
        known = None if before is None else self._followed(session_id, before)
        if known is None:
            known = self._read(session_id, listing, is_again=before is not None)
        known.made = made(known.stamps, removals(known.stamps), before.made if before is not None else {})
        if not listing.problem:
            # A full scan lists all sessions once, and none of them need be remembered for that.
            self._last[session_id] = known if before is not None else _Known(known.replaced)
            self._forget_old()
        return {message_id: unit for message_id, (_, _, unit) in known.made.items()}

    def _forget_old(self) -> None:
        sizes = {session_id: len(known.stamps) for session_id, known in self._last.items() if known.stamps}
        while sum(sizes.values()) > _MOST_MESSAGES and len(sizes) > 1:
            oldest = next(iter(sizes))
            del sizes[oldest], self._last[oldest]
        while len(self._last) > _MOST_SESSIONS:
            del self._last[next(iter(self._last))]

    def _followed(self, session_id: str, before: _Known) -> _Known | None:
        """What is known, with the rows that have changed since; None if that does not account for all rows."""
        sums = {table: replace(total) for table, total in before.sums.items()}
        known = _Known(before.replaced, dict(before.stamps), sums)
        try:
            for table, message, part in _TABLES:
                if table not in sums or telling(self._connection.columns(table)) != "time_updated":
                    return None
                sql = f"SELECT count(*), {_DIGEST} FROM {table} WHERE session_id = ?"
                ((rows, digest),) = self._connection.rows(sql, (session_id,))
                total = sums[table]
                if not total.is_of(rows, digest):
                    sql = f"{_select(table, message, part, 'time_updated')} AND time_updated >= ?"
                    changed = self._connection.rows(sql, (session_id, total.latest))
                    if not known.put(total, changed) or not total.is_of(rows, digest):
                        return None
        except Unreadable:
            return None
        return known if self._connection.replaced == before.replaced else None

    def _read(self, session_id: str, listing: Listing[Unit], *, is_again: bool) -> _Known:
        known, stamps = _Known(self._connection.replaced), dict[str, dict[str, object]]()
        for table, message, part in _TABLES:
            sql = _select(table, message, part, telling(self._connection.columns(table)))
            rows = self._tables.listed(table, sql, (session_id,), listing)
            for _, message_id, part_id, updated in rows:
                stamps.setdefault(_text(message_id), {})[_text(part_id)] = updated
            if is_again and all(isinstance(row[-1], int) for row in rows):
                total = known.sums[table] = _Sum()
                for row, _, _, updated in rows:
                    total.add(row, updated)
        known.stamps.update(stamps)
        return known


def _select(table: str, message: str, part: str, told_by: str) -> str:
    return f"SELECT rowid, {message}, {part}, {told_by} FROM {table} WHERE session_id = ?"


def made(
    listed: Mapping[str, Stamps], removed: Mapping[str, RemovedRows], before: Mapping[str, _Made]
) -> dict[str, _Made]:
    """The unit of each message, from its rows and what was removed of them; those of `before` that are the same."""
    units: dict[str, _Made] = {}
    for message_id in {**listed, **removed}:
        stamps, changed = listed.get(message_id, {}), 0
        if message_id in removed:
            rows, changed = removed[message_id]
            stamps = {**stamps, **dict(rows)}
        last = before.get(message_id)
        is_same = last is not None and last[1] == changed and (last[0] is stamps or last[0] == stamps)
        units[message_id] = last if last is not None and is_same else (stamps, changed, _unit(stamps, changed))
    return units


def _unit(stamps: Stamps, changed: int) -> Unit:
    total = hashlib.sha256()
    for part_id, updated in sorted(stamps.items(), key=itemgetter(0)):
        total.update(f"{part_id}\0{updated}\n".encode("utf-8", "surrogatepass"))
    return Unit(total.hexdigest()[:24], max([changed, *map(records.integer, stamps.values())]))
