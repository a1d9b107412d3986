"""What each session did to the files of a folder, all in all: lines added and removed, and what was undone again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.files import FileHistory
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision, is_of_past
from daemon.files.line_diffs import counts
from daemon.model import Operation
from daemon.reconstitute.facts.session_values import FileChange
from daemon.redact import redact

_ENDS = frozenset({Operation.SNAPSHOT, Operation.STATE})
_ON_TOP = frozenset({Operation.EDIT, Operation.PATCH, Operation.APPEND})
"""They keep what they do not name, so that the lines they changed can be told of a text that is in doubt, too."""


@dataclass(slots=True)
class _Stretch:
    """Changes of one session to a path that nobody else's came between; `before` is the state they began with.

    `origin` is the path at which the file was then, if it was another. `is_late`: the session had, or may have, made
    something of the file before `before`, which is the first that is known of it.
    """

    before: Revision | None
    changes: list[Change]
    origin: str = ""
    is_late: bool = False

    @property
    def first(self) -> Revision:
        return self.changes[0].revision

    @property
    def last(self) -> Revision:
        return self.changes[-1].revision


def by_session(histories: Iterable[FileHistory]) -> dict[str, tuple[FileChange, ...]]:
    """The changes of each session by its id, sorted by path; a read or an observation is no change."""
    by_path: dict[str, dict[str, list[_Stretch]]] = {history.path: _stretches(history) for history in histories}
    found: dict[str, list[FileChange]] = defaultdict(list)
    hide = lru_cache(maxsize=None)(redact)
    for path, sessions in sorted(by_path.items()):
        for session_id, stretches in sessions.items():
            change = _change(path, _with_origin(session_id, stretches, by_path, {path}), by_path.keys())
            if change is not None:
                found[session_id].append(replace(change, path=hide(change.path), moved_from=hide(change.moved_from)))
    return {session_id: tuple(changes) for session_id, changes in found.items()}


def _stretches(history: FileHistory) -> dict[str, list[_Stretch]]:
    """By session; what was changed outside of OpenCode belongs to none, and parts the changes around it."""
    found: dict[str, list[_Stretch]] = defaultdict(list)
    latest = ""
    late = _late(history)
    for change in history.changes:
        maker = change.maker
        if maker and maker == latest:
            found[maker][-1].changes.append(change)
        elif maker:
            is_late = not found[maker] and change.before is late.get(maker)
            found[maker].append(_Stretch(change.before, [change], is_late=change.before is not None and is_late))
        latest = maker
    return found


def _late(history: FileHistory) -> dict[str, Revision]:
    """The first state that is known of the file, by the sessions that may have made something of it before.

    That is who put the file in doubt, or whose step or turn had ended when the file was first seen.
    """
    makers: set[str] = set()
    for revision in history.revisions:
        if revision.operation in DOUBTS:
            makers.add(revision.session_id)
            continue
        if revision.operation in _ENDS and not revision.appeared and not any(map(is_of_past, revision.evidence[:1])):
            makers.add(revision.session_id)
        return dict.fromkeys(makers, revision) if revision.operation in OBSERVATIONS else {}
    return {}


def _with_origin(
    session_id: str, stretches: list[_Stretch], by_path: dict[str, dict[str, list[_Stretch]]], seen: set[str]
) -> list[_Stretch]:
    """The same, with what the session did to the file where it was before it moved it here; `seen`: where it was."""
    first = stretches[0]
    source = next((one.revision.moved_from for one in first.changes if one.revision.moved_from), "")
    if not source or source in seen or (first.before is not None and not first.before.deleted):
        return stretches
    earlier = by_path.get(source, {}).get(session_id, [])
    earlier = [one for one in earlier if one.first.time <= first.first.time]
    if not earlier or not earlier[-1].last.moved_to:
        return [replace(first, origin=source), *stretches[1:]]
    earlier = _with_origin(session_id, earlier, by_path, seen | {source})
    last = earlier[-1]
    joined = _Stretch(last.before, [*last.changes[:-1], *first.changes], last.origin or source)
    return [*earlier[:-1], joined, *stretches[1:]]


def _change(path: str, stretches: Sequence[_Stretch], known: Iterable[str]) -> FileChange | None:
    """All of a session's changes to a path as one; None where nothing of them is left, or another path tells it."""
    first, last = stretches[0], stretches[-1].last
    if last.moved_to:
        away = FileChange(last.moved_to, "moved", moved_from=path)
        return None if last.moved_to in known or _absent(first) else away
    is_back = _is_back(first, last)
    is_undone = is_back and first.changes[-1].is_revert and last.proven and len(stretches) == 1
    if is_undone:
        made = [change for change in first.changes if not change.is_revert]
        if not made:
            return None
        stretches, last = [_Stretch(first.before, made)], made[-1].revision
    elif is_back:
        return None  # made and removed, or changed and changed back
    if last.deleted and not _was_there(first):
        return None
    what = "deleted" if last.deleted else "added" if _absent(first) else "moved" if first.origin else "changed"
    added, removed = _lines(stretches)
    origin = first.origin if what == "moved" else ""
    return FileChange(path, what, added, removed, origin, undone=is_undone, seen_in=_seen_in(stretches))


def _seen_in(stretches: Sequence[_Stretch]) -> str:
    """The message after whose step the newest of the changes was seen; empty where a call tells of one of them."""
    made = [change.revision for stretch in stretches for change in stretch.changes]
    is_seen = all(one.operation in _ENDS and one.tool != "revert" and not one.moved_from for one in made)
    return made[-1].message_id if is_seen and not made[-1].deleted else ""


def _absent(stretch: _Stretch) -> bool:
    """Whether there was no file before. Where nothing is recorded of it, the call's record may tell."""
    first = stretch.first
    if stretch.before is not None:
        return stretch.before.deleted
    if first.moved_from or first.deleted:
        return False
    return first.existed is False or first.appeared or (first.existed is None and first.operation is Operation.WRITE)


def _was_there(stretch: _Stretch) -> bool:
    """Whether there surely was a file that the session's changes could begin with: `rm -f` needs none."""
    return stretch.before is not None or any(_needs_file(change.revision) for change in stretch.changes)


def _needs_file(revision: Revision) -> bool:
    return revision.existed is True or (revision.deleted and revision.tool != "bash")


def _is_back(first: _Stretch, after: Revision) -> bool:
    """Whether the state after all of it is the one before it, as far as both are known."""
    before = first.before
    if after.deleted or _absent(first):
        return after.deleted and _absent(first)
    if first.origin or before is None or before.whole is None or after.whole is None:
        return False
    return before.whole.is_same(after.whole)


def _lines(stretches: Sequence[_Stretch]) -> tuple[int | None, int | None]:
    """Lines added and removed, the stretches added up; None, None where the content of a state is not known."""
    added = removed = 0
    for stretch in stretches:
        before, after = _before(stretch), b"" if stretch.last.deleted else stretch.last.content
        told = None if before is None or after is None else counts(before, after)
        if told is None:
            return None, None
        added, removed = added + told[0], removed + told[1]
    return added, removed


def _before(stretch: _Stretch) -> bytes | None:
    first, before = stretch.first, stretch.before
    if _absent(stretch):
        return b""
    if before is None or first.was_changed_outside or before.deleted or stretch.is_late:
        return None
    is_known = before.proven or before.mark_unknown or before.unconfirmed or first.operation in _ON_TOP
    return before.content if is_known else None
