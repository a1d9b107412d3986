"""The sessions by what questions about them need: title, directory, project, times; kept in memory and current.

Filters on a session (its title, its directory, archived, deleted) become a set of session ids here, from the records
as they are now: a session that was renamed or moved yesterday is not searched under its old name.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.recall.quarantine import KeptAside


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
        self.aside = KeptAside(archive)
        """The records that could not be read."""
        self._lock = threading.Lock()
        self._place = -1
        self._rows: dict[str, Row] = {}

    def rows(self) -> Mapping[str, Row]:
        """All sessions of the archive by id, as they are now; not to be changed."""
        with self._lock:
            if self._place < 0:
                self._place, _ = self._archive.sessions_touched()
                self._rows = {row.id: row for one in self._archive.sessions() if (row := self._row(one.id))}
                return self._rows
            place, touched = self._archive.sessions_touched(self._place)
            if touched:
                renewed = {row.id: row for one in set(touched) if (row := self._row(one))}
                self._rows = self._rows | renewed  # a new mapping: another thread may be walking the old one
            self._place = place
            return self._rows

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
