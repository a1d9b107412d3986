"""When memory is freed, and goes back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 1 << 16
_WORK_S = 0.5
"""Seconds of processor time after which enough may have been freed."""


def return_large_blocks() -> None:
    """Let the GNU C library return each block of 64 kB or more to the system when it is freed.

    By default it keeps freed blocks of up to 32 MB in its heaps, of which there may be eight for each core. After 200
    messages that were archived and indexed one after another, 127 MB of the 154 MB in the heaps were free (two cores).
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library has no such setting
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def collect() -> None:
    """Free what only refers to itself, and leave all else out of the collector's next runs.

    Those delayed searches by up to 57 ms. Another thread may have a million objects in hand that are left out with the
    rest, so it is called again after such work: the replay of all files of 144,000 messages kept 200 MB otherwise.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class Trimmer:
    """Returns what is free in the heaps to the system, now and then while there is work.

    The C library does so only at the end of a heap. After a hundred searches 50 of 220 MB were free and kept.
    """

    def __init__(self) -> None:
        self._used = time.process_time()

    def look(self) -> bool:
        """Trim the heaps if this process has worked since they were trimmed last; whether that was due.

        It takes some milliseconds.
        """
        used = time.process_time()
        if used - self._used < _WORK_S:
            return False
        with contextlib.suppress(OSError, AttributeError):  # as above
            ctypes.CDLL(None).malloc_trim(0)
        self._used = time.process_time()
        return True
