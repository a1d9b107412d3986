"""Replays every recorded event in time order over a small file system of known contents.

Given all events of the requested paths, oldest first, it computes their histories. Pure: same events and objects, same
histories. Nothing is guessed, and no disk is read.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from daemon.files import apply, trees
from daemon.files.content import Content
from daemon.files.events import formatters
from daemon.files.history import REMOVED, REVERTED, SHELL, FileHistory, Grade
from daemon.files.replay import changes, moves, observe, reads
from daemon.files.replay.launches import Launches
from daemon.files.replay.moves import Moves
from daemon.files.replay.snapshots import Snapshots
from daemon.files.replay.track import State, Track
from daemon.files.replay.tracks import Tracks
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.call_results import MODIFIED
from daemon.transcript.evidence.recorded_diffs import AFTER_TURN

_CHANGES = frozenset({Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH})
_READS = frozenset({Operation.READ, Operation.READ_RANGE})
_CUT_OFF = "something that was cut off, at a time that is not recorded, may have changed it after this"

_STEP = 2000
_NEEDS_FILE = _READS | {Operation.EDIT, Operation.PATCH}
"""Operations that only succeed on an existing file."""


class World:
    """Replays events; `objects` holds blobs and trees, `path_filter` says which paths of a snapshot matter.

    `may_format`: whether a formatter may have run right after a change.
    """

    def __init__(
        self,
        objects: trees.Objects,
        path_filter: trees.PathFilter | None = None,
        may_format: Callable[[FileEdit], bool] = formatters.may_run,
    ) -> None:
        self._objects = objects
        self._may_format = may_format
        self._tracks = Tracks()
        self._later: dict[str, deque[FileEdit]] = defaultdict(deque)
        self._snapshots = Snapshots(self._tracks, objects, path_filter or trees.PathFilter(), self._later, may_format)
        self._proven_files: set[str] = set()
        self._moves = Moves(self._tracks, self._proven_files)
        self._launches = Launches(self._tracks, self._later, self._replay_effect, self._doubt_folder)
        self._handlers: dict[Operation, Callable[[FileEdit], None]] = {
            Operation.DELETE: self._moves.delete,
            Operation.MOVE: self._moves.move,
            Operation.COPY: self._moves.copy,
            Operation.TOUCH: self._touch,
            Operation.FOLDER: self._make_folder,
            Operation.SNAPSHOT: self._snapshots.observe_tree,
            Operation.STATE: self._state,
            Operation.UNCLEAR: self._unclear,
            Operation.RUN: self._launches.run,
            Operation.REFUSED: self._refused,
            Operation.STEP: lambda _: None,
        }
        self.programs: list[FileEdit] = []
        """Programs that may have written files that no record names, oldest first; `path` is their folder."""

    def replay(self, events: Sequence[FileEdit], pulse: Callable[[], None] = lambda: None) -> None:
        """Replay `events`, in time order and none older than those before; `pulse` is called now and then."""
        for edit in events:
            if edit.operation in _CHANGES:
                self._later[edit.path].append(edit)
            if edit.operation in _NEEDS_FILE:
                self._proven_files.add(edit.path)
        for number, edit in enumerate(events):
            if number % _STEP == 0:
                pulse()
            self._tracks.number += 1
            self._handlers.get(edit.operation, self._change_or_read)(edit)
        moves.mark_moves(self._tracks.all())

    def paths(self) -> list[str]:
        """Every path with a history, sorted, including folders of which nothing is archived."""
        return sorted({*self._tracks.paths(), *self._snapshots.lost})

    def links(self) -> set[tuple[str, str]]:
        """Every link that was ever known: (its path, its target)."""
        return self._tracks.folders.ever_linked

    def real(self, path: str) -> str:
        """The path after following known links."""
        return self._tracks.folders.real(path)

    def reached(self) -> set[str]:
        """Paths that events named otherwise, through links, and where paths of before the links lead to now."""
        for path in self._tracks.paths():
            self.real(path)
        return self._tracks.folders.reached

    def history(self, path: str) -> FileHistory:
        """The history of one path; empty if nothing was recorded.

        A path through a link has the history of its target, from the time when the link is known.
        """
        track = self._tracks.known(path)
        revisions = tuple(track.revisions) if track is not None else ()
        if not revisions and path in self._snapshots.lost:
            return FileHistory(path, (self._snapshots.lost[path],))
        since = self._tracks.folders.linked_since(path)
        if since and self.real(path) != path:
            before = [replace(revision, time=since) for revision in revisions if revision.time <= since][-1:]
            revisions = (*before, *(revision for revision in revisions if revision.time > since))
        last = revisions[-1] if revisions else None
        if track is not None and last is not None and last.is_fleeting and last.proven:
            # An interrupted call may have changed it last.
            doubt = replace(
                last,
                time=track.doubtful_until,
                grade=Grade.STALE,
                evidence=(),
                kinds=frozenset(),
                note=_CUT_OFF,
                operation=Operation.UNCLEAR,
            )
            revisions = (*revisions, doubt)
        return FileHistory(path, revisions)

    # -- one file ------------------------------------------------------------------------------------------------

    def _change_or_read(self, edit: FileEdit) -> None:
        """A change or a read of one file."""
        if edit.operation in _READS:
            reads.read(self._tracks.of(edit.path, definite=edit.operation is Operation.READ), edit)
            return
        track = self._tracks.of(edit.path, definite=True)
        if edit.operation is Operation.WRITE:
            changes.write(track, edit, may_format=self._may_format(edit))
        elif edit.operation is Operation.APPEND:
            changes.append(track, edit)
        else:
            changes.change(track, edit, may_format=self._may_format(edit))
        track.changes.append(edit)
        self._later[edit.path].popleft()

    def _touch(self, edit: FileEdit) -> None:
        track = self._tracks.of(edit.path)
        if track.exists or self._tracks.is_folder(edit.path):
            return
        doubted = max(self._tracks.doubted(track.path), track.definite)
        if track.is_gone or (track.now is None and self._snapshots.lacks(track.path, doubted)):
            state = State(Grade.PROVEN, evidence=("made empty by touch",), kinds=frozenset({SHELL}))
        else:
            state = State(Grade.STALE, note="touched; whether it existed before is not recorded")
        track.add_text(edit, "", state)
        track.definite = self._tracks.number
        track.changes.append(edit)

    def _state(self, edit: FileEdit) -> None:
        """A whole state from a recorded diff, an attachment or a revert."""
        content: Content | None = None
        if edit.blob and not self._objects.has(edit.blob):
            return
        if edit.blob:
            content = Content(None, id_=edit.blob, load=self._objects.blob)
        elif edit.content is not None:
            content = Content(edit.content.encode("utf-8", "replace"))
        track = self._tracks.of(edit.path)
        observe.recorded_state(track, edit, content, self._tracks.number)
        now = track.now
        is_adopted = now is not None and now.part_id == edit.part_id and now.time == edit.time
        if is_adopted and edit.note.startswith(AFTER_TURN) and self._snapshots.denies(edit.path, content):
            # The tree of the diff is gone from the records, and so are the later events of its turn.
            self._doubt(track, replace(edit, note=REMOVED))

    # -- folders and programs ------------------------------------------------------------------------------------

    def _make_folder(self, edit: FileEdit) -> None:
        self._tracks.folders.make(self._tracks.folders.real(edit.path))

    def _unclear(self, edit: FileEdit) -> None:
        """The path, and everything known beneath it, may have changed."""
        if self._launches.explains(edit):
            return
        path = self._tracks.folders.real(edit.path)
        self._tracks.doubt(path)
        inner = self._tracks.beneath(path)
        if self._tracks.is_folder(path):
            self.programs.append(edit)
        for track in inner:
            if track.may_become_stale:
                self._doubt(self._tracks.of(track.path), edit)
        if self._tracks.known(path) is not None or not (inner or self._tracks.folders.is_made(path)):
            self._doubt(self._tracks.of(path), edit)

    def _replay_effect(self, edit: FileEdit) -> None:
        """One effect of a program whose text we understand."""
        self._tracks.number += 1
        if edit.operation in _CHANGES:
            self._later[edit.path].appendleft(edit)
        self._handlers.get(edit.operation, self._change_or_read)(edit)

    def _doubt_folder(self, folder: str, edit: FileEdit) -> None:
        """A program may have written any known file in the folder."""
        self.programs.append(edit)
        folder = self._tracks.folders.real(folder)
        self._tracks.doubt(folder)
        for track in self._tracks.changed_beneath(folder):
            if track.may_become_stale and track.exists:
                self._doubt(self._tracks.of(track.path), edit)

    def _refused(self, edit: FileEdit) -> None:
        """An edit was refused for lack of its old text. If our text has it, something else changed the file."""
        track = self._tracks.known(edit.path)
        is_known = track is not None and (track.is_certain or track.is_unconfirmed)
        if track is None or not is_known or not edit.old or edit.new is None or track.overlaps(edit):
            return
        text = track.text or ""
        if not track.exists:
            return
        outcome = apply.edited_by(text, edit.old, edit.new, edit.replace_all, edit.version)
        if outcome.text is not None:
            note = "an edit found no such text in it, so something else has changed it"
            track.add(edit, State(Grade.STALE, track.whole, note=note, outside_change=track.is_certain))

    def _doubt(self, track: Track, edit: FileEdit) -> None:
        now = track.now
        grade = Grade.LOST
        if now is not None:
            is_known = now.whole is not None or now.deleted or now.grade is Grade.PARTIAL
            grade = Grade.STALE if is_known else now.grade
        is_gone = now is not None and now.deleted
        known = None if now is None else now.fragments
        fragments = None if known is None else replace(known, is_stale=True)
        if edit.until is not None:
            track.doubtful_until = max(track.doubtful_until, edit.until)
            if edit.note != REVERTED:
                track.unended_until = max(track.unended_until, edit.until)
        state = State(
            grade,
            track.whole,
            deleted=is_gone,
            note=edit.note,
            outside_change=edit.note == MODIFIED,
            fragments=fragments,
        )
        track.add(edit, state)
        track.changes.append(edit)


def replay(
    events: Iterable[FileEdit],
    objects: trees.Objects,
    prefixes: tuple[str, ...] = ("/",),
    pulse: Callable[[], None] = lambda: None,
    may_format: Callable[[FileEdit], bool] = formatters.may_run,
) -> World:
    """A world in which all `events`, oldest first, have happened."""
    world = World(objects, trees.PathFilter(prefixes), may_format)
    world.replay(list(events), pulse)
    return world
