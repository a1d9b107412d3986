"""LevelDB, held by one process: the only importer of plyvel.

Our own flock is taken before LevelDB is touched, because a second open in one process silently drops LevelDB's lock
(docs/reliability.md, L1); every read verifies checksums, because a flipped bit is otherwise passed over in silence
(L2); every write is one synced batch. Keys and values are bytes; what they mean is the archive's business.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

import plyvel

from daemon import fsio
from daemon.archive import keys
from daemon.errors import ArchiveCorrupt, ArchiveLocked


class Store:
    """One database directory, ``leveldb`` beneath `directory`, behind ``daemon.lock``."""

    def __init__(self, directory: Path) -> None:
        """Open, and create where nothing is.

        Raises:
            ArchiveLocked: another process, or this one, has it open.
            ArchiveCorrupt: LevelDB refuses the files.
        """
        fsio.make_private_dir(directory)
        self._place = directory / "leveldb"
        self._lock_file = _lock(directory / "daemon.lock")
        try:
            self._db = plyvel.DB(
                str(self._place),
                create_if_missing=True,
                write_buffer_size=16 << 20,
                lru_cache_size=64 << 20,
                bloom_filter_bits=10,
            )
        except (plyvel.Error, OSError) as error:
            self._lock_file.close()
            raise ArchiveCorrupt(
                f"{self._place}: LevelDB cannot open it: {error}; copy the directory away before anything else, then "
                f"move it aside: the next start reads what OpenCode still has"
            ) from error

    def close(self) -> None:
        """Release LevelDB, then the lock. Closing twice is harmless."""
        self._db.close()
        self._lock_file.close()

    def get(self, key: bytes) -> bytes | None:
        """One value.

        Raises:
            ArchiveCorrupt: it failed its checksum.
        """
        try:
            value: bytes | None = self._db.get(key, verify_checksums=True)
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error
        return value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All pairs whose key begins with `prefix`, in key order."""
        try:
            with self._db.iterator(start=prefix, stop=keys.after(prefix), verify_checksums=True) as rows:
                yield from rows
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error

    def keys(self, prefix: bytes) -> Iterator[bytes]:
        """All keys that begin with `prefix`, in order."""
        try:
            bounds = {"start": prefix, "stop": keys.after(prefix)}
            with self._db.iterator(**bounds, include_value=False, verify_checksums=True) as rows:
                yield from rows
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """All of `changes`, synced, or none; None deletes.

        Raises:
            ArchiveCorrupt: the disk refused. LevelDB takes no more writes until it is opened anew.
        """
        try:
            with self._db.write_batch(transaction=True, sync=True) as writing:
                for key, value in changes.items():
                    if value is None:
                        writing.delete(key)
                    else:
                        writing.put(key, value)
        except plyvel.Error as error:
            raise ArchiveCorrupt(
                f"{self._place}: the archive cannot be written: {error}; see to the disk (is it full?) and start "
                f"again: what was acknowledged is there, the rest is read again from the source"
            ) from error

    def bytes_on_disk(self) -> int:
        """Of all files. Only names and sizes are looked at: LevelDB's files are never opened by us (L1)."""
        total = 0
        with os.scandir(self._place) as entries:
            for entry in entries:
                try:
                    total += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # LevelDB compacts while we look
        return total

    def corrupt(self, cause: object) -> ArchiveCorrupt:
        """The error for a check that failed."""
        return ArchiveCorrupt(
            f"{self._place}: the archive failed a check: {cause}; stop the daemon, copy the directory away, then "
            f"restore it from a backup or move it aside: the next start reads what OpenCode still has"
        )


def _lock(path: Path) -> IO[str]:
    """Hold `path` exclusively, with our pid in it, for as long as the answer stays open."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    file = os.fdopen(descriptor, "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read(20).strip() or "unknown"
        file.close()
        raise ArchiveLocked(
            f"{path.parent}: in use by another Reconstitute (pid {holder}); stop that one, or ask it: "
            f"reconstitute status"
        ) from None
    file.seek(0)
    file.truncate()
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file
