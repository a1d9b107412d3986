"""The files of the recorded past: every event replayed in time order over a small file system of known contents.

Given all events of the wanted paths, oldest first, it makes their histories. Pure: same events and objects, same
histories; nothing is guessed, and no disk is read. Folder operations act on what is known beneath the folder. What a
change makes of one file is `changes`, what an observation says of it `observe`, what a tree says `snapshots`.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from daemon.files import trees
from daemon.files.apply import rules
from daemon.files.content import Content
from daemon.files.events import formatters
from daemon.files.history import REMOVED, REVERTED, SHELL, FileHistory, Grade
from daemon.files.replay import changes, moves, observe, reads
from daemon.files.replay.launches import Launches
from daemon.files.replay.snapshots import Snapshots
from daemon.files.replay.track import State, Track
from daemon.files.replay.tracks import Tracks
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.call_results import MODIFIED
from daemon.transcript.evidence.recorded_diffs import AFTER_TURN

_CHANGES = frozenset({Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH})
_READS = frozenset({Operation.READ, Operation.READ_RANGE})
_CUT_OFF = "something that was cut off, at a time that is not recorded, may have changed it after this"
_FILE_NAME = re.compile(r"[^/]\.(?!d$)[A-Za-z][A-Za-z0-9_]{0,9}$")
"""A name with a suffix as files have; folders are called build-1.2 and conf.d."""

_STEP = 2000
_NEEDS_FILE = _READS | {Operation.EDIT, Operation.PATCH}
"""Operations that only succeed on a file that is there."""


class World:
    """Replays events; `objects` holds blobs and trees, `wanted` says which paths snapshots are asked for.

    `may_format`: whether a formatter may have run right after a change.
    """

    def __init__(
        self,
        objects: trees.Objects,
        wanted: trees.Wanted | None = None,
        may_format: Callable[[FileEdit], bool] = formatters.may_run,
    ) -> None:
        self._objects = objects
        self._may_format = may_format
        self._tracks = Tracks()
        self._later: dict[str, deque[FileEdit]] = defaultdict(deque)
        self._snapshots = Snapshots(self._tracks, objects, wanted or trees.Wanted(), self._later, may_format)
        self._launches = Launches(self._tracks, self._later, self._made, self._doubt_folder)
        self._takers: dict[Operation, Callable[[FileEdit], None]] = {
            Operation.DELETE: self._delete,
            Operation.MOVE: self._move,
            Operation.COPY: self._copy,
            Operation.TOUCH: self._touch,
            Operation.FOLDER: self._make_folder,
            Operation.SNAPSHOT: self._snapshots.take,
            Operation.STATE: self._state,
            Operation.UNCLEAR: self._unclear,
            Operation.RUN: self._launches.run,
            Operation.REFUSED: self._refused,
            Operation.STEP: lambda _: None,
        }
        self.programs: list[FileEdit] = []
        """What ran and may have written files that no record names, oldest first; `path` is the folder it ran in."""
        self._existed: set[str] = set()
        self._doubted = 0  # the number of the last event that may have changed more than is known

    def take(self, events: Sequence[FileEdit], pulse: Callable[[], None] = lambda: None) -> None:
        """Replay `events`, in time order and none older than what was taken before; `pulse` is called now and then."""
        for edit in events:
            if edit.operation in _CHANGES:
                self._later[edit.path].append(edit)
            if edit.operation in _NEEDS_FILE:
                self._existed.add(edit.path)
        for number, edit in enumerate(events):
            if number % _STEP == 0:
                pulse()
            self._tracks.number += 1
            self._takers.get(edit.operation, self._one)(edit)
        moves.join(self._tracks.all())

    def paths(self) -> list[str]:
        """Every path with a history, sorted; of a folder that is lost as a whole, its own."""
        return sorted({*self._tracks.paths(), *self._snapshots.lost})

    def links(self) -> set[tuple[str, str]]:
        """Every link that was ever known: (its path, what it led to)."""
        return self._tracks.folders.ever_linked

    def real(self, path: str) -> str:
        """Where the links that are known lead a path."""
        return self._tracks.folders.real(path)

    def history(self, path: str) -> FileHistory:
        """The history of one path; empty where nothing was recorded.

        A path that leads through a link has the history of what it leads to, from when the link is known.
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
            # Whatever was cut off may have come last.
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

    def _one(self, edit: FileEdit) -> None:
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
        doubted = max(self._doubted, track.definite)
        if track.is_gone or (track.now is None and self._snapshots.lacks(track.path, doubted)):
            state = State(Grade.PROVEN, evidence=("made empty by touch",), kinds=frozenset({SHELL}))
        else:
            state = State(Grade.STALE, note="touched; whether it existed before is not recorded")
        track.add_text(edit, "", state)
        track.definite = self._tracks.number
        track.changes.append(edit)

    def _state(self, edit: FileEdit) -> None:
        """A whole state out of a recorded diff, an attachment, or made by a revert."""
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
            # The tree that the diff was made of is not recorded any more, nor what followed in its turn.
            self._doubt(track, replace(edit, note=REMOVED))

    # -- whole files and folders ---------------------------------------------------------------------------------

    def _delete(self, edit: FileEdit) -> None:
        place = self._tracks.folders.named(edit.path)
        if self._tracks.folders.is_link(place):
            self._tracks.folders.unlink(place)
            return
        inner = self._tracks.beneath(place) if edit.recursive else []
        for track in inner:
            if track.exists or not track.is_certain:
                self._gone(self._tracks.of(track.path, definite=True), edit, "deletion of its folder")
        is_folder = bool(inner) or self._tracks.folders.is_made(place) or self._tracks.folders.has_inner(place)
        self._tracks.folders.unmake(place)
        if self._tracks.known(place) is not None or not is_folder:
            self._gone(self._tracks.of(place, definite=True), edit, "deletion")

    def _gone(self, track: Track, edit: FileEdit, how: str, *, moved_to: str = "") -> None:
        if track.overlaps(edit):
            state = State(Grade.STALE, track.whole, deleted=not track.exists, note=changes.CONCURRENT)
        else:
            state = State(
                Grade.PROVEN,
                evidence=(how,),
                kinds=frozenset({changes.kind_of(edit)}),
                deleted=True,
                note=edit.note,
                moved_to=moved_to,
            )
        track.add(edit, state)
        track.changes.append(edit)

    def _destination(self, edit: FileEdit) -> tuple[str, bool]:
        """Where a move or copy went, and whether that is certain: into a folder of that name, or to that name."""
        other = self._tracks.folders.real(edit.other or edit.path)
        inside = posixpath.join(other, posixpath.basename(edit.path))
        if edit.into is not None:
            return (inside if edit.into else other), True
        if self._tracks.is_folder(other):
            return inside, True
        track = self._tracks.known(other)
        is_known = track is not None and (_is_file(track) or (track.is_gone and track.definite > self._doubted))
        looks_like_file = _FILE_NAME.search(other) is not None and not self._tracks.is_folder(edit.path)
        if is_known or (looks_like_file and not self._tracks.folders.has_inner(other)):
            return other, True
        return self._found_later(edit, other, inside)

    def _found_later(self, edit: FileEdit, other: str, inside: str) -> tuple[str, bool]:
        """Which of two destinations it was, by what later calls found there."""
        source = self._tracks.folders.real(edit.path)
        rests = [track.path[len(source) :] for track in self._tracks.beneath(source) if track.exists] or [""]
        is_other, is_inside = (any(place + rest in self._existed for rest in rests) for place in (other, inside))
        return (inside if is_inside and not is_other else other), is_other != is_inside

    def _move(self, edit: FileEdit) -> None:
        """A file, or a folder with all that is known to be in it, has another name now."""
        target, is_sure = self._destination(edit)
        source = self._tracks.folders.named(edit.path)
        if target == source:
            return
        if self._tracks.folders.is_link(source):
            self._tracks.folders.move_link(source, target, edit.time)
            return
        inner = [track for track in self._tracks.beneath(source) if track.exists]
        for track in inner:
            to = target + track.path[len(source) :]
            self._arrive(self._tracks.of(to, definite=True), track, edit, is_sure=is_sure, verb="moved")
            self._gone(self._tracks.of(track.path, definite=True), edit, f"moved to {to}", moved_to=to)
        own = self._tracks.known(source)
        if inner or (self._tracks.folders.is_made(source) and (own is None or not own.exists)):
            self._tracks.folders.unmake(source)
            self._tracks.folders.make(target)
        else:
            origin = self._tracks.of(source, definite=True)
            self._arrive(self._tracks.of(target, definite=True), origin, edit, is_sure=is_sure, verb="moved")
            self._gone(origin, edit, f"moved to {target}", moved_to=target)

    def _copy(self, edit: FileEdit) -> None:
        target, is_sure = self._destination(edit)
        source = self._tracks.folders.real(edit.path)
        if target == source:
            return
        inner = [track for track in self._tracks.beneath(source) if track.exists] if edit.recursive else []
        for track in inner:
            to = target + track.path[len(source) :]
            self._arrive(self._tracks.of(to, definite=True), track, edit, is_sure=is_sure, verb="copied")
        if inner:
            self._tracks.folders.make(target)
        else:
            origin = self._tracks.known(source) or Track(source)
            self._arrive(self._tracks.of(target, definite=True), origin, edit, is_sure=is_sure, verb="copied")

    def _arrive(self, track: Track, origin: Track, edit: FileEdit, *, is_sure: bool, verb: str) -> None:
        """The state of `origin` comes to `track`."""
        now = origin.now
        state = State(
            Grade.STALE,
            None if now is None else now.whole,
            evidence=(f"{verb} from {origin.path}",),
            moved_from=origin.path if verb == "moved" else "",
            mark_unknown=now is not None and now.mark_unknown,
        )
        if now is None or now.deleted:
            note = f"{verb} from {origin.path}, of which nothing is known"
            state = replace(state, grade=Grade.LOST, whole=None, note=note)
        elif track.overlaps(edit) or origin.overlaps(edit):
            state = replace(state, note=changes.CONCURRENT)
        elif not is_sure:
            state = replace(state, note=f"whether {edit.other} was a folder is not recorded")
        else:
            state = replace(
                state,
                grade=Grade.PROVEN if now.proven else now.grade,
                kinds=frozenset({changes.kind_of(edit)}),
                note="" if now.proven else now.note,
                fragments=now.fragments,
                mode=now.mode,
                unconfirmed=now.unconfirmed,
            )
        track.add(edit, state)
        track.changes.append(edit)

    def _make_folder(self, edit: FileEdit) -> None:
        self._tracks.folders.make(self._tracks.folders.real(edit.path))

    def _unclear(self, edit: FileEdit) -> None:
        """The path, and all that is known beneath it, may have changed."""
        if self._launches.tells_of(edit):
            return
        self._doubted = self._tracks.number
        path = self._tracks.folders.real(edit.path)
        inner = self._tracks.beneath(path)
        if self._tracks.is_folder(path):
            self.programs.append(edit)
        for track in inner:
            if track.may_become_stale:
                self._doubt(self._tracks.of(track.path), edit)
        if self._tracks.known(path) is not None or not (inner or self._tracks.folders.is_made(path)):
            self._doubt(self._tracks.of(path), edit)

    def _made(self, edit: FileEdit) -> None:
        """One thing that a program did, as its text tells."""
        self._tracks.number += 1
        if edit.operation in _CHANGES:
            self._later[edit.path].appendleft(edit)
        self._takers.get(edit.operation, self._one)(edit)

    def _doubt_folder(self, folder: str, edit: FileEdit) -> None:
        """A program may have written any file that is known there."""
        self.programs.append(edit)
        self._doubted = self._tracks.number
        for track in self._tracks.changed_beneath(self._tracks.folders.real(folder)):
            if track.may_become_stale and track.exists:
                self._doubt(self._tracks.of(track.path), edit)

    def _refused(self, edit: FileEdit) -> None:
        """An edit that found no such text: where what is known holds it, something else has changed the file before."""
        track = self._tracks.known(edit.path)
        is_known = track is not None and (track.is_certain or track.is_unconfirmed)
        if track is None or not is_known or not edit.old or edit.new is None or track.overlaps(edit):
            return
        text = track.text or ""
        if not track.exists:
            return
        outcome = rules.edited_by(text, edit.old, edit.new, edit.replace_all, edit.version)
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


def _is_file(track: Track) -> bool:
    """Whether something is known that only a file has."""
    return track.exists and (track.whole is not None or track.revisions[-1].fragments is not None)


def replay(
    events: Iterable[FileEdit],
    objects: trees.Objects,
    prefixes: tuple[str, ...] = ("/",),
    pulse: Callable[[], None] = lambda: None,
    may_format: Callable[[FileEdit], bool] = formatters.may_run,
) -> World:
    """A world in which all `events`, oldest first, have happened."""
    world = World(objects, trees.Wanted(prefixes), may_format)
    world.take(list(events), pulse)
    return world
