"""A session's records become its turns, the calls in them, and what came of both.

`read_session` reads one session. `finish` adds what only shows when all sessions of a folder are compared: forks and
commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from daemon import records
from daemon.archive import Archive
from daemon.model import Json, LargePart, Message, Part, Session
from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.session import commits, file_changes, reverts, turns
from daemon.reconstitute.facts.session_values import FileChange, SessionFacts, Todo, Turn
from daemon.redact import redact
from daemon.transcript.evidence.call_results import listed
from daemon.transcript.tool_calls import valid_text

MOST_TEXT = 100_000
"""Characters of one prompt, answer or piece of reasoning on a page."""
MOST_FOLDED = 8_000
"""Characters of one tool input, output or diff on a page."""
_FRAME = 400
"""Bytes around a message or part on a page."""
_TEXT_TYPES = frozenset({"text", "reasoning"})


def read_session(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    changes: tuple[FileChange, ...],
    *,
    is_whole: bool,
    until: int | None,
    newest: int = 0,
) -> SessionFacts:
    """One session up to `until` (epoch ms; None: now).

    `messages` are the session's messages that concern the folder, in order, and `changes` what it did to the folder's
    files. `newest` is when anything was last recorded in any session.

    Raises:
        ArchiveCorrupt: a record failed its check.
    """
    archive.secrets.learn(session.id)
    all_turns = turns.of(messages, session, newest)
    taken_back, marked = reverts.of(archive, session, messages, all_turns, is_whole=is_whole, until=until)
    state = archive.session_state(session.id) or {}
    return SessionFacts(
        session,
        redact(valid_text(session.title)),
        marked,
        tuple(message.id for message in messages),
        is_whole=is_whole,
        reverts=taken_back,
        todos=_todos(archive, session, messages, marked, is_whole=is_whole, until=until),
        changes=file_changes.by_folder(changes, marked, session.directory),
        deleted=state.get("deleted") is not None,
    )


def finish(sessions: Iterable[SessionFacts]) -> tuple[SessionFacts, ...]:
    """The sessions of a folder, oldest first, with their forks, tests and commits.

    Tests and commits of turns that a fork copied belong to the original session alone.
    """
    ordered = with_forks(sorted(sessions, key=lambda facts: (facts.session.created, facts.id)))
    turns_by_session = {facts.id: facts.own_turns for facts in ordered}
    by_session = commits.of(turns_by_session)
    return tuple(
        replace(
            facts,
            tests=shell.tests(facts.id, turns_by_session[facts.id]),
            commits=by_session[facts.id][0],
            undone_commits=by_session[facts.id][1],
        )
        for facts in ordered
    )


def page_size(message: Message) -> int:
    """About how many bytes a message takes up on a page: a long session is divided before it is rendered."""
    return _FRAME + sum(_size(part) for part in message.parts)


def _size(part: Part) -> int:
    if part.type in _TEXT_TYPES:
        text = part.data.get("text")
        return min(len(text.encode("utf-8", "replace")), MOST_TEXT) if isinstance(text, str) else 0
    if part.type != "tool":
        return _FRAME
    limit = 3 * MOST_FOLDED
    return _FRAME + (limit if isinstance(part, LargePart) else min(len(part.raw), limit))


# -- todo lists --------------------------------------------------------------------------------------------------


def _todos(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    session_turns: Sequence[Turn],
    *,
    is_whole: bool,
    until: int | None,
) -> tuple[Todo, ...]:
    """The todo list in its last state. If only some turns concern the folder, one of them must have written it."""
    is_written = any(call.tool == "todowrite" for turn in session_turns for call in turn.calls)
    items: Sequence[object] = archive.beside.todos(session.id) if until is None and (is_whole or is_written) else ()
    return tuple(map(_todo, filter(_is_entry, map(records.table, items or _last_written(messages)))))


def _last_written(messages: Sequence[Message]) -> list[object]:
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


# -- forks -------------------------------------------------------------------------------------------------------


def with_forks(sessions: Sequence[SessionFacts]) -> list[SessionFacts]:
    """The same sessions in the same order; each fork names its origin, the session it shares most turns with.

    Copied turns have new ids, and keep their times: they are older than the fork itself. A fork may begin with any turn
    of its origin, because turns that a revert had removed were not copied.
    """
    by_turn: dict[Hashable, dict[str, SessionFacts]] = defaultdict(dict)
    for facts in sessions:
        for turn in facts.turns:
            by_turn[_identity(turn)][facts.id] = facts
    return [
        _with_origin(facts, by_turn[_identity(facts.turns[0])].values()) if _may_be_fork(facts) else facts
        for facts in sessions
    ]


def _may_be_fork(facts: SessionFacts) -> bool:
    return bool(facts.turns) and facts.session.parent_id is None and facts.turns[0].time < facts.session.created


def _with_origin(fork: SessionFacts, alike: Iterable[SessionFacts]) -> SessionFacts:
    older = [facts for facts in alike if facts.id != fork.id and facts.session.created < fork.session.created]
    if not older:
        return fork
    origin = min(older, key=lambda facts: (-_copied(fork, facts), facts.session.created, facts.id))
    return replace(fork, forked_from=origin.id, copied=_copied(fork, origin))


def _copied(fork: SessionFacts, origin: SessionFacts) -> int:
    """How many turns at the beginning of a fork are copies."""
    original = {_identity(turn) for turn in origin.turns}
    is_copy = [_identity(turn) in original and turn.time < fork.session.created for turn in fork.turns]
    return is_copy.index(False) if False in is_copy else len(is_copy)


def _identity(turn: Turn) -> Hashable:
    """What a copy of a turn has in common with it."""
    return turn.time, turn.prompt, tuple((reply.time, reply.text) for reply in turn.replies), len(turn.calls)
