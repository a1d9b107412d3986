"""Checks before LevelDB is opened or closed: one process, a complete set of files, no running reads.

LevelDB repairs by creating new files and deleting old ones: without its CURRENT it starts a new database and removes
the old tables, and it does not notice a missing write-ahead log. So our own marker beside the directory says that an
archive was created, and after a clean end which files it had and what stood in its write-ahead log: LevelDB takes a
damaged log for one that a crash has torn, and drops what follows. Nothing here writes into LevelDB's directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from daemon import log, records
from daemon.errors import ArchiveLocked, BadRecord
from daemon.filesystem import durable
from daemon.model import Json

MARKER = "leveldb.made"
_CLOSED_S, _LOOK_S = 0.02, 0.002
_LOG = log.get("archive")
_FILE = re.compile(r"CURRENT|MANIFEST-\d+|\d+\.(?:ldb|sst|log)")
_MOST_REPORTED = 5
_ABOUT = (
    "The archive is in leveldb/. While this file is here, Reconstitute never begins a new archive in its place. "
    "To begin one, move both away."
)
_BLOCK, _HEADER = 32768, 7
_FIRST, _WHOLE = 2, 1
_LOG_NUMBER, _DELETED, _ADDED = 2, 6, 7
_FIELDS = {1: "t", _LOG_NUMBER: "n", 3: "n", 4: "n", 5: "nt", _DELETED: "nn", _ADDED: "nnntt", 9: "n"}
"""What follows each tag of a version edit: numbers and texts (leveldb, db/version_edit.cc)."""


class Marker:
    """``leveldb.made`` in the archive's directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / MARKER
        self._place = directory / "leveldb"
        self._state: Json | None = None
        if self._path.exists():
            try:
                self._state = records.load_object(self._path.read_bytes())
            except BadRecord:
                self._state = {}

    @property
    def is_made(self) -> bool:
        """Whether an archive was completely created here."""
        return self._state is not None and not self._state.get("making")

    def may_create(self) -> bool:
        """Whether a new archive may be created: there is no older one, and never was one.

        Files of an interrupted creation do not count, because they have no records.
        """
        sizes = files(self._place)
        if self._state is not None and self._state.get("making"):
            return all(size == 0 or not name.endswith((".ldb", ".sst", ".log")) for name, size in sizes.items())
        return not sizes and self._state is None

    def trouble(self) -> str:
        """What is wrong with the files; empty if they are complete."""
        sizes = files(self._place)
        if not sizes:
            return "all its files are gone"
        missing = missing_files(self._place, sizes) or self._changed(sizes)
        more = f"; and {len(missing) - _MOST_REPORTED} more" if len(missing) > _MOST_REPORTED else ""
        return "; ".join(missing[:_MOST_REPORTED]) + more

    def _changed(self, sizes: dict[str, int]) -> list[str]:
        """The differences from the last clean end, unless something else has opened the database since."""
        noted, last = (self._state or {}).get("files") or {}, (self._state or {}).get("manifest")
        if last != _manifest_name(self._place):
            return [f"CURRENT does not name {last}, the last manifest, which is there"] if last in sizes else []
        changed = [f"{name} is missing" for name in sorted(noted.keys() - sizes.keys())]
        changed += [f"{name} is not of this state" for name in sorted(sizes.keys() - noted.keys() if noted else ())]
        changed += [
            _of_other_size(name, sizes[name], size)
            for name, size in sorted(noted.items())
            if name in sizes and sizes[name] != size
        ]
        logs: Json = (self._state or {}).get("logs") or {}
        return changed or [
            f"{name} is damaged" for name, digest in sorted(logs.items()) if _digest(self._place / name) != digest
        ]

    def begin(self) -> None:
        """Note that a new archive is being created."""
        self._write({"making": True})

    def opened(self) -> None:
        """Note that it is open, so its files change from now on."""
        if self._state is None or self._state.keys() & {"making", "files"}:
            self._try_to_write({})

    def closed(self) -> None:
        """Note its files after it was closed."""
        sizes = files(self._place)
        try:
            logs = {name: _digest(self._place / name) for name in sizes if name.endswith(".log")}
        except OSError as error:
            _LOG.warning("marker", path=str(self._path), error=str(error))
            return
        self._try_to_write({"manifest": _manifest_name(self._place), "files": sizes, "logs": logs})

    def _try_to_write(self, state: Json) -> None:
        try:
            self._write(state)
        except OSError as error:  # the next start can check less, which is no harm
            _LOG.warning("marker", path=str(self._path), error=str(error))

    def _write(self, state: Json) -> None:
        durable.atomic_write(self._path, records.dumps({"about": _ABOUT, **state}) + b"\n")
        self._state = state


def files(place: Path) -> dict[str, int]:
    """LevelDB's files and their sizes in bytes, without its text log and its lock."""
    try:
        with os.scandir(place) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if _FILE.fullmatch(entry.name)}
    except FileNotFoundError:
        return {}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def missing_files(place: Path, sizes: dict[str, int]) -> list[str]:
    """Files that CURRENT and the manifest name and that are missing; empty also if LevelDB itself will object."""
    if "CURRENT" not in sizes:
        return ["CURRENT is missing"]
    name = _manifest_name(place)
    if not re.fullmatch(r"MANIFEST-\d+", name):
        return ["CURRENT is damaged"]
    if name not in sizes:
        return [f"{name} is missing"]
    tables, log_number = _named((place / name).read_bytes())
    table_sizes = {int(name.partition(".")[0]): size for name, size in sizes.items() if name.endswith((".ldb", ".sst"))}
    missing = [f"{number:06}.ldb is missing" for number in sorted(tables.keys() - table_sizes.keys())]
    missing += [
        _of_other_size(f"{number:06}.ldb", table_sizes[number], size)
        for number, size in sorted(tables.items())
        if table_sizes.get(number, size) != size
    ]
    if log_number and f"{log_number:06}.log" not in sizes:
        missing.append(f"{log_number:06}.log is missing")
    return missing


def _of_other_size(name: str, actual: int, expected: int) -> str:
    return f"{name} has {actual} bytes in place of {expected}"


def _manifest_name(place: Path) -> str:
    try:
        return (place / "CURRENT").read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _named(manifest: bytes) -> tuple[dict[int, int], int]:
    """The current tables in a manifest, number -> size, and the number of its write-ahead log."""
    tables: dict[int, int] = {}
    log_number = 0
    for edit in _edits(manifest):
        reader = _Reader(edit)
        while not reader.is_at_end:
            tag = reader.number()
            if tag not in _FIELDS:
                return {}, 0  # an unknown format, so let LevelDB decide
            fields = [reader.number() if kind == "n" else reader.skip_text() for kind in _FIELDS[tag]]
            if tag == _LOG_NUMBER:
                log_number = fields[0]
            elif tag == _DELETED:
                tables.pop(fields[1], None)
            elif tag == _ADDED:
                tables[fields[1]] = fields[2]
    return tables, log_number


def _edits(manifest: bytes) -> Iterator[bytes]:
    """The records of a log in LevelDB's format, without a torn last one."""
    place, record = 0, b""
    while place + _HEADER <= len(manifest):
        remaining = _BLOCK - place % _BLOCK
        if remaining < _HEADER:
            place += remaining
            continue
        size, kind = int.from_bytes(manifest[place + 4 : place + 6], "little"), manifest[place + 6]
        piece = manifest[place + _HEADER : place + _HEADER + size]
        place += _HEADER + size
        if len(piece) < size or not kind:
            return
        record = piece if kind in (_WHOLE, _FIRST) else record + piece
        if kind not in (_FIRST, _FIRST + 1):
            yield record


class _Reader:
    """Numbers and texts in LevelDB's variable-length form."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def is_at_end(self) -> bool:
        return self._place >= len(self._data)

    def number(self) -> int:
        value = shift = 0
        while not self.is_at_end:
            byte = self._data[self._place]
            self._place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        return value

    def skip_text(self) -> int:
        size = self.number()
        self._place += size
        return size


class Users:
    """Counts running reads and writes, because closing LevelDB during one would crash the process."""

    def __init__(self) -> None:
        self.entering, self.leaving = threading.Lock(), threading.Lock()
        self.entries = self.exits = 0

    def __enter__(self) -> None:
        with self.entering:
            self.entries += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with self.leaving:
            self.exits += 1

    @contextlib.contextmanager
    def nobody(self, within_s: float) -> Iterator[bool]:
        """Waits until no read or write is running, and yields whether that was reached; none starts while it lasts.

        It blocks new calls for a moment, so that frequent callers do not keep it waiting. Then it lets them in again,
        because a running call may have to enter once more before it can leave.
        """
        end = time.monotonic() + within_s
        while True:
            with self.entering:
                closed = time.monotonic() + _CLOSED_S
                while self.entries != self.exits and time.monotonic() < closed:
                    time.sleep(_LOOK_S)
                if self.entries == self.exits or time.monotonic() > end:
                    yield self.entries == self.exits
                    return
            time.sleep(_LOOK_S)


def lock(path: Path) -> IO[str]:
    """Lock `path` exclusively, with our pid in it, while the returned file is open."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    file = os.fdopen(descriptor, "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read(20).strip() or "unknown"
        file.close()
        raise ArchiveLocked(
            f"{path.parent}: in use by another Reconstitute (pid {holder}); wait until it has ended, then try again "
            "(if it is a service, stop the service first)"
        ) from None
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        file.close()
        raise
    return file
