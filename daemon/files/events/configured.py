"""What the configurations of sessions say of formatters, as far as records show those files, or we saw them.

OpenCode reads its configuration when it starts, so which text of it counted at a call is not known: a formatter that
any of them switches on may have run in all sessions of that folder. What cannot be known is one that no record shows
and that was gone, or on another machine, when the session was archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from daemon.archive import Archive
from daemon.files.events import formatters
from daemon.files.history import Revision
from daemon.files.replay.world import World
from daemon.files.trees import is_beneath
from daemon.model import FileEdit, Operation
from daemon.opencode import configuration
from daemon.opencode.configuration import UNKNOWN, Settings


class Configured:
    """The settings of the sessions whose events are replayed; one per question."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._aliases = sorted(archive.files.aliases().items())
        self._directories: dict[str, str] = {}
        self._settings: dict[str, Settings] = {}

    def places(self, events: Iterable[FileEdit]) -> list[str]:
        """Where the configurations lie that decide about some of `events`, sorted."""
        undecided = (edit for edit in events if formatters.may_run(edit, UNKNOWN) and not formatters.may_run(edit))
        directories = {self._directory(session_id) for session_id in {edit.session_id for edit in undecided}}
        return sorted({place for directory in directories for place in configuration.places(directory)})

    def learn(self, world: World) -> bool:
        """Read the configurations out of a replay that holds them; whether they say more than was known."""
        before = dict(self._settings)
        for directory in set(self._directories.values()):
            found = self._settings.get(directory, Settings())
            for place in configuration.places(directory):
                for settings in _said(world.history(place).revisions):
                    found |= settings
            self._settings[directory] = found
        return any(settings != before.get(place, Settings()) for place, settings in self._settings.items())

    def may_run(self, edit: FileEdit) -> bool:
        """As `formatters.may_run`, with what has been learnt."""
        return formatters.may_run(edit, self._settings.get(self._directories.get(edit.session_id, ""), Settings()))

    def _directory(self, session_id: str) -> str:
        if session_id not in self._directories:
            session = self._archive.session(session_id)
            directory = "" if session is None else session.directory.rstrip("/")
            noted = configuration.from_json(self._archive.note(f"formatters {directory}"))
            for old, new in self._aliases:
                if is_beneath(directory, old):
                    directory = new + directory[len(old) :]
            self._directories[session_id] = directory
            self._settings[directory] = self._settings.get(directory, Settings()) | noted
        return self._directories[session_id]


def _said(revisions: Iterable[Revision]) -> Iterator[Settings]:
    """What each text says that a configuration had; one that was there and is not known may say anything."""
    for revision in revisions:
        if revision.content is not None:
            yield configuration.settings_in(revision.content.decode("utf-8", "replace"))
        elif not revision.deleted and revision.operation is not Operation.UNCLEAR:
            yield UNKNOWN
