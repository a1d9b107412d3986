"""A real user manager of systemd, with a home and a runtime directory of its own.

systemd refuses to be one where the machine was not booted with it, which it sees by a folder in /run. So it gets a /run of
its own, in a mount namespace that nothing else sees.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.daemon_process import until

PROGRAM = "/usr/lib/systemd/systemd"
_START = f"mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec {PROGRAM} --user"
_NEEDED = ("systemctl", "unshare")


class NoUserManager(Exception):
    """None can be had on this machine; the message says why."""


class UserManager:
    """One that runs. `home` is the home of its services."""

    def __init__(self, home: Path, runtime: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LANG": "C.UTF-8",
        }  # fmt: skip

    def systemctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["systemctl", "--user", "--no-pager", *words],
            env=self.environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    def show(self, unit: str, *properties: str) -> Mapping[str, str]:
        """These properties of a unit."""
        lines = self.systemctl("show", unit, f"--property={','.join(properties)}").stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@contextmanager
def user_manager(root: Path) -> Iterator[UserManager]:
    """Start one, and end it with all its services.

    Raises:
        NoUserManager: none can be had here.
    """
    missing = [name for name in _NEEDED if shutil.which(name) is None] + [PROGRAM] * (not os.path.exists(PROGRAM))
    if missing:
        raise NoUserManager(f"{missing[0]} is not installed")
    home, log = root / "home", root / "manager.log"
    home.mkdir(parents=True)
    runtime = Path(tempfile.mkdtemp(prefix="rc-"))
    manager = UserManager(home, runtime)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _START],
            env=manager.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip

    def answers() -> bool:
        return process.poll() is not None or manager.systemctl("show", "--property=Version").returncode == 0

    try:
        try:
            until(answers, 30, "the user manager")
        except AssertionError as error:
            raise NoUserManager(str(error)) from error
        if process.poll() is not None:
            raise NoUserManager(f"it ended with {process.returncode}: {log.read_text(errors='replace')[-300:]}")
        yield manager
    finally:
        if process.poll() is None:
            manager.systemctl("exit")
        try:
            process.wait(60)
        finally:
            process.kill()
            shutil.rmtree(runtime, ignore_errors=True)
