"""A report for a bug, as one text file: the rows, versions, the configuration without secrets, the last log lines.

It holds no text of a session. The home folder is written as ~, and everything passes the redaction.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from daemon import __version__
from daemon.control.answers import Doctor
from daemon.display import visible
from daemon.doctor.packages import required
from daemon.errors import OutputRefused
from daemon.filesystem import durable
from daemon.redact import redact

if TYPE_CHECKING:
    from daemon.config import Config

_LINES = 200
_LEFT_OUT = frozenset({"adapter.token", "adapter.origins", "redact.extra", "redact.allow", "targets"})
"""Settings of which only the number of characters or entries is told: secrets, patterns, folders and questions."""


def write(path: Path, report: Doctor, config: Config | None, last_lines: Callable[[int], list[str]]) -> None:
    """Write the report; `last_lines` gives so many lines of the log.

    Raises:
        OutputRefused: something is at `path` already, or it cannot be written.
    """
    if os.path.lexists(path):
        raise OutputRefused(f"{path}: is there already; name a new file")
    sections = {
        "Checks": [_row(row.state, row.what, row.message, row.fix) for row in report.checks],
        "Versions": list(_versions()),
        "Configuration (what differs from the defaults)": list(_settings(config)),
        "Log": last_lines(_LINES),
    }
    text = "\n\n".join("\n".join([f"== {title} ==", *lines]) for title, lines in sections.items())
    try:
        durable.atomic_write(path.absolute(), private(text).encode() + b"\n")
    except OSError as error:
        raise OutputRefused(f"{path}: cannot be written: {error.strerror}; name another file") from error


def private(text: str) -> str:
    """`text` without secrets, and with ~ for the home folder and its name."""
    home = os.path.expanduser("~")
    text = visible(redact(text))
    return text.replace(home, "~") if len(home) > 1 else text


def _row(state: str, what: str, message: str, fix: str) -> str:
    return f"{state:<11}  {what}: {message}" + (f"\n{'':<11}  -> {fix}" if fix else "")


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
