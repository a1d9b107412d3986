"""What is said of a path that nothing is recorded of, and which recorded paths a person may have meant."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Iterable

from daemon.archive import Archive
from daemon.archive.paths import names, touches

_MOST = 5
_ALIKE = 0.75
"""How alike two names have to be, as difflib measures it, for the one to be a misspelling of the other."""

_MOST_NAMES = 50


def is_touched(archive: Archive, path: str) -> bool:
    """Whether any session changed or read this absolute path, or something beneath it, under any of its names."""
    return any(True for _ in touches(archive.files, names(archive.files, path)))


def unknown(archive: Archive, path: str) -> str:
    """One sentence: nothing is recorded of this absolute path, and which recorded ones are near it."""
    if is_touched(archive, path):
        return f"{path}: sessions named it, but nothing of it is known; `reconstitute recall-files` lists them"
    folders = {session.directory for session in archive.sessions() if session.directory.startswith("/")}
    recorded = {*archive.files.paths(), *folders}
    if not recorded:
        return f"{path}: nothing is recorded at all yet; run `reconstitute index` where OpenCode was used"
    near = similar(path, recorded)
    known = f"near it: {', '.join(near)}" if near else f"sessions ran in {', '.join(sorted(folders)[:_MOST])}"
    return (
        f"{path}: no session touched it or anything beneath it; {known}; was it called otherwise then? reconstitute "
        "alias OLD NEW"
    )


def similar(path: str, recorded: Iterable[str]) -> list[str]:
    """At most five of these paths and their folders, the likeliest first.

    What ends in the same names is likeliest (the same project in another home), then what has a similar last name.
    Where there is neither, it is the nearest folder above.

    >>> similar("/root/code/shop", ["/home/ada/code/shop/cart.py", "/home/ada/shop2/x"])
    ['/home/ada/code/shop', '/home/ada/shop2']
    """
    places = {place for one in recorded for place in _with_folders(one)}
    wanted = path.strip("/").split("/")
    names = {place.rpartition("/")[2] for place in places}
    alike = difflib.get_close_matches(wanted[-1], names, n=_MOST_NAMES, cutoff=_ALIKE)
    ratios = {name: difflib.SequenceMatcher(None, wanted[-1], name).ratio() for name in alike}
    ranked = []
    for place in places:
        parts = place.strip("/").split("/")
        tail, ratio = _shared(wanted[::-1], parts[::-1]), ratios.get(parts[-1], 0.0)
        if tail or ratio:
            ranked.append((-tail, -ratio, -_shared(wanted, parts), place))
    above = [folder for folder in _with_folders(path) if folder in places and folder.count("/") > 1]
    return [place for *_, place in sorted(ranked)[:_MOST]] or above[:1]


def _with_folders(path: str) -> list[str]:
    places = [path]
    while (above := posixpath.dirname(places[-1])) not in {"", "/", "//", places[-1]}:
        places.append(above)
    return places


def _shared(one: list[str], other: list[str]) -> int:
    """How many of their first names are the same."""
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        number += 1
    return number
