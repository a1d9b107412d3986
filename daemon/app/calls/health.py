"""The call `doctor`: the checks of the archive and of what stands on it, by whoever holds it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from daemon import __version__, doctor
from daemon.app import targets
from daemon.archive import Archive
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.calls import Progress
from daemon.doctor.rows import Subject
from daemon.exclude import Exclusion
from daemon.ingest import Upkeep
from daemon.model import Target
from daemon.opencode.discover import Sources
from daemon.recall.catalog import Catalog

_LATEST = 20
"""Sessions among which the newest message is looked for. A session's record is written after each of its messages."""


class HealthCalls:
    """A part of the engine: it has everything that is checked."""

    config: Config
    archive: Archive
    catalog: Catalog
    sources: Sources
    exclusion: Exclusion
    upkeep: Upkeep
    is_served: bool
    _unread: dict[str, str]
    check_running: Callable[[], None]

    def watch(self) -> str | None:
        """How the service follows the sources; None where a command holds the archive."""
        return None

    def doctor(self, request: calls.Doctor, progress: Progress) -> answers.Doctor:
        """See calls.Doctor."""
        if not self.is_served:
            self.sources.refresh()
        names = list(doctor.checks())

        def on_check(what: str) -> None:
            self.check_running()
            progress({"phase": "checks", "done": names.index(what), "total": len(names)})

        def on_entries(read: int) -> None:
            self.check_running()
            progress({"phase": "entries of the archive read", "done": read, "total": None})

        rows = doctor.of_archive(self._subject(on_entries if request.full else None), on_check)
        return answers.Doctor(__version__, os.getpid() if self.is_served else None, rows)

    def _subject(self, on_entries: Callable[[int], None] | None = None) -> Subject:
        return Subject(
            config=self.config,
            archive=self.archive,
            upkeep=self.upkeep,
            sources=self.sources,
            exclusion=self.exclusion,
            unread=dict(self._unread),
            watch=self.watch(),
            targets=[self._target_status(target) for target in targets.known(self.archive, self.config).values()],
            newest=self.newest(),
            now=int(time.time() * 1000),
            on_entries=on_entries,
        )

    def newest(self) -> int | None:
        """When the newest archived message was created, epoch ms; None in an empty archive."""
        sessions = sorted(self.catalog.rows().values(), key=lambda row: row.updated, reverse=True)[:_LATEST]
        last = [ids[-1] for row in sessions if (ids := self.archive.message_ids(row.id))]
        return max((state["created"] for message_id in last if (state := self.archive.state(message_id))), default=None)

    def _target_status(self, target: Target) -> answers.TargetStatus:
        last = self.archive.target_get(target.path, "last") or {}
        result = last.get("result", {})
        return answers.TargetStatus(
            path=target.path,
            refresh=target.refresh,
            schedule=target.schedule,
            last_run=last.get("time"),
            state=last.get("state", "not run yet"),
            warnings=result.get("warnings", []),
            unanswered=result.get("unanswered", 0),
        )
