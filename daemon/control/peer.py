"""Who is at the other end of a Unix socket, or of a TCP connection within this machine: the kernel tells."""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path

_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1
"""macOS: sys/un.h. Python does not name them."""

_XUCRED = struct.Struct("=IIh2x16I")
"""macOS: sys/ucred.h. Version, uid, number of groups, groups."""

_XUCRED_VERSION = 0


def uid(connection: socket.socket, platform: str = sys.platform) -> int:
    """The effective user id of the process that connected.

    Raises:
        OSError: the kernel does not say.
    """
    if platform == "darwin":
        return xucred_uid(connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


_TABLES = (Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6"))


def tcp_uid(connection: socket.socket) -> int | None:
    """The user id of the process that connected over IPv4's loopback; None where the kernel does not say.

    That is so on macOS, and for a caller in another network namespace, as behind a relay of a virtual machine.
    """
    pair = (_address(*connection.getpeername()[:2]), _address(*connection.getsockname()[:2]))
    for table in _TABLES:
        try:
            rows = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, rows):
            # IPv6 has the same addresses behind 24 digits; its sockets can call at IPv4's.
            if tuple(field[-13:] for field in fields[1:3]) == pair:
                return int(fields[7])
    return None


def _address(host: str, port: int) -> str:
    """As /proc/net/tcp has it: the bytes of the address in the machine's order."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def xucred_uid(raw: bytes) -> int:
    """The user id in macOS's struct xucred.

    Raises:
        OSError: it is of another version or size, so nothing in it can be trusted.
    """
    if len(raw) != _XUCRED.size:
        raise OSError(f"the peer's credentials have {len(raw)} bytes, not {_XUCRED.size}")
    version, uid_, *_ = _XUCRED.unpack(raw)
    if version != _XUCRED_VERSION:
        raise OSError(f"the peer's credentials are of the unknown version {version}")
    return int(uid_)
