"""Fills the archive: scans the sources and captures snapshots. If one source fails, the others are still read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from daemon.app.indexing import SCAN, SEVERAL_FAILURES, Indexing
from daemon.archive import TOOLS, Archive
from daemon.config import Config
from daemon.control import answers, calls
from daemon.control.calls import Progress
from daemon.errors import DiskFull, IndexBroken, ModelUnavailable, Retry, SourceBusy, Unreadable
from daemon.exclude import Exclusion
from daemon.files import Files
from daemon.filesystem.disk_space import is_full
from daemon.ingest import Capture, Captured, Evidence, Intake, ScanResult
from daemon.opencode import Source, State
from daemon.opencode.discover import Sources
from daemon.opencode.snapshots import Snapshots

_LONG_S = 3600.0
MOMENT_S = 0.5
"""About the longest time that a new message waits for a long scan or a long queue."""

_REFUSED_S = (1.0, 600.0)
"""The first and the longest pause before a session is scanned again of which the system refused something."""

_MOVING_S = 2.0
"""Seconds after which a session is scanned again in which something was being written, while the source changes."""

_SETTLED_S, _TRUSTED_S = 10.0, 3600.0
"""Seconds after the last write into a source from when on a full scan leaves nothing to be read again; and how long
that holds, because other files beside a database are read too."""

_LOCKED_S = 5.0
"""A database that is locked for longer than this is reported."""


class Recovery:
    """What the engine needs to recover files, built once. Close it before the archive."""

    def __init__(self, archive: Archive, config: Config, exclusion: Exclusion) -> None:
        first, *further = config.opencode_dirs
        self._snapshots = Snapshots(first, *further)
        self._capture = Capture(
            archive,
            self._snapshots,
            data_dir=first,
            further=further,
            capture_mb=config.archive.capture_mb,
            capture_gb=config.archive.capture_gb,
            free_mb=config.limits.free_mb,
            exclusion=exclusion,
        )
        self.evidence = Evidence(archive, self._capture, first, config.limits.record_mb, further, exclusion=exclusion)
        self.files = Files(archive)
        self.captured = 0
        """Objects captured so far."""

    def capture(self, within_s: float, progress: Callable[[int, int], None], *, everything: bool) -> Captured:
        """Extract evidence again if an older version did it, then capture what is queued (see Capture.run).

        Raises:
            DiskFull: the disk is nearly full.
        """
        self.evidence.renew(progress)
        result = self._capture.run(within_s, progress, everything=everything)
        self.captured += result.trees + result.files
        return result

    def forget_known(self) -> None:
        """Look again which objects the archive has, because some were removed."""
        self._capture.forget_known()

    def close(self) -> None:
        """Close OpenCode's snapshot files."""
        self._snapshots.close()


class Scanning(Indexing):
    """A part of the engine: it has the archive, the sources, intake and recovery."""

    sources: Sources
    intake: Intake
    recovery: Recovery
    is_served: bool

    def __init__(self) -> None:
        super().__init__()
        self._scanning = threading.RLock()
        self._unread: dict[str, str] = {}
        self._locked: dict[str, float] = {}
        """When a source could first not be read, by its name; monotonic seconds."""
        self._postponed: dict[str, set[str]] = {}
        self._moving: dict[str, dict[str, float]] = {}
        """By source: sessions in which something was being written when they were last scanned, in epoch seconds."""
        self._refused: dict[str, tuple[set[str], float, float]] = {}
        """By source: sessions of which something was refused, the pause before they are scanned again, its end."""
        self._settled: dict[str, tuple[State, float]] = {}
        """By source: its state at a full scan that left nothing for a later one, and until when that is trusted."""
        self._is_capturing = False
        """Whether the last scan captured something, so that more may be queued."""
        self._doubted: set[str] = set()
        """Sources whose file events may have missed something."""
        self.on_scanned: Callable[[ScanResult], None] = lambda _: None
        """Called after every scan, because new evidence may concern a continuous target."""

    def scan(
        self,
        *,
        everything: bool,
        patient: bool = True,
        hurry: bool = False,
        words: bool = True,
        progress: Progress | None = None,
    ) -> ScanResult:
        """Scan the sources, feed the lexical index and capture snapshots.

        Without `everything`, only sessions are scanned that were touched or were still being written. A source that
        fails is reported and is scanned in full the next time. With `hurry`, snapshots are captured for a moment only,
        so that the next scan is not delayed. Without `words`, the lexical index is left to another thread, because its
        commits are slow.

        Raises:
            DiskFull: too little space is free. Records read so far are kept; the next scan reads the rest.
        """
        with self._scanning:
            begun, total = time.monotonic(), ScanResult()
            full: DiskFull | None = None
            for source in self.sources.refresh(anew=everything):
                scans_all = everything or source.name in self._unread or source.name in self._doubted
                self._doubted.discard(source.name)
                try:
                    result = self._scan_source(
                        source, everything=scans_all, patient=patient, words=words, progress=progress
                    )
                except DiskFull as error:
                    self._unread[source.name] = str(error)
                    full = error
                    continue
                except (Retry, Unreadable, OSError) as error:
                    self._unread[source.name] = str(error)
                    for waiting in (self._postponed, self._moving):
                        waiting.pop(source.name, None)  # all of it is scanned once it can be read
                    since = self._locked.setdefault(source.name, time.monotonic())
                    # OpenCode locks its database for a moment now and then, which is no reason to report an error.
                    if not isinstance(error, SourceBusy) or time.monotonic() - since > _LOCKED_S:
                        self.report(source.name, error)
                    continue
                self._locked.pop(source.name, None)
                self._unread.pop(source.name, None)
                self._postponed[source.name] = result.postponed
                total += result
            if total.changed:
                self.pace.record(SCAN, total.changed, time.monotonic() - begun)
            self.on_scanned(total)
            if full is not None:
                raise full
            if words:
                self.drain_lexical(progress)
            self._capture(progress, within_s=MOMENT_S if hurry else _LONG_S, everything=everything)
            if everything:
                self.archive.sweep_cache()  # replies and searches that have expired
            return total

    def _capture(self, progress: Progress | None, *, within_s: float, everything: bool) -> None:
        """Archive what OpenCode will prune, for at most `within_s` seconds; the next scan captures the rest."""

        def step(done: int, of: int) -> None:
            self.check_running()
            if progress is not None:
                progress({"phase": "capturing snapshots", "done": done, "total": of})

        try:
            result = self.recovery.capture(within_s, step, everything=everything)
            self._is_capturing = bool(result.trees or result.files or result.left_out)
            if result.refusal:
                self.report("snapshots", Unreadable(f"{result.refusal}; it stays queued and is tried again"))
        except (Retry, OSError) as error:
            if is_full(error):
                raise
            self.report("snapshots", error)

    def _scan_source(
        self, source: Source, *, everything: bool, patient: bool, words: bool, progress: Progress | None
    ) -> ScanResult:
        last = time.monotonic()

        def step(done: int, of: int) -> None:
            nonlocal last
            self.check_running()
            if progress is not None:
                progress({"phase": f"reading {source.kind}", "done": done, "total": of})
            if done < of and time.monotonic() - last > MOMENT_S:
                self._keep_up(source, patient=patient, words=words)
                last = time.monotonic()

        state, begun = source.state() if everything and patient else None, time.time()
        settled, until = self._settled.get(source.name, (None, 0.0))
        if state is not None and state == settled and last < until:
            self.intake.unchanged(source)
            everything = False
        touched, moving = source.touched(), self._moving.get(source.name, {})
        refused, pause, due = self._refused.get(source.name, (set(), 0.0, 0.0))
        is_due = everything or touched is None or last >= due
        only = None
        if not everything and touched is not None:
            only = {*touched, *self._postponed.get(source.name, ()), *(refused if is_due else ())}
            only |= self._due(source, moving) if moving else set()
        result = self.intake.scan(source, only, patient=patient, progress=step)
        moving = {session: scanned for session, scanned in moving.items() if only is not None and session not in only}
        self._moving[source.name] = moving | dict.fromkeys(result.moving, begun)
        still = result.refused if only is None else (refused - only) | result.refused
        if still - refused or not still:
            pause, is_due = 0.0, True
        if is_due:
            pause = min(max(_REFUSED_S[0], 2 * pause), _REFUSED_S[1])
            due = time.monotonic() + pause
        self._refused[source.name] = (still, pause, due)
        if only is None:
            self._settled.pop(source.name, None)
            is_done = result.is_whole and not (result.postponed or result.moving or still)
            if state is not None and is_done and begun - state.written > _SETTLED_S and state == source.state():
                self._settled[source.name] = state, last + _TRUSTED_S
        return result

    def _due(self, source: Source, moving: Mapping[str, float]) -> set[str]:
        """Those of the moving sessions that are scanned in any case: once all stands still, else now and then."""
        state, now = source.state(), time.time()

        def is_due(scanned: float) -> bool:
            still = (scanned if state is None else state.written) + self.config.watch.quiet_seconds
            return scanned < still <= now or not scanned <= now < scanned + _MOVING_S

        return {session for session, scanned in moving.items() if is_due(scanned)}

    def _keep_up(self, source: Source, *, patient: bool, words: bool) -> None:
        """In the middle of a long scan, scan sessions that were touched meanwhile, and index what was read so far."""
        touched = source.touched()
        if touched is None:
            self._doubted.add(source.name)
        elif touched:
            self.on_scanned(self.intake.scan(source, touched, patient=patient))
        if words:
            self.drain_lexical(within_s=MOMENT_S)

    @property
    def unread(self) -> list[str]:
        """Why sources could not be read by the last scan; empty if all were read."""
        return [*self._unread.values(), *self.sources.troubles.values()]

    @property
    def is_waiting(self) -> bool:
        """Whether the last scan found something that was still being written."""
        return any(self._postponed.values()) or any(self._moving.values())

    @property
    def is_behind(self) -> bool:
        """Whether the next scan has something to do even if nothing changes until then."""
        return bool(self._unread or self._doubted or self._is_capturing or self.sources.troubles)

    def index(self, request: calls.Index, progress: Progress) -> answers.Index:
        """See calls.Index."""
        result = self.scan(everything=True, patient=False, progress=progress)
        self.upkeep.expect_semantic()
        embedded, refused, warnings = self._embed_all(progress) if request.wait else (0, 0, [])
        return answers.Index(
            changed=result.changed,
            removed=result.removed,
            quarantined=result.quarantined,
            embedded=embedded,
            refused=refused,
            waiting=max(map(self.archive.waiting, ("semantic", TOOLS))),
            running=self.is_served,
            warnings=warnings + self.unread,
        )

    def _embed_all(self, progress: Progress) -> tuple[int, int, list[str]]:
        """Embed all waiting messages; returns (texts embedded, texts refused, why some messages still wait)."""
        embedded, refused, failures = 0, 0, 0
        warnings: list[str] = []
        total = self.waits_for_meaning
        while True:  # at least once, because opening a missing index fills the outbox
            self.check_running()
            try:
                result = self.drain_semantic(self._stopping.is_set)
                if not result.messages and not self.waits_for_meaning:
                    break
            except ModelUnavailable as error:
                warnings.append(str(error))
                break
            except IndexBroken as error:
                failures += 1
                if failures >= SEVERAL_FAILURES:
                    warnings.append(str(error))
                    break
                continue
            embedded, refused = embedded + result.embedded, refused + result.refused
            waiting = self.waits_for_meaning
            total = max(total, waiting)
            progress({"phase": "embedding", "done": total - waiting, "total": total})
        return embedded, refused, warnings
