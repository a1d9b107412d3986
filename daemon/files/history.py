"""The revisions of one path: its recorded edits replayed in time, each result proven or marked as not (section 6).

A revision is proven when its whole content follows from evidence: a completed write, an edit that matches a proven text
as OpenCode matches, a recorded text after the edit, a complete read. What contradicts the running text resynchronises
it and is reported as an outside change. Pure: same edits, same revisions; nothing is guessed. The content of a revision
that is not proven is the best text known, never more. Snapshot trees, full diffs, grades of evidence and shell commands
whose effect is certain are to join here as further kinds of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from daemon.files import matching
from daemon.model import FileEdit, Operation
from daemon.transcript.edits import INEXACT_READ, started

NOT_UTF8 = "it holds U+FFFD: the file may have other bytes there"
NO_BASE = "the text before it is not proven"
CONCURRENT = "another call worked on the file at the same time, and which came last is not recorded"


@dataclass(frozen=True, slots=True)
class Revision:
    """The path after one edit, or as one observation found it; `time` is epoch ms.

    `content` is None for a deleted path and where nothing is known. `evidence` says what proves it, or what it was
    built from. `outside_change`: the record shows a text that no recorded edit made.
    """

    time: int
    content: bytes | None
    proven: bool
    evidence: tuple[str, ...]
    session_id: str
    message_id: str
    part_id: str
    tool: str
    operation: Operation
    deleted: bool = False
    note: str = ""
    outside_change: bool = False


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
    def latest_proven(self) -> Revision | None:
        """The newest revision that is proven; a proven deletion counts."""
        return next((revision for revision in reversed(self.revisions) if revision.proven), None)

    @property
    def stale(self) -> bool:
        """Whether something after the latest proven revision changed the path, or may have."""
        return self.latest is not None and not self.latest.proven

    def at(self, time: int) -> Revision | None:
        """The newest revision that is not later than `time`, epoch ms."""
        return next((revision for revision in reversed(self.revisions) if revision.time <= time), None)


Lookup = Callable[[str, FileEdit], Revision | None]
"""The state of another path just before an edit's call: what a move brings along."""


def history(path: str, edits: Iterable[FileEdit], lookup: Lookup | None = None) -> FileHistory:
    """The history of `path` by its `edits`, in any order; `lookup` follows moves from other paths."""
    replaying = _Replaying(lookup)
    for edit in ordered(edits):
        replaying.take(edit)
    return FileHistory(path, tuple(replaying.revisions))


def ordered(edits: Iterable[FileEdit]) -> list[FileEdit]:
    """`edits` by time, then part; without the copies that a fork made of its parent's calls, which keep their times."""
    kept: list[FileEdit] = []
    seen: dict[FileEdit, str] = {}
    for edit in sorted(edits, key=lambda edit: (edit.time, edit.part_id)):
        what = replace(edit, session_id="", message_id="", part_id="", version="")
        if seen.setdefault(what, edit.session_id) == edit.session_id:
            kept.append(edit)
    return kept


@dataclass(slots=True)
class _State:
    """The path at this moment: the last known text, whether it is certain, whether the path is gone."""

    text: str | None = None
    proven: bool = False
    deleted: bool = False

    @property
    def certain(self) -> str | None:
        return self.text if self.proven and not self.deleted else None


class _Replaying:
    """The running state and what came of each edit so far."""

    def __init__(self, lookup: Lookup | None) -> None:
        self.revisions: list[Revision] = []
        self._lookup = lookup
        self._state = _State()
        self._changes: list[FileEdit] = []

    def take(self, edit: FileEdit) -> None:
        operation = edit.operation
        if operation in (Operation.READ, Operation.READ_RANGE):
            self._read(edit)
            return
        overlaps = self._overlaps(edit)
        if operation is Operation.WRITE:
            self._write(edit, overlaps)
        elif operation in (Operation.EDIT, Operation.PATCH):
            self._change(edit, overlaps)
        elif operation in (Operation.DELETE, Operation.MOVE):
            self._remove(edit, overlaps)
        else:
            self._add(edit, self._state.text, deleted=self._state.deleted, note=edit.note)
        self._changes.append(edit)

    def _overlaps(self, edit: FileEdit) -> bool:
        """Whether an earlier change had not ended when this one began, and no lock put them in order."""
        for other in reversed(self._changes):
            if other.time <= started(edit):
                break
            locked = other.message_id == edit.message_id and {other.tool, edit.tool} <= {"edit", "multiedit"}
            if other.part_id != edit.part_id and not locked:
                return True
        return False

    # -- changes -------------------------------------------------------------------------------------------------

    def _write(self, edit: FileEdit, overlaps: bool) -> None:
        base = None if self._state.deleted else self._state.text
        content = edit.content if edit.content is not None else edit.new or ""
        # A patch that adds a file does not look at what it overwrites.
        looks = edit.tool not in ("apply_patch", "patch")
        text = matching.written(content, base, edit.version) if looks else content
        missing = self._state.proven and self._state.deleted and edit.existed is True
        evidence = ["write"]
        if looks and edit.existed is not False and base is None and not matching.is_old(edit.version):
            evidence.append("a byte order mark of the file it replaced, which no record shows, would have been kept")
        self._result(edit, text, content, tuple(evidence), overlaps, outside=missing)

    def _change(self, edit: FileEdit, overlaps: bool) -> None:
        if edit.operation is Operation.EDIT and edit.old == "" and edit.after is None:
            self._write(edit, overlaps)  # an empty old text stands for the whole file
            return
        base, is_certain, origin = self._base(edit)
        computed = None if base is None else self._computed(base, edit)
        if edit.after is not None:
            self._recorded(edit, base if is_certain else None, computed, overlaps)
            return
        evidence = (f"{edit.operation.value} of a proven text{origin}",)
        if not is_certain:
            self._add(edit, computed if computed is not None else base, note=NO_BASE)
        elif computed is None:
            self._add(edit, base, note="its old text does not stand in the text before it as it is")
        else:
            self._result(edit, computed, computed, evidence, overlaps)

    def _base(self, edit: FileEdit) -> tuple[str | None, bool, str]:
        """The text an edit starts from, whether it is certain, and where it comes from if from elsewhere."""
        if edit.other is None:
            return (None if self._state.deleted else self._state.text), self._state.certain is not None, ""
        found = self._lookup(edit.other, edit) if self._lookup is not None else None
        if found is None or found.content is None:
            return None, False, ""
        return found.content.decode("utf-8", "replace"), found.proven, f", moved from {edit.other}"

    def _computed(self, base: str, edit: FileEdit) -> str | None:
        if edit.operation is Operation.PATCH:
            return matching.patched(base, edit.hunks, edit.version)
        if edit.old is None or edit.new is None:
            return None
        return matching.edited(base, edit.old, edit.new, edit.replace_all, edit.version)

    def _recorded(self, edit: FileEdit, base: str | None, computed: str | None, overlaps: bool) -> None:
        """An edit whose text before and after OpenCode has recorded; neither shows a byte order mark."""
        before, after = edit.before or "", edit.after or ""
        follows = base is not None and base.removeprefix(matching.BOM) == before.removeprefix(matching.BOM)
        # An empty old text overwrites: the recorded text before is empty then, whatever was there (section 9, 6).
        overwrites = edit.operation is Operation.EDIT and edit.old == ""
        was_gone = self._state.proven and self._state.deleted and edit.other is None and before != ""
        outside = not overwrites and (was_gone or (base is not None and not follows))
        evidence = ["recorded text after the edit"]
        if follows and computed == after:
            evidence.append(f"{edit.operation.value} of a proven text")
        keeps_mark = base is not None and base.startswith(matching.BOM) and not matching.is_old(edit.version)
        text = None if keeps_mark and not after.startswith(matching.BOM) else after
        # What came before and is the text this one started from did end before it, overlap or not.
        self._result(edit, text, after, tuple(evidence), overlaps and not follows, outside=outside)

    def _remove(self, edit: FileEdit, overlaps: bool) -> None:
        how = "deletion" if edit.operation is Operation.DELETE else f"moved to {edit.other}"
        if overlaps:
            self._add(edit, self._state.text, note=CONCURRENT)
        else:
            self._add(edit, None, proven=True, evidence=(how,), deleted=True, note=edit.note)

    def _result(
        self,
        edit: FileEdit,
        text: str | None,
        candidate: str,
        evidence: tuple[str, ...],
        overlaps: bool,
        *,
        outside: bool = False,
    ) -> None:
        """`text` stands now, if it is certain and nothing ran beside it; else `candidate` is the best that is known."""
        if text is None:
            self._add(edit, candidate, note="whether a byte order mark was kept is not recorded", outside=outside)
        elif overlaps:
            self._add(edit, text, note=CONCURRENT, outside=outside)
        else:
            self._add(edit, text, proven=True, evidence=evidence, note=edit.note, outside=outside)

    # -- observations --------------------------------------------------------------------------------------------

    def _read(self, edit: FileEdit) -> None:
        text = edit.content
        if text is None or self._is_seen(edit, text):
            return
        if self._overlaps(edit):
            return  # it may show the text before the other call, or the one after
        outside = self._state.proven
        if edit.operation is Operation.READ_RANGE:
            if outside:
                self._add(edit, self._state.text, note=f"a read of {edit.note} shows other text", outside=True)
            return
        if edit.note.startswith(INEXACT_READ):
            self._add(edit, text, evidence=("complete read",), note=edit.note, outside=outside)
            return
        evidence = ("complete read, in which a byte order mark would not show",)
        self._add(edit, text, proven=True, evidence=evidence, note=edit.note, outside=outside)

    def _is_seen(self, edit: FileEdit, text: str) -> bool:
        """Whether a read shows the text that is known; a whole one then confirms it."""
        known = self._state.text
        if known is None or self._state.deleted:
            return False
        if edit.operation is Operation.READ_RANGE:
            return f"\n{matching.shown(text)}\n" in f"\n{matching.shown(known)}\n"
        is_exact = not edit.note.startswith(INEXACT_READ)
        if is_exact and known.removeprefix(matching.BOM) != text:
            return False
        if not is_exact and matching.shown(known) != text:
            return False
        if self._state.proven:
            last = self.revisions[-1]
            if "confirmed by a read" not in last.evidence:
                self.revisions[-1] = replace(last, evidence=(*last.evidence, "confirmed by a read"))
        return self._state.proven or not is_exact

    # -- bookkeeping ---------------------------------------------------------------------------------------------

    def _add(
        self,
        edit: FileEdit,
        text: str | None,
        *,
        proven: bool = False,
        evidence: tuple[str, ...] = (),
        deleted: bool = False,
        note: str = "",
        outside: bool = False,
    ) -> None:
        if text is not None and proven and ("\ufffd" in text or not _is_encodable(text)):
            proven, note = False, NOT_UTF8
        self._state = _State(None if deleted else text, proven, deleted)
        self.revisions.append(
            Revision(
                time=edit.time,
                content=None if text is None or deleted else text.encode("utf-8", "replace"),
                proven=proven,
                evidence=evidence,
                session_id=edit.session_id,
                message_id=edit.message_id,
                part_id=edit.part_id,
                tool=edit.tool,
                operation=edit.operation,
                deleted=deleted,
                note=note,
                outside_change=outside,
            )
        )


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else True


def earlier(edits: Sequence[FileEdit], edit: FileEdit) -> list[FileEdit]:
    """Those of `edits` that come before the call that made `edit`."""
    return [other for other in edits if (other.time, other.part_id) < (edit.time, edit.part_id)]
