"""The composition root: every object is built here, once.

`open_engine` is everything in one process, without loops; `run` is the daemon.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from daemon import log
from daemon.app.engine import Engine
from daemon.app.one_shot import OneShot
from daemon.config import Config
from daemon.control.calls import Progress, silent
from daemon.errors import ArchiveLocked
from daemon.filesystem.disk_space import is_full
from daemon.notify import Notifier

T = TypeVar("T")
_LOOK_S = 5.0
_COMMANDS_S, _LOCK_LOOK_S = 5.0, 0.1
"""How long a start waits for a command that has the archive, and from one try to the next."""


def open_engine(config: Config, progress: Progress = silent) -> Engine:
    """Open the archive and what stands on it, for one command; a context manager.

    It takes in what is new before it answers, since no daemon has done so; `progress` is told where that takes long.

    Raises:
        ArchiveLocked: a daemon has it; ask that one.
    """
    return OneShot(config, progress)


def run(config: Config, *, once: bool = False) -> int:
    """The daemon in the foreground until a signal, or with `once` until everything there is has been done.

    The answer is the exit code.

    Raises:
        ArchiveLocked: another daemon runs.
    """
    if not once:
        # Until the loops run there is nothing to drain: a stop during the start is simply the end.
        signal.signal(signal.SIGTERM, _end)
    from daemon.app.daemon import Daemon  # noqa: PLC0415 - the server is not needed by a single command

    daemon = Daemon(config) if once else _when_there_is_room(lambda: Daemon(config))
    return daemon.once() if once else daemon.run()


def _when_there_is_room(make: Callable[[], T]) -> T:
    """What `make` makes, as soon as the disk has room for it: a service that gave up would not come back.

    A command that has the archive for a moment is waited for as well.
    """
    notifier = Notifier()
    has_told = False
    end = time.monotonic() + _COMMANDS_S
    while True:
        try:
            return make()
        except ArchiveLocked:
            if time.monotonic() > end:
                raise
            time.sleep(_LOCK_LOOK_S)
            continue
        except Exception as error:
            if not is_full(error):
                raise
            if not has_told:
                log.get("daemon").warning("waiting for room on the disk", message=str(error))
            has_told = True
        notifier.status("waiting for room on the disk")
        notifier.extend(12 * _LOOK_S)
        time.sleep(_LOOK_S)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
