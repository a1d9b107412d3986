"""What the configurations of sessions say of formatters, as far as records show those files.

OpenCode reads its configuration when it starts, so which text of it counted at a call is not known: a formatter that
any recorded one switches on may have run in all sessions of that folder. What cannot be known is a configuration that
no record shows, such as the one in the user's home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from daemon.archive import Archive
from daemon.files import formatters
from daemon.files.formatters import UNKNOWN, Settings
from daemon.files.history import Revision
from daemon.files.trees import is_beneath
from daemon.files.world import World
from daemon.model import FileEdit, Operation


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
        return sorted({place for directory in directories for place in formatters.places(directory)})

    def learn(self, world: World) -> bool:
        """Read the configurations out of a replay that holds them; whether any switches formatters on."""
        for directory in set(self._directories.values()):
            found = Settings()
            for place in formatters.places(directory):
                for settings in _said(world.history(place).revisions):
                    found |= settings
            self._settings[directory] = found
        return any(self._settings.values())

    def may_run(self, edit: FileEdit) -> bool:
        """As `formatters.may_run`, with what has been learnt."""
        return formatters.may_run(edit, self._settings.get(self._directories.get(edit.session_id, ""), Settings()))

    def _directory(self, session_id: str) -> str:
        if session_id not in self._directories:
            session = self._archive.session(session_id)
            directory = "" if session is None else session.directory.rstrip("/")
            for old, new in self._aliases:
                if is_beneath(directory, old):
                    directory = new + directory[len(old) :]
            self._directories[session_id] = directory
        return self._directories[session_id]


def _said(revisions: Iterable[Revision]) -> Iterator[Settings]:
    """What each text says that a configuration had; one that was there and is not known may say anything."""
    for revision in revisions:
        if revision.content is not None:
            yield formatters.settings_in(revision.content.decode("utf-8", "replace"))
        elif not revision.deleted and revision.operation is not Operation.UNCLEAR:
            yield UNKNOWN
