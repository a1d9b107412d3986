"""What differs on macOS, as far as it can be tried elsewhere: the platform is an argument."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from watchdog.events import FileModifiedEvent

from daemon import processes
from daemon.control import endpoint, peer
from daemon.filesystem import durable
from daemon.opencode import configuration
from daemon.opencode.watch import _Handler


def xucred(uid: int, version: int = 0) -> bytes:
    """As macOS 14 gives it: u_int, uid_t, short and two bytes of padding, sixteen gid_t."""
    return struct.pack("=IIhxx16I", version, uid, 2, 20, 12, *[0] * 14)


def test_the_user_is_read_from_the_credentials_of_macos() -> None:
    assert peer.xucred_uid(xucred(501)) == 501
    assert peer.xucred_uid(xucred(0xFFFFFFFE)) == 0xFFFFFFFE  # nobody


@pytest.mark.parametrize("raw", [b"", xucred(501)[:-4], xucred(501) + b"\0", xucred(501, version=1)])
def test_credentials_of_another_shape_name_nobody(raw: bytes) -> None:
    with pytest.raises(OSError, match="credentials"):
        peer.xucred_uid(raw)


def test_the_kernel_is_asked_in_the_words_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection(socket.socket):
        def getsockopt(self, *arguments: int) -> bytes:  # type: ignore[override]
            assert arguments == (0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED, sizeof(struct xucred)
            return xucred(502)

    with Connection(socket.AF_UNIX) as connection:
        assert peer.uid(connection, "darwin") == 502


def test_the_kernel_is_asked_here_too() -> None:
    left, right = socket.socketpair()
    with left, right:
        assert peer.uid(left) == os.geteuid()


def test_a_socket_of_macos_is_closed_to_others_once_it_is_bound(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        endpoint._bind_private(listener, path, "darwin")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_sync_goes_through_the_disks_cache_where_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    real = fcntl.fcntl
    full = 51  # F_FULLFSYNC

    def asked(fd: int, command: int) -> int:
        calls.append("full")
        return real(fd, fcntl.F_GETFD)

    monkeypatch.setattr(fcntl, "fcntl", asked)
    with (tmp_path / "f").open("w") as file:
        durable.sync(file.fileno(), full)
        assert calls == ["full"]
        durable.sync(file.fileno(), None)
        assert calls == ["full", "fsync"]


@pytest.mark.parametrize(("number", "is_synced"), [(errno.ENOTSUP, True), (errno.ENOTTY, True), (errno.EIO, False)])
def test_a_file_system_without_a_full_sync_has_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_synced: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)

    def refuses(_fd: int, _command: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "fcntl", refuses)
    with (tmp_path / "f").open("w") as file:
        if is_synced:
            durable.sync(file.fileno(), 51)
        else:
            with pytest.raises(OSError, match="Input/output"):
                durable.sync(file.fileno(), 51)
    assert bool(synced) == is_synced


def _program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_process_is_known_by_its_start_and_the_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # ps of macOS prints the start as this; an unknown process is no output and an error.
    _program(tmp_path, "ps", '[ "$4" = 7 ] || exit 1; echo "Fri Nov 27 19:05:48 2026    "')
    _program(tmp_path, "sysctl", '[ "$2" = kern.bootsessionuuid ] && echo 0E2B8A4C-52F1-4B7F-9D52-1B6F3E0A8C11')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert processes.started(7, "darwin") == int(time.mktime((2026, 11, 27, 19, 5, 48, 0, 0, -1)))
    assert processes.started(8, "darwin") is None
    space = processes.space("darwin")
    assert len(space) == 8 != space.count("0")
    (tmp_path / "sysctl").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert processes.space("darwin") == "00000000"


@pytest.mark.skipif(sys.platform == "win32" or not Path("/bin/ps").exists(), reason="there is no ps on this machine")
def test_ps_of_this_machine_tells_when_a_process_began() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = processes.started(child.pid, "darwin")
    assert began is not None
    assert abs(began - time.time()) < 60
    child.communicate(b"\n")
    assert processes.started(child.pid, "darwin") is None


def test_events_that_name_a_folder_without_its_links_are_understood(tmp_path: Path) -> None:
    real = tmp_path / "private"
    real.mkdir()
    (tmp_path / "var").symlink_to(real)
    hints: list[str | None] = []
    _Handler(hints.append, (), str(tmp_path / "var")).on_any_event(FileModifiedEvent(str(real / "opencode.db")))
    assert hints == [str(tmp_path / "var" / "opencode.db")]


def test_the_administrators_configuration_is_where_macos_has_it() -> None:
    folder = "/Library/Application Support/opencode"
    assert all(place.startswith(f"{folder}/") for place in configuration._of_machine({}, "darwin"))
    assert all(place.startswith("/etc/opencode/") for place in configuration._of_machine({}, "linux"))
