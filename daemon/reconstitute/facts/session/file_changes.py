"""The net changes of each session to the files of a folder: lines added and removed, and what a revert undid."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.files import FileHistory
from daemon.files.history import DOUBTS, OBSERVATIONS, Change, Revision, is_of_past
from daemon.files.line_diffs import counts
from daemon.files.trees import is_beneath
from daemon.model import Operation
from daemon.reconstitute.facts.session_values import FileChange, Turn
from daemon.redact import redact

_FEWEST_IN_FOLDER = 3
"""Files of one folder that become one change."""
_ENDS = frozenset({Operation.SNAPSHOT, Operation.STATE})
_ON_TOP = frozenset({Operation.EDIT, Operation.PATCH, Operation.APPEND})
"""They keep the rest of the file, so their lines can be counted even if the text is in doubt."""
_NEVER_HIDDEN = frozenset({"deleted", "moved", "written"})


@dataclass(frozen=True, slots=True)
class ChangedFolder:
    """A folder, by its absolute path, in which that many files were changed."""

    path: str
    count: int


@dataclass(slots=True)
class _Stretch:
    """Changes of one session to a path without anybody else's between them; `before` is the state before them.

    `origin` is the path of the file at that time, if it was another. `is_late`: the session may have changed the file
    earlier than `before`, the first known state.
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
    """The changes of each session by its id, sorted by path. A read or an observation is no change."""
    by_path: dict[str, dict[str, list[_Stretch]]] = {history.path: _stretches(history) for history in histories}
    changes_by_session: dict[str, list[FileChange]] = defaultdict(list)
    hide = lru_cache(maxsize=None)(redact)
    for path, sessions in sorted(by_path.items()):
        for session_id, stretches in sessions.items():
            change = _change(path, _with_origin(session_id, stretches, by_path, {path}), by_path.keys())
            if change is not None:
                changes_by_session[session_id].append(
                    replace(change, path=hide(change.path), moved_from=hide(change.moved_from))
                )
    return {session_id: tuple(changes) for session_id, changes in changes_by_session.items()}


def _stretches(history: FileHistory) -> dict[str, list[_Stretch]]:
    """By session. A change from outside OpenCode belongs to none, and separates the changes around it."""
    by_maker: dict[str, list[_Stretch]] = defaultdict(list)
    latest = ""
    late = _late(history)
    for change in history.changes:
        maker = change.maker
        if maker and maker == latest:
            by_maker[maker][-1].changes.append(change)
        elif maker:
            is_late = not by_maker[maker] and change.before is late.get(maker)
            by_maker[maker].append(_Stretch(change.before, [change], is_late=change.before is not None and is_late))
        latest = maker
    return by_maker


def _late(history: FileHistory) -> dict[str, Revision]:
    """The first known state of the file, by the sessions that may have changed it before.

    These are the sessions that put the file in doubt, and those whose step or turn had ended when it was first seen.
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
    """The same, with the session's changes to the file before it moved it here; `seen` are the earlier paths."""
    first = stretches[0]
    source = next((stretch.revision.moved_from for stretch in first.changes if stretch.revision.moved_from), "")
    if not source or source in seen or (first.before is not None and not first.before.deleted):
        return stretches
    earlier = by_path.get(source, {}).get(session_id, [])
    earlier = [stretch for stretch in earlier if stretch.first.time <= first.first.time]
    if not earlier or not earlier[-1].last.moved_to:
        return [replace(first, origin=source), *stretches[1:]]
    earlier = _with_origin(session_id, earlier, by_path, seen | {source})
    last = earlier[-1]
    joined = _Stretch(last.before, [*last.changes[:-1], *first.changes], last.origin or source)
    return [*earlier[:-1], joined, *stretches[1:]]


def _change(path: str, stretches: Sequence[_Stretch], paths: Iterable[str]) -> FileChange | None:
    """All changes of a session to a path as one; None if nothing of them is left, or another path has them."""
    first, last = stretches[0], stretches[-1].last
    if last.moved_to:
        away = FileChange(last.moved_to, "moved", moved_from=path)
        return None if last.moved_to in paths or _absent(first) else away
    is_back = _is_back(first, last)
    is_undone = is_back and first.changes[-1].is_revert and last.proven and len(stretches) == 1
    if is_undone:
        edits = [change for change in first.changes if not change.is_revert]
        if not edits:
            return None
        stretches, last = [_Stretch(first.before, edits)], edits[-1].revision
    elif is_back:
        return None  # made and removed, or changed and changed back
    if last.deleted and not _was_there(first):
        return None
    kind = "deleted" if last.deleted else "added" if _absent(first) else "moved" if first.origin else "changed"
    added, removed = _lines(stretches)
    origin = first.origin if kind == "moved" else ""
    return FileChange(path, kind, added, removed, origin, undone=is_undone, seen_in=_observation(stretches))


def _observation(stretches: Sequence[_Stretch]) -> str:
    """The message after whose step the newest change was seen; empty if a call recorded one of the changes."""
    revisions = [change.revision for stretch in stretches for change in stretch.changes]
    is_observed = all(
        revision.operation in _ENDS and revision.tool != "revert" and not revision.moved_from for revision in revisions
    )
    return revisions[-1].message_id if is_observed and not revisions[-1].deleted else ""


def _absent(stretch: _Stretch) -> bool:
    """Whether there was no file before. If no earlier state is recorded, the call's record may say so."""
    first = stretch.first
    if stretch.before is not None:
        return stretch.before.deleted
    if first.moved_from or first.deleted:
        return False
    return first.existed is False or first.appeared or (first.existed is None and first.operation is Operation.WRITE)


def _was_there(stretch: _Stretch) -> bool:
    """Whether a file surely existed before the session's changes: `rm -f` needs none."""
    return stretch.before is not None or any(_needs_file(change.revision) for change in stretch.changes)


def _needs_file(revision: Revision) -> bool:
    return revision.existed is True or (revision.deleted and revision.tool != "bash")


def _is_back(first: _Stretch, after: Revision) -> bool:
    """Whether the last state is the one before the changes, as far as both are known."""
    before = first.before
    if after.deleted or _absent(first):
        return after.deleted and _absent(first)
    if first.origin or before is None or before.whole is None or after.whole is None:
        return False
    return before.whole.is_same(after.whole)


def _lines(stretches: Sequence[_Stretch]) -> tuple[int | None, int | None]:
    """Lines added and removed in all stretches; None, None if the content of a state is not known."""
    added = removed = 0
    for stretch in stretches:
        before, after = _before(stretch), b"" if stretch.last.deleted else stretch.last.content
        counted = None if before is None or after is None else counts(before, after)
        if counted is None:
            return None, None
        added, removed = added + counted[0], removed + counted[1]
    return added, removed


def _before(stretch: _Stretch) -> bytes | None:
    first, before = stretch.first, stretch.before
    if _absent(stretch):
        return b""
    if before is None or first.was_changed_outside or before.deleted or stretch.is_late:
        return None
    is_known = before.proven or before.mark_unknown or before.unconfirmed or first.operation in _ON_TOP
    return before.content if is_known else None


def by_folder(changes: Iterable[FileChange], turns: Iterable[Turn], directory: str) -> tuple[FileChange, ...]:
    """The changes of a session, those last that no call records; if there are many in one folder, as one change.

    A build writes a folder anew. That would hide the few files that somebody worked on. `directory` is the session's.
    """
    commands = [call for turn in turns for call in turn.calls if call.command]
    recorded: list[FileChange] = []
    nested: list[FileChange] = []
    folders: dict[str, list[FileChange]] = defaultdict(list)
    for change in changes:
        (nested if change.seen_in else recorded).append(change)
        relative = change.path.removeprefix(f"{directory.rstrip('/')}/")
        if change.seen_in and relative != change.path and "/" in relative and not change.undone:
            folders[change.path[: -len(relative)] + relative.partition("/")[0]].append(change)
    changes_: list[FileChange] = []
    for folder, inner in sorted(folders.items()):
        if len(inner) < _FEWEST_IN_FOLDER:
            continue
        messages = {change.seen_in for change in inner}
        causes = {call.command for call in commands if call.message_id in messages}
        nested = [change for change in nested if change not in inner]
        command = causes.pop() if len(causes) == 1 else ""
        changes_.append(FileChange(folder, "written", files=len(inner), command=command))
    recorded.sort(key=lambda change: change.kind not in {"moved", "deleted"})  # these have no count of lines
    return (*recorded, *nested, *changes_)


def in_few_entries(
    changes: Sequence[FileChange], target: str, limit: int
) -> tuple[list[FileChange | ChangedFolder], int]:
    """At most `limit` changes in their order, then at most as many folders; and how many files are left out of both.

    A folder stands for the files beneath it. The target itself is never such a folder, and half of `limit` files stay
    listed. So does every file that was deleted, moved or taken back; these go before what is left out.
    """
    plain = [change for change in changes if change.kind not in _NEVER_HIDDEN and not change.undone]
    counts_by_folder = Counter(posixpath.dirname(change.path) for change in plain)
    only_beneath = {change.path for change in changes} - {change.path for change in plain}
    folders: list[ChangedFolder] = []
    listed = list(changes)
    for path, count in sorted(counts_by_folder.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(listed) + len(folders) <= limit or count < _FEWEST_IN_FOLDER:
            break
        outside = [change for change in listed if change.path in only_beneath or not is_beneath(change.path, path)]
        if len(outside) >= limit // 2 and path != target and len(outside) < len(listed):
            folders.append(ChangedFolder(path, len(listed) - len(outside)))
            listed = outside
    if len(listed) > limit:
        listed.sort(key=lambda change: change.path not in only_beneath)
    omitted = len(listed[limit:]) + sum(change.count for change in folders[limit:])
    return [*listed[:limit], *folders[:limit]], omitted
