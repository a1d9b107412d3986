"""The configuration: one frozen value, read from one TOML file, defined by one schema.

`load` validates against the structures of `sections`, `example` prints them. Every key is optional. A wrong key, type
or value raises ConfigError naming file, key and fix. Nothing here touches the disk except the file itself.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from daemon.config.sections import (
    ENVIRONMENT,
    Adapter,
    Agent,
    ArchiveSection,
    Chat,
    Config,
    Embedding,
    Index,
    Limits,
    Log,
    OpenCode,
    Output,
    Redact,
    Section,
    TargetSection,
    Watch,
    cache_dir,
    home,
)
from daemon.errors import ConfigError

__all__ = [
    "ENVIRONMENT", "Adapter", "Agent", "ArchiveSection", "Chat", "Config", "Embedding", "Index", "Limits", "Log",
    "OpenCode", "Output", "Redact", "TargetSection", "Watch", "cache_dir", "default_path", "example", "load",
]  # fmt: skip

# msgspec builds its data about a type at the first use, and a second thread that uses it meanwhile crashes the process.
# An import happens in one thread.
msgspec.json.Decoder(Config)


def default_path() -> Path:
    """The path of the configuration: $RECONSTITUTE_CONFIG, else $XDG_CONFIG_HOME/reconstitute/config.toml."""
    named = os.environ.get("RECONSTITUTE_CONFIG", "")
    return Path(named) if named else Path(home("XDG_CONFIG_HOME", ".config")) / "reconstitute" / "config.toml"


def load(path: Path | None = None) -> Config:
    """Read, override from the environment, validate.

    A file named by the caller or by $RECONSTITUTE_CONFIG must exist; the default one may be missing.

    Raises:
        ConfigError: naming the file, the key and the fix.
    """
    named = path is not None or bool(os.environ.get("RECONSTITUTE_CONFIG"))
    path = path or default_path()
    tables = _read(path, must_exist=named)
    origin = {}
    for variable, (section, key) in ENVIRONMENT.items():
        if variable in os.environ:
            table = tables.setdefault(section, {})
            if isinstance(table, dict):
                table[key] = os.environ[variable]
                origin[f"{section}.{key}"] = variable
    _reject_unknown(tables, Config, path, "")
    try:
        config = msgspec.convert(tables, Config)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        key = where.rstrip("`")
        missing = re.fullmatch(r"Object missing required field `(\w+)`", reason)
        if missing:
            key, reason = f"{key}.{missing[1]}", "is missing"
        place = f"environment variable {origin[key]}" if key in origin else f"{path}: {key or 'the file'}"
        raise ConfigError(f"{place}: {reason[0].lower()}{reason[1:]}; {fix(key)}") from None
    _reject_relative(config, path, origin)
    _reject_addresses(config, path, origin)
    _reject_targets(config, path)
    _reject_patterns(config, path)
    return config


def _read(path: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if must_exist:
            raise ConfigError(f"{path}: there is no such file; name another with --config, or leave it out") from None
        return {}
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}; see config.example.toml for the form") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


def _reject_unknown(table: object, schema: type, path: Path, prefix: str) -> None:
    if not isinstance(table, dict):
        return
    fields = get_type_hints(schema)
    for key, value in table.items():
        if key not in fields:
            similar = difflib.get_close_matches(key, fields, n=1)
            hint = f"did you mean {prefix}{similar[0]}?" if similar else f"known here: {', '.join(sorted(fields))}"
            raise ConfigError(f"{path}: {prefix}{key}: unknown key; {hint}")
        if get_origin(fields[key]) is list and isinstance(value, list):
            for number, item in enumerate(value):
                if isinstance(get_args(fields[key])[0], type) and issubclass(get_args(fields[key])[0], Section):
                    _reject_unknown(item, get_args(fields[key])[0], path, f"{prefix}{key}[{number}].")
        elif isinstance(fields[key], type) and issubclass(fields[key], Section):
            _reject_unknown(value, fields[key], path, f"{prefix}{key}.")


def _reject_relative(config: Config, path: Path, origin: dict[str, str]) -> None:
    """`origin`: the keys whose values came from the environment, and the variable of each."""

    def blamed(*keys: str) -> str:
        variable = next((origin[key] for key in keys if key in origin), "")
        return f"environment variable {variable}" if variable else str(path)

    places = {"opencode.data_dir": config.opencode.data_dir, "archive.dir": config.archive.dir}
    places |= {"output.dir": config.output.dir, "watch.requests_dir": config.watch.requests_dir or "/"}
    places |= {f"targets[{n}].path": target.path for n, target in enumerate(config.targets)}
    places |= {f"opencode.data_dirs[{n}]": text for n, text in enumerate(config.opencode.data_dirs)}
    named = enumerate(config.opencode.databases)
    places |= {f"opencode.databases[{n}]": text for n, text in named if text.startswith("~")}
    if any("\0" in name or not name for name in config.opencode.databases):
        raise ConfigError(f"{path}: opencode.databases: an empty name, or one with a NUL; name a file")
    for key, text in places.items():
        if not text.startswith(("/", "~", "$XDG_DATA_HOME")) or "\0" in text:
            raise ConfigError(f"{blamed(key)}: {key}: {text!r} is relative; write it from / or ~ on")
        if os.path.expanduser(text).startswith("~"):
            raise ConfigError(f"{blamed(key)}: {key}: {text!r}: there is no such user here; write it from / or ~/ on")
    archive, output = config.archive_dir, config.output_dir
    for source in config.opencode_dirs:
        if archive.is_relative_to(source):
            place = blamed("archive.dir", "opencode.data_dir")
            raise ConfigError(f"{place}: archive.dir: {archive} is inside OpenCode's directory; choose one outside it")
    sources = [("opencode.data_dir", source) for source in config.opencode_dirs]
    for key, records in (*sources, ("archive.dir", archive)):
        if output.is_relative_to(records):
            place = blamed("output.dir", key)
            raise ConfigError(f"{place}: output.dir: {output} is inside a directory of records; choose one outside it")


def _reject_addresses(config: Config, path: Path, origin: dict[str, str]) -> None:
    addresses = {"chat.url": config.chat.url, "embedding.url": config.embedding.url}
    for key, url in (addresses | {"opencode.server_url": config.opencode.server_url}).items():
        try:
            parts = urlsplit(url)
            is_address = bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
        except ValueError:  # brackets that do not match, or a port that is no number
            is_address = False
        if not is_address:
            place = f"environment variable {origin[key]}" if key in origin else f"{path}: {key}"
            raise ConfigError(f"{place}: {url!r} is no address; {fix(key)}")


def _reject_patterns(config: Config, path: Path) -> None:
    if not (config.redact.extra or config.redact.allow):
        return
    import regex  # type: ignore[import-untyped]  # noqa: PLC0415 - a fifth of what a command loads; it ships no types

    for key, patterns in (("extra", config.redact.extra), ("allow", config.redact.allow)):
        for number, pattern in enumerate(patterns):
            try:
                compiled = regex.compile(pattern)
            except regex.error as error:
                reason = f"{pattern!r} is no regular expression: {error}; mend it, or leave it out"
                raise ConfigError(f"{path}: redact.{key}[{number}]: {reason}") from None
            if compiled.fullmatch(""):
                reason = f"{pattern!r} matches the empty text; make it match at least one character"
                raise ConfigError(f"{path}: redact.{key}[{number}]: {reason}")


def _reject_targets(config: Config, path: Path) -> None:
    """Reject targets that are invalid by themselves, or that repeat another one."""
    numbers: dict[str, int] = {}
    for number, target in enumerate(config.targets):
        place = f"{path}: targets[{number}]"
        if target.place == "/":
            raise ConfigError(
                f"{place}.path: {target.path!r} is the root, which is no target; name a folder beneath it"
            )
        if target.refresh == "scheduled" and not target.schedule.strip():
            raise ConfigError(
                f'{place}.schedule: is missing where refresh is "scheduled"; say when, for example "0 3 * * *", or '
                f"leave refresh out"
            )
        if target.place in numbers:
            first = f"targets[{numbers[target.place]}]"
            raise ConfigError(f"{place}.path: {target.path!r} is the path of {first} too; keep one of the two")
        numbers[target.place] = number


def fix(key: str) -> str:
    """The advice for a wrong value of this key."""
    field = _find(key)
    if field is None:
        return "see config.example.toml for the form"
    if field.required:
        return "give the folder's path" if field.name == "path" else "it must be given"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"the default is {_toml(default)}"


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


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)


def _lines(schema: type[msgspec.Struct]) -> list[str]:
    hints = get_type_hints(schema, include_extras=True)
    lines = []
    for field in msgspec.structs.fields(schema):
        meta = next((m for m in get_args(hints[field.name])[1:] if isinstance(m, Meta)), Meta())
        base = get_args(hints[field.name])[0] if get_args(hints[field.name]) else hints[field.name]
        choices = f" ({' | '.join(get_args(base))})" if get_origin(base) is Literal else ""
        default: object = field.default if field.default is not msgspec.NODEFAULT else None
        if default is None and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        default_text = _toml(default) if default is not None else '"~/projects/demo"'
        lines += [f"# {meta.description}{choices}", f"# {field.name} = {default_text}"]
    return lines


def example() -> str:
    """The text of config.example.toml: every key with its default, commented out, from the schema."""
    lines = [
        "# Reconstitute: every key is optional; what stands here is the default.",
        "# Copy to ~/.config/reconstitute/config.toml and uncomment what you change.",
        "# The environment overrides: " + ", ".join(f"{v} ({s}.{k})" for v, (s, k) in ENVIRONMENT.items()) + ".",
    ]
    for field in msgspec.structs.fields(Config):
        is_list = get_origin(field.type) is list
        schema = get_args(field.type)[0] if is_list else field.type
        header = f"# [[{field.name}]]" if is_list else f"[{field.name}]"
        doc = (schema.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"# {doc}", header, *_lines(schema)]
    return "\n".join(lines) + "\n"
