"""The engine of a single command, when no daemon runs: it looks at the sources itself before it answers.

What waits to be embedded is embedded within a time that the question allows: a question by meaning alone can be
answered in no other way, one by words as well has its words. Nothing is said not to be there while it only waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from daemon.app.engine import Engine
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.calls import Progress, silent
from daemon.display import counted
from daemon.embed import Embedder
from daemon.errors import DiskFull, Retry, Skip
from daemon.ingest import ScanResult
from daemon.model import Json

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
        if match in _EMBEDDING_S:
            self._open_semantic()
            self._embed(_EMBEDDING_S[match])
        return self.unread

    def recall(self, request: calls.Recall) -> Json:
        """See calls.Recall.

        Raises:
            Retry: by meaning alone nothing was found, and texts wait to be embedded.
        """
        answer = super().recall(request)
        waiting = self.archive.waiting("semantic")
        is_empty = answer.get("matchMode") == "semantic" and not answer["results"] and answer["coverage"]["eligible"]
        if is_empty and waiting:
            wait = f"{counted(waiting, 'archived message')} {'waits' if waiting == 1 else 'wait'} to be embedded"
            fix = "run `index()` once, or keep the service running"
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
        total = self.archive.waiting("semantic")
        while (waiting := self.archive.waiting("semantic")) and time.monotonic() < until:
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
