"""Pairs of places that share a history although nothing recorded at the one names the other.

They are symbolic links with their targets, which the trees of snapshots show, and folders whose snapshots are of a work
tree that does not hold them. To replay a path alone, its other names must be known. So the pairs of each folder are
stored (`link:`), and made anew with the end states when something of the folder has changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from daemon.archive import Archive
from daemon.files import trees

Pair = tuple[str, str]
"""A name, and the place that it leads to."""
ByFolder = Mapping[str, frozenset[Pair]]

_MOST_PLACES = 64
"""Places that one path leads to: links that lead beneath themselves, or did in turn, would give ever more."""
_NONE = trees.PathFilter(())


class Links:
    """Pairs, looked up from both sides."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._targets: dict[str, set[str]] = defaultdict(set)
        self._names: dict[str, set[str]] = defaultdict(set)
        self._inner: dict[str, set[str]] = defaultdict(set)
        for name, target in pairs:
            self._targets[name].add(target)
            self._names[target].add(name)
            for place in (target, *trees.above(target), "/"):
                self._inner[place].add(target)

    def led_to(self, path: str) -> set[str]:
        """Where what was recorded at or beneath `path` belongs as well, by any of the pairs."""
        places, waiting = set[str](), [path]
        while waiting and len(places) < _MOST_PLACES:
            place = waiting.pop(0)
            for name in (place, *trees.above(place)):
                found = {target + place[len(name) :] for target in self._targets.get(name, ())} - places
                places |= found
                waiting += sorted(found)
        return places

    def names(self, prefixes: Iterable[str]) -> Iterator[Pair]:
        """Other names of what is at or beneath `prefixes`, each with the name of the pair that leads there."""
        for prefix in prefixes:
            for target in (prefix, *trees.above(prefix), "/"):
                for name in self._names.get(target, ()):
                    yield name + prefix[len(target.rstrip("/")) :], name
            for target in self._inner.get(prefix, ()):
                yield from ((name, name) for name in self._names[target])

    def gathered(self, paths: Iterable[str]) -> set[str]:
        """The targets that `paths` are at or beneath; a path itself where there is none."""
        return {next((place for place in (path, *trees.above(path)) if place in self._names), path) for path in paths}


def stored(archive: Archive) -> dict[str, frozenset[Pair]]:
    """The pairs as of the last end states, by the folder whose snapshots show them."""
    # With escapes, and not by msgspec, for the sake of names that are not UTF-8.
    rows = archive.files.links().items()
    return {folder: frozenset((name, target) for name, target in json.loads(raw)) for folder, raw in rows}


def brought_up_to_date(
    archive: Archive, known: ByFolder, outdated: Iterable[str], pulse: Callable[[], None] = lambda: None
) -> dict[str, frozenset[Pair]]:
    """The pairs after the edits of the paths `outdated` have changed."""
    folders = set(outdated)
    for folder, pairs in known.items():
        if any(trees.is_in(name, folders) for name, _ in pairs):
            folders.add(folder)  # what was forgotten is taken out of its trees
    now = {folder: pairs for folder, pairs in known.items() if folder not in folders}
    for number, folder in enumerate(folders):
        if number % 1000 == 0:
            pulse()
        if found := frozenset(_shown(archive, folder)):
            now[folder] = found
    return now


def changes(before: ByFolder, now: ByFolder) -> dict[str, bytes]:
    """What is to be stored (archive.files.put_links)."""
    return {
        folder: json.dumps(sorted(now[folder])).encode() if folder in now else b""
        for folder in before.keys() | now.keys()
        if before.get(folder) != now.get(folder)
    }


def _shown(archive: Archive, folder: str) -> Iterator[Pair]:
    """The pairs that the snapshots recorded at `folder` show; each tree is compared with the one before it."""
    last: dict[str, str] = {}
    for edit in archive.files.snapshots(folder):
        root = edit.other or folder
        if not trees.is_beneath(folder, root):
            yield folder, root
        if archive.objects.tree(edit.blob) is None:
            continue
        for path, _, entry in trees.differing(archive.objects, last.get(root, ""), edit.blob, root, _NONE):
            text = archive.objects.blob(entry[1]) if entry is not None and entry[0] == trees.LINK_MODE else None
            target = None if text is None else trees.link_target(path, text)
            if target is not None:
                yield path, target
        last[root] = edit.blob
