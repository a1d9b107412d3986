"""What recent sessions left open, by the folder that they ran in: the open points of a folder's page, for all folders.

Sessions are read whole, the newest first, up to a limit; no file is recovered, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.model import Json, Session
from daemon.reconstitute.facts import open_points, setbacks
from daemon.reconstitute.facts.session import finish, read_session
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.values import OpenPoint
from daemon.reconstitute.pages.folder.fact_lists import OPEN_WORDS
from daemon.redact import known

MOST_SESSIONS = 60
MOST_MESSAGES = 4_000


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, the last activity in it (epoch ms), its open points, and the titles of its sessions by id."""

    path: str
    last: int
    points: tuple[OpenPoint, ...]
    titles: dict[str, str]


@dataclass(frozen=True, slots=True)
class Recent:
    """The folders, last worked in first; how many sessions were read, and how many older ones were not."""

    folders: tuple[Folder, ...]
    sessions: int
    left_out: int


def words(point: OpenPoint) -> str:
    """What kind of point it is, as a folder's page says."""
    return OPEN_WORDS[point.kind]


def find(archive: Archive, sessions: Iterable[Session], progress: Callable[[Json], None]) -> Recent:
    """What these sessions left open; `progress` is called before each is read.

    A point counts as settled only if another of these sessions settled it.

    Raises:
        ArchiveCorrupt: a record failed its check.
    """
    newest_first = sorted(sessions, key=lambda session: (-session.updated, session.id))
    newest = newest_first[0].updated if newest_first else 0
    by_folder: dict[str, list[SessionFacts]] = {}
    messages_left = MOST_MESSAGES
    read = 0
    with known.only({}):
        for session in newest_first[:MOST_SESSIONS]:
            progress({"phase": "reading recent sessions", "done": read, "total": len(newest_first)})
            ids = archive.message_ids(session.id)
            messages_left -= len(ids)
            if messages_left < 0 and read:
                break
            messages = [message for each in ids if (message := archive.message(each)) is not None]
            facts = read_session(archive, session, messages, (), is_whole=True, until=None, newest=newest)
            by_folder.setdefault(session.directory, []).append(facts)
            read += 1
        folders = [_folder(path, finish(facts)) for path, facts in by_folder.items()]
    listed = sorted((each for each in folders if each.points), key=lambda each: (-each.last, each.path))
    return Recent(tuple(listed), read, len(newest_first) - read)


def _folder(path: str, sessions: tuple[SessionFacts, ...]) -> Folder:
    points = open_points.find(sessions, setbacks.find(sessions))
    last = max(facts.session.updated for facts in sessions)
    return Folder(path, last, points, {facts.id: facts.title for facts in sessions})
