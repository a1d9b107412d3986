"""Hides secrets by their value, as CI systems do, and by the user's patterns (`redact.extra`, `redact.allow`).

Reading a session's records from the archive makes its secrets known (`learn`), and the same thread or task then hides
them in everything it redacts. The archive itself calls `learn`, so no reader can forget it. `only` replaces the known
values within a block.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

import regex  # type: ignore[import-untyped]  # it ships no types

LEAST = 8
"""Characters of the shortest value that is hidden by its value alone."""
_SURE = 16
"""A value of at least so many characters is hidden inside longer words, too."""
_MOST = 4096
"""Values that one piece of work keeps."""

_LINE = 24
"""Characters of a line of a private key that is known by itself."""

_NOTED: ContextVar[dict[str, str] | None] = ContextVar("noted secrets", default=None)
_VALUES: ContextVar[Mapping[str, str]] = ContextVar("known secrets", default=MappingProxyType({}))
_JOINING = re.compile(r"[A-Za-z0-9]")
_PATIENCE_S = 2.0
"""Seconds that one pattern of a user may take for one text; after that, the whole text is hidden."""


def learn(values: Mapping[str, str]) -> None:
    """Hide these values, each with its kind, from now on in this piece of work."""
    have = _VALUES.get()
    if values.keys() - have.keys():
        _VALUES.set(dict(list({**values, **have}.items())[:_MOST]))


@contextmanager
def only(values: Mapping[str, str]) -> Iterator[None]:
    """Hide only these values within the block."""
    token = _VALUES.set(values)
    try:
        yield
    finally:
        _VALUES.reset(token)


def note(secrets: Iterable[tuple[str, str]]) -> None:
    """Record recognised secrets for a caller that uses `noting`."""
    noted = _NOTED.get()
    if noted is None:
        return
    for secret, kind in secrets:
        lines = [secret] if "\n" not in secret else [line.strip() for line in secret.split("\n") if len(line) > _LINE]
        noted.update({line: kind for line in lines if is_distinct(line)})


@contextmanager
def noting() -> Iterator[dict[str, str]]:
    """Collect the secrets recognised in the block, value -> kind, that are distinct enough to be hidden by value."""
    noted: dict[str, str] = {}
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


def is_distinct(secret: str) -> bool:
    """Whether a value differs from ordinary words in any context: long, and of mixed digits and letters."""
    if len(secret) < LEAST or "\n" in secret:
        return False
    has_digit, has_letter = any(c.isdigit() for c in secret), any(c.isalpha() for c in secret)
    has_symbol = any(c in "!@#$%^&*+?~" for c in secret)
    return has_letter and (
        has_digit or (has_symbol and len(secret) >= 10) or (len(secret) >= _SURE and " " not in secret)
    )


def has_values() -> bool:
    """Whether values are hidden in this piece of work."""
    return bool(_VALUES.get())


def has_patterns() -> bool:
    """Whether the user has patterns of their own, which may match several lines."""
    return bool(_IN_USE.extra)


def find(text: str) -> Iterator[tuple[int, int, str]]:
    """Matches of known values and of the user's patterns in `text`, as (start, end, kind)."""
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


@dataclass(frozen=True, slots=True, eq=False)
class _Custom:
    extra: Sequence[regex.Pattern[str]] = ()
    allow: Sequence[regex.Pattern[str]] = ()
    fingerprint: str = ""


_IN_USE = _Custom()


def configure(extra: Sequence[str], allow: Sequence[str]) -> None:
    """Hide matches of the patterns in `extra`; never hide a text that a pattern of `allow` matches whole.

    Raises:
        regex.error: a pattern is invalid.
    """
    global _IN_USE  # noqa: PLW0603 - replaced as a whole, because other threads are searching
    text = "\0".join([*extra, "\0", *allow])
    _IN_USE = _Custom(
        [regex.compile(pattern) for pattern in extra],
        [regex.compile(pattern) for pattern in allow],
        hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8] if extra or allow else "",
    )


def in_use() -> object:
    """The configuration: another object after each `configure`."""
    return _IN_USE


def fingerprint() -> str:
    """Changes with the configuration; empty without one."""
    return _IN_USE.fingerprint


def _extra(text: str) -> Iterator[tuple[int, int, str]]:
    """Matches of `extra`: the group ``secret``, or the whole match."""
    for pattern in _IN_USE.extra:
        group: int | str = "secret" if "secret" in pattern.groupindex else 0
        try:
            for match in pattern.finditer(text, timeout=_PATIENCE_S):
                if match.end(group) > match.start(group):
                    yield *match.span(group), "extra"
        except TimeoutError:
            yield 0, len(text), "extra"


def is_allowed(secret: str) -> bool:
    """Whether the user's configuration says that this is not a secret."""
    try:
        return any(pattern.fullmatch(secret, timeout=_PATIENCE_S) for pattern in _IN_USE.allow)
    except TimeoutError:
        return False
