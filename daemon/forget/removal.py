"""Takes a selection out of the archive in one synced batch, with everything that was made of it.

After the batch nothing finds it any more, except the indexes, which `erasure` deletes first of all. The batch also
begins the erasure, so that the next start completes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from daemon.archive import Archive, Batch, keys
from daemon.archive.removal import Removal
from daemon.filesystem import durable
from daemon.forget import erasure, mentions
from daemon.forget.selection import Selection

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
    results: list[Path] = field(default_factory=list)

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


def plan(archive: Archive, selection: Selection, requests: Path, pulse: Pulse = lambda _: None) -> Plan:
    """What removing a selection takes out. `requests` is the directory of request files."""
    revision, batch = archive.revision, archive.batch()
    removal = archive.removal(batch)
    for session in selection.sessions:
        removal.session(session.id)
    if selection.message_id:
        removal.message(selection.message_id)
    removal.finish(pulse)
    made = Plan(archive, batch, revision, removal.messages, set(removal.places), removal.places, len(removal.objects))
    made.places |= {session.directory for session in selection.sessions} - {""}
    _drop_formatters(archive, batch, selection)
    looked_for = mentions.Mentions(removal.sessions | removal.messages)
    made.targets = mentions.targets(archive, looked_for, made.places | _directory(archive, removal, selection))
    for target in made.targets:
        mentions.drop_values(archive, batch, target)
    made.results = mentions.results(requests, looked_for, made.targets)
    archive.forgotten.set_pending(batch, erasure.BEGIN)
    return made


def _directory(archive: Archive, removal: Removal, selection: Selection) -> set[str]:
    """The directory of the session whose message goes."""
    if not selection.message_id or not removal.messages:
        return set()
    session = archive.session((archive.state(selection.message_id) or {}).get("session", ""))
    return set() if session is None else {session.directory} - {""}


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
