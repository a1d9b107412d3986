"""File events as hints that something has changed. The only importer of watchdog.

An event never carries data, and losing one loses nothing, because scans find everything (docs/reliability.md, W1-W4).
On an overflow, a full watch table or a missing folder we scan everything, and the status says why. Reading
OpenCode's database read-only through a held connection raises no event, so we do not wake ourselves (S5).
"""

from __future__ import annotations

import logging
import os
import re
import stat
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileClosedNoWriteEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

Hint = Callable[[str | None], None]
"""Called from watchdog's thread with a path, or None if anything may have changed. Must return at once."""

_RELEVANT = (
    FileCreatedEvent,
    FileModifiedEvent,
    FileClosedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
)
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
_MOUNTS = Path("/proc/self/mountinfo")
_LOCAL = frozenset({
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs",
})  # fmt: skip
"""File systems that only this machine's kernel writes to, so that it reports every write. A network file system, a
virtual machine's host and FUSE can change files without an event."""


class Watch:
    """Watches data directories, databases elsewhere and a request directory.

    `trouble` says why only scans find changes, or is empty.
    """

    def __init__(
        self,
        data_dir: Path,
        requests_dir: Path,
        hint: Hint,
        make: Callable[[], BaseObserver] = Observer,
        *,
        further: Sequence[Path] = (),
        databases: Sequence[Path] = (),
    ) -> None:
        self._data_dirs = (data_dir, *further)
        self._databases = [path for path in databases if path.parent not in self._data_dirs]
        self._requests_dir = requests_dir
        self._hint = hint
        self._make = make
        self._observer: BaseObserver | None = None
        self._overflow = _Overflow(hint)
        self._roots: dict[str, int] = {}
        self._local: set[str] = set()
        """The watched folders, by their real paths, that are on a file system of this machine."""
        self._closed: list[str] = []
        """Folders that we may not read: the kernel does not watch them for us."""
        self.trouble = ""

    def start(self) -> None:
        """Start watching. If that fails, only scans find changes, and `trouble` says why."""
        warnings.filterwarnings("ignore", message="Callback with id", category=RuntimeWarning)
        self.trouble = ""
        self._roots = {}
        try:
            self._observer = self._make()
            for place, recursive in self._places():
                inode = _inode(place)
                if inode is not None:
                    only = [str(path) for path in self._databases if str(path.parent) == place]
                    handler = _Handler(self._hint, only, place)
                    self._observer.schedule(handler, place, recursive=recursive, event_filter=list(_RELEVANT))
                    self._roots[place] = inode
            logging.getLogger("watchdog.observers").addHandler(self._overflow)
            self._observer.start()
        except OSError as error:
            self.stop()
            self.trouble = _advice(error)
            return
        self._check_limit()
        real = {os.path.realpath(place) for place in self._roots}
        self._local = {place for place in real if file_system(place) in _LOCAL}

    def _places(self) -> list[tuple[str, bool]]:
        places = [(str(self._requests_dir), False)]
        for folder in self._data_dirs:
            places += [(str(folder), False), (str(folder / "storage"), True)]
        return list(dict.fromkeys((*places, *((str(path.parent), False) for path in self._databases))))

    def _check_limit(self) -> None:
        """Watchdog 7.1.0 reports no error if the watch table is full or a folder is unreadable, so we check."""
        closed: list[str] = []
        folders = 0
        for folder in self._data_dirs:
            walk = os.walk(folder / "storage", onerror=lambda error: closed.append(os.fsdecode(error.filename)))
            folders += sum(len(dirs) for _, dirs, _ in walk)
        self._closed = closed
        try:
            allowed = int(_LIMIT.read_text())
        except (OSError, ValueError):
            return  # the kernel does not say; the periodic scan covers it
        if folders > 0.9 * allowed:
            self.trouble = (
                f"{', '.join(map(str, self._data_dirs))}: {folders} folders, and fs.inotify.max_user_watches is "
                f"{allowed}: changes are found by scanning only; raise it with: "
                f"sysctl fs.inotify.max_user_watches={folders * 2}"
            )

    def stale(self) -> bool:
        """Whether a watched place has appeared, vanished, been replaced or become readable: then `restart`."""
        if self._observer is None:
            return False
        if any(os.access(folder, os.R_OK | os.X_OK, effective_ids=True) for folder in self._closed):
            return True
        if any(self._roots.get(place) != _inode(place) for place, _ in self._places()):
            return True
        return not self._observer.is_alive()

    def sees(self, files: Sequence[Path]) -> bool:
        """Whether every write to these files leads to a hint. False if that is unknown."""
        if self._observer is None or self.trouble or not self._observer.is_alive():
            return False
        folders = {os.path.dirname(os.path.realpath(path)) for path in files}
        return folders <= self._local

    def stop(self) -> None:
        """Stop watching; no hint comes after this returns."""
        logging.getLogger("watchdog.observers").removeHandler(self._overflow)
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=5)
        self._observer = None

    def restart(self) -> None:
        """Watch the places that exist now, and hint that everything may have changed."""
        self.stop()
        self.start()
        self._hint(None)


class _Handler(FileSystemEventHandler):
    """Drains the queue and does nothing else, so that the kernel's queue does not overflow (W2)."""

    def __init__(self, hint: Hint, only: Sequence[str] = (), place: str = "") -> None:
        """With `only`, just these files, and files whose names start like theirs, cause a hint.

        `place` is the watched folder. FSEvents of macOS names it without links, which our sources do not know.
        """
        self._hint = hint
        self._only = tuple(only)
        self._place, self._real = place, os.path.realpath(place)

    def on_any_event(self, event: FileSystemEvent) -> None:
        if isinstance(event, FileClosedNoWriteEvent) or not isinstance(event, _RELEVANT):
            return
        path = os.fsdecode(event.dest_path or event.src_path)
        if self._real != self._place and path.startswith(self._real):
            path = self._place + path[len(self._real) :]
        if not self._only or path.startswith(self._only):
            self._hint(path)


class _Overflow(logging.Handler):
    """watchdog reports a queue overflow, which means lost events, in its log only."""

    def __init__(self, hint: Hint) -> None:
        super().__init__(logging.WARNING)
        self._hint = hint

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in record.getMessage().lower():
            self._hint(None)


def file_system(place: str, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that a real path is on, as the kernel names it; "" if it does not say."""
    best, kind = "", ""
    try:
        lines = mounts.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        mount, _, source = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mount.split(" ")[4])
        # Of several mounts at one point the last one covers the others.
        if len(point) >= len(best) and (place + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, source.split(" ")[0]
    return kind


def _inode(place: str) -> int | None:
    """The inode of the directory at `place` (W4); None if there is none."""
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_ino if stat.S_ISDIR(status.st_mode) else None


def _advice(error: OSError) -> str:
    if sys.platform != "linux":
        return f"file events are not to be had ({error.strerror}): changes are found by scanning only"
    name = "fs.inotify.max_user_instances" if error.errno == 24 else "fs.inotify.max_user_watches"
    cause = f"file events are not to be had ({error.strerror})"
    return f"{cause}: changes are found by scanning only; raise {name} with sysctl"
