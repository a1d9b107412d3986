"""Finds what was made of forgotten records: values stored of targets, and results of request files.

A value is of them if it names one of their ids, or if its target concerns a path that they touched. Then everything
that was answered about the target goes, because an answer may quote what it does not name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from daemon import records
from daemon.archive import Archive

_WORD = re.compile(rb"[\w-]+")
_RESULT = ".result.json"


class Mentions:
    """Looks for these ids."""

    def __init__(self, ids: Collection[str]) -> None:
        raw = [name.encode("utf-8", "replace") for name in ids if name]
        self._words = frozenset(name for name in raw if _WORD.fullmatch(name))
        self._others = [name for name in raw if name not in self._words]

    def are_in(self, raw: bytes) -> bool:
        """Whether a text names one of them."""
        return any(word in self._words for word in _WORD.findall(raw)) or any(name in raw for name in self._others)


def targets(archive: Archive, mentions: Mentions, places: Collection[str]) -> list[str]:
    """The targets that concern one of these paths, or of which a stored value names one of the ids."""
    return [
        target
        for target in archive.targets()
        if concerns(places, target) or any(mentions.are_in(raw) for raw in _values(archive, target))
    ]


def concerns(places: Collection[str], target: str) -> bool:
    """Whether one of these paths lies beneath the target, or the target beneath it."""
    base = target.rstrip("/") + "/"
    return any(f"{place}/".startswith(base) or base.startswith(place.rstrip("/") + "/") for place in places if place)


def results(directory: Path, mentions: Mentions, affected: Collection[str]) -> list[Path]:
    """The results of request files that name the records, or a target that was made of them."""
    names = [target.encode() for target in affected]
    found = []
    for folder in ("done", "failed"):
        try:
            files = sorted((directory / folder).iterdir())
        except FileNotFoundError:
            continue
        for file in files:
            if file.name.endswith(_RESULT) and file.is_file() and not file.is_symlink():
                raw = file.read_bytes()
                if mentions.are_in(raw) or any(name in raw for name in names):
                    found.append(file)
    return found


def _values(archive: Archive, target: str) -> Iterator[bytes]:
    for name in archive.target_names(target):
        yield records.dumps(archive.target_get(target, name))
