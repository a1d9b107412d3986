"""The state that a shell carries from one command to the next, and the effects of its commands so far.

`Place` is the working directory, if known; `State` adds variables, options and our doubts; an `Execution` is one
script while we read it.
"""

from __future__ import annotations

import posixpath
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
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
    """Whether a path is a device or a file of the kernel, not of a user."""
    return SYSTEM.match(path) is not None


@dataclass(frozen=True, slots=True)
class Place:
    """The working directory: one folder, or several that it may be (`known` is False).

    `is_one_of_them`: it cannot be any other. `elsewhere`: further folders that a word may mean whose beginning is
    unknown: the one that the session works in, and those that the shell was in before.
    """

    folders: tuple[str, ...]
    known: bool = True
    is_one_of_them: bool = False
    elsewhere: tuple[str, ...] = ()

    def is_within(self, folder: str) -> bool:
        """Whether the working directory may be this folder or lie beneath it."""
        return any(f"{each}/".startswith(f"{folder}/") for each in self.folders)

    @property
    def reachable(self) -> list[str]:
        """The folders beneath which a path lies of which nothing is known."""
        return list(dict.fromkeys((*self.folders, *self.elsewhere)))

    @property
    def folder(self) -> str | None:
        """The working directory, or None if unknown."""
        return self.folders[0] if self.known and self.folders else None

    def outermost(self) -> tuple[str, ...]:
        """`reachable` without folders that lie in another one: the latest few, and the first."""
        places = self.reachable
        outer = [p for p in places if not any(p != q and p.startswith(f"{q}/") for q in places)]
        return tuple(outer if len(outer) <= _MOST_PLACES else [*outer[: _MOST_PLACES - 1], outer[-1]])

    def exact(self, field: Field) -> str | None:
        """The absolute path that a word surely means."""
        if not field.exact or (self.folder is None and not field.text.startswith("/")):
            return None
        path = absolute(field.text, self.folder or "/")
        return None if path is None or path == "/" else path

    def around(self, field: Field) -> list[str]:
        """The paths that a word may mean: the path itself, or the deepest folder that must contain it."""
        text = field.text if field.exact else field.text.rpartition("/")[0] + "/" if "/" in field.text else "."
        if not field.exact and (not field.text or text == "/"):
            return self.reachable
        if text.startswith("/") or self.known:
            folders: tuple[str, ...] = self.folders[:1] or ("/",)
        elif self.is_one_of_them:
            folders = self.folders
        else:
            return self.reachable
        paths = [absolute(text, folder) for folder in folders]
        return [path for path in paths if path is not None and path != "/" and not is_system(path)]

    def or_in(self, alternative: Place) -> Place:
        """Either this or the other."""
        if self == alternative:
            return self
        is_one = (self.known or self.is_one_of_them) and (alternative.known or alternative.is_one_of_them)
        return Place(
            tuple(dict.fromkeys((*alternative.folders, *self.folders))), known=False, is_one_of_them=is_one,
            elsewhere=tuple(dict.fromkeys((*alternative.elsewhere, *self.elsewhere))),
        )  # fmt: skip

    def entered(self, folder: Field) -> Place | None:
        """The place after ``cd folder``, which may have failed; None if that is unknown."""
        if not (folder.exact and self.folders and (self.known or self.is_one_of_them)):
            return None
        paths = [path for current in self.folders if (path := absolute(folder.text, current)) is not None]
        whole = tuple(dict.fromkeys((*self.folders, *paths)))
        is_one = len(whole) <= _MOST_PLACES
        return self if whole == self.folders else replace(self, folders=whole, known=False, is_one_of_them=is_one)


def inside(folder: str, path: str) -> str:
    """The name that `path` gets when it goes into `folder`."""
    return posixpath.join(folder, posixpath.basename(path))


def overlap(first: str, second: str) -> bool:
    """Whether one path is the other or lies beneath it."""
    return first == second or first.startswith(f"{second}/") or second.startswith(f"{first}/")


@dataclass(slots=True)
class State:
    """The folder, variables and options of a shell between two commands.

    `doubt`: from here on nothing is certain. `linked`: paths that may be two names of one file. `new_folders`: folders
    that this script created. `is_zsh`: the shell may be zsh, whose echo reads backslashes. `parameters`: the arguments
    of a script, as in Scope. `is_posix`: the shell may be any that is called ``sh``.
    """

    place: Place
    home: str | None
    variables: dict[str, Field] = field(default_factory=dict)
    strict: bool = False
    doubt: bool = False
    linked: tuple[str, ...] = ()
    new_folders: frozenset[str] = frozenset()
    is_zsh: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    is_posix: bool = False

    @property
    def scope(self) -> Scope:
        """What words may refer to."""
        return Scope(self.home, self.place.folder, self.variables, self.parameters)

    def copy(self) -> State:
        """A state of its own with the same values."""
        return State(
            self.place, self.home, dict(self.variables), self.strict, self.doubt, self.linked, self.new_folders,
            self.is_zsh, self.parameters, self.is_posix,
        )  # fmt: skip

    def restore(self, before: State) -> None:
        """Go back to the state before a subshell; its effects on files remain."""
        self.place, self.variables, self.parameters = before.place, dict(before.variables), before.parameters
        self.strict, self.doubt, self.home = before.strict, before.doubt, before.home

    def merge(self, before: State) -> None:
        """After a command that may or may not have run, keep only what is the same either way."""
        self.place = self.place.or_in(before.place)
        self.variables = {k: v for k, v in self.variables.items() if before.variables.get(k) == v}
        self.strict = self.strict and before.strict
        self.home = self.home if self.home == before.home else None
        self.new_folders &= before.new_folders
        self.parameters = self.parameters if self.parameters == before.parameters else {}


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
    """The recorded output of a run; `is_whole`: nothing of it is missing."""

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

    `late` are effects of background commands, which may also have come last. `is_in_rounds`: within a loop that is read
    once for each of its words. `is_script`: the script is in a file, and we assume that unknown programs may have
    written anything.
    """

    script: Script
    state: State
    output: Output
    exit_is_zero: bool
    depth: int = 0
    loops: int = 0
    is_in_rounds: bool = False
    is_script: bool = False
    effects: list[Effect] = field(default_factory=list)
    late: list[Effect] = field(default_factory=list)

    def unclear(self, paths: Iterable[str], program: str | None = None) -> None:
        """Record that these paths may have changed; `program`: by this one, of which they are arguments."""
        self.effects += [Effect(Operation.UNCLEAR, path, other=program) for path in paths]

    def unclear_anywhere(self) -> None:
        """Record that commands of which nothing is known may have run."""
        self.unclear(self.state.place.reachable)
        self.effects += [Effect(Operation.RUN, folder) for folder in self.state.place.folders]

    @abstractmethod
    def nested(self, command: str, status: Status, setting: Setting) -> bool:
        """Run a literal command in another shell; True if it surely succeeded."""


def start(folder: str, home: str | None, session: str = "") -> State:
    """The state a command begins in; `session`: the folder that its session works in."""
    if not folder:
        return State(Place((), known=False), home)
    is_inside = session not in ("", "/", folder) and f"{folder}/".startswith(f"{session}/")
    return State(Place((folder,), elsewhere=(session,) if is_inside else ()), home)
