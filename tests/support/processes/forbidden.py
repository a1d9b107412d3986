"""Tries what the service must not do, each thing once, and prints what came of it as JSON: "allowed", or the error.

It runs as a service with the properties of our unit, so it needs nothing but Python.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_UNSHARE_USER, _NO_RANDOM_ADDRESSES, _GET_NO_NEW_PRIVS = 0x10000000, 0x0040000, 39


def _call(name: str, *arguments: object) -> None:
    """A function of the C library; OSError where it is refused."""
    if getattr(_LIBC, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def _writes_to(place: Path) -> Callable[[], None]:
    def write() -> None:
        path = place / "reconstitute-was-here"
        path.touch()
        path.unlink()

    return write


def _set_user_bit() -> None:
    path = Path(sys.argv[1], "program")
    path.touch()
    path.chmod(0o4755)


def _other_architecture() -> None:
    """Run a program of 32 bits, which is exit(42)."""
    code = bytes.fromhex("b801000000bb2a000000cd80")
    start, size = 0x08048000, 84 + len(code)
    header = (
        b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<2H5I6H", 2, 3, 1, start + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    )
    path = Path(sys.argv[1], "small")
    path.write_bytes(header + struct.pack("<8I", 1, 0, start, start, size, size, 5, 0x1000) + code)
    path.chmod(0o700)
    ended = subprocess.run([str(path)], check=False).returncode
    if ended != 42:
        raise OSError(errno.EPERM, f"ended with {ended}")


def _unmount_nothing() -> None:
    try:
        _call("umount2", b"/reconstitute/nowhere", 0)
    except FileNotFoundError:  # the system call is allowed, and would have worked
        pass


def _attempts(home: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "SystemCallArchitectures", _other_architecture
    yield "LockPersonality", lambda: _call("personality", _NO_RANDOM_ADDRESSES)
    yield "MemoryDenyWriteExecute", lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)
    yield "RestrictRealtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    yield "RestrictSUIDSGID", _set_user_bit
    yield "RestrictNamespaces", lambda: _call("unshare", _UNSHARE_USER)
    yield "RestrictAddressFamilies", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    yield "@resources", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))
    yield "@privileged", lambda: os.chroot("/")
    yield "@mount", _unmount_nothing
    yield "ProtectSystem", _writes_to(Path("/usr"))
    yield "ProtectSystem, /etc", _writes_to(Path("/etc"))
    for name in (".ssh", ".gnupg", ".local/bin", ".config/systemd", ".config/autostart"):
        yield f"ReadOnlyPaths, {name}", _writes_to(home / name)
    yield "PrivateDevices", lambda: os.stat("/dev/kmsg")
    yield "ProtectKernelModules", lambda: os.listdir("/usr/lib/modules")
    yield "ProtectHostname", lambda: socket.sethostname(socket.gethostname())
    yield "ProtectControlGroups", _writes_to(Path("/sys/fs/cgroup"))
    # What must stay allowed.
    for name in ("", ".config", ".local/share", "reconstituted"):
        yield f"home, {name}", _writes_to(home / name)
    yield "/tmp", _writes_to(Path("/tmp"))
    yield "@chown", lambda: os.chown(sys.argv[1], os.getuid(), os.getgid())


def _outcome(attempt: Callable[[], object]) -> str:
    """What came of it, in a process of its own: some change the process that tries them."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        os.waitpid(child, 0)
        with open(reading, encoding="ascii") as answer:
            return answer.read()
    try:
        attempt()
    except OSError as error:
        said = errno.errorcode.get(error.errno or 0, str(error))
    else:
        said = "allowed"
    os.write(writing, said.encode())
    os._exit(0)


def main() -> None:
    scratch, home = Path(sys.argv[1]), Path.home()
    outcomes = {name: _outcome(attempt) for name, attempt in _attempts(home)}
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    created = scratch / "created"
    created.unlink(missing_ok=True)  # of an attempt without the unit
    created.touch()
    facts = {
        "no new privileges": _LIBC.prctl(_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
        "capabilities": int(fields["CapBnd"], 16),
        "core": resource.getrlimit(resource.RLIMIT_CORE)[1],
        "mode": oct(created.stat().st_mode & 0o777),
        "owner of /usr": os.stat("/usr").st_uid,
        "user namespace": os.readlink("/proc/self/ns/user"),
    }
    (scratch / "outcome.json").write_text(json.dumps({"outcomes": outcomes, "facts": facts}))


main()
