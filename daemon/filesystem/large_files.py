"""Records too large to be parsed, each stored whole as a file beside the archive's database.

A file is named by the SHA-256 of its content, so equal contents are stored once. It is written under a temporary name,
synced and renamed, so a file with a final name is complete. The archive decides which record it belongs to, and when to
remove it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from daemon.errors import DiskFull
from daemon.filesystem import disk_space, durable

_UNFINISHED = ".unfinished-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LargeFiles:
    """One directory of such files, created on first use; files are 0600, the directory 0700."""

    def __init__(self, directory: Path, free_mb: int = 0) -> None:
        self.directory = directory
        self.free_mb = free_mb

    def keep(self, pieces: Iterable[bytes], size: int) -> str:
        """Store the concatenation of `pieces`, about `size` bytes; returns its SHA-256.

        Raises:
            DiskFull: there is no space for it; the files so far stay.
            OutputRefused: the directory is not ours.
        """
        with _disk_full_as_ours(self.directory):
            return self._keep(pieces, size)

    def _keep(self, pieces: Iterable[bytes], size: int) -> str:
        durable.make_private_dir(self.directory)
        free = disk_space.free_bytes(self.directory)
        if free - size < self.free_mb << 20:
            raise DiskFull(
                f"{self.directory}: {free >> 20} MB free, too little for {size >> 20} MB more above limits.free_mb = "
                f"{self.free_mb}; free some, or move archive.dir"
            )
        total = hashlib.sha256()
        descriptor, name = tempfile.mkstemp(prefix=_UNFINISHED, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    total.update(piece)
                    file.write(piece)
                file.flush()
                durable.sync(file.fileno())
            os.rename(name, self.path(total.hexdigest()))
        except BaseException:
            os.unlink(name)
            raise
        self._sync()
        return total.hexdigest()

    def path(self, sha256: str) -> Path:
        """The path of the content with this hash, whether or not it exists."""
        return self.directory / sha256

    def remove_except(self, kept_hashes: Collection[str]) -> None:
        """Remove every file except `kept_hashes`, and unfinished files of writers that were killed."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            if name.startswith(_UNFINISHED) or (len(name) == 64 and name not in kept_hashes):
                os.unlink(self.directory / name)

    def spool(self) -> IO[bytes]:
        """A nameless temporary file, so that the parts of a large message need not be in memory.

        Raises:
            DiskFull: there is no space even for an empty one.
            OutputRefused: the directory is not ours.
        """
        with _disk_full_as_ours(self.directory):
            durable.make_private_dir(self.directory)
            return tempfile.TemporaryFile(dir=self.directory)

    def _sync(self) -> None:
        descriptor = os.open(self.directory, _FOLDER)
        try:
            durable.sync(descriptor)
        finally:
            os.close(descriptor)


class Spool:
    """The records of one large message, read once from their source, so that a second pass reads the same bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: list[tuple[int, int]] = []
        # Closes the file once nobody holds the message. A `__del__` would come too late when the message is part of a
        # reference cycle: Python may finalize the file first, and warns of it.
        weakref.finalize(self, file.close)

    def add(self, pieces: Iterable[bytes]) -> int:
        """Append one record; returns its number.

        Raises:
            DiskFull: there is no space for it.
        """
        with _disk_full_as_ours("what is read of a large message"):
            start = end = self._file.seek(0, os.SEEK_END)
            for piece in pieces:
                end += self._file.write(piece)
            self._file.flush()
        self._places.append((start, end - start))
        return len(self._places) - 1

    def read(self, number: int) -> bytes:
        """A record as it was written."""
        start, size = self._places[number]
        self._file.seek(start)
        return self._file.read(size)


@contextmanager
def _disk_full_as_ours(place: object) -> Iterator[None]:
    """Turn a write error for lack of space into DiskFull, so that the caller waits and tries again."""
    try:
        yield
    except OSError as error:
        if error.errno not in disk_space.FULL:
            raise
        raise DiskFull(f"{place}: {error.strerror}; free some space there; it is tried again") from error
