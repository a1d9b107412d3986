"""Derives the effects of reverts on files, for which OpenCode records no call (opencode-formats.md, Reverts).

A revert resets each file that a `patch` part after the chosen message or part names to that part's tree. Ignored files,
and everything without git, stay as they are. The recorded diff has the result. Without a diff the `patch` parts give
it, if the start of the revert is certain. Otherwise the file is in doubt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.archive import Archive
from daemon.files.events.revert_records import Revert, is_from, reverts
from daemon.files.history import BROUGHT_BACK, REVERTED, SET_BACK
from daemon.files.trees import LINK_MODE, MODULE_MODE, UNKNOWN, Entry, is_beneath
from daemon.model import FileEdit, Operation
from daemon.records import blob_id
from daemon.transcript.evidence import unified_diffs

PENDING = "a revert of the session covers it, and what it was set back to is not recorded"
_OBSERVED = frozenset({Operation.READ, Operation.READ_RANGE, Operation.SNAPSHOT, Operation.STATE})
_NO_FILE = frozenset({LINK_MODE, MODULE_MODE, UNKNOWN})
_EMPTY = blob_id(b"")

_changes = lru_cache(maxsize=64)(unified_diffs.changes)


@dataclass(frozen=True, slots=True)
class _FileAfter:
    """A file after a revert: the content with this git id, or this text; no file if it has neither."""

    blob: str = ""
    text: str | None = None
    is_known: bool = True


_GONE, _UNKNOWN = _FileAfter(), _FileAfter(is_known=False)


@dataclass(frozen=True, slots=True)
class _RevertedFile:
    """A file that a revert may have reset: its path, its name in the work tree, its reverted events."""

    path: str
    name: str
    edits: list[FileEdit]

    @property
    def steps(self) -> list[FileEdit]:
        steps = (edit for edit in self.edits if edit.operation is Operation.STEP)
        return sorted(steps, key=lambda edit: (edit.time, edit.part_id))


class Reverts:
    """Adds the effects of reverts to the events of some paths."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    def applied(self, edits: list[FileEdit]) -> list[FileEdit]:
        """`edits` and the events of reverts, unordered."""
        events = list(edits)
        by_session: dict[str, list[FileEdit]] = defaultdict(list)
        changing: dict[str, list[FileEdit]] = defaultdict(list)
        for edit in edits:
            by_session[edit.session_id].append(edit)
            if edit.operation not in _OBSERVED:
                changing[edit.path].append(edit)
        roots = {(_scope(edit), edit.other) for edit in edits if edit.operation is Operation.SNAPSHOT and edit.other}
        for session_id, own in by_session.items():
            for revert in reverts(self._archive, session_id, own):
                for covered in _covered(own, revert, roots):
                    foreign_edits = [e for e in changing[covered.path] if e.session_id != session_id]
                    events += self._set_back(covered, revert, foreign_edits)
        return events

    def _set_back(self, covered: _RevertedFile, revert: Revert, foreign_edits: list[FileEdit]) -> Iterator[FileEdit]:
        """The events of one revert for one file."""
        last = max(covered.edits, key=lambda edit: (edit.time, edit.part_id))
        state = self._after(covered, revert)
        if state is not None:
            if revert.time > revert.after:
                yield replace(_event(last, revert.after + 1, Operation.UNCLEAR, REVERTED), until=revert.time)
            if not revert.is_recorded or any(revert.after < edit.time <= revert.time for edit in foreign_edits):
                # It is not recorded whether there was a revert, or when. The next tree will show it.
                yield _event(last, revert.time, Operation.UNCLEAR, REVERTED)
                return
            yield _state(last, revert.time, state, SET_BACK)
            if revert.until is not None:
                yield replace(_event(last, revert.time + 1, Operation.UNCLEAR, REVERTED), until=revert.until)
        is_rewritten = any(revert.time < edit.time <= (revert.undone or 0) for edit in foreign_edits)
        before = self._entry(revert.tree, covered.name)
        if revert.undone is None or before is None or not (is_rewritten or state is not None):
            return  # what the tree lacks stays as it is
        if is_rewritten and revert.until is not None:  # by the other session before or after that
            yield _event(last, revert.undone, Operation.UNCLEAR, REVERTED)
        else:
            yield _state(last, revert.undone, self._of(before), BROUGHT_BACK)

    def _after(self, covered: _RevertedFile, revert: Revert) -> _FileAfter | None:
        """The file after the revert; None if the revert did not touch it."""
        steps = covered.steps
        entries = [self._entry(step.blob, covered.name) for step in steps]
        before = self._entry(revert.tree, covered.name)
        if revert.diff and revert.is_recorded:
            return self._by_diff(covered.name, revert, entries)
        if not steps:
            # In no patch part: ignored, or recorded too late. It stays as it is, if no part is missing.
            return _UNKNOWN if before is not None else None
        if revert.part:
            return self._of(entries[0])
        # The first reverted part is unknown, because the recorded message may be the prompt of its turn.
        return _UNKNOWN if not revert.is_recorded or any(entry != before for entry in entries) else None

    def _by_diff(self, name: str, revert: Revert, entries: list[Entry | None]) -> _FileAfter | None:
        """The file after the revert by the recorded diff; `entries` are from the trees it may have been reset to."""
        changes = _changes(revert.diff)
        if changes is None:
            return _UNKNOWN
        change = changes.get(name)
        if change is None or change.is_gone:
            return None if change is None else _GONE
        source = self._entry(revert.tree, change.source)
        if not change.blob:
            return None if change.source == name else self._of(source)
        for entry in entries:
            if entry is not None and entry[1].startswith(change.blob) and self._of(entry).is_known:
                return self._of(entry)
        return self._patched(source, change)

    def _patched(self, source: Entry | None, change: unified_diffs.Change) -> _FileAfter:
        """The blob with the hunks of a diff applied, if the result has the hash in the diff."""
        before = b"" if source is None else self._archive.objects.blob(source[1])
        content = None if before is None else unified_diffs.patched(before, change.hunks)
        if content is None or not blob_id(content).startswith(change.blob):
            return _UNKNOWN
        try:
            return _FileAfter(text=content.decode("utf-8"))
        except UnicodeDecodeError:
            return _UNKNOWN

    def _entry(self, tree: str, name: str) -> Entry | None:
        return self._archive.objects.find(tree, name)

    def _of(self, entry: Entry | None) -> _FileAfter:
        if entry is None:
            return _GONE
        if entry[0] in _NO_FILE:
            return _UNKNOWN
        if entry[1] == _EMPTY:  # which need not have been captured
            return _FileAfter(text="")
        return _FileAfter(entry[1]) if self._archive.objects.has(entry[1]) else _UNKNOWN


def _scope(edit: FileEdit) -> str:
    root = edit.other or edit.path
    return edit.path if is_beneath(edit.path, root) else root


def _covered(edits: list[FileEdit], revert: Revert, roots: set[tuple[str, str]]) -> Iterator[_RevertedFile]:
    """The files in a git work tree that the reverted messages or parts changed.

    `roots` are pairs of a folder that snapshots were taken of, and its work tree: files outside of the folder are not
    set back (opencode-formats.md, Reverts).
    """
    by_path: dict[str, list[FileEdit]] = defaultdict(list)
    for edit in edits:
        if _is_covered(edit, revert):
            by_path[edit.path].append(edit)
    for path in sorted(by_path):
        above = (root for scope, root in roots if path != root and is_beneath(path, scope))
        root = max(above, key=len, default="")
        if root and any(edit.operation not in _OBSERVED for edit in by_path[path]):
            yield _RevertedFile(path, path[len(root.rstrip("/")) + 1 :], by_path[path])


def _is_covered(edit: FileEdit, revert: Revert) -> bool:
    if not edit.message_id or edit.time > max(revert.after, revert.time):
        return False
    if revert.part and edit.message_id == revert.first:
        # A patch part that is itself the first one to be reverted is not gone back from; a call is, with its step.
        return edit.part_id > revert.part or (edit.part_id == revert.part and edit.operation is not Operation.STEP)
    return is_from(edit.message_id, revert.first)


def _state(last: FileEdit, time: int, state: _FileAfter, how: str) -> FileEdit:
    if not state.is_known:
        return _event(last, time, Operation.UNCLEAR, PENDING)
    return replace(_event(last, time, Operation.STATE, how), tool="revert", blob=state.blob, content=state.text)


def _event(edit: FileEdit, time: int, operation: Operation, note: str) -> FileEdit:
    # "~" sorts behind every part: what a revert did comes after the calls of the same millisecond.
    part = f"~{edit.part_id}"
    plain = FileEdit(edit.path, time, edit.session_id, edit.message_id, part, edit.tool, operation)
    return replace(plain, note=note, version=edit.version)
