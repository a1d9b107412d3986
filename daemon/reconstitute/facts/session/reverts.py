"""What a session's reverts took back: prompts, files and turns, and which files kept their changes all the same.

OpenCode sets files back from its snapshots. Without git there are none, and a revert from some part on leaves what came
before it. A file is only named as kept if a certain state after the revert is the one that the turn left.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from daemon import records
from daemon.archive import Archive
from daemon.files import FileHistory
from daemon.files.events.revert_records import Revert, is_covered, may_have_any, part_edits, reverts
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision
from daemon.model import Message, Session
from daemon.reconstitute.facts.session_values import SessionFacts, TakenBack, Turn
from daemon.redact import redact
from daemon.transcript.evidence import unified_diffs
from daemon.transcript.evidence.call_results import listed
from daemon.transcript.paths import unquoted
from daemon.transcript.tool_calls import absolute, worktree

_MOST_NAMES = 3


def of(
    archive: Archive,
    session: Session,
    messages: Sequence[Message],
    turns: Sequence[Turn],
    *,
    is_whole: bool,
    until: int | None,
) -> tuple[tuple[TakenBack, ...], tuple[Turn, ...]]:
    """The reverts that took back some of `messages` (of a whole session: all), by time, and the turns so marked."""
    remnants = _remnants(messages, session)
    if not remnants and not may_have_any(archive, session, [message.id for message in messages]):
        return (), tuple(turns)
    taken_back, marked_turns = [], list(turns)
    is_deleted = (archive.session_state(session.id) or {}).get("deleted") is not None
    for revert in sorted(reverts(archive, session.id, part_edits(messages)), key=lambda item: (item.time, item.first)):
        covered = [message for message in messages if is_covered(revert, message)]
        if (until is not None and revert.time > until) or not (covered or is_whole):
            continue
        undone = revert.until if revert.undone is None else revert.undone
        undone = None if undone is not None and until is not None and undone > until else undone
        is_pending = (
            revert.is_recorded and undone is None and not is_deleted and not _is_final(archive, revert, covered)
        )
        ids = {message.id for message in covered}
        whole_ids = ids - ({revert.first} if revert.part else set())
        taken_back.append(
            TakenBack(
                revert.time,
                revert.first,
                revert.part,
                undone=undone,
                pending=is_pending,
                prompts=tuple(turn.prompt for turn in turns if turn.prompt and turn.prompt_id in whole_ids),
                paths=_paths(revert, covered, session),
                is_certain=revert.is_recorded and revert.until is None,
            )
        )
        if undone is None:
            in_doubt = not revert.is_recorded
            marked_turns = [
                _marked(turn, whole_ids, in_doubt=in_doubt) if ids.intersection(turn.message_ids) else turn
                for turn in marked_turns
            ]
    for remnant in remnants:
        if (until is None or remnant.time <= until) and not _is_taken_back(marked_turns, remnant.message_id):
            taken_back.append(remnant)
            ids = {remnant.message_id}
            marked_turns = [
                _marked(turn, ids, in_doubt=True) if turn.prompt_id in ids else turn for turn in marked_turns
            ]
    return tuple(sorted(taken_back, key=lambda item: (item.time, item.message_id))), tuple(marked_turns)


def _is_final(archive: Archive, revert: Revert, covered: Sequence[Message]) -> bool:
    """Whether OpenCode has deleted what a revert took back, so that it cannot be undone."""
    if any(archive.is_deleted(message.id) for message in covered):
        return True
    return any(revert.part <= part for part in archive.gone(revert.first) if revert.part)


def _remnants(messages: Sequence[Message], session: Session) -> list[TakenBack]:
    """Reverts of which only a prompt's record is left, without its text, an answer, or a mark in the session.

    OpenCode 1.15 removes reverted messages at the next prompt, and may write the removed prompt's summary after that.
    The diff in the summary is that of the removed turn.
    """
    remnants = []
    answered = {records.text(message.data.get("parentID")) for message in messages}
    for number, message in enumerate(messages, start=1):
        diffs = listed(records.table(message.data.get("summary")).get("diffs"))
        if message.role != "user" or message.parts or not diffs or message.id in answered:
            continue
        time = messages[number].created if number < len(messages) else session.updated
        root = worktree(message, session)
        diff_paths = (absolute(unquoted(records.text(records.table(diff).get("file"))), root) for diff in diffs)
        paths = tuple(sorted({redact(path) for path in diff_paths if path}))
        remnants.append(TakenBack(max(message.created, time), message.id, paths=paths, is_certain=False))
    return remnants


def _is_taken_back(turns: Iterable[Turn], message_id: str) -> bool:
    return any(turn.taken_back and message_id in turn.message_ids for turn in turns)


def _marked(turn: Turn, whole_ids: AbstractSet[str], *, in_doubt: bool) -> Turn:
    """`turn` as taken back; `whole_ids` are the messages of which every part was.

    Another revert in doubt does not make one doubtful that is certain, nor does a partial one make a whole one partial.
    """
    in_doubt = in_doubt and (turn.in_doubt or not turn.taken_back)
    in_part = not whole_ids >= set(turn.message_ids) and (turn.in_part or not turn.taken_back)
    return replace(turn, taken_back=True, in_doubt=in_doubt, in_part=in_part)


def _paths(revert: Revert, covered: Sequence[Message], session: Session) -> tuple[str, ...]:
    """The files that a revert set back or removed: those of the recorded diff, else of the steps that it took back."""
    if not revert.is_recorded or not covered:
        return ()
    changes = unified_diffs.changes(revert.diff) if revert.diff else None
    if changes is not None:
        root = next((worktree(message, session) for message in covered if message.data.get("path")), session.directory)
        paths = [absolute(name, root) for name in changes]
    else:
        paths = [
            absolute(unquoted(records.text(name)), worktree(message, session))
            for message in covered
            for part in message.parts
            if part.type == "patch" and (message.id != revert.first or part.id > revert.part)
            for name in listed(part.data.get("files"))
        ]
    return tuple(sorted({redact(path) for path in paths if path}))


# -- files that kept their changes -------------------------------------------------------------------------------


def with_kept(facts: SessionFacts, histories: Sequence[FileHistory]) -> SessionFacts:
    """The session with the files of `histories` in which its taken-back turns left their changes."""
    if not any(turn.taken_back for turn in facts.turns):
        return facts
    after = max(revert.time for revert in facts.reverts)
    turns = (_with_kept_files(turn, histories, after) if turn.taken_back else turn for turn in facts.turns)
    return replace(facts, turns=tuple(turns))


def _with_kept_files(turn: Turn, histories: Iterable[FileHistory], after: int) -> Turn:
    kept_paths = sorted(redact(history.path) for history in histories if _still_has(history, turn, after))
    return replace(turn, kept=tuple(kept_paths))


def _still_has(history: FileHistory, turn: Turn, after: int) -> bool:
    """Whether the file surely still was as the turn left it when the revert was over, at `after` (epoch ms)."""
    changes = [change for change in history.changes if _is_made_by(change, turn)]
    if not changes or not changes[-1].revision.proven or changes[-1].revision.deleted:
        return False
    result, before = changes[-1].revision, changes[0].before
    if before is not None and _is_same(before, result):
        return False
    last = result
    for revision in history.revisions[history.revisions.index(result) + 1 :]:
        if revision.operation not in DOUBTS | OBSERVATIONS:
            break  # something changed it again
        if not _is_same(revision, result):
            return False
        last = revision
    return last.proven and not last.is_fleeting and (last is history.latest or last.time >= after)


def _is_made_by(change: Change, turn: Turn) -> bool:
    is_edit = change.revision.operation not in OBSERVATIONS and not change.is_revert
    return is_edit and change.revision.message_id in turn.message_ids


def _is_same(revision: Revision, later: Revision) -> bool:
    return revision.whole is not None and later.whole is not None and revision.whole.is_same(later.whole)


def kept_words(turns: Iterable[Turn]) -> str:
    """The files that surely kept the changes of those `turns` that were taken back, in words; empty if none did."""
    turns = [turn for turn in turns if turn.taken_back]
    survives: dict[str, bool] = {}
    for turn in turns:  # of a file that several turns changed, the last one counts
        survives |= {path: path in turn.kept for call in turn.calls for path in call.changed}
        survives |= dict.fromkeys(turn.kept, True)
    names = [posixpath.basename(path) for path, stays in sorted(survives.items()) if stays]
    may_do_more = any(call.command or call.child for turn in turns for call in turn.calls)
    if names and len(names) == len(survives) and not may_do_more:
        return "its files were left as they were"
    omitted = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    verb_phrase = "kept its change" if len(names) == 1 else "kept their changes"
    return f"{', '.join(names[:_MOST_NAMES])}{omitted} {verb_phrase}" if names else ""
