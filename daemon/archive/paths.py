"""The former names of a path, the recorded edits that touched it, and suggestions if there are none.

An edit touches a path if it changes or reads it, or may have changed it (an interrupted or refused call). A snapshot or
a program's run does not. Former names count: those that a path was moved from, until the move, and those from
`reconstitute alias`.
"""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from daemon.archive import Archive
from daemon.archive.files import FileRecords
from daemon.hints import hint
from daemon.model import FileEdit, Operation

CHANGES = frozenset(
    {
        Operation.WRITE, Operation.APPEND, Operation.EDIT, Operation.PATCH, Operation.DELETE, Operation.MOVE,
        Operation.COPY, Operation.TOUCH,
    }
)  # fmt: skip
"""Operations that change a file; all others only read one, or may have changed something."""
READS = frozenset({Operation.READ, Operation.READ_RANGE})
MAYBE = frozenset({Operation.UNCLEAR, Operation.REFUSED})

MOST_NAMES = 32
"""We follow recorded moves up to so many former names of a path."""
_MOST_ALIASES = 1000
"""A limit, because circular aliases give ever longer paths."""
_PAIRS = frozenset({Operation.MOVE, Operation.COPY})
_TOUCHES = CHANGES | READS | MAYBE
_FOREVER = 1 << 62
_MOST = 5
_ALIKE = 0.75
"""The similarity by difflib at which one name counts as a misspelling of another."""
_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class Name:
    """A path whose current name is `now`; events of `old` after `until` (epoch ms) belong to another file."""

    old: str
    now: str
    until: int = _FOREVER


def names(files: FileRecords, path: str) -> list[Name]:
    """The absolute path; former names of it or of a folder above it; folders that became a part of it."""
    known = [Name(path, path)]
    aliases = sorted(files.aliases().items())
    for name in known:  # the list grows, because a former name may have a former name too
        if len(known) < _MOST_ALIASES:
            _add(known, _aliased(aliases, name))
        if len(known) < MOST_NAMES and _is_within(path, name.now):
            _add(known, _moved_from(files, name))
    return known


def touches(files: FileRecords, known: Iterable[Name]) -> Iterator[tuple[FileEdit, str]]:
    """Each edit that touched one of these names or a path beneath it, with that path by its current name.

    A move or copy within the path is yielded once for each end.
    """
    for name in known:
        root, now = name.old.rstrip("/"), name.now.rstrip("/")
        for edit in chain(files.edits(name.old), files.beneath(name.old)):
            if edit.operation not in _TOUCHES or not edit.session_id or edit.time > name.until:
                continue
            for end in (edit.path, edit.other) if edit.operation in _PAIRS else (edit.path,):
                if end and _is_within(end, name.old):
                    yield edit, now + end[len(root) :] or "/"


def _add(names: list[Name], more: Iterable[Name]) -> None:
    known = {name.old for name in names}
    for name in more:
        if name.old not in known:
            known.add(name.old)
            names.append(name)


def _aliased(aliases: Iterable[tuple[str, str]], name: Name) -> Iterator[Name]:
    for old, new in aliases:
        if _is_within(name.old, new):
            yield Name(_normal(old + name.old[len(new.rstrip("/")) :]), name.now, name.until)
        elif _is_within(new, name.old):
            yield Name(old, _normal(name.now + new[len(name.old.rstrip("/")) :]), name.until)


def _moved_from(files: FileRecords, name: Name) -> Iterator[Name]:
    """The former names of `name`, by recorded moves of it or of a folder above it."""
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


def is_touched(archive: Archive, path: str) -> bool:
    """Whether any session changed or read this absolute path, or something beneath it, under any of its names."""
    return any(True for _ in touches(archive.files, names(archive.files, path)))


def unknown(archive: Archive, path: str) -> str:
    """One sentence: nothing is recorded for this absolute path, and similar recorded paths."""
    if is_touched(archive, path):
        sessions = hint("recall_files", path=path)
        return f"{path}: sessions named it, but nothing of it is known; {sessions} lists them"
    folders = {session.directory for session in archive.sessions() if session.directory.startswith("/")}
    recorded = {*archive.files.paths(), *folders}
    if not recorded:
        return f"{path}: nothing is recorded at all yet; run `index()` where OpenCode was used"
    if any(_is_within(known_path, path) for known_path in recorded):
        return f"{path}: is a folder; no file in it is recorded"
    alike = similar(path, recorded)
    known = f"near it: {', '.join(alike)}" if alike else f"sessions ran in {', '.join(sorted(folders)[:_MOST])}"
    return (
        f"{path}: no session touched it or anything beneath it; {known}; if it had another name then, use: "
        "reconstitute alias OLD NEW"
    )


def similar(path: str, recorded: Iterable[str]) -> list[str]:
    """At most five similar paths from these and their folders, the most likely first.

    A path that ends in the same names is most likely (the same project in another home), then one with a similar last
    name. If there is neither, it is the nearest folder above.

    >>> similar("/root/code/shop", ["/home/ada/code/shop/cart.py", "/home/ada/shop2/x"])
    ['/home/ada/code/shop', '/home/ada/shop2']
    """
    places = {place for known_path in recorded for place in _with_folders(known_path)}
    names_of_path = path.strip("/").split("/")
    names = {place.rpartition("/")[2] for place in places}
    alike = difflib.get_close_matches(names_of_path[-1], names, n=_MOST_NAMES, cutoff=_ALIKE)
    ratios = {name: difflib.SequenceMatcher(None, names_of_path[-1], name).ratio() for name in alike}
    ranked = []
    for place in places:
        parts = place.strip("/").split("/")
        tail, ratio = _shared(names_of_path[::-1], parts[::-1]), ratios.get(parts[-1], 0.0)
        if tail or ratio:
            ranked.append((-tail, -ratio, -_shared(names_of_path, parts), place))
    above = [folder for folder in _with_folders(path) if folder in places and folder.count("/") > 1]
    return [place for *_, place in sorted(ranked)[:_MOST]] or above[:1]


def _with_folders(path: str) -> list[str]:
    places = [path]
    while (above := posixpath.dirname(places[-1])) not in {"", "/", "//", places[-1]}:
        places.append(above)
    return places


def _shared(left_parts: list[str], right_parts: list[str]) -> int:
    """How many of their first names are the same."""
    number = 0
    for first, second in zip(left_parts, right_parts, strict=False):
        if first != second:
            break
        number += 1
    return number
