"""Which recorded edits touched a path, or anything beneath it: the one rule of recall and of exports.

To touch is to change, to read, or to do what may have changed it (a call that was cut off or refused). What was only
seen of a file's state, a snapshot or a program's run is no touch. A path's former names count: those it was moved from,
until the move, and those that the user has told (`reconstitute alias`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from daemon.archive.files import FileRecords
from daemon.model import FileEdit, Operation

CHANGES = frozenset(
    {
        Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH, Operation.DELETE, Operation.MOVE,
        Operation.COPY, Operation.TOUCH,
    }
)  # fmt: skip
"""What alters a file; everything else only shows one, or may have altered something."""
READS = frozenset({Operation.READ, Operation.READ_RANGE})
MAYBE = frozenset({Operation.UNCLEAR, Operation.REFUSED})

MOST_NAMES = 32
"""Former names of a path up to which recorded moves are followed."""
_MOST_ALIASES = 1000
"""Aliases that lead in a circle name ever longer paths."""
_PAIRS = frozenset({Operation.MOVE, Operation.COPY})
_TOUCHES = CHANGES | READS | MAYBE
_FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Name:
    """A path that is `now` by today's name; what happened to `old` after `until` (epoch ms) was to something else."""

    old: str
    now: str
    until: int = _FOREVER


def names(files: FileRecords, path: str) -> list[Name]:
    """The absolute path; what it, or a folder above it, was called before; the folders that became a part of it."""
    found = [Name(path, path)]
    aliases = sorted(files.aliases().items())
    for name in found:  # grows: what was called otherwise may have been called otherwise before
        if len(found) < _MOST_ALIASES:
            _add(found, _told(aliases, name))
        if len(found) < MOST_NAMES and _is_within(path, name.now):
            _add(found, _moved_from(files, name))
    return found


def touches(files: FileRecords, known: Iterable[Name]) -> Iterator[tuple[FileEdit, str]]:
    """Each edit that touched one of these names or what is beneath it, with the path it is about, by today's name.

    A move or copy within the path comes once for either end.
    """
    for name in known:
        root, now = name.old.rstrip("/"), name.now.rstrip("/")
        for edit in chain(files.edits(name.old), files.beneath(name.old)):
            if edit.operation not in _TOUCHES or not edit.session_id or edit.time > name.until:
                continue
            for end in (edit.path, edit.other) if edit.operation in _PAIRS else (edit.path,):
                if end and _is_within(end, name.old):
                    yield edit, now + end[len(root) :] or "/"


def _add(found: list[Name], more: Iterable[Name]) -> None:
    known = {name.old for name in found}
    for name in more:
        if name.old not in known:
            known.add(name.old)
            found.append(name)


def _told(aliases: Iterable[tuple[str, str]], name: Name) -> Iterator[Name]:
    for old, new in aliases:
        if _is_within(name.old, new):
            yield Name(_normal(old + name.old[len(new.rstrip("/")) :]), name.now, name.until)
        elif _is_within(new, name.old):
            yield Name(old, _normal(name.now + new[len(name.old.rstrip("/")) :]), name.until)


def _moved_from(files: FileRecords, name: Name) -> Iterator[Name]:
    """What became `name` by a recorded move of it or of a folder above it."""
    folder = name.old
    while folder != "/":
        for edit in files.moves(folder):
            if not edit.other or edit.time > name.until:
                continue
            goal = posixpath.join(edit.other, posixpath.basename(edit.path)) if edit.into else edit.other
            if goal != edit.path and _is_within(name.old, goal):
                yield Name(edit.path + name.old[len(goal.rstrip("/")) :], name.now, edit.time)
        folder = posixpath.dirname(folder)


def _is_within(path: str, top: str) -> bool:
    inner = _normal(path)
    return inner == top or inner.startswith(top.rstrip("/") + "/")


def _normal(path: str) -> str:
    return "/" + posixpath.normpath(path).lstrip("/") if path.startswith("/") else path
