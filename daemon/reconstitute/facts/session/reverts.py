"""What a session's reverts took back: prompts, files, and the turns that no longer stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from daemon import records
from daemon.archive import Archive
from daemon.files.events.revert_records import Revert, is_from, reverts
from daemon.model import FileEdit, Message, Operation, Part, Session
from daemon.reconstitute.facts.session_values import TakenBack, Turn
from daemon.redact import redact
from daemon.transcript.evidence import git_diff
from daemon.transcript.evidence.call_results import listed
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import absolute, worktree

_TOLD_BY = frozenset({"tool", "patch"})
"""The parts that a file's change is told by: one that is gone may have been reverted."""


def of(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    turns: Sequence[Turn],
    *,
    is_whole: bool,
    until: int | None,
) -> tuple[tuple[TakenBack, ...], tuple[Turn, ...]]:
    """The reverts that took back some of `messages` (of a whole session: all), by time, and the turns as they stand."""
    left = _left_over(messages, session)
    if not left and not _may_have_any(archive, session, messages):
        return (), tuple(turns)
    found, standing = [], list(turns)
    is_here = (archive.session_state(session.id) or {}).get("deleted") is None
    for revert in sorted(reverts(archive, session.id, _edits(messages)), key=lambda one: (one.time, one.first)):
        covered = [message for message in messages if is_covered(revert, message)]
        if (until is not None and revert.time > until) or not (covered or is_whole):
            continue
        undone = revert.until if revert.undone is None else revert.undone
        undone = None if undone is not None and until is not None and undone > until else undone
        is_final = any(map(archive.is_deleted, (message.id for message in covered)))
        is_final = is_final or any(revert.part <= part for part in archive.gone(revert.first) if revert.part)
        ids = {message.id for message in covered}
        whole = ids - ({revert.first} if revert.part else set())
        found.append(
            TakenBack(
                revert.time,
                revert.first,
                revert.part,
                undone=undone,
                pending=is_here and revert.is_recorded and undone is None and not is_final,
                prompts=tuple(turn.prompt for turn in turns if turn.prompt and turn.prompt_id in whole),
                paths=_paths(revert, covered, session),
                is_certain=revert.is_recorded and revert.until is None,
            )
        )
        if undone is None:
            in_doubt = not revert.is_recorded
            standing = [
                _marked(turn, whole, in_doubt=in_doubt) if ids.intersection(turn.message_ids) else turn
                for turn in standing
            ]
    for one in left:
        if (until is None or one.time <= until) and not _is_told(standing, one.message_id):
            found.append(one)
            ids = {one.message_id}
            standing = [_marked(turn, ids, in_doubt=True) if turn.prompt_id in ids else turn for turn in standing]
    return tuple(sorted(found, key=lambda one: (one.time, one.message_id))), tuple(standing)


def _left_over(messages: Sequence[Message], session: Session) -> list[TakenBack]:
    """Reverts of which only a prompt's record is left, without its text, an answer, or a mark in the session.

    OpenCode 1.15 removes what was reverted at the next prompt, and may write the removed prompt's summary after that.
    Its diff is of the turn that is gone.
    """
    found = []
    answered = {records.text(message.data.get("parentID")) for message in messages}
    for number, message in enumerate(messages, start=1):
        diffs = listed(records.table(message.data.get("summary")).get("diffs"))
        if message.role != "user" or message.parts or not diffs or message.id in answered:
            continue
        time = messages[number].created if number < len(messages) else session.updated
        root = worktree(message, session)
        named = (absolute(unquoted(records.text(records.table(diff).get("file"))), root) for diff in diffs)
        paths = tuple(sorted({redact(path) for path in named if path}))
        found.append(TakenBack(max(message.created, time), message.id, paths=paths, is_certain=False))
    return found


def _is_told(turns: Iterable[Turn], message_id: str) -> bool:
    return any(turn.taken_back and message_id in turn.message_ids for turn in turns)


def is_covered(revert: Revert, message: Message) -> bool:
    """Whether a revert took back a message, or some of its parts."""
    return message.created <= revert.time and is_from(message.id, revert.first)


def _marked(turn: Turn, whole: AbstractSet[str], *, in_doubt: bool) -> Turn:
    """`turn` as taken back; what one revert surely took back (all of it, if all its messages are among those that are
    taken back `whole`) is in no doubt because of another.
    """
    in_doubt = in_doubt and (turn.in_doubt or not turn.taken_back)
    in_part = not whole >= set(turn.message_ids) and (turn.in_part or not turn.taken_back)
    return replace(turn, taken_back=True, in_doubt=in_doubt, in_part=in_part)


def _may_have_any(archive: Archive, session: Session, messages: Sequence[Message]) -> bool:
    """Whether there is any sign of one: nearly no session has, and telling its reverts reads each message's state."""
    if b'"revert"' in session.raw or archive.files.session_extra(session.id).get("reverts"):
        return True
    states = (archive.state(message.id) or {} for message in messages)
    return any(state.get("deleted") is not None or state.get("gone") for state in states)


def _edits(messages: Iterable[Message]) -> list[FileEdit]:
    """One event for each part that may have changed files: all that the reverts of a session are told by."""
    return [
        FileEdit("", _time(part, message), part.session_id, message.id, part.id, "", Operation.UNCLEAR)
        for message in messages
        for part in message.parts
        if part.type in _TOLD_BY
    ]


def _time(part: Part, message: Message) -> int:
    time = records.table(records.table(part.data.get("state")).get("time"))
    return max(message.created, records.integer(time.get("end")))


def _paths(revert: Revert, covered: Sequence[Message], session: Session) -> tuple[str, ...]:
    """The files that it set back or removed: those of the recorded diff, else of the steps that it took back."""
    if not revert.is_recorded or not covered:
        return ()
    changes = git_diff.changes(revert.diff) if revert.diff else None
    if changes is not None:
        root = next((worktree(message, session) for message in covered if message.data.get("path")), session.directory)
        named = [absolute(name, root) for name in changes]
    else:
        named = [
            absolute(unquoted(records.text(name)), worktree(message, session))
            for message in covered
            for part in message.parts
            if part.type == "patch" and (message.id != revert.first or part.id > revert.part)
            for name in listed(part.data.get("files"))
        ]
    return tuple(sorted({redact(path) for path in named if path}))
