"""What stands on the disk now at a recovered file's path, compared with what was recovered.

Only ever reads: regular files, at most as many bytes as there are to compare, never through a link at the last step.
What cannot be read is said to be unreadable, never taken for missing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from enum import StrEnum

from daemon.filesystem import regular_file


class Disk(StrEnum):
    """How the disk compares."""

    IDENTICAL = "identical"
    DIFFERS = "differs"
    MISSING = "missing"
    ABSENT = "absent"  # nothing stands where the file was deleted
    PRESENT = "present"  # something is there, and nothing proven to compare it with
    UNREADABLE = "unreadable"


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
    with regular_file.opened(path) as handle:
        return handle.read(most)


def standing(path: str, sha256: str, size: int | None, *, deleted: bool = False) -> Disk:
    """Compare the file at an absolute path with what is known of it: hash and size, or that it was deleted.

    Where nothing stands, a deleted file is absent and any other is missing. A file of another size is not read.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Disk.ABSENT if deleted else Disk.MISSING
    except (OSError, ValueError):
        return Disk.UNREADABLE
    if deleted or not sha256 or size is None:
        return Disk.DIFFERS if deleted else Disk.PRESENT
    if not stat.S_ISREG(info.st_mode) or info.st_size != size:
        return Disk.DIFFERS
    try:
        return Disk.IDENTICAL if _digest(path) == sha256 else Disk.DIFFERS
    except OSError:
        return Disk.UNREADABLE


def _digest(path: str) -> str:
    with regular_file.opened(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
