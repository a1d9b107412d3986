"""A session's records become its turns, calls and what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.archive import Archive
from daemon.model import Message, Session
from daemon.reconstitute.facts.values import FileChange, SessionFacts


def of(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    changes: tuple[FileChange, ...],
    *,
    is_whole: bool,
    until: int | None,
) -> SessionFacts:
    """One session up to `until` (epoch ms; None: now). `messages` are those of its messages that have to do with the
    folder, in order; `changes` what it did to the folder's files.

    Raises:
        ArchiveCorrupt: a record failed its check.
    """
    ids = tuple(message.id for message in messages)
    return SessionFacts(session, session.title, (), ids, is_whole=is_whole, changes=changes)
