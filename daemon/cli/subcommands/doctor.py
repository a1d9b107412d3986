"""``reconstitute doctor``: whether everything works, and the command that mends what does not.

The service checks the archive, the sources, the indexes and the models; where none runs, this process opens the archive
and does. Everything else can be seen from outside, also beside a service that hangs, and is checked here.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daemon import __version__
from daemon.cli import terminal
from daemon.cli.settings import Settings
from daemon.cli.subcommands import isolation, service, service_checks
from daemon.cli.subcommands.config import checked
from daemon.control import calls
from daemon.control.answers import Check, Doctor
from daemon.doctor import machine, of_machine, packages
from daemon.doctor.rows import (
    ATTENTION,
    BROKEN,
    NOT_CHECKED,
    OK,
    attention,
    broken,
    exit_code,
    guarded,
    not_checked,
    ok,
    parted,
    restart,
)
from daemon.errors import ArchiveLocked, ConfigError, ReconstituteError
from daemon.hints import for_commands

if TYPE_CHECKING:
    from daemon.config import Config

_COLOURS = {OK: "green", ATTENTION: "yellow", BROKEN: "red", NOT_CHECKED: "white"}


@click.command()
@click.option("--full", is_flag=True, help="Read every record and every object of the archive, which takes minutes.")
@click.option("--bundle", metavar="FILE", type=click.Path(path_type=Path), help="Write a report for a bug, redacted.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_obj
def doctor(settings: Settings, *, full: bool, bundle: Path | None, as_json: bool) -> int:
    """Check everything, and name the command that mends what does not work.

    It changes nothing. Ends with 0, with 1 if something needs attention, and with 2 if something is broken.

    \b
    Examples:
      reconstitute doctor
      reconstitute doctor --full
      reconstitute doctor --bundle report.txt      for a bug report: no texts of sessions
    """  # noqa: D301 - click's mark for text that is not to be filled
    from daemon.doctor import bundle as report  # noqa: PLC0415 - the service needs none

    if bundle is not None:
        report.check_place(bundle)
    answer, config = _report(settings, full=full)
    for row in answer.checks:
        row.fix = settings.for_commands(row.fix)
    if bundle is not None:
        report.write(bundle, answer, config, service.last_lines)
    if as_json:
        terminal.data(answer)
    else:
        _show(answer.checks)
        if bundle is not None:
            terminal.say(f"Wrote {terminal.plain(bundle)}. Read it before you send it.")
    return exit_code(answer.checks)


def _show(rows: list[Check]) -> None:
    indent = " " * (len(NOT_CHECKED) + 2)
    for row in rows:
        state = terminal.tint(row.state.ljust(len(NOT_CHECKED)), _COLOURS.get(row.state, "white"))
        text = for_commands(f"{row.what}: {row.message}")
        terminal.say(f"{state}  {terminal.fold(text, indent)[len(indent) :]}")
        if row.fix:
            terminal.say(terminal.fold(f"→ {for_commands(row.fix)}", indent, "  "))


def _report(settings: Settings, *, full: bool) -> tuple[Doctor, Config | None]:
    """All rows, and the configuration, None where it has mistakes."""
    rows = [*guarded("python", packages.python), *guarded("packages", packages.packages)]
    config, config_rows = _configuration(settings)
    rows += config_rows
    if config is None:
        rows += guarded("unit", service_checks.installed)
        rows.append(not_checked("archive", "the configuration has mistakes, so it is not known which archive is meant"))
        return Doctor(__version__, None, rows), None
    rows += of_machine(config)
    rows += guarded("unit", service_checks.installed)
    status, row = service_checks.answering(config)
    rows.append(row)
    pid = None if status is None else status.pid
    if pid is not None:
        rows += guarded("hardening", lambda: machine.process(pid, isolation.lack()))
    if row.state == BROKEN:
        rows.append(not_checked("archive", "the service that holds it does not answer", row.fix))
    else:
        rows += _archive(settings, config, pid, full=full)
    return Doctor(__version__, pid, rows), config


def _configuration(settings: Settings) -> tuple[Config | None, list[Check]]:
    try:
        path, config, mistakes = checked(settings)
    except ConfigError as error:
        path, mistakes = Path("configuration"), [error]
    if mistakes:
        fix = "reconstitute config check"
        return None, [broken("configuration", str(mistake), fix) for mistake in mistakes]
    is_there = "correct" if path.exists() else "not there, so the defaults apply"
    return config, [ok("configuration", f"{path}: {is_there}")]


# -- the archive -----------------------------------------------------------------------------------------------------


def _archive(settings: Settings, config: Config, pid: int | None, *, full: bool) -> list[Check]:
    """The rows of whoever holds the archive; where nobody can open it the reason."""
    place = config.archive_dir
    try:
        if not any((place / name).exists() for name in ("leveldb", "leveldb.made")):
            return [attention("archive", f"{place}: nothing is archived yet", "reconstitute index")]
    except PermissionError as error:
        return [broken("archive", f"{place}: {error.strerror}", machine.as_owner(place))]
    try:
        return settings.ask(calls.Doctor(full=full)).checks
    except ArchiveLocked as error:
        cause, _, fix = str(error).partition("; ")
        return [not_checked("archive", f"{cause}, which does not answer", fix)]
    except ReconstituteError as error:
        cause, fix = parted(str(error))
        if pid is not None:  # it stops at this moment, or is of a version without this call
            return [not_checked("archive", f"the service could not check it: {cause}", restart(pid))]
        # As long as the archive cannot be opened, nothing that stands on it can be checked.
        return [broken("archive", cause, fix or shlex.join(["ls", "-l", str(place)]))]
