"""The one place that writes files: beneath a directory descriptor, never through a link, durable when it returns.

A `Root` holds an open directory. Every path after it is walked component by component with O_NOFOLLOW, so a link
planted beneath the root is an error and never a way out (docs/reliability.md, P1). A file is replaced by a temporary
one and a rename, and both the file and its directory are synced, with the result checked: "not supported" is logged
once, anything else is raised. The databases write their own files, and `restore` fills a folder of the user's; nothing
else of ours writes without this module.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from daemon.errors import OutputRefused
from daemon.filesystem import components, inside, refusal, regular_file

Step = Callable[[str], None]
"""Called with a point's name before the system call there; an exception counts as that call's failure."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_LOCKLESS = frozenset({errno.ENOLCK, errno.ENOSYS, *_UNSUPPORTED})
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux's renameat2(2), and RENAME_SWAP of macOS's renameatx_np(2). Python offers neither."""


def sync(fd: int, full: int | None = getattr(fcntl, "F_FULLFSYNC", None)) -> None:
    """Return when the file is on the disk. On macOS fsync only hands it to the disk's cache, and F_FULLFSYNC goes on.

    Raises:
        OSError: it has not come there, or the file system cannot.
    """
    if full is not None:
        try:
            fcntl.fcntl(fd, full)
        except OSError as error:
            if error.errno not in {errno.ENOTTY, *_UNSUPPORTED}:
                raise  # a file system without it has fsync
        else:
            return
    os.fsync(fd)


def no_step(point: str) -> None:
    """The `Step` that does nothing."""


class Root:
    """A directory that we may write in; all paths are relative and stay beneath it.

    The directory itself may be reached through a link, as the user wishes; nothing beneath it may. It is created with
    mode 0700 if it does not exist. One thread at a time.
    """

    def __init__(self, path: Path, *, step: Step = no_step) -> None:
        """Open `path`, making it where needed.

        Raises:
            OutputRefused: it is a file, or cannot be made or opened.
        """
        self.path = path
        self._step = step
        self._warned = False
        self._unsynced: set[tuple[str, ...]] | None = None
        try:
            missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
            os.makedirs(path, mode=0o700, exist_ok=True)
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for folder in missing:
                self._sync_path(folder.parent)
        except OSError as error:
            is_taken = error.errno in {errno.EEXIST, errno.ENOTDIR}
            reason = "a file, or a link to nothing, is in the way" if is_taken else error.strerror
            raise refusal(error, f"{path}: cannot be used as a directory: {reason}; name another") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the descriptor (and with it the lock); a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for and hold the only writer's lock of this directory; it ends with the process at the latest."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _LOCKLESS:
                raise
            self._warn("lock", error)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Within this block each folder is synced only once, at the end; files are still synced when they are written.
        Changes are durable only after the block, and not if it ends by an exception.
        """
        self._unsynced = set()
        try:
            yield
            for names in sorted(self._unsynced):
                with suppress(FileNotFoundError), self._folder(names, "/".join(names)) as folder:
                    self._sync(folder)
        finally:
            self._unsynced = None

    def write(self, rel: str, data: bytes, mode: int = 0o600) -> None:
        """Write `data` to `rel` whole and durably, replacing what is there (a link is replaced, not followed).

        The executable bits of `mode` are dropped. Missing folders are made with mode 0700.

        Raises:
            OutputRefused: see `components`; or a link, a file or a folder is in the way.
            OSError: the disk is full or fails; the old file is unchanged.
        """
        *folders, name = components(rel)
        with self._folder(tuple(folders), rel, create=True) as folder:
            temporary = f".{os.getpid()}.{os.urandom(6).hex()}.tmp"
            try:
                self._fill(folder, temporary, data, mode & 0o666)
                self._step("fsio.rename")
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                if error.errno in {errno.EISDIR, errno.ENOTDIR}:
                    raise OutputRefused(f"{self.path / rel}: a folder is where a file must be; move it away") from error
                raise
            self._settle(folder, tuple(folders))

    def read(self, rel: str, limit: int | None = None) -> bytes | None:
        """The bytes of the regular file `rel`, or None if nothing is there; never blocks on a pipe or device.

        Raises:
            OutputRefused: something else than a regular file is there, a link included, or more than `limit` bytes.
        """
        *folders, name = inside(rel)
        try:
            with self._folder(tuple(folders), rel) as folder:
                file = regular_file.opened(name, folder=folder)
        except FileNotFoundError:
            return None
        except regular_file.NotRegularError as error:
            raise OutputRefused(f"{self.path / rel}: {error.strerror}; move it away") from error
        with file:
            data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            raise OutputRefused(f"{self.path / rel}: larger than {limit} bytes; make it smaller")
        return data

    def stat(self, rel: str) -> os.stat_result | None:
        """The stat of `rel` itself (a link is not followed), or None."""
        *folders, name = inside(rel)
        try:
            with self._folder(tuple(folders), rel) as folder:
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def list(self, rel: str = "") -> list[str]:
        """Sorted names in the folder `rel` (the root itself by default); empty if it does not exist."""
        try:
            with self._folder(inside(rel) if rel else (), rel) as folder:
                return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def mkdir(self, rel: str) -> None:
        """Make the folder `rel` and those above it, mode 0700; one that exists is fine."""
        with self._folder(components(rel), rel, create=True):
            pass

    def remove(self, rel: str) -> None:
        """Remove the file, link or empty folder `rel`, if it exists. Durable on return.

        Raises:
            OSError: a folder that is not empty (ENOTEMPTY), or the disk fails.
        """
        *folders, name = inside(rel)
        with suppress(FileNotFoundError), self._folder(tuple(folders), rel) as folder:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._step("fsio.remove")
            (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(name, dir_fd=folder)
            self._settle(folder, tuple(folders))

    def rename(self, old: str, new: str) -> None:
        """Move `old` to `new`, replacing a file or link there; folders of `new` are made. Durable on return.

        Raises:
            OSError: `old` is missing, or the two are on different filesystems (EXDEV).
        """
        (*folders, name), (*to_folders, to_name) = inside(old), components(new)
        with self._folder(tuple(folders), old) as source, self._folder(tuple(to_folders), new, create=True) as goal:
            self._step("fsio.rename")
            os.rename(name, to_name, src_dir_fd=source, dst_dir_fd=goal)
            self._settle(goal, tuple(to_folders))
            if folders != to_folders:
                self._settle(source, tuple(folders))

    def exchange(self, old: str, new: str) -> bool:
        """Let two files that exist change places in one step, so that neither is ever missing. Durable on return.

        Returns:
            Whether they did; False where this system or filesystem cannot.

        Raises:
            OSError: one of them is missing, or the two are on different filesystems (EXDEV).
        """
        library = ctypes.CDLL(None, use_errno=True)
        renameat2 = getattr(library, "renameat2", None) or getattr(library, "renameatx_np", None)
        if renameat2 is None:
            return False
        (*folders, name), (*to_folders, to_name) = inside(old), components(new)
        with self._folder(tuple(folders), old) as source, self._folder(tuple(to_folders), new) as goal:
            self._step("fsio.rename")
            if renameat2(source, os.fsencode(name), goal, os.fsencode(to_name), _EXCHANGE):
                number = ctypes.get_errno()
                if number in {errno.ENOSYS, *_UNSUPPORTED}:
                    return False
                raise OSError(number, os.strerror(number), str(self.path / new))
            self._settle(goal, tuple(to_folders))
            self._settle(source, tuple(folders))
        return True

    def free_bytes(self) -> int:
        """Bytes this user may still write on the root's filesystem."""
        status = os.fstatvfs(self._fd)
        return status.f_bavail * status.f_frsize

    @contextmanager
    def _folder(self, names: tuple[str, ...], rel: str, *, create: bool = False) -> Iterator[int]:
        fd = os.dup(self._fd)
        try:
            for depth, name in enumerate(names):
                if create:
                    self._make(fd, names[: depth + 1])
                inner = self._open_folder(fd, name, rel)
                os.close(fd)
                fd = inner
            yield fd
        finally:
            os.close(fd)

    def _open_folder(self, parent: int, name: str, rel: str) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=parent)
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            message = f"{self.path / rel}: {name!r} is a file or a link where a folder must be; move it away"
            raise OutputRefused(message) from error

    def _make(self, parent: int, names: tuple[str, ...]) -> None:
        try:
            os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            self._step("fsio.mkdir")
            with suppress(FileExistsError):
                os.mkdir(names[-1], 0o700, dir_fd=parent)
            self._settle(parent, names[:-1])

    def _fill(self, folder: int, name: str, data: bytes, mode: int) -> None:
        self._step("fsio.write")
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            self._sync(fd)

    def _settle(self, folder: int, names: tuple[str, ...]) -> None:
        if self._unsynced is None:
            self._sync(folder)
        else:
            self._unsynced.add(names)

    def _sync_path(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._sync(fd)
        finally:
            os.close(fd)

    def _sync(self, fd: int) -> None:
        self._step("fsio.sync")
        try:
            sync(fd)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self._warn("sync", error)

    def _warn(self, action: str, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            text = "%s: this filesystem cannot %s (%s); a power cut may lose the last writes"
            logging.getLogger(__name__).warning(text, self.path, action, error.strerror)


def atomic_write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write one file of ours (configuration, unit file) whole and durably; its folder is made where needed.

    Raises:
        OutputRefused, OSError: as `Root.write`.
    """
    with Root(path.parent) as root:
        root.write(path.name, data, mode)


def make_private_dir(path: Path) -> None:
    """Make `path` a directory that only this user can enter (0700); wider permissions are taken away.

    Raises:
        OutputRefused: it is a link or a file, belongs to another user, or cannot be made.
    """
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        fd = os.open(path, _FOLDER)
    except OSError as error:
        reason = (
            "a link or a file, not a directory" if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EEXIST} else ""
        )
        raise OutputRefused(f"{path}: {reason or error.strerror}; name a directory of your own") from error
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise OutputRefused(f"{path}: belongs to user id {status.st_uid}, not to you; name a directory of your own")
        if stat.S_IMODE(status.st_mode) & 0o077:
            os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
