"""Tells processes apart: a process id is used again, and means something only until the next boot."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

_SECONDS = 10


def space(platform: str = sys.platform) -> str:
    """Names the boot and the namespace in which a process id means something."""
    try:
        if platform == "darwin":
            named = _output("sysctl", "-n", "kern.bootsessionuuid")
        else:
            named = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return "00000000"
    return hashlib.sha256(named.encode()).hexdigest()[:8]


def started(pid: int, platform: str = sys.platform) -> int | None:
    """When the process began: clock ticks since the boot, on macOS epoch seconds. None where there is none."""
    try:
        if platform == "darwin":
            shown = _output("ps", "-o", "lstart=", "-p", str(pid))
            return int(time.mktime(time.strptime(shown, "%a %b %d %H:%M:%S %Y")))
        fields = Path(f"/proc/{pid}/stat").read_text()
    except (OSError, ValueError):
        return None
    # The second field is the command in brackets and may hold anything; the start time is the twentieth after it.
    return int(fields.rpartition(")")[2].split()[19])


def _output(*words: str) -> str:
    """What a program prints.

    Raises:
        OSError: it is not there, fails or does not end.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, env=environment, timeout=_SECONDS, check=True
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        raise OSError(f"{words[0]}: {error}") from None
    return done.stdout.strip()
