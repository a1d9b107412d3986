"""One of OpenCode's JSON files, read while OpenCode may be writing it (formats section 5, docs/reliability.md, S3).

Files are written in place, so a reader can meet an empty file, half a text, or a new text with the tail of an older
one: a file that does not parse and is young is being written, not bad. No link is followed, nothing large is read.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon import records
from daemon.errors import BadRecord, SourceBusy

_SETTLING_S = 2.0
"""How long after a write an unreadable file counts as being written (docs/reliability.md, S3)."""


def read(path: Path, limit: int) -> bytes:
    """The bytes of a record file, unchanged while they were read, at most `limit`.

    Raises:
        SourceBusy: it changed meanwhile, or is gone again.
        BadRecord: too large, not a regular file, unreadable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise SourceBusy(f"{path}: gone between listing and reading") from None
    except OSError as error:
        raise BadRecord(f"{path}: cannot be read: {error.strerror}") from None
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        os.close(descriptor)
        raise BadRecord(f"{path}: not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        if before.st_size > limit:
            raise BadRecord(f"{path}: {before.st_size} bytes, more than limits.record_mb allows")
        raw = file.read()
        after = os.fstat(descriptor)
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise SourceBusy(f"{path}: being written")
    return raw


def load(
    path: Path,
    limit: int,
    clock: Callable[[], float] = time.time,
    parse: Callable[[bytes], Any] = records.load_object,
) -> tuple[bytes, Any]:
    """The bytes of a record file and the value that `parse` makes of them.

    Raises:
        SourceBusy: being written, also where it does not parse and is young.
        BadRecord: as for `read`, or it does not parse and has come to rest.
    """
    raw = read(path, limit)
    try:
        return raw, parse(raw)
    except BadRecord as error:
        try:
            age = clock() - path.stat().st_mtime
        except OSError:
            age = 0.0
        if 0 <= age < _SETTLING_S:  # a time in the future is no youth
            raise SourceBusy(f"{path}: {error}, and young: being written") from None
        raise BadRecord(f"{path}: {error}") from None
