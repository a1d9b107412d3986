"""What a pass over a source did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


@dataclass(slots=True)
class Taken:
    """What one pass over one source did."""

    changed: int = 0
    removed: int = 0
    quarantined: int = 0
    postponed: set[str] = field(default_factory=set)
    """Sessions with something still being written."""
    places: set[str] = field(default_factory=set)
    """Directories of changed sessions and paths of changed files: whom it concerns."""

    def __iadd__(self, other: Taken) -> Self:
        self.changed += other.changed
        self.removed += other.removed
        self.quarantined += other.quarantined
        self.postponed |= other.postponed
        self.places |= other.places
        return self
