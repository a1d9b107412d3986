"""Secrets that a session is known to hold, hidden wherever the session has them, as CI systems do.

Whoever reads records of a session from the archive learns its values (`learn`), and whatever is redacted afterwards in
the same piece of work has them hidden: it is the archive that calls this, so no way out can forget to. `only` limits it
to one session, for what must not depend on what was read before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

LEAST = 8
"""Characters of the shortest value that is hidden by itself."""
_SURE = 16
"""Characters from which on a value is hidden inside longer words, too."""
_MOST = 4096
"""Values that one piece of work keeps."""

_LINE = 24
"""Characters of a line of a private key that is known by itself."""

_NOTED: ContextVar[dict[str, str] | None] = ContextVar("noted secrets", default=None)
_VALUES: ContextVar[Mapping[str, str]] = ContextVar("known secrets", default=MappingProxyType({}))


def learn(values: Mapping[str, str]) -> None:
    """Hide these values, each with its kind, from now on in this piece of work."""
    have = _VALUES.get()
    if values.keys() - have.keys():
        _VALUES.set(dict(list({**values, **have}.items())[:_MOST]))


@contextmanager
def only(values: Mapping[str, str]) -> Iterator[None]:
    """These values and no others, for as long as it lasts."""
    token = _VALUES.set(values)
    try:
        yield
    finally:
        _VALUES.reset(token)


def note(found: Iterable[tuple[str, str]]) -> None:
    """Remember what was recognised, for whoever asked for it with `noting`."""
    noted = _NOTED.get()
    if noted is None:
        return
    for secret, kind in found:
        lines = [secret] if "\n" not in secret else [line.strip() for line in secret.split("\n") if len(line) > _LINE]
        noted.update({line: kind for line in lines if is_distinct(line)})


@contextmanager
def noting() -> Iterator[dict[str, str]]:
    """What is recognised meanwhile, as value -> kind: what is long and mixed enough to be known by its value."""
    noted: dict[str, str] = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def is_distinct(secret: str) -> bool:
    """Whether a value can be told from ordinary words wherever it stands: long, and of digits and letters mixed."""
    if len(secret) < LEAST or "\n" in secret:
        return False
    has_digit, has_letter = any(c.isdigit() for c in secret), any(c.isalpha() for c in secret)
    has_symbol = any(c in "!@#$%^&*+?~" for c in secret)
    return has_letter and (
        has_digit or (has_symbol and len(secret) >= 10) or (len(secret) >= _SURE and " " not in secret)
    )


def find(text: str) -> Iterator[tuple[int, int, str]]:
    """Where known values stand in `text`, as (start, end, kind)."""
    for value, kind in _VALUES.get().items():
        at = text.find(value)
        while at >= 0:
            end = at + len(value)
            if len(value) >= _SURE or not (_joins(text, at - 1) or _joins(text, end)):
                yield at, end, kind
            at = text.find(value, end)


_JOINING = re.compile(r"[A-Za-z0-9]")


def _joins(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _JOINING.match(text, at) is not None
