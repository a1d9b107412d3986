"""How often the service ended without having been told to, counted over its restarts.

A service that systemd starts again after every crash would crash on the same record for ever, and serve nobody
meanwhile. So after some crashes in a short time the next run is in safe mode: it answers, and touches nothing new (D6).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from daemon import log, supervisor
from daemon.errors import OutputRefused
from daemon.filesystem import durable

_LOG = log.get("daemon")
_NAME = "crashes.json"
MAX_CRASHES, WINDOW_S = 5, 1800
"""So many crashes within so many seconds are too many: one that hangs is ended only after some minutes. The unit lets
systemd start it more often than that."""


class _State(msgspec.Struct):
    """What the file says: whether a run has not ended yet, and when earlier ones were found to have crashed."""

    running: bool = False
    crashed: list[float] = []  # seconds since the epoch, oldest first


class Crashes:
    """The count in the archive's directory. Only the holder of the archive may use it."""

    def __init__(self, archive_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = archive_dir / _NAME
        self._clock = clock

    def begin(self) -> list[float]:
        """Note that a run begins. Returns when the latest runs were found crashed if they are too many, else [].

        A run that crashes is noticed by the next one, so these are the times of starts.
        """
        state, now = self._read(), self._clock()
        if state.running:
            state.crashed.append(now)
        state.crashed = [at for at in state.crashed[-MAX_CRASHES:] if 0 <= now - at <= WINDOW_S]
        state.running = True
        self._write(state)
        return state.crashed if len(state.crashed) == MAX_CRASHES else []

    def end(self) -> None:
        """Note that the run ends because it was told to; earlier crashes no longer count."""
        self._write(_State())

    def _read(self) -> _State:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_State)
        except FileNotFoundError:
            return _State()
        except (OSError, msgspec.DecodeError) as error:
            _LOG.warning("earlier crashes are not known", file=str(self._path), error=str(error))
            return _State()

    def _write(self, state: _State) -> None:
        try:
            durable.atomic_write(self._path, msgspec.json.encode(state))
        except (OSError, OutputRefused) as error:  # a full disk must not keep the service from running
            _LOG.warning("crashes are not counted", file=str(self._path), error=str(error))


def safe_mode_message(crashes: list[float], lasts_s: float) -> str:
    """What these crashes mean to a user, if safe mode lasts so many seconds from now; empty without any."""
    if not crashes:
        return ""
    first, last = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (crashes[0], crashes[-1]))
    again = time.strftime("%H:%M", time.localtime(time.time() + lasts_s))
    return (
        f"safe mode: the service crashed {len(crashes)} times between {first} and {last}, so it only answers from what "
        "is archived, reads nothing from OpenCode and writes no pages; the reason is in its log ("
        f"{supervisor.log()}); it tries again at {again}, or when it is restarted; {supervisor.restart()}"
    )
