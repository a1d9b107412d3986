"""The units of a session in the tables ``message`` and ``part``: which messages have rows, and which rows changed.

A session that grows is listed again and again, while most of its rows stay as they were. So the rows of the sessions
that were listed last are remembered, and only those with as late an update time are asked for again. A number that the
rows of a table have in common, made by SQLite of all of them, then shows whether anything else differs, as after a
removal; if so, all are read again. Listing 5,000 messages and 10,000 parts took 25 ms, and takes 5 so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
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

_SESSIONS = 3
_TABLES = (("message", "id", "''"), ("part", "message_id", "id"))
"""Each table, the columns of the message's and the part's id."""

_TIME, _ROW, _SHIFT, _PRIME = (1 << 30) - 1, (1 << 12) - 1, 18, (1 << 31) - 1
_PLACED = f"((time_updated & {_TIME}) + ((rowid & {_ROW}) << {_SHIFT}))"
_DIGEST = f"sum(({_PLACED} * {_PLACED}) % {_PRIME})"
"""A number that differs when rows come, go or get another time: the sum of the `_share` of each, which is squared so
that changes do not compensate one another. No step overflows SQLite's 64 bits."""

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
        self.rows, self.digest, self.latest = (
            self.rows + 1,
            self.digest + _share(row, updated),
            max(self.latest, updated),
        )


@dataclass(slots=True)
class _Known:
    """The rows of one session. `replaced`: see Connection. `read` are the rows by table, until they are summed up."""

    replaced: int
    stamps: dict[str, Stamps] = field(default_factory=dict)
    read: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    sums: dict[str, _Sum] = field(default_factory=dict)

    def summed(self) -> dict[str, _Sum] | None:
        """The sums by table, to be changed; None if a row has no update time, so that nothing tells what changed."""
        if self.sums:
            return {table: replace(total) for table, total in self.sums.items()}
        sums = {table: _Sum() for table in self.read}
        for table, rows in self.read.items():
            for row, _, _, updated in rows:
                if not isinstance(updated, int):
                    return None
                sums[table].add(row, updated)
        return sums

    def put(self, total: _Sum, changed: Iterable[tuple[Any, ...]]) -> bool:
        """Note changed rows of one table; False if one has no update time."""
        for row, message, part, updated in changed:
            if not isinstance(updated, int):
                return False
            message_id, part_id = _text(message), _text(part)
            stamps = self.stamps.get(message_id, {})
            if isinstance(former := stamps.get(part_id), int):
                total.rows, total.digest = total.rows - 1, total.digest - _share(row, former)
            total.add(row, updated)
            self.stamps[message_id] = {**stamps, part_id: updated}  # another one than a unit was made of
        return True


def _share(row: int, updated: int) -> int:
    placed = (updated & _TIME) + ((row & _ROW) << _SHIFT)
    return placed * placed % _PRIME


class SessionRows:
    """The rows of one database by session; those of the sessions that were listed last are remembered."""

    def __init__(self, connection: Connection, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        self._last: dict[str, _Known] = {}

    def of(self, session_id: str, listing: Listing[Any]) -> dict[str, Stamps]:
        """The messages of a session that have rows; what is damaged is noted in the listing.

        Raises:
            SourceBusy, SourceMissing: as for every query.
        """
        known = self._last.pop(session_id, None)
        if known is not None:
            known = self._followed(session_id, known)
        if known is None:
            known = self._read(session_id, listing)
        if not listing.problem:
            self._last[session_id] = known
            while len(self._last) > _SESSIONS:
                del self._last[next(iter(self._last))]
        return known.stamps

    def _followed(self, session_id: str, before: _Known) -> _Known | None:
        """What is known, with the rows that have changed since; None if that does not account for all rows."""
        if (sums := before.summed()) is None:
            return None
        known = _Known(before.replaced, dict(before.stamps), sums=sums)
        try:
            for table, message, part in _TABLES:
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

    def _read(self, session_id: str, listing: Listing[Any]) -> _Known:
        known, stamps = _Known(self._connection.replaced), dict[str, dict[str, object]]()
        for table, message, part in _TABLES:
            sql = _select(table, message, part, telling(self._connection.columns(table)))
            known.read[table] = self._tables.listed(table, sql, (session_id,), listing)
            for _, message_id, part_id, updated in known.read[table]:
                stamps.setdefault(_text(message_id), {})[_text(part_id)] = updated
        known.stamps.update(stamps)
        return known


def _select(table: str, message: str, part: str, told_by: str) -> str:
    return f"SELECT rowid, {message}, {part}, {told_by} FROM {table} WHERE session_id = ?"


class Units:
    """Makes units, and remembers those of the sessions that were listed last."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, _Made]] = {}

    def of(self, session_id: str, listed: Mapping[str, Stamps], removed: Mapping[str, RemovedRows]) -> dict[str, Unit]:
        """The units of a session's messages, from their rows and what was removed of them."""
        known, units = self._last.pop(session_id, {}), dict[str, _Made]()
        for message_id in {**listed, **removed}:
            stamps, changed = listed.get(message_id, {}), 0
            if message_id in removed:
                rows, changed = removed[message_id]
                stamps = {**stamps, **dict(rows)}
            made = known.get(message_id)
            is_same = made is not None and made[1] == changed and (made[0] is stamps or made[0] == stamps)
            units[message_id] = made if made is not None and is_same else (stamps, changed, _unit(stamps, changed))
        self._last[session_id] = units
        while len(self._last) > _SESSIONS:
            del self._last[next(iter(self._last))]
        return {message_id: unit for message_id, (_, _, unit) in units.items()}


def _unit(stamps: Stamps, changed: int) -> Unit:
    total = hashlib.sha256()
    for part_id, updated in sorted(stamps.items(), key=itemgetter(0)):
        total.update(f"{part_id}\0{updated}\n".encode("utf-8", "surrogatepass"))
    return Unit(total.hexdigest()[:24], max([changed, *map(records.integer, stamps.values())]))
