"""A source of which only that is seen which may be taken in: everything read from OpenCode passes here.

`daemon.exclude` decides; this module applies it to each record that a source gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from daemon import private
from daemon.archive.forgotten import Forgotten
from daemon.errors import BadRecord
from daemon.exclude import LARGE, Exclusion
from daemon.exclude.paths import PathExclusion
from daemon.filesystem.large_files import LargeFiles
from daemon.ingest.forgotten_paths import exclusion_of
from daemon.model import Json, Session
from daemon.opencode import Listing, Reading, RevertMark, Source, State, TodoList, Unit

_OVERLAP = 256


class ScreenedSource:
    """A Source without what is excluded. `session` is what is known of the session that is being read."""

    def __init__(self, source: Source, exclusion: Exclusion, forgotten: Forgotten | None = None) -> None:
        """`forgotten`: what is on the archive's list is left out, too."""
        self._source = source
        self._exclusion = exclusion
        self._forgotten = forgotten
        self.name, self.kind, self.generation = source.name, source.kind, source.generation
        self.session: Session | None = None

    def touched(self) -> Iterable[str] | None:
        """See Source."""
        return self._source.touched()

    def hint(self, path: str) -> None:
        """See Source."""
        self._source.hint(path)

    def state(self) -> State | None:
        """See Source."""
        return self._source.state()

    def sessions(self) -> Listing[str]:
        """See Source."""
        return self._source.sessions()

    def messages(self, session_id: str) -> Listing[Unit]:
        """See Source."""
        return self._source.messages(session_id)

    def holds(self, kind: str, ids: Iterable[str]) -> set[str]:
        """See Source."""
        return self._source.holds(kind, ids)

    def read_session(self, session_id: str) -> Session:
        """See Source."""
        session = self._exclusion.session(self._source.read_session(session_id))
        forgotten = self._forgotten_of(session_id)
        return session if forgotten is None else forgotten.session(session)

    def _forgotten_of(self, record_id: str) -> PathExclusion | None:
        return None if self._forgotten is None else exclusion_of(self._forgotten, record_id)

    def read_message(self, session_id: str, message_id: str) -> Reading:
        """See Source."""
        return self._screened(self._source.read_message(session_id, message_id))

    def readings(self, session_id: str, message_ids: Sequence[str]) -> Iterator[tuple[str, Callable[[], Reading]]]:
        """See Source."""
        for message_id, read in self._source.readings(session_id, message_ids):
            yield message_id, lambda read=read: self._screened(read())  # type: ignore[misc]

    def _screened(self, reading: Reading) -> Reading:
        reasons = frozenset({LARGE}) if any(problem.is_excluded for problem in reading.problems) else frozenset()
        if reading.event:
            return replace(reading, event=self._exclusion.event(reading.event))
        if reading.message is None:
            return replace(reading, excluded=reasons) if reasons else reading
        message, more = self._exclusion.message(reading.message, self.session)
        if message is not None and (forgotten := self._forgotten_of(message.id)) is not None:
            message, _ = forgotten.message(message, self.session)
        return (
            replace(reading, message=message, excluded=reasons | more)
            if reasons or more
            else (reading if message is reading.message else replace(reading, message=message))
        )

    def reverts(self, session_id: str) -> list[RevertMark]:
        """See Source."""
        roots = [self.session.directory] if self.session is not None and self.session.directory else []
        marks = self._source.reverts(session_id)
        for exclusion in (self._exclusion, self._forgotten_of(session_id)):
            if exclusion is not None:
                marks = [replace(mark, diff=exclusion.revert_diff(mark.diff, roots)) for mark in marks]
        return marks

    def todos(self, session_id: str) -> TodoList | None:
        """See Source."""
        todos = self._source.todos(session_id)
        if todos is None:
            return None
        items = self._exclusion.values(todos.items)
        forgotten = self._forgotten_of(session_id)
        if forgotten is not None:
            items = forgotten.todos(items, [self.session.directory] if self.session is not None else [])
        return replace(todos, items=tuple(items))

    def projects(self) -> list[Json]:
        """See Source."""
        return [
            {name: _allowed(value, self._exclusion) for name, value in private.cleaned(project).items()}
            for project in self._source.projects()
            if not self._exclusion.project(project["worktree"])
        ]

    def close(self) -> None:
        """See Source."""
        self._source.close()


def _allowed(value: object, exclusion: Exclusion) -> object:
    """A field of a project without the excluded ones of its folders."""
    if not isinstance(value, list):
        return value
    return [item for item in value if not (isinstance(item, str) and exclusion.project(item))]


class ScreenedFiles(LargeFiles):
    """Keeps no large record that has a private block, or that may hold what is excluded: such a one is not parsed."""

    def __init__(self, directory: Path, exclusion: Exclusion, free_mb: int = 0) -> None:
        super().__init__(directory, free_mb)
        self._exclusion = exclusion

    def keep(self, pieces: Iterable[bytes], size: int) -> str:
        """See LargeFiles.

        Raises:
            BadRecord: it may not be kept.
        """
        if self._exclusion.reads_whole_records:
            raise BadRecord("only the whole of it would show whether `exclude` leaves it out")
        return super().keep(_without_tags(pieces), size)


def _without_tags(pieces: Iterable[bytes]) -> Iterator[bytes]:
    tail = b""
    for piece in pieces:
        if private.holds_tag(tail + piece):
            raise BadRecord("it holds a private block")
        tail = (tail + piece)[-_OVERLAP:]
        yield piece
