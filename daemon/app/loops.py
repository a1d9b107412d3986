"""The daemon's feeding loops: from the sources into the archive, and on into both indexes and the file views.

Each is one thread that can be stopped between two batches, reports every failure, backs off and goes on. A corrupt
archive is the one failure that ends the daemon.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from daemon import log
from daemon.app.engine import Engine
from daemon.app.indexing import NEWEST, Interrupted
from daemon.errors import IndexBroken, Retry, Skip, Stop
from daemon.filesystem.disk_space import is_full
from daemon.index import LexicalIndex
from daemon.redact import known

_LOG = log.get("loops")
_TICK_S = 0.55
"""From one look to the next where file events cannot be relied on. Where they can, also the first rest after a look:
SQLite shows a commit after the last write of it, by the time of a sync, and nothing tells of that."""
_LONGEST_TICK_S = 30.0
"""Each rest after a look that found nothing is twice as long as the last one, up to this."""
_SETTLE_S = 0.005
"""One look for the events of one write: a folder and the file in it, a file and its end."""

_SPACING_S = 0.05
"""From one look to the next while events come in a stream: a text that is being written changes at every word."""

_LOOK_SHARE, _LONGEST_REST_S = 2.0, 0.2
"""The least rest after a look, as a multiple of the processor time it took: a long session is costly to list."""

_POLL_S = 30.0
"""How often everything is looked at when there are no file events (docs/reliability.md, W3)."""

_COMMITS_S = 0.25
"""From one commit of the lexical index to the next, while little waits."""

IDLE_S = 10.0
"""The rest of a loop that is woken when there is work; it also sees to what nobody wakes it for."""

_QUIET_S = 3.0
_REST_SHARE = 20.0
"""The rest after a piece of work that may wait, as a multiple of the time it took."""

_BACKOFF_S = (1.0, 5.0, 15.0, 60.0, 300.0)
_FULL_S = (1.0, 2.0, 5.0)
"""Seconds between two checks for free space on the disk."""

MODEL_S = 900.0
"""A call of the model has a deadline of its own, 300 s a request, and one batch may take several (D2)."""

_READS_S = 0.5
"""Of what the semantic index has, between two steps of embedding, until all is in memory."""

LETS_GO_S = 180.0
"""Without a question by meaning or a message to embed, the worker that has the index and the model is ended."""


class Heartbeat:
    """One loop's sign of life. An idle loop is healthy; a busy one is healthy until its deadline."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._deadline: float | None = None

    def busy(self, allowed_s: float = 120.0) -> None:
        """Report progress, and promise the next sign within `allowed_s` seconds."""
        with self._lock:
            self._deadline = self._clock() + allowed_s

    def idle(self) -> None:
        """Report that there is nothing to do."""
        with self._lock:
            self._deadline = None

    @property
    def is_alive(self) -> bool:
        """False if the promised sign is overdue."""
        with self._lock:
            return self._deadline is None or self._clock() <= self._deadline


class Loop(ABC):
    """A thread that calls `turn` until stopped; `turn` returns the seconds to wait before the next turn."""

    def __init__(
        self, name: str, engine: Engine, fatal: Callable[[BaseException], None], *, allowed_s: float = 120.0
    ) -> None:
        """`allowed_s`: how long one step between two signs of life may take."""
        self._engine = engine
        self.heartbeat = Heartbeat(name)
        self._allowed_s = allowed_s
        self._fatal = fatal
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failures = 0
        self._woken = False  # whether somebody asked for this turn

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def stop(self) -> None:
        """Ask it to end; see `join`."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended within the time."""
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def sign(self) -> None:
        """Progress was made."""
        self.heartbeat.busy(self._allowed_s)

    @abstractmethod
    def turn(self) -> float:
        """One piece of work; the answer is the rest in seconds, 0 for none."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Called when a turn raised; it is tried again after a while."""

    def paused(self) -> None:
        """Called when a turn found the disk full; it is tried again until there is space."""
        self.heartbeat.idle()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken = self._wake.is_set()
            self._wake.clear()
            self.sign()
            try:
                self._engine.check_disk_space()
                with known.only({}):  # the thread must not keep one session's secrets for the next
                    pause = self.turn()
                self._engine.space.go_on(self.heartbeat.name)
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
    """Follows the sources: scans what hints name, and everything at the start, periodically, and when in doubt."""

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("intake", engine, fatal)
        self._full_scan_due = threading.Event()
        self._full_scan_due.set()
        self._last_full = 0.0
        self._period = engine.config.watch.scan_minutes * 60
        self._clock_gap = time.time() - time.monotonic()
        self._next_look = 0.0
        self.first_scan_done = threading.Event()
        self.calm = threading.Event()
        """Cleared while new messages may not be searchable yet, so that less urgent work waits."""
        self._tick = _TICK_S
        self.on_looked: Callable[[], None] = lambda: None
        """Called after each look while messages wait for the word index."""
        self.sees_all: Callable[[], bool] = lambda: False
        """Whether every change leads to a hint, so that there is no need to look without one."""

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
            self._stop.wait(max(_SETTLE_S, self._next_look - time.monotonic()))
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
                quarantined=result.quarantined, postponed=len(result.postponed),
            )  # fmt: skip
        self.first_scan_done.set()
        pause = min(_LONGEST_REST_S, _LOOK_SHARE * (time.thread_time() - used))
        self._next_look = max(begun + _SPACING_S, time.monotonic() + pause)
        self.settled()
        if self._engine.archive.waiting("lexical"):
            self.on_looked()
        if self._engine.is_waiting:
            return 0.1
        return self._pause(is_quiet=not (self._woken or is_full_scan or result.changed or result.removed))

    def _pause(self, *, is_quiet: bool) -> float:
        """Seconds until the next scan; `is_quiet`: nobody asked for this one, and it found nothing."""
        is_sure = is_quiet and not self._engine.is_behind and self.sees_all()
        self._tick = min(_LONGEST_TICK_S, 2 * self._tick) if is_sure else _TICK_S
        return self._tick

    def settled(self) -> None:
        """Nothing waits for the lexical index, as far as this caller knows."""
        if not self._engine.archive.waiting("lexical") and not self._wake.is_set():
            self.calm.set()

    def _sign(self) -> None:
        self.sign()
        if self._stop.is_set():
            raise Interrupted("stopping between two sessions; the rest is read at the next start")

    def _is_due(self) -> bool:
        """A period has passed, or the clock has jumped: the machine slept, events may be lost."""
        gap = time.time() - time.monotonic()
        jumped = abs(gap - self._clock_gap) > 5
        self._clock_gap = gap
        period = self._period * random.uniform(0.9, 1.1)  # noqa: S311 - jitter, not a secret
        return jumped or time.monotonic() - self._last_full > period

    def paused(self) -> None:
        super().paused()
        self._full_scan_due.set()
        self.calm.set()
        self.first_scan_done.set()  # requests are answered from what there is

    def failed(self, error: Exception) -> None:
        self.paused()
        if not isinstance(error, Interrupted):
            self._engine.report("intake", error)


class WordsLoop(Loop):
    """Feeds the lexical index. Its commits take their time, so they come after each other with a rest between: what
    they do not have yet is searched over them (app.indexing).
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("words", engine, fatal)
        self._last_indexed = time.monotonic()
        self._read: LexicalIndex | None = None  # the index whose words are in memory
        self.on_indexed: Callable[[], None] = lambda: None
        """Told after every commit."""

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
            self._read_words()
        self._stop.wait(_COMMITS_S if result else 0.0)
        return IDLE_S if quiet_s >= _QUIET_S else _QUIET_S

    def _read_words(self) -> None:
        """Have the index read all its words, which similar spellings are searched in, before somebody waits for it.

        It takes two seconds for 60,000 words and 13 MB from then on. What comes in meanwhile is found all the same: it
        is searched over the index.
        """
        index = self._engine.upkeep.lexical
        if index is self._read:
            return
        self._read = index  # what fails now is read when somebody asks
        try:
            index.spellings("", 1)  # nothing is spelt like it, but the words are there
        except (Retry, Skip) as error:
            self._engine.index_failed("lexical", error)
        # By now most of what lives long is there. Looking through all of it held up questions by 57 ms now and then.
        gc.collect()
        gc.freeze()

    def failed(self, error: Exception) -> None:
        if not isinstance(error, Interrupted | IndexBroken):  # the engine has reported that one
            self._engine.report("lexical index", error)


class EmbedLoop(Loop):
    """Empties the semantic outbox; waits longer and longer for a model server that is down.

    The worker that has Chroma and the model starts when something waits, or when a question needs it, and is ended
    after a rest.
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("embed", engine, fatal, allowed_s=MODEL_S)
        self._is_model_known = False

    def turn(self) -> float:
        upkeep = self._engine.upkeep
        if not self._is_model_known:
            upkeep.expect_semantic()
            upkeep.expect_model()
            self._is_model_known = True
        if not self._engine.has_to_embed:
            return self._pause()
        result = self._engine.drain_semantic(stop=self._is_stopping)
        if result.refused:
            _LOG.warning("embedding", refused=result.refused)
        is_more = self._engine.prepare_semantic(_READS_S)
        return 0.0 if result.messages or is_more else IDLE_S

    def _pause(self) -> float:
        upkeep = self._engine.upkeep
        if upkeep.is_open and self._engine.prepare_semantic(_READS_S):
            return 0.0
        if upkeep.end_worker_if_idle(LETS_GO_S):
            _LOG.info("embedding", rest="the process that has the semantic index and the model was ended")
        return IDLE_S

    def _is_stopping(self) -> bool:
        self.sign()
        return self._stop.is_set()

    def failed(self, error: Exception) -> None:
        if not isinstance(error, IndexBroken):  # the engine has reported that one
            self._engine.report("embedding", error)


class ViewLoop(Loop):
    """Keeps the end states of files up to date, so that ten thousand of them can be listed at once.

    It runs when nothing new came in for a while, and waits in proportion to the time that its last run took.
    """

    def __init__(self, engine: Engine, fatal: Callable[[BaseException], None]) -> None:
        super().__init__("views", engine, fatal, allowed_s=MODEL_S)
        self._last_scan = self._next = 0.0

    def on_scan(self) -> None:
        """Called when a scan read something new."""
        self._last_scan = time.monotonic()
        self.wake()

    def turn(self) -> float:
        begun = time.monotonic()
        due_at = max(self._last_scan + _QUIET_S, self._next)
        if begun < due_at:
            return due_at - begun
        self._engine.recorded.refresh(self._sign)
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
