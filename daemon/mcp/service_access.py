"""Where an agent's call gets its answer: from the running daemon, else from an engine opened for that one call.

Guarantees: the archive is never held between calls, so a daemon or a command can always have it; calls without a daemon
wait for one another and, for PATIENCE_SECONDS, for another process that has the archive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from daemon.control.client import Client
from daemon.errors import ArchiveLocked, DaemonUnreachable, Retry

if TYPE_CHECKING:
    from daemon.config import Config
    from daemon.control.calls import Service

T = TypeVar("T")

PATIENCE_SECONDS = 20.0
PAUSE_SECONDS = 0.25


class Asking:
    """Answers calls from any thread.

    `load` reads the configuration, anew for each call, so that a mended one is taken up; `log` lets an engine's log
    speak on stderr.
    """

    def __init__(self, load: Callable[[], Config], log: Callable[[Config], None]) -> None:
        self._load = load
        self._log = log
        self._engine = threading.Lock()

    def ask(self, call: Callable[[Service], T], given_up: threading.Event) -> T:
        """What `call` answers. Once `given_up` is set nobody waits for it, and nothing more is begun.

        Raises:
            ArchiveLocked: somebody has the archive and does not answer.
            ReconstituteError: whatever the call raises.
        """
        config, deadline = self._load(), time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return call(Client(config.socket_path, config))
            except DaemonUnreachable:
                pass  # none runs for this archive, or it broke off: then the lock says so
            with self._engine:
                if given_up.is_set():
                    raise Retry("the call was cancelled; call again")
                try:
                    return self._alone(config, call)
                except ArchiveLocked:
                    if time.monotonic() > deadline:
                        raise
            time.sleep(PAUSE_SECONDS)

    def _alone(self, config: Config, call: Callable[[Service], T]) -> T:
        from daemon.app import open_engine  # noqa: PLC0415 - heavy, and not needed beside a daemon

        self._log(config)
        with open_engine(config) as engine:
            return call(engine)

    def rest(self, seconds: float) -> None:
        """Wait so long at most for an engine at work to end, so that the process may."""
        if self._engine.acquire(timeout=seconds):
            self._engine.release()
