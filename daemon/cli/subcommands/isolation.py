"""The drop-in that isolates the service further than its unit does, on machines that give a user's services namespaces.

Whether a machine does is tried with a transient service of the same properties: some distributions forbid it, and
older versions of systemd pass over it in silence. Where it no longer holds later, the drop-in takes itself out.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from daemon.cli import terminal
from daemon.cli.subcommands import service as unit
from daemon.errors import OutputRefused
from daemon.filesystem import durable
from daemon.supervisor import UNIT

NAME = "isolation.conf"
FAILED = "isolation.failed"
"""What the drop-in is called after it kept the service from starting."""
_FOR_ROOT = "root's service may have to read the files of other users"
_TRY = """
[ "$(readlink /proc/self/ns/user)" != "$0" ] && [ "$(readlink /proc/self/ns/mnt)" != "$1" ] || exit 9
grep -Eq '^CapBnd:\\s*0+$' /proc/self/status || exit 9
shift && exec "$@" > /dev/null
"""
"""Whether the namespaces and the lack of capabilities are there, and this program starts in them."""


def shipped() -> str:
    """The drop-in's text, without a stamp."""
    return files("daemon.cli").joinpath(NAME).read_text(encoding="utf-8")


def place() -> Path:
    """Where the drop-in goes."""
    return unit.unit_place().with_name(f"{UNIT}.d") / NAME


def is_installed() -> bool:
    """Whether the unit has the drop-in, ours or one that a person wrote in its place."""
    return place().is_file()


def is_of_another_version() -> bool:
    """Whether another version wrote the drop-in, and nobody edited it."""
    present = unit.read_unit(place()) if is_installed() else ""
    return unit.is_untouched(present) and present != unit.stamped(shipped())


def has_failed() -> bool:
    """Whether the drop-in took itself out, because the service did not start with it."""
    return place().with_name(FAILED).is_file() and not is_installed()


def lack() -> str:
    """Why the service has no drop-in, as far as that is known without trying; empty if it has one."""
    if is_installed():
        return ""
    if has_failed():
        return "the service did not start with it"
    return _FOR_ROOT if os.geteuid() == 0 else "reconstitute service install did not find that this machine allows it"


def install() -> bool:
    """Put the drop-in in its place if it holds on this machine, else take ours away. Whether that changed anything.

    Raises:
        OutputRefused: the directory cannot be written.
    """
    path = place()
    present = unit.read_unit(path) if path.is_file() else None
    if present is not None and not unit.is_untouched(present):
        terminal.say(f"{terminal.plain(path)} was edited, and is kept.")
        return False
    reason = why_not()
    wanted = None if reason else unit.stamped(shipped())
    if reason:
        terminal.say(f"Not isolated further than by the unit: {terminal.plain(reason)}.")
    if present == wanted:
        return False
    try:
        if wanted is None:
            path.unlink()
        else:
            durable.atomic_write(path, wanted.encode())
            path.with_name(FAILED).unlink(missing_ok=True)
            terminal.say(f"{'Updated' if present is not None else 'Wrote'} {terminal.plain(path)}.")
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; check the directory") from error
    return True


def uninstall() -> None:
    """Take our drop-in away; one that a person edited stays."""
    path = place()
    path.with_name(FAILED).unlink(missing_ok=True)
    if path.is_file() and unit.is_untouched(unit.read_unit(path)):
        path.unlink()
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()


def why_not() -> str:
    """Why the service is not isolated further on this machine; empty if it can be."""
    if os.geteuid() == 0:
        return _FOR_ROOT
    ours = (os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/mnt"))
    command = [
        "systemd-run", "--user", "--wait", "--collect", "--quiet", *(f"--property={line}" for line in _properties()),
        "/bin/sh", "-c", _TRY, *ours, *unit.installation(), "--version",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except FileNotFoundError:
        return "it could not be tried without systemd-run"
    except subprocess.TimeoutExpired:
        return "it was tried, and did not end within 60 s"
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()
    detail = said[-1] if said else f"tried, and ended with {done.returncode}"
    return f"this machine gives a user's services no namespaces of their own ({detail})"


def _properties() -> Iterator[str]:
    """The properties of the drop-in, as systemd-run takes them."""
    for line in shipped().splitlines():
        if "=" in line and not line.startswith(("#", "ExecStopPost=")):
            yield line.replace("%h", str(Path.home()).replace("%", "%%"))
