"""plyvel under either of its names, what its errors say, and reading in steps."""

from __future__ import annotations

import errno
import os
from typing import Any

try:
    import plyvel
except ModuleNotFoundError:  # for Python 3.13 and later, plyvel-next has the wheels, under a module name of its own
    import plyvel_next as plyvel

from daemon.filesystem.disk_space import FULL

__all__ = ["HELD", "NOT_ALLOWED", "NO_FILES", "NO_ROOM", "PAGE", "is_one_of", "page_of", "plyvel", "text"]

NO_ROOM = (*FULL, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_FILES = (errno.EMFILE, errno.ENFILE)
HELD = (errno.EAGAIN,)
PAGE = 1 << 20
"""Bytes that are read at a stretch, while nobody may close the database."""


def text(cause: object) -> str:
    """An error's own text, which plyvel gives as bytes."""
    words = cause.args[0] if isinstance(cause, plyvel.Error) and cause.args else cause
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)


def is_one_of(cause: object, numbers: tuple[int, ...]) -> bool:
    """Whether an error has one of these numbers; LevelDB reports errors of the system only by their text."""
    if isinstance(cause, OSError) and cause.errno in numbers:
        return True
    is_systems = isinstance(cause, plyvel.Error) and not isinstance(cause, plyvel.CorruptionError)
    return is_systems and any(text(cause).endswith(os.strerror(number)) for number in numbers)


def page_of(moment: Any, after: bytes, size: int = PAGE) -> list[tuple[bytes, bytes]]:
    """The pairs of a database or snapshot that follow the key `after`, about `size` bytes of them."""
    page = list[tuple[bytes, bytes]]()
    with moment.iterator(start=after, include_start=False, verify_checksums=True, fill_cache=False) as rows:
        for key, value in rows:
            page.append((key, value))
            size -= len(key) + len(value)
            if size <= 0:
                break
    return page
