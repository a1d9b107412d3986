"""All paths of a replay: their tracks, the folders they lie in, and the work trees that snapshots were taken of."""

from __future__ import annotations

from collections.abc import Iterable

from daemon.files import trees
from daemon.files.replay import programs
from daemon.files.replay.folders import Folders
from daemon.files.replay.track import Track

_MOST_WATCHED = 64
"""Folders in which programs ran, of which what has changed since is kept."""


class Tracks:
    """The running state of everything; `number` counts events."""

    def __init__(self) -> None:
        self.folders = Folders()
        self.roots: dict[str, trees.Root] = {}
        self.number = 0
        self._tracks: dict[str, Track] = {}
        self._by_stem: dict[str, list[Track]] = {}
        self._watched: dict[str, dict[str, Track]] = {}

    def of(self, path: str, *, definite: bool = False) -> Track:
        """The track of a path, made where there is none, and marked as having had an event."""
        path = self.folders.real(path)
        track = self._tracks.get(path)
        if track is None:
            track = self._tracks[path] = Track(path)
            self._by_stem.setdefault(programs.stem(path), []).append(track)
            self.folders.add(path)
        for folder, changed in self._watched.items():
            if trees.is_beneath(path, folder):
                changed[path] = track
        for root in self.roots.values():
            if trees.is_beneath(path, root.path):
                root.touched[path] = self.number
        if definite:
            track.definite = self.number
        return track

    def known(self, path: str) -> Track | None:
        """The track of a path, if anything was recorded of it."""
        return self._tracks.get(self.folders.real(path))

    def beneath(self, folder: str) -> list[Track]:
        """Tracks in a folder, in order, without one at the folder's own path."""
        names = self.folders.files(self.folders.real(folder))
        return [self._tracks[path] for path in names if path in self._tracks]

    def called(self, name: str) -> list[Track]:
        """Tracks of files with this name, whatever their suffix."""
        return self._by_stem.get(name, [])

    def changed_beneath(self, folder: str) -> list[Track]:
        """Tracks beneath a folder that had an event since this was last asked of it, in order.

        Who asks doubts them all: one that had no event since is in doubt already.
        """
        changed = self._watched.get(folder)
        if changed is None and len(self._watched) >= _MOST_WATCHED:
            return self.beneath(folder)
        self._watched[folder] = {}
        found = self.beneath(folder) if changed is None else list(changed.values())
        return sorted(found, key=lambda track: track.path)

    def is_folder(self, path: str) -> bool:
        """Whether the path is known to be a folder now."""
        path = self.folders.real(path)
        return self.folders.is_made(path) or any(track.exists for track in self.beneath(path))

    def paths(self) -> list[str]:
        """Every path with a history, sorted."""
        return sorted(path for path, track in self._tracks.items() if track.revisions)

    def all(self) -> Iterable[Track]:
        """Every track."""
        return self._tracks.values()

    def add_root(self, place: str) -> trees.Root:
        """A work tree, whose paths have all had an event for all we know."""
        touched = {path: self.number for path in self._tracks if trees.is_beneath(path, place)}
        root = self.roots[place] = trees.Root(place, touched=touched)
        return root
