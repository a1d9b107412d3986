"""The files that a session changed, in few entries: where there are many, those of one folder as one.

Guarantees: what was deleted, moved or taken back always stands by itself, and before what is cut off. Pure.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from daemon.files.trees import is_beneath
from daemon.reconstitute.facts.session_values import FileChange

_LEAST = 3
"""Files of a folder that are told as one entry."""
_TOLD = frozenset({"deleted", "moved", "written"})


@dataclass(frozen=True, slots=True)
class Folder:
    """Files beneath a folder, by its absolute path."""

    path: str
    count: int


def folded(changes: Sequence[FileChange], target: str, most: int) -> tuple[list[FileChange | Folder], int]:
    """At most `most` changes in their order, then as many folders, and how many files are left out of both.

    A folder stands for what lies beneath it; none is the target itself, and half of `most` files stay by themselves.
    """
    plain = [one for one in changes if one.kind not in _TOLD and not one.undone]
    often = Counter(posixpath.dirname(one.path) for one in plain)
    alone = {one.path for one in changes} - {one.path for one in plain}
    chosen: list[Folder] = []
    told = list(changes)
    for path, number in sorted(often.items(), key=lambda pair: (-pair[1], pair[0])):
        if len(told) + len(chosen) <= most or number < _LEAST:
            break
        left = [one for one in told if one.path in alone or not is_beneath(one.path, path)]
        if len(left) >= most // 2 and path != target and len(left) < len(told):
            chosen.append(Folder(path, len(told) - len(left)))
            told = left
    if len(told) > most:
        told.sort(key=lambda one: one.path not in alone)
    more = len(told[most:]) + sum(one.count for one in chosen[most:])
    return [*told[:most], *chosen[:most]], more
