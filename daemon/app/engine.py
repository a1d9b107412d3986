"""The engine: all parts of Reconstitute in one process, behind control.calls.Service.

The daemon's loops drive it; the command line opens one for itself if no daemon runs. It is thread-safe: scans and
lexical indexing run one at a time, searches run beside them. Errors are kept for `status` and repaired where possible.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from daemon import log
from daemon.app import targets
from daemon.app.calls.backups import BackupCalls
from daemon.app.calls.conversation import ConversationCalls
from daemon.app.calls.days import DayCalls
from daemon.app.calls.lines import LineCalls
from daemon.app.calls.models import ModelCalls
from daemon.app.calls.pausing import PauseCalls, Pausing
from daemon.app.calls.status import StatusCalls
from daemon.app.calls.web import WebCalls
from daemon.app.forgetting import Forgetting
from daemon.app.indexing import Unindexed
from daemon.app.scanning import MOMENT_S, Recovery
from daemon.archive import Archive
from daemon.config import Config
from daemon.control import answers
from daemon.control.calls import OnPart, Progress, Request, perform, silent
from daemon.embed import Embedder
from daemon.embed.builtin import WorkerEmbedder
from daemon.embed.choose import choose
from daemon.exclude import Exclusion
from daemon.filesystem.disk_space import DiskSpace
from daemon.ingest import Intake, ScreenedFiles, Upkeep
from daemon.ingest.evidence import move_events
from daemon.opencode.discover import Sources
from daemon.recall.candidates.index_query import finish
from daemon.recall.catalog import Catalog
from daemon.redact import known

A = TypeVar("A")

_LOG = log.get("engine")
_MOST_ERRORS = 20


class Engine(
    Forgetting, ConversationCalls, LineCalls, BackupCalls, ModelCalls, StatusCalls, WebCalls, PauseCalls, DayCalls
):
    """Open it with a configuration; close it, or use it as a context manager."""

    def __init__(self, config: Config, *, embedder: Callable[[], tuple[Embedder, str]] | None = None) -> None:
        """Open archive and lexical index; sources, embedder and semantic index follow when they are needed.

        Raises:
            ArchiveLocked: another process holds the archive; ask that one.
            ArchiveCorrupt: see the message.
            DiskFull: there is not enough space to open them.
        """
        super().__init__()
        self.config = config
        self.errors: deque[answers.ErrorStatus] = deque(maxlen=_MOST_ERRORS)
        self._reporting = threading.Lock()
        known.configure(config.redact.extra, config.redact.allow)
        self.archive = Archive(config.archive_dir, on_step=self.on_migration)
        self.space = DiskSpace((config.archive_dir, config.archive_dir / "index"), config.limits.free_mb)
        try:
            self.pausing = Pausing(self.archive)
            self._build(embedder or self._choose)
        except BaseException:
            self.archive.close()
            raise

    def on_migration(self) -> None:
        """Called after each step of a migration of the archive, which may take minutes."""

    def _build(self, embedder: Callable[[], tuple[Embedder, str]]) -> None:
        """Build the objects that use the archive."""
        config = self.config
        move_events(self.archive)
        self.catalog = Catalog(self.archive)
        self.unindexed = Unindexed(self.archive, config.limits.indexed_kb)
        self.exclusion = Exclusion(config.exclude)
        self.archive.large_files.free_mb = config.limits.free_mb
        large = ScreenedFiles(self.archive.large_files.directory, self.exclusion, config.limits.free_mb)
        first, *further = config.opencode_dirs
        self.sources = Sources(
            first,
            config.limits.record_mb,
            large,
            further=further,
            databases=config.databases,
        )
        self.recovery = Recovery(self.archive, config, self.exclusion)
        self.recorded = self.recovery.files
        self.intake = Intake(
            self.archive,
            quiet_s=config.watch.quiet_seconds,
            free_mb=config.limits.free_mb,
            record_mb=config.limits.record_mb,
            evidence=self.recovery.evidence,
            exclusion=self.exclusion,
        )
        self.upkeep = Upkeep(
            self.archive,
            config.archive_dir / "index",
            chroma=config.index.chroma,
            choose=embedder,
            on_event=lambda component, message: _LOG.info("index", what=component, message=message),
            indexed_kb=config.limits.indexed_kb,
            embedded_kb=config.limits.embedded_kb,
            batch=config.embedding.batch,
            embed_scope=config.embedding.what,
        )
        self.delete_old_indexes()

    def _choose(self) -> tuple[Embedder, str]:
        """The embedder and why; `auto` stays with Ollama if the archive's vectors are from there."""
        was = self.archive.note("embedder")
        embedder, why = choose(self.config.embedding, self.upkeep.worker, was_ollama=was == "ollama")
        self.archive.set_note("embedder", "builtin" if isinstance(embedder, WorkerEmbedder) else "ollama")
        return embedder, why

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """See control.calls.Service."""
        return perform(self, request, progress, on_part)

    def close(self) -> None:
        """Close everything, indexes before the archive; running searches get a moment to end."""
        finish(MOMENT_S)
        self.sources.close()
        self.recovery.close()
        self.upkeep.close()
        self.archive.close()
        known.configure((), ())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def check_disk_space(self) -> None:
        """Check for free space before the next piece of work, and reopen the archive if a full disk had closed it.

        Raises:
            DiskFull: too little space is free; try again later.
        """
        self.space.check()
        self.archive.mend()

    def report(self, where: str, error: BaseException) -> None:
        """Keep an error for the status and log it; a repeated error only gets its new time."""
        entry = answers.ErrorStatus(int(time.time() * 1000), where, str(error), type(error).__name__)
        with self._reporting:
            repeated = [old for old in self.errors if (old.where, old.message) == (where, entry.message)]
            for old in repeated:
                self.errors.remove(old)
            self.errors.append(entry)
        if not repeated:
            _LOG.warning("trouble", where=where, error=entry.type, message=entry.message)

    def ground(self) -> targets.Ground:
        """The ground of a run that begins now (app.targets)."""
        return targets.ground(
            self.archive, self.upkeep, self.config, unread=len(self.unread), captured=self.recovery.captured
        )
