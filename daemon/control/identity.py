"""Which archive, sources and settings a call means: named by the client, checked by the service before it works.

One control socket serves a user, whatever archive the service behind it keeps. So each call carries the settings that
its answer depends on; a service with others refuses it. A call that names nothing is answered by whichever service
there is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping

import msgspec

from daemon.config import Config
from daemon.errors import BadRequest, ConfigError, ServesAnother

HEADER = "reconstitute-means"
ARCHIVE = "archive.dir"

_PLACES = ("archive.dir", "opencode.data_dir", "output.dir")
_SERVER = ("opencode.server_url", "opencode.server_model")
"""What of [opencode] only answers of a model depend on; all else in it says which records are read."""

_SEARCH = ("embedding", "index", "limits.indexed_kb", "limits.embedded_kb")
_DEPENDS = {
    "search": _SEARCH,
    "recall": _SEARCH,
    "index": ("embedding", "index", "limits", "archive"),
    "reconstitute": (*_SEARCH, "limits.pages", "chat", "agent", "output", "targets", *_SERVER),
    "status": ("",),
}
"""Sections and keys that the answer of a call depends on, beside the archive and the sources; "" is all of them."""

_LONGEST = 300
"""Characters of a value that is sent as it is; of a longer one its hash is. Servers bound a header's size."""


def meaning(config: Config, call: str, *, without: Collection[str] = ()) -> dict[str, str]:
    """The settings that the answer of `call` depends on: dotted key -> value as JSON text, or its hash.

    `call` is the first word of the call's address. Settings of the sections `without` do not matter to this one.
    """
    wanted = _DEPENDS.get(call, ())
    named = {}
    for section, table in msgspec.to_builtins(config).items():
        if section in without or section == "adapter":  # which is no part of the service, and holds a token
            continue
        entries = {f"{section}.{key}": value for key, value in table.items()} if isinstance(table, dict) else {}
        for key, value in (entries or {section: table}).items():
            is_source = section == "opencode" and key not in _SERVER
            if key == ARCHIVE or is_source or not {"", section, key}.isdisjoint(wanted):
                named[key] = _text(value)
    places = (config.archive_dir, config.opencode_dir, config.output_dir)
    # Two spellings of a place, or a link to it, are the same place.
    named |= {k: _text(os.path.realpath(p)) for k, p in zip(_PLACES, places, strict=True) if k in named}
    return named


def header(named: Mapping[str, str]) -> str:
    """What `meaning` answered, as the value of HEADER."""
    return json.dumps(named, ensure_ascii=True, separators=(",", ":"))


def differences(config: Config | None, named: str | None) -> list[str]:
    """The keys in which the caller's settings, as HEADER has them, differ from the service's `config`.

    A key that only one of the two knows differs too: they are of two versions then.

    Raises:
        ServesAnother: the caller means another archive.
        BadRequest: the header is none of ours.
    """
    if config is None or named is None:
        return []
    theirs = _read(named)
    ours = meaning(config, "status")
    if theirs.get(ARCHIVE, ours[ARCHIVE]) != ours[ARCHIVE]:
        raise ServesAnother(
            f"the running service (process {os.getpid()}) keeps the archive {_shown(ours[ARCHIVE])}, not "
            f"{_shown(theirs[ARCHIVE])}; to have it keep that one, change archive.dir and restart it"
        )
    return sorted(key for key, value in theirs.items() if ours.get(key) != value)


def check(config: Config | None, named: str | None) -> None:
    """Refuse a call that means other settings than the service's.

    Raises:
        ServesAnother: the caller means another archive.
        ConfigError: the archive is the one it means, but another setting differs that its answer depends on.
        BadRequest: the header is none of ours.
    """
    differing = differences(config, named)
    if config is None or named is None or not differing:
        return
    ours, theirs = meaning(config, "status"), _read(named)
    said = [
        f"{key} ({_shown(ours[key])} there, {_shown(theirs[key])} here)" if key in _PLACES else key for key in differing
    ]
    error = ConfigError(
        f"the running service (process {os.getpid()}) has this archive, but runs with another configuration: "
        f"{', '.join(said)}; restart it with yours, or stop it: then the command does the work itself"
    )
    error.status = 409  # type: ignore[attr-defined]  # nearer than 500
    raise error


def _read(named: str) -> dict[str, str]:
    try:
        value = json.loads(named)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise BadRequest(f"{HEADER}: not a JSON object of texts; leave it out, or use a client of the same version")
    return value


def _text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return text if len(text) <= _LONGEST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _shown(text: str) -> str:
    """A place as a person writes it."""
    return str(json.loads(text)) if text.startswith('"') else text
