"""From the outbox into the indexes. One that fails is rebuilt, or tried again when the disk has room.

A commit of the lexical index is synced to disk several times and takes about a tenth of a second, and the next one
waits for it. So that a message is found before both, the newest few of the outbox are indexed in memory and searched
over the index.
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
_AT_ONCE, _IN_A_HURRY = 2000, 50
"""Messages a commit of the lexical index: many while there is much to do, since a commit makes a segment, and tantivy
merges segments of a few hundred messages twice more (15.7 s of processor with 500, 11.0 with 2000)."""

_CHROMA_MB = 8
"""Below this nothing is written to Chroma, because it does not notice a full disk and ruins its files (C12)."""

NEWEST = 8
"""Messages; a turn has two or three. While a history is read for the first time the rest waits for its turn."""


_FADES = 0.95
"""What a measured pace still counts after the next step: about the last twenty steps, of 16 messages each, decide."""


class Interrupted(ReconstituteError):
    """Reconstitute is stopping; what was being done is begun again at the next start."""


class Unindexed:
    """Makes the small index anew only when the outbox has changed. Thread-safe."""

    def __init__(self, archive: Archive, indexed_kb: int) -> None:
        self._archive = archive
        self._indexed_kb = indexed_kb
        self._lock = threading.Lock()
        self._indexed_entries: tuple[tuple[str, bytes], ...] = ()
        self._fresh = Lexical()
        self._ids: frozenset[str] = frozenset()

    def over(self, index: LexicalIndex) -> LexicalIndex:
        """`index`, with what it does not have yet."""
        waiting = tuple((message_id, value) for message_id, _, value in self._archive.outbox("lexical", NEWEST))
        if not waiting:
            return index
        with self._lock:
            if waiting != self._indexed_entries:
                # A new one, not an emptied one: another search may be reading the old one.
                fresh, entries = Lexical(), Entries(self._archive, self._indexed_kb)
                added = [entry for message_id, _ in waiting if (entry := entries.of(message_id)) is not None]
                fresh.replace(added)
                self._fresh, self._indexed_entries = fresh, waiting
                self._ids = frozenset(entry.document.message_id for entry in added)
            return Overlay(index, self._fresh, self._ids)


class Pace:
    """How fast messages are embedded, by stage of the outbox, as measured lately. Thread-safe for one writer."""

    def __init__(self) -> None:
        self._measured: dict[str, tuple[float, float]] = {}

    def record(self, stage: str, messages: int, seconds: float) -> None:
        """Some were embedded; the older a measurement is, the less it counts."""
        before, before_s = self._measured.get(stage, (0.0, 0.0))
        self._measured[stage] = (before * _FADES + messages, before_s * _FADES + seconds)

    def left_s(self, waiting: Mapping[str, int]) -> float | None:
        """Seconds until these are embedded; None where that was not measured."""
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
        self._pace = Pace()

    @property
    def waits_for_meaning(self) -> int:
        """How many messages are to be embedded; one whose tool calls wait, too, may count twice."""
        return self.archive.waiting("semantic") + self.archive.waiting(TOOLS)

    @property
    def has_to_embed(self) -> bool:
        """Whether the semantic index has to be opened for more than a question: it is to be filled, or mended."""
        return not self.upkeep.is_off and (self.waits_for_meaning > 0 or "semantic" in self._broken)

    def embedding_left_s(self) -> float | None:
        """Seconds until everything is embedded, at the pace of the last steps; None if that is not known."""
        return self._pace.left_s({stage: self.archive.waiting(stage) for stage in ("semantic", TOOLS)})

    @abstractmethod
    def report(self, where: str, error: BaseException) -> None:
        """See Engine."""

    def stop(self) -> None:
        """Long work, whoever asked for it, is to end between two of its steps, by Interrupted."""
        self._stopping.set()

    def go_on(self) -> None:
        """Between two steps of long work.

        Raises:
            Interrupted: the daemon is stopping.
        """
        if self._stopping.is_set():
            raise Interrupted("the daemon is stopping; ask again when it runs, what was done until now is kept")

    def drain_lexical(self, progress: Progress | None = None, *, within_s: float | None = None) -> int:
        """Feed the lexical index, until the outbox is empty or the time is over; a broken index is rebuilt."""
        total = 0
        end = time.monotonic() + within_s if within_s is not None else float("inf")
        with self._lexical_lock:  # a client's `index` may run beside the loop
            self._mend("lexical", self.upkeep.rebuild_lexical)
            while self.archive.waiting("lexical") and (not total or time.monotonic() < end):
                self.go_on()
                try:
                    is_much = within_s is None or self.archive.waiting("lexical") > _BACKLOG
                    limit = _AT_ONCE if is_much else _IN_A_HURRY
                    result = self.upkeep.lexical_drain().step(limit, self._stopping.is_set)
                except IndexBroken as error:
                    self._without_room(error)
                    self._failures += 1
                    self.report("lexical index", error)
                    if self._failures > SEVERAL_FAILURES:
                        raise
                    self.upkeep.rebuild_lexical(error)
                    continue
                if not result.messages:
                    break
                self._failures = 0
                total += result.messages
                if progress is not None:
                    waiting = self.archive.waiting("lexical")
                    progress({"phase": "indexing words", "done": total, "total": total + waiting})
        return total

    def drain_semantic(self, stop: Callable[[], bool] = lambda: False) -> Drained:
        """One step of embedding; `messages` 0 when there is nothing to do, or `stop` said to.

        Raises:
            ModelUnavailable: later. IndexBroken: it has been parked, the next step begins to refill it.
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
                self._without_room(error)
            self.report("semantic index", error)
            self.upkeep.rebuild_semantic(error)
            raise
        if result.messages:
            self._pace.record(result.stage, result.messages, time.monotonic() - begun)
        return result

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
