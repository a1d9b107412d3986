"""The daemon as a launchd agent of this user, on macOS: installed, shown, removed, checked.

The agent is a property list in ~/Library/LaunchAgents. One key of it, which launchd passes over, holds the hash of the
rest: that tells an agent that a person edited from one of another version. Tested with a launchctl that only records
what it is told; nobody has run this on a Mac yet.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from daemon.cli import terminal
from daemon.control.answers import Check
from daemon.doctor.rows import attention, broken, ok
from daemon.errors import OutputRefused
from daemon.filesystem import durable
from daemon.supervisor import LABEL, launchd_log, log, restart

_STAMP = "WrittenByReconstitute"
_SECONDS = 150
NOT_RUNNING, NOT_INSTALLED = 3, 4
"""Exit codes of `status`, as on Linux."""
_INSTALL = "reconstitute service install"


def plist_place() -> Path:
    """Where the agent goes."""
    return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist"


def agent(command: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """The agent that runs `command` with these variables besides its own, stamped."""
    content: dict[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": command,
        "EnvironmentVariables": {"PYTHONFAULTHANDLER": "1", "ANONYMIZED_TELEMETRY": "False", **environment},
        "RunAtLoad": True,
        # Started again only after a crash. launchd cannot tell a wrong configuration from one, so that waits a minute.
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 60,
        "ExitTimeOut": 45,
        "ProcessType": "Background",
        "Nice": 10,
        "Umask": 0o077,
        "HardResourceLimits": {"Core": 0},
        "SoftResourceLimits": {"Core": 0},
        "StandardOutPath": str(launchd_log()),
        "StandardErrorPath": str(launchd_log()),
    }
    return content | {_STAMP: _digest(content)}


def install(command: list[str], environment: Mapping[str, str], *, force: bool) -> int:
    """Write the agent and start it, now and at every login; the exit code.

    Raises:
        OutputRefused: the agent there was edited, or its place cannot be written.
    """
    path, wanted = plist_place(), agent(command, environment)
    present = _read(path)
    if present == wanted and not path.is_symlink():
        terminal.say(f"{terminal.plain(path)} is up to date.")
    else:
        if os.path.lexists(path) and not force and (path.is_symlink() or not is_untouched(present)):
            raise OutputRefused(f"{path}: was edited, or is not ours; replace it with: {_INSTALL} --force")
        _write(path, plistlib.dumps(wanted, sort_keys=False))
        _write_log()
        terminal.say(f"{'Updated' if present is not None else 'Wrote'} {terminal.plain(path)}.")
    is_loaded = _launchctl("print", _target()).returncode == 0
    if is_loaded and present != wanted:  # launchd keeps the agent as it was loaded
        _launchctl("bootout", _target())
        is_loaded = False
    steps = [["enable", _target()]] + ([] if is_loaded else [["bootstrap", _domain(), str(path)]])
    for step in steps:
        result = _launchctl(*step)
        if result.returncode:
            terminal.note(f"launchctl {' '.join(step)}: {result.stderr.strip() or 'failed'}; see: {log()}")
            return 1
    terminal.say("The service runs, and starts at every login.")
    return 0


def status() -> int:
    """Show whether the service runs, and its last lines; the exit code."""
    facts = job_facts()
    if facts is None:
        if not os.path.lexists(plist_place()):
            terminal.say(f"Not installed. Install it with: {_INSTALL}")
            return NOT_INSTALLED
        terminal.say(f"Installed, and not loaded. Load it with: {_INSTALL}")
        return NOT_RUNNING
    state = facts.get("state", "?")
    terminal.say(terminal.bold(terminal.plain(state)))
    last = facts.get("last exit code", "-")
    terminal.say(f"process {terminal.plain(facts.get('pid', '-'))}, last exit code {terminal.plain(last)}")
    for line in last_lines():
        terminal.say(f"  {terminal.plain(line)}")
    return 0 if state == "running" else NOT_RUNNING


def uninstall(*, force: bool) -> int:
    """Stop the service and remove the agent; the exit code.

    Raises:
        OutputRefused: the agent was edited.
    """
    path = plist_place()
    if not os.path.lexists(path):
        terminal.say(f"{terminal.plain(path)} is not there: nothing to remove.")
        return 0
    if not force and not is_untouched(_read(path)):
        raise OutputRefused(f"{path}: was edited, or is not ours; remove it with --force")
    if job_facts() is not None:
        result = _launchctl("bootout", _target())
        if result.returncode:
            terminal.note(f"launchctl bootout {_target()}: {result.stderr.strip() or 'failed'}")
            return 1
    path.unlink()
    terminal.say(f"Removed {terminal.plain(path)}. The archive and the pages stay.")
    return 0


def checks() -> Iterator[Check]:
    """The rows of `doctor`: the agent is as shipped, starts this installation, and runs."""
    path = plist_place()
    present = _read(path)
    if present is None:
        yield ok("agent", "the service is not installed; commands read by themselves what is new", _INSTALL)
        return
    command = present.get("ProgramArguments") or [""]
    if not is_untouched(present):
        yield attention("agent", f"{path} was edited, so a new version does not change it", f"{_INSTALL} --force")
    elif _shipped(present) != _shipped(agent(command, {})):
        yield attention("agent", f"{path} is that of another version", _INSTALL)
    elif not os.access(command[0], os.X_OK):
        yield broken("agent", f"{path} starts {command[0]}, which is not there", _INSTALL)
    else:
        yield ok("agent", f"{path} is as this version installs it")
    facts = job_facts()
    if facts is None:
        yield broken("launchd", "the agent is not loaded, so the service does not run", _INSTALL)
    elif facts.get("state") != "running":
        last = facts.get("last exit code", "?")
        message = f"the service does not run ({facts.get('state', '?')}, last exit code {last})"
        yield broken("launchd", message, f"{log()}, then {restart()}")
    else:
        yield ok("launchd", "the service runs and starts at every login; it stops when you log out")


def is_untouched(present: dict[str, Any] | None) -> bool:
    """Whether this agent is as some version of `agent` wrote it."""
    return present is not None and present.get(_STAMP) == _digest({k: v for k, v in present.items() if k != _STAMP})


def job_facts() -> dict[str, str] | None:
    """What launchd says of the job, by its names; None if it does not know the job."""
    result = _launchctl("print", _target())
    if result.returncode:
        return None
    # One tab for the job itself; what is within braces has more.
    pairs = re.findall(r"^\t([a-z][a-z ]*) = (.+)$", result.stdout, flags=re.MULTILINE)
    return {name: value for name, value in pairs if value != "{"}


def last_lines(most: int = 5) -> list[str]:
    """The newest lines of the service's log; where it cannot be read, the reason."""
    try:
        return launchd_log().read_text(encoding="utf-8", errors="replace").splitlines()[-most:]
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"its log cannot be shown: {error}"]


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _target() -> str:
    return f"{_domain()}/{LABEL}"


def _launchctl(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["launchctl", *words], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(words, 127, "", "there is no launchctl on this machine")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"no answer within {_SECONDS} s")


def _shipped(content: dict[str, Any]) -> dict[str, Any]:
    """An agent without what belongs to an installation."""
    own = {"ProgramArguments", "EnvironmentVariables", _STAMP}
    return {name: value for name, value in content.items() if name not in own}


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(plistlib.dumps(content, sort_keys=True)).hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    """The agent there: None if there is none, empty if it cannot be understood."""
    try:
        content = plistlib.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, plistlib.InvalidFileException):
        return {}
    except Exception:  # noqa: BLE001 - the parser of XML has errors of its own
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, data: bytes) -> None:
    try:
        durable.atomic_write(path, data)
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; check the directory") from error


def _write_log() -> None:
    """Make the log's file ours alone, because launchd would make it readable for others."""
    if not launchd_log().exists():
        _write(launchd_log(), b"")
