"""A small file system that really fills up: a tmpfs of its own, mounted by root or in a private mount namespace."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

_INSIDE = "RECONSTITUTE_TEST_OWN_MOUNTS"
_LIBC = ctypes.CDLL(None, use_errno=True)
_DETACH = 2


class SmallDisk:
    """`megabytes` at `path`, empty. `fill` leaves so many bytes free (none: until nothing can be written)."""

    def __init__(self, path: Path, megabytes: int) -> None:
        path.mkdir(parents=True)
        self.path = path
        self._filler = path / ".filler"
        options = f"size={megabytes}m,mode=0700".encode()
        if _LIBC.mount(b"tmpfs", bytes(path), b"tmpfs", 0, options):
            raise OSError(ctypes.get_errno(), f"cannot mount a tmpfs at {path}")

    def free(self) -> int:
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        with self._filler.open("ab") as file:
            while (rest := self.free() - leave) > 0:
                try:
                    file.write(b"\0" * min(rest, 1 << 20))
                    file.flush()
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    return

    def make_room(self) -> None:
        self._filler.unlink()

    def close(self) -> None:
        _LIBC.umount2(bytes(self.path), _DETACH)


def _may_mount(place: Path) -> bool:
    try:
        SmallDisk(place, 1).close()
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EACCES):
            raise
        return False
    return True


def with_small_disks(test: Callable[..., None]) -> Callable[..., None]:
    """Run the test where it may mount: here, or else in namespaces of its own, by another pytest."""

    @wraps(test)
    def run(*arguments: Any, request: pytest.FixtureRequest, tmp_path: Path, **more: Any) -> None:
        if os.environ.get(_INSIDE) or _may_mount(tmp_path / "probe"):
            test(*arguments, request=request, tmp_path=tmp_path, **more)
            return
        command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-m", "pytest", "-q", "-x"]
        done = subprocess.run(
            [*command, f"--basetemp={tmp_path / 'inside'}", request.node.nodeid],
            cwd=request.config.rootpath, env=os.environ | {_INSIDE: "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"neither mounting nor a private namespace works here:\n{done.stdout}{done.stderr}"

    return run
