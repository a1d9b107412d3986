"""What a shell carries from one command to the next: its folder, its variables, its options, and our doubts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from daemon.transcript.shell.places import Place
from daemon.transcript.shell.words import Scope


@dataclass(slots=True)
class State:
    """`doubt`: from here on nothing is certain. `linked`: paths that may be two names of one file. `made`: folders
    that this script made itself. `is_zsh`: the shell may be zsh, whose echo reads backslashes. `visited`: folders it
    was in before, to which a ``cd`` that cannot be told may have gone back. `given`: the arguments of a script, as in
    Scope. `is_posix`: the shell may be any that is called ``sh``.
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
