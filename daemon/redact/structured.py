"""A field of a record: its name and its value, which stand apart in JSON, judged together."""

from __future__ import annotations

from daemon.redact import assignments
from daemon.redact.detection import Span, find

_LONGEST = 4096
"""Characters; what is longer is a document, in which the name of the field tells nothing."""


_LOGINS = frozenset({"-u", "--user", "--proxy-user"})
COOKIES = frozenset({"cookie", "cookies"})
"""Names of fields that hold cookies, each with its own name."""
_SAYS = (*assignments.WORDS, "cookie")


def is_telling(name: str) -> bool:
    """Whether the name of a field, or a flag, may say what its value is."""
    lowered = name.lower()
    return name in _LOGINS or any(word in lowered for word in _SAYS)


def is_field(name: str) -> bool:
    """Whether a word is the name of a secret and nothing else, so that what follows it in a pair is one."""
    return assignments.name_kind(name) != "" and " " not in name


def member(name: str, item: str) -> list[Span]:
    """The secrets in `item`, the value of a field or the word behind a flag called `name`."""
    if len(item) > _LONGEST:
        return find(item)
    if name in _LOGINS and (size := item.find(":") + 1) and len(item) - size >= 4:
        return [Span(size, len(item), "curl-user", item[size:])]
    if name.lower() in COOKIES and "=" not in item and len(item) >= 8 and any(map(str.isdigit, item)):
        return [Span(0, len(item), "cookie", item)] if "REDACTED:" not in item and " " not in item else []
    kind = assignments.name_kind(name)
    if kind and "REDACTED:" not in item and assignments.is_value(item, is_password=kind == "password"):
        return [Span(0, len(item), kind, item)]
    before = f"{name} " if name.startswith("-") else f"{name}: "
    size = len(before)
    return [
        Span(span.start - size, span.end - size, span.kind, span.secret)
        for span in find(before + item)
        if span.start >= size
    ]
