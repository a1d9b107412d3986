"""What the schema says of itself: the example file, and how to mend a key."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from daemon.config.sections import ENVIRONMENT, Config


def fix(key: str) -> str:
    """What to do about a wrong value of this key."""
    field = _find(key)
    if field is None:
        return "see config.example.toml for the form"
    if field.required:
        return "give the folder's path" if field.name == "path" else "it must be given"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"the default is {_toml(default)}"


def _find(key: str) -> msgspec.structs.FieldInfo | None:
    schema: Any = Config
    found = None
    for name in re.sub(r"\[[^]]*\]", "", key).split("."):
        fields = {f.name: f for f in msgspec.structs.fields(schema)} if isinstance(schema, type) else {}
        found = fields.get(name)
        if found is None:
            return None
        schema = get_args(found.type)[0] if get_origin(found.type) is list else found.type
    return found


def _toml(value: Any) -> str:
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
        default: Any = field.default if field.default is not msgspec.NODEFAULT else None
        if default is None and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        shown = _toml(default) if default is not None else '"~/projects/demo"'
        lines += [f"# {meta.description}{choices}", f"# {field.name} = {shown}"]
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
