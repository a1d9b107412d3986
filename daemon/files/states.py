"""A file's history for people: only the states that differ, each with what made it and what proves it.

Guarantees: every certain content that differs from the one before has exactly one state, in time order; no revision is
lost, each is among the records of a state; what is not certain is never shown as certain. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from daemon.files.content import Content
from daemon.files.events import formatters
from daemon.files.history import BROUGHT_BACK, DOUBTS, OBSERVATIONS, Revision, is_set_back
from daemon.model import Operation


class Change(StrEnum):
    """What caused a state, in a word or two for people."""

    WRITTEN = "written"
    ADDED_TO = "added to"
    EDITED = "edited"
    PATCHED = "patched"
    TOUCHED = "touched"
    DELETED = "deleted"
    MOVED_HERE = "moved here"
    MOVED_AWAY = "moved away"
    COPIED_HERE = "copied here"
    TAKEN_BACK = "taken back"
    BROUGHT_BACK = "brought back, since a revert was undone"
    FORMATTED = "changed right after it was written, as a formatter does"
    OUTSIDE = "changed outside OpenCode"
    FIRST_SEEN = "first seen"
    FOUND_CHANGED = "found changed"
    PERHAPS = "may have changed"


_BY_OPERATION = {
    Operation.WRITE: Change.WRITTEN,
    Operation.APPEND: Change.ADDED_TO,
    Operation.EDIT: Change.EDITED,
    Operation.PATCH: Change.PATCHED,
    Operation.TOUCH: Change.TOUCHED,
    Operation.MOVE: Change.MOVED_HERE,
    Operation.COPY: Change.COPIED_HERE,
    Operation.DELETE: Change.DELETED,
}
_MOVES = frozenset({Change.MOVED_HERE, Change.MOVED_AWAY})
_FORMATTED = frozenset({formatters.AS_WRITTEN, formatters.FORMATTED})


@dataclass(frozen=True, slots=True)
class Entry:
    """One state of a file. `source` is the revision that made it, or that first shows it; `best` knows most of it.

    `records` are all revisions that tell of it, oldest first, with the doubts that came while it lasted. `base` knows
    the content before it, as well as that is known. `perhaps` may have made it: what is recorded between `base` and it
    and may have changed the file. Of a state that only may be (`change` is PERHAPS) nothing is known but its `records`.
    """

    change: Change
    source: Revision
    best: Revision
    records: tuple[Revision, ...]
    base: Revision | None = None
    perhaps: tuple[Revision, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether the content, or that the file was gone, is certain."""
        return self.change is not Change.PERHAPS and self.best.proven


def file_history(revisions: Sequence[Revision]) -> tuple[Entry, ...]:
    """The states of a file, newest first; `revisions` oldest first."""
    groups: list[_Group] = []
    for revision in revisions:
        if groups and groups[-1].includes(revision, groups[-2] if len(groups) > 1 else None):
            groups[-1].add(revision)
        else:
            groups.append(_Group.of(revision))
    return tuple(_states(groups))[::-1]


@dataclass(slots=True)
class _Group:
    """Consecutive revisions of the same state.

    `best` is the newest certain one, else the newest with the whole content, else the newest. `doubts` may have changed
    the file after this state was last certain, or was made.
    """

    records: list[Revision]
    source: Revision
    best: Revision
    doubts: list[Revision]

    @classmethod
    def of(cls, revision: Revision) -> _Group:
        return cls([revision], revision, revision, [])

    def add(self, revision: Revision) -> None:
        if self.source.operation in DOUBTS:
            self.source = revision
        if revision.proven:
            self.doubts = []
        elif self.best.proven or revision.operation in DOUBTS or revision.outside_change:
            self.doubts.append(revision)
        if _ignorance(revision) <= _ignorance(self.best):
            self.best = revision
        self.records.append(revision)

    def includes(self, revision: Revision, before: _Group | None) -> bool:
        """Whether `revision` is of this state and not of a new one."""
        best = self.best
        if _arrives(revision) and not self._is_mere_doubt:
            return False
        if not revision.proven and revision.operation in DOUBTS:
            return True
        if revision.deleted or best.deleted:
            return revision.deleted and best.deleted
        if best.whole is not None:
            return revision.whole is not None and best.whole.is_same(revision.whole)
        return _only_shows(revision) and not self.doubts and self._becomes_known(revision, before)

    @property
    def _is_mere_doubt(self) -> bool:
        """Whether nothing of it is known but that something may have made it."""
        return all(
            record.operation in DOUBTS and record.whole is None and not record.deleted for record in self.records
        )

    def _becomes_known(self, revision: Revision, before: _Group | None) -> bool:
        """Whether what `revision` shows can be this state, of which no whole content is known yet."""
        if revision.whole is None:
            return not (self.best.blob and revision.blob and self.best.blob != revision.blob)
        # The first whole content that is known after a change is what that made of the file.
        return before is None or not _holds(before.best, revision.whole)


def _ignorance(revision: Revision) -> tuple[bool, bool]:
    """Sorts lower the more is known."""
    return not revision.proven, not revision.deleted and revision.whole is None


def _states(groups: Sequence[_Group]) -> Iterator[Entry]:
    earlier: _Group | None = None
    before: _Group | None = None
    base: Revision | None = None
    perhaps: list[Revision] = []
    for group in groups:
        change = _change(group, before, earlier)
        best = group.best
        if change is Change.FORMATTED and before is not None:
            base = before.best
        is_seen_move = change in _MOVES and group.source.operation in OBSERVATIONS
        may_have_made = tuple(perhaps) if is_seen_move or change in {Change.FOUND_CHANGED, Change.PERHAPS} else ()
        yield Entry(change, group.source, best, tuple(group.records), base, may_have_made)
        if best.proven or best.mark_unknown:
            base, perhaps = best, []
        elif base is None and best.whole is not None:
            base = best
        perhaps += group.doubts
        earlier, before = before, group
    if before is not None and (last := before.doubts) and before.source.operation not in DOUBTS:
        yield Entry(Change.PERHAPS, last[-1], last[-1], tuple(last), before.best, tuple(last))


def _change(group: _Group, before: _Group | None, earlier: _Group | None) -> Change:
    source = group.source
    if source.operation in DOUBTS:
        return Change.PERHAPS
    if before is not None and earlier is not None and is_set_back(group.best, before.best, earlier.best):
        return Change.TAKEN_BACK
    if source.tool == "revert":
        return Change.BROUGHT_BACK if BROUGHT_BACK in source.evidence else Change.TAKEN_BACK
    if source.operation in OBSERVATIONS:
        return _shown_change(source, before)
    if source.operation is Operation.MOVE and source.deleted:
        return Change.MOVED_AWAY
    return _BY_OPERATION.get(source.operation, Change.FOUND_CHANGED)


def _shown_change(source: Revision, before: _Group | None) -> Change:
    """The change that an observation shows."""
    if source.was_changed_outside:
        return Change.OUTSIDE
    if source.moved_from or source.moved_to:
        return Change.MOVED_HERE if source.moved_from else Change.MOVED_AWAY
    if before is None:
        return Change.FIRST_SEEN
    was_formatted = before.best.note in _FORMATTED and before.best.operation not in OBSERVATIONS and not before.doubts
    return Change.FORMATTED if was_formatted and not source.deleted else Change.FOUND_CHANGED


def _arrives(revision: Revision) -> bool:
    """Whether it brought the file here from another path."""
    is_brought = revision.operation in {Operation.MOVE, Operation.COPY} and not revision.deleted
    return is_brought or bool(revision.moved_from)


def _only_shows(revision: Revision) -> bool:
    is_observation = revision.operation in OBSERVATIONS and revision.tool != "revert"
    return is_observation and not revision.outside_change


def _holds(revision: Revision, content: Content) -> bool:
    return not revision.deleted and revision.whole is not None and revision.whole.is_same(content)
