"""How much is known of a file's content, and which kinds of evidence say so (docs/recovery.md)."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache


class Grade(StrEnum):
    """From the most certain to the least."""

    VERIFIED = "verified"  # two independent kinds of evidence agree on the whole content
    PROVEN = "proven"  # the whole content follows from evidence
    STALE = "stale"  # whole content that was proven, or follows from such; the file may have changed since
    PARTIAL = "partial"  # some lines are known
    LOST = "lost"  # that it existed, or was changed, is all that is known

    @property
    def is_certain(self) -> bool:
        """Whether the content is the file's, byte by byte."""
        return self in _CERTAIN

    @property
    def rank(self) -> int:
        """0 for the most certain."""
        return _ORDER.index(self)


_ORDER = tuple(Grade)
_CERTAIN = frozenset({Grade.VERIFIED, Grade.PROVEN})

CALL, RESULT, READ, SHELL = "call", "result", "read", "shell"
SNAPSHOT, DIFF, ATTACHMENT = "snapshot", "diff", "attachment"
_FAMILY = {DIFF: SNAPSHOT, ATTACHMENT: READ}
"""Recorded diffs are made from snapshot trees, so the two agreeing proves nothing more."""


@lru_cache(maxsize=256)
def certain(kinds: frozenset[str]) -> Grade:
    """The grade of content that each of these kinds of evidence gives by itself."""
    return Grade.VERIFIED if len({_FAMILY.get(kind, kind) for kind in kinds}) > 1 else Grade.PROVEN
