"""``reconstitute service``: the daemon as a systemd user service, installed, shown, removed.

Guarantees: a unit that a person edited is kept unless --force is given; every change is shown; without a user manager
to talk to, the unit is still written and what is left to type is said. Installing twice changes nothing.
"""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

import click

from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.cli.subcommands import unit
from daemon.errors import DaemonUnreachable, OutputRefused, ServesAnother

SECONDS = 150
"""More than the unit's TimeoutStartSec: `enable --now` returns when the daemon is ready."""


@click.group()
def service() -> None:
    """Install, show or remove the systemd user service.

    \b
    Examples:
      reconstitute service install     from now on, and after every login
      reconstitute service status
      reconstitute service uninstall   the archive stays
    """  # noqa: D301 - click's mark for text that is not to be filled


@service.command()
@click.option("--force", is_flag=True, help="Replace a unit that was edited.")
@click.pass_obj
def install(settings: Settings, force: bool) -> int:
    """Write the unit, start it, and start it at every login.

    \b
    Example:
      reconstitute --config ~/my.toml service install
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.config import ENVIRONMENT  # noqa: PLC0415

    settings.load()  # a service that cannot start is not worth installing
    named = settings.config or os.environ.get("RECONSTITUTE_CONFIG")
    chosen = ["--config", os.path.abspath(named)] if named else []
    # A service does not see what a shell's profile exports, so the unit says which database OpenCode uses.
    seen = {name: os.environ[name] for name in ("OPENCODE_DB",) if os.environ.get(name)}
    changed = _write(unit.place(), unit.text([*unit.installation(), *chosen, "run"], seen), force=force)
    for variable in sorted(set(ENVIRONMENT) & set(os.environ)):
        terminal.note(f"{variable} is set here, but the service does not see it; put {'.'.join(ENVIRONMENT[variable])} "
                  "into the configuration file")  # fmt: skip
    if not _manager_answers():
        terminal.say("No user manager answers here. After a login, type:")
        for line in ("systemctl --user daemon-reload", f"systemctl --user enable --now {unit.NAME}"):
            terminal.say(f"  {line}")
        return 0
    was_active = _systemctl("is-active", "--quiet", unit.NAME).returncode == 0
    steps = [["daemon-reload"], ["enable", "--now", unit.NAME]]
    for step in [*steps, ["restart", unit.NAME]] if changed and was_active else steps:
        done = _systemctl(*step)
        if done.returncode:
            terminal.note(f"systemctl --user {' '.join(step)}: {done.stderr.strip() or 'failed'}; see: {_journal()}")
            return 1
    terminal.say("The service runs, and starts at every login.")
    if not _lingers():
        terminal.say("It stops when you log out. To keep it: loginctl enable-linger")
    return 0


@service.command()
@click.pass_obj
def status(settings: Settings) -> int:
    """Show whether the service runs, since when, and its last lines.

    \b
    Example:
      reconstitute service status
    """  # noqa: D301 - click's mark for text that is not to be filled
    if not _manager_answers():
        terminal.note("no user manager answers here; try: reconstitute status")
        return 1
    wanted = "LoadState,ActiveState,SubState,StatusText,MainPID,NRestarts,MemoryCurrent,ActiveEnterTimestamp,Result"
    shown = _systemctl("show", unit.NAME, f"--property={wanted}").stdout
    facts = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    if facts.get("LoadState") == "not-found":
        terminal.say("Not installed. Install it with: reconstitute service install")
        return 0
    state = f"{facts.get('ActiveState', '?')} ({facts.get('SubState', '?')})"
    terminal.say(f"{terminal.bold(state)} since {terminal.plain(facts.get('ActiveEnterTimestamp') or '-')}")
    if facts.get("StatusText"):
        terminal.say(terminal.plain(facts["StatusText"]))
    memory = facts.get("MemoryCurrent", "")
    used = terminal.size(int(memory)) if memory.isdecimal() and int(memory) < 1 << 60 else "-"
    terminal.say(f"process {facts.get('MainPID', '-')}, memory {used}, restarts {facts.get('NRestarts', '-')}")
    if facts.get("ActiveState") == "failed":
        terminal.say(f"It failed ({terminal.plain(facts.get('Result', '?'))}). The reason: {_journal()}")
    _compare(settings)
    return 0


def _compare(settings: Settings) -> None:
    """Say where the service that answers is not the one that this command's configuration means."""
    from daemon.control import calls  # noqa: PLC0415 - each command loads what it needs
    from daemon.control.client import Client  # noqa: PLC0415 - each command loads what it needs

    config = settings.load()
    try:
        differing = Client(config.socket_path, config).call(calls.Status()).differs
    except ServesAnother as error:
        terminal.note(error)
    except DaemonUnreachable as error:
        terminal.say(f"It does not answer: {terminal.plain(error)}")
    else:
        if differing:
            keys = ", ".join(map(str, differing))
            terminal.note(f"it works with another configuration than this command's: {keys}; restart it with yours")


@service.command()
@click.option("--force", is_flag=True, help="Remove a unit that was edited, too.")
def uninstall(force: bool) -> int:
    """Stop the service and remove its unit. The archive and the pages stay.

    \b
    Example:
      reconstitute service uninstall
    """  # noqa: D301 - click's mark for text that is not to be filled
    path = unit.place()
    if not os.path.lexists(path):
        terminal.say(f"{terminal.plain(path)} is not there: nothing to remove.")
        return 0
    if not force and not (path.is_file() and unit.is_untouched(_read(path))):
        raise OutputRefused(f"{path}: was edited, or is not ours; remove it with --force")
    answers = _manager_answers()
    if answers:
        done = _systemctl("disable", "--now", unit.NAME)
        if done.returncode:
            terminal.note(f"systemctl --user disable --now {unit.NAME}: {done.stderr.strip() or 'failed'}")
            return 1
    path.unlink()
    if answers:
        _systemctl("daemon-reload")
    terminal.say(f"Removed {terminal.plain(path)}. The archive and the pages stay.")
    return 0


def _write(path: Path, wanted: str, *, force: bool) -> bool:
    """Put the unit in its place; whether anything changed.

    Raises:
        OutputRefused: the unit there was edited, or the directory cannot be written.
    """
    present = _read(path) if path.is_file() else None
    if present == wanted and not path.is_symlink():
        terminal.say(f"{terminal.plain(path)} is up to date.")
        return False
    for line in difflib.unified_diff(
        (present or "").splitlines(), wanted.splitlines(), "installed", "new", n=0, lineterm=""
    ):
        if present is not None:
            terminal.say(terminal.plain(line))
    occupied = os.path.lexists(path) and (path.is_symlink() or present is None or not unit.is_untouched(present))
    if occupied and not force:
        raise OutputRefused(
            f"{path}: was edited, or is not ours; keep changes with systemctl --user edit {unit.NAME}, "
            "and replace it with: reconstitute service install --force"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_name(f".{path.name}.{os.getpid()}")
        staged.write_text(wanted, encoding="utf-8", errors="surrogateescape")
        os.replace(staged, path)
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; check the directory") from error
    terminal.say(f"{'Updated' if present is not None else 'Wrote'} {terminal.plain(path)}.")
    return True


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["systemctl", "--user", "--no-pager", *words],
            capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        return subprocess.CompletedProcess(words, 127, "", "there is no systemctl on this machine")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"no answer within {SECONDS} s")


def _manager_answers() -> bool:
    return _systemctl("show", "--property=Version").returncode == 0


def _lingers() -> bool:
    try:
        asked = subprocess.run(
            ["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"],
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return asked.stdout.strip() == "yes"


def _journal() -> str:
    return f"journalctl --user --unit {unit.NAME} --lines 20"
