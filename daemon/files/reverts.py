"""What reverts did to files: a revert sets them back, and is itself recorded as no call (formats sections 6 and 9, 13).

OpenCode takes each file that a `patch` part of the reverted messages names back to that part's tree; ignored files and
everything without git stay as they are. A pending revert stands in the session's record; one that was followed by a
prompt shows by its messages being gone. The journal of 1.18 also tells when, and that one was undone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from daemon import records
from daemon.archive import Archive
from daemon.errors import BadRecord
from daemon.files.history import REVERTED
from daemon.files.trees import UNKNOWN
from daemon.model import FileEdit, Json, Operation

PENDING = "a revert of the session covers it, and what it was set back to is not recorded"
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_SPAN = 1 << 48  # ids keep the low 48 bits of their clock
_OBSERVED = frozenset({Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE, Operation.STEP})


@dataclass(frozen=True, slots=True)
class Revert:
    """Messages from `first` on were reverted at some time between `after` and `time`, epoch ms.

    `tree` is the state before it; `undone` when that was brought back, None while it has not been. Without `is_told` it
    only shows by messages being gone, which a person may also have deleted one by one, and no file with them.
    """

    first: str
    part: str
    after: int
    time: int
    tree: str = ""
    undone: int | None = None
    is_told: bool = True


class Reverts:
    """Adds to the events of some paths what the reverts of their sessions did to those."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def applied(self, edits: list[FileEdit]) -> list[FileEdit]:
        """`edits`, and with them the events of reverts; in no order."""
        found = list(edits)
        by_session: dict[str, list[FileEdit]] = defaultdict(list)
        for edit in edits:
            by_session[edit.session_id].append(edit)
        roots = {edit.other: edit for edit in edits if edit.operation is Operation.SNAPSHOT}
        for session_id, own in by_session.items():
            for revert in self._of(session_id, own):
                covered = [edit for edit in own if _is_covered(edit, revert)]
                changed = {edit.path for edit in covered if edit.operation not in _OBSERVED}
                changed |= {edit.path for edit in covered if edit.operation is Operation.STEP}
                for path in sorted(changed):
                    here = [edit for edit in covered if edit.path == path]
                    others = [e for e in edits if e.path == path and e.session_id != session_id and _changes(e)]
                    found += self._set_back(path, revert, here, others, roots)
        return found

    # -- which reverts there were --------------------------------------------------------------------------------

    def _of(self, session_id: str, edits: list[FileEdit]) -> list[Revert]:
        """The reverts of a session, as far as its record, its journal and its removed messages tell."""
        marks = self._marks(session_id)
        session = self._archive.session(session_id)
        state = self._archive.session_state(session_id)
        if session is None or state is None or state["deleted"] is not None:
            return marks
        pending = _pending(session.raw)
        if pending and not any(mark.undone is None and mark.first == pending.get("messageID") for mark in marks):
            first = records.text(pending.get("messageID"))
            times = [edit.time for edit in edits if edit.message_id and _is_from(edit.message_id, first)]
            after = max(times, default=session.updated)
            tree = records.text(pending.get("snapshot"))
            part = records.text(pending.get("partID"))
            marks.append(Revert(first, part, after, max(after, session.updated), tree))
        if not marks:
            marks += self._removed(session_id, edits)
        return marks

    def _marks(self, session_id: str) -> list[Revert]:
        """The reverts that a source told, set and cleared in turn."""
        told = self._archive.files.session_extra(session_id).get("reverts", {})
        # A journal tells all of them, other sources only a pending one.
        most: list[Json] = max(told.values(), key=len, default=[])
        found: list[Revert] = []
        for mark in most:
            time = records.integer(mark["time"])
            if not mark["is_undone"]:
                found.append(Revert(mark["message_id"], mark["part_id"], time, time, mark["snapshot"]))
            elif found and found[-1].undone is None:
                found[-1] = replace(found[-1], undone=time)
        return found

    def _removed(self, session_id: str, edits: list[FileEdit]) -> list[Revert]:
        """Reverts that show only by messages being gone, one for each run of them.

        Each came after the last thing that was taken back, and before the prompt that removed it, or at the latest
        before we saw it gone.
        """
        order = self._archive.message_ids(session_id)
        touching = {edit.message_id for edit in edits}
        if not any(message_id in touching and self._archive.is_deleted(message_id) for message_id in order):
            return []
        found: list[Revert] = []
        run: list[str] = []
        for message_id in [*order, ""]:
            state = self._archive.state(message_id) or {}
            if state.get("deleted") is not None:
                run.append(message_id)
                continue
            if run:
                gone = [self._archive.state(one) or {} for one in run]
                ends = [edit.time for edit in edits if edit.message_id in run]
                after = max([*(one.get("created", 0) for one in gone), *ends])
                seen = min(one.get("deleted") or after for one in gone)
                latest = state["created"] - 1 if state else seen
                found.append(Revert(run[0], "", after, max(after + 1, latest), is_told=False))
                run = []
        return found

    # -- what one did to a file ----------------------------------------------------------------------------------

    def _set_back(
        self,
        path: str,
        revert: Revert,
        covered: list[FileEdit],
        others: list[FileEdit],
        roots: dict[str | None, FileEdit],
    ) -> Iterable[FileEdit]:
        steps = sorted((e for e in covered if e.operation is Operation.STEP), key=lambda e: (e.time, e.part_id))
        last = max(covered, key=lambda edit: (edit.time, edit.part_id))
        if not steps:
            # Not in any patch part: without git, ignored, or taken too late. OpenCode leaves such a file as it is, but
            # that the parts are all there is not certain.
            is_tracked = any(path.startswith(f"{root}/") for root in roots if root)
            if is_tracked:
                yield _event(last, path, revert.after + 1, Operation.UNCLEAR, REVERTED)
            return
        if revert.time > revert.after:
            doubt = _event(last, path, revert.after + 1, Operation.UNCLEAR, REVERTED)
            yield replace(doubt, until=revert.time)
        if not revert.is_told or any(revert.after < edit.time <= revert.time for edit in others):
            # Whether there was a revert, or whether it came before or after that, is not recorded: the next tree tells.
            yield _event(last, path, revert.time, Operation.UNCLEAR, REVERTED)
            return
        yield self._state(last, path, revert.time, steps[0].blob, roots, "set back by a revert")
        if revert.undone is not None and revert.tree:
            back = self._state(last, path, revert.undone, revert.tree, roots, "brought back when the revert was undone")
            if back.operation is not Operation.STATE or back.blob:
                yield back  # what the tree does not hold is left as it is

    def _state(  # noqa: PLR0917 - all of it is what the event says
        self, last: FileEdit, path: str, time: int, tree: str, roots: dict[str | None, FileEdit], how: str
    ) -> FileEdit:
        place = max((root for root in roots if root and path.startswith(f"{root}/")), key=len, default="")
        entry = self._archive.objects.find(tree, path[len(place) + 1 :]) if place else (UNKNOWN, "")
        if entry is not None and (entry[0] == UNKNOWN or not self._archive.objects.has(entry[1])):
            return _event(last, path, time, Operation.UNCLEAR, PENDING)
        note = f"{how}, to snapshot tree {tree[:12]}"
        found = _event(last, path, time, Operation.STATE, note)
        return replace(found, tool="revert", blob="" if entry is None else entry[1])


def _changes(edit: FileEdit) -> bool:
    return edit.operation not in _OBSERVED


def _event(edit: FileEdit, path: str, time: int, operation: Operation, note: str) -> FileEdit:
    # "~" sorts behind every part: what a revert did comes after the calls of the same millisecond.
    part = f"~{edit.part_id}"
    plain = FileEdit(path, time, edit.session_id, edit.message_id, part, edit.tool, operation)
    return replace(plain, note=note, version=edit.version)


def _is_covered(edit: FileEdit, revert: Revert) -> bool:
    if not edit.message_id or edit.time > max(revert.after, revert.time):
        return False
    if revert.part and edit.message_id == revert.first:
        return edit.part_id >= revert.part
    return _is_from(edit.message_id, revert.first)


def _pending(raw: bytes) -> Json:
    """The revert in a session's record; the database keeps it as a text of JSON."""
    try:
        revert = records.table(records.loads(raw)).get("revert")
        return records.table(records.loads(revert.encode()) if isinstance(revert, str) and revert else revert)
    except BadRecord:
        return {}


def _is_from(message_id: str, first: str) -> bool:
    """Whether a message of the same session is `first` or came after it, by their ids' clock, which wraps."""
    one, other = _ID.match(message_id), _ID.match(first)
    if one is None or other is None:
        return message_id >= first
    return message_id == first or 0 < (int(one[1], 16) - int(other[1], 16)) % _SPAN < _SPAN // 2
