"""Single files of OpenCode's, read while OpenCode may be writing them (opencode-formats.md, Writing,
docs/reliability.md, S3).

Files are written in place, so a reader can meet an empty file, half a text, or a new text with the tail of an older
one: a file that does not parse and is young is being written, not bad. No link is followed, nothing large is read.

Besides records there are ``storage/session_diff``, what a session changed, and ``tool-output``, outputs too long for
their record (opencode-formats.md, Records and Snapshots). OpenCode up to 1.1 keeps a diff of every session, with whole
texts; 1.18 writes one only on a revert, with a patch, beside its database. So diffs belong to the data directory and to
no single source, and outlive their session.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from daemon import records
from daemon.errors import BadRecord, SourceBusy, Unreadable
from daemon.filesystem import regular_file
from daemon.model import Json

_SETTLING_S = 2.0
"""How long after a write an unreadable file counts as being written (docs/reliability.md, S3)."""


def read(path: Path, limit: int) -> bytes:
    """The bytes of a record file, at most `limit`, which did not change while we read them.

    Raises:
        SourceBusy: it changed meanwhile, or is gone again.
        BadRecord: too large, not a regular file.
        Unreadable: the system refuses.
    """
    with opened(path) as (file, size):
        if size > limit:
            raise BadRecord(f"{path}: {size} bytes, more than limits.record_mb allows")
        return content(file, path)


def status(path: str | Path) -> os.stat_result | None:
    """What the system says of a record file; None only where there is no such file.

    Raises:
        Unreadable: the system refuses, so the file may be there.
    """
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: NUL, which no name has
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from None


def content(file: IO[bytes], path: Path) -> bytes:
    """All bytes of an open record file.

    Raises:
        Unreadable: the system refuses.
    """
    try:
        return file.read()
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from None


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """A record file, open for reading, and its size. On exit the file must not have changed.

    Raises:
        SourceBusy, BadRecord, Unreadable: as for `read`.
    """
    try:
        file = regular_file.opened(path)
    except FileNotFoundError:
        raise SourceBusy(f"{path}: gone between listing and reading") from None
    except OSError as error:
        kind = BadRecord if isinstance(error, regular_file.NotRegularError) else Unreadable
        raise kind(f"{path}: cannot be read: {error.strerror}") from None
    with file:
        before = os.fstat(file.fileno())
        yield file, before.st_size
        after = os.fstat(file.fileno())
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise SourceBusy(f"{path}: being written")


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
        if 0 <= age < _SETTLING_S:  # a time in the future does not count as young
            raise SourceBusy(f"{path}: {error}, and young: being written") from None
        raise BadRecord(f"{path}: {error}") from None


def session_diffs(
    data_dir: Path, session_id: str, record_mb: int = 64, clock: Callable[[], float] = time.time
) -> tuple[list[Json], int]:
    """The diffs in a session's file, and when it was last written (epoch ms); ([], 0) if there is no file.

    Each entry is as OpenCode wrote it: ``{file, before, after, additions, deletions, status?}``, or with ``patch`` for
    before and after; `file` is relative to the work tree. Entries that are no objects are left out.

    Raises:
        SourceBusy: it is being written.
        BadRecord: too large, no regular file, or no JSON array.
    """
    path = data_dir / "storage" / "session_diff" / f"{session_id}.json"
    if "/" in session_id or "\0" in session_id:
        raise BadRecord(f"session {session_id!r}: not an id that OpenCode makes; its diff is not looked for")
    found = status(path)
    if found is None:
        return [], 0
    _, listed = load(path, record_mb << 20, clock, records.load_objects)
    return listed, found.st_mtime_ns // 1_000_000


def output_name(path: str) -> str:
    """The file's name in ``tool-output``, empty for a path elsewhere.

    Only the name: a data directory that was moved still records the place where it once was.
    """
    folder, _, name = path.rpartition("/")
    fits = path.startswith("/") and folder.endswith("/tool-output") and name not in ("", ".", "..") and "\0" not in name
    return name if fits else ""


def read_output(folders: Sequence[Path], name: str, most: int) -> tuple[bytes | None, int]:
    """As `_read_output`, from the first of the data directories that has it.

    Raises:
        OSError: as there. A refusal goes first, then an error about an existing file, then one about a missing file.
    """
    reason: OSError = FileNotFoundError()
    for folder in folders:
        try:
            return _read_output(folder, name, most)
        except FileNotFoundError:
            continue
        except OSError as error:
            if not regular_file.is_refusal(reason):
                reason = error
    raise reason


def _read_output(folder: Path, name: str, most: int) -> tuple[bytes | None, int]:
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
