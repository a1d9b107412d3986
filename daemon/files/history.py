"""The history of one path: its revisions in time, each with its grade, its evidence and its content.

Values only; `replay` makes them from the recorded events. Times are epoch milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from daemon.files.content import Content, Fragments
from daemon.model import Operation
from daemon.transcript.evidence.recorded_diffs import BEFORE_REVERT, BEFORE_TURN
from daemon.transcript.evidence.steps import START


class Grade(StrEnum):
    """Grades, the most certain first."""

    VERIFIED = "verified"  # two independent kinds of evidence agree on the whole content
    PROVEN = "proven"  # the whole content follows from evidence
    STALE = "stale"  # whole content that was proven, or follows from such; the file may have changed since
    PARTIAL = "partial"  # some lines are known
    LOST = "lost"  # that it existed, or was changed, is all that is known

    @property
    def is_certain(self) -> bool:
        """Whether the content is the file's, byte by byte."""
        return self in _CERTAIN

    @property
    def rank(self) -> int:
        """0 for the most certain."""
        return _ORDER.index(self)


_ORDER = tuple(Grade)
_CERTAIN = frozenset({Grade.VERIFIED, Grade.PROVEN})

CALL, RESULT, READ, SHELL = "call", "result", "read", "shell"
SNAPSHOT, DIFF, ATTACHMENT = "snapshot", "diff", "attachment"
_FAMILY = {DIFF: SNAPSHOT, ATTACHMENT: READ}
"""Recorded diffs are made from snapshot trees, so the two agreeing proves nothing more."""


@lru_cache(maxsize=256)
def certain(kinds: frozenset[str]) -> Grade:
    """The grade of content that each of these kinds of evidence proves by itself."""
    return Grade.VERIFIED if len({_FAMILY.get(kind, kind) for kind in kinds}) > 1 else Grade.PROVEN


REVERTED = "its message was removed from the session: the change may have been reverted"
"""The note of a revision that is in doubt only because of a revert whose time is unknown."""
REMOVED = "only the diff of its turn shows it, no tree: what made it was removed, maybe by a revert"
"""The note of a turn's last state if only the turn's own diff still exists."""
LOST_FOLDER = "a folder"
"""Begins the note of a folder of which nothing is archived, not even the names in it."""


def is_lost_folder(grade: str, note: str) -> bool:
    """Whether this is not a file but a folder of which not even the names in it are archived."""
    return grade == Grade.LOST and note.startswith(LOST_FOLDER)


SET_BACK, BROUGHT_BACK = "set back by a revert", "brought back when a revert was undone"
"""The evidence of a revert's effect on a file, and of its undoing."""

DOUBTS = frozenset({Operation.UNCLEAR, Operation.RUN, Operation.REFUSED})
OBSERVATIONS = frozenset({Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE})
_PAST = re.compile(rf"at the {START} of a step|{BEFORE_TURN}|{BEFORE_REVERT}")


@dataclass(slots=True)
class Revision:
    """The state of the path after one event, or in an observation.

    `whole` is the content, proven or only the best known (see `grade`). `evidence` says what proves it, or what it was
    built from; `kinds` are the kinds of evidence (CALL, ...). `note` says what is uncertain. `outside_change`: the
    record has content that no recorded event made. `fragments` are the known lines of a partial content; `moved_from`
    is the former path, and of a deletion `moved_to` the new one; `existed` whether there was a file before, if the call
    records it. `is_fleeting`: certain at its own time only, because an event of unknown time, such as a revert, may
    have followed at once. `mark_unknown`: the content is certain except for a byte order mark, which neither reads nor
    later diffs show. `blob` is the git id of the content if a snapshot has only that. `unconfirmed`: the content is as
    a call left it, but a formatter may have run afterwards; the first evidence of the same content makes this revision
    certain. `appeared`: an observation has the file, and the previous one of its kind did not.
    """

    time: int
    grade: Grade
    whole: Content | None
    session_id: str
    message_id: str
    part_id: str
    tool: str
    operation: Operation
    evidence: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    deleted: bool = False
    note: str = ""
    outside_change: bool = False
    moved_from: str = ""
    moved_to: str = ""
    existed: bool | None = None
    fragments: Fragments | None = None
    mode: int = 0
    is_fleeting: bool = False
    mark_unknown: bool = False
    blob: str = ""
    unconfirmed: bool = False
    appeared: bool = False

    @property
    def proven(self) -> bool:
        """Whether the state, also a deletion, is certain."""
        return self.grade.is_certain

    @property
    def is_from_outside(self) -> bool:
        """Whether it is an observed change that no recorded call made."""
        return self.was_changed_outside and self.operation in OBSERVATIONS

    @property
    def was_changed_outside(self) -> bool:
        """Whether something other than OpenCode changed the file, not a turn whose calls were removed."""
        return self.outside_change and self.note != REMOVED

    @property
    def content(self) -> bytes | None:
        """The bytes; None for a deleted path and if no whole content is known."""
        return None if self.whole is None else self.whole.data

    @property
    def sha256(self) -> str:
        """Hex digest of the content; empty without one."""
        return "" if self.whole is None else self.whole.sha256

    @property
    def size(self) -> int | None:
        """Bytes of the content; None without one."""
        return None if self.whole is None or self.whole.size < 0 else self.whole.size


@dataclass(frozen=True, slots=True)
class Change:
    """A revision that changed the path, the state before it, and the doubts since that state.

    `is_set_back`: the state before it belonged to a removed turn, and this is the state before that turn again.
    """

    revision: Revision
    before: Revision | None
    doubts: tuple[Revision, ...] = ()
    is_set_back: bool = False

    @property
    def maker(self) -> str:
        """The session that made it; empty if no session did, or if it is unknown.

        An observed change was made by the session that put the state before in doubt. If it was observed before the
        step or turn, the observing session did not make it.
        """
        if self.is_set_back and self.before is not None:
            return self.before.session_id
        if self.revision.is_from_outside:
            return ""
        if self.revision.operation not in OBSERVATIONS or self.revision.tool == "revert":
            return self.revision.session_id
        makers = {doubt.session_id for doubt in self.doubts}
        if makers:
            return makers.pop() if len(makers) == 1 else ""
        return "" if any(map(is_of_past, self.revision.evidence)) else self.revision.session_id

    @property
    def is_revert(self) -> bool:
        """Whether a revert made it, recorded or inferred from missing messages."""
        is_told = self.revision.tool == "revert" or self.is_set_back
        return is_told or (bool(self.doubts) and all(doubt.note == REVERTED for doubt in self.doubts))


@dataclass(frozen=True, slots=True)
class FileHistory:
    """All revisions of a path, oldest first."""

    path: str
    revisions: tuple[Revision, ...] = ()

    @property
    def latest(self) -> Revision | None:
        """The newest revision, proven or not."""
        return self.revisions[-1] if self.revisions else None

    @property
    def changes(self) -> list[Change]:
        """The changes of the path, oldest first.

        A mere doubt is not a change, nor is an observation of the file for the first time or unchanged.
        """
        changes: list[Change] = []
        earlier: Revision | None = None
        before: Revision | None = None
        doubts: list[Revision] = []
        for revision in self.revisions:
            if revision.operation in DOUBTS:
                doubts.append(revision)
                continue
            if _is_change(revision, before):
                changes.append(Change(revision, before, tuple(doubts), is_set_back(revision, before, earlier)))
            earlier, before, doubts = before, revision, []
        return changes

    @property
    def last_change(self) -> Revision | None:
        """The newest of its changes; None if none is recorded."""
        changes = self.changes
        return changes[-1].revision if changes else None

    @property
    def last_state(self) -> Revision | None:
        """The newest state in which the file existed.

        A possible revert in between does not matter: it would have been the deletion itself.
        """
        return next((r for r in reversed(self.revisions) if not r.deleted and r.note != REVERTED), None)

    @property
    def last_content(self) -> Revision | None:
        """The newest state in which the file existed, if its whole content is known; also of a deleted file."""
        last = self.last_state
        return last if last is not None and last.whole is not None else None

    @property
    def grade(self) -> Grade:
        """Of the present state."""
        return self.revisions[-1].grade if self.revisions else Grade.LOST

    @property
    def deleted(self) -> bool:
        """Whether the path is gone now, by our records."""
        return bool(self.revisions) and self.revisions[-1].deleted

    @property
    def stale(self) -> bool:
        """Whether something after the latest certain revision changed the path, or may have."""
        return self.latest is not None and not self.latest.proven

    def at(self, time: int) -> Revision | None:
        """The state at `time`: the newest revision that is not later.

        If the next revision shows a change from outside, the state in between is uncertain.
        """
        current, following = None, None
        for revision in self.revisions:
            if revision.time > time:
                following = revision
                break
            current = revision
        if current is None or not current.proven or current.time == time:
            return current
        if current.is_fleeting or (following is not None and following.outside_change):
            return _doubted(current, time)
        return current

    def until(self, time: int | None) -> FileHistory:
        """The history as it was at `time`, its last revision as `at` gives it; None: all of it."""
        if time is None:
            return self
        revisions = [revision for revision in self.revisions if revision.time <= time]
        last = self.at(time)
        if last is not None and revisions and last is not revisions[-1]:
            revisions.append(last)
        return FileHistory(self.path, tuple(revisions))


def is_of_past(evidence: str) -> bool:
    """Whether an observation is of the time before its step or turn, or before a revert."""
    return _PAST.search(evidence) is not None


def is_set_back(revision: Revision, before: Revision | None, earlier: Revision | None) -> bool:
    """Whether an observation has the state (`earlier`) from before a turn (`before`) that was removed since."""
    if before is None or before.note != REMOVED or earlier is None or revision.operation not in OBSERVATIONS:
        return False
    if revision.deleted or earlier.deleted or revision.whole is None or earlier.whole is None:
        return revision.proven and earlier.proven and revision.deleted and earlier.deleted
    return revision.proven and earlier.proven and revision.whole.is_same(earlier.whole)


def _is_change(revision: Revision, before: Revision | None) -> bool:
    """Whether the path is known to differ between `before` and `revision`."""
    if revision.operation not in OBSERVATIONS or revision.tool == "revert" or revision.appeared:
        return True
    if before is None:
        return False
    if before.deleted or revision.deleted:
        return before.deleted is not revision.deleted
    if before.whole is None or revision.whole is None:
        return revision.outside_change
    return not before.whole.is_same(revision.whole)


def _doubted(revision: Revision, time: int) -> Revision:
    """A certain revision at a later `time`, when something may have changed the file already."""
    note = "changed at some time between this and the next revision"
    return replace(
        revision, grade=Grade.STALE, evidence=(), kinds=frozenset(), note=note, time=time, operation=Operation.UNCLEAR
    )
