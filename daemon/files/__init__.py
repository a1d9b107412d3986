"""File histories from the archive, and the stored end state of every path.

Histories are computed on request. The end states (`rows`) are stored, and updated for recent changes.

A recovered file is compared with the file on disk now. That only reads: regular files, at most as many bytes as we must
compare, and no link at the last step. An unreadable file is reported as unreadable, never as missing.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from daemon.archive import Archive
from daemon.files.end_states import EndStates, Row, alias_hints
from daemon.files.events import Loader
from daemon.files.events.formatters import FormatterSettings
from daemon.files.history import FileHistory, Grade, Revision
from daemon.files.links import Links, Pair
from daemon.files.replay import World, replay
from daemon.files.trees import above, is_beneath, is_in
from daemon.filesystem import regular_file
from daemon.model import FileEdit

__all__ = ["FileHistory", "Files", "Folder", "Grade", "Revision", "Row"]


_MOST_ROUNDS = 40
"""Links that are followed in a row, as on Linux; a link to what is beneath it would be followed for ever."""
_MANY_REACHED = 100
"""Paths that are read one by one, which compares each with all others."""


@dataclass(frozen=True, slots=True)
class Folder:
    """All records beneath a path: the history of each file, sorted by path, and the programs that ran there.

    A program (`path` is its folder, `note` its command) may have written files that no record names: those that git
    ignores, or all of them without git. They are in no list.
    """

    histories: list[FileHistory]
    programs: list[FileEdit]


class Files:
    """File histories from an open archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._end_states = EndStates(archive, self._world)

    def history(self, path: str, until: int | None = None) -> FileHistory:
        """All revisions of an absolute path up to `until` (epoch ms; None: now), oldest first.

        Empty when nothing was recorded.

        Raises:
            ArchiveCorrupt: a stored edit failed its check.
        """
        return self._world((path,)).history(path).until(until)

    def histories(self, prefix: str, until: int | None = None) -> list[FileHistory]:
        """All histories at or beneath `prefix`, sorted by path."""
        return self.folder(prefix, until).histories

    def folder(self, prefix: str, until: int | None = None) -> Folder:
        """All records at or beneath `prefix`."""
        world = self._world((prefix,))
        histories = (world.history(path).until(until) for path in world.paths() if is_beneath(path, prefix))
        programs = (
            edit
            for edit in world.programs
            if (until is None or edit.time <= until)
            and (is_beneath(edit.path, prefix) or is_beneath(prefix, edit.path))
        )
        return Folder([history for history in histories if history.revisions], list(programs))

    def rows(self, prefix: str = "/") -> list[Row]:
        """The end state of each path at or beneath `prefix`, sorted, after an update."""
        self.refresh()
        return self._end_states.rows(prefix)

    def refresh(self, pulse: Callable[[], None] = lambda: None) -> int:
        """Update the stored end states; returns the number of paths that were replayed.

        `pulse` is called now and then and may raise, which leaves everything as it was.
        """
        return self._end_states.refresh(pulse)

    def paths(self, prefix: str = "/") -> list[str]:
        """Every recorded path at or beneath `prefix`, sorted."""
        return [row.path for row in self.rows(prefix)]

    # -- renamed folders -----------------------------------------------------------------------------------------

    def aliases(self) -> dict[str, str]:
        """Old folder -> its new name."""
        return self._archive.files.aliases()

    def alias(self, old: str, new: str) -> None:
        """From now on, the records of `old` belong to the history of `new`."""
        self._set_alias(old, new)

    def remove_alias(self, old: str) -> bool:
        """Remove an alias; returns whether there was one."""
        if old not in self.aliases():
            return False
        self._set_alias(old, None)
        return True

    def _set_alias(self, old: str, new: str | None) -> None:
        batch = self._archive.batch()
        self._archive.files.set_alias(batch, old, new)
        self._archive.commit(batch)

    def hints(self, prefix: str) -> list[str]:
        """Folders that seem to be a former name of `prefix`, or a clone, and how to join their histories."""
        return alias_hints(self._archive, self._end_states, prefix)

    def _world(
        self, prefixes: Collection[str], pulse: Callable[[], None] = lambda: None, pairs: Iterable[Pair] | None = None
    ) -> World:
        unread = set(prefixes)
        loader, settings = Loader(self._archive), FormatterSettings(self._archive)
        known = {
            (loader.renamed(name), place)
            for name, target in (self._end_states.pairs() if pairs is None else pairs)
            for place in (target, loader.renamed(target))  # a link's text has the old name, a work tree the new one
        }
        for _ in range(_MOST_ROUNDS):
            events = loader.events(settings.places(loader.events(unread)))
            pulse()
            world = replay(events, self._archive.objects, loader.prefixes_read, pulse, settings.may_run)
            if settings.learn(world.history):
                world = replay(events, self._archive.objects, loader.prefixes_read, pulse, settings.may_run)
            known |= world.links()
            links = Links(known)
            # What was read may be known by other names, and what has another name may not have been read.
            unread = self._unread_names(loader, links)
            reached = {*map(world.real, prefixes), *world.reached()}
            reached = {path for path in reached if not is_in(path, loader.requested)}
            unread |= reached if len(reached) < _MANY_REACHED else links.gathered(reached)
            if not unread:
                break
        return world

    def _unread_names(self, loader: Loader, links: Links) -> set[str]:
        """Other names of what `loader` has read, if something is recorded there, on the way, or in its folder."""
        recorded = self._archive.files
        unread, folders = set[str](), set[str]()
        has_own, has_any = (lru_cache(maxsize=None)(look) for look in (recorded.has_own, recorded.is_recorded))
        for name, link in links.names(loader.requested):
            folder = posixpath.dirname(link)
            if is_in(name, loader.requested):
                continue
            on_the_way = [link, *(place for place in above(name) if is_beneath(place, link))]
            if any(map(has_any, (name, *loader.older_names(name)))) or any(
                has_own(old) and not loader.has_read(place)
                for place in on_the_way
                for old in (place, *loader.older_names(place))
            ):
                unread.add(name)
            elif folder not in folders and not loader.has_read(folder):
                unread.add(name)
                folders.add(folder)
        return unread


class Disk(StrEnum):
    """The result of a comparison with the disk."""

    IDENTICAL = "identical"
    DIFFERS = "differs"
    MISSING = "missing"
    ABSENT = "absent"  # the file was deleted, and nothing is there
    PRESENT = "present"  # something is there, and nothing proven to compare it with
    UNREADABLE = "unreadable"


def compare(path: str, content: bytes | None) -> Disk:
    """Compare the file at an absolute path with `content`; None: no content is proven.

    A link, a directory or a device at the path counts as differing, because the recovered file is not there.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Disk.MISSING
    except (OSError, ValueError):
        return Disk.UNREADABLE
    if content is None:
        return Disk.PRESENT
    if not stat.S_ISREG(info.st_mode) or info.st_size != len(content):
        return Disk.DIFFERS
    try:
        return Disk.IDENTICAL if _read(path, len(content) + 1) == content else Disk.DIFFERS
    except OSError:
        return Disk.UNREADABLE


def _read(path: str, most: int) -> bytes:
    with regular_file.opened(path) as handle:
        return handle.read(most)


def standing(path: str, sha256: str, size: int | None, *, deleted: bool = False) -> Disk:
    """Compare the file at an absolute path with the known hash and size, or with its deletion.

    If nothing is there, a deleted file is absent and any other is missing. A file of another size is not read.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Disk.ABSENT if deleted else Disk.MISSING
    except (OSError, ValueError):
        return Disk.UNREADABLE
    if deleted or not sha256 or size is None:
        return Disk.DIFFERS if deleted else Disk.PRESENT
    if not stat.S_ISREG(info.st_mode) or info.st_size != size:
        return Disk.DIFFERS
    try:
        return Disk.IDENTICAL if _digest(path) == sha256 else Disk.DIFFERS
    except OSError:
        return Disk.UNREADABLE


def _digest(path: str) -> str:
    with regular_file.opened(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
