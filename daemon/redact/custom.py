"""What a user wants hidden besides, or never: `redact.extra` and `redact.allow` of the configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import regex  # type: ignore[import-untyped]  # it ships no types

_PATIENCE_S = 2.0
"""Seconds that one pattern of a user may take for one text; afterwards all of it is hidden."""


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


def find(text: str) -> Iterator[tuple[int, int, str]]:
    """Where `extra` matches, as (start, end, kind): its group ``secret``, or the whole match."""
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
