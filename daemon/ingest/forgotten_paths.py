"""What may be archived of a message or session of which a path was forgotten: everything else."""

from __future__ import annotations

from daemon.archive.forgotten import PART, PATH, PATHS, Forgotten
from daemon.exclude.paths import PathExclusion, above


def exclusion_of(forgotten: Forgotten, record_id: str) -> PathExclusion | None:
    """The rule for this message or session; None if no path of it was forgotten."""
    if not forgotten.has(PATHS, record_id):
        return None
    return PathExclusion(
        lambda path: any(forgotten.has(PATH, record_id, place) for place in above(path)),
        concerns=lambda name: forgotten.has(PART, record_id, name),
    )
