"""What may be archived of a message, session or snapshot of which a path was forgotten: everything else."""

from __future__ import annotations

from collections.abc import Iterable

from daemon.archive import Archive, Batch
from daemon.archive.forgotten import CONTENT, PART, PATH, PATHS, Forgotten
from daemon.exclude.paths import PathExclusion, above


def exclusion_of(forgotten: Forgotten, record_id: str) -> PathExclusion | None:
    """The rule for this message or session; None if no path of it was forgotten."""
    if not forgotten.has(PATHS, record_id):
        return None
    return PathExclusion(
        lambda path: any(forgotten.has(PATH, record_id, place) for place in above(path)),
        concerns=lambda name: forgotten.has(PART, record_id, name),
    )


def withhold(archive: Archive, batch: Batch, tree_id: str, places: Iterable[str]) -> None:
    """Take out of a tree what was forgotten at a path with the same content; `places` may be its folder."""
    if not archive.forgotten.has(CONTENT):
        return
    entries = archive.objects.entries(batch, tree_id).items()
    inner = ((name, id_, f"{place.rstrip('/')}/{name}") for place in places for name, (_, id_) in entries)
    names = {name for name, id_, path in inner if archive.forgotten.has(CONTENT, path, id_)}
    archive.objects.withhold(batch, tree_id, names)
