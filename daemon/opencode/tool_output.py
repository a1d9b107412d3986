"""Tool outputs too long for their record, which OpenCode writes to files in ``tool-output`` (formats section 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from daemon.filesystem import regular_file


def file_name(path: str) -> str:
    """The file's name in ``tool-output``, empty for a path elsewhere.

    Only the name: a data directory that was moved still records the place where it once was.
    """
    folder, _, name = path.rpartition("/")
    fits = path.startswith("/") and folder.endswith("/tool-output") and name not in ("", ".", "..") and "\0" not in name
    return name if fits else ""


def read(folders: Sequence[Path], name: str, most: int) -> tuple[bytes | None, int]:
    """As `_read`, from the first of the data directories that has it.

    Raises:
        OSError: as there; one that tells of a file that is there goes before one that is not.
    """
    reason: OSError = FileNotFoundError()
    for folder in folders:
        try:
            return _read(folder, name, most)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = error
    raise reason


def _read(folder: Path, name: str, most: int) -> tuple[bytes | None, int]:
    """(content or None where it is larger than `most`, when it changed in ms); links are not followed.

    Raises:
        OSError: it is not there, or no plain file, or cannot be read.
    """
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        file = regular_file.opened(name, folder=directory)
    finally:
        os.close(directory)
    with file:
        status = os.fstat(file.fileno())
        raw = file.read(most + 1) if status.st_size <= most else b""
    return (raw if status.st_size <= most and len(raw) <= most else None), status.st_mtime_ns // 1_000_000
