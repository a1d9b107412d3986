"""A real user manager of systemd, with a home and a runtime directory of its own.

systemd refuses to be one where the machine was not booted with it, which it sees by a folder in /run. So it gets a /run of
its own, in a mount namespace that nothing else sees. It gets a control group of its own too: two managers in one group
would end each other's services. What other tests have mounted meanwhile is not in it: systemd takes along what is mounted
beneath /dev, and cannot where the folder is closed to the user.

It is that of the user who runs the tests, or that of ANOTHER user, who has no privileges. That one sees our Python and
the checkout, also where they lie in a folder that is closed to others.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.processes.daemon_process import CHECKOUT, until

PROGRAM = "/usr/lib/systemd/systemd"
_HIERARCHIES = ("systemd", "memory", "unified", ".")
"""Beneath /sys/fs/cgroup: of the first version, of the second beside it, of the second alone."""
ANOTHER = "daemon"
"""A user of every Linux, to whom nothing belongs."""
_START = """
set -e
for place in $GROUPS_OF_ITS_OWN; do echo $$ > "$place/cgroup.procs"; done
unset GROUPS_OF_ITS_OWN
awk -v top="$TEMPORARY/" 'index($5, top) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r umount --lazy
unset TEMPORARY
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system /run/systemd/unit-root
"""
_NEEDED = ("systemctl", "unshare", "nsenter", "setpriv", "awk")


class UserManager:
    """One that runs. `home` is the home of its services."""

    def __init__(self, home: Path, runtime: Path, user: pwd.struct_passwd | None) -> None:
        self.home, self.user = home, user
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LANG": "C.UTF-8",
        }  # fmt: skip

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command of its user, to its end."""
        if self.user is not None:
            assert self.process is not None
            command = ("nsenter", "--mount", f"--target={self.process.pid}", *_as_user(self.user), *command)
        return subprocess.run(
            command,
            cwd="/", env=self.environment | environment, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip

    def systemctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run("systemctl", "--user", "--no-pager", *words)

    def show(self, unit: str, *properties: str) -> Mapping[str, str]:
        """These properties of a unit."""
        lines = self.systemctl("show", unit, f"--property={','.join(properties)}").stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def own(self, *places: Path) -> None:
        """Make these files and folders, with all that is in them, its user's."""
        if self.user is not None:
            for place in places:
                for folder, _, names in os.walk(place):
                    for path in (folder, *(os.path.join(folder, name) for name in names)):
                        os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)


def _as_user(user: pwd.struct_passwd) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")


def _opened(places: list[Path]) -> str:
    """Shell lines after which everybody can reach these folders, in the mount namespace where they run."""
    closed = {
        place: next((up for up in reversed(place.parents) if not up.stat().st_mode & 0o001), None) for place in places
    }
    behind = {place: top for place, top in closed.items() if top is not None}
    keep = {place: f"/run/kept/{number}" for number, place in enumerate(behind)}
    lines = [f"mkdir -p {keep[place]} && mount --bind {shlex.quote(str(place))} {keep[place]}" for place in behind]
    lines += [f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(top))}" for top in sorted(set(behind.values()))]
    for place in behind:
        lines.append(f"mkdir -p {shlex.quote(str(place))} && mount --bind {keep[place]} {shlex.quote(str(place))}")
    return "\n".join(lines) + "\n"


def _skip(reason: str) -> NoReturn:
    pytest.skip(f"no user manager of systemd on this machine: {reason}")


@contextmanager
def user_manager(root: Path, name: str = "") -> Iterator[UserManager]:
    """Start one, of the user of this name or of ours, and end it with all its services.

    Where none can be had, the tests that need it are skipped with the reason.
    """
    missing = [name for name in _NEEDED if shutil.which(name) is None] + [PROGRAM] * (not os.path.exists(PROGRAM))
    if missing:
        _skip(f"{missing[0]} is not installed")
    runtime = Path(tempfile.mkdtemp(prefix="rc-"))
    home, log = (runtime / "home" if name else root / "home"), root / "manager.log"
    home.mkdir(parents=True)
    try:
        user = pwd.getpwnam(name) if name else None
    except KeyError:
        _skip(f"there is no user {name}")
    manager = UserManager(home, runtime, user)
    groups = _new_groups(runtime.name)
    manager.own(runtime, *groups)
    base, start = Path(sys.base_prefix), [PROGRAM, "--user"]
    script = _START + (_opened([base, CHECKOUT]) if user else "")
    command = [*(_as_user(user) if user else ()), *start]
    with log.open("wb") as output:
        manager.process = process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f"{script}exec {shlex.join(command)}"],
            env=manager.environment | {"GROUPS_OF_ITS_OWN": " ".join(map(str, groups)), "TEMPORARY": tempfile.gettempdir()},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip

    def answers() -> bool:
        return process.poll() is not None or manager.systemctl("show", "--property=Version").returncode == 0

    try:
        try:
            until(answers, 30, "the user manager")
        except AssertionError as error:
            _skip(str(error))
        if process.poll() is not None:
            _skip(f"it ended with {process.returncode}: {log.read_text(errors='replace')[-300:]}")
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
    """A control group of this name in each hierarchy that systemd uses."""
    hierarchies = [Path("/sys/fs/cgroup") / each for each in _HIERARCHIES]
    groups = [hierarchy / name for hierarchy in hierarchies if (hierarchy / "cgroup.procs").exists()]
    try:
        for group in groups:
            group.mkdir()
    except OSError as error:
        _skip(f"{error.filename}: no control group can be made: {error.strerror}")
    return groups
