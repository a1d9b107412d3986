"""``storage/session_diff``: what a session changed in its files, one JSON array a session (formats sections 2 and 3).

OpenCode up to 1.1 keeps one for every session, with whole texts before and after; 1.18 writes one only on a revert,
with a patch, beside its database. So they belong to the data directory and to no single source, and outlive their
session.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from daemon import records
from daemon.errors import BadRecord
from daemon.model import Json
from daemon.opencode import json_files


def session_diff_stamps(data_dir: Path) -> dict[str, str]:
    """Every session that has such a file, with a stamp that changes when the file does; empty without the folder.

    Raises:
        BadRecord: the folder cannot be listed.
    """
    folder = data_dir / "storage" / "session_diff"
    found: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json"):
                    told = entry.stat(follow_symlinks=False)
                    found[entry.name.removesuffix(".json")] = f"{told.st_mtime_ns}-{told.st_size}-{told.st_ino}"
    except (FileNotFoundError, NotADirectoryError):
        return found  # no folder, or a file that went away while we listed: the next listing tells
    except OSError as error:
        raise BadRecord(f"{folder}: cannot be listed: {error.strerror}; check its permissions") from None
    return found


def session_diffs(
    data_dir: Path, session_id: str, record_mb: int = 64, clock: Callable[[], float] = time.time
) -> tuple[list[Json], int]:
    """What the file of a session says, and when it was last written (epoch ms); ([], 0) where there is none.

    Each entry is as OpenCode wrote it: ``{file, before, after, additions, deletions, status?}``, or with ``patch`` for
    before and after; `file` is relative to the work tree. Entries that are no objects are left out.

    Raises:
        SourceBusy: it is being written.
        BadRecord: too large, no regular file, or no JSON array.
    """
    path = data_dir / "storage" / "session_diff" / f"{session_id}.json"
    if "/" in session_id or "\0" in session_id:
        raise BadRecord(f"session {session_id!r}: not an id that OpenCode makes; its diff is not looked for")
    try:
        told = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return [], 0
    except OSError as error:
        raise BadRecord(f"{path}: cannot be read: {error.strerror}") from None
    _, listed = json_files.load(path, record_mb << 20, clock, records.load_objects)
    return listed, told.st_mtime_ns // 1_000_000
