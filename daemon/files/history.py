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
    """From the most certain to the least."""

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
    """The grade of content that each of these kinds of evidence gives by itself."""
    return Grade.VERIFIED if len({_FAMILY.get(kind, kind) for kind in kinds}) > 1 else Grade.PROVEN


REVERTED = "its message was removed from the session: the change may have been reverted"
"""The note of a revision that is only put in doubt by a revert whose time is not known."""
REMOVED = "only the diff of its turn shows it, no tree: what made it was removed, maybe by a revert"
"""The note of a state that a turn left, of which only the turn's own diff is still there."""
LOST_FOLDER = "a folder"
"""How the note of a path begins that is a folder of which nothing is kept, not even the names in it."""


def is_lost_folder(grade: str, note: str) -> bool:
    """Whether this is no file, but a folder of which not even the names in it are kept."""
    return grade == Grade.LOST and note.startswith(LOST_FOLDER)


SET_BACK, BROUGHT_BACK = "set back by a revert", "brought back when a revert was undone"
"""The evidence of what a revert made of a file, and of what its undoing did."""

DOUBTS = frozenset({Operation.UNCLEAR, Operation.RUN, Operation.REFUSED})
OBSERVATIONS = frozenset({Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE})
_PAST = re.compile(rf"at the {START} of a step|{BEFORE_TURN}|{BEFORE_REVERT}")


@dataclass(slots=True)
class Revision:
    """The path after one event, or as an observation showed it.

    `whole` is the content, proven or only the best known (`grade` says which). `evidence` says what proves it, or what
    it was built from; `kinds` are the kinds of evidence (CALL, ...). `note` says what is not certain.
    `outside_change`: the record shows content that no recorded event made. `fragments` are the lines known of a partial
    one; `moved_from` is where the file was before, of a deletion `moved_to` where it went; `existed` whether there was
    a file before, where the call's record says so. `is_fleeting`: certain at its own time only, since something whose
    time is not known, such as a revert, may have come right after it. `mark_unknown`: all of the content is certain but
    whether a byte order mark stands before it, which neither reads nor later diffs show. `blob` is the git id of the
    content where that is all that a snapshot tells. `unconfirmed`: the content is as a call left it, but a formatter
    may have run after it; the first evidence that shows the same content makes this very revision certain.
    `appeared`: an observation shows the file, and the one of its kind before showed that it was not there.
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
        """Whether it only shows a change that no recorded call made."""
        return self.was_changed_outside and self.operation in OBSERVATIONS

    @property
    def was_changed_outside(self) -> bool:
        """Whether something else than OpenCode had changed the file; not a turn of which the calls were removed."""
        return self.outside_change and self.note != REMOVED

    @property
    def content(self) -> bytes | None:
        """The bytes; None for a deleted path and where no whole content is known."""
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

    `is_set_back`: the state before it was of a turn that was removed, and this is again the one before that turn.
    """

    revision: Revision
    before: Revision | None
    doubts: tuple[Revision, ...] = ()
    is_set_back: bool = False

    @property
    def maker(self) -> str:
        """The session that made it; empty where something else than a session did, or where that is not known.

        What an observation shows was made by whoever put the state before in doubt. What it shows of the time before
        its step or turn was not made by the session that made the observation.
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
        """Whether a revert made it, as it is recorded or as only messages that are gone tell."""
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
        """What changed the path, oldest first.

        A mere doubt is no change; neither is an observation that shows the file for the first time or unchanged.
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
        """The newest of its changes; None where no record tells of one."""
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
        """The newest state in which the file existed, if its whole content is known: what a deleted file held last."""
        last = self.last_state
        return last if last is not None and last.whole is not None else None

    @property
    def grade(self) -> Grade:
        """Of the present state."""
        return self.revisions[-1].grade if self.revisions else Grade.LOST

    @property
    def deleted(self) -> bool:
        """Whether the path is gone now, as far as is known."""
        return bool(self.revisions) and self.revisions[-1].deleted

    @property
    def stale(self) -> bool:
        """Whether something after the latest certain revision changed the path, or may have."""
        return self.latest is not None and not self.latest.proven

    def at(self, time: int) -> Revision | None:
        """The state at `time`: the newest revision that is not later.

        Where the next one shows that something else had changed the file by then, the state in between is not certain.
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
    """Whether an observation shows the time before its step or turn, or before a revert."""
    return _PAST.search(evidence) is not None


def is_set_back(revision: Revision, before: Revision | None, earlier: Revision | None) -> bool:
    """Whether an observation shows again what was there (`earlier`) before a turn that was removed since (`before`)."""
    if before is None or before.note != REMOVED or earlier is None or revision.operation not in OBSERVATIONS:
        return False
    if revision.deleted or earlier.deleted or revision.whole is None or earlier.whole is None:
        return revision.proven and earlier.proven and revision.deleted and earlier.deleted
    return revision.proven and earlier.proven and revision.whole.is_same(earlier.whole)


def _is_change(revision: Revision, before: Revision | None) -> bool:
    """Whether the path differs between `before` and `revision`, as far as that is known."""
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
