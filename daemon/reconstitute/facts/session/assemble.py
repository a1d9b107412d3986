"""A session's records become its turns, calls and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from daemon import records
from daemon.archive import Archive
from daemon.model import Json, Message, Session
from daemon.reconstitute.facts.content import generated
from daemon.reconstitute.facts.session import commits, forks, turns
from daemon.reconstitute.facts.session import reverts as taken_back
from daemon.reconstitute.facts.session_values import FileChange, SessionFacts, Todo, Turn
from daemon.reconstitute.facts.shell import outcomes
from daemon.redact import redact
from daemon.transcript.evidence.call_results import listed
from daemon.transcript.tool_calls import valid_text


def of(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    changes: tuple[FileChange, ...],
    *,
    is_whole: bool,
    until: int | None,
    newest: int = 0,
) -> SessionFacts:
    """One session up to `until` (epoch ms; None: now). `messages` are those of its messages that have to do with the
    folder, in order; `changes` what it did to the folder's files; `newest` is when anything was last recorded at all.

    Raises:
        ArchiveCorrupt: a record failed its check.
    """
    archive.secrets.learn(session.id)
    said = turns.of(messages, session, newest)
    reverts, marked = taken_back.of(archive, session, messages, said, is_whole=is_whole, until=until)
    state = archive.session_state(session.id) or {}
    return SessionFacts(
        session,
        redact(valid_text(session.title)),
        marked,
        tuple(message.id for message in messages),
        is_whole=is_whole,
        reverts=reverts,
        todos=_todos(archive, session, messages, marked, is_whole=is_whole, until=until),
        changes=generated.folded(changes, marked, session.directory),
        deleted=state.get("deleted") is not None,
    )


def finished(sessions: Iterable[SessionFacts]) -> tuple[SessionFacts, ...]:
    """The sessions of a folder, oldest first, with what only shows beside each other: what a fork copied is not told
    of it again, and so neither tests nor commits of these turns.
    """
    ordered = forks.marked(sorted(sessions, key=lambda one: (one.session.created, one.id)))
    own = {one.id: one.turns[one.copied :] for one in ordered}
    made = commits.of(own)
    return tuple(
        replace(one, tests=outcomes.tests(one.id, own[one.id]), commits=made[one.id][0], undone_commits=made[one.id][1])
        for one in ordered
    )


def _todos(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    said: Sequence[Turn],
    *,
    is_whole: bool,
    until: int | None,
) -> tuple[Todo, ...]:
    """The todo list in its last state. Where only some turns have to do with the folder, these must have written it."""
    wrote = any(call.tool == "todowrite" for turn in said for call in turn.calls)
    items: Sequence[object] = archive.beside.todos(session.id) if until is None and (is_whole or wrote) else ()
    return tuple(map(_todo, filter(_is_entry, map(records.table, items or _written(messages)))))


def _written(messages: Sequence[Message]) -> list[object]:
    """The list as the last call that wrote it left it."""
    for message in reversed(messages):
        for part in reversed(message.parts):
            state = records.table(part.data.get("state"))
            if part.type == "tool" and part.data.get("tool") == "todowrite" and state.get("status") == "completed":
                return listed(records.table(state.get("input")).get("todos"))
    return []


def _is_entry(item: Json) -> bool:
    return bool(records.text(item.get("content")).strip())


def _todo(item: Json) -> Todo:
    text, status, priority = (valid_text(records.text(item.get(name))) for name in ("content", "status", "priority"))
    return Todo(redact(text.strip()), status, priority)
