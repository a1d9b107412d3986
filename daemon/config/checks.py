"""What is wrong with a configuration, each mistake as a ConfigError that names the file, the key and the fix.

`converted` makes a Config of the file's tables, with defaults in place of what is wrong. The others yield the mistakes
of a Config that only several of its values together show, or that no type can tell.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from daemon.config.sections import Config, Section
from daemon.errors import ConfigError

_LONGEST_VALUE = 80
_SECRET = frozenset({"adapter", "adapter.token"})
"""Keys whose value is not repeated, because it is, or holds, a password."""
_ELEMENT = re.compile(r"(.*[^\]])\[(\d+)\]")
"""The key of a list's element, such as ``redact.extra[1]``."""


class Blame:
    """Where a value was written: in the file, or in a variable of the environment."""

    def __init__(self, path: Path, origin: Mapping[str, str]) -> None:
        """`origin`: the keys whose values came from the environment, and the variable of each."""
        self._path, self._origin = path, origin
        self._removed: dict[str, list[int]] = {}

    def remove(self, name: str, number: int) -> None:
        """An element is taken out of this list; the later ones keep the numbers that they have in the file."""
        self._removed.setdefault(name, []).append(self._original(name, number))

    def _original(self, name: str, number: int) -> int:
        for removed in self._removed.get(name, ()):  # ascending, because the first wrong element is removed first
            number += removed <= number
        return number

    def error(self, key: str, reason: str, *further: str) -> ConfigError:
        """`further`: keys that are to blame as well, if they came from the environment."""
        variable = next((self._origin[name] for name in (key, *further) if name in self._origin), "")
        place = f"environment variable {variable}" if variable else str(self._path)
        element = _ELEMENT.fullmatch(key)
        if element:
            key = f"{element[1]}[{self._original(element[1], int(element[2]))}]"
        # A variable stands for one key; which one its mistake concerns is of interest only if it is another.
        named = "" if variable and not further and key in self._origin else f"{key or 'the file'}: "
        return ConfigError(f"{place}: {named}{reason}")


def unknown(table: object, schema: type, blame: Blame, prefix: str = "") -> Iterator[ConfigError]:
    """Take unknown keys out of the table, and yield a mistake for each."""
    if not isinstance(table, dict):
        return
    fields = get_type_hints(schema)
    for key, value in list(table.items()):
        if key not in fields:
            similar = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {prefix}{similar[0]}?" if similar else f"known here: {', '.join(sorted(fields))}"
            del table[key]
            yield blame.error(f"{prefix}{key}", f"unknown key; {hint}")
        elif get_origin(fields[key]) is list and isinstance(value, list):
            of = get_args(fields[key])[0]
            for number, item in enumerate(value):
                if isinstance(of, type) and issubclass(of, Section):
                    yield from unknown(item, of, blame, f"{prefix}{key}[{number}].")
        elif isinstance(fields[key], type) and issubclass(fields[key], Section):
            yield from unknown(value, fields[key], blame, f"{prefix}{key}.")


def converted(tables: dict[str, Any], blame: Blame) -> tuple[Config, list[ConfigError]]:
    """The configuration with defaults in place of wrong values, which are taken out of the tables, and the mistakes."""
    mistakes: list[ConfigError] = []
    while True:
        try:
            return msgspec.convert(tables, Config), mistakes
        except msgspec.ValidationError as error:
            reason, _, where = str(error).partition(" - at `$.")
            key = where.rstrip("`")
            missing = re.fullmatch(r"Object missing required field `(\w+)`", reason)
            if missing:
                key, reason = f"{key}.{missing[1]}", "is missing"
            value = _take_out(tables, key)
            text = _text(value)
            is_left_out = missing or key in _SECRET or text in reason
            prefix = "" if is_left_out else f"{_shortened(text)}: "
            mistakes.append(blame.error(key, f"{prefix}{reason[0].lower()}{reason[1:]}; {fix(key)}"))
            element = _ELEMENT.fullmatch(key)
            if element and element[1] != "targets":
                blame.remove(element[1], int(element[2]))
            if not key:
                return Config(), mistakes


def _text(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number that is too long"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _take_out(tables: dict[str, Any], key: str) -> Any:
    """Remove the value at a key such as ``targets[0].path``, and return it.

    A target without a usable path gets one that stands for it, so that the others keep their numbers.
    """
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", key)]
    if not steps:
        return None
    holder: Any = tables
    for step in steps[:-1]:
        holder = holder[step]
    last = steps[-1]
    value = holder.get(last) if isinstance(holder, dict) else holder[last]
    if steps[0] == "targets" and len(steps) > 1 and (len(steps) == 2 or last == "path"):
        stand_in = f"/targets[{steps[1]}]"
        holder[last] = stand_in if last == "path" else {"path": stand_in}
    elif isinstance(holder, dict):
        holder.pop(last)
    else:
        del holder[last]
    return value


def together(config: Config, blame: Blame) -> Iterator[ConfigError]:
    """The mistakes of values that are right by their types."""
    yield from _places(config, blame)
    yield from _addresses(config, blame)
    yield from _targets(config, blame)
    yield from _patterns(config, blame)
    yield from _excluded(config, blame)


def _places(config: Config, blame: Blame) -> Iterator[ConfigError]:
    places = {"opencode.data_dir": config.opencode.data_dir, "archive.dir": config.archive.dir}
    places |= {"output.dir": config.output.dir, "watch.requests_dir": config.watch.requests_dir or "/"}
    places |= {f"targets[{n}].path": target.path for n, target in enumerate(config.targets)}
    places |= {f"opencode.data_dirs[{n}]": text for n, text in enumerate(config.opencode.data_dirs)}
    named = enumerate(config.opencode.databases)
    places |= {f"opencode.databases[{n}]": text for n, text in named if text.startswith("~")}
    if any("\0" in name or not name for name in config.opencode.databases):
        yield blame.error("opencode.databases", "an empty name, or one with a NUL; name a file")
    wrong = set()
    for key, text in places.items():
        reason = _not_absolute(text)
        if not reason:
            continue
        wrong.add(key)
        yield blame.error(key, reason)
    if not wrong & {"opencode.data_dir", "archive.dir", "output.dir"}:
        yield from _nested(config, blame)


def _nested(config: Config, blame: Blame) -> Iterator[ConfigError]:
    archive, output = config.archive_dir, config.output_dir
    for source in config.opencode_dirs:
        if archive.is_relative_to(source):
            reason = f"{archive} is inside OpenCode's directory; choose one outside it"
            yield blame.error("archive.dir", reason, "opencode.data_dir")
    sources = [("opencode.data_dir", source) for source in config.opencode_dirs]
    for key, records in (*sources, ("archive.dir", archive)):
        if output.is_relative_to(records):
            reason = f"{output} is inside a directory of records; choose one outside it"
            yield blame.error("output.dir", reason, key)


def _addresses(config: Config, blame: Blame) -> Iterator[ConfigError]:
    addresses = {"chat.url": config.chat.url, "embedding.url": config.embedding.url}
    for key, url in (addresses | {"opencode.server_url": config.opencode.server_url}).items():
        try:
            parts = urlsplit(url)
            is_address = bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
        except ValueError:  # brackets that do not match, or a port that is no number
            is_address = False
        if not is_address:
            yield blame.error(key, f"{url!r} is no address; {fix(key)}")


def _targets(config: Config, blame: Blame) -> Iterator[ConfigError]:
    """Targets that are invalid by themselves, or that repeat another one."""
    numbers: dict[str, int] = {}
    for number, target in enumerate(config.targets):
        place = f"targets[{number}]"
        if target.place == "/":
            yield blame.error(
                f"{place}.path", f"{target.path!r} is the root, which is no target; name a folder beneath it"
            )
        if target.refresh == "scheduled" and not target.schedule.strip():
            yield blame.error(
                f"{place}.schedule",
                'is missing where refresh is "scheduled"; say when, for example "0 3 * * *", or leave refresh out',
            )
        if target.place in numbers:
            first = f"targets[{numbers[target.place]}]"
            yield blame.error(f"{place}.path", f"{target.path!r} is the path of {first} too; keep one of the two")
        numbers.setdefault(target.place, number)


def _patterns(config: Config, blame: Blame) -> Iterator[ConfigError]:
    if not (config.redact.extra or config.redact.allow):
        return
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - a fifth of what a command loads; it ships no types

    for key, patterns in (("extra", config.redact.extra), ("allow", config.redact.allow)):
        for number, pattern in enumerate(patterns):
            place = f"redact.{key}[{number}]"
            try:
                compiled = regex.compile(pattern)
            except regex.error as error:
                yield blame.error(place, f"{pattern!r} is no regular expression: {error}; mend it, or leave it out")
                continue
            if compiled.fullmatch(""):
                yield blame.error(place, f"{pattern!r} matches the empty text; make it match at least one character")


def _excluded(config: Config, blame: Blame) -> Iterator[ConfigError]:
    for number, text in enumerate(config.exclude.projects):
        if reason := _not_absolute(text):
            yield blame.error(f"exclude.projects[{number}]", reason)
    if not config.exclude.paths:
        return
    from daemon.path_patterns import PathPatterns  # noqa: PLC0415 - a fifth of what a command loads

    for number, text in enumerate(config.exclude.paths):
        key, body = f"exclude.paths[{number}]", text.removeprefix("!")
        if body.startswith("~") and (reason := _not_absolute(body)):
            yield blame.error(key, reason)
            continue
        try:
            PathPatterns([text])
        except ValueError as error:
            yield blame.error(key, f"{error}; write a pattern as in a .gitignore file, or a path from / or ~ on")
            continue
        if "/" in body.rstrip("/") and not body.startswith(("/", "~", "**/")):
            yield blame.error(key, f"{text!r} is relative; write it from / or ~ on, or with **/ before it")
        elif not body.strip("/*"):
            yield blame.error(key, f"{text!r} matches every file; name a folder, or leave it out")


def _not_absolute(text: str) -> str:
    """Why a path is not one from / or ~ on; empty if it is."""
    if not text.startswith(("/", "~", "$XDG_DATA_HOME")) or "\0" in text:
        return f"{text!r} is relative; write it from / or ~ on"
    if os.path.expanduser(text).startswith("~"):
        return f"{text!r}: there is no such user here; write it from / or ~/ on"
    return ""


def fix(key: str) -> str:
    """The advice for a wrong value of this key."""
    if re.fullmatch(r"targets(\[\d+\])?", key):
        return "write each target as a table that begins with [[targets]]"
    field = _find(key)
    if field is None:
        return "see config.example.toml for the form"
    if field.required:
        return "give the folder's path" if field.name == "path" else "it must be given"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if isinstance(default, Section):
        return f"write it as a table that begins with [{key}]"
    base = get_args(field.type)[0] if get_origin(field.type) is Annotated else field.type
    choices = f"it is one of {', '.join(get_args(base))}; " if get_origin(base) is Literal else ""
    return f"{choices}the default is {toml(default)}"


def _find(key: str) -> msgspec.structs.FieldInfo | None:
    schema: Any = Config
    field = None
    for name in re.sub(r"\[[^]]*\]", "", key).split("."):
        fields = {f.name: f for f in msgspec.structs.fields(schema)} if isinstance(schema, type) else {}
        field = fields.get(name)
        if field is None:
            return None
        schema = get_args(field.type)[0] if get_origin(field.type) is list else field.type
    return field


def toml(value: object) -> str:
    """A value as the file writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)
