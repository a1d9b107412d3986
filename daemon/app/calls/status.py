"""The status call: what is archived, indexed, followed and waiting, and what failed last."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version

from daemon.app import targets
from daemon.archive import Archive
from daemon.config import Config
from daemon.filesystem.disk_space import DiskSpace
from daemon.ingest import Intake, Upkeep
from daemon.model import Json, Target
from daemon.opencode.discover import Sources
from daemon.redact import redact

_SHOWN = 5
_NOT_FOLLOWED = "not followed; if OpenCode writes to it, name it in opencode.databases"


class StatusCall:
    """A part of the engine, which has what it reads."""

    config: Config
    started: int
    archive: Archive
    sources: Sources
    intake: Intake
    upkeep: Upkeep
    errors: Iterable[Json]
    answering: str
    space: DiskSpace
    _unread: dict[str, str]

    def status(self) -> Json:
        """See control.calls.Service."""
        return {
            "version": version("reconstitute"),
            "pid": os.getpid(),
            "running": False,
            "started": self.started,
            "archive": {"dir": str(self.config.archive_dir), **self.archive.figures(), "large": self._large()},
            "sources": self._sources(),
            "outbox": {stage: self.archive.waiting(stage) for stage in ("lexical", "semantic")},
            "index": self.upkeep.state(),
            "answers": redact(self.answering),
            "targets": [self._target(target) for target in targets.known(self.archive, self.config).values()],
            "jobs": {"running": None, "queued": 0},
            "watch": "",
            "disk": self.space.state(),
            "errors": list(self.errors),
        }

    def _large(self) -> Json:
        """The records that are kept whole as files: how many, their bytes, and where the largest of them lie."""
        found = self.archive.large()
        return {"count": len(found), "bytes": sum(one["bytes"] for one in found), "records": found[:_SHOWN]}

    def _sources(self) -> list[Json]:
        found = self.sources.current()
        rows = [
            {
                "name": source.name,
                "kind": source.kind,
                "state": self._unread.get(source.name, "ok"),
                "last_scan": self.intake.last_scan.get(source.name),
                **asdict(self.intake.counts(source)),
                "set_aside": self.intake.set_aside(source, _SHOWN),
            }
            for source in found
        ]
        rows += [
            {"name": name, "kind": "unreadable", "state": trouble} for name, trouble in self.sources.troubles.items()
        ]
        return rows + [
            {"name": str(path), "kind": "SQLite (OpenCode)", "state": _NOT_FOLLOWED} for path in self.sources.unfollowed
        ]

    def _target(self, target: Target) -> Json:
        last = self.archive.target_get(target.path, "last") or {}
        return {
            "path": target.path,
            "refresh": target.refresh,
            "schedule": target.schedule,
            "last_run": last.get("time"),
            "state": last.get("state", "not run yet"),
            "warnings": last.get("result", {}).get("warnings", []),
            "unanswered": last.get("result", {}).get("unanswered", 0),
        }
