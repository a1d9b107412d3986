"""Moves that no call tells of: in one step a path was gone, and a new one had the very content that it had held.

Whatever the command was, that is a move for whoever looks for the file. Only what is certain is paired, and only where
one path alone can be the other; an empty file says nothing.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from daemon.files.content import Content
from daemon.files.history import DOUBTS, Revision
from daemon.files.replay.track import Track
from daemon.records import blob_id

_EMPTY = blob_id(b"")
_WENT, _CAME = "{} held its content after the same step", "{} held this content before the same step, and was gone then"
"""What the evidence of the two ends of such a move says of the other one."""


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a move: the revision that took a file away, or that begins one, and what the file held."""

    path: str
    revision: Revision
    held: Content

    @property
    def step(self) -> tuple[str, str]:
        return self.revision.message_id, self.held.id

    @property
    def named_step(self) -> tuple[str, str, str]:
        return (*self.step, posixpath.basename(self.path))


def join(tracks: Iterable[Track]) -> None:
    """Mark both ends of each such move among the revisions of `tracks`."""
    gone: list[_End] = []
    new: list[_End] = []
    for track in tracks:
        gone += _gone(track)
        new += _new(track)
    steps = {end.revision.message_id for end in gone} & {end.revision.message_id for end in new}
    gone, new = (
        [end for end in ends if end.revision.message_id in steps and end.held.id != _EMPTY] for ends in (gone, new)
    )
    # A folder that was moved keeps the names of its files, and may hold some of the same content.
    _pair(gone, new, lambda end: end.named_step)
    _pair(gone, new, lambda end: end.step)


def _pair(gone: Sequence[_End], new: Sequence[_End], key: Callable[[_End], tuple[str, ...]]) -> None:
    """Mark the ends that have no other partner under the same key."""
    sources, targets = _by_key(gone, key), _by_key(new, key)
    for one, ends in sources.items():
        others = targets.get(one, [])
        if len(ends) == len(others) == 1:
            (source,), (target,) = ends, others
            source.revision.moved_to, target.revision.moved_from = target.path, source.path
            source.revision.evidence += (_WENT.format(target.path),)
            target.revision.evidence += (_CAME.format(source.path),)


def _by_key(ends: Iterable[_End], key: Callable[[_End], tuple[str, ...]]) -> dict[tuple[str, ...], list[_End]]:
    found: dict[tuple[str, ...], list[_End]] = defaultdict(list)
    for end in ends:
        if not (end.revision.moved_to or end.revision.moved_from):
            found[key(end)].append(end)
    return found


def _gone(track: Track) -> Iterator[_End]:
    for before, revision in _steps(track):
        if before is not None and revision.deleted and not before.deleted and before.proven:
            yield from _end(track, revision, before)


def _new(track: Track) -> Iterator[_End]:
    for before, revision in _steps(track):
        was_absent = revision.appeared or revision.existed is False or (before is not None and before.deleted)
        if was_absent and not revision.deleted and (before is None or before.deleted):
            yield from _end(track, revision, revision)


def _end(track: Track, revision: Revision, held: Revision) -> Iterator[_End]:
    if revision.proven and revision.message_id and revision.tool != "revert" and held.whole is not None:
        yield _End(track.path, revision, held.whole)


def _steps(track: Track) -> Iterator[tuple[Revision | None, Revision]]:
    """Each revision that is more than a doubt, and the one before it, as no other step put it in doubt."""
    before: Revision | None = None
    doubts: set[str] = set()
    for revision in track.revisions:
        if revision.operation in DOUBTS:
            doubts.add(revision.message_id)
            continue
        if doubts <= {revision.message_id}:
            yield before, revision
        before, doubts = revision, set()
