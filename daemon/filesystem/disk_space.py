"""Free space on the disk: checks it, recognises errors that a full disk causes, and remembers which work waits for it.

Work that finds the disk full stays queued and is tried again; nothing is given up.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from daemon.errors import DiskFull, ReconstituteError
from daemon.model import Json

_LOG = logging.getLogger(__name__)
FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "Disk quota exceeded", "database or disk is full")
"""What the errors of LevelDB, tantivy and of SQLite in Chroma say, which have no errno."""

_SUSPECT_BYTES = 8 << 20
"""With less free space than this an index may fail with an error that does not name the disk."""


def free_bytes(directory: Path) -> int:
    """Free bytes on the disk of `directory`, which need not exist yet."""
    existing = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    return shutil.disk_usage(existing).free


def used_bytes(directory: Path) -> int:
    """What the files in a directory, and beneath it, take of the disk; 0 where there is none."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):  # others work meanwhile
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def check(directory: Path, free_mb: int, stopped: str) -> None:
    """Check that `directory` has free space; `stopped` names, for the message, the work that waits for it.

    Raises:
        DiskFull: less than `free_mb` is free.
    """
    free = free_bytes(directory)
    if free < free_mb << 20:
        raise DiskFull(
            f"{directory}: {free >> 20} MB free, less than {free_mb} MB (limits.free_mb): {stopped} until there is "
            f"space; free some, or move archive.dir"
        )


def is_full(error: BaseException | None) -> bool:
    """Whether an error, or one that caused it, says that the disk or a quota is full."""
    while error is not None:
        if isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL):
            return True
        if not isinstance(error, ReconstituteError) and any(words in str(error) for words in _WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


class DiskSpace:
    """Free space for one archive, on the disks of all its directories, and the work that waits for it. Thread-safe."""

    def __init__(self, directories: Sequence[Path], free_mb: int, clock: Callable[[], float] = time.time) -> None:
        self._directories = directories
        self._free_mb = free_mb
        self._clock = clock
        self._lock = threading.Lock()
        self._paused: dict[str, tuple[int, str]] = {}

    def check(self) -> None:
        """Check every directory.

        Raises:
            DiskFull: less than limits.free_mb is free.
        """
        for directory in self._directories:
            check(directory, self._free_mb, "nothing is written")

    def is_short(self, error: BaseException) -> bool:
        """Whether an index may have failed because the disk is full. Then it does not count as broken."""
        return is_full(error) or any(free_bytes(directory) < _SUSPECT_BYTES for directory in self._directories)

    def pause(self, work: str, error: BaseException) -> None:
        """Note that this work waits for free space; the first one is logged."""
        with self._lock:
            is_first = not self._paused
            since, _ = self._paused.get(work, (int(self._clock() * 1000), ""))
            self._paused[work] = since, str(error)
        if is_first:
            _LOG.warning("%s waits for free space on the disk: %s", work, error)

    def resume(self, work: str) -> None:
        """Note that this work no longer waits; the last one is logged."""
        with self._lock:
            was = self._paused.pop(work, None)
            is_last = was is not None and not self._paused
        if is_last:
            _LOG.info("the disk has free space again, %s continues", work)

    def state(self) -> Json | None:
        """For the status: ``{since (epoch ms), reason, paused: [work]}``; None while nothing waits."""
        with self._lock:
            if not self._paused:
                return None
            since, reason = min(self._paused.values())
            return {"since": since, "reason": reason, "paused": sorted(self._paused)}
