"""The configuration: one frozen value, read from one TOML file, defined by one schema.

`load` validates against the structures of `sections`, `check` finds all mistakes, `example` prints the structures.
Every key is optional. A wrong key, type or value raises ConfigError naming file, key and fix. Nothing here touches the
disk except the file itself.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from daemon.config import checks
from daemon.config.sections import (
    ENVIRONMENT,
    Adapter,
    Agent,
    ArchiveSection,
    Chat,
    Config,
    Embedding,
    Exclude,
    Index,
    Limits,
    Log,
    OpenCode,
    Output,
    Redact,
    TargetSection,
    Watch,
    cache_dir,
    home,
)
from daemon.errors import ConfigError

__all__ = [
    "ENVIRONMENT", "Adapter", "Agent", "ArchiveSection", "Chat", "Config", "Embedding", "Exclude", "Index", "Limits",
    "Log", "OpenCode", "Output", "Redact", "TargetSection", "Watch", "cache_dir", "changes", "check", "default_path",
    "example", "load",
]  # fmt: skip

# msgspec builds its data about a type at the first use, and a second thread that uses it meanwhile crashes the process.
# An import happens in one thread.
msgspec.json.Decoder(Config)


def default_path() -> Path:
    """The path of the configuration: $RECONSTITUTE_CONFIG, else $XDG_CONFIG_HOME/reconstitute/config.toml."""
    named = os.environ.get("RECONSTITUTE_CONFIG", "")
    return Path(named) if named else Path(home("XDG_CONFIG_HOME", ".config")) / "reconstitute" / "config.toml"


def load(path: Path | None = None) -> Config:
    """The configuration that the file and the environment give.

    A file named by the caller or by $RECONSTITUTE_CONFIG must exist; the default one may be missing.

    Raises:
        ConfigError: the first mistake, naming the file, the key and the fix.
    """
    config, mistakes = check(path)
    for mistake in mistakes:
        raise mistake
    return config


def check(path: Path | None = None) -> tuple[Config, list[ConfigError]]:
    """The configuration with defaults in place of unknown keys and values of a wrong type, and all mistakes.

    Raises:
        ConfigError: the file is missing, cannot be read, or is not TOML.
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
    blame = checks.Blame(path, origin)
    mistakes = list(checks.unknown(tables, Config, blame))
    config, wrong = checks.converted(tables, blame)
    return config, [*mistakes, *wrong, *checks.together(config, blame)]


def changes(before: Config, after: Config) -> list[str]:
    """The keys in which two configurations differ; of the targets only "targets"."""
    old, new = msgspec.to_builtins(before), msgspec.to_builtins(after)
    keys = []
    for section in new:
        if isinstance(new[section], dict):
            keys += [f"{section}.{key}" for key in new[section] if old[section][key] != new[section][key]]
        elif old[section] != new[section]:
            keys.append(section)
    return keys


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
    except ValueError:  # Python converts no integer of more than 4300 digits
        raise ConfigError(f"{path}: a number is too long; write a shorter one") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply; see config.example.toml for the form") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None


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
        default_text = checks.toml(default) if default is not None else '"~/projects/demo"'
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
