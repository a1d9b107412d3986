"""The daemon's loops: they feed the archive from the sources, and the index of words and the file histories from it.

Each loop is one thread. It can be stopped between two batches, reports every failure, backs off and continues. Only a
corrupt archive ends the daemon.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from daemon import heap, log
from daemon.app.engine import Engine
from daemon.app.heartbeat import Heartbeat
from daemon.app.indexing import NEWEST, Interrupted
from daemon.errors import IndexBroken, Retry, Skip, Stop
from daemon.filesystem.disk_space import is_full
from daemon.index import LexicalIndex
from daemon.redact import known

_LOG = log.get("loops")
_TICK_S = 0.55
"""Seconds between two scans without reliable file events. With them, the first pause after a scan: a commit of SQLite
becomes visible a sync after its last write, and no event reports that."""
_LONGEST_TICK_S = 30.0
"""The pause doubles after each scan that found nothing, up to this."""
_SETTLE_S = 0.005
"""The wait for further events of the same write, so that one scan covers them: a folder and its file, a file's end."""

_SPACING_S, _SPACING_UNFINISHED_S = 0.05, 0.1
"""Seconds between two scans while events arrive in a stream, because a text being written changes at every word; and
after a scan that found only an unfinished message."""

_AFTER_SCAN, _AFTER_UNFINISHED = (2.0, 0.2), (30.0, 0.4)
"""The minimum pause after a scan, because a long session is costly to list, and after one that found only an unfinished
message, as an answer streams in for long: a multiple of the scan's processor time, and the most seconds."""

_POLL_S = 30.0
"""Seconds between two full scans without file events (docs/reliability.md, W3)."""

_COMMITS_S = 0.25
"""Seconds between two commits of the lexical index while few messages wait."""

IDLE_S = 10.0
"""The pause of a loop that is woken when there is work; after it the loop checks what nobody wakes it for."""

_MANY_ROWS = 1000
"""End states whose making leaves so much behind that it is worth a collection of some hundred milliseconds."""

_LATEST_S = 600.0
"""Work that waits until all is searchable is done after this long anyway, as when the index of words is broken."""

_QUIET_S = 3.0
_REST_SHARE = 20.0
"""The pause after work that is not urgent, as a multiple of its duration."""

_BACKOFF_S = (1.0, 5.0, 15.0, 60.0, 300.0)
_FULL_S = (1.0, 2.0, 5.0)
"""Seconds between two checks for free space on the disk."""

_PAUSE_S = 60.0
"""Seconds between two checks whether a pause is over, because the clock may be set meanwhile."""

MODEL_S = 900.0
"""A request to a model has its own deadline of 300 s, and one batch may need several requests (D2)."""


class Loop(ABC):
    """A thread that calls `turn` until stopped; `turn` returns the seconds to wait before the next turn."""

    stops_in_pause = True
    """Whether it makes no turns while the user has paused the work (calls.Pause)."""

    def __init__(
        self, name: str, engine: Engine, fatal: Callable[[BaseException], None], *, allowed_s: float = 120.0
    ) -> None:
        """`allowed_s`: how long one step may take before the loop counts as stuck."""
        self._engine = engine
        self.heartbeat = Heartbeat(name)
        self._allowed_s = allowed_s
        self._fatal = fatal
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failures = 0
        self._woken = False  # whether this turn was requested by `wake`

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Start the next turn at once, because there is something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Tell the thread to end; see `join`."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; returns whether it ended within the time."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def sign(self) -> None:
        """Report progress to the heartbeat."""
        self.heartbeat.busy(self._allowed_s)

    @abstractmethod
    def turn(self) -> float:
        """Do one piece of work; returns the seconds to wait before the next one."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Called when a turn raised; it is retried after a while."""

    def at_pause(self) -> None:  # noqa: B027 - most loops have nothing to do
        """Called instead of a turn while the user has paused the work, at least once a minute."""

    def paused(self) -> None:
        """Called when a turn found the disk full; it is retried until there is space."""
        self.heartbeat.idle()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken = self._wake.is_set()
            self._wake.clear()
            self.sign()
            try:
                if self.stops_in_pause and (left_s := self._engine.pausing.left_s()):
                    self.at_pause()
                    pause = min(left_s, _PAUSE_S)
                else:
                    self._engine.check_disk_space()
                    with known.only({}):  # secrets of one session must not stay known in this thread
                        pause = self.turn()
                    self._engine.space.resume(self.heartbeat.name)
                    self._failures = 0
            except Stop as error:
                self._fatal(error)
                return
            except Exception as error:  # noqa: BLE001 - a loop that dies silently is the worst failure of a daemon
                self._after(error)
                continue
            self.heartbeat.idle()
            if pause and not self._stop.is_set():
                self._wake.wait(pause)

    def _after(self, error: Exception) -> None:
        """Wait after a failed turn; after a full disk, only until there is space."""
        waits = _FULL_S if is_full(error) else _BACKOFF_S
        if is_full(error):
            self._engine.space.pause(self.heartbeat.name, error)
            self.paused()
        else:
            self.failed(error)
        pause = waits[min(self._failures, len(waits) - 1)]
        self._failures += 1
        self.heartbeat.idle()
        self._stop.wait(pause)


class IntakeLoop(Loop):
    """Follows the sources: scans what hints name. Scans everything at the start, periodically, and when in doubt."""

    stops_in_pause = False  # what is not archived in time may be lost

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("intake", engine, fatal)
        self._full_scan_due = threading.Event()
        self._full_scan_due.set()
        self._last_full = 0.0
        self._period = engine.config.watch.scan_minutes * 60
        self._clock_gap = time.time() - time.monotonic()
        self._next_scan = 0.0
        self.first_scan_done = threading.Event()
        self.calm = threading.Event()
        """Cleared while new messages may not be searchable yet, so that less urgent work waits."""
        self._tick = _TICK_S
        self.on_scanned: Callable[[], None] = lambda: None
        """Called after each scan while messages wait for the lexical index."""
        self.sees_all: Callable[[], bool] = lambda: False
        """Whether every change leads to a hint, so that scans without one are not needed."""

    def hint(self, path: str | None) -> None:
        """Called by the watch: this path changed, or (None) anything may have. Returns at once."""
        if path is None:
            self._full_scan_due.set()
        else:
            for source in self._engine.sources.current():
                source.hint(path)
        self.calm.clear()
        self.wake()

    def poll(self) -> None:
        """Scan everything more often, because there will be no hints."""
        self._period = min(self._period, _POLL_S)

    def turn(self) -> float:
        if self._woken:
            self._stop.wait(max(_SETTLE_S, self._next_scan - time.monotonic()))
        # Cleared before the scan, so that a hint during the scan leads to another one.
        self._wake.clear()
        is_full_scan = self._full_scan_due.is_set() or self._is_due()
        self._full_scan_due.clear()
        begun, used = time.monotonic(), time.thread_time()
        if is_full_scan:
            self._last_full = begun
        result = self._engine.scan(everything=is_full_scan, hurry=True, words=False, progress=lambda _: self._sign())
        if result.changed or result.removed or is_full_scan:
            _LOG.info(
                "intake", scan="full" if is_full_scan else "touched", changed=result.changed, removed=result.removed,
                quarantined=result.quarantined, postponed=len(result.postponed | result.moving),
            )  # fmt: skip
        self.first_scan_done.set()
        is_unfinished = self._engine.is_waiting and not result.changed
        share, longest_s = _AFTER_UNFINISHED if is_unfinished else _AFTER_SCAN
        pause = min(longest_s, share * (time.thread_time() - used))
        spacing_s = _SPACING_UNFINISHED_S if is_unfinished else _SPACING_S
        self._next_scan = max(begun + spacing_s, time.monotonic() + pause)
        self.settled()
        if self._engine.archive.waiting("lexical"):
            self.on_scanned()
        if self._engine.is_waiting:
            return max(0.1, pause)
        return self._pause(is_quiet=not (self._woken or is_full_scan or result.changed or result.removed))

    def _pause(self, *, is_quiet: bool) -> float:
        """Seconds until the next scan; `is_quiet`: no hint led to the last one, and it found nothing."""
        is_sure = is_quiet and not self._engine.is_behind and self.sees_all()
        self._tick = min(_LONGEST_TICK_S, 2 * self._tick) if is_sure else _TICK_S
        return self._tick

    def settled(self) -> None:
        """Set `calm` if nothing waits for the lexical index, or only for the end of a pause."""
        is_idle = not self._engine.archive.waiting("lexical") or self._engine.pausing.left_s() > 0
        if is_idle and not self._wake.is_set():
            self.calm.set()

    def _sign(self) -> None:
        self.sign()
        if self._stop.is_set():
            raise Interrupted("stopping between two sessions; the rest is read at the next start")

    def _is_due(self) -> bool:
        """Whether a full scan is due: periodically, and when the clock has jumped, because sleep loses file events."""
        gap = time.time() - time.monotonic()
        jumped = abs(gap - self._clock_gap) > 5
        self._clock_gap = gap
        period = self._period * random.uniform(0.9, 1.1)  # noqa: S311 - jitter, not a secret
        return jumped or time.monotonic() - self._last_full > period

    def paused(self) -> None:
        super().paused()
        self._full_scan_due.set()
        self.calm.set()
        self.first_scan_done.set()  # requests are answered from what is archived

    def failed(self, error: Exception) -> None:
        self.paused()
        if not isinstance(error, Interrupted):
            self._engine.report("intake", error)


class WordsLoop(Loop):
    """Feeds the lexical index.

    Its commits are slow, so there is a pause between two of them. New messages are searched in memory meanwhile
    (app.indexing).
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("words", engine, fatal)
        self._last_indexed = time.monotonic()
        self._loaded: LexicalIndex | None = None  # the index whose vocabulary is in memory
        self.on_indexed: Callable[[], None] = lambda: None
        """Called after every commit."""

    def turn(self) -> float:
        result = self._engine.drain_lexical(lambda _: self.sign(), within_s=_COMMITS_S)
        if result:
            self._last_indexed = time.monotonic()
            self.on_indexed()
        waiting = self._engine.archive.waiting("lexical")
        if waiting > NEWEST:
            return 0.0
        quiet_s = time.monotonic() - self._last_indexed
        if not waiting and quiet_s >= _QUIET_S:
            self._load_vocabulary()
        self._stop.wait(_COMMITS_S if result else 0.0)
        return IDLE_S if quiet_s >= _QUIET_S else _QUIET_S

    def _load_vocabulary(self) -> None:
        """Load the index's vocabulary, in which similar spellings are searched, before a search needs it.

        For 60,000 words this takes two seconds, and 13 MB from then on. New messages are searched in memory meanwhile.
        """
        index = self._engine.upkeep.lexical
        if index is self._loaded:
            return
        self._loaded = index  # also if it fails: then the first search loads it
        try:
            index.spellings("", 1)  # matches nothing, but loads the vocabulary
        except (Retry, Skip) as error:
            self._engine.index_failed("lexical", error)
        heap.collect()  # by now most long-lived objects exist

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Interrupted | IndexBroken):  # the engine has reported that one
            self._engine.report("lexical index", error)


class ViewLoop(Loop):
    """Keeps the end states of files up to date, so that ten thousand of them can be listed at once.

    It runs when nothing new has arrived for a while and all is searchable by words, and waits in proportion to the
    duration of its last run.
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("views", engine, fatal, allowed_s=MODEL_S)
        self._last_scan = self._next = 0.0
        self.is_calm: Callable[[], bool] = lambda: True
        """Whether all messages are searchable by words."""

    def on_scan(self) -> None:
        """Called when a scan read something new."""
        self._last_scan = time.monotonic()
        self.wake()

    def turn(self) -> float:
        begun = time.monotonic()
        due_at = max(self._last_scan + _QUIET_S, self._next)
        if begun < due_at:
            return due_at - begun
        if begun < due_at + _LATEST_S and not self.is_calm():
            return _QUIET_S
        if self._engine.recorded.refresh(self._sign) > _MANY_ROWS:
            heap.collect()
        now = time.monotonic()
        self._next = now + max(_QUIET_S, _REST_SHARE * (now - begun))
        return max(IDLE_S, self._next - now)

    def _sign(self) -> None:
        self.sign()
        if self._stop.is_set():
            raise Interrupted("stopping; the end states are made when they are next asked for")

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Interrupted):
            self._engine.report("file histories", error)
