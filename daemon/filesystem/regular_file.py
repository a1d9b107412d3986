"""The only place that opens files of others, which may have been replaced by anything, without ever blocking.

A FIFO, a device, a socket or a directory is refused, and a link at the last step is not followed. A file is read up to
a limit, whatever its reported size. The ``strerror`` of an OSError says what is wrong.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from io import BufferedReader
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


_SOCKET = errno.EOPNOTSUPP if sys.platform == "darwin" else errno.ENXIO
"""What the system says where a socket is opened."""

_PERMANENT = (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EFBIG)
"""Errors that say what is there, or that nothing is: no later look changes them while the disk stays as it is."""


class NotRegularError(OSError):
    """There is something other than a regular file."""


class TooLargeError(OSError):
    """The file has more bytes than the reader's limit."""


def is_refusal(error: BaseException) -> bool:
    """Whether the system refuses now what may be there: a failing disk, permissions, too many open files, no memory."""
    if isinstance(error, OSError):
        return not isinstance(error, FileNotFoundError | NotRegularError) and error.errno not in _PERMANENT
    return isinstance(error, MemoryError)


def opened(path: str | Path, *, folder: int | None = None) -> BufferedReader:
    """The regular file at `path`, open for reading; `folder` is the descriptor of a directory that it starts from.

    Raises:
        FileNotFoundError: nothing is there.
        NotRegularError: something else is; `strerror` says what.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, _FLAGS, dir_fd=folder)
    except OSError as error:
        reason = {errno.ELOOP: "a link, not a regular file", _SOCKET: "a socket, not a regular file"}
        if error.errno in reason:
            raise NotRegularError(error.errno, reason[error.errno], str(path)) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise NotRegularError(errno.EINVAL, f"{kind}, not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read(path: str | Path, most: int, *, folder: int | None = None) -> bytes:
    """The bytes of a regular file, at most `most`.

    Raises:
        TooLargeError: it has more.
        OSError: as `opened`.
    """
    with opened(path, folder=folder) as file:
        size = os.fstat(file.fileno()).st_size
        raw = file.read(most + 1) if size <= most else b""
        size = max(size, len(raw))
    if size > most:
        raise TooLargeError(errno.EFBIG, f"{size} bytes, more than the {most} that are read of it", str(path))
    return raw
