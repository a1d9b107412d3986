"""The daemon: starts, tells systemd, supervises the loops, drains and ends (docs/reliability.md, D1 to D3).

READY is sent when the lock is held, the archive has answered a read and the control socket answers. The watchdog is
notified only while the archive answers and every loop is idle or makes progress. SIGTERM drains within a time limit; a
second signal ends the daemon at once. SIGHUP reads the configuration again: if it has changed and is right, the daemon
drains, and another with the new one follows in the same process, so that every setting can change. After several
crashes it runs in safe mode, without its loops: it answers from what is there, and tries again after an hour.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

from daemon import log
from daemon.app import targets
from daemon.app.crashes import Crashes, safe_mode_message
from daemon.app.embed_loop import EmbedLoop
from daemon.app.erasure_loop import ErasureLoop
from daemon.app.jobs import JobLoop
from daemon.app.loops import IntakeLoop, Loop, ViewLoop, WordsLoop
from daemon.app.reload import Reload, check_schedules
from daemon.app.served import Served
from daemon.app.troubles import LOOK_S, Announcer
from daemon.config import Config
from daemon.control import answers, calls, endpoint, web_answers
from daemon.control.server import Server
from daemon.errors import ConfigError, DiskFull, OutputRefused, Retry, Stop
from daemon.heap import Trimmer, return_large_blocks
from daemon.ingest import ScanResult
from daemon.notify import Notifier
from daemon.opencode.watch import Watch
from daemon.publish import recover
from daemon.requests import Requests
from daemon.schedule import Scheduler, due_since
from daemon.web import WebPage
from daemon.web.entrance import LINK_SECONDS

_LOG = log.get("daemon")
_DRAIN_S = 14.0
"""Seconds for all loops to end. With the socket's 3 s we promise 20 s; the systemd unit allows 45."""

_SWITCH_INTERVAL_S = 0.0005
"""How long a computing thread may keep the others waiting. With Python's default of 5 ms, a scan beside the embedder
lost that much at each file that it read, and one scan reads dozens."""

_GC_THRESHOLD = 20_000
"""New objects before Python's garbage collector runs. One search makes dozens of times the default of a few hundred,
and collecting took a tenth of its time. Objects without reference cycles are freed at once anyway."""

_CHECK_S = 5.0
"""Seconds between two checks whether the watched folders were replaced."""

_ABANDON_S = 5.0
"""How long a stop waits for a model that does not answer; nothing is lost with its answer."""

_SAFE_S = 3600.0
"""How long safe mode lasts."""


class Daemon:
    """One run of the service, from the lock to the last commit."""

    def __init__(self, config: Config, reload: Reload | None = None, file: Path | None = None) -> None:
        """Lock the archive and build everything; nothing runs yet.

        Without `reload`, SIGHUP stops it as SIGTERM does. `file` is where the configuration was read.

        Raises:
            ArchiveLocked: another process holds the archive.
            ConfigError: a target's schedule is not a cron expression.
            OutputRefused: the directory for requests cannot be made.
        """
        check_schedules(config)
        self._reload = reload
        self.successor: Config | None = None
        """The configuration to go on with after `run`, in a Daemon of its own; None: this is the end."""
        self._config, self._started = config, int(time.time() * 1000)
        self._notifier = Notifier()
        self._engine = Served(config)
        self._engine.service, self._engine.config_file = self, file
        self.page = WebPage(self._engine, config.web.port, is_enabled=config.web.enabled)
        self._engine.open_page = self._open_page
        self._code = 0
        self._end: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._requests = Requests(config.requests_dir)
        except BaseException:
            self._engine.close()
            raise
        # Whoever starts it by hand sees it crash, and tries again on purpose.
        self._crashes = Crashes(config.archive_dir) if self._notifier.is_supervised else None
        self._intake = IntakeLoop(self._engine, self._fatal)
        self._engine.calm = self._intake.calm
        self._words = WordsLoop(self._engine, self._fatal)
        self._embed = EmbedLoop(self._engine, self._fatal)
        self._views = ViewLoop(self._engine, self._fatal)
        self._views.is_calm = self._intake.calm.is_set
        self._erasure = ErasureLoop(self._engine, self._fatal)
        self._jobs = JobLoop(self._engine, self._requests, self._intake.first_scan_done, self._fatal)
        # `_drain` waits for them in this order, because a job may need the intake.
        self._loops: tuple[Loop, ...] = (
            self._jobs, self._intake, self._words, self._embed, self._views, self._erasure,
        )  # fmt: skip
        first, *further = config.opencode_dirs
        self._watch = Watch(first, config.requests_dir, self._hint, further=further, databases=config.databases)
        self._scheduler = Scheduler()
        self._engine.on_scanned = self._on_scan
        self._engine.on_forgotten = self._erasure.wake
        self._engine.on_resumed = self._resumed
        self._intake.on_scanned = self._words.wake
        self._intake.sees_all = self._jobs.sees_all = self._sees_all
        self._words.on_indexed = self._indexed

    def _complete_publishing(self) -> None:
        """Complete publishing that a crash interrupted. If the output cannot be written now, the next run does it."""
        try:
            recover(self._config.output_dir)
        except OutputRefused as error:
            self._engine.report("output", error)

    # -- events between the parts --------------------------------------------------------------------------------

    def _hint(self, path: str | None) -> None:
        if path is not None and path.startswith(f"{self._config.requests_dir}{os.sep}"):
            self._jobs.wake()
            return
        self._intake.hint(path)

    def _sees_all(self) -> bool:
        """Whether file events report every change of every source."""
        sources = [Path(source.name.partition(":")[2]) for source in self._engine.sources.current()]
        return self._config.watch.enabled and self._watch.sees([*sources, self._config.requests_dir / "any"])

    def _on_scan(self, result: ScanResult) -> None:
        self._jobs.on_scan(result)
        if result.changed or result.removed:
            self._views.on_scan()

    def _resumed(self) -> None:
        for loop in self._loops:
            loop.wake()

    def _indexed(self) -> None:
        self._intake.settled()
        self._embed.wake()

    def _fatal(self, error: BaseException) -> None:
        """End the daemon because of this error: the archive is corrupt, or the configuration is wrong."""
        _LOG.error("fatal", error=type(error).__name__, message=str(error))
        self._code = getattr(error, "exit_code", 1)
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)

    def report(self, where: str, error: BaseException) -> None:
        """Put an error into the log and the status."""
        self._engine.report(where, error)

    def add_figures(self, status: answers.Status) -> None:
        """Add to the status what only a running daemon knows."""
        status.running, status.pid, status.started = True, os.getpid(), self._started
        status.jobs = answers.JobsStatus(self._jobs.current, self._jobs.queued)
        status.watch = self.watching

    @property
    def watching(self) -> str:
        """How the sources are followed, or why only scans find changes."""
        return "nothing: safe mode" if self._engine.safe_mode else self._watch.trouble or "following file events"

    async def _start_page(self) -> None:
        """Serve the page from now on, if its port can be had."""
        try:
            await self.page.start()
        except Retry as error:
            self._engine.report("web", error)

    def _open_page(self) -> web_answers.Web:
        """Serve the page, and make a link to it. It is called in a thread of the call's own."""
        if self._loop is None:
            raise Retry("the page: the service is still starting; try again in a moment")
        asyncio.run_coroutine_threadsafe(self.page.start(), self._loop).result()
        self.page.is_asked_for = True
        return web_answers.Web(self.page.link(), self.page.address, LINK_SECONDS)

    # -- running -------------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Run until a signal ends it or a reload has found a `successor`; returns the exit code."""
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        gc.set_threshold(_GC_THRESHOLD)
        return_large_blocks()
        try:
            asyncio.run(self._serve())
        finally:
            if self._reload is not None:
                self._reload.on_asked = lambda: None
            self._requests.close()
            self._engine.close()
        return self._code

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        stops = (signal.SIGTERM, signal.SIGINT) if self._reload else (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        for number in stops:
            self._loop.add_signal_handler(number, self._on_stop_signal)
        if self._crashes is not None:
            self._engine.safe_mode = safe_mode_message(self._crashes.begin(), _SAFE_S)
        server = Server(self._engine, self._config.socket_path, config=self._config)
        await server.start()
        endpoint.record(self._config.archive_dir, self._config.socket_path)
        if self._engine.safe_mode:
            self._engine.report("safe mode", Retry(self._engine.safe_mode))
            self._engine.unindexed.is_off = True
            self._intake.calm.set()  # nothing waits for the intake
            self._loop.call_later(_SAFE_S, self._leave_safe_mode)
        else:
            self._start()
        if self.page.is_wanted:
            await self._start_page()
        self._notifier.ready(f"archive open, {self._engine.archive.figures()['messages']} messages")
        _LOG.info("ready", socket=str(self._config.socket_path), archive=str(self._config.archive_dir))
        watching = [asyncio.ensure_future(work) for work in (self._watch_over(), self._announce_troubles())]
        self._follow_reloads(self._loop)
        await self._end.wait()
        for task in watching:
            task.cancel()
        if self._crashes is not None and not self._code:
            self._crashes.end()  # before the loops end, which may take longer than the process is given
        if self.successor is None:
            self._notifier.stopping()
        _LOG.info("stopping")
        if not await asyncio.to_thread(self._drain):
            self._abandon()
        await self.page.stop(keep=self.successor is not None)
        await server.stop()

    def _leave_safe_mode(self) -> None:
        """Try a normal run, in a successor of the same configuration."""
        if self._end is not None and not self._end.is_set():
            self.successor = self._config
            self._end.set()

    def _follow_reloads(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._reload is not None:
            self._reload.on_asked = partial(loop.call_soon_threadsafe, self._read_again)
            if self._reload.take():  # it came during the start
                self._read_again()

    def _read_again(self) -> None:
        """End this daemon in favour of a successor if the configuration has changed and is right."""
        if self._reload is None or self._end is None or self._end.is_set():
            return  # it is remembered for the successor
        self._reload.take()
        self._notifier.reloading()
        try:
            config, keys = self._reload.changed(self._config)
        except ConfigError as error:
            self._engine.report("configuration", error)
            self._notifier.ready("the configuration has a mistake; the former one stays in force")
            return
        _LOG.info("reload", changed=keys or "nothing")
        if keys or self._engine.safe_mode:
            self.successor = config
            self._end.set()
        else:
            self._notifier.ready(self._engine.status_line())

    def _on_stop_signal(self) -> None:
        if self.successor is not None:  # a stop during a reload
            self.successor = None
            return
        if self._end is None or self._end.is_set():
            _LOG.warning("ending at once", reason="second signal")
            os._exit(1)
        self._end.set()

    def _start(self) -> None:
        self._complete_publishing()
        self._engine.upkeep.semantic_state = "being checked"  # by the first turn of its loop
        if self._config.watch.enabled:
            self._watch.start()
            if self._watch.trouble:
                _LOG.warning("watch", message=self._watch.trouble)
                self._intake.poll()
        now = int(time.time() * 1000)
        for target in targets.known(self._engine.archive, self._config).values():
            if target.schedule:
                self._scheduler.add(target.path, target.schedule, partial(self._jobs.enqueue, target.path))
                last = self._engine.archive.target_get(target.path, "last") or {}
                if due_since(target.schedule, targets.last_success(last), now):
                    self._jobs.enqueue(target.path)
            if target.refresh == "continuous":
                self._jobs.enqueue(target.path)
        self._scheduler.start()
        for loop in self._loops:
            loop.start()

    async def _watch_over(self) -> None:
        """Notify the watchdog while work is possible, and restart the watch when its folders have changed."""
        interval = self._notifier.watchdog_interval_s
        last_ping, last_check, trimmer = 0.0, time.monotonic(), Trimmer()
        while True:
            now = time.monotonic()
            is_due = interval is not None and now - last_ping >= interval
            # A ping that was not delivered is repeated at the next turn.
            if is_due and await asyncio.to_thread(self._can_work) and self._notifier.watchdog():
                last_ping = now
            if self._config.watch.enabled and not self._engine.safe_mode and now - last_check >= _CHECK_S:
                last_check = now
                if await asyncio.to_thread(self._watch.stale):
                    await asyncio.to_thread(self._watch.restart)
            await asyncio.to_thread(trimmer.look)
            self._notifier.status(self._engine.status_line())
            await asyncio.sleep(min(interval or _CHECK_S, _CHECK_S))

    async def _announce_troubles(self) -> None:
        announcer = Announcer(self._engine.troubles, notify=self._config.log.notify)
        while True:
            await asyncio.to_thread(announcer.look)
            await asyncio.sleep(LOOK_S)

    def _can_work(self) -> bool:
        """Whether the archive answers and no loop is overdue."""
        try:
            self._engine.archive.state("msg_none")
        except DiskFull:
            pass  # the loops wait for free space
        except Stop as error:
            self._fatal(error)
            return False
        overdue = [loop.heartbeat.name for loop in self._loops if not loop.heartbeat.is_alive]
        if overdue:
            _LOG.error("no progress", loops=overdue)
        return not overdue

    def _drain(self) -> bool:
        """Accept no more work and let each loop finish its batch, within _DRAIN_S. Whether all loops have ended."""
        self._intake.calm.set()  # embedding need not yield any more
        self._scheduler.stop()
        self._watch.stop()
        self._engine.stop()
        for loop in self._loops:
            loop.stop()
        end = time.monotonic() + _DRAIN_S
        late = []
        for loop in self._loops:
            seconds_left = max(0.1, end - time.monotonic())
            if not loop.join(min(seconds_left, _ABANDON_S) if loop is self._embed else seconds_left):
                late.append(loop.heartbeat.name)
        if late:
            _LOG.warning("did not end in time", loops=late)
        return not late

    def _abandon(self) -> NoReturn:
        """End while loops wait for a model or the disk, because a thread cannot be ended. Their work is still queued.

        For a successor, this process's command starts anew in its place: systemd sees the same process.
        """
        self._engine.archive.close()
        if self.successor is None:
            os._exit(self._code)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it listens again; it reads the newest configuration anyway
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the command that we are

    # -- once ----------------------------------------------------------------------------------------------------

    def once(self) -> int:
        """Read, index, embed, run all requests and targets once; returns the exit code."""
        self._complete_publishing()
        self._intake.calm.set()  # no loop reads new messages meanwhile
        try:
            result = self._engine.call(calls.Index(wait=True))
            for warning in result.warnings:
                _LOG.warning("index", message=warning)
            self._intake.first_scan_done.set()
            # Every target runs once. Evidence that arrives meanwhile must not start another run.
            self._engine.on_scanned = lambda _: None
            for target in targets.known(self._engine.archive, self._config).values():
                self._jobs.enqueue(target.path)
            while (self._requests.pending() or self._jobs.due) and not self._jobs.put_off:
                time.sleep(self._jobs.turn())
            self._engine.write_pages_anew(lambda _: None)
            later = self._jobs.later
            if later:
                _LOG.warning("put off: questions wait for a model, or for sessions to be quiet", targets=later)
        finally:
            self._requests.close()
            self._engine.close()
        if self._jobs.put_off or later or result.warnings:
            return Retry.exit_code
        return 1 if self._jobs.failed_jobs else 0
