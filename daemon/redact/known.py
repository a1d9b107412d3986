"""Secrets hidden by their value, as CI systems do, and the user's own patterns (`redact.extra`, `redact.allow`).

Reading a session's records from the archive makes its secrets known (`learn`), and everything that the same thread or
task redacts from then on has them hidden. The archive itself calls `learn`, so no reader can forget to. `only` replaces
what is known for the length of a block.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType

import regex  # type: ignore[import-untyped]  # it ships no types

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
_JOINING = re.compile(r"[A-Za-z0-9]")
_PATIENCE_S = 2.0
"""Seconds that one pattern of a user may take for one text; afterwards all of it is hidden."""


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


def note(secrets: Iterable[tuple[str, str]]) -> None:
    """Remember what was recognised, for whoever asked for it with `noting`."""
    noted = _NOTED.get()
    if noted is None:
        return
    for secret, kind in secrets:
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
    """Where known values and the user's patterns stand in `text`, as (start, end, kind)."""
    yield from _values(text)
    yield from _extra(text)


def _values(text: str) -> Iterator[tuple[int, int, str]]:
    for value, kind in _VALUES.get().items():
        at = text.find(value)
        while at >= 0:
            end = at + len(value)
            if len(value) >= _SURE or not (_joins(text, at - 1) or _joins(text, end)):
                yield at, end, kind
            at = text.find(value, end)


def _joins(text: str, at: int) -> bool:
    return 0 <= at < len(text) and _JOINING.match(text, at) is not None


@dataclass(slots=True)
class _Custom:
    extra: list[regex.Pattern[str]] = field(default_factory=list)
    allow: list[regex.Pattern[str]] = field(default_factory=list)
    fingerprint: str = ""


_IN_USE = _Custom()


def configure(extra: Sequence[str], allow: Sequence[str]) -> None:
    """Hide what matches a pattern of `extra`; leave alone what a pattern of `allow` matches whole.

    Raises:
        regex.error: a pattern is none.
    """
    _IN_USE.extra = [regex.compile(pattern) for pattern in extra]
    _IN_USE.allow = [regex.compile(pattern) for pattern in allow]
    text = "\0".join([*extra, "\0", *allow])
    _IN_USE.fingerprint = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8] if extra or allow else ""


def fingerprint() -> str:
    """Changes with what is configured; empty while nothing is."""
    return _IN_USE.fingerprint


def _extra(text: str) -> Iterator[tuple[int, int, str]]:
    """Where `extra` matches: its group ``secret``, or the whole match."""
    for pattern in _IN_USE.extra:
        group: int | str = "secret" if "secret" in pattern.groupindex else 0
        try:
            for match in pattern.finditer(text, timeout=_PATIENCE_S):
                if match.end(group) > match.start(group):
                    yield *match.span(group), "extra"
        except TimeoutError:
            yield 0, len(text), "extra"


def is_allowed(secret: str) -> bool:
    """Whether the user has said that this is no secret."""
    try:
        return any(pattern.fullmatch(secret, timeout=_PATIENCE_S) for pattern in _IN_USE.allow)
    except TimeoutError:
        return False
