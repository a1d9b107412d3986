"""Snapshot trees as observations: the paths that a new tree covers, and their entries.

A tree is compared with the one before it that covered the same folder, subtree by subtree, so that a snapshot costs as
much as has changed. Beside what differs, only paths with an event since that tree are looked at.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Entry: TypeAlias = tuple[int, str]
"""Mode and git id of one name in a tree."""

FOLDER_MODE, LINK_MODE, MODULE_MODE, UNKNOWN = 0o040000, 0o120000, 0o160000, 0
"""UNKNOWN is the entry of a tree that is not archived, so that its content is unknown."""


class Objects(Protocol):
    """Where archived git objects are read from (archive.objects)."""

    def has(self, object_id: str) -> bool: ...
    def blob(self, object_id: str) -> bytes | None: ...
    def tree(self, object_id: str) -> Mapping[str, Entry] | None: ...
    def find(self, tree_id: str, path: str) -> Entry | None: ...


@dataclass(slots=True)
class Covered:
    """The last tree that was taken with `scope` as its folder, and the number of that event."""

    scope: str
    tree: str
    number: int


@dataclass(slots=True)
class Root:
    """One work tree: its last trees by scope, and its paths with an event since those trees."""

    path: str
    covered: dict[str, Covered] = field(default_factory=dict)
    touched: dict[str, int] = field(default_factory=dict)

    def before(self, path: str) -> Covered | None:
        """The newest tree that covered `path`."""
        covering = [covered for covered in self.covered.values() if is_beneath(path, covered.scope)]
        return max(covering, key=lambda covered: covered.number, default=None)


def is_beneath(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or in it; both absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def is_in(path: str, places: Container[str]) -> bool:
    """Whether `path` is one of these places, or beneath one."""
    return any(place in places for place in (path, *above(path), "/"))


def above(path: str) -> Iterator[str]:
    """The folders above an absolute path, the nearest first, without the root."""
    folder = posixpath.dirname(path.rstrip("/"))
    while folder.strip("/"):
        yield folder
        folder = posixpath.dirname(folder)


def link_target(link: str, text: bytes) -> str | None:
    """The absolute path that a symbolic link at the absolute path `link` leads to by its `text`; None if invalid."""
    name = text.decode("utf-8", "replace")
    if not name or "\0" in name:
        return None
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(link), name))
    return f"/{joined.lstrip('/')}"  # two leading slashes stay otherwise


def differing(
    objects: Objects, old: str, new: str, base: str, path_filter: PathFilter
) -> Iterator[tuple[str, Entry | None, Entry | None]]:
    """Files beneath `base` whose entries differ between two trees, either of which may be empty: (path, old, new).

    A folder of the new tree whose own tree is not archived comes as (its path, None, (UNKNOWN, id of that tree)).
    """
    stack = [(base, old, new)]
    while stack:
        folder, old_tree, new_tree = stack.pop()
        if old_tree == new_tree:
            continue
        before = objects.tree(old_tree) if old_tree else {}
        after = objects.tree(new_tree) if new_tree else {}
        if after is None:
            if path_filter.may_hold(folder):
                yield folder, None, (UNKNOWN, new_tree)
            continue
        before = before or {}
        for name in sorted({*before, *after}):
            first, second = before.get(name), after.get(name)
            if first == second:
                continue
            path = f"{folder.rstrip('/')}/{name}"
            if _folder(first) or _folder(second):
                stack.append((path, _folder(first), _folder(second)))
            files = (None if _folder(first) else first), (None if _folder(second) else second)
            # A link matters wherever it is: a wanted path may have been written to through it.
            is_link = any(entry is not None and entry[0] == LINK_MODE for entry in files)
            if (files[0] or files[1]) and (is_link or path_filter(path)):
                yield path, *files


def _folder(entry: Entry | None) -> str:
    """The tree's id where the entry is a folder, else empty."""
    return entry[1] if entry is not None and entry[0] == FOLDER_MODE else ""


class PathFilter:
    """Selects the paths of a replay: those beneath any of these prefixes, and the folders above, which may be files."""

    def __init__(self, prefixes: tuple[str, ...] = ("/",)) -> None:
        self._prefixes = frozenset(prefixes)
        self._above = frozenset(folder for prefix in prefixes for folder in above(prefix))
        self._all = "/" in prefixes

    def __call__(self, path: str) -> bool:
        return self._all or path in self._above or is_in(path, self._prefixes)

    def may_hold(self, folder: str) -> bool:
        """Whether a selected path may lie in `folder`."""
        return self._all or folder in self._above or is_in(folder, self._prefixes)
