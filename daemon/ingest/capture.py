"""Captures OpenCode's snapshots and spilled outputs before it prunes them (opencode-formats.md, Snapshots).

The objects that a message names are queued in the message's own commit, so a crash loses nothing. Then the queue is
processed: each content is stored once, and finished trees are skipped. A commit never marks an object as done before
its content is committed. An object that is left out has a reason: too large, limit reached, gone. What the system
refuses to read is none of these: it stays queued, and is tried again. OpenCode's files are only read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daemon import log, private, records
from daemon.archive import Archive, Batch, keys
from daemon.archive.forgotten import OUTPUT
from daemon.archive.objects import BLOB, FOLDER, SUBMODULE, TREE
from daemon.errors import BadRecord
from daemon.exclude import EXCLUDED, Exclusion
from daemon.filesystem import disk_space, regular_file
from daemon.ingest.forgotten_paths import withhold
from daemon.ingest.refusals import Refusals
from daemon.ingest.scan_result import Captured
from daemon.model import FileEdit, Json, Operation
from daemon.opencode import json_files
from daemon.opencode.snapshots import GitObject, Snapshots

_LOG = log.get("capture")
_COMMIT_BYTES = 4 << 20
_COMMIT_KEYS = 5000
_PATIENCE_MS = 60_000
"""How long we wait for an object, because OpenCode may write a tree a moment after the message that names it."""

_RETRY_S = 600
"""A tree with missing objects is checked again after this long at the earliest, when a message names it again."""

_RESTING_MS = 2000
"""A spilled output that changed this recently may be unfinished."""

_REFUSED = "refused"
"""The remark of a tree of which something was refused: it is not settled."""

LEFT_OUT = "captures left out by exclude.paths"
"""The note that says under which settings something was left out; other settings look for it again."""

_MOST_KNOWN = 500_000
_ID = re.compile(r"[0-9a-f]{40}")

Progress = Callable[[int, int], None]


def _silence(done: int, total: int) -> None:
    """The default progress callback, which does nothing."""


class _OutOfTimeError(Exception):
    """The time budget is used up; objects captured so far stay."""


@dataclass(slots=True)
class _TreeWalk:
    """One tree during the descent: its remaining entries, and remarks on what was left out beneath it."""

    id: str
    entries: Iterator[tuple[str, tuple[int, str]]]
    places: list[str]
    """The folders that it may be of."""
    remarks: set[str] = field(default_factory=set)


class Capture:
    """Processes the queue. Have only one; call `want` and `want_file` while the message's batch is filled."""

    def __init__(
        self,
        archive: Archive,
        snapshots: Snapshots,
        *,
        data_dir: Path,
        further: Sequence[Path] = (),
        capture_mb: int = 8,
        capture_gb: int = 8,
        free_mb: int = 0,
        clock: Callable[[], float] = time.time,
        exclusion: Exclusion | None = None,
    ) -> None:
        self._exclusion = exclusion or Exclusion()
        self._by_setting = f"exclude:{self._exclusion.fingerprint}"
        self._archive = archive
        self._objects = archive.objects
        self._snapshots = snapshots
        self._spills = [folder / "tool-output" for folder in (data_dir, *further)]
        self._most, self._total, self._free_mb = capture_mb << 20, capture_gb << 30, free_mb
        self._limits = f"limits:{capture_mb}:{capture_gb}"
        self._too_large = f"larger than archive.capture_mb = {capture_mb}"
        self._too_much = f"limit reached: archive.capture_gb = {capture_gb}"
        self._clock = clock
        self._known: set[str] = set()  # blobs that the archive certainly has, because a check reads the whole blob
        self._figures = Captured()
        self._place = 0, 0
        self._deadline = 0.0
        self._progress: Progress = _silence
        self._gone = ""
        self._refusals = Refusals()
        self._refusal = ""  # of the entry in work
        self._begin()

    # -- filling the queue ---------------------------------------------------------------------------------------

    def want(self, batch: Batch, edits: Iterable[FileEdit]) -> None:
        """Queue the objects that a message's edits name, in the message's own batch, unless they are archived."""
        for edit in edits:
            if self._total and _ID.fullmatch(edit.blob) and not self._is_done(batch, edit.blob):
                self._objects.want(batch, edit.blob, self._entry(edit.time, edit.path, _roots(edit)))

    def want_file(self, batch: Batch, path: str, time_ms: int, bases: Sequence[str] = ()) -> None:
        """Queue a spilled tool output by the absolute path that the part names (``metadata.outputPath``).

        `bases` are the folders that relative names in it start from.
        """
        if self._total and json_files.output_name(path) and self._objects.spill(path) is None:
            self._objects.want(batch, path, self._entry(time_ms, roots=bases))

    def forget_known(self) -> None:
        """Look again which objects the archive has, because some were removed."""
        self._begin()
        self._known.clear()

    def waiting(self) -> int:
        """How many entries the queue has."""
        return len(self._objects.capture_queue())

    def _entry(self, time_ms: int, place: str = "", roots: Sequence[str] = ()) -> bytes:
        """`place` is the path whose history depends on the object; `roots` are the folders that a tree may be of."""
        return records.dumps({"time": time_ms, "seen": self._now(), "place": place, "roots": list(roots)})

    # -- processing the queue ------------------------------------------------------------------------------------

    def run(self, budget_s: float, progress: Progress | None = None, *, everything: bool = True) -> Captured:
        """Process the queue, the oldest first, for about so many seconds; other entries wait for the next run.

        Without `everything`, what was refused a moment ago waits as well.
        `progress` is called with (entries done, of how many) after each entry and each commit of a long one. It may
        raise: committed objects stay and are not read again.

        Raises:
            DiskFull: the disk is nearly full; nothing more was captured.
        """
        self._figures = Captured()
        queue = sorted(self._objects.capture_queue(), key=lambda item: records.load_object(item[1])["time"])
        if not queue or not self._total:
            self._figures.waiting = len(queue)
            return self._figures
        self._check_space()
        self._snapshots.refresh()
        self._begin()
        self._deadline = time.monotonic() + budget_s
        self._progress = progress or _silence
        self._gone = f"gone:{int(self._clock())}"
        try:
            for number, (name, value) in enumerate(queue):
                self._place = number, len(queue)
                if everything or not self._refusals.is_resting(name):
                    self._work(name, value)
                self._progress(number + 1, len(queue))
                self._pause()
        except _OutOfTimeError:
            pass
        self._commit()
        left = {name for name, _ in self._objects.capture_queue()}
        self._refusals.keep(left)
        self._figures.waiting, self._figures.refusal = len(left), self._refusals.reason
        return self._figures

    def _begin(self) -> None:
        """Start an empty commit, because after a failure nothing of the last one counts as written."""
        self._batch = self._archive.batch()
        self._pending: set[str] = set()
        self._pending_bytes = 0

    def _commit(self) -> None:
        if len(self._batch):
            self._check_space()
            self._archive.commit(self._batch)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known |= self._pending
        self._batch, self._pending, self._pending_bytes = self._archive.batch(), set(), 0

    def _pause(self) -> None:
        """Between two objects: commit if there is enough, and check the time budget.

        However small the budget is, one object is captured, so that repeated runs finish the queue.
        """
        if self._pending_bytes >= _COMMIT_BYTES or len(self._batch) >= _COMMIT_KEYS:
            self._commit()
            self._progress(*self._place)
        figures = self._figures
        if time.monotonic() >= self._deadline and figures.trees + figures.files + figures.left_out:
            raise _OutOfTimeError

    def _check_space(self) -> None:
        disk_space.check(self._archive.directory, self._free_mb, "nothing is captured")

    def _work(self, name: str, value: bytes) -> None:
        entry = records.load_object(value)
        self._refusal = ""
        before = self._figures.trees + self._figures.files
        done = self._spill(name, entry) if name.startswith("/") else self._object(name, entry)
        if self._refusal:
            self._refusals.add(name, self._refusal)
        elif done:
            self._objects.unwant(self._batch, name, value)
        if entry.get("place") and (done or self._figures.trees + self._figures.files > before):
            self._batch.outdate(entry["place"])

    def _object(self, object_id: str, entry: Json) -> bool:
        """Capture one queued tree or blob; False if it may still appear."""
        if self._is_done(self._batch, object_id):
            return True
        if self._may_come(entry) and not self._objects.kind(self._batch, object_id):
            git_object = self._snapshots.read(object_id, self._most)
            if not git_object.kind:
                return False
        roots = entry.get("roots") or _ancestors(entry.get("place") or "/")
        kind, _ = self._keep(object_id, roots)
        if kind == TREE:
            self._descend(object_id, roots)
        return not self._refusal

    def _may_come(self, entry: Json) -> bool:
        now = self._now()
        return now - records.integer(entry["time"]) < _PATIENCE_MS and now - entry["seen"] < 2 * _PATIENCE_MS

    # -- trees ---------------------------------------------------------------------------------------------------

    def _descend(self, root: str, places: list[str]) -> None:
        """Capture everything beneath a stored tree. A tree is settled after all its content, so it can be skipped."""
        stack = [self._walk(root, places)]
        while stack:
            walk = stack[-1]
            name, (mode, id_) = next(walk.entries, ("", (-1, "")))
            inner = [f"{place.rstrip('/')}/{name}" for place in walk.places]
            if mode < 0:
                if _REFUSED not in walk.remarks:
                    self._objects.settle(self._batch, walk.id, " ".join(sorted(walk.remarks)))
                stack.pop()
                if stack:
                    stack[-1].remarks |= walk.remarks
            elif mode == FOLDER and not any(map(self._exclusion.path, inner)):
                remark = self._settled_remark(self._batch, id_)
                if remark is not None:
                    walk.remarks.update(remark.split())
                    continue
                kind, remark = self._keep(id_, inner)
                if kind == TREE:
                    stack.append(self._walk(id_, inner))
                elif remark:
                    walk.remarks.add(remark)
            elif mode != SUBMODULE and not self._has(id_):
                _, remark = self._keep(id_, inner)
                walk.remarks.update(remark.split())

    def _walk(self, tree_id: str, places: list[str]) -> _TreeWalk:
        entries = self._objects.entries(self._batch, tree_id)
        return _TreeWalk(tree_id, iter(list(entries.items())), places)

    def _keep(self, object_id: str, places: list[str]) -> tuple[str, str]:
        """Put one object into the batch: (its kind, "") or ("", remark that says why not)."""
        if any(map(self._exclusion.path, places)):
            return self._leave_out(object_id, EXCLUDED, self._by_setting)
        if self._objects.kind(self._batch, object_id) == TREE:
            return TREE, ""
        self._pause()
        git_object = self._snapshots.read(object_id, self._most)
        if git_object.waits:
            self._refusal = git_object.reason
            return "", _REFUSED
        reason, remark = self._objection(git_object)
        if reason:
            return self._leave_out(object_id, reason, remark)
        kind = TREE if git_object.kind == "tree" else BLOB
        try:
            self._objects.put(self._batch, kind, git_object.raw)
        except BadRecord as error:
            return self._leave_out(object_id, f"damaged: {error}", self._limits)
        if kind == TREE:
            withhold(self._archive, self._batch, object_id, places)
        self._count(kind, object_id, len(git_object.raw))
        return kind, ""

    def _objection(self, git_object: GitObject) -> tuple[str, str]:
        """Why an object is not stored, and the remark; empty if it is.

        Trees are small, and prove that a file existed, so they are stored even beyond the limit.
        """
        if git_object.size:
            return f"too large: {git_object.size} bytes, {self._too_large}", self._limits
        if not git_object.kind:
            return git_object.reason, self._gone
        if git_object.kind == "tree":
            return "", ""
        if private.holds_tag(git_object.raw):
            return "holds a private block", ""
        return (self._too_much, self._limits) if self._is_full(len(git_object.raw)) else ("", "")

    def _leave_out(self, object_id: str, reason: str, remark: str) -> tuple[str, str]:
        self._objects.skip(self._batch, object_id, reason)
        if remark == self._by_setting:
            self._batch.put(keys.note(LEFT_OUT), self._exclusion.fingerprint.encode())
        self._figures.left_out += 1
        _LOG.debug("left out", object=object_id, reason=reason)
        return "", remark

    def _is_full(self, size: int) -> bool:
        return self._objects.size + self._pending_bytes + size > self._total

    def _count(self, kind: str, object_id: str, size: int) -> None:
        self._figures.trees += kind == TREE
        self._figures.files += kind == BLOB
        self._figures.bytes += size
        self._pending_bytes += size
        if kind == BLOB:
            self._pending.add(object_id)

    # -- objects that are already archived -----------------------------------------------------------------------

    def _has(self, blob_id: str) -> bool:
        if blob_id in self._known or blob_id in self._pending:
            return True
        if not self._objects.has(blob_id):
            return False
        self._known.add(blob_id)
        return True

    def _is_done(self, batch: Batch, object_id: str) -> bool:
        """Whether a queued object is done: a settled tree, or a stored blob."""
        return self._settled_remark(batch, object_id) is not None or self._objects.kind(batch, object_id) == BLOB

    def _settled_remark(self, batch: Batch, tree_id: str) -> str | None:
        """What was left out of a settled tree; None if we must descend into it (again).

        Again, because objects that were left out may fit new limits, and missing ones may have come back.
        """
        remark = self._objects.settled(batch, tree_id)
        for word in (remark or "").split():
            name, _, value = word.partition(":")
            if (name == "limits" and word != self._limits) or (name == "exclude" and word != self._by_setting):
                return None
            if name == "gone" and self._clock() - int(value) >= _RETRY_S:
                return None
        return remark

    # -- spilled tool outputs ------------------------------------------------------------------------------------

    def _spill(self, path: str, entry: Json) -> bool:
        """Capture one queued spilled output; False if it may still appear or is being written."""
        try:
            raw, changed = json_files.read_output(self._spills, json_files.output_name(path), self._most)
        except FileNotFoundError:
            if self._may_come(entry):
                return False
            reason = "gone: no such file in tool-output"
        except OSError as error:
            if regular_file.is_refusal(error):
                self._refusal = f"{path}: cannot be read: {error.strerror}"
                return False
            reason = f"cannot be read: {error.strerror}"
        else:
            if abs(self._now() - changed) < _RESTING_MS:
                return False
            reason = self._refused_output(path, raw, entry.get("roots") or [])
            if raw is not None and not reason:
                self._count(BLOB, self._objects.put_spill(self._batch, path, raw), len(raw))
                return True
        self._leave_out(path, reason, self._by_setting if reason == EXCLUDED else "")
        return True

    def _refused_output(self, path: str, raw: bytes | None, roots: Sequence[str]) -> str:
        """Why a spilled output is not stored; empty if it is."""
        if raw is None or self._is_full(len(raw)):
            return f"too large: {self._too_large}" if raw is None else self._too_much
        return "forgotten" if self._archive.forgotten.has(OUTPUT, path) else self._exclusion.spill(raw, roots)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _roots(edit: FileEdit) -> list[str]:
    """The folders that the tree of an edit may be of: its work tree, or those at and above its path."""
    return [edit.other] if edit.operation is Operation.SNAPSHOT and edit.other else _ancestors(edit.path)


def _ancestors(path: str) -> list[str]:
    """The path and every folder above it, but the root."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:count]) for count in range(len(parts), 0, -1)]
