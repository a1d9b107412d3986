"""What each session did to the files of a folder, all in all: lines added and removed, and what was undone again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.files import FileHistory
from daemon.files.history import Revision
from daemon.files.lines import counts
from daemon.model import Operation
from daemon.reconstitute.facts.values import FileChange
from daemon.redact import redact

_ON_TOP = frozenset({Operation.EDIT, Operation.PATCH, Operation.APPEND})
"""They keep what they do not name, so that the lines they changed can be told of a text that is in doubt, too."""


@dataclass(slots=True)
class _Stretch:
    """Changes of one session to a path that nobody else's came between; `before` is the state they began with."""

    before: Revision | None
    revisions: list[Revision]

    @property
    def last(self) -> Revision:
        return self.revisions[-1]


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
    for revision, before in history.changes:
        maker = "" if revision.is_from_outside else revision.session_id
        if maker and maker == latest:
            found[maker][-1].revisions.append(revision)
        elif maker:
            found[maker].append(_Stretch(before, [revision]))
        latest = maker
    return found


def _with_origin(
    session_id: str, stretches: list[_Stretch], by_path: dict[str, dict[str, list[_Stretch]]], seen: set[str]
) -> list[_Stretch]:
    """The same, with what the session did to the file where it was before it moved it here; `seen`: where it was."""
    first = stretches[0]
    source = next((revision.moved_from for revision in first.revisions if revision.moved_from), "")
    earlier = [
        one for one in by_path.get(source, {}).get(session_id, []) if one.revisions[0].time <= first.revisions[0].time
    ]
    if source in seen or not earlier or not earlier[-1].last.moved_to:
        return stretches
    earlier = _with_origin(session_id, earlier, by_path, seen | {source})
    joined = _Stretch(earlier[-1].before, [*earlier[-1].revisions[:-1], *first.revisions])
    return [*earlier[:-1], joined, *stretches[1:]]


def _change(path: str, stretches: Sequence[_Stretch], known: Iterable[str]) -> FileChange | None:
    """All of a session's changes to a path as one; None where nothing of them is left, or another path tells it."""
    first, last = stretches[0], stretches[-1].last
    if last.moved_to:
        away = FileChange(last.moved_to, "moved", moved_from=path)
        return None if last.moved_to in known or _absent(first) else away
    is_back = _is_back(first, last)
    is_undone = is_back and last.tool == "revert" and len(stretches) == 1
    if is_undone:
        made = [revision for revision in first.revisions if revision.tool != "revert"]
        if not made:
            return None
        stretches, last = [_Stretch(first.before, made)], made[-1]
    elif is_back:
        return None  # made and removed, or changed and changed back
    moved_from = next((r.moved_from for one in stretches for r in one.revisions if r.moved_from), "")
    what = "deleted" if last.deleted else "added" if _absent(first) else "moved" if moved_from else "changed"
    added, removed = _lines(stretches)
    return FileChange(path, what, added, removed, moved_from if what == "moved" else "", undone=is_undone)


def _absent(stretch: _Stretch) -> bool:
    """Whether there was no file before. Where nothing is recorded of it, the call's record may tell."""
    first = stretch.revisions[0]
    if stretch.before is not None:
        return stretch.before.deleted
    if first.moved_from or first.deleted:
        return False
    return first.existed is False or first.appeared or (first.existed is None and first.operation is Operation.WRITE)


def _is_back(first: _Stretch, after: Revision) -> bool:
    """Whether the state after all of it is surely the one before it."""
    before = first.before
    if after.deleted or _absent(first):
        return after.deleted and _absent(first)
    if before is None or before.whole is None or after.whole is None:
        return False
    return before.proven and after.proven and before.whole.is_same(after.whole) and not after.moved_from


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
    first, before = stretch.revisions[0], stretch.before
    if _absent(stretch):
        return b""
    if before is None or first.outside_change or before.deleted:
        return None
    is_known = before.proven or before.mark_unknown or before.unconfirmed or first.operation in _ON_TOP
    return before.content if is_known else None
