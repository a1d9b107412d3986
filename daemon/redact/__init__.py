"""Secrets are taken out of text before it leaves the archive: index, pages, socket, logs, model requests.

`redact` is deterministic, idempotent and linear; the same secret always becomes the same marker, so that redacted texts
can still be compared (docs/reliability.md, X1 to X4). It goes by shape and by name, never by randomness alone, so code,
hashes and ids come back as they were; a text with nothing in it comes back as the same object. It cannot know a secret
that has neither shape nor name.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from daemon.redact import assignments
from daemon.redact.rules import SHAPES, Rule
from daemon.visible import strip_invisible

DEEPEST = 100
"""Levels of a JSON value that are walked; no tool's input comes near."""

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


_WORDS = tuple(dict.fromkeys(word for rule in SHAPES for word in rule.words))
"""What a text must have some of to be looked at more closely; most are short and have none."""


def redact(text: str) -> str:
    """`text` with every secret replaced by ``[REDACTED:kind:hash8]``; the same object where there is none.

    Where invisible characters kept a secret from being recognised, the text comes back without them.
    """
    seen = strip_invisible(text)
    if seen is not text:
        masked = _redacted(seen)
        if masked is not seen:
            return masked
    return _redacted(text)


def _redacted(text: str) -> str:
    for word in _WORDS:
        if word in text:
            text = _shaped(text)
            break
    lowered = _lower(text)
    if not any(word in lowered for word in assignments.WORDS):
        return text
    pieces, done = [], 0
    for start, end, kind in assignments.find(text, lowered):
        pieces += [text[done:start], _marker(kind, text[start:end])]
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _shaped(text: str) -> str:
    for rule in SHAPES:
        if any(word in text for word in rule.words):
            text = _apply(rule, text)
    return text


def redact_value(value: Any) -> Any:
    """A JSON value with every string in it redacted; keys stay. A name and its secret are seen together:
    ``{"password": "..."}`` is redacted as the text ``password: ...`` would be.

    What lies deeper than DEEPEST levels becomes its JSON text, redacted: a record may be nested to hang a reader.
    """
    return _walked(value, DEEPEST)


def _walked(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return redact(value)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return redact(_text(value))
    if isinstance(value, list):
        return [_walked(item, levels - 1) for item in value]
    return {key: _member(key, item, levels - 1) for key, item in value.items()}


def _text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[nested too deep to be shown]"


def _member(key: Any, item: Any, levels: int) -> Any:
    if not isinstance(item, str):
        return _walked(item, levels)
    item = redact(item)
    line = f'"{key}": "'
    found = list(assignments.find(f'{line}{item}"', _lower(f'{line}{item}"')))
    if len(found) == 1 and found[0][0] == len(line) and found[0][1] == len(line) + len(item):
        return _marker(found[0][2], item)
    return item


def _apply(rule: Rule, text: str) -> str:
    group = "secret" if "secret" in rule.pattern.groupindex else 0

    def replace(match: re.Match[str]) -> str:
        if rule.check is not None and not rule.check(match):
            return match[0]
        start, end = (edge - match.start() for edge in match.span(group))
        return f"{match[0][:start]}{_marker(rule.kind, match[group])}{match[0][end:]}"

    made = rule.pattern.sub(replace, text)
    return text if made == text else made  # where all was refused, the same object


def _marker(kind: str, secret: str) -> str:
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    return f"[REDACTED:{kind}:{digest[:8]}]"


def _lower(text: str) -> str:
    """Lower case of the same length; a few letters would grow, and then only ASCII is lowered."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)
