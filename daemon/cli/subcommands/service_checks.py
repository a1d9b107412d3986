"""The rows of ``doctor`` about the service: its unit, what systemd says of it, and what answers at the socket."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from daemon import __version__, supervisor
from daemon.cli import launchd
from daemon.cli.subcommands import isolation
from daemon.cli.subcommands import service as unit
from daemon.control import calls
from daemon.control.answers import Check, Status
from daemon.control.client import Client
from daemon.doctor.rows import RESTART, attention, broken, not_checked, ok, restart
from daemon.errors import ReconstituteError, ServesAnother

if TYPE_CHECKING:
    from daemon.config import Config

_INSTALL = "reconstitute service install"


def installed() -> Iterator[Check]:
    """The unit is as shipped, starts this installation, and starts at every login."""
    if supervisor.has_launchd():
        yield from launchd.checks()
        return
    path = unit.unit_place()
    if not path.is_file():
        yield ok("unit", "the service is not installed; commands read by themselves what is new", _INSTALL)
        return
    text = unit.read_unit(path)
    if not unit.is_untouched(text):
        message = f"{path} was edited, so a new version does not change it"
        yield attention(
            "unit", message, f"systemctl --user edit {supervisor.UNIT} for your changes, then {_INSTALL} --force"
        )
    elif not unit.is_of_this_version(text):
        yield attention("unit", f"{path} is that of another version", _INSTALL)
    elif (program := unit.program(text)) and not os.access(program, os.X_OK):
        yield broken("unit", f"{path} starts {program}, which is not there", _INSTALL)
    elif isolation.is_of_another_version():
        yield attention("unit", f"{isolation.place()} is that of another version", _INSTALL)
    else:
        yield ok("unit", f"{path} is as this version installs it")
    if not unit.manager_answers():
        yield not_checked(
            "systemd", "systemd's user manager does not answer here, so enabled and running are not known"
        )
        return
    yield from _systemd(unit.unit_facts())


def _systemd(facts: dict[str, str]) -> Iterator[Check]:
    state = facts.get("ActiveState", "?")
    if facts.get("NeedDaemonReload") == "yes":
        yield attention("systemd", "the unit has changed since systemd read it", "systemctl --user daemon-reload")
    if state == "failed":
        message = f"the service failed ({facts.get('Result', '?')}), restarts {facts.get('NRestarts', '?')}"
        yield broken("systemd", message, f"journalctl --user --unit {supervisor.UNIT} --lines 20, then {RESTART}")
    elif state not in ("active", "reloading"):
        yield broken("systemd", f"the service does not run ({state})", f"systemctl --user start {supervisor.UNIT}")
    elif not unit.is_enabled():
        yield attention(
            "systemd", "the service runs, but does not start at login", f"systemctl --user enable {supervisor.UNIT}"
        )
    elif not unit.lingers():
        message = "the service runs and starts at every login; it stops when you log out"
        yield ok("systemd", message, "loginctl enable-linger")
    else:
        yield ok("systemd", "the service runs, starts with the machine, and goes on when you log out")


def answering(config: Config) -> tuple[Status | None, Check]:
    """What answers at the socket, and whether it is the service that this command means."""
    try:
        status = Client(config.socket_path, config).call(calls.Status())
    except ServesAnother as error:
        return None, attention("service", str(error), "reconstitute config check")
    except ReconstituteError as error:
        if "no service answers" in str(error):
            return None, ok("service", "none runs for this archive")
        return None, broken("service", str(error), RESTART)
    if status.version != __version__:
        message = f"process {status.pid} runs version {status.version}, and this command is {__version__}"
        return status, attention("service", message, restart(status.pid))
    if status.differs:
        message = f"process {status.pid} uses another configuration than this command: {', '.join(status.differs)}"
        return status, attention("service", message, restart(status.pid))
    return status, ok("service", f"process {status.pid} answers, and is of this version ({__version__})")
