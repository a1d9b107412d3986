"""All paths of a replay: their tracks, the folders they lie in, and the work trees that snapshots were taken of."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

from daemon.files import trees
from daemon.files.replay.track import Track

_MOST_WATCHED = 64
"""Folders in which programs ran and whose later changes we track."""


_MOST_STEPS = 40
"""Links that we follow in a row, as Linux does."""


class Folders:
    """Names of known files by folder, and symbolic links. `reached` are paths that were asked for by another name."""

    def __init__(self) -> None:
        self._inner: dict[str, dict[str, None]] = {}
        self._created: set[str] = set()
        self._links: dict[str, str] = {}
        self._since: dict[str, int] = {}
        self.ever_linked: set[tuple[str, str]] = set()
        self.reached: set[str] = set()

    def add(self, path: str) -> None:
        """A file is known there."""
        while path != "/":
            folder, name = posixpath.split(path)
            inner = self._inner.setdefault(folder, {})
            if name in inner:
                return
            inner[name] = None
            path = folder

    def files(self, folder: str) -> Iterator[str]:
        """Every known name beneath a folder, at any depth, in order; folders' own names too."""
        waiting = [folder]
        while waiting:
            place = waiting.pop()
            if place != folder:
                yield place
            inner = self._inner.get(place)
            if inner:
                waiting += [posixpath.join(place, name) for name in sorted(inner, reverse=True)]

    def has_inner(self, folder: str) -> bool:
        """Whether anything was ever known beneath it."""
        return bool(self._inner.get(folder))

    def make(self, folder: str) -> None:
        """It is a folder now, and so are those above."""
        self._created.add(folder)

    def unmake(self, folder: str) -> None:
        """The folder and its subfolders are gone."""
        self.unlink(folder)
        self._created = {
            created for created in self._created if created != folder and not created.startswith(folder + "/")
        }

    def is_made(self, folder: str) -> bool:
        """Whether a command created it, and nothing has removed it since."""
        return folder in self._created

    def link(self, path: str, target: bytes, time: int) -> None:
        """The name is a symbolic link to `target`, and was seen to be one at `time` (epoch ms)."""
        place = trees.link_target(path, target)
        if place is not None:
            if self._links.get(path) != place:
                self._since[path] = time
            self._links[path] = place
            self.ever_linked.add((path, place))

    def is_link(self, path: str) -> bool:
        """Whether the name itself is a link now."""
        return path in self._links

    def unlink(self, path: str) -> None:
        """The link is gone or replaced; its target is untouched."""
        self._links.pop(path, None)
        self._since.pop(path, None)

    def move_link(self, path: str, to: str, time: int) -> None:
        """The link has another name."""
        target = self._links.get(path)
        self.unlink(path)
        if target is not None:
            self.link(to, target.encode(), time)

    def linked_since(self, path: str) -> int:
        """Since when the links on the way of `path` are known, epoch ms; 0 where there are none."""
        return max(
            (time for link, time in self._since.items() if path == link or path.startswith(link + "/")), default=0
        )

    def named(self, path: str) -> str:
        """`path` with the links in its folders followed, but not one that it names itself."""
        if not self._links:
            return path
        folder, name = posixpath.split(path)
        return self._noted(path, posixpath.join(self._followed(folder), name))

    def real(self, path: str) -> str:
        """`path` with the links that are known in its folders followed; the path itself where it is a link, too."""
        return self._noted(path, self._followed(path)) if self._links else path

    def _noted(self, path: str, real: str) -> str:
        if real != path:
            self.reached.add(real)
        return real

    def _followed(self, path: str) -> str:
        for _ in range(_MOST_STEPS):
            link = next((place for place in (*reversed(list(trees.above(path))), path) if place in self._links), None)
            if link is None:
                return path
            path = self._links[link] + path[len(link) :]
        return path


class Tracks:
    """The running state of everything; `number` counts events."""

    def __init__(self) -> None:
        self.folders = Folders()
        self.roots: dict[str, trees.Root] = {}
        self.number = 0
        self._doubted: dict[str, int] = {}
        self._doubted_beneath: dict[str, int] = {}
        self._tracks: dict[str, Track] = {}
        self._by_stem: dict[str, list[Track]] = {}
        self._watched: dict[str, dict[str, Track]] = {}

    def of(self, path: str, *, definite: bool = False) -> Track:
        """The track of a path, created if needed, and marked as having an event."""
        path = self.folders.real(path)
        track = self._tracks.get(path)
        if track is None:
            track = self._tracks[path] = Track(path)
            self._by_stem.setdefault(stem(path), []).append(track)
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
        """Tracks beneath a folder that had an event since the last call for this folder, in order.

        The caller puts them all in doubt, so that one without an event since is in doubt already.
        """
        changed = self._watched.get(folder)
        if changed is None and len(self._watched) >= _MOST_WATCHED:
            return self.beneath(folder)
        self._watched[folder] = {}
        tracks = self.beneath(folder) if changed is None else list(changed.values())
        return sorted(tracks, key=lambda track: track.path)

    def doubt(self, place: str) -> None:
        """The present event may have changed more than is known, at `place` and beneath it."""
        self._doubted[place] = self.number
        for folder in trees.above(place):
            self._doubted_beneath[folder] = self.number

    def doubted(self, path: str) -> int:
        """The number of the last such event that concerns `path`: there, beneath it, or in a folder above; 0: none."""
        places = (path, *trees.above(path), "/")
        return max(self._doubted_beneath.get(path, 0), *(self._doubted.get(place, 0) for place in places))

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
        """Add a work tree; each of its paths counts as having had an event."""
        touched = {path: self.number for path in self._tracks if trees.is_beneath(path, place)}
        root = self.roots[place] = trees.Root(place, touched=touched)
        return root


def stem(path: str) -> str:
    """The name by which a program imports or sources a file: without folder and suffix."""
    return posixpath.splitext(posixpath.basename(path))[0]
