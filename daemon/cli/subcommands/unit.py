"""The text of the systemd user unit, where it goes, and whose it is.

The unit is reconstitute.service beside this module, with the path of this installation put in. Its first line carries
the hash of the rest: so a unit that a person edited is told from one that only is of another version.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

NAME = "reconstitute.service"
_SAFE = re.compile(r"[A-Za-z0-9_@+=:,./-]+")
# systemd 252 refuses quotes and backslashes in the program's own path, and does not undo $$ there.
_NOT_IN_PROGRAM = frozenset("\"'\\$\n\t")
_STAMP = re.compile(r"# Written by `reconstitute service install`; sha256 of the rest: ([0-9a-f]{64})\n")


def template() -> str:
    """The unit as shipped, with a generic ExecStart."""
    return files("daemon.cli").joinpath(NAME).read_text(encoding="utf-8")


def text(command: list[str], environment: Mapping[str, str] = MappingProxyType({})) -> str:
    """The unit that runs `command` with these variables besides its own, stamped."""
    if set(command[0]) & _NOT_IN_PROGRAM:
        command = ["/bin/sh", "-c", 'exec "$0" "$@"', *command]
    start = "ExecStart=" + " ".join(quote(word) for word in command)
    lines = [start, *(_setting(name, value) for name, value in environment.items())]
    body = re.sub(r"^ExecStart=.*$", lambda _: "\n".join(lines), template(), flags=re.MULTILINE)
    digest = hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()
    return f"# Written by `reconstitute service install`; sha256 of the rest: {digest}\n{body}"


def is_untouched(unit: str) -> bool:
    """Whether this unit is as some version of `text` wrote it."""
    stamp = _STAMP.match(unit)
    body = unit[stamp.end() :] if stamp else ""
    return stamp is not None and hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest() == stamp[1]


def quote(word: str) -> str:
    """One word of a command line as systemd reads it (systemd.service(5), Command lines)."""
    if _SAFE.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _setting(name: str, value: str) -> str:
    """One variable; unlike in a command line, a $ means nothing there (systemd.exec(5), Environment=)."""
    return "Environment=" + quote(f"{name}={value}").replace("$$", "$")


def place() -> Path:
    """Where the unit goes: systemd/user/ in $XDG_CONFIG_HOME."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "systemd" / "user" / NAME


def installation() -> list[str]:
    """The command that starts this very installation: its `reconstitute`, else its Python with this package."""
    beside = Path(sys.executable).parent / "reconstitute"
    called = Path(os.path.abspath(sys.argv[0]))
    for program in (called, beside):
        if program.name == "reconstitute" and program.is_file() and os.access(program, os.X_OK):
            return [str(program)]
    return [os.path.abspath(sys.executable), "-m", "daemon.cli"]
