"""Where a word of a command points, and one effect on what is there."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from daemon.model import Launch, Operation
from daemon.transcript.shapes import absolute
from daemon.transcript.shell.words import Field

_SYSTEM = ("/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command did to one absolute path; the fields are FileEdit's."""

    operation: Operation
    path: str
    content: str | None = None
    other: str | None = None
    into: bool | None = False
    recursive: bool = False
    launch: Launch | None = None


def is_system(path: str) -> bool:
    """Whether a path is no file of anybody's: devices and what the kernel shows."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in _SYSTEM)


@dataclass(frozen=True, slots=True)
class Place:
    """The working directory: one folder, or all that it may be, where that is not known."""

    folders: tuple[str, ...]
    known: bool = True

    @property
    def folder(self) -> str | None:
        """The working directory, where it is known."""
        return self.folders[0] if self.known and self.folders else None

    def exact(self, field: Field) -> str | None:
        """The absolute path that a word surely means."""
        if not field.exact or (self.folder is None and not field.text.startswith("/")):
            return None
        path = absolute(field.text, self.folder or "/")
        return None if path is None or path == "/" else path

    def around(self, field: Field) -> list[str]:
        """What a word may mean: the path itself, or the deepest folder that holds whatever it is."""
        text = field.text if field.exact else field.text.rpartition("/")[0] + "/" if "/" in field.text else "."
        if not field.exact and text == "/":
            return list(self.folders)  # nothing is known but that it is somewhere
        if text.startswith("/") or self.known:
            folders: tuple[str, ...] = self.folders[:1] or ("/",)
        else:
            return list(self.folders)
        found = [absolute(text, folder) for folder in folders]
        return [path for path in found if path is not None and path != "/" and not is_system(path)]


def inside(folder: str, path: str) -> str:
    """The name that `path` gets when it goes into `folder`."""
    return posixpath.join(folder, posixpath.basename(path))


def overlap(one: str, other: str) -> bool:
    """Whether one path is the other or lies beneath it."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
