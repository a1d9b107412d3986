"""The sessions in memory, with the fields that filters need; and a summary of the records that could not be read.

Filters on a session become a set of session ids, from the records as they are now: a session that was renamed or moved
yesterday is not searched under its old name. Records that could not be read are in no index, so answers mention them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.display import counted, one_line, shorten
from daemon.model import Json
from daemon.redact import redact

_SAMPLES = 3
_LONGEST = 200
_RECORDS = ("message ", "session ")
"""Prefixes of OpenCode's records; the quarantine also has texts that no model can embed."""


@dataclass(frozen=True, slots=True)
class QuarantineSummary:
    """How many records could not be read completely; `samples` are (record, reason) of the latest, redacted."""

    count: int = 0
    samples: tuple[tuple[str, str], ...] = ()

    def coverage(self) -> Json:
        """``{loadErrorCount, loadErrors: [{record, reason}]}``; empty where everything was read."""
        if not self.count:
            return {}
        samples = [{"record": record, "reason": reason} for record, reason in self.samples]
        return {"loadErrorCount": self.count, "loadErrors": samples}

    def warnings(self) -> list[str]:
        """At most one: a missing text may be in an unreadable record."""
        if not self.count:
            return []
        record, reason = self.samples[0]
        more = " and others" if self.count > 1 else ""
        problem = f"{counted(self.count, 'recorded item')} could not be read, or not whole, and cannot be found"
        return [f"{problem}: {record} ({reason}){more}; `status()` says more"]


class Quarantine:
    """The records that could not be read. Counted once, and again after a change. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: tuple[int, QuarantineSummary] = (-1, QuarantineSummary())

    def summary(self) -> QuarantineSummary:
        """The current summary."""
        changes = self._archive.quarantine_changes  # read first, so that a change during the count is noticed next time
        if self._known[0] != changes:
            entries = [entry for entry in self._archive.quarantined().items() if entry[0].startswith(_RECORDS)]
            entries.sort(key=lambda entry: (-entry[1].get("time", 0), entry[0]))
            samples = tuple(
                (_shortened(place), _shortened(str(entry.get("reason")))) for place, entry in entries[:_SAMPLES]
            )
            self._known = changes, QuarantineSummary(len(entries), samples)
        return self._known[1]


def _shortened(text: str) -> str:
    return shorten(one_line(redact(text)), _LONGEST)


@dataclass(frozen=True, slots=True)
class Row:
    """One session. Times are epoch ms; `deleted` and `archived` are None where it is neither."""

    id: str
    title: str
    directory: str
    project_id: str
    parent_id: str
    created: int
    updated: int
    archived: int | None
    deleted: int | None


class Catalog:
    """Reads every session once, then only those whose record was written since. Thread-safe."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.quarantine = Quarantine(archive)
        """The records that could not be read."""
        self._lock = threading.Lock()
        self._place = -1
        self._rows: dict[str, Row] = {}

    def rows(self) -> Mapping[str, Row]:
        """All sessions of the archive by id, as they are now; not to be changed."""
        with self._lock:
            if self._place < 0:
                place, _ = self._archive.sessions_touched()
                rows = {row.id: row for session in self._archive.sessions() if (row := self._row(session.id))}
            else:
                place, touched = self._archive.sessions_touched(self._place)
                rows = self._with(touched) if touched else self._rows
            self._place, self._rows = place, rows  # assigned last, because reading may fail
            return rows

    def _with(self, touched: Iterable[str]) -> dict[str, Row]:
        """The rows with these sessions read again; a new mapping, as another thread may iterate over the old one."""
        rows = dict(self._rows)
        for session_id in dict.fromkeys(touched):
            row = self._row(session_id)
            if row is None:
                rows.pop(session_id, None)
            else:
                rows[session_id] = row
        return rows

    def _row(self, session_id: str) -> Row | None:
        session, state = self._archive.session(session_id), self._archive.session_state(session_id)
        if session is None:
            return None
        return Row(
            id=session.id,
            title=session.title,
            directory=session.directory,
            project_id=session.project_id,
            parent_id=session.parent_id or "",
            created=session.created,
            updated=session.updated,
            archived=session.archived,
            deleted=(state or {}).get("deleted"),
        )
