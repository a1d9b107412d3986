"""What a scan of a session or of a source, or a run of the capture, came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self


class SessionCounts(NamedTuple):
    """How many messages of a session were listed, how many of them are archived, and what was excluded."""

    seen: int
    kept: int
    excluded: Mapping[str, int] = {}


@dataclass(slots=True)
class ScanResult:
    """The result of one scan of a source."""

    changed: int = 0
    removed: int = 0
    quarantined: int = 0
    postponed: set[str] = field(default_factory=set)
    """Sessions that were locked."""
    moving: set[str] = field(default_factory=set)
    """Sessions with a message that is still being written."""
    refused: set[str] = field(default_factory=set)
    """Sessions with something that the system refused to read."""
    is_whole: bool = True
    """Whether all sessions could be listed, if that was asked."""
    places: set[str] = field(default_factory=set)
    """Directories of changed sessions and paths of changed files."""

    def __iadd__(self, result: ScanResult) -> Self:
        self.changed += result.changed
        self.removed += result.removed
        self.quarantined += result.quarantined
        self.postponed |= result.postponed
        self.moving |= result.moving
        self.refused |= result.refused
        self.is_whole &= result.is_whole
        self.places |= result.places
        return self


@dataclass(slots=True)
class Captured:
    """The result of one run of the capture."""

    trees: int = 0
    files: int = 0
    bytes: int = 0
    left_out: int = 0
    """Objects that are not stored, each with its reason."""
    waiting: int = 0
    """Queue entries for the next run."""
    refusal: str = ""
    """What the system refused to read of one of them, now or when it was last tried."""
