"""Who is at the other end of a Unix socket: the kernel tells, not the caller."""

from __future__ import annotations

import socket
import struct
import sys

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
