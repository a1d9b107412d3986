"""Records too large to be taken apart, each kept whole as a file of its own beside the archive's database.

A file is named by the SHA-256 of its content, so equal contents are kept once. It is written under a temporary name,
synced and renamed: what has its name is complete. Which record it is of, and when it goes, is the archive's business.
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
    """One directory of such files, made when it is first needed; files are 0600, the directory 0700."""

    def __init__(self, directory: Path, free_mb: int = 0) -> None:
        self.directory = directory
        self.free_mb = free_mb

    def keep(self, pieces: Iterable[bytes], size: int) -> str:
        """Keep what `pieces` give together, `size` bytes or so; answers its SHA-256.

        Raises:
            DiskFull: there is no room for it; what it held until now stays.
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
                os.fsync(file.fileno())
            os.rename(name, self.path(total.hexdigest()))
        except BaseException:
            os.unlink(name)
            raise
        self._sync()
        return total.hexdigest()

    def path(self, sha256: str) -> Path:
        """Where the content with this hash lies, if it is kept."""
        return self.directory / sha256

    def remove_others(self, wanted: Collection[str]) -> None:
        """Remove every file that is none of `wanted`, and what a writer that was killed left behind."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            if name.startswith(_UNFINISHED) or (len(name) == 64 and name not in wanted):
                os.unlink(self.directory / name)

    def spool(self) -> IO[bytes]:
        """A nameless file for as long as it is open: what is read of a large message stands there, not in memory.

        Raises:
            DiskFull: there is no room even for an empty one.
            OutputRefused: the directory is not ours.
        """
        with _disk_full_as_ours(self.directory):
            durable.make_private_dir(self.directory)
            return tempfile.TemporaryFile(dir=self.directory)

    def _sync(self) -> None:
        descriptor = os.open(self.directory, _FOLDER)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Spool:
    """The records of one large message, read once from their source: going through them again finds the same bytes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: list[tuple[int, int]] = []
        # Closes the file once nobody holds the message. A `__del__` would come too late when the message is part of a
        # reference cycle: Python may finalize the file first, and warns of it.
        weakref.finalize(self, file.close)

    def add(self, pieces: Iterable[bytes]) -> int:
        """Write one record behind the others; answers its number.

        Raises:
            DiskFull: there is no room for it.
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
    """A write that finds no room is DiskFull: whoever meets it waits and tries again."""
    try:
        yield
    except OSError as error:
        if error.errno not in disk_space.FULL:
            raise
        raise DiskFull(f"{place}: {error.strerror}; free some space there; it is tried again") from error
