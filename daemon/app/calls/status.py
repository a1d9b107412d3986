"""The call `status`: what is archived, indexed, followed and waiting, how far it is behind, and what needs a person.

It does no work: it lists no source, reads no record and opens no index.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from msgspec import UNSET

from daemon import __version__, doctor
from daemon.app import targets
from daemon.app.calls.health import HealthCalls
from daemon.app.calls.pausing import Pausing
from daemon.app.indexing import SCAN, VECTORS, Pace
from daemon.archive import STAGES, TOOLS
from daemon.control import answers, calls
from daemon.control.answers import from_json
from daemon.control.calls import silent
from daemon.doctor.rows import guarded, troubles
from daemon.doctor.sources import progress
from daemon.errors import SourceBusy, SourceMissing
from daemon.filesystem.disk_space import DiskSpace, free_bytes, used_bytes
from daemon.ingest import Intake
from daemon.model import Json
from daemon.opencode import Source
from daemon.redact import redact

_LISTED = 5
_NOT_FOLLOWED = "not followed; if OpenCode writes to it, name it in opencode.databases"


class StatusCalls(HealthCalls):
    """A part of the engine: it has everything that the status tells."""

    intake: Intake
    space: DiskSpace
    pausing: Pausing
    errors: deque[answers.ErrorStatus]
    model_status: str
    embedding_left_s: Callable[[], float | None]
    pace: Pace
    config_file: Path | None = None
    """The file that the configuration was read from, whether or not it is there; None where the caller named none."""

    def status(self, _request: calls.Status) -> answers.Status:
        """See calls.Status."""
        if not self.is_served:
            self.sources.refresh()
        disk, newest = self.space.state(), self.newest()
        sources = self._sources_status(newest)
        return answers.Status(
            version=__version__,
            config_file="" if self.config_file is None else str(self.config_file),
            newest=newest,
            lag_seconds=max((row.lag_seconds for row in sources if isinstance(row.lag_seconds, float)), default=None),
            archive=self._archive_status(),
            sizes=self._sizes(),
            free_bytes=free_bytes(self.config.archive_dir),
            sources=sources,
            outbox={stage: self.archive.waiting(stage) for stage in (*STAGES, TOOLS)},
            rates=answers.Rates(*map(self._rate, (SCAN, "lexical", VECTORS))),
            index=self._index_status(),
            answers=redact(self.model_status),
            targets=[self._target_status(target) for target in targets.known(self.archive, self.config).values()],
            jobs=answers.JobsStatus(),
            pause=self.pausing.state(),
            disk=None if disk is None else from_json(disk, answers.DiskStatus),
            errors=list(self.errors),
            troubles=self.troubles(),
        )

    def troubles(self) -> list[answers.Check]:
        """The quick checks that need a person."""
        rows = [*guarded("free space", lambda: doctor.machine.free_space(self.config))]
        return troubles([*rows, *doctor.of_archive(self._subject(), silent, doctor.QUICK)])

    def _index_status(self) -> Json:
        state, seconds_left = self.upkeep.state(), self.embedding_left_s()
        state["semantic"] |= {"secondsLeft": None if seconds_left is None else round(seconds_left)}
        words_left = self.pace.left_s({"lexical": self.archive.waiting("lexical")})
        state["lexical"] |= {"secondsLeft": None if words_left is None else round(words_left)}
        return state

    def _rate(self, stage: str) -> float | None:
        rate = self.pace.rate(stage)
        return None if rate is None else round(rate, 1)

    def _archive_status(self) -> answers.ArchiveStatus:
        large = self.archive.large()
        records = answers.LargeRecords(len(large), sum(record["bytes"] for record in large), large[:_LISTED])
        return answers.ArchiveStatus(
            dir=str(self.config.archive_dir),
            large=records,
            backup_before_migration=str(self.archive.backup_before_migration() or ""),
            **self.archive.figures(),
        )

    def _sizes(self) -> answers.Sizes:
        place = self.config.archive_dir
        return answers.Sizes(
            archive=used_bytes(place / "leveldb"),
            words=used_bytes(place / "index" / "lexical"),
            meaning=used_bytes(place / "index" / "semantic"),
            large=used_bytes(place / "large"),
            total=used_bytes(place),
        )

    def _sources_status(self, archived: int | None) -> list[answers.SourceStatus]:
        followed = [self._source_status(source, archived) for source in self.sources.current()]
        unreadable = [answers.SourceStatus(name, "unreadable", why) for name, why in self.sources.troubles.items()]
        unfollowed = [
            answers.SourceStatus(str(path), "SQLite (OpenCode)", _NOT_FOLLOWED) for path in self.sources.unfollowed
        ]
        return [*followed, *unreadable, *unfollowed]

    def _source_status(self, source: Source, archived: int | None) -> answers.SourceStatus:
        row = answers.SourceStatus(
            name=source.name,
            kind=source.kind,
            state=self._unread.get(source.name, "ok"),
            last_scan=self.intake.last_scan.get(source.name),
            **asdict(self.intake.counts(source)),
            set_aside=self.intake.set_aside(source, _LISTED),
        )
        if row.last_scan is None:  # not counted, because only a scan counts
            row.seen = row.kept = row.skipped = UNSET
        try:
            state = progress(self.archive, self.sources, source, self.exclusion)
        except (SourceBusy, SourceMissing):
            return row  # its state, or the next scan, says why
        row.newest, row.lag_seconds = state.newest, 0.0
        if state.waiting is not None:
            # Behind by the time from the newest archived message to this one, or from this one to now.
            first, last = (archived, state.waiting.time) if archived else (state.waiting.time, time.time() * 1000)
            row.lag_seconds = max(1.0, round((last - first) / 1000, 1))
        return row
