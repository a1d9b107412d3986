"""The composition root: every object is built here, once.

`open_engine` is everything in one process, without loops; `run` is the daemon.

`OneShot` is the engine of a single command when no daemon runs: it scans the sources before it answers. Before a search
it embeds waiting messages for a limited time, longest for a search by meaning alone, which finds only embedded texts.
It never reports "nothing found" for texts that only wait to be embedded.
"""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from daemon import log
from daemon.app.engine import Engine
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.calls import Progress, silent
from daemon.embed import Embedder
from daemon.errors import ArchiveLocked, DiskFull, ReconstituteError, Retry, Skip
from daemon.filesystem.disk_space import is_full
from daemon.hints import not_searchable
from daemon.ingest import ScanResult
from daemon.model import Json
from daemon.notify import Notifier

T = TypeVar("T")
_LOOK_S = 5.0
_COMMANDS_S, _LOCK_LOOK_S = 5.0, 0.1
"""Seconds that a start waits for a command that holds the archive, and between two tries."""


def open_engine(config: Config, progress: Progress = silent, *, file: Path | None = None) -> Engine:
    """Open the archive and what stands on it, for one command; a context manager.

    It scans the sources before it answers, because no daemon has. `progress` is called when that takes long. `file` is
    where the configuration was read.

    Raises:
        ArchiveLocked: another process holds the archive.
    """
    engine = OneShot(config, progress)
    engine.config_file = file
    return engine


def run(
    config: Config, *, once: bool = False, reread: Callable[[], Config] | None = None, file: Path | None = None
) -> int:
    """The daemon in the foreground until a signal, or with `once` until everything there is has been done.

    `reread` gives the configuration as it is now, when SIGHUP asks for it; without it, SIGHUP stops the daemon. `file`
    is where the configuration was read. The answer is the exit code.

    Raises:
        ArchiveLocked: another daemon runs.
    """
    from daemon.app.daemon import Daemon  # noqa: PLC0415 - the server is not needed by a single command
    from daemon.app.reload import Reload  # noqa: PLC0415 - nor this

    if once:
        return Daemon(config).once()
    reload = Reload(reread) if reread is not None else None
    # Until the loops run there is nothing to drain: a stop during the start is simply the end.
    signal.signal(signal.SIGTERM, _end)
    daemon = _wait_for_disk_space(lambda: Daemon(config, reload, file))
    while True:
        code, successor = daemon.run(), daemon.successor
        if successor is None:
            return code
        signal.signal(signal.SIGTERM, _end)
        former, page = config, daemon.page
        try:
            daemon = _wait_for_disk_space(partial(Daemon, successor, reload, file), locked_s=math.inf)
            config = successor
        except (ReconstituteError, OSError) as error:
            daemon = _wait_for_disk_space(partial(Daemon, former, reload, file), locked_s=math.inf)
            daemon.report("configuration", error)
        daemon.page.follow(page)


def _wait_for_disk_space(make: Callable[[], T], *, locked_s: float = _COMMANDS_S) -> T:
    """Call `make` again until the disk has enough space, because a service that gave up would not come back.

    Also waits for a command that holds the archive, for at most `locked_s` seconds.
    """
    notifier = Notifier()
    has_logged = False
    end = time.monotonic() + locked_s
    while True:
        try:
            return make()
        except ArchiveLocked:
            if time.monotonic() > end:
                raise
            notifier.watchdog()  # after a reload it may wait for long
            time.sleep(_LOCK_LOOK_S)
            continue
        except Exception as error:
            if not is_full(error):
                raise
            if not has_logged:
                log.get("daemon").warning("waiting for free space on the disk", message=str(error))
            has_logged = True
        notifier.status("waiting for free space on the disk")
        notifier.extend(12 * _LOOK_S)
        notifier.watchdog()
        time.sleep(_LOOK_S)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


_EMBEDDING_S = {"semantic": 30.0, "hybrid": 2.0, "smart": 0.0}
"""Seconds of embedding before an answer, by mode; smart searches by meaning only if no text has the words."""
_QUIET_S = 1.0
"""Shorter work shows no progress."""


class OneShot(Engine):
    """An engine that scans before each answer, and opens the semantic index before a search by meaning."""

    def __init__(
        self, config: Config, progress: Progress = silent, *, embedder: Callable[[], tuple[Embedder, str]] | None = None
    ) -> None:
        """`progress` is called during work before an answer that takes longer than a moment."""
        super().__init__(config, embedder=embedder)
        self._on_progress = progress
        self._began = time.monotonic()

    def scan(self, **options: Any) -> ScanResult:
        """As Engine. On a full disk nothing new is read, and the answer says so. A forgetting is completed first."""
        try:
            self.complete_forgetting(self._on_progress)
        except (Retry, Skip) as error:  # a later command goes on with it
            self.report("forgetting", error)
        try:
            return super().scan(**options)
        except DiskFull as error:
            self.space.pause("intake", error)
            self._unread.setdefault("disk", str(error))
            return ScanResult()

    def scan_sources(self, *, match: str = "") -> list[str]:
        """See RecallCalls."""
        self._began = time.monotonic()
        self.scan(everything=True, patient=False, progress=self._progress)
        if match in _EMBEDDING_S and not self.upkeep.is_off:
            self._open_semantic()
            self._embed(_EMBEDDING_S[match])
        return self.unread

    def recall(self, request: calls.Recall) -> Json:
        """See calls.Recall.

        Raises:
            Retry: a search by meaning found nothing, but some texts are not embedded yet.
        """
        answer = super().recall(request)
        waiting = self.waits_for_meaning
        is_empty = answer.get("matchMode") == "semantic" and not answer["results"] and answer["coverage"]["eligible"]
        if is_empty and waiting:
            raise Retry(f"nothing was found by meaning so far: {not_searchable(meaning=waiting, is_served=False)}")
        return answer

    def reconstitute(self, request: calls.Reconstitute, progress: Progress) -> answers.Run:
        """See calls.Reconstitute."""
        self._prepare_run(progress)
        answer = super().reconstitute(request, progress)
        answer.warnings += self.unread
        return answer

    def estimate(self, request: calls.Estimate, progress: Progress) -> answers.Estimate:
        """See calls.Estimate."""
        self._prepare_run(progress)
        answer = super().estimate(request, progress)
        answer.warnings += self.unread
        return answer

    def _prepare_run(self, progress: Progress) -> None:
        self.scan(everything=True, patient=False, progress=progress)
        if not self.upkeep.is_off:
            self._open_semantic()

    def current(self, progress: Progress) -> list[str]:
        """See FileCalls."""
        self.scan(everything=True, patient=False, words=False, progress=progress)
        return self.unread

    def _open_semantic(self) -> None:
        try:
            self.upkeep.open_semantic()
        except (Retry, Skip) as error:  # recall answers by words then, and says so
            self.report("semantic index", error)

    # -- embedding -----------------------------------------------------------------------------------------------

    def _embed(self, within_s: float) -> None:
        """Embed waiting messages, newest first, for at most `within_s` seconds."""
        self._began = time.monotonic()
        until = self._began + within_s
        total = self.waits_for_meaning
        while (waiting := self.waits_for_meaning) and time.monotonic() < until:
            self._progress({"phase": "embedding", "done": max(0, total - waiting), "total": max(total, waiting)})
            try:
                result = self.drain_semantic(lambda: time.monotonic() >= until)
            except (Retry, Skip) as error:  # the search that follows fails the same way and reports it
                self.report("embedding", error)
                return
            if not result.messages:
                return

    def _progress(self, event: Json) -> None:
        if time.monotonic() - self._began >= _QUIET_S:
            self._on_progress(event)
