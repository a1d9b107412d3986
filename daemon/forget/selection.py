"""Resolves what a user wants forgotten to sessions, a message or paths of the archive.

Sub-agents' sessions go with the session that started them. Times and projects choose whole sessions: a part of a
conversation is forgotten by the message.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.archive.forgotten import MESSAGE
from daemon.errors import BadRequest
from daemon.files.trees import is_beneath
from daemon.model import Session

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be forgotten: whole sessions, or one message (`message_id`) of the session that stays, or what is
    recorded of `places`: the path that was named, and its other names.

    `later` counts sessions that began before the time and are not chosen, because they go on after it.
    """

    sessions: tuple[Session, ...] = ()
    message_id: str = ""
    later: int = 0
    places: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sessions or self.message_id or self.places)


def is_path(name: str) -> bool:
    """Whether a name is a path, and no id."""
    return "/" in name or name.startswith(("~", "."))


def by_path(archive: Archive, name: str) -> Selection:
    """A file or folder by its absolute path: also where it leads to, and the names that it had before an alias.

    Raises:
        BadRequest: it is no absolute path, or the root of all.
    """
    path = os.path.expanduser(name.strip())
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"{name!r}: give the absolute path of a file or folder")
    place = "/" + posixpath.normpath(path).lstrip("/")
    places = list(dict.fromkeys((place, os.path.realpath(place))))
    for old, new in sorted(archive.files.aliases().items()):
        places += [old + each[len(new) :] for each in places if is_beneath(each, new)]
        places += [old for each in places if is_beneath(new, each) and not is_beneath(old, each)]
    if "/" in places:
        raise BadRequest(f"{name!r}: leads to the root of all files; give a file or folder beneath it")
    return Selection(places=tuple(dict.fromkeys(places)))


def by_id(archive: Archive, name: str) -> Selection:
    """The session or message of this id.

    Raises:
        BadRequest: the archive has neither.
    """
    session = archive.session(name)
    if session is not None:
        return Selection(_with_sub_agents(archive, [session]))
    if archive.state(name) is not None:
        return Selection(message_id=name)
    if archive.forgotten.has_session(name) or archive.forgotten.has(MESSAGE, name):
        return Selection()
    raise BadRequest(
        f"{name!r}: is no session or message of the archive; `recall_sessions()` lists the sessions, and "
        "`recall_messages(sessionID=...)` a session's messages; a file or folder is written with a slash, as ./name"
    )


def before(archive: Archive, moment: int) -> Selection:
    """The sessions whose last message is older than this moment (epoch ms), their sub-agents' included."""
    last, first, families = dict[str, int](), dict[str, int](), _families(archive)
    for root, sessions in families.items():
        times = [time for session in sessions for time in _times(archive, session)]
        last[root], first[root] = max(times), min(times)
    chosen = [root for root, time in last.items() if time < moment]
    later = sum(first[root] < moment <= last[root] for root in families)
    return Selection(_of_roots(families, chosen), later=later)


def of_project(archive: Archive, project: str) -> Selection:
    """The sessions of a project: its id, or a folder, then the sessions that ran there or beneath it.

    Raises:
        BadRequest: no session is of it.
    """
    sessions = [session for session in archive.sessions() if _is_of(session, project)]
    if not sessions:
        known = sorted({session.directory for session in archive.sessions() if session.directory})[:_MOST_NAMED]
        raise BadRequest(f"{project!r}: no session is of this project or folder; sessions ran in {', '.join(known)}")
    return Selection(_with_sub_agents(archive, sessions))


def _is_of(session: Session, project: str) -> bool:
    if not project.startswith("/"):
        return session.project_id == project
    top = posixpath.normpath(project).rstrip("/")
    place = posixpath.normpath(session.directory)
    return session.directory.startswith("/") and (place == top or place.startswith(top + "/"))


def _times(archive: Archive, session: Session) -> list[int]:
    states = (archive.state(message_id) for message_id in archive.message_ids(session.id))
    return [state["created"] for state in states if state is not None] or [session.updated]


def _families(archive: Archive) -> dict[str, list[Session]]:
    """All sessions by the session that started them, directly or through others."""
    sessions = {session.id: session for session in archive.sessions()}
    families: dict[str, list[Session]] = defaultdict(list)
    for session in sessions.values():
        families[_root(session, sessions.get).id].append(session)
    return families


def _root(session: Session, get: Callable[[str], Session | None]) -> Session:
    seen = {session.id}
    while session.parent_id and session.parent_id not in seen and (parent := get(session.parent_id)) is not None:
        seen.add(parent.id)
        session = parent
    return session


def _of_roots(families: dict[str, list[Session]], roots: Iterable[str]) -> tuple[Session, ...]:
    return tuple(session for root in sorted(roots) for session in families[root])


def _with_sub_agents(archive: Archive, chosen: Iterable[Session]) -> tuple[Session, ...]:
    children: dict[str, list[Session]] = defaultdict(list)
    for session in archive.sessions():
        children[session.parent_id or ""].append(session)
    selected = {session.id: session for session in chosen}
    waiting = list(selected)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.id not in selected:
                selected[child.id] = child
                waiting.append(child.id)
    return tuple(selected.values())
