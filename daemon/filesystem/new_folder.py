"""Writes recovered files, byte by byte, into a new folder, and touches nothing else.

Guarantees: the folder did not exist or was empty. Every file is created beneath its descriptor, never through a link
and never over something. Each file is read back and compared. A name that is already in use here, or is not allowed, is
skipped, and the reason returned. If the disk fails or is full, the error says how many files were written, and the
failed file is removed. Modes follow the process's umask. Nothing is created before the first file.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from daemon.errors import OutputRefused
from daemon.filesystem import NAME_BYTES, durable, is_git

NAME_IN_USE = "the name is taken here, by another file or folder or by one that differs only in case"
_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
"""Syncs all files at once; where there is none, as on macOS, each is synced by itself."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = frozenset({errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP})
_NO_NAME = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ})


class NewFolder:
    """The folder into which files are restored; a context manager. One thread at a time."""

    def __init__(self, path: Path, forbidden: Sequence[Path] = ()) -> None:
        """Check whether the absolute `path` can be used; nothing is written beneath the folders in `forbidden`.

        Raises:
            OutputRefused: a link, a file or a folder that is not empty is there, or it lies beneath a forbidden one.
        """
        self.path = path
        self.files = 0
        self._fd = -1
        self._written_names: set[tuple[str, ...]] = set()
        self._open: tuple[tuple[str, ...], int] = ((), -1)
        for folder in forbidden:
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
                raise OutputRefused(
                    f"{path}: lies beneath {folder}, which is not to be written to; name another folder"
                )
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError) as error:
            raise OutputRefused(f"{path}: cannot be looked at: {error}; name another folder") from error
        if stat.S_ISLNK(status.st_mode):
            raise OutputRefused(f"{path}: is a link; name the folder itself")
        if not stat.S_ISDIR(status.st_mode):
            raise OutputRefused(f"{path}: is a file; name a new folder")
        self._refuse_full(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the descriptors; a second call does nothing."""
        for fd in (self._open[1], self._fd):
            if fd >= 0:
                os.close(fd)
        self._fd, self._open = -1, ((), -1)

    def write(self, relative: str, data: bytes, *, executable: bool = False) -> str:
        """Create the file `relative` with exactly `data`. Returns an empty text, or the reason why it was skipped.

        Raises:
            OutputRefused: the disk is full or fails, or the folder can no longer be used; the message says how far it
                came.
        """
        *folders, name = names = relative.split("/")
        reason = next(filter(None, map(_objection, names)), "")
        if reason:
            return reason
        self._begin()
        try:
            self._make(self._folder(tuple(folders)), name, data, 0o777 if executable else 0o666)
        except OSError as error:
            if error.errno in _IN_THE_WAY:
                return NAME_IN_USE
            if error.errno in _NO_NAME:
                return "this file system does not take the name"
            raise self._failed(error.strerror or str(error)) from error
        self.files += 1
        return ""

    def finish(self) -> None:
        """Return when everything is on the disk.

        Raises:
            OutputRefused: it says that it has not.
        """
        if self._fd < 0:
            return
        if _SYNCFS is not None and _SYNCFS(self._fd):
            raise self._failed(os.strerror(ctypes.get_errno()))

    def _begin(self) -> None:
        if self._fd >= 0:
            return
        try:
            os.makedirs(self.path.parent, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self.path)
            self._fd = os.open(self.path, _FOLDER)
        except OSError as error:
            cause = f"cannot be made or opened: {error.strerror}"
            raise OutputRefused(f"{self.path}: {cause}; name another folder") from error
        self._refuse_full(self._fd)

    def _refuse_full(self, place: Path | int) -> None:
        try:
            entries = os.listdir(place)
        except OSError as error:
            raise OutputRefused(f"{self.path}: cannot be read: {error.strerror}; name another folder") from error
        if entries:
            raise OutputRefused(f"{self.path}: is not empty (it holds {min(entries)!r}); name a new or an empty folder")

    def _folder(self, names: tuple[str, ...]) -> int:
        """A descriptor of the folder, created if needed; the last one stays open."""
        if names == self._open[0] and self._open[1] >= 0:
            return self._open[1]
        fd = os.dup(self._fd)
        try:
            for depth, name in enumerate(names, start=1):
                if names[:depth] not in self._written_names:
                    os.mkdir(name, dir_fd=fd)
                    self._written_names.add(names[:depth])
                inner = os.open(name, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = inner
        except OSError:
            os.close(fd)
            raise
        if self._open[1] >= 0:
            os.close(self._open[1])
        self._open = (names, fd)
        return fd

    def _make(self, folder: int, name: str, data: bytes, mode: int) -> None:
        fd = os.open(name, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(fd, "r+b", buffering=0) as file:
                remaining = memoryview(data)
                while remaining:
                    remaining = remaining[file.write(remaining) :]
                self._check(file, name, data)
                if _SYNCFS is None:
                    durable.sync(fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise

    def _check(self, file: FileIO, name: str, data: bytes) -> None:
        file.seek(0)
        if hashlib.file_digest(file, "sha256").digest() != hashlib.sha256(data).digest():
            raise self._failed(f"{name!r} reads back other than it was written")

    def _failed(self, cause: str) -> OutputRefused:
        done = f"{self.files} file{' is' if self.files == 1 else 's are'} there and complete, the rest is not"
        return OutputRefused(f"{self.path}: {cause}; {done}: make room or name another disk, and begin anew")


def _objection(name: str) -> str:
    if name in {"", ".", ".."} or "\0" in name or "/" in name:
        return "its path is not a plain one"
    try:
        if len(os.fsencode(name)) > NAME_BYTES:
            return f"its name is longer than {NAME_BYTES} bytes"
    except UnicodeEncodeError:
        return "its name is not valid Unicode"
    if is_git(name):
        return "it is part of git's own folder, where git would run what it says; `show --raw` prints it"
    return ""
