"""Everything Reconstitute can do, in this process: the rooms put together, behind the Service protocol.

The daemon drives it from its loops; the command line opens one for itself when no daemon runs. Thread-safe: intake and
lexical draining are one at a time, searches run beside them. What fails is remembered for the status and mended where
that is possible.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from daemon import log
from daemon.app import targets
from daemon.app.calls.files import FileCalls
from daemon.app.calls.recall import RecallCalls
from daemon.app.calls.runs import AnswerCalls
from daemon.app.calls.status import StatusCall
from daemon.app.ground import ground, missing
from daemon.app.indexing import Indexing
from daemon.app.recovery import Recovery
from daemon.app.unindexed import Unindexed
from daemon.archive import Archive
from daemon.config import Config
from daemon.control.calls import Progress, silent
from daemon.embed import Embedder
from daemon.embed.builtin import Builtin
from daemon.embed.choose import choose
from daemon.errors import DiskFull, IndexBroken, ModelUnavailable, ReconstituteError, Retry, SourceBusy
from daemon.filesystem.disk_space import DiskSpace, is_full
from daemon.ingest import Intake, ScanResult, Upkeep
from daemon.ingest.evidence import move_events
from daemon.model import Json, Target
from daemon.opencode import Source
from daemon.opencode.discover import Sources
from daemon.publish.edits import PageLook
from daemon.recall.catalog import Catalog
from daemon.recall.ranking.candidates import finish
from daemon.reconstitute import Reconstitution, Who
from daemon.reconstitute.look import Look
from daemon.redact import known

_LOG = log.get("engine")
_SEVERAL_FAILURES = 3
_LONG_S = 3600.0
_MOMENT_S = 0.5
"""A message that was finished a moment ago waits no longer than about this for a long scan or a long queue."""

_LOCKED_S = 5.0
"""A database that is locked for longer than this is reported as a trouble."""


class Interrupted(ReconstituteError):  # noqa: N818 - not a failure
    """Reconstitute is stopping; what was being done is begun again at the next start."""


class Engine(Indexing, RecallCalls, FileCalls, AnswerCalls, StatusCall):
    """Open it with a configuration; close it, or use it as a context manager."""

    def __init__(self, config: Config, *, embedder: Callable[[], tuple[Embedder, str]] | None = None) -> None:
        """Open archive and lexical index; sources, embedder and semantic index follow when they are needed.

        Raises:
            ArchiveLocked: another process has the archive; ask that one.
            ArchiveCorrupt: see the message. DiskFull: there is no room to open them.
        """
        self.config = config
        self.started = int(time.time() * 1000)
        self.errors: deque[Json] = deque(maxlen=20)
        self._taking = threading.RLock()
        self._wording = threading.RLock()
        self._reporting = threading.Lock()
        self._stopping = threading.Event()
        self._running: set[str] = set()
        self._ended = threading.Condition()
        self._unread: dict[str, str] = {}
        self._failures = 0
        self._locked: dict[str, float] = {}
        """Since when a source could not be read, by its name; monotonic seconds."""
        self._postponed: dict[str, set[str]] = {}
        self._doubted: set[str] = set()
        self._broken: dict[str, IndexBroken] = {}
        self._embedding = threading.Lock()
        self.grounds: dict[str, Json] = {}
        """By target: what its last run stood on (app.ground)."""
        self.looks: dict[str, Look] = {}
        """By target that is kept up to date: whether its pages may have to be made again (reconstitute.look)."""
        self.index_look: PageLook | None = None

        self.on_taken: Callable[[ScanResult], None] = lambda _: None
        """Told after every look at the sources, whoever asked for it: a continuous target may be concerned."""
        known.configure(config.redact.extra, config.redact.allow)
        self.archive = Archive(config.archive_dir)
        self.space = DiskSpace((config.archive_dir, config.archive_dir / "index"), config.limits.free_mb)
        try:
            move_events(self.archive)
            self.catalog = Catalog(self.archive)
            self.unindexed = Unindexed(self.archive, config.limits.indexed_kb)
            self.archive.large_files.free_mb = config.limits.free_mb
            first, *further = config.opencode_dirs
            self.sources = Sources(
                first,
                config.limits.record_mb,
                self.archive.large_files,
                further=further,
                databases=config.databases,
            )
            self.recovery = Recovery(self.archive, config)
            self.intake = Intake(
                self.archive,
                quiet_s=config.watch.quiet_seconds,
                free_mb=config.limits.free_mb,
                record_mb=config.limits.record_mb,
                evidence=self.recovery.evidence,
            )
            self.upkeep = Upkeep(
                self.archive,
                config.archive_dir / "index",
                chroma=config.index.chroma,
                choose=embedder or self._choose,
                on_event=self._say,
                indexed_kb=config.limits.indexed_kb,
                embedded_kb=config.limits.embedded_kb,
                batch=config.embedding.batch,
            )
        except BaseException:
            self.archive.close()
            raise
        self.recorded = self.recovery.files

    def stop(self) -> None:
        """Long work, whoever asked for it, is to end between two of its steps, by Interrupted."""
        self._stopping.set()

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise Interrupted("the daemon is stopping; ask again when it runs, what was done until now is kept")

    def close(self) -> None:
        """Let go of everything, indexes before the archive; questions that are still under way get a moment to end."""
        finish(_MOMENT_S)
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

    def _choose(self) -> tuple[Embedder, str]:
        """The embedder that the configuration means, and the archive's vectors were made with."""
        was = self.archive.note("embedder")
        embedder, why = choose(self.config.embedding, was_ollama=was == "ollama")
        self.archive.set_note("embedder", "builtin" if isinstance(embedder, Builtin) else "ollama")
        return embedder, why

    def see_to_room(self) -> None:
        """Between two pieces of work: that there is room on the disk for the next one, and that the archive takes it.

        Raises:
            DiskFull: later.
        """
        self.space.check()
        self.archive.mend()

    # -- troubles ------------------------------------------------------------------------------------------------

    def _say(self, what: str, message: str) -> None:
        _LOG.info("index", what=what, message=message)

    def report(self, where: str, error: BaseException) -> None:
        """Keep an error for the status, and log it; one that is there already only gets its new time."""
        entry = {"time": int(time.time() * 1000), "where": where, "message": str(error), "type": type(error).__name__}
        with self._reporting:
            same = [e for e in self.errors if (e["where"], e["message"]) == (where, entry["message"])]
            for old in same:
                self.errors.remove(old)
            self.errors.append(entry)
        if not same:
            _LOG.warning("trouble", where=where, error=entry["type"], message=entry["message"])

    # -- taking in -----------------------------------------------------------------------------------------------

    def take(
        self,
        *,
        everything: bool,
        patient: bool = True,
        hurry: bool = False,
        words: bool = True,
        progress: Progress | None = None,
    ) -> ScanResult:
        """What the sources have: all of it, or what was touched or still being written. Then the lexical index.

        A source that fails is reported and the others go on; the next look takes all of it. In a `hurry` snapshots are
        captured for a moment only, so that the next look is not kept waiting; without `words` the lexical index, whose
        commits take their time, is left to another thread.

        Raises:
            DiskFull: there is no room; what was read until then is kept, the rest is read by the next look.
        """
        with self._taking:
            total = ScanResult()
            full: DiskFull | None = None
            for source in self.sources.refresh(anew=everything):
                whole = everything or source.name in self._unread or source.name in self._doubted
                self._doubted.discard(source.name)
                try:
                    taken = self._take_from(source, everything=whole, patient=patient, words=words, progress=progress)
                except DiskFull as error:
                    self._unread[source.name] = str(error)
                    full = error
                    continue
                except (Retry, OSError) as error:
                    self._unread[source.name] = str(error)
                    since = self._locked.setdefault(source.name, time.monotonic())
                    # OpenCode locks its database for a moment now and then: the state says so, and nothing is wrong.
                    if not isinstance(error, SourceBusy) or time.monotonic() - since > _LOCKED_S:
                        self.report(source.name, error)
                    continue
                self._locked.pop(source.name, None)
                self._unread.pop(source.name, None)
                self._postponed[source.name] = taken.postponed
                total += taken
            self.on_taken(total)
            if full is not None:
                raise full
            if words:
                self.drain_lexical(progress)
            self._capture(progress, within_s=_MOMENT_S if hurry else _LONG_S)
            if everything:
                self.archive.sweep_cache()  # replies and searches that have expired
            return total

    def _capture(self, progress: Progress | None, *, within_s: float) -> None:
        """What OpenCode will prune goes into the archive; what does not fit into the time waits for the next look."""

        def step(done: int, of: int) -> None:
            self._go_on()
            if progress is not None:
                progress({"phase": "capturing snapshots", "done": done, "total": of})

        try:
            self.recovery.capture(within_s, step)
        except (Retry, OSError) as error:
            if is_full(error):
                raise
            self.report("snapshots", error)

    def _take_from(
        self, source: Source, *, everything: bool, patient: bool, words: bool, progress: Progress | None
    ) -> ScanResult:
        last = time.monotonic()

        def step(done: int, of: int) -> None:
            nonlocal last
            self._go_on()
            if progress is not None:
                progress({"phase": f"reading {source.kind}", "done": done, "total": of})
            if done < of and time.monotonic() - last > _MOMENT_S:
                self._keep_up(source, patient=patient, words=words)
                last = time.monotonic()

        touched = source.touched()
        if everything or touched is None:
            return self.intake.scan(source, None, patient=patient, progress=step)
        return self.intake.scan(
            source, {*touched, *self._postponed.get(source.name, ())}, patient=patient, progress=step
        )

    def _keep_up(self, source: Source, *, patient: bool, words: bool) -> None:
        """In the middle of a long scan: what is new is not kept waiting, and what was read can be searched."""
        touched = source.touched()
        if touched is None:
            self._doubted.add(source.name)
        elif touched:
            self.on_taken(self.intake.scan(source, touched, patient=patient))
        if words:
            self.drain_lexical(within_s=_MOMENT_S)

    @property
    def unread(self) -> list[str]:
        """Why sources could not be read at the last look; empty when all were."""
        return [*self._unread.values(), *self.sources.troubles.values()]

    @property
    def is_waiting(self) -> bool:
        """Whether something was still being written at the last look."""
        return any(self._postponed.values())

    # -- Service -------------------------------------------------------------------------------------------------

    def index(self, progress: Progress) -> Json:
        """See control.calls.Service."""
        taken = self.take(everything=True, patient=False, progress=progress)
        embedded, refused = 0, 0
        warnings: list[str] = []
        total = self.archive.waiting("semantic")
        failures = 0
        while True:  # at least once: opening the index is what finds it missing, and fills the outbox
            self._go_on()
            try:
                done = self.drain_semantic(self._stopping.is_set)
                if not done.messages and not self.archive.waiting("semantic"):
                    break
            except ModelUnavailable as error:
                warnings.append(str(error))
                break
            except IndexBroken as error:
                failures += 1
                if failures >= _SEVERAL_FAILURES:
                    warnings.append(str(error))
                    break
                continue
            embedded, refused = embedded + done.embedded, refused + done.refused
            waiting = self.archive.waiting("semantic")
            total = max(total, waiting)
            progress({"phase": "embedding", "done": total - waiting, "total": total})
        return {
            "changed": taken.changed,
            "removed": taken.removed,
            "quarantined": taken.quarantined,
            "embedded": embedded,
            "refused": refused,
            "waiting": self.archive.waiting("semantic"),
            "warnings": warnings + self.unread,
        }

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> Json:
        """See control.calls.Service."""
        return self.run_target(self._wanted(path, questions, output), self._step(progress), at=at)

    def estimate(
        self, path: str, *, questions: list[str] | None = None, at: str = "", progress: Progress = silent
    ) -> Json:
        """See control.calls.Service."""
        target, step = self._wanted(path, questions), self._step(progress)
        with known.only({}), self.alone(target.path, step), self.answerer() as who:
            return self._reconstitution(who, self.ground()).estimate(target, step, at=at) | {"warnings": []}

    def _wanted(self, path: str, questions: list[str] | None, output: str = "") -> Target:
        """With the questions, too, that are asked of this path anyway."""
        asked = Target(path=path, questions=tuple(questions or ()), output=output)
        return targets.with_own_questions(asked, targets.known(self.archive, self.config))

    def _step(self, progress: Progress) -> Progress:
        """`progress` that ends the work when the daemon is to end."""

        def step(event: Json) -> None:
            self._go_on()
            progress(event)

        return step

    def run_target(self, target: Target, progress: Progress, at: str = "") -> Json:
        """One reconstitution, from the archive as it stands.

        Raises:
            BadRequest: the target makes no sense. OutputRefused: the output cannot be written.
        """
        with known.only({}), self.alone(target.path, progress), self.answerer() as who:
            stood = self.grounds[target.path] = self.ground()
            began = time.time_ns()
            made = self._reconstitution(who, stood)
            result = made.run(target, progress, at=at)
            if target.refresh == "continuous" and made.look is not None:
                self.looks[target.path] = made.look
                self.index_look = PageLook(self.config.output_dir, "", began)
        if stood["pending"] and target.refresh == "once":
            result["warnings"].append(f"made without {', '.join(missing(stood))}; a later run may tell more")
        return result

    def _reconstitution(self, who: Who, ground: Json) -> Reconstitution:
        return Reconstitution(
            self.archive,
            self.searching(),
            self.recorded,
            self.config.output_dir,
            who=who,
            notes=self.noting(),
            pages=self.config.limits.pages,
            spare_mb=self.config.limits.free_mb,
            forbidden=(*self.config.opencode_dirs, self.config.archive_dir),
            ground=ground,
        )

    def ground(self) -> Json:
        """What a run that begins now stands on (app.ground)."""
        return ground(self.archive, self.upkeep, self.config, unread=len(self.unread), captured=self.recovery.captured)
