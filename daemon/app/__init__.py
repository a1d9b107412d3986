"""The composition root: every object is built here, once.

`open_engine` is everything in one process, without loops; `run` is the daemon.

`OneShot` is the engine of a single command, when no daemon runs: it looks at the sources itself before it answers. What
waits to be embedded is embedded within a time that the question allows: a question by meaning alone can be answered in
no other way, one by words as well has its words. Nothing is said not to be there while it only waits.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from daemon import log
from daemon.app.engine import Engine
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.calls import Progress, silent
from daemon.display import counted
from daemon.embed import Embedder
from daemon.errors import ArchiveLocked, DiskFull, Retry, Skip
from daemon.filesystem.disk_space import is_full
from daemon.ingest import ScanResult
from daemon.model import Json
from daemon.notify import Notifier

T = TypeVar("T")
_LOOK_S = 5.0
_COMMANDS_S, _LOCK_LOOK_S = 5.0, 0.1
"""How long a start waits for a command that has the archive, and from one try to the next."""


def open_engine(config: Config, progress: Progress = silent) -> Engine:
    """Open the archive and what stands on it, for one command; a context manager.

    It takes in what is new before it answers, since no daemon has done so; `progress` is told where that takes long.

    Raises:
        ArchiveLocked: a daemon has it; ask that one.
    """
    return OneShot(config, progress)


def run(config: Config, *, once: bool = False) -> int:
    """The daemon in the foreground until a signal, or with `once` until everything there is has been done.

    The answer is the exit code.

    Raises:
        ArchiveLocked: another daemon runs.
    """
    if not once:
        # Until the loops run there is nothing to drain: a stop during the start is simply the end.
        signal.signal(signal.SIGTERM, _end)
    from daemon.app.daemon import Daemon  # noqa: PLC0415 - the server is not needed by a single command

    daemon = Daemon(config) if once else _when_there_is_room(lambda: Daemon(config))
    return daemon.once() if once else daemon.run()


def _when_there_is_room(make: Callable[[], T]) -> T:
    """What `make` makes, as soon as the disk has room for it: a service that gave up would not come back.

    A command that has the archive for a moment is waited for as well.
    """
    notifier = Notifier()
    has_told = False
    end = time.monotonic() + _COMMANDS_S
    while True:
        try:
            return make()
        except ArchiveLocked:
            if time.monotonic() > end:
                raise
            time.sleep(_LOCK_LOOK_S)
            continue
        except Exception as error:
            if not is_full(error):
                raise
            if not has_told:
                log.get("daemon").warning("waiting for room on the disk", message=str(error))
            has_told = True
        notifier.status("waiting for room on the disk")
        notifier.extend(12 * _LOOK_S)
        time.sleep(_LOOK_S)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


_EMBEDDING_S = {"semantic": 30.0, "hybrid": 2.0, "smart": 0.0}
"""Seconds of embedding before an answer, by mode; smart asks for meaning only where no text has the words."""
_QUIET_S = 1.0
"""What takes no longer shows no progress."""


class OneShot(Engine):
    """An engine that is current when asked, and has its semantic index open when that is searched."""

    def __init__(
        self, config: Config, progress: Progress = silent, *, embedder: Callable[[], tuple[Embedder, str]] | None = None
    ) -> None:
        """`progress` is told of the work before an answer, once it takes longer than a moment."""
        super().__init__(config, embedder=embedder)
        self._on_progress = progress
        self._began = time.monotonic()

    def scan(self, **options: Any) -> ScanResult:
        """As Engine; without room on the disk the answer is of what there is, and says so."""
        try:
            return super().scan(**options)
        except DiskFull as error:
            self.space.pause("intake", error)
            self._unread.setdefault("disk", str(error))
            return ScanResult()

    def status(self, request: calls.Status) -> answers.Status:
        """See calls.Status."""
        self.scan(everything=True, patient=False)
        return super().status(request)

    def look(self, *, match: str = "") -> list[str]:
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
            Retry: by meaning alone nothing was found, and texts wait to be embedded.
        """
        answer = super().recall(request)
        waiting = self.waits_for_meaning
        is_empty = answer.get("matchMode") == "semantic" and not answer["results"] and answer["coverage"]["eligible"]
        if is_empty and waiting:
            wait = f"{counted(waiting, 'archived message')} {'waits' if waiting == 1 else 'wait'} to be embedded"
            fix = "run `index(wait=true)` once, or keep the service running"
            raise Retry(f"nothing was found by meaning so far, but {wait}; {fix}")
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
        """What waits, the newest first, until nothing does or the time is over."""
        self._began = time.monotonic()
        until = self._began + within_s
        total = self.waits_for_meaning
        while (waiting := self.waits_for_meaning) and time.monotonic() < until:
            self._progress({"phase": "embedding", "done": max(0, total - waiting), "total": max(total, waiting)})
            try:
                done = self.drain_semantic(lambda: time.monotonic() >= until)
            except (Retry, Skip) as error:  # the search that follows meets it as well, and says so
                self.report("embedding", error)
                return
            if not done.messages:
                return

    def _progress(self, event: Json) -> None:
        if time.monotonic() - self._began >= _QUIET_S:
            self._on_progress(event)
