"""The formatters in OpenCode's configuration, as it is on disk now or as it was recorded.

OpenCode merges the configuration of the user's home with those of the session's folder and of every folder above it,
and with the administrator's in /etc/opencode, on macOS in /Library/Application Support/opencode. We read and keep only
the formatters.
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from daemon import records
from daemon.errors import BadRecord, SourceBusy
from daemon.opencode import json_files

CONFIGURATIONS = ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc")
"""Where a folder has its configuration."""
ANY = "*"
"""In place of an extension: a configuration whose text is unknown may name any extension."""

_GLOBAL = ("config.json", "opencode.json", "opencode.jsonc")
_LONGEST = 1 << 20  # bytes
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


@dataclass(frozen=True, slots=True)
class Settings:
    """The formatters that configurations allow: whether built-in ones are on, and which extensions are added."""

    is_on: bool = False
    extensions: frozenset[str] = frozenset()

    def __or__(self, other: Settings) -> Settings:
        return Settings(self.is_on or other.is_on, self.extensions | other.extensions)

    def __bool__(self) -> bool:
        return self.is_on or bool(self.extensions)


UNKNOWN = Settings(is_on=True, extensions=frozenset({ANY}))
"""For a configuration that existed and whose text is unknown."""


@lru_cache(maxsize=256)
def settings_in(text: str) -> Settings:
    """The settings in a configuration (JSON with comments); UNKNOWN if it cannot be parsed."""
    plain = _LAST_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text.removeprefix("\ufeff")))
    try:
        formatter = records.table(records.loads(plain.encode("utf-8", "replace"))).get("formatter")
    except BadRecord:
        return UNKNOWN
    if not isinstance(formatter, dict):
        return Settings(is_on=bool(formatter))
    return Settings(is_on=True, extensions=frozenset(_listed(formatter.values())))


def places(directory: str) -> Iterator[str]:
    """The paths where the configuration of a session in `directory` may lie, except the user's own."""
    folder = directory
    while folder.startswith("/"):
        yield from (posixpath.join(folder, name) for name in CONFIGURATIONS)
        if folder == "/":
            return
        folder = posixpath.dirname(folder)


def configured_by(path: str) -> Iterator[str]:
    """The folder whose configuration lies at `path`, if that is what it is."""
    for name in CONFIGURATIONS:
        if path.endswith(f"/{name}"):
            yield path.removesuffix(f"/{name}") or "/"


def on_disk(directory: str, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings for a session in `directory` on this machine now; missing files add nothing."""
    settings = settings_in(environment.get("OPENCODE_CONFIG_CONTENT") or "{}")
    for place in (*_of_machine(environment), *_of_user(environment, directory), *places(directory)):
        try:
            settings |= settings_in(json_files.read(Path(place), _LONGEST).decode("utf-8", "replace"))
        except (BadRecord, SourceBusy):
            continue  # not there, or not readable for OpenCode either
    return settings


def _of_machine(environment: Mapping[str, str], platform: str = sys.platform) -> Iterator[str]:
    """The administrator's configuration; OpenCode's own tests set another folder by this variable."""
    usual = "/Library/Application Support/opencode" if platform == "darwin" else "/etc/opencode"
    folder = environment.get("OPENCODE_TEST_MANAGED_CONFIG_DIR") or usual
    yield from (posixpath.join(folder, name) for name in _GLOBAL)


def _of_user(environment: Mapping[str, str], directory: str) -> Iterator[str]:
    home = environment.get("HOME", "")
    base = environment.get("XDG_CONFIG_HOME") or posixpath.join(home, ".config")
    folders = [posixpath.join(base, "opencode"), posixpath.join(home, ".opencode")]
    folders += filter(None, [environment.get("OPENCODE_CONFIG_DIR", "")])
    yield from (posixpath.join(folder, name) for folder in folders if folder.startswith("/") for name in _GLOBAL)
    if environment.get("OPENCODE_CONFIG"):
        yield posixpath.join(directory, environment["OPENCODE_CONFIG"])  # a relative one: OpenCode began in that folder


def to_json(settings: Settings) -> str:
    """For the archive."""
    return records.dumps({"on": settings.is_on, "extensions": sorted(settings.extensions)}).decode()


def from_json(text: str) -> Settings:
    """The inverse of `to_json`; an empty text gives empty settings."""
    entry = records.table(records.loads(text.encode())) if text else {}
    return Settings(bool(entry.get("on")), frozenset(entry.get("extensions") or ()))


def _listed(tables: Iterable[object]) -> Iterator[str]:
    for table in tables:
        extensions = records.table(table).get("extensions")
        yield from (
            extension
            for extension in (extensions if isinstance(extensions, list) else ())
            if isinstance(extension, str)
        )
