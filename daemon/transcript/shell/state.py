"""What a shell carries from one command to the next, and the effects that its commands had so far.

`Place` is the working directory, as far as it is known; `State` adds variables, options and our doubts; an `Execution`
is one script while it is read.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from daemon.model import Launch, Operation
from daemon.transcript.shell.names import SYSTEM
from daemon.transcript.shell.parse import Script
from daemon.transcript.shell.words import Field, Scope
from daemon.transcript.tool_calls import absolute

_OF_DASH = re.compile(r": \d+: ")
"""How dash reports an error: the script's name, the line, what is wrong."""
_MOST_PLACES = 8


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
    return SYSTEM.match(path) is not None


@dataclass(frozen=True, slots=True)
class Place:
    """The working directory: one folder, or several that it may be (`known` is False).

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
        paths = [absolute(text, folder) for folder in folders]
        return [path for path in paths if path is not None and path != "/" and not is_system(path)]

    def or_in(self, other: Place) -> Place:
        """Either this or the other."""
        if self == other:
            return self
        is_one = (self.known or self.is_one_of_them) and (other.known or other.is_one_of_them)
        return Place(tuple(dict.fromkeys((*other.folders, *self.folders))), known=False, is_one_of_them=is_one)

    def entered(self, folder: Field) -> Place | None:
        """Where ``cd folder`` may have led from here, and here, if it failed; None if that is not known."""
        if not (folder.exact and self.folders and (self.known or self.is_one_of_them)):
            return None
        paths = [path for here in self.folders if (path := absolute(folder.text, here)) is not None]
        whole = tuple(dict.fromkeys((*self.folders, *paths)))
        return self if whole == self.folders else Place(whole, known=False, is_one_of_them=len(whole) <= _MOST_PLACES)


def inside(folder: str, path: str) -> str:
    """The name that `path` gets when it goes into `folder`."""
    return posixpath.join(folder, posixpath.basename(path))


def overlap(first: str, second: str) -> bool:
    """Whether one path is the other or lies beneath it."""
    return first == second or first.startswith(f"{second}/") or second.startswith(f"{first}/")


@dataclass(slots=True)
class State:
    """The folder, variables and options of a shell between two commands.

    `doubt`: from here on nothing is certain. `linked`: paths that may be two names of one file. `made`: folders that
    this script made itself. `is_zsh`: the shell may be zsh, whose echo reads backslashes. `visited`: earlier folders,
    to which a ``cd`` with an unknown target may have gone back. `given`: the arguments of a script, as in Scope.
    `is_posix`: the shell may be any that is called ``sh``.
    """

    place: Place
    home: str | None
    variables: dict[str, str] = field(default_factory=dict)
    strict: bool = False
    doubt: bool = False
    linked: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()
    is_zsh: bool = False
    visited: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict)
    is_posix: bool = False

    @property
    def scope(self) -> Scope:
        """What words may refer to."""
        return Scope(self.home, self.place.folder, self.variables, self.given)

    def copy(self) -> State:
        """A state of its own with the same values."""
        return State(
            self.place, self.home, dict(self.variables), self.strict, self.doubt, self.linked, self.made, self.is_zsh,
            self.visited, self.given, self.is_posix,
        )  # fmt: skip

    def restore(self, before: State) -> None:
        """Back to what it was before a subshell; what was done to files stays done."""
        self.place, self.variables, self.given = before.place, dict(before.variables), before.given
        self.strict, self.doubt, self.home = before.strict, before.doubt, before.home

    def merge(self, before: State) -> None:
        """After something that may or may not have run: only what both ways agree on is known."""
        self.place = self.place.or_in(before.place)
        self.variables = {k: v for k, v in self.variables.items() if before.variables.get(k) == v}
        self.strict = self.strict and before.strict
        self.home = self.home if self.home == before.home else None
        self.made &= before.made
        self.given = self.given if self.given == before.given else {}


class Status(IntEnum):
    """How sure it is that a statement ran and succeeded."""

    MAYBE = 0
    SEEN = 1
    PROVEN = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """What surrounds a statement: hidden errors, whether ``set -e`` counts here, what its input is, a subshell."""

    hidden: bool = False
    exempt: bool = False
    inner: bool = False
    stdin: str | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """What the record shows of a run: `is_whole` says that the text lacks nothing."""

    text: str
    is_whole: bool

    def shows_failure(self, verb: str) -> bool:
        """Whether a command of this name, or the shell itself (an empty name), may have reported an error in it."""
        if not self.is_whole or (not verb and _OF_DASH.search(self.text)):
            return True
        marks = (
            f"{verb.split(maxsplit=1)[0]}: " if verb else "sh: ",
            "sh: ",
            "sh:",
            ": line ",
            "zsh:",
            "(eval)",
            "fatal: " if verb[:3] == "git" else "sh: ",
        )
        return any(mark in self.text for mark in marks)


@dataclass(slots=True)
class Execution(ABC):
    """One script while it is read; `effects` grows in the order in which they took place.

    `late` are those of what runs in the background, which may also have come last. `is_script`: the script stands in a
    file, and programs of which nothing is known are taken to have written anything.
    """

    script: Script
    state: State
    output: Output
    exit_is_zero: bool
    depth: int = 0
    loops: int = 0
    is_script: bool = False
    effects: list[Effect] = field(default_factory=list)
    late: list[Effect] = field(default_factory=list)

    def unclear(self, paths: Iterable[str], program: str | None = None) -> None:
        """These paths may have changed; `program`: by this one, which they were given to."""
        self.effects += [Effect(Operation.UNCLEAR, path, other=program) for path in paths]

    def unclear_anywhere(self) -> None:
        """Anything in the working directory may have changed, by programs that are not known."""
        self.unclear(self.state.place.folders)
        self.effects += [Effect(Operation.RUN, folder) for folder in self.state.place.folders]

    @abstractmethod
    def nested(self, command: str, status: Status, setting: Setting) -> bool:
        """Run a literal command that another shell is given; True where it surely succeeded."""


def start(folder: str, home: str | None) -> State:
    """The state a command begins in."""
    return State(Place((folder,)) if folder else Place((), known=False), home)
