"""Files and folders that were moved, copied or deleted: by recorded commands, or as only observations show.

Operations on a folder act on what is known beneath it. If in one step a file disappeared and another appeared with the
same content, `mark_moves` marks a move, whatever the command was. Both states must be certain, no other path may match,
and empty files are never paired.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from daemon.files.content import Content
from daemon.files.history import DOUBTS, Grade, Revision
from daemon.files.replay import changes
from daemon.files.replay.track import State, Track
from daemon.files.replay.tracks import Tracks
from daemon.model import FileEdit
from daemon.records import blob_id

_EMPTY = blob_id(b"")
_WENT, _CAME = "{} held its content after the same step", "{} held this content before the same step, and was gone then"
"""The evidence of the old and of the new path of such a move; each names the other."""
_FILE_NAME = re.compile(r"[^/]\.(?!d$)[A-Za-z][A-Za-z0-9_]{0,9}$")
"""A name with a suffix as files have; folders are called build-1.2 and conf.d."""


class Moves:
    """Replays DELETE, MOVE and COPY events; `proven_files` are the paths that later calls prove to be files."""

    def __init__(self, tracks: Tracks, proven_files: set[str]) -> None:
        self._tracks = tracks
        self._proven_files = proven_files

    def delete(self, edit: FileEdit) -> None:
        """A file, a link, or a folder with all that is known to be in it, is gone."""
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
        """Where a move or copy went (into a folder of that name, or to that name), and whether that is certain."""
        target = self._tracks.folders.real(edit.other or edit.path)
        inside = posixpath.join(target, posixpath.basename(edit.path))
        if edit.into is not None:
            return (inside if edit.into else target), True
        if self._tracks.is_folder(target):
            return inside, True
        track = self._tracks.known(target)
        is_known = track is not None and (
            _is_file(track) or (track.is_gone and track.definite > self._tracks.doubted(target))
        )
        looks_like_file = _FILE_NAME.search(target) is not None and not self._tracks.is_folder(edit.path)
        if is_known or (looks_like_file and not self._tracks.folders.has_inner(target)):
            return target, True
        return self._by_later_calls(edit, target, inside)

    def _by_later_calls(self, edit: FileEdit, target: str, inside: str) -> tuple[str, bool]:
        """Which of two destinations it was, by the files that later calls used."""
        source = self._tracks.folders.real(edit.path)
        tails = [track.path[len(source) :] for track in self._tracks.beneath(source) if track.exists] or [""]
        is_target, is_inside = (any(place + tail in self._proven_files for tail in tails) for place in (target, inside))
        return (inside if is_inside and not is_target else target), is_target != is_inside

    def move(self, edit: FileEdit) -> None:
        """A file, or a folder with its known content, gets another name."""
        target, is_sure = self._destination(edit)
        source = self._tracks.folders.named(edit.path)
        if target == source:
            return
        if self._tracks.folders.is_link(source):
            self._tracks.folders.move_link(source, target, edit.time)
            return
        inner = [track for track in self._tracks.beneath(source) if track.exists]
        self._tracks.doubt(target)  # files may have come with it of which nothing is known
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

    def copy(self, edit: FileEdit) -> None:
        """A file, or the known content of a folder, is copied to a second path."""
        target, is_sure = self._destination(edit)
        source = self._tracks.folders.real(edit.path)
        if target == source:
            return
        inner = [track for track in self._tracks.beneath(source) if track.exists] if edit.recursive else []
        self._tracks.doubt(target)
        for track in inner:
            to = target + track.path[len(source) :]
            self._arrive(self._tracks.of(to, definite=True), track, edit, is_sure=is_sure, verb="copied")
        if inner:
            self._tracks.folders.make(target)
        else:
            origin = self._tracks.known(source) or Track(source)
            self._arrive(self._tracks.of(target, definite=True), origin, edit, is_sure=is_sure, verb="copied")

    def _arrive(self, track: Track, origin: Track, edit: FileEdit, *, is_sure: bool, verb: str) -> None:
        """Give `track` the state of `origin`."""
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


def _is_file(track: Track) -> bool:
    """Whether it is known to be a file, by its content."""
    return track.exists and (track.whole is not None or track.revisions[-1].fragments is not None)


# -- moves that only observations show ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a move: the revision that removed or created a file, and the file's content."""

    path: str
    revision: Revision
    held: Content

    @property
    def step(self) -> tuple[str, str]:
        return self.revision.message_id, self.held.id

    @property
    def named_step(self) -> tuple[str, str, str]:
        return (*self.step, posixpath.basename(self.path))


def mark_moves(tracks: Iterable[Track]) -> None:
    """Mark both ends of each move among the revisions of `tracks` that only observations show."""
    gone: list[_End] = []
    new: list[_End] = []
    for track in tracks:
        gone += _disappearances(track)
        new += _appearances(track)
    steps = {end.revision.message_id for end in gone} & {end.revision.message_id for end in new}
    gone, new = (
        [end for end in ends if end.revision.message_id in steps and end.held.id != _EMPTY] for ends in (gone, new)
    )
    # A folder that was moved keeps the names of its files, and may hold some of the same content.
    _pair(gone, new, lambda end: end.named_step)
    _pair(gone, new, lambda end: end.step)


def _pair(gone: Sequence[_End], new: Sequence[_End], key: Callable[[_End], tuple[str, ...]]) -> None:
    """Mark each pair of ends that are alone under their key."""
    sources, targets = _by_key(gone, key), _by_key(new, key)
    for shared, ends in sources.items():
        counterparts = targets.get(shared, [])
        if len(ends) == len(counterparts) == 1:
            (source,), (target,) = ends, counterparts
            source.revision.moved_to, target.revision.moved_from = target.path, source.path
            source.revision.evidence += (_WENT.format(target.path),)
            target.revision.evidence += (_CAME.format(source.path),)


def _by_key(ends: Iterable[_End], key: Callable[[_End], tuple[str, ...]]) -> dict[tuple[str, ...], list[_End]]:
    groups: dict[tuple[str, ...], list[_End]] = defaultdict(list)
    for end in ends:
        if not (end.revision.moved_to or end.revision.moved_from):
            groups[key(end)].append(end)
    return groups


def _disappearances(track: Track) -> Iterator[_End]:
    for before, revision in _steps(track):
        if before is not None and revision.deleted and not before.deleted and before.proven:
            yield from _end(track, revision, before)


def _appearances(track: Track) -> Iterator[_End]:
    for before, revision in _steps(track):
        was_absent = revision.appeared or revision.existed is False or (before is not None and before.deleted)
        if was_absent and not revision.deleted and (before is None or before.deleted):
            yield from _end(track, revision, revision)


def _end(track: Track, revision: Revision, held: Revision) -> Iterator[_End]:
    if revision.proven and revision.message_id and revision.tool != "revert" and held.whole is not None:
        yield _End(track.path, revision, held.whole)


def _steps(track: Track) -> Iterator[tuple[Revision | None, Revision]]:
    """Each revision that is not a mere doubt, with the one before it; none whose past another step put in doubt."""
    before: Revision | None = None
    doubts: set[str] = set()
    for revision in track.revisions:
        if revision.operation in DOUBTS:
            doubts.add(revision.message_id)
            continue
        if doubts <= {revision.message_id}:
            yield before, revision
        before, doubts = revision, set()
