"""Which sessions an export is about, in order of time: by when they were created, then by id.

Sessions are found by their records and by their messages, so that one whose record is missing or could not be read is
found too; never by way of projects. Ids say nothing about time (they wrapped on 2026-08-14).
"""

from __future__ import annotations

import bisect
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from daemon.archive import Archive
from daemon.archive.paths import names, touches
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.moments import parse_time

_NEVER = 1 << 62
"""Later than any time that a record can hold: what a fast clock dated into the future is found, too."""

_UNSHARED = frozenset({"", "global"})
"""Project ids that say nothing: all directories outside of git share `global`."""


@dataclass(frozen=True, slots=True, order=True)
class _Row:
    created: int
    id: str
    updated: int
    project_id: str
    directory: str


def select(archive: Archive, asked: Export, now: int) -> list[str]:
    """Session ids; `now` is epoch ms, what "7d" is counted from.

    Raises:
        BadRequest: a session that is not in the archive, a path that is not absolute, a time that is none.
    """
    tests = list(_tests(archive, asked, now))
    rows = [_row(archive, asked.session)] if asked.session else list(_rows(archive))
    if asked.project:
        tests.append(_of_project(archive, asked.project, rows))
    if not asked.deleted:
        tests.append(lambda row: (archive.session_state(row.id) or {"deleted": None})["deleted"] is None)
    return [row.id for row in sorted(rows) if all(test(row) for test in tests)]


def _tests(archive: Archive, asked: Export, now: int) -> Iterator[Callable[[_Row], bool]]:
    since = parse_time(asked.since, now, "since")
    until = parse_time(asked.until, now, "until", is_end=True)
    if since is not None and until is not None and since > until:
        raise BadRequest(f"since {asked.since!r} is later than until {asked.until!r}; exchange them")
    if since is not None or until is not None:
        first, last = since or 0, _NEVER if until is None else until
        yield lambda row: _is_active(archive, row, first, last)
    if asked.path:
        known = names(archive.files, _absolute(asked.path, "path"))
        touched = {edit.session_id for edit, _ in touches(archive.files, known)}
        yield lambda row: row.id in touched


def _rows(archive: Archive) -> Iterator[_Row]:
    known = set()
    ordered = 0
    for session in archive.sessions():
        known.add(session.id)
        ordered += len(archive.message_ids(session.id))
        yield _Row(session.created, session.id, session.updated, session.project_id, session.directory)
    if ordered == archive.figures()["messages"]:
        return  # every message is in one of these
    states = (archive.state(message_id) for message_id in archive.all_message_ids())
    for session_id in sorted({state["session"] for state in states if state is not None} - known):
        yield _row(archive, session_id)


def _row(archive: Archive, session_id: str) -> _Row:
    session, ids = archive.session(session_id), archive.message_ids(session_id)
    if session is not None:
        return _Row(session.created, session.id, session.updated, session.project_id, session.directory)
    if not ids:
        raise BadRequest(f"session {session_id!r}: not in the archive; `recall_sessions()` lists those that are")
    return _Row(_created(archive, ids[0]), session_id, _created(archive, ids[-1]), "", "")


def _of_project(archive: Archive, project: str, rows: list[_Row]) -> Callable[[_Row], bool]:
    """By id; or by directory: what ran there or beneath, and elsewhere in the git repository whose root it is."""
    if "/" not in project:
        return lambda row: row.project_id == project
    folders = _names(archive, _absolute(project, "project"))
    ids = {row.project_id for row in rows if row.directory.rstrip("/") in folders} - _UNSHARED
    return lambda row: row.project_id in ids or any(_is_beneath(row.directory, folder) for folder in folders)


def _is_active(archive: Archive, row: _Row, since: int, until: int) -> bool:
    """Whether it was created or changed, or something was said in it, between these two, both included."""
    if since <= row.created <= until or since <= row.updated <= until:
        return True
    ids = archive.message_ids(row.id)
    first = bisect.bisect_left(ids, since, key=lambda message_id: _created(archive, message_id))
    return first < len(ids) and _created(archive, ids[first]) <= until


def _created(archive: Archive, message_id: str) -> int:
    state = archive.state(message_id)
    return int(state["created"]) if state is not None else 0


def _names(archive: Archive, path: str) -> set[str]:
    """`path` and what it, or what is beneath it now, was called before (`reconstitute alias`)."""
    aliases = archive.files.aliases()
    names, before = {path}, set[str]()
    while names != before:
        before = set(names)
        for old, new in aliases.items():
            names |= {old + name[len(new) :] for name in before if _is_beneath(name, new)}
            names |= {old for name in before if _is_beneath(new, name)}
        if len(names) > 1000:  # aliases that lead in a circle name ever longer paths
            break
    return names


def _is_beneath(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _absolute(path: str, name: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"{name} {path!r}: not an absolute path; begin it with /")
    return "/" + posixpath.normpath(path).lstrip("/")
