"""Pairs of places that share a history although nothing recorded at the one names the other.

They are symbolic links with their targets, which the trees of snapshots show, and folders whose snapshots are of a work
tree that does not hold them. To replay a path alone, its other names must be known. So the pairs of each folder are
stored (`link:`), and made anew with the end states when something of the folder has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from daemon.archive import Archive
from daemon.files import trees

Pair = tuple[str, str]
"""A name, and the place that it leads to."""

_HOPS = 40
"""Links that are followed in a row, as on Linux."""
_NONE = trees.PathFilter(())


class Links:
    """The pairs that an archive tells of now: those that are stored, but for folders in `outdated`."""

    def __init__(self, archive: Archive, outdated: Iterable[str]) -> None:
        """`outdated`: the paths whose edits have changed since, or all recorded ones."""
        self.before = {folder: _decoded(raw) for folder, raw in archive.files.links().items()}
        folders = set(outdated)
        for folder, pairs in self.before.items():
            if any(place in folders for pair in pairs for place in (pair[0], *trees.above(pair[0]))):
                folders.add(folder)  # what was forgotten is taken out of its trees
        self.now = dict(self.before)
        for folder in folders:
            found = _shown(archive, folder)
            if found or folder in self.before:
                self.now[folder] = found

    def changed(self) -> dict[str, bytes]:
        """What is to be stored; an empty value removes a folder's pairs."""
        return {
            folder: json.dumps(sorted(pairs)).encode() if pairs else b""
            for folder, pairs in self.now.items()
            if pairs != self.before.get(folder)
        }

    def pairs(self) -> set[Pair]:
        """All pairs."""
        return {pair for pairs in self.now.values() for pair in pairs}

    def led_to(self, archive: Archive, path: str) -> set[str]:
        """Places whose histories have what was recorded at or beneath `path`, now or when they were stored."""
        pairs = {pair for pairs in (*self.before.values(), *self.now.values()) for pair in pairs}
        places, waiting = set[str](), [path]
        for _ in range(_HOPS):
            found = {
                target + name[len(link) :]
                for place in waiting
                for link, target in pairs
                for name in ([place] if trees.is_beneath(place, link) else _recorded(archive, link, place))
            }
            waiting = sorted(found - places)
            places |= found
            if not waiting:
                break
        return places


def _recorded(archive: Archive, link: str, folder: str) -> Iterable[str]:
    return archive.files.paths(link) if trees.is_beneath(link, folder) else ()


def _shown(archive: Archive, folder: str) -> set[Pair]:
    """The pairs that the snapshots recorded at `folder` show; each tree is compared with the one before it."""
    pairs = set[Pair]()
    last: dict[str, str] = {}
    for edit in archive.files.snapshots(folder):
        if archive.objects.tree(edit.blob) is None:
            continue
        root = edit.other or folder
        if not trees.is_beneath(folder, root):
            pairs.add((folder, root))
        for path, _, entry in trees.differing(archive.objects, last.get(root, ""), edit.blob, root, _NONE):
            text = archive.objects.blob(entry[1]) if entry is not None and entry[0] == trees.LINK_MODE else None
            target = None if text is None else trees.link_target(path, text)
            if target is not None:
                pairs.add((path, target))
        last[root] = edit.blob
    return pairs


def _decoded(raw: bytes) -> set[Pair]:
    # With escapes, and not by msgspec, for the sake of names that are not UTF-8.
    return {(link, target) for link, target in json.loads(raw)}
