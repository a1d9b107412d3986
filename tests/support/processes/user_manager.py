"""A real user manager of systemd, with a home and a runtime directory of its own.

systemd refuses to be one where the machine was not booted with it, which it sees by a folder in /run. So it gets a /run of
its own, in a mount namespace that nothing else sees. It gets a control group of its own too: two managers in one group
would end each other's services.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.processes.daemon_process import until

PROGRAM = "/usr/lib/systemd/systemd"
_HIERARCHIES = ("systemd", "unified", ".")
"""Beneath /sys/fs/cgroup: of the first version, of the second beside it, of the second alone."""
_START = f"""
for place in $GROUPS_OF_ITS_OWN; do echo $$ > "$place/cgroup.procs" || exit 1; done
unset GROUPS_OF_ITS_OWN
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec {PROGRAM} --user
"""
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
    groups = _new_groups(runtime.name)
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _START],
            env=manager.environment | {"GROUPS_OF_ITS_OWN": " ".join(map(str, groups))},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
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
            for group in groups:
                for place, _, _ in os.walk(group, topdown=False):
                    with suppress(OSError):  # a process of it is just ending
                        os.rmdir(place)


def _new_groups(name: str) -> list[Path]:
    """A control group of this name in each hierarchy that systemd uses.

    Raises:
        NoUserManager: none can be made.
    """
    hierarchies = [Path("/sys/fs/cgroup") / each for each in _HIERARCHIES]
    groups = [hierarchy / name for hierarchy in hierarchies if (hierarchy / "cgroup.procs").exists()]
    try:
        for group in groups:
            group.mkdir()
    except OSError as error:
        raise NoUserManager(f"{error.filename}: no control group can be made: {error.strerror}") from error
    return groups
