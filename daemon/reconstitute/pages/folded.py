"""The files that a session changed, in few entries: where there are many, those of one folder as one.

Guarantees: what was deleted, moved or taken back always stands by itself, and before what is cut off. Pure.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from daemon.reconstitute.facts.values import FileChange

_LEAST = 3
"""Files of a folder that are told as one entry."""
_TOLD = frozenset({"deleted", "moved"})


@dataclass(frozen=True, slots=True)
class Folder:
    """Files of one folder, by its absolute path, without those in folders beneath it."""

    path: str
    count: int


def folded(changes: Sequence[FileChange], target: str, most: int) -> list[FileChange | Folder]:
    """The changes in their order, then folders, as many as need be for `most` entries; none of the target itself."""
    plain = [one for one in changes if one.what not in _TOLD and not one.undone]
    often = Counter(posixpath.dirname(one.path) for one in plain)
    chosen: list[Folder] = []
    length = len(changes)
    for path, count in sorted(often.items(), key=lambda pair: (-pair[1], pair[0])):
        if length > most and count >= _LEAST and path != target:
            chosen.append(Folder(path, count))
            length -= count - 1
    paths = {one.path for one in chosen}
    told = [one for one in changes if one not in plain or posixpath.dirname(one.path) not in paths]
    if length > most:
        told.sort(key=lambda one: one in plain)
    return [*told, *chosen]


def count(entries: Sequence[FileChange | Folder]) -> int:
    """How many files the entries stand for."""
    return sum(one.count if isinstance(one, Folder) else 1 for one in entries)
