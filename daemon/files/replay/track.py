"""One path during a replay: its revisions so far, and the conclusions from the next event.

The state of a path is its newest revision. Nothing here reads an archive or a disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from daemon.files.content import MARK, Content, Fragments, may_begin_with_mark
from daemon.files.history import DOUBTS, Grade, Revision, certain
from daemon.model import FileEdit

MARK_UNKNOWN = "all of it is known but whether a byte order mark stands before it"


def started(edit: FileEdit) -> int:
    """When the call that made `edit` began, epoch ms: its effect falls between this and `time`."""
    return edit.time if edit.started is None else edit.started


@dataclass(frozen=True, slots=True)
class State:
    """The state of a path after one event; the fields are those of the Revision that it becomes."""

    grade: Grade
    whole: Content | None = None
    evidence: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    deleted: bool = False
    note: str = ""
    outside_change: bool = False
    moved_from: str = ""
    moved_to: str = ""
    fragments: Fragments | None = None
    mode: int = 0
    mark_unknown: bool = False
    blob: str = ""
    unconfirmed: bool = False
    appeared: bool = False

    def revision(self, edit: FileEdit) -> Revision:
        """The revision that `edit` adds to a history with this state."""
        return Revision(
            time=edit.time,
            grade=self.grade,
            whole=self.whole,
            session_id=edit.session_id,
            message_id=edit.message_id,
            part_id=edit.part_id,
            tool=edit.tool,
            operation=edit.operation,
            evidence=self.evidence,
            kinds=self.kinds,
            deleted=self.deleted,
            note=self.note,
            outside_change=self.outside_change,
            moved_from=self.moved_from,
            moved_to=self.moved_to,
            existed=edit.existed,
            fragments=self.fragments,
            mode=self.mode,
            mark_unknown=self.mark_unknown,
            blob=self.blob,
            unconfirmed=self.unconfirmed,
            appeared=self.appeared,
        )


@dataclass(slots=True, eq=False)
class Track:
    """A path. `definite` is the number of the last event that surely changed it or showed its content.

    `last_observed` is what the last observation of each kind showed (a blob id, empty for gone) and its event number.

    Before `doubtful_until`, epoch ms, something else may still have changed it; before `unended_until` a call was
    under way that never ended.
    """

    path: str
    revisions: list[Revision] = field(default_factory=list)
    definite: int = 0
    last_observed: dict[str, tuple[str, int]] = field(default_factory=dict)
    changes: list[FileEdit] = field(default_factory=list)
    doubtful_until: int = 0
    unended_until: int = 0
    _text: tuple[Content | None, str] = (None, "")

    @property
    def now(self) -> Revision | None:
        """The state; None if nothing has been recorded yet."""
        return self.revisions[-1] if self.revisions else None

    @property
    def exists(self) -> bool:
        """Whether it is known to be a file now."""
        return bool(self.revisions) and not self.revisions[-1].deleted

    @property
    def whole(self) -> Content | None:
        """The best known content; None for a deleted path and if none is known."""
        return self.revisions[-1].whole if self.revisions else None

    @property
    def fragments(self) -> Fragments | None:
        """The known lines of a partly known file, without those that may have changed since."""
        known = self.revisions[-1].fragments if self.revisions else None
        return None if known is None or known.is_stale else known

    @property
    def may_become_stale(self) -> bool:
        """Whether a doubt would change the state: it is certain, as a call left it, or known in part."""
        return bool(self.revisions) and (self.is_certain or self.is_unconfirmed or self._is_partial)

    @property
    def _is_partial(self) -> bool:
        return self.revisions[-1].grade is Grade.PARTIAL

    @property
    def is_certain(self) -> bool:
        """Whether the state, also a deletion, is certain."""
        return bool(self.revisions) and self.revisions[-1].proven

    @property
    def mark_unknown(self) -> bool:
        """Whether the content is certain except for a byte order mark."""
        return bool(self.revisions) and self.revisions[-1].mark_unknown and not self.is_unconfirmed

    @property
    def is_unconfirmed(self) -> bool:
        """Whether the content is as a call left it, except for a formatter that may have run right after."""
        return bool(self.revisions) and self.revisions[-1].unconfirmed

    @property
    def is_gone(self) -> bool:
        """Whether it is certain that there is no such file."""
        return self.is_certain and self.revisions[-1].deleted

    @property
    def text(self) -> str | None:
        """The best known content as OpenCode reads it: bytes that are not UTF-8 become U+FFFD."""
        whole = self.whole
        if whole is None:
            return None
        if self._text[0] is not whole:
            data = whole.data
            if data is None:
                return None
            self._text = (whole, data.decode("utf-8", "replace"))
        return self._text[1]

    def may_have_mark(self, *, was_read: bool = False) -> bool:
        """Whether a text in which a byte order mark would not show may begin with one.

        What changes a file may drop its mark, and seldom puts one before it. Where nothing is known of the mark, the
        kind of file decides (`may_begin_with_mark`).
        """
        for revision in reversed(self.revisions):
            if revision.mark_unknown:
                return True
            data = None if revision.deleted else revision.content
            if data is not None and data.startswith(MARK):
                return True
            if data is not None and (revision.proven or revision.unconfirmed):
                return False
        return may_begin_with_mark(self.path, was_read=was_read)

    def overlaps(self, edit: FileEdit) -> bool:
        """Whether an earlier change had not ended when this one began, and no lock put them in order."""
        begun = started(edit)
        if begun < self.unended_until:
            return True
        for earlier in reversed(self.changes):
            if earlier.time <= begun:
                break
            locked = earlier.message_id == edit.message_id and {earlier.tool, edit.tool} <= {"edit", "multiedit"}
            if earlier.part_id != edit.part_id and not locked:
                return True
        return False

    def add(self, edit: FileEdit, state: State) -> None:
        """Add a revision: the state after `edit`, or as `edit` shows it."""
        before, whole = self.whole, state.whole
        revision = state.revision(edit)
        revision.is_fleeting = edit.time < self.doubtful_until
        while (last := self.now) is not None and last.part_id == edit.part_id and last.time == edit.time:
            if edit.operation in DOUBTS and last.operation not in DOUBTS:
                break  # what the call surely did stays a change of its own, whatever it may have done after that
            # One call in several steps, such as a patch that moves and changes: in between, nothing stood on the disk.
            revision.moved_from = revision.moved_from or last.moved_from
            revision.existed = revision.existed if last.existed is None else last.existed
            revision.outside_change = revision.outside_change or last.outside_change
            self.revisions.pop()
        self.revisions.append(revision)
        if before is not None and whole is not None and before is not whole:
            before.settle(whole)

    def add_text(self, edit: FileEdit, text: str, state: State) -> None:
        """As `add`, with `text` as the content of the state."""
        whole = Content(text.encode("utf-8", "replace"))
        self.add(edit, replace(state, whole=whole))
        self._text = (whole, text)

    def confirm(self, kind: str, evidence: str) -> None:
        """Add a kind of evidence that agrees with the present state, which is certain or as a call left it."""
        now = self.revisions[-1]
        if kind in now.kinds and not now.unconfirmed:
            return
        now.kinds = now.kinds | {kind}
        now.evidence = tuple(dict.fromkeys((*now.evidence, evidence)))
        now.grade = certain(now.kinds)
        if now.unconfirmed:
            now.unconfirmed, now.note, now.mark_unknown = False, "", False

    def confirm_but_mark(self, kind: str, evidence: str) -> None:
        """As `confirm`, by evidence in which a byte order mark would not show and the file may have one."""
        now = self.revisions[-1]
        now.kinds = now.kinds | {kind}
        now.evidence = tuple(dict.fromkeys((*now.evidence, evidence)))
        if now.unconfirmed:
            now.unconfirmed, now.grade, now.note, now.mark_unknown = False, Grade.PARTIAL, MARK_UNKNOWN, True
