"""The control socket's file: where it may lie, how it comes to be, and how it goes.

Guarantees (docs/reliability.md, M1, M2): mode 0600 from its first moment, inside a directory of mode 0700 that is ours
and no link; only a socket at which nobody answers is replaced; only our own is removed.

Where the socket lies depends on the environment of the service. So it leaves the path in its archive, for clients that
have another environment: those of cron and of su know no runtime directory.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import stat
import sys
from pathlib import Path

from daemon.errors import ArchiveLocked, ConfigError, OutputRefused
from daemon.filesystem import durable

PATH_BYTES = 103 if sys.platform == "darwin" else 107
"""The longest path a Unix socket can have: sun_path without its NUL."""
PROBE_SECONDS = 5.0
RECORD = "daemon.socket"
"""The file in the archive that names the socket of the service that has it, or had it last."""

_log = logging.getLogger(__name__)


def bind(path: Path) -> tuple[socket.socket, tuple[int, int]]:
    """A bound socket at `path`, and the (device, inode) by which `remove` knows it as ours.

    Raises:
        ConfigError: the path is too long, or its directory or what lies there is not safe to use.
        ArchiveLocked: another daemon answers there.
    """
    if len(os.fsencode(path)) > PATH_BYTES:
        raise ConfigError(
            f"{path}: a Unix socket's path has at most {PATH_BYTES} bytes, this one {len(os.fsencode(path))}; "
            "set XDG_RUNTIME_DIR, or choose a shorter archive.dir"
        )
    _private_directory(path.parent)
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind_private(listener, path)
        listener.setblocking(False)
        info = os.lstat(path)
    except OSError as error:
        listener.close()
        raise ConfigError(f"{path}: cannot be bound: {error.strerror}; check the directory and the disk") from error
    return listener, (info.st_dev, info.st_ino)


def _bind_private(listener: socket.socket, path: Path, platform: str = sys.platform) -> None:
    """Bind with mode 0600. No other thread's files are touched, as they would be by a changed umask."""
    if platform == "darwin":  # it has no mode to give before; until then the directory keeps others out
        listener.bind(os.fspath(path))
        os.chmod(path, 0o600)
    else:  # the file gets the mode of the unbound socket, and never has a wider one
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(os.fspath(path))


def remove(path: Path, inode: tuple[int, int]) -> bool:
    """Remove our own socket file; whatever else lies there by now is left. To be called while the socket is open.

    An open socket keeps its inode number from being given to another file.
    """
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return False
    if (info.st_dev, info.st_ino) != inode:
        return False
    os.unlink(path)
    return True


def record(archive: Path, path: Path) -> None:
    """Leave word in `archive` that its service answers at `path`. Without room only its own environment tells that."""
    try:
        durable.atomic_write(archive / RECORD, os.fsencode(path))
    except (OSError, OutputRefused) as error:
        _log.warning("the control socket's place could not be written into the archive: %s", error)


def recorded(archive: Path) -> Path | None:
    """Where the service that has `archive` said that it answers; None unless all of it is ours, closed to others."""
    try:
        path = Path(os.fsdecode((archive / RECORD).read_bytes()))
        infos = [os.lstat(place) for place in (archive / RECORD, path, path.parent)]
    except (OSError, ValueError):
        return None
    is_socket = stat.S_ISREG(infos[0].st_mode) and stat.S_ISSOCK(infos[1].st_mode) and stat.S_ISDIR(infos[2].st_mode)
    is_ours = all(place.st_uid == os.geteuid() for place in infos) and not infos[2].st_mode & 0o077
    return path if is_socket and is_ours else None


def _private_directory(directory: Path) -> None:
    """Make `directory` with mode 0700 where it is missing, and see that it is a real one, ours and closed to others."""
    try:
        for folder in [d for d in (*reversed(directory.parents), directory) if not os.path.lexists(d)]:
            os.mkdir(folder, 0o700)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise ConfigError(f"{directory}: is a link or no directory; move it away") from None
        raise ConfigError(f"{directory}: cannot be made or opened: {error.strerror}; check its owner") from error
    try:
        info = os.fstat(handle)
    finally:
        os.close(handle)
    if info.st_uid != os.geteuid():
        raise ConfigError(f"{directory}: belongs to uid {info.st_uid}, not to us; move it away")
    if info.st_mode & 0o077:
        mode = stat.S_IMODE(info.st_mode)
        raise ConfigError(f"{directory}: is open to others (mode {mode:04o}); run: chmod 700 {directory}")


def _remove_stale(path: Path) -> None:
    """Remove what a daemon that died left behind: a socket at which nobody answers, and nothing else."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise ConfigError(f"{path}: is not a socket; move it away, the control socket belongs there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_SECONDS)
        refused = probe.connect_ex(os.fspath(path))
    if refused not in (errno.ECONNREFUSED, errno.ENOENT):
        raise ArchiveLocked(f"{path}: another daemon answers there; stop it first (reconstitute status shows its pid)")
    if refused == errno.ECONNREFUSED:
        os.unlink(path)
