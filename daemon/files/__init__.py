"""What became of each file, by the archive: histories, and the kept end state of every path.

Histories are computed from the archive when they are asked for; the end states (`rows`) are kept and brought up to date
for what has changed since.

What stands on the disk now at a recovered file's path is compared with what was recovered. That only ever reads:
regular files, at most as many bytes as there are to compare, never through a link at the last step. What cannot be read
is said to be unreadable, never taken for missing.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from daemon.archive import Archive
from daemon.files.end_states import EndStates, Row, alias_hints
from daemon.files.events import Loader
from daemon.files.events.formatters import FormatterSettings
from daemon.files.history import FileHistory, Grade, Revision
from daemon.files.replay import World, replay
from daemon.files.trees import is_beneath
from daemon.filesystem import regular_file
from daemon.model import FileEdit

__all__ = ["FileHistory", "Files", "Folder", "Grade", "Revision", "Row"]


@dataclass(frozen=True, slots=True)
class Folder:
    """What is recorded beneath a path: the history of each file, sorted by path, and the programs that ran there.

    A program (`path` is the folder it ran in, `note` how it was called) may have written files that no record names:
    those that git ignores, or all of them without git. They are in no list.
    """

    histories: list[FileHistory]
    programs: list[FileEdit]


class Files:
    """File histories out of an open archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._end_states = EndStates(archive, self._world)

    def history(self, path: str, until: int | None = None) -> FileHistory:
        """All revisions of an absolute path up to `until` (epoch ms; None: now), oldest first.

        Empty when nothing was recorded.

        Raises:
            ArchiveCorrupt: a stored edit failed its check.
        """
        world = self._world((path,))
        if world.real(path) != path:
            world = self._world((path, world.real(path)))
        return world.history(path).until(until)

    def histories(self, prefix: str, until: int | None = None) -> list[FileHistory]:
        """The history of each path at or beneath `prefix` that has one, sorted by path."""
        return self.folder(prefix, until).histories

    def folder(self, prefix: str, until: int | None = None) -> Folder:
        """All that is recorded at or beneath `prefix`."""
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
        """The end state of each path at or beneath `prefix`, sorted; brought up to date first."""
        self.refresh()
        return self._end_states.rows(prefix)

    def refresh(self, pulse: Callable[[], None] = lambda: None) -> int:
        """Bring the kept end states up to date; answers how many paths were looked at.

        `pulse` is called now and then and may raise, which leaves everything as it was.
        """
        return self._end_states.refresh(pulse)

    def paths(self, prefix: str = "/") -> list[str]:
        """Every path at or beneath `prefix` of which something is recorded, sorted."""
        return [row.path for row in self.rows(prefix)]

    # -- folders that have another name now ----------------------------------------------------------------------

    def aliases(self) -> dict[str, str]:
        """Old folder -> the folder it has become."""
        return self._archive.files.aliases()

    def alias(self, old: str, new: str) -> None:
        """What was recorded of `old` belongs to the history of `new` from now on."""
        self._set_alias(old, new)

    def remove_alias(self, old: str) -> bool:
        """Take an alias back; whether there was one."""
        if old not in self.aliases():
            return False
        self._set_alias(old, None)
        return True

    def _set_alias(self, old: str, new: str | None) -> None:
        batch = self._archive.batch()
        self._archive.files.set_alias(batch, old, new)
        self._archive.commit(batch)

    def hints(self, prefix: str) -> list[str]:
        """Folders that seem to be what `prefix` was called before, or a clone, and how to join their histories."""
        return alias_hints(self._archive, self._end_states, prefix)

    def _world(self, prefixes: Iterable[str], pulse: Callable[[], None] = lambda: None) -> World:
        wanted = list(prefixes)
        loader, settings = Loader(self._archive), FormatterSettings(self._archive)
        while True:
            events = loader.events(settings.places(loader.events(wanted)))
            pulse()
            world = replay(events, self._archive.objects, loader.prefixes_read, pulse, settings.may_run)
            if settings.learn(world.history):
                world = replay(events, self._archive.objects, loader.prefixes_read, pulse, settings.may_run)
            # What was written through a link to a wanted path is recorded under the link's name.
            more = [
                link
                for link, target in world.links()
                if any(is_beneath(target, prefix) or is_beneath(prefix, target) for prefix in loader.prefixes_read)
                and not any(is_beneath(link, prefix) for prefix in loader.prefixes_read)
            ]
            if not more:
                return world
            wanted = more


class Disk(StrEnum):
    """How the disk compares."""

    IDENTICAL = "identical"
    DIFFERS = "differs"
    MISSING = "missing"
    ABSENT = "absent"  # nothing stands where the file was deleted
    PRESENT = "present"  # something is there, and nothing proven to compare it with
    UNREADABLE = "unreadable"


def compare(path: str, content: bytes | None) -> Disk:
    """Compare the file at an absolute path with `content`; None: nothing is proven of it.

    A link, a directory or a device where the file was counts as differing: what was recovered is not there.
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
    """Compare the file at an absolute path with what is known of it: hash and size, or that it was deleted.

    Where nothing stands, a deleted file is absent and any other is missing. A file of another size is not read.
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
