"""Which files kept what a turn did to them although a revert took the turn back.

OpenCode sets files back from its snapshots: without git there are none, and a revert from some part on leaves what came
before it. Guarantee: a file is only named where a certain state after the revert is the one that the turn left.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

from daemon.files import FileHistory
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision
from daemon.reconstitute.facts.session_values import SessionFacts, Turn
from daemon.redact import redact

_MOST_NAMES = 3


def marked(one: SessionFacts, histories: Sequence[FileHistory]) -> SessionFacts:
    """`one` with what its taken-back turns left in the files of `histories`."""
    if not any(turn.taken_back for turn in one.turns):
        return one
    after = max(revert.time for revert in one.reverts)
    turns = (_with_kept(turn, histories, after) if turn.taken_back else turn for turn in one.turns)
    return replace(one, turns=tuple(turns))


def _with_kept(turn: Turn, histories: Iterable[FileHistory], after: int) -> Turn:
    kept = sorted(redact(history.path) for history in histories if _has_kept(history, turn, after))
    return replace(turn, kept=tuple(kept))


def _has_kept(history: FileHistory, turn: Turn, after: int) -> bool:
    """Whether the file surely still was as the turn left it when the revert was over, at `after` (epoch ms)."""
    made = [change for change in history.changes if _is_made_by(change, turn)]
    if not made or not made[-1].revision.proven or made[-1].revision.deleted:
        return False
    left, before = made[-1].revision, made[0].before
    if before is not None and _is_same(before, left):
        return False
    last = left
    for revision in history.revisions[history.revisions.index(left) + 1 :]:
        if revision.operation not in DOUBTS | OBSERVATIONS:
            break  # something made another state of it
        if not _is_same(revision, left):
            return False
        last = revision
    return last.proven and not last.is_fleeting and (last is history.latest or last.time >= after)


def _is_made_by(change: Change, turn: Turn) -> bool:
    is_edit = change.revision.operation not in OBSERVATIONS and not change.is_revert
    return is_edit and change.revision.message_id in turn.message_ids


def _is_same(one: Revision, other: Revision) -> bool:
    return one.whole is not None and other.whole is not None and one.whole.is_same(other.whole)


def words(turns: Iterable[Turn]) -> str:
    """Which files surely still are as those of `turns` that were taken back left them; empty where none is known."""
    turns = [turn for turn in turns if turn.taken_back]
    is_kept: dict[str, bool] = {}
    for turn in turns:  # of what several turns changed, only what the last of them left counts
        is_kept |= {path: path in turn.kept for call in turn.calls for path in call.changed}
        is_kept |= dict.fromkeys(turn.kept, True)
    names = [posixpath.basename(path) for path, is_so in sorted(is_kept.items()) if is_so]
    may_do_more = any(call.command or call.child for turn in turns for call in turn.calls)
    if names and len(names) == len(is_kept) and not may_do_more:
        return "its files were left as they were"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    kept = "kept its change" if len(names) == 1 else "kept their changes"
    return f"{', '.join(names[:_MOST_NAMES])}{more} {kept}" if names else ""
