"""One level of a folder's recorded files: the files in it, and for each folder in it what is beneath. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from daemon.control.file_answers import RecordedFile

_EXACT = frozenset({"verified", "proven"})
_ABSENT = frozenset({"missing"})


@dataclass(slots=True)
class Entry:
    """A file, or a folder with the counts of all files beneath it.

    `missing` of them are not on the disk; of these `exact` come back byte by byte, and `stale` as last known.
    """

    name: str
    path: str
    file: RecordedFile | None = None
    files: int = 0
    deleted: int = 0
    missing: int = 0
    differing: int = 0
    exact: int = 0
    stale: int = 0


@dataclass(slots=True)
class Level:
    """The entries of one folder, folders first, and their sum."""

    total: Entry
    entries: list[Entry] = field(default_factory=list)


def level(folder: str, files: Iterable[RecordedFile]) -> Level:
    """The level of `folder`, an absolute path, from all recorded files at or beneath it."""
    base = folder.rstrip("/") + "/"
    result = Level(Entry(folder, folder))
    folders: dict[str, Entry] = {}
    own = []
    for file in files:
        relative = file.path[len(base) :] if file.path.startswith(base) else ""
        name, slash, _ = relative.partition("/")
        if slash:
            entry = folders.setdefault(name, Entry(name, base + name))
        else:
            entry = Entry(name or file.path.rsplit("/", 1)[-1], file.path, file)
            own.append(entry)
        _count(entry, file)
        _count(result.total, file)
    result.entries = [*sorted(folders.values(), key=_name), *sorted(own, key=_name)]
    return result


def _name(entry: Entry) -> str:
    return entry.name


def _count(entry: Entry, file: RecordedFile) -> None:
    if file.deleted:
        entry.deleted += 1
        return
    entry.files += 1
    entry.differing += file.disk == "differs"
    if file.disk in _ABSENT:
        entry.missing += 1
        entry.exact += file.grade in _EXACT
        entry.stale += file.grade == "stale" and file.sha256 is not None
