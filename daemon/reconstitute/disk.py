"""What stands on the disk now at a recovered file's path, compared with what was recovered.

Only ever reads: regular files, at most as many bytes as there are to compare, never through a link at the last step.
What cannot be read is said to be unreadable, never taken for missing.
"""

from __future__ import annotations

import os
import stat
from enum import StrEnum


class Disk(StrEnum):
    """How the disk compares."""

    IDENTICAL = "identical"
    DIFFERS = "differs"
    MISSING = "missing"
    PRESENT = "present"  # something is there, and nothing proven to compare it with
    UNREADABLE = "unreadable"


_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def compare(path: str, content: bytes | None) -> Disk:
    """Compare the file at an absolute path with `content`; None: nothing is proven of it.

    A link, a directory or a device where the file was counts as differing: what was recovered is not there.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Disk.MISSING
    except (OSError, ValueError):
        return Disk.UNREADABLE
    if content is None:
        return Disk.PRESENT
    if not stat.S_ISREG(info.st_mode) or info.st_size != len(content):
        return Disk.DIFFERS
    try:
        return Disk.IDENTICAL if _read(path, len(content) + 1) == content else Disk.DIFFERS
    except OSError:
        return Disk.UNREADABLE


def _read(path: str, most: int) -> bytes:
    descriptor = os.open(path, _FLAGS)
    with os.fdopen(descriptor, "rb") as handle:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: no longer a regular file")
        return handle.read(most)
