"""A report for a bug, as one text file: the rows, versions, the configuration without secrets, the last log lines.

It holds no text of a session, and no path of a project: only those of the system, of the sources and of what is ours.
The home folder is written as ~, and everything passes the redaction.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from daemon import __version__
from daemon.config.sections import cache_dir, home
from daemon.control.answers import Doctor
from daemon.display import visible
from daemon.doctor.packages import required
from daemon.errors import OutputRefused
from daemon.filesystem import durable
from daemon.hints import for_commands
from daemon.redact import redact

if TYPE_CHECKING:
    from daemon.config import Config

_LINES = 200
_LEFT_OUT = frozenset({
    "adapter.token", "adapter.origins", "redact.extra", "redact.allow", "targets",
    "exclude.paths", "exclude.projects", "exclude.agents",
})  # fmt: skip
"""Settings of which only the number of characters or entries is told: secrets, patterns, folders and questions."""
_PATH = re.compile(r"(?<![\w./~])/(?!/)[^\s'\"`,;()<>]*[^\s'\"`,;()<>:.]")
_SYSTEM = ("/bin", "/etc", "/lib", "/proc", "/run/systemd", "/run/user", "/sys", "/usr", sys.prefix, sys.base_prefix)


def write(path: Path, report: Doctor, config: Config | None, last_lines: Callable[[int], list[str]]) -> None:
    """Write the report; `last_lines` gives so many lines of the log.

    Raises:
        OutputRefused: something is at `path` already, or it cannot be written.
    """
    check_place(path)
    sections = {
        "Checks": [_row(row.state, row.what, row.message, row.fix) for row in report.checks],
        "Versions": list(_versions()),
        "Configuration (what differs from the defaults)": list(_settings(config)),
        "Log": last_lines(_LINES),
    }
    text = "\n\n".join("\n".join([f"== {title} ==", *lines]) for title, lines in sections.items())
    try:
        durable.atomic_write(path.absolute(), private(text, places(config)).encode() + b"\n")
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; name another file") from error


def check_place(path: Path) -> None:
    """Raises OutputRefused if something is at `path` already: before the checks, which take a while."""
    if os.path.lexists(path):
        raise OutputRefused(f"{path}: is there already; name a new file")


def private(text: str, places: Mapping[str, bool]) -> str:
    """`text` without secrets, without paths but those of `places`, and with ~ for the home folder and its name."""
    user = os.path.expanduser("~")
    text = _PATH.sub(lambda match: _told(match[0], places), visible(redact(text)))
    return text.replace(user, "~") if len(user) > 1 else text


def _told(path: str, places: Mapping[str, bool]) -> str:
    place = max((place for place in places if f"{path}/".startswith(f"{place}/")), key=len, default="")
    return path if path == place or places.get(place) else f"{place}/…"


def places(config: Config | None) -> dict[str, bool]:
    """The places that are told, and whether what is beneath them is too: pages and requests have names of projects."""
    settings = home("XDG_CONFIG_HOME", ".config")
    ours = [*_SYSTEM, f"{settings}/reconstitute", f"{settings}/systemd", str(cache_dir())]
    if config is None:
        return dict.fromkeys(ours, True)
    ours += map(str, (config.archive_dir, config.socket_path.parent, *config.opencode_dirs))
    named = [str(config.output_dir), str(config.requests_dir), *map(os.path.expanduser, config.opencode.databases)]
    return dict.fromkeys(ours, True) | dict.fromkeys(named, False)


def _row(state: str, what: str, message: str, fix: str) -> str:
    text = f"{state:<11}  {what}: {message}" + (f"\n{'':<11}  -> {fix}" if fix else "")
    return for_commands(text)


def _versions() -> Iterator[str]:
    yield f"reconstitute {__version__}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}"
    try:
        yield from (f"{name} {version or 'not installed'}" for name, version in sorted(required().items()))
    except metadata.PackageNotFoundError:
        yield "not installed as a package: the versions of the libraries are not known"


def _settings(config: Config | None) -> Iterator[str]:
    if config is None:
        yield "it has mistakes; see above"
        return
    now, defaults = msgspec.to_builtins(config), msgspec.to_builtins(type(config)())
    for section, table in now.items():
        entries: dict[str, Any] = (
            {f"{section}.{key}": (value, defaults[section][key]) for key, value in table.items()}
            if isinstance(table, dict)
            else {section: (table, defaults[section])}
        )
        for key, (value, default) in entries.items():
            if value != default:
                yield f"{key} = {f'({len(value)} long, left out)' if key in _LEFT_OUT else value!r}"
