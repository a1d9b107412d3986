"""The folders of the replayed past: what is known to lie in them, which were made, and which names are links."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

_MOST_STEPS = 40
"""Links in a row that are followed, as Linux does."""


class Folders:
    """Names of known files by folder; links to folders lead to where they point."""

    def __init__(self) -> None:
        self._inner: dict[str, dict[str, None]] = {}
        self._made: set[str] = set()
        self._links: dict[str, str] = {}
        self._since: dict[str, int] = {}
        self.ever_linked: set[tuple[str, str]] = set()

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
        self._made.add(folder)

    def unmake(self, folder: str) -> None:
        """It is gone, with the folders in it."""
        self.unlink(folder)
        self._made = {made for made in self._made if made != folder and not made.startswith(folder + "/")}

    def is_made(self, folder: str) -> bool:
        """Whether a command made it, and nothing took it away since."""
        return folder in self._made

    def link(self, path: str, target: bytes, time: int) -> None:
        """The name is a symbolic link to `target`, and was seen to be one at `time` (epoch ms)."""
        text = target.decode("utf-8", "replace")
        if text and "\0" not in text:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            if self._links.get(path) != place:
                self._since[path] = time
            self._links[path] = place
            self.ever_linked.add((path, place))

    def is_link(self, path: str) -> bool:
        """Whether the name itself is a link now."""
        return path in self._links

    def unlink(self, path: str) -> None:
        """The link is gone, or something else stands there; what it led to is untouched."""
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
        return posixpath.join(self.real(folder), name)

    def real(self, path: str) -> str:
        """`path` with the links that are known in its folders followed; the path itself where it is a link, too."""
        if not self._links:
            return path
        for _ in range(_MOST_STEPS):
            for link, target in self._links.items():
                if path == link or path.startswith(link + "/"):
                    path = target + path[len(link) :]
                    break
            else:
                return path
        return path
