"""LevelDB, held by one process: the only importer of plyvel.

Our own flock is taken before LevelDB is touched, because a second open in one process silently drops LevelDB's lock
(docs/reliability.md, L1); every read verifies checksums, because a flipped bit is otherwise passed over in silence
(L2); every write is one synced batch. Keys and values are bytes; what they mean is the archive's business. A large
value is read whole and written in pieces (bodies).
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import plyvel

from daemon import fsio
from daemon.archive import keys
from daemon.archive.bodies import AHEAD, Body, pieces
from daemon.errors import ArchiveCorrupt, ArchiveLocked

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_HELD = (errno.EAGAIN,)
_LEAST_FREE = 1 << 20
"""Bytes; with less, LevelDB cannot even open: its write-ahead log has no room."""


class Store:
    """One database directory, ``leveldb`` beneath `directory`, behind ``daemon.lock``."""

    def __init__(self, directory: Path) -> None:
        """Open, and create where nothing is.

        Raises:
            ArchiveLocked: another process, or this one, has it open.
            ArchiveCorrupt: LevelDB refuses the files, or the disk refuses LevelDB; the message says which.
        """
        fsio.make_private_dir(directory)
        self._place = directory / "leveldb"
        try:
            self._lock_file = _lock(directory / "daemon.lock")
        except OSError as error:
            fix = self._outer_fix(error) or "see to the disk and start again"
            raise ArchiveCorrupt(f"{directory}: the lock cannot be taken: {error}; {fix}") from error
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
            fix = (
                self._outer_fix(error)
                or "copy the directory away before anything else, then move it aside: the next start reads what "
                "OpenCode still has"
            )
            raise ArchiveCorrupt(f"{self._place}: LevelDB cannot open it: {_text(error)}; {fix}") from error

    def close(self) -> None:
        """Release LevelDB, then the lock. Closing twice is harmless."""
        self._db.close()
        self._lock_file.close()

    def get(self, key: bytes) -> bytes | None:
        """One value.

        Raises:
            ArchiveCorrupt: it failed its checksum, or pieces of it are missing.
        """
        value = self.stored(key)
        if Body.parse(value) is None:
            return value
        with self._db.snapshot() as moment:  # a new value takes the pieces of the old one away
            return self._whole(key, self.stored(key, moment), moment)

    def stored(self, key: bytes, moment: Any = None, *, cached: bool = True) -> bytes | None:
        """One value as it is stored: a large one is a reference to its body. `cached`: it may be read again soon.

        Raises:
            ArchiveCorrupt: it failed its checksum.
        """
        try:
            database = self._db if moment is None else moment
            value: bytes | None = database.get(key, verify_checksums=True, fill_cache=cached)
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error
        return value

    def _whole(self, key: bytes, value: bytes | None, moment: Any) -> bytes | None:
        body = Body.parse(value)
        if body is None:
            return value
        raw = body.whole(lambda piece: self.stored(piece, moment, cached=False))
        if raw is None:
            raise self.corrupt(f"pieces of the value of {key[:80]!r} are gone")
        return raw

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """All pairs whose key begins with `prefix`, in key order."""
        try:
            bounds = {"start": prefix, "stop": keys.after(prefix)}
            with self._db.snapshot() as moment, moment.iterator(**bounds, verify_checksums=True) as rows:
                for key, value in rows:
                    yield key, self._whole(key, value, moment) or b""
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
        """All of `changes`, synced, or none; None deletes. The body that a key referred to until now goes with it.

        Raises:
            ArchiveCorrupt: the disk refused. LevelDB takes no more writes until it is opened anew.
        """
        replaced = [(Body.parse(self.stored(key)), value) for key, value in changes.items()]
        dropped = [piece for body, value in replaced if body and body.reference() != value for piece in body.pieces()]
        try:
            with self._db.write_batch(transaction=True, sync=True) as writing:
                for key, value in changes.items():
                    if value is None:
                        writing.delete(key)
                    else:
                        writing.put(key, value)
                for piece in dropped:
                    writing.delete(piece)
        except plyvel.Error as error:
            fix = self._outer_fix(error) or "see to the disk and start again"
            raise ArchiveCorrupt(
                f"{self._place}: the archive cannot be written: {_text(error)}; {fix}; what was acknowledged is there, "
                f"the rest is read again from the source"
            ) from error

    def drop_unfinished(self) -> None:
        """Remove the bodies that were written ahead for commits that never came."""
        for mark, size in list(self.scan(AHEAD)):
            names = pieces(mark.removeprefix(AHEAD).decode(), int(size))
            self.write(dict.fromkeys([*names, mark]))

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
        """The error for a check that failed, or a read that the disk refused."""
        fix = self._outer_fix(cause)
        if fix:
            return ArchiveCorrupt(f"{self._place}: the archive cannot be read: {_text(cause)}; {fix}")
        return ArchiveCorrupt(
            f"{self._place}: the archive failed a check: {_text(cause)}; stop the daemon, copy the directory away, "
            f"then restore it from a backup or move it aside: the next start reads what OpenCode still has"
        )

    def _outer_fix(self, cause: object) -> str:
        """What to do where the trouble is around the archive and not in it; empty where it may be in it.

        LevelDB tells errors of the system only by their text.
        """
        if _is(cause, _NOT_ALLOWED):
            return f"check owner and permissions of {self._place} and its files, and start again"
        if _is(cause, _NO_FILES):
            return "allow the process more open files, and start again"
        if _is(cause, _HELD):
            return "another program holds it; end that one, and start again"
        if _is(cause, _NO_ROOM) or self._is_full():
            return "free some space there and start again; the archive itself is left as it is"
        return ""

    def _is_full(self) -> bool:
        try:
            return shutil.disk_usage(self._place.parent).free < _LEAST_FREE
        except OSError:
            return False


def _text(cause: object) -> str:
    """An error's own words; plyvel gives them as bytes."""
    words = cause.args[0] if isinstance(cause, plyvel.Error) and cause.args else cause
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)


def _is(cause: object, numbers: tuple[int, ...]) -> bool:
    if isinstance(cause, OSError) and cause.errno in numbers:
        return True
    is_systems = isinstance(cause, plyvel.Error) and not isinstance(cause, plyvel.CorruptionError)
    return is_systems and any(_text(cause).endswith(os.strerror(number)) for number in numbers)


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
