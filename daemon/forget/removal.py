"""Takes a selection out of the archive in one synced batch, with everything that was made of it.

After the batch nothing finds it any more, except the indexes, which `erasure` deletes first of all. The batch also
begins the erasure, so that the next start completes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from daemon.archive import Archive, Batch, keys
from daemon.filesystem import durable
from daemon.forget import erasure, mentions, pages
from daemon.forget.paths import PathRemoval
from daemon.forget.selection import Selection
from daemon.ingest import Evidence
from daemon.model import Json

Pulse = Callable[[int], None]


@dataclass(slots=True)
class Plan:
    """What a removal takes out; `batch` has all of it. Make it anew when the archive has changed: see `is_current`."""

    archive: Archive
    batch: Batch
    revision: int
    messages: set[str] = field(default_factory=set)
    places: set[str] = field(default_factory=set)
    """Paths whose recorded edits go, and the directories of the sessions."""
    paths: set[str] = field(default_factory=set)
    """Only the paths."""
    objects: int = 0
    targets: list[str] = field(default_factory=list)
    pages: list[Json] = field(default_factory=list)
    """Trees of pages that were made of it (forget.pages)."""
    results: list[Path] = field(default_factory=list)
    looked_for: mentions.Mentions = field(default_factory=lambda: mentions.Mentions(()))
    parts: int = 0
    """Parts of messages that stay without them."""
    shortened: int = 0
    """Messages that stay without something."""
    is_empty: bool = False
    """Whether nothing is recorded of the path."""

    @property
    def is_current(self) -> bool:
        """Whether no record has changed since the plan was made."""
        return self.archive.revision == self.revision

    def commit(self) -> None:
        """Remove all of it, or nothing."""
        for file in self.results:
            file.unlink(missing_ok=True)
            _sync(file.parent)
        self.archive.commit(self.batch)
        self.archive.objects.forget_cached()
        self.archive.secrets.reread()


def plan(
    archive: Archive, selection: Selection, evidence: Evidence, requests: Path, pulse: Pulse = lambda _: None
) -> Plan:
    """What removing a selection takes out. `requests` is the directory of request files."""
    revision, batch = archive.revision, archive.batch()
    removal = archive.removal(batch)
    of_path = PathRemoval(archive, batch, removal, evidence, selection.places)
    if selection.places:
        of_path.run(pulse)
    for session in selection.sessions:
        removal.session(session.id)
    if selection.message_id:
        removal.message(selection.message_id)
    removal.finish(pulse)
    made = Plan(archive, batch, revision, removal.messages, set(removal.places), removal.places, len(removal.objects))
    made.parts, made.shortened = of_path.parts, len(of_path.messages)
    made.is_empty = bool(selection.places) and of_path.is_empty
    made.places |= {session.directory for session in selection.sessions} - {""}
    if not made.is_empty:
        made.places |= set(selection.places)
    _drop_formatters(archive, batch, selection)
    looked_for = mentions.Mentions(removal.sessions | removal.messages | of_path.messages)
    directories = _directories(archive, selection, of_path.sessions)
    made.targets = mentions.targets(archive, looked_for, made.places | directories)
    for target in made.targets:
        pages.drop_values(archive, batch, target)
    made.pages = pages.of_targets(archive, made.targets)
    pages.queue(archive, batch, made.pages)
    made.looked_for = looked_for
    made.results = results(made, requests)
    archive.forgotten.set_pending(batch, erasure.BEGIN)
    return made


def results(made: Plan, requests: Path) -> list[Path]:
    """The results of request files that have something of it, as they are now."""
    return mentions.results(requests, made.looked_for, made.targets)


def _directories(archive: Archive, selection: Selection, shortened: Iterable[str]) -> set[str]:
    """The directories of the sessions of which something goes and something stays."""
    of_message = (archive.state(selection.message_id) or {}).get("session", "") if selection.message_id else ""
    sessions = map(archive.session, {of_message, *shortened} - {""})
    return {session.directory for session in sessions if session is not None} - {""}


def _drop_formatters(archive: Archive, batch: Batch, selection: Selection) -> None:
    """Remove what is noted of the configuration of folders in which no session is left."""
    gone = {session.id for session in selection.sessions}
    left = {session.directory.rstrip("/") for session in archive.sessions() if session.id not in gone}
    for directory in {session.directory.rstrip("/") for session in selection.sessions} - left:
        batch.delete(keys.note(f"formatters {directory}"))


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        durable.sync(descriptor)
    finally:
        os.close(descriptor)
