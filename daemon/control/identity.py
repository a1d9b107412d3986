"""Which archive, sources and settings a call means: named by the client, checked by the service before it works.

One control socket serves a user, whatever archive the service behind it keeps. So each call carries the settings that
its answer depends on; a service with others refuses it. A call that names nothing is answered by whichever service
there is.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
from collections.abc import Collection, Mapping

import msgspec

from daemon import supervisor
from daemon.config import Config
from daemon.errors import BadRequest, ConfigError, ServesAnother
from daemon.notify import Notifier

HEADER = "reconstitute-means"
ZONE = "reconstitute-zone"
"""The header with the caller's time zone, in which the days and times that it names are meant."""
ARCHIVE = "archive.dir"

_PLACES = ("archive.dir", "opencode.data_dir", "output.dir")
_SERVER = ("opencode.server_url", "opencode.server_model")
"""What of [opencode] only answers of a model depend on; all else in it says which records are read."""

_DATABASES = "opencode.databases"

_WORDS = ("limits.indexed_kb",)
_SEARCH = (*_WORDS, "embedding", "index", "limits.embedded_kb")
_DEPENDS = {
    "recall/recall": _SEARCH,
    "recall/recall_messages": _WORDS,
    "recall/recall_timeline": _WORDS,
    "recall/recall_files": _WORDS,
    "index": ("embedding", "index", "limits", "archive", "exclude"),
    "models": ("embedding", "limits.indexed_kb", "limits.embedded_kb"),
    "reconstitute": (*_SEARCH, "limits.pages", "chat", "agent", "output", "targets", *_SERVER),
    "estimate": (*_SEARCH, "chat", "agent", "targets", *_SERVER),
    "status": ("",),
}
"""Sections and keys that the answer of a call depends on, beside the archive and the sources; "" is all of them."""

_OLLAMA = ("model", "url", "num_ctx")
_PROVIDER_KEYS = {
    "embedding": {
        "builtin": ("what", "model_dir"),
        "ollama": ("what", *_OLLAMA, "batch"),
        "auto": ("what", "model_dir", *_OLLAMA, "batch"),
    },
    "chat": {
        "none": (),
        "opencode": ("timeout_seconds",),
        "ollama": (*_OLLAMA, "think", "keep_alive", "timeout_seconds"),
        "auto": (*_OLLAMA, "think", "keep_alive", "timeout_seconds"),
    },
}
"""Of a section with several providers, the keys that each of them uses."""

_MAX_VALUE_CHARS = 300
"""Characters of a value that is sent as it is; of a longer one its hash is. Servers bound a header's size."""


def meaning(config: Config, call: str, *, without: Collection[str] = ()) -> dict[str, str]:
    """The settings that the answer of `call` depends on: dotted key -> value as JSON text, or its hash.

    `call` is the call's address without the first slash. Settings of the sections `without` do not matter to this one.
    """
    dependencies = _DEPENDS.get(call, ())
    settings = {}
    for section, table in msgspec.to_builtins(config).items():
        if section in without or section == "adapter":  # which is no part of the service, and holds a token
            continue
        entries = {f"{section}.{key}": value for key, value in table.items()} if isinstance(table, dict) else {}
        used = (
            None if call == "status" else _PROVIDER_KEYS.get(section, {}).get(str(entries.get(f"{section}.provider")))
        )
        for key, value in (entries or {section: table}).items():
            is_used = used is None or key.partition(".")[2] in (*used, "provider")
            is_source = section == "opencode" and key not in _SERVER
            if key == ARCHIVE or is_source or (is_used and not {"", section, key}.isdisjoint(dependencies)):
                settings[key] = _text(value)
    if config.chat.provider != "opencode" and call != "status":
        settings = {key: value for key, value in settings.items() if key not in _SERVER}
    settings[_DATABASES] = _text(_databases(config))
    places = (config.archive_dir, config.opencode_dir, config.output_dir)
    # Two spellings of a place, or a link to it, are the same place.
    settings |= {k: _text(os.path.realpath(p)) for k, p in zip(_PLACES, places, strict=True) if k in settings}
    return settings


def _databases(config: Config) -> list[str]:
    """The databases that are followed because the configuration or $OPENCODE_DB names them, and only therefore."""
    return sorted(
        {
            os.path.realpath(path)
            for path in config.databases
            if path.parent not in config.opencode_dirs or not fnmatch.fnmatch(path.name, "opencode*.db")
        }
    )


def header(settings: Mapping[str, str]) -> str:
    """What `meaning` answered, as the value of HEADER."""
    return json.dumps(settings, ensure_ascii=True, separators=(",", ":"))


def differences(config: Config | None, header_value: str | None) -> list[str]:
    """The keys in which the caller's settings, as HEADER has them, differ from the service's `config`.

    A key that only one of the two knows differs too: they are of two versions then.

    Raises:
        ServesAnother: the caller means another archive.
        BadRequest: the header is none of ours.
    """
    if config is None or header_value is None:
        return []
    client_settings = _read(header_value)
    own_settings = meaning(config, "status")
    if client_settings.get(ARCHIVE, own_settings[ARCHIVE]) != own_settings[ARCHIVE]:
        raise ServesAnother(
            f"the running service (process {os.getpid()}) keeps the archive {_display(own_settings[ARCHIVE])}, not "
            f"{_display(client_settings[ARCHIVE])}; to have it keep that one, change archive.dir and restart it"
        )
    return sorted(key for key, value in client_settings.items() if not _is_same(key, own_settings.get(key), value))


def check(config: Config | None, header_value: str | None) -> None:
    """Refuse a call that means other settings than the service's.

    Raises:
        ServesAnother: the caller means another archive.
        ConfigError: the archive is the one it means, but another setting differs that its answer depends on.
        BadRequest: the header is none of ours.
    """
    differing = differences(config, header_value)
    if config is None or header_value is None or not differing:
        return
    own_settings, client_settings = meaning(config, "status"), _read(header_value)
    listed = [
        f"{key} ({_display(own_settings[key])} there, {_display(client_settings[key])} here)"
        if key in (*_PLACES, _DATABASES)
        else key
        for key in differing
    ]
    error = ConfigError(
        f"the running service (process {os.getpid()}) has this archive, but runs with another configuration: "
        f"{', '.join(listed)}; {_fix(differing)}"
    )
    error.status = 409
    raise error


def _is_same(key: str, own_value: str | None, client_value: str) -> bool:
    """Whether a setting is as the caller means it. More databases than the caller's shell names are followed for it."""
    if (
        key == _DATABASES
        and own_value is not None
        and own_value.startswith(client_value[:1])
        and client_value.startswith("[")
    ):
        return set(json.loads(client_value)) <= set(json.loads(own_value))
    return own_value == client_value


def _fix(differing: Collection[str]) -> str:
    """What to type, by how this service was started."""
    if not Notifier(os.environ).is_supervised:
        return f"type kill {os.getpid()}, then the command does the work itself"
    how = f"put yours into its configuration file and type: {supervisor.restart()}"
    return f"type: reconstitute service install (for OPENCODE_DB), or {how}" if _DATABASES in differing else how


def _read(header_value: str) -> dict[str, str]:
    try:
        value = json.loads(header_value)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise BadRequest(f"{HEADER}: not a JSON object of texts; leave it out, or use a client of the same version")
    return value


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return text if len(text) <= _MAX_VALUE_CHARS else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _display(text: str) -> str:
    """A place as a person writes it."""
    return str(json.loads(text)) if text.startswith('"') else text
