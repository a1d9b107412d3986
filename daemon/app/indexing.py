"""Feeds the indexes from the outbox. An index that fails is rebuilt, or retried when the disk has space again.

A commit of the lexical index syncs several files and takes about a tenth of a second, and the next one waits for it. So
that searches find a new message at once, the newest few of the outbox are indexed in memory and searched together with
the index.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from daemon.archive import TOOLS, Archive
from daemon.config import Config
from daemon.control.calls import Progress
from daemon.errors import DiskFull, IndexBroken, ReconstituteError, Retry, Skip
from daemon.filesystem import disk_space
from daemon.filesystem.disk_space import DiskSpace
from daemon.index import LexicalIndex
from daemon.index.lexical import Lexical
from daemon.index.lexical.overlay import Overlay
from daemon.ingest import Drained, Entries, Upkeep

SEVERAL_FAILURES = 3
_BACKLOG = 500
_BACKLOG_BATCH, _BATCH = 2000, 50
"""Messages in a commit of the lexical index: more if over _BACKLOG wait, because each commit makes a segment, and
tantivy merges small ones twice more (15.7 s of processor time with 500 messages each, 11.0 with 2000)."""

_CHROMA_MB = 8
"""With less free space we write nothing to Chroma, which does not notice a full disk and ruins its files (C12)."""

NEWEST = 8
"""Waiting messages that are searched in memory; a turn has two or three. The others wait for the next commit."""

_FADES = 0.95
"""The weight of a measured pace after the next step: about the last twenty steps, of 16 messages each, decide."""


class Interrupted(ReconstituteError):
    """Reconstitute is stopping; the interrupted work starts again at the next start."""


class Unindexed:
    """Searches the newest messages of the outbox in memory, together with the lexical index. Thread-safe."""

    def __init__(self, archive: Archive, indexed_kb: int) -> None:
        self._archive = archive
        self._indexed_kb = indexed_kb
        self._lock = threading.Lock()
        self.is_off = False
        """Whether none is searched so; in safe mode, because one of them may be what crashed us."""
        self._indexed_entries: tuple[tuple[str, bytes], ...] = ()
        self._fresh = Lexical()
        self._ids: frozenset[str] = frozenset()

    def over(self, index: LexicalIndex) -> LexicalIndex:
        """`index`, and over it the newest messages that it does not have yet."""
        waiting = tuple((message_id, value) for message_id, _, value in self._archive.outbox("lexical", NEWEST))
        if self.is_off or not waiting:
            return index
        with self._lock:
            if waiting != self._indexed_entries:
                # Do not reuse the old one, because another search may be reading it.
                fresh, entries = Lexical(), Entries(self._archive, self._indexed_kb)
                added = [entry for message_id, _ in waiting if (entry := entries.of(message_id)) is not None]
                fresh.replace(added)
                self._fresh, self._indexed_entries = fresh, waiting
                self._ids = frozenset(entry.document.message_id for entry in added)
            return Overlay(index, self._fresh, self._ids)


SCAN, VECTORS = "scan", "vectors"
"""What a Pace measures besides the stages of the outbox: messages archived, and texts embedded."""


class Pace:
    """How fast messages were archived, indexed and embedded recently. Thread-safe for one writer of each kind."""

    def __init__(self) -> None:
        self._measured: dict[str, tuple[float, float]] = {}

    def record(self, stage: str, messages: int, seconds: float) -> None:
        """Add a measurement; older ones count less and less."""
        before, before_s = self._measured.get(stage, (0.0, 0.0))
        self._measured[stage] = (before * _FADES + messages, before_s * _FADES + seconds)

    def rate(self, stage: str) -> float | None:
        """How many in a second of work; None if that was not measured."""
        messages, seconds = self._measured.get(stage, (0.0, 0.0))
        return messages / seconds if seconds else None

    def left_s(self, waiting: Mapping[str, int]) -> float | None:
        """Seconds until so many messages of each stage are indexed; None if a stage was not measured."""
        if any(count and stage not in self._measured for stage, count in waiting.items()):
            return None
        return sum(
            count * self._measured[stage][1] / self._measured[stage][0] for stage, count in waiting.items() if count
        )


class Indexing(ABC):
    """A part of the engine: it has the archive and the indexes."""

    config: Config
    archive: Archive
    upkeep: Upkeep
    space: DiskSpace

    def __init__(self) -> None:
        super().__init__()
        self._lexical_lock = threading.RLock()
        self._semantic_lock = threading.Lock()
        self._broken: dict[str, IndexBroken] = {}
        self._failures = 0
        self._stopping = threading.Event()
        self.pace = Pace()

    @property
    def waits_for_meaning(self) -> int:
        """How many messages wait to be embedded; one whose tool calls also wait may count twice."""
        return self.archive.waiting("semantic") + self.archive.waiting(TOOLS)

    @property
    def has_to_embed(self) -> bool:
        """Whether messages wait to be embedded, or the semantic index must be repaired."""
        return not self.upkeep.is_off and (self.waits_for_meaning > 0 or "semantic" in self._broken)

    def embedding_left_s(self) -> float | None:
        """Seconds until everything is embedded, at the recent pace; None if that is unknown."""
        return self.pace.left_s({stage: self.archive.waiting(stage) for stage in ("semantic", TOOLS)})

    @abstractmethod
    def report(self, where: str, error: BaseException) -> None:
        """See Engine."""

    def stop(self) -> None:
        """End all long work: the next `check_running` raises Interrupted."""
        self._stopping.set()

    def check_running(self) -> None:
        """Call this between two steps of long work.

        Raises:
            Interrupted: the daemon is stopping.
        """
        if self._stopping.is_set():
            raise Interrupted("the daemon is stopping; the work so far is kept, ask again when the daemon runs")

    def drain_lexical(self, progress: Progress | None = None, *, within_s: float | None = None) -> int:
        """Feed the lexical index until the outbox is empty or the time is up; a broken index is rebuilt."""
        total = 0
        end = time.monotonic() + within_s if within_s is not None else float("inf")
        with self._lexical_lock:  # a client's `index` may run beside the loop
            self._mend("lexical", self.upkeep.rebuild_lexical)
            while self.archive.waiting("lexical") and (not total or time.monotonic() < end):
                self.check_running()
                try:
                    is_much = within_s is None or self.archive.waiting("lexical") > _BACKLOG
                    limit = _BACKLOG_BATCH if is_much else _BATCH
                    begun = time.monotonic()
                    result = self.upkeep.lexical_drain().step(limit, self._stopping.is_set)
                except IndexBroken as error:
                    self._check_not_full(error)
                    self._failures += 1
                    self.report("lexical index", error)
                    self.upkeep.rebuild_lexical(error)
                    if self._failures > SEVERAL_FAILURES:
                        raise  # the loop waits before the new one is tried
                    continue
                if not result.messages:
                    break
                self._failures = 0
                self.pace.record("lexical", result.messages, time.monotonic() - begun)
                total += result.messages
                if progress is not None:
                    waiting = self.archive.waiting("lexical")
                    progress({"phase": "indexing words", "done": total, "total": total + waiting})
        return total

    def drain_semantic(self, stop: Callable[[], bool] = lambda: False) -> Drained:
        """Do one step of embedding; `messages` is 0 if there is nothing to do, or if `stop` returned true.

        Raises:
            ModelUnavailable: the model server is down; try again later.
            IndexBroken: the index has been set aside; the next step begins to fill a new one.
        """
        with self._semantic_lock:  # a client's `index` may run beside the loop
            return self._drain_semantic(stop)

    def _drain_semantic(self, stop: Callable[[], bool]) -> Drained:
        if self.upkeep.is_off:
            return Drained()
        self._mend("semantic", self.upkeep.rebuild_semantic)
        if not self.waits_for_meaning and self.upkeep.is_open:
            return Drained()
        if self.upkeep.is_embedded:
            free_mb = max(self.config.limits.free_mb, _CHROMA_MB)
            disk_space.check(self.config.archive_dir / "index", free_mb, "nothing is embedded")
        try:
            drain = self.upkeep.semantic_drain()
            begun = time.monotonic()
            result = drain.step(stop=stop)
        except IndexBroken as error:
            if self.upkeep.is_embedded and self.space.is_short(error):
                self.upkeep.let_go_of_semantic()
                self._check_not_full(error)
            self.report("semantic index", error)
            self.upkeep.rebuild_semantic(error)
            raise
        if result.messages:
            seconds = time.monotonic() - begun
            self.pace.record(result.stage, result.messages, seconds)
            self.pace.record(VECTORS, result.embedded, seconds)
        return result

    def _mend(self, index: str, rebuild: Callable[[IndexBroken], None]) -> None:
        """Rebuild an index that a search found broken; that needs space on the disk."""
        broken = self._broken.get(index)
        if broken is not None:
            self._check_not_full(broken)
            rebuild(broken)
            self._broken.pop(index, None)

    def _check_not_full(self, error: IndexBroken) -> None:
        """Check that the index did not fail because the disk is full: then it is not broken, and is retried later.

        Raises:
            DiskFull: the disk is full.
        """
        if self.space.is_short(error):
            raise DiskFull(f"{error}; the disk is full; free some space, it is retried automatically") from error

    def prepare_semantic(self, within_s: float) -> bool:
        """Load what makes filtered searches of the open semantic index fast, for about `within_s` seconds.

        Returns whether more is left to load. A failure is reported like that of a search, and the next step of
        embedding repairs the index.
        """
        try:
            return self.upkeep.prepare_semantic(within_s)
        except (Retry, Skip) as error:
            self.index_failed("semantic", error)
            return False

    def index_failed(self, index: str, error: Exception) -> None:
        """Report an index that failed in a search; the loop that feeds it rebuilds a broken one at its next turn."""
        self.report(f"search in the {index} index", error)
        if isinstance(error, IndexBroken):
            self._broken[index] = error
