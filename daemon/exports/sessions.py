"""One session as the formats get it: its facts, clean, and its messages one after the other."""

from __future__ import annotations

import bisect
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.archive.paths import names, touches
from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.exports.content import Clean, MessageContent, iso, message_content
from daemon.model import Json, Message, OllamaMessage, Part, Session, parts_where
from daemon.moments import parse_time
from daemon.redact import redact_value
from daemon.transcript.replay import clean_replay, replay

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


def select(archive: Archive, request: Export, now: int) -> list[str]:
    """Session ids; `now` is epoch ms, what "7d" is counted from.

    Raises:
        BadRequest: a session that is not in the archive, a path that is not absolute, a time that is none.
    """
    tests = list(_tests(archive, request, now))
    rows = [_row(archive, request.session)] if request.session else list(_rows(archive))
    if request.project:
        tests.append(_of_project(archive, request.project, rows))
    if not request.deleted:
        tests.append(lambda row: (archive.session_state(row.id) or {"deleted": None})["deleted"] is None)
    return [row.id for row in sorted(rows) if all(test(row) for test in tests)]


def _tests(archive: Archive, request: Export, now: int) -> Iterator[Callable[[_Row], bool]]:
    since = parse_time(request.since, now, "since")
    until = parse_time(request.until, now, "until", is_end=True)
    if since is not None and until is not None and since > until:
        raise BadRequest(f"`since` {request.since!r} is later than `until` {request.until!r}; exchange them")
    if since is not None or until is not None:
        first, last = since or 0, _NEVER if until is None else until
        yield lambda row: _is_active(archive, row, first, last)
    if request.path:
        known = names(archive.files, _absolute(request.path, "path"))
        touched = {edit.session_id for edit, _ in touches(archive.files, known)}
        yield lambda row: row.id in touched


def _rows(archive: Archive) -> Iterator[_Row]:
    seen = set()
    ordered = 0
    for session in archive.sessions():
        seen.add(session.id)
        ordered += len(archive.message_ids(session.id))
        yield _Row(session.created, session.id, session.updated, session.project_id, session.directory)
    if ordered == archive.figures()["messages"]:
        return  # every message is in one of these
    states = (archive.state(message_id) for message_id in archive.all_message_ids())
    for session_id in sorted({state["session"] for state in states if state is not None} - seen):
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
        raise BadRequest(f"`{name}` {path!r}: not an absolute path; begin it with /")
    return "/" + posixpath.normpath(path).lstrip("/")


@dataclass(slots=True)
class SessionContent:
    """A session while it is exported. `count` and `missing` grow as its messages are taken.

    `session` is clean. At most one message is held in memory at a time. `deleted`: epoch ms when its source was seen to
    have it no more. `has_record` is false where there was never a readable record of it, only messages. `only` are the
    messages to be taken, all where it is None.
    """

    archive: Archive
    request: Export
    session: Session
    deleted: int | None
    has_record: bool
    count: int = 0
    missing: list[str] = field(default_factory=list)
    only: Sequence[str] | None = None

    def messages(self) -> Iterator[MessageContent]:
        """Its messages in conversation order, taken apart."""
        for message, deleted, deleted_parts in self._messages():
            yield message_content(
                message, results=self.request.shows, clean=self._clean, deleted=deleted, deleted_parts=deleted_parts
            )

    def events(self) -> list[Json]:
        """What happened in it besides messages, such as a change of the model: ``{id, type, timestamp, data}``."""
        return [
            self._clean(
                {
                    "id": event["id"],
                    "type": event["type"],
                    "timestamp": iso(records.integer(records.table(event["time"]).get("created"))),
                    "data": event["data"],
                }
            )
            for event in self.archive.beside.events(self.session.id)
        ]

    def todos(self) -> list[Json]:
        """Its todo list in its last state, as recorded."""
        items: list[Json] = self._clean(self.archive.beside.todos(self.session.id))
        return items

    def replayed(self) -> Iterator[list[OllamaMessage]]:
        """Each message as entries of Ollama's ``messages[]``."""
        for message, _, _ in self._messages():
            yield replay(message) if self.request.raw else clean_replay(message)

    def _messages(self) -> Iterator[tuple[Message, int | None, tuple[str, ...]]]:
        """(message, when its source dropped it, the parts that its source dropped)."""
        for message_id in self.archive.message_ids(self.session.id) if self.only is None else self.only:
            state, message = self.archive.state(message_id), self.archive.message(message_id)
            if state is None or message is None:
                self.missing.append(message_id)
                continue
            if state["deleted"] is not None and not self.request.deleted:
                continue
            deleted_parts = tuple(state["gone"])
            if deleted_parts and not self.request.deleted:
                message, deleted_parts = (
                    replace(message, parts=parts_where(message.parts, partial(_is_not_in, deleted_parts))),
                    (),
                )
            self.count += 1
            yield message, state["deleted"], deleted_parts

    @property
    def _clean(self) -> Clean:
        return _as_it_is if self.request.raw else redact_value


def open_session(archive: Archive, request: Export, session_id: str) -> SessionContent:
    """The session of that id; what its own record would say is made up from its messages where there is none."""
    session, state = archive.session(session_id), archive.session_state(session_id)
    record = session if session is not None else _placeholder_session(archive, session_id)
    clean = _as_it_is if request.raw else redact_value
    visible = replace(
        record,
        project_id=clean(record.project_id),
        directory=clean(record.directory),
        title=clean(record.title),
        version=clean(record.version),
    )
    return SessionContent(
        archive, request, visible, state["deleted"] if state else None, has_record=session is not None
    )


def _placeholder_session(archive: Archive, session_id: str) -> Session:
    ids = archive.message_ids(session_id)
    times = [
        state["created"] for message_id in (*ids[:1], *ids[-1:]) if (state := archive.state(message_id)) is not None
    ] or [0]
    paths = (records.table(message.data.get("path")).get("cwd") for message in archive.messages(session_id))
    directory = next((path for path in paths if isinstance(path, str) and path), "")
    return Session(session_id, "", directory, "", times[0], times[-1], b"{}")


def _is_not_in(ids: Sequence[str], part: Part) -> bool:
    return part.id not in ids


def _as_it_is(value: object) -> Any:
    return value
