"""Where a word of a command points, and one effect on what is there."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from daemon.model import Launch, Operation
from daemon.transcript.shell.words import Field
from daemon.transcript.tool_calls import absolute

_MOST_PLACES = 8
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
    existed: bool | None = None


def is_system(path: str) -> bool:
    """Whether a path is no file of anybody's: devices and what the kernel shows."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in _SYSTEM)


@dataclass(frozen=True, slots=True)
class Place:
    """The working directory: one folder, or some that it may be, where that is not known.

    `is_one_of_them`: it cannot be any other.
    """

    folders: tuple[str, ...]
    known: bool = True
    is_one_of_them: bool = False

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
        elif self.is_one_of_them:
            folders = self.folders
        else:
            return list(self.folders)
        found = [absolute(text, folder) for folder in folders]
        return [path for path in found if path is not None and path != "/" and not is_system(path)]

    def or_in(self, other: Place) -> Place:
        """Either this or the other."""
        if self == other:
            return self
        is_one = (self.known or self.is_one_of_them) and (other.known or other.is_one_of_them)
        return Place(tuple(dict.fromkeys((*other.folders, *self.folders))), known=False, is_one_of_them=is_one)

    def entered(self, folder: Field) -> Place | None:
        """Where ``cd folder`` may have led from here, and here, if it failed; None where that cannot be told."""
        if not (folder.exact and self.folders and (self.known or self.is_one_of_them)):
            return None
        found = [path for here in self.folders if (path := absolute(folder.text, here)) is not None]
        whole = tuple(dict.fromkeys((*self.folders, *found)))
        return self if whole == self.folders else Place(whole, known=False, is_one_of_them=len(whole) <= _MOST_PLACES)


def inside(folder: str, path: str) -> str:
    """The name that `path` gets when it goes into `folder`."""
    return posixpath.join(folder, posixpath.basename(path))


def overlap(one: str, other: str) -> bool:
    """Whether one path is the other or lies beneath it."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
