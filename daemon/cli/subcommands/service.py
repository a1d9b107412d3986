"""``reconstitute service``: the daemon as a service of this user, installed, shown, removed.

On macOS launchd.py does the work. Elsewhere it is a unit of systemd's user manager: reconstitute.service of this
package, with the path of this installation put in. Its first line carries the hash of the rest: that tells a unit that
a person edited from one of another version.

Guarantees: a unit that a person edited is kept unless --force is given; every change is shown; without a user manager
to talk to, the unit is still written and what is left to type is said. Installing twice changes nothing. A drop-in
beside the unit isolates the service further, where that works (isolation.py).
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import click

from daemon import supervisor
from daemon.cli import launchd, terminal
from daemon.cli.settings import Settings
from daemon.errors import DaemonUnreachable, OutputRefused, ServesAnother
from daemon.filesystem import durable
from daemon.supervisor import UNIT

_SAFE = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
# systemd 252 refuses quotes and backslashes in the program's own path, and does not undo $$ there.
_NOT_IN_PROGRAM = frozenset("\"'\\$\n\t")
_STAMP = re.compile(r"# Written by `reconstitute service install`; sha256 of the rest: ([0-9a-f]{64})\n")
NOT_RUNNING, NOT_INSTALLED = 3, 4
"""Exit codes, as systemctl's `status` has them."""
_LINES = 5
SECONDS = 150
"""More than the unit's TimeoutStartSec: `enable --now` returns when the daemon is ready."""


@click.group()
def service() -> None:
    """Install, show or remove the user service (systemd, on macOS launchd).

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
    from daemon.cli.subcommands import isolation  # noqa: PLC0415 - it needs this module
    from daemon.config import ENVIRONMENT  # noqa: PLC0415

    settings.load()  # a service that cannot start is not worth installing
    config_file = settings.config or os.environ.get("RECONSTITUTE_CONFIG")
    chosen = ["--config", os.path.abspath(config_file)] if config_file else []
    # A service does not see what a shell's profile exports, so the unit says which database OpenCode uses.
    environment = {name: os.environ[name] for name in ("OPENCODE_DB",) if os.environ.get(name)}
    if supervisor.has_launchd():
        return launchd.install([*installation(), *chosen, "run"], environment, force=force)
    has_changed = _write(unit_place(), unit_text([*installation(), *chosen, "run"], environment), force=force)
    for variable in sorted(set(ENVIRONMENT) & set(os.environ)):
        terminal.note(f"{variable} is set here, but the service does not see it; put {'.'.join(ENVIRONMENT[variable])} "
                  "into the configuration file")  # fmt: skip
    if not manager_answers():
        terminal.say("systemd's user manager does not answer here. After a login, type:")
        for line in ("systemctl --user daemon-reload", f"systemctl --user enable --now {UNIT}"):
            terminal.say(f"  {line}")
        return 0
    has_changed |= isolation.install()
    was_active = _systemctl("is-active", "--quiet", UNIT).returncode == 0
    steps = [["daemon-reload"], ["enable", "--now", UNIT]]
    for step in [*steps, ["restart", UNIT]] if has_changed and was_active else steps:
        result = _systemctl(*step)
        if result.returncode and isolation.has_failed():
            terminal.say("The service does not start with it, so it starts without.")
            result = _systemctl(*step)
        if result.returncode:
            terminal.note(
                f"systemctl --user {' '.join(step)}: {result.stderr.strip() or 'failed'}; see: {supervisor.log()}"
            )
            return 1
    terminal.say("The service runs, and starts at every login.")
    if not lingers():
        terminal.say("It stops when you log out. To keep it: loginctl enable-linger")
    return 0


@service.command()
@click.pass_obj
def status(settings: Settings) -> int:
    """Show whether the service runs, since when, and its last lines.

    Ends as `systemctl status` does: 0 where it runs, 3 where it does not, 4 where it is not installed.

    \b
    Example:
      reconstitute service status
    """  # noqa: D301 - click's mark for text that is not to be filled
    if supervisor.has_launchd():
        code = launchd.status()
        if code == 0:
            _compare(settings)
        return code
    if not manager_answers():
        terminal.note("systemd's user manager does not answer here; try: reconstitute status")
        return 1
    facts = unit_facts()
    if facts.get("LoadState") == "not-found":
        terminal.say("Not installed. Install it with: reconstitute service install")
        return NOT_INSTALLED
    state = f"{facts.get('ActiveState', '?')} ({facts.get('SubState', '?')})"
    terminal.say(f"{terminal.bold(state)} since {terminal.plain(facts.get('ActiveEnterTimestamp') or '-')}")
    if facts.get("StatusText"):
        terminal.say(terminal.plain(facts["StatusText"]))
    memory = facts.get("MemoryCurrent", "")
    used = terminal.size(int(memory)) if memory.isdecimal() and int(memory) < 1 << 60 else "-"
    terminal.say(f"process {facts.get('MainPID', '-')}, memory {used}, restarts {facts.get('NRestarts', '-')}")
    if facts.get("ActiveState") == "failed":
        terminal.say(f"It failed ({terminal.plain(facts.get('Result', '?'))}). The reason: {supervisor.log()}")
    for line in last_lines():
        terminal.say(f"  {terminal.plain(line)}")
    is_running = facts.get("ActiveState") in {"active", "reloading"}
    if is_running:
        _compare(settings)
    return 0 if is_running else NOT_RUNNING


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
            terminal.note(f"the service uses another configuration than this command: {keys}; restart it to use yours")


@service.command()
@click.option("--force", is_flag=True, help="Remove a unit that was edited, too.")
def uninstall(force: bool) -> int:
    """Stop the service and remove its unit. The archive and the pages stay.

    \b
    Example:
      reconstitute service uninstall
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.cli.subcommands import isolation  # noqa: PLC0415 - it needs this module

    if supervisor.has_launchd():
        return launchd.uninstall(force=force)
    path = unit_place()
    if not os.path.lexists(path):
        terminal.say(f"{terminal.plain(path)} is not there: nothing to remove.")
        return 0
    if not force and not (path.is_file() and is_untouched(read_unit(path))):
        raise OutputRefused(f"{path}: was edited, or is not ours; remove it with --force")
    answers = manager_answers()
    if answers:
        result = _systemctl("disable", "--now", UNIT)
        if result.returncode:
            terminal.note(f"systemctl --user disable --now {UNIT}: {result.stderr.strip() or 'failed'}")
            return 1
    path.unlink()
    isolation.uninstall()
    if answers:
        _systemctl("daemon-reload")
    terminal.say(f"Removed {terminal.plain(path)}. The archive and the pages stay.")
    return 0


def _write(path: Path, unit: str, *, force: bool) -> bool:
    """Put the unit in its place; whether anything changed.

    Raises:
        OutputRefused: the unit there was edited, or the directory cannot be written.
    """
    present = read_unit(path) if path.is_file() else None
    if present == unit and not path.is_symlink():
        terminal.say(f"{terminal.plain(path)} is up to date.")
        return False
    for line in difflib.unified_diff(
        (present or "").splitlines(), unit.splitlines(), "installed", "new", n=0, lineterm=""
    ):
        if present is not None:
            terminal.say(terminal.plain(line))
    occupied = os.path.lexists(path) and (path.is_symlink() or present is None or not is_untouched(present))
    if occupied and not force:
        raise OutputRefused(
            f"{path}: was edited, or is not ours; keep changes with systemctl --user edit {UNIT}, "
            "and replace it with: reconstitute service install --force"
        )
    try:
        durable.atomic_write(path, unit.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; check the directory") from error
    terminal.say(f"{'Updated' if present is not None else 'Wrote'} {terminal.plain(path)}.")
    return True


def read_unit(path: Path) -> str:
    """The text of a unit, whatever bytes are in it."""
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


def unit_facts() -> dict[str, str]:
    """What systemd says of the unit, by its names of the properties."""
    properties = (
        "LoadState,ActiveState,SubState,StatusText,MainPID,NRestarts,MemoryCurrent,ActiveEnterTimestamp,Result,"
        "NeedDaemonReload"
    )
    output = _systemctl("show", UNIT, f"--property={properties}").stdout
    return dict(line.split("=", 1) for line in output.splitlines() if "=" in line)


def manager_answers() -> bool:
    """Whether systemd's user manager can be asked."""
    return _systemctl("show", "--property=Version").returncode == 0


def is_enabled() -> bool:
    """Whether the unit is started at login. The property UnitFileState of a running unit may be out of date."""
    return _systemctl("is-enabled", UNIT).stdout.strip() == "enabled"


def lingers() -> bool:
    """Whether the user's services go on after a logout."""
    try:
        result = subprocess.run(
            ["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"],
            capture_output=True, text=True, timeout=10, check=False,
        )  # fmt: skip
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return result.stdout.strip() == "yes"


def last_lines(most: int = _LINES) -> list[str]:
    """The newest lines of the service's log; where the journal cannot be read, the reason."""
    words = [
        "journalctl",
        "--user",
        f"--unit={UNIT}",
        f"--lines={most}",
        "--no-pager",
        "--quiet",
        "--output=short",
        "--no-hostname",
    ]
    try:
        result = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=10, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        return [f"its log cannot be shown: {error}"]
    return result.stdout.splitlines() or result.stderr.splitlines()[:1]


# -- the unit --------------------------------------------------------------------------------------------------------


def unit_template() -> str:
    """The unit as shipped, with a generic ExecStart."""
    return files("daemon.cli").joinpath(UNIT).read_text(encoding="utf-8")


def unit_text(command: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """The unit that runs `command` with these variables besides its own, stamped."""
    if set(command[0]) & _NOT_IN_PROGRAM:
        command = ["/bin/sh", "-c", 'exec "$0" "$@"', *command]
    start = "ExecStart=" + " ".join(quote(word) for word in command)
    lines = [start, *(_setting(name, value) for name, value in environment.items())]
    return stamped(re.sub(r"^ExecStart=.*$", lambda _: "\n".join(lines), unit_template(), flags=re.MULTILINE))


def stamped(body: str) -> str:
    """A unit or a drop-in with the line on top that tells later whether a person edited it."""
    digest = hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()
    return f"# Written by `reconstitute service install`; sha256 of the rest: {digest}\n{body}"


def is_untouched(unit: str) -> bool:
    """Whether this unit or drop-in is as some version of `stamped` wrote it."""
    stamp = _STAMP.match(unit)
    body = unit[stamp.end() :] if stamp else ""
    return stamp is not None and hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest() == stamp[1]


def is_of_this_version(unit: str) -> bool:
    """Whether an untouched unit is as this version writes it, whatever it starts and with what variables."""
    return _body(unit) == _body(unit_template())


def _body(unit: str) -> list[str]:
    """The lines of a unit without those that belong to an installation."""
    own = {line for line in unit_template().splitlines() if line.startswith("Environment=")}
    lines = _STAMP.sub("", unit).splitlines()
    return [line for line in lines if line in own or not line.startswith(("ExecStart=", "Environment="))]


def program(unit: str) -> str:
    """The program that a unit starts; "" where it is quoted, so that only systemd can read it."""
    start = re.search(r"^ExecStart=(\S+)", unit, flags=re.MULTILINE)
    return start[1] if start and start[1].startswith("/") else ""


def quote(word: str) -> str:
    """One word of a command line as systemd reads it (systemd.service(5), Command lines)."""
    if _SAFE.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _setting(name: str, value: str) -> str:
    """One variable; unlike in a command line, a $ means nothing there (systemd.exec(5), Environment=)."""
    return "Environment=" + quote(f"{name}={value}").replace("$$", "$")


def unit_place() -> Path:
    """Where the unit goes: systemd/user/ in $XDG_CONFIG_HOME."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "systemd" / "user" / UNIT


def installation() -> list[str]:
    """The command that starts this very installation: its `reconstitute`, else its Python with this package."""
    beside = Path(sys.executable).parent / "reconstitute"
    invoked = Path(os.path.abspath(sys.argv[0]))
    for program in (invoked, beside):
        if program.name == "reconstitute" and program.is_file() and os.access(program, os.X_OK):
            return [str(program)]
    return [os.path.abspath(sys.executable), "-m", "daemon.cli"]
