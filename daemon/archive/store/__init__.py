"""LevelDB, held by one process.

We take our own flock before we touch LevelDB, because a second open in one process silently drops LevelDB's lock
(docs/reliability.md, L1). Every read verifies checksums, because LevelDB otherwise ignores a flipped bit (L2). Every
write is one synced batch. Keys and values are bytes; the archive interprets them. A large value is read whole and
written in pieces (bodies).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from daemon import log
from daemon.archive import keys
from daemon.archive.store.bodies import AHEAD, NEVER_LARGE, Body, pieces
from daemon.archive.store.compression import (
    DICTIONARIES,
    Compression,
    DamagedError,
    DictionaryFiles,
    dictionaries_by_number,
    dictionary_key,
)
from daemon.archive.store.integrity import Marker, Users, files, lock
from daemon.archive.store.leveldb import HELD, NO_FILES, NO_ROOM, NOT_ALLOWED, PAGE, is_one_of, page_of, plyvel, text
from daemon.archive.store.rewriting import Rewriting
from daemon.errors import ArchiveCorrupt, DiskFull, OutputRefused, Retry
from daemon.filesystem import durable
from daemon.filesystem.disk_space import FULL, free_bytes

_LOG = log.get("archive")
_ASIDE = (
    "move the archive's directory aside, then restore a backup with `reconstitute restore-archive`, or start again "
    "without one to read what OpenCode still has"
)
_USERS_S, _USERS_AT_THE_END_S = 2.0, 1.0
_LEAST_FREE = 1 << 20
"""Bytes; with less, LevelDB cannot even open, because its write-ahead log does not fit."""


class Store(Rewriting):
    """One database directory, ``leveldb`` beneath `directory`, behind ``daemon.lock``."""

    def __init__(self, directory: Path) -> None:
        """Open the database, or create it if there is none and never was one.

        Raises:
            ArchiveLocked: another process, or this one, has it open.
            ArchiveCorrupt: files are missing (nothing was changed), LevelDB refuses them, or the disk refuses LevelDB;
                the message says which.
            DiskFull: there is no space to open it.
        """
        durable.make_private_dir(directory)
        self._place = directory / "leveldb"
        try:
            self._lock_file = lock(directory / "daemon.lock")
        except OSError as error:
            raise self._refused("the lock cannot be taken", error, "see to the disk and start again") from error
        self._using = Users()
        self._compression = Compression({})
        self._dictionary_files = DictionaryFiles(directory)
        self._db: Any = None
        self._is_closed = False
        self.has_failed = False
        """Whether a write failed for want of room: `mend` before the next one."""
        self.times_mended = 0
        try:
            self._marker = Marker(directory)
            is_new = self._marker.may_create()
            if is_new:
                self._marker.begin()
            else:
                self._check_whole()
            self._db = self._open(is_new=is_new)
            self._marker.opened()
            self._compression = Compression(self._dictionaries())
        except (plyvel.Error, OSError) as error:
            self._lock_file.close()
            raise self._refused("LevelDB cannot open it", error, _ASIDE) from error
        except BaseException:
            self._lock_file.close()
            raise

    def _check_whole(self) -> None:
        if trouble := self._marker.trouble():
            raise ArchiveCorrupt(f"{self._place}: not a whole archive: {trouble}; nothing was changed; {_ASIDE}")
        self._marker.opened()  # a kill from here on leaves files that the last clean end did not

    def _open(self, *, is_new: bool) -> Any:
        """Open it twice, because only paranoid checks find a flipped bit in the index of a table, which hides keys.

        But paranoid checks refuse a log that a power cut has torn, so an open without them recovers the log first.
        """
        for paranoid in (False, True):
            database = plyvel.DB(
                str(self._place),
                create_if_missing=is_new,
                paranoid_checks=paranoid,
                write_buffer_size=32 << 20,
                lru_cache_size=16 << 20,
                bloom_filter_bits=10,
            )
            if not paranoid:
                database.close()
        return database

    def _dictionaries(self) -> dict[int, bytes]:
        """The compression dictionaries by number. A missing copy is restored from the other one.

        Raises:
            ArchiveCorrupt: LevelDB's copies fail their check, or the disk refuses a new copy.
        """
        in_files = self._dictionary_files.read()
        in_leveldb = dictionaries_by_number(self.scan(DICTIONARIES))
        known = in_files | in_leveldb
        for number, raw in known.items():
            if number not in in_files or number not in in_leveldb:
                try:
                    self._keep_dictionary(number, raw)
                except DiskFull as error:
                    _LOG.warning("a copy of a dictionary is missing; it is made at the next start", error=str(error))
        return known

    def _keep_dictionary(self, number: int, raw: bytes) -> None:
        try:
            self._dictionary_files.write(number, raw)
        except (OSError, OutputRefused) as error:
            raise self._refused("a dictionary cannot be kept", error, "see to the disk and start again") from error
        self._write({dictionary_key(number): raw}, ())

    def _refused(self, action: str, cause: object, fix: str) -> ArchiveCorrupt | DiskFull:
        """The error for an action that LevelDB refused: DiskFull if the disk is full."""
        kind = DiskFull if is_one_of(cause, FULL) or self._is_full() else ArchiveCorrupt
        return kind(f"{self._place}: {action}: {text(cause)}; {self._outer_fix(cause) or fix}")

    def close(self) -> None:
        """Release LevelDB, then the lock. Closing twice is harmless.

        From now on no call is accepted, and running reads and writes get a moment to end, because closing LevelDB under
        them would crash the process.
        """
        database, self._db, self._is_closed = self._db, None, True
        if database is not None:
            with self._using.nobody(_USERS_AT_THE_END_S):
                database.close()
            self._marker.closed()
        self._lock_file.close()

    def get(self, key: bytes) -> bytes | None:
        """One value.

        Raises:
            ArchiveCorrupt: it failed its checksum, or pieces of it are missing.
        """
        value = self.stored(key)
        if Body.parse(value) is None:
            return value
        with self._using, self._database().snapshot() as moment:  # a new value removes the old pieces
            return self._whole(key, self.stored(key, moment), moment)

    def stored(self, key: bytes, moment: Any = None, *, cached: bool = True) -> bytes | None:
        """One value as it is stored: a large one is a reference to its body. `cached`: it may be read again soon.

        Raises:
            ArchiveCorrupt: it failed its checksum.
        """
        users = self._using
        with users.entering:  # not `with users`, which costs as much as the read itself
            users.entries += 1
        try:
            database = (self._db or self._database()) if moment is None else moment
            value: bytes | None = database.get(key, verify_checksums=True, fill_cache=cached)
            return value if value is None else self._compression.unpack(key, value)
        except (DamagedError, plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error
        finally:
            with users.leaving:
                users.exits += 1

    def _whole(self, key: bytes, value: bytes | None, moment: object) -> bytes | None:
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
            with (
                self._using,
                self._database().snapshot() as moment,
                moment.iterator(start=prefix, stop=keys.after(prefix), verify_checksums=True) as rows,
            ):
                for key, value in rows:
                    if value.startswith(b"\0"):  # compressed or a reference, which cursors are not
                        yield key, self._whole(key, self._compression.unpack(key, value), moment) or b""
                    else:
                        yield key, value
        except (DamagedError, plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error

    def keys(self, prefix: bytes) -> Iterator[bytes]:
        """All keys that begin with `prefix`, in order."""
        try:
            bounds = {"start": prefix, "stop": keys.after(prefix), "include_value": False}
            with self._using, self._database().iterator(**bounds, verify_checksums=True) as rows:
                yield from rows
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error

    def stored_rows(self) -> Iterator[tuple[bytes, bytes]]:
        """All pairs of one moment as they are stored, in key order. Writing and closing need not wait for the reader.

        Raises:
            ArchiveCorrupt: one failed its checksum.
            Retry: the database was closed or opened again meanwhile.
        """
        for number, raw in self._dictionary_files.read().items():
            if self.stored(dictionary_key(number)) is None:  # no value could be read without it
                self._keep_dictionary(number, raw)
        with self._using:
            database = self._database()
            moment = database.snapshot()
        page, after = list[tuple[bytes, bytes]](), b""
        try:
            while True:
                with self._using:
                    if self._db is not database:
                        raise Retry(f"{self._place}: was closed meanwhile; run it again")
                    page = page_of(moment, after)
                if not page:
                    return
                yield from page
                after = page[-1][0]
        except (plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error
        finally:
            with self._using:
                moment.close()

    def page(self, after: bytes, size: int = PAGE) -> list[tuple[bytes, bytes]]:
        """The pairs that follow the key `after`, about `size` bytes of them, as `stored` gives them; empty at the end.

        It holds LevelDB for a moment only, so that a caller can read everything page by page.
        """
        try:
            with self._using:
                rows = page_of(self._database(), after, size)
            return [(key, self._compression.unpack(key, value)) for key, value in rows]
        except (DamagedError, plyvel.CorruptionError, plyvel.IOError) as error:
            raise self.corrupt(error) from error

    def write(self, changes: Mapping[bytes, bytes | None], fresh: Collection[bytes] = ()) -> None:
        """Write all of `changes`, synced, or none; None deletes. Removes the bodies that the old values referred to.

        `fresh` are those keys that do not exist yet.

        Raises:
            DiskFull: there is no space; see `mend`.
            ArchiveCorrupt: the disk refused. LevelDB accepts no more writes until it is opened again.
        """
        if self.has_failed:
            raise DiskFull(f"{self._place}: a write failed for want of room; it is opened anew when there is some")
        replaced = [
            (Body.parse(self.stored(key)), value)
            for key, value in changes.items()
            if key not in fresh and not key.startswith(NEVER_LARGE)
        ]
        dropped = [piece for body, value in replaced if body and body.reference() != value for piece in body.pieces()]
        dictionary = self._compression.learn(changes.items())
        if dictionary is not None:
            self._keep_dictionary(*dictionary)
            self._compression.use(*dictionary)
        self._write(changes, dropped)

    def _write(self, changes: Mapping[bytes, bytes | None], dropped: Iterable[bytes]) -> None:
        pack = self._compression.pack
        packed = ((key, value if value is None else pack(key, value)) for key, value in changes.items())
        self.write_stored(chain(packed, zip(dropped, repeat(None))))

    def write_stored(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write all pairs as they are, synced, or none; None deletes.

        Raises:
            DiskFull, ArchiveCorrupt: as `write`.
        """
        try:
            with self._using, self._database().write_batch(transaction=True, sync=True) as writing:
                for key, value in rows:
                    if value is None:
                        writing.delete(key)
                    else:
                        writing.put(key, value)
        except plyvel.Error as error:
            fix = "see to the disk and start again"
            refused = self._refused("the archive cannot be written", error, fix)
            self.has_failed = isinstance(refused, DiskFull)
            outcome = "what was acknowledged is there, the rest is read again from the source"
            raise type(refused)(f"{refused}; {outcome}") from error

    def mend(self) -> None:
        """Open LevelDB again after a failed write, because it accepts no more writes and its log may be torn.

        The failed write may be stored after all, because its record may have reached the log before the disk was full.
        If it is not, the pieces written ahead for it are removed, or each retry would take more space. By
        `times_mended` batches notice that they were begun before; no commit may come between.

        Raises:
            DiskFull: there is not enough space yet, or a read is running; try again.
        """
        self._reopen()
        self.drop_unfinished()
        self.times_mended += 1

    def _reopen(self) -> None:
        # Opening writes the logs' content into tables, twice if it is interrupted.
        needed = 2 * sum(size for name, size in files(self._place).items() if name.endswith(".log")) + _LEAST_FREE
        if free_bytes(self._place) < needed:
            raise DiskFull(f"{self._place}: less than {needed >> 20} MB free, which opening it anew takes; free some")
        with self._using.nobody(_USERS_S) as is_free:
            if not is_free:
                raise DiskFull(f"{self._place}: it is being read and cannot be opened anew yet; it is tried again")
            try:
                if self._db is not None:
                    self._db.close()
                    self._db = None
                self._db = self._open(is_new=False)
            except (plyvel.Error, OSError) as error:
                raise self._refused("LevelDB cannot open it", error, _ASIDE) from error
            self.has_failed = False

    def _database(self) -> Any:
        """The open LevelDB.

        Raises:
            DiskFull: it could not be opened again because the disk is full.
            RuntimeError: it is closed.
        """
        if self._is_closed:
            raise RuntimeError(f"{self._place}: closed")
        if self._db is None:
            raise DiskFull(f"{self._place}: there was no room to open it anew; it is opened when there is some")
        return self._db

    def drop_unfinished(self) -> None:
        """Remove the bodies that were written ahead for commits that never happened.

        Raises:
            DiskFull: there is no space even for that; the others are removed next time.
        """
        for mark, size in list(self.scan(AHEAD)):
            names = pieces(mark.removeprefix(AHEAD).decode(), int(size))
            self.write(dict.fromkeys([*names, mark]))

    def bytes_on_disk(self) -> int:
        """The size of all files. We read only names and sizes, and never open LevelDB's files (L1)."""
        total = 0
        with os.scandir(self._place) as entries:
            for entry in entries:
                try:
                    total += entry.stat(follow_symlinks=False).st_size
                except FileNotFoundError:
                    continue  # LevelDB has compacted meanwhile
        return total

    def corrupt(self, cause: object) -> ArchiveCorrupt:
        """The error for a failed check, or for a read that the disk refused."""
        fix = self._outer_fix(cause)
        if fix:
            return ArchiveCorrupt(f"{self._place}: the archive cannot be read: {text(cause)}; {fix}")
        return ArchiveCorrupt(
            f"{self._place}: the archive failed a check: {text(cause)}; stop the service, then {_ASIDE}"
        )

    def _outer_fix(self, cause: object) -> str:
        """The fix for a problem outside the archive; empty if the archive itself may be damaged."""
        if is_one_of(cause, NOT_ALLOWED):
            return f"check owner and permissions of {self._place} and its files, and start again"
        if is_one_of(cause, NO_FILES):
            return "allow the process more open files, and start again"
        if is_one_of(cause, HELD):
            return "another program holds it; end that one, and start again"
        if is_one_of(cause, NO_ROOM) or self._is_full():
            return "free some space there: a running service goes on by itself; the archive is left as it is"
        return ""

    def _is_full(self) -> bool:
        try:
            return shutil.disk_usage(self._place.parent).free < _LEAST_FREE
        except OSError:
            return False
