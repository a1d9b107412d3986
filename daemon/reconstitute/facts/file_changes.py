"""What each session did to the files of a folder, all in all: lines added and removed, and what was undone again."""

from __future__ import annotations

from collections.abc import Iterable

from daemon.files import FileHistory
from daemon.reconstitute.facts.values import FileChange


def by_session(histories: Iterable[FileHistory]) -> dict[str, tuple[FileChange, ...]]:
    """The changes of each session by its id, sorted by path; a read or an observation is no change."""
    return {}
