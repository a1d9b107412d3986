"""Removes secrets from text before it leaves the archive: index, pages, socket, logs, model requests.

`redact` is deterministic, idempotent and linear; the same secret always becomes the same marker, so that redacted texts
can still be compared (docs/reliability.md, X1 to X4). It recognises secrets by form and by name, never by randomness
alone, so code, hashes and ids stay unchanged; a text without secrets is returned as the same object. A secret that was
once recognised in a session (`known`) is hidden everywhere in that session. A secret without form or name is not found.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from daemon.redact import known
from daemon.redact.assignments import WORDS, name_kind
from daemon.redact.detection import Span, find
from daemon.redact.values import is_value

VERSION = "5"
"""Version of the rules; raise it so that indexed documents are redacted again."""

DEEPEST = 100
"""Levels of a JSON value that we descend; no tool's input is nearly as deep."""

_MOST_PASSES = 4
_MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,20}):[0-9a-f]{8}\]")
_QUOTES = " \t\r\n\"'`"
_EDITS = (("oldString", "newString"), ("old_string", "new_string"))
"""Fields of a call that replaces one text by another."""
_NAMES = ("name", "key", "Name", "Key", "variable", "header", "option", "flag", "label", "parameterKey", "ParameterKey")
_VALUES = frozenset({"value", "Value", "val", "secret", "default", "argument", "parameterValue", "ParameterValue"})
"""Value fields of a record with one name and its value."""
_LONGEST_FIELD = 4096
"""Characters; a longer value is a document, about which the field's name says nothing."""
_LOGINS = frozenset({"-u", "--user", "--proxy-user"})
_COOKIES = frozenset({"cookie", "cookies"})
"""Names of fields that hold cookies, each with its own name."""
_SAYS = (*WORDS, "cookie")


def fingerprint() -> str:
    """Changes whenever redaction may have changed: with this version, and with the user's configuration."""
    return f"{VERSION} {known.fingerprint()}".strip()


def redact(text: str) -> str:
    """`text` with every secret replaced by ``[REDACTED:kind:hash8]``; the same object if there is none."""
    for _ in range(_MOST_PASSES):  # a replacement may complete the form of another secret
        spans = find(text)
        if not spans:
            break
        text = _replaced(text, spans)
    return text


def _replaced(text: str, spans: list[Span]) -> str:
    known.note((span.secret, span.kind) for span in spans if span.is_sure)
    pieces, done = [], 0
    for span in spans:
        pieces += [text[done : span.start], marker(span.kind, span.secret)]
        done = span.end
    return "".join([*pieces, text[done:]])


def redact_value(value: object) -> Any:
    """A JSON value with every string and every secret key redacted. A name and its value are judged together:
    ``{"password": "..."}``, ``["--password", "..."]``, ``{"name": "DB_PASSWORD", "value": "..."}``.

    A value deeper than DEEPEST levels becomes redacted JSON text, because a record may be nested to hang a reader.
    """
    return _walked(value, DEEPEST, "")


def _walked(value: object, levels: int, name: str) -> Any:
    if isinstance(value, str):
        if _is_telling(name) and (spans := _secrets_in_field(name, value)):
            value = _replaced(value, spans)
        return redact(value)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return redact(_text(value))
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and _is_field(value[0]):
            return [redact(value[0]), _walked(value[1], levels - 1, value[0])]
        flags = ["", *(item if isinstance(item, str) and item.startswith("-") else "" for item in value)]
        return [_walked(item, levels - 1, flag or name) for item, flag in zip(value, flags, strict=False)]
    named = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    redacted = {
        redact(key) if isinstance(key, str) else key: _walked(item, levels - 1, _name(str(key), named, name))
        for key, item in value.items()
    }
    for before, after in _EDITS:
        redacted |= _replacement(redacted.get(before), redacted.get(after), after)
    return redacted


def _replacement(before: object, after: object, key: str) -> dict[str, str]:
    """The new text of an edit that replaced exactly a secret, redacted as a secret of the same kind."""
    if not isinstance(before, str) or not isinstance(after, str):
        return {}
    whole, secret = _MARKER.fullmatch(before.strip(_QUOTES)), after.strip(_QUOTES)
    if whole is None or not known.is_distinct(secret) or " " in secret or not _secrets_in_field("password", secret):
        return {}
    known.note([(secret, whole[1])])
    return {key: after.replace(secret, marker(whole[1], secret))}


def _name(key: str, named: str, parent: str) -> str:
    """The name by which to judge a field: the name in its record, its own key, or that it is a cookie."""
    if parent.lower() in _COOKIES and (key in _VALUES or not named):
        return parent
    return (named or parent) if (named or parent) and key in _VALUES else key


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[nested too deep to be shown]"


def marker(kind: str, secret: str) -> str:
    """The marker in place of a secret; equal secrets have equal markers."""
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    return f"[REDACTED:{kind}:{digest[:8]}]"


def _is_telling(name: str) -> bool:
    """Whether the name of a field, or a flag, may identify its value as a secret."""
    lowered = name.lower()
    return name in _LOGINS or any(word in lowered for word in _SAYS)


def _is_field(name: str) -> bool:
    """Whether a word is exactly the name of a secret, so that the second value of a pair is one."""
    return name_kind(name) != "" and " " not in name


def _secrets_in_field(name: str, item: str) -> list[Span]:
    """The secrets in `item`, the value of a field or flag called `name`; a long text is none."""
    if len(item) > _LONGEST_FIELD:
        return []
    if name in _LOGINS and (size := item.find(":") + 1) and len(item) - size >= 4:
        return [Span(size, len(item), "curl-user", item[size:])]
    if name.lower() in _COOKIES and "=" not in item and len(item) >= 8 and any(map(str.isdigit, item)):
        return [Span(0, len(item), "cookie", item)] if "REDACTED:" not in item and " " not in item else []
    kind = name_kind(name)
    if kind and "REDACTED:" not in item and is_value(item, is_password=kind == "password"):
        return [Span(0, len(item), kind, item)]
    before = f"{name} " if name.startswith("-") else f"{name}: "
    size = len(before)
    return [
        Span(span.start - size, span.end - size, span.kind, span.secret)
        for span in find(before + item)
        if span.start >= size
    ]
