"""How often the service ended without having been told to, counted over its restarts.

A service that systemd starts again after every crash would crash on the same record for ever, and serve nobody
meanwhile. So after some crashes in a short time the next run is calm: it answers, and touches nothing new (D6).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from daemon import log
from daemon.errors import OutputRefused
from daemon.filesystem import durable

_LOG = log.get("daemon")
_NAME = "crashes.json"
MOST, WITHIN_S = 5, 600
"""So many crashes within so many seconds are too many. The unit lets systemd start it more often than that."""


class _Kept(msgspec.Struct):
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
        kept, now = self._read(), self._clock()
        if kept.running:
            kept.crashed.append(now)
        kept.crashed = [at for at in kept.crashed[-MOST:] if 0 <= now - at <= WITHIN_S]
        kept.running = True
        self._write(kept)
        return kept.crashed if len(kept.crashed) == MOST else []

    def end(self) -> None:
        """Note that the run ends because it was told to; earlier crashes no longer count."""
        self._write(_Kept())

    def _read(self) -> _Kept:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return _Kept()
        except (OSError, msgspec.DecodeError) as error:
            _LOG.warning("earlier crashes are not known", file=str(self._path), error=str(error))
            return _Kept()

    def _write(self, kept: _Kept) -> None:
        try:
            durable.atomic_write(self._path, msgspec.json.encode(kept))
        except (OSError, OutputRefused) as error:  # a full disk must not keep the service from running
            _LOG.warning("crashes are not counted", file=str(self._path), error=str(error))


def explained(crashed: list[float], retry_s: float) -> str:
    """What these crashes mean to a user, if a normal run is tried again after `retry_s` seconds."""
    first, last = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (crashed[0], crashed[-1]))
    return (
        f"it crashed {len(crashed)} times between {first} and {last}, so it only answers from what is archived: "
        "nothing is read from OpenCode, no pages are written; its log (journalctl --user --unit reconstitute) has the "
        f"reason; it tries again after {retry_s / 3600:.0f} h, or now with: systemctl --user restart reconstitute"
    )
