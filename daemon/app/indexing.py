"""From the outbox into the indexes. One that fails is rebuilt, or tried again when the disk has room."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from daemon.archive import Archive
from daemon.config import Config
from daemon.control.calls import Progress
from daemon.errors import DiskFull, IndexBroken, Retry, Skip
from daemon.filesystem.disk_space import DiskSpace
from daemon.index.semantic import health
from daemon.ingest import Drained, Upkeep

_SEVERAL_FAILURES = 3
_AT_ONCE, _IN_A_HURRY = 500, 50
"""Messages a commit of the lexical index: many while there is much to do, since each commit costs the same."""

_CHROMA_MB = 8
"""With less free nothing is written to Chroma, which does not notice a full disk and ruins its files (C12)."""


class Indexing(ABC):
    """A part of the engine, which has what it works on."""

    config: Config
    archive: Archive
    upkeep: Upkeep
    space: DiskSpace
    _wording: threading.RLock
    _embedding: threading.Lock
    _broken: dict[str, IndexBroken]
    _failures: int

    @abstractmethod
    def report(self, where: str, error: BaseException) -> None:
        """See Engine."""

    @abstractmethod
    def _go_on(self) -> None:
        """See Engine."""

    def drain_lexical(self, progress: Progress | None = None, *, within_s: float | None = None) -> int:
        """Feed the lexical index, until the outbox is empty or the time is over; a broken index is rebuilt."""
        total = 0
        end = time.monotonic() + within_s if within_s is not None else float("inf")
        with self._wording:  # a client's `index` may run beside the loop
            self._mend("lexical", self.upkeep.rebuild_lexical)
            while self.archive.waiting("lexical") and (not total or time.monotonic() < end):
                self._go_on()
                try:
                    is_much = within_s is None or self.archive.waiting("lexical") > _AT_ONCE
                    done = self.upkeep.lexical_drain().step(_AT_ONCE if is_much else _IN_A_HURRY)
                except IndexBroken as error:
                    self._without_room(error)
                    self._failures += 1
                    self.report("lexical index", error)
                    if self._failures > _SEVERAL_FAILURES:
                        raise
                    self.upkeep.rebuild_lexical(error)
                    continue
                if not done.messages:
                    break
                self._failures = 0
                total += done.messages
                if progress is not None:
                    waiting = self.archive.waiting("lexical")
                    progress({"phase": "indexing words", "done": total, "total": total + waiting})
        return total

    def drain_semantic(self, stop: Callable[[], bool] = lambda: False) -> Drained:
        """One step of embedding; `messages` 0 when there is nothing to do, or `stop` said to.

        Raises:
            ModelUnavailable: later. IndexBroken: it has been parked, the next step begins to refill it.
        """
        with self._embedding:  # a client's `index` may run beside the loop
            return self._drain_semantic(stop)

    def _drain_semantic(self, stop: Callable[[], bool]) -> Drained:
        self._mend("semantic", self.upkeep.rebuild_semantic)
        if not self.archive.waiting("semantic") and self.upkeep.semantic is not None:
            return Drained()
        if self.upkeep.is_embedded:
            floor_mb = max(self.config.limits.free_mb, _CHROMA_MB)
            health.free_space(self.config.archive_dir / "index", floor_mb)
        try:
            return self.upkeep.semantic_drain().step(stop=stop)
        except IndexBroken as error:
            if self.upkeep.is_embedded and self.space.is_short(error):
                self.upkeep.let_go_of_semantic()
                self._without_room(error)
            self.report("semantic index", error)
            self.upkeep.rebuild_semantic(error)
            raise

    def _mend(self, index: str, rebuild: Callable[[IndexBroken], None]) -> None:
        """What a search found broken is rebuilt; that takes room."""
        broken = self._broken.get(index)
        if broken is not None:
            self._without_room(broken)
            rebuild(broken)
            self._broken.pop(index, None)

    def _without_room(self, error: IndexBroken) -> None:
        """An index that fails on a full disk is not taken for broken: it is tried again when there is room.

        Raises:
            DiskFull: there is no room.
        """
        if self.space.is_short(error):
            raise DiskFull(f"{error}; the disk is full; free some space, it is tried again by itself") from error

    def prepare_semantic(self, within_s: float) -> bool:
        """Once the semantic index is open, have it read what makes filtered questions quick, before somebody waits.

        For about so long; whether more is left to read. What fails is told as a search that fails: the next step of
        embedding mends the index.
        """
        try:
            return self.upkeep.prepare_semantic(within_s)
        except (Retry, Skip) as error:
            self.index_failed("semantic", error)
            return False

    def index_failed(self, index: str, error: Exception) -> None:
        """A search found an index broken: the loop that feeds it will rebuild it, new messages or not."""
        self.report(f"search in the {index} index", error)
        if isinstance(error, IndexBroken):
            self._broken[index] = error
