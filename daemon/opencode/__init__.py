"""Reads what OpenCode has on disk as Session, Message and Part. Never writes.

A source first lists stamps, which is cheap, and we read a record only if its stamp is new. Stamps are opaque. Equal
stamps mean unchanged; different stamps mean that we must compare the content. All sources are read together and
merged by id; the source with the higher `generation` wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from daemon.model import Json, Message, Session

_T = TypeVar("_T")

JSON_TREE, DATABASE, DATABASE_2 = 1, 2, 3
"""Generations of OpenCode's storage (opencode-formats.md, Versions)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A message as a source lists it: its stamp, and when it or one of its parts last changed (epoch ms).

    `is_event`: not a message but another record of the session, such as a change of the model.
    """

    stamp: str
    changed: int
    is_event: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that could not be read: its place, the reason, its size and the hash of its bytes.

    `part_id` is empty for the record of the message itself. `is_kept`: the whole record was copied to a file named by
    its hash. `waits`: it could not be read or copied now, and is tried again at every look. `is_excluded`: it must not
    be copied.
    """

    place: str
    reason: str
    size: int = 0
    sha256: str = ""
    part_id: str = ""
    is_kept: bool = False
    waits: bool = False
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading one message.

    `message` is None if nothing was usable. `orphan`: only the parts exist, because OpenCode's clean-up after a revert
    removes the message and leaves the parts (opencode-formats.md, Writing). `event` is the record of a unit that is not
    a message: ``{id, sessionID, type, time, data}``, `data` as it was written. `excluded`: why something of the message
    was left out (daemon.exclude); all of it, if there is neither a message nor a problem.
    """

    message: Message | None
    problems: tuple[Problem, ...] = ()
    orphan: bool = False
    event: bytes = b""
    excluded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TodoList:
    """A session's current todo list, in order, each item as recorded; `time`: when it changed (epoch ms)."""

    items: tuple[Json, ...]
    time: int


@dataclass(frozen=True, slots=True)
class RevertMark:
    """A revert of a session, or the undoing of a revert (opencode-formats.md, Reverts).

    At `time` (epoch ms) the session went back to where `message_id` (or its `part_id`, else empty) begins, and the
    files with it, if the `patch` parts from there on name them (opencode-formats.md, Tools 13). `snapshot` is the tree
    just before, and `diff` is `git diff` from that tree to the files after the revert. If no part before the chosen one
    was worth keeping, OpenCode records the prompt of that turn as `message_id` and no part, although the files keep the
    earlier changes: then only `diff` is right. `is_undone`: this revert was undone, and the files are as in `snapshot`
    again. A revert that the next prompt made final has no further mark. Without `is_exact`, `time` is only the latest
    possible time.
    """

    time: int
    message_id: str
    part_id: str
    snapshot: str
    is_undone: bool
    diff: str = ""
    is_exact: bool = True


class Listing(dict[str, _T]):
    """What a source lists, by id.

    `problem`: what is damaged in the place it was read from. `is_whole`: whether it lists everything; if not, nothing
    that it lacks counts as deleted.
    """

    problem = ""
    is_whole = True

    def add(self, problem: str, *, is_whole: bool) -> None:
        """Note a problem; the first is kept."""
        self.problem = self.problem or problem
        self.is_whole = self.is_whole and is_whole


class State(NamedTuple):
    """`files` differs after anything was written into them; `written` is when that was last, in epoch seconds."""

    files: tuple[object, ...]
    written: float


class Source(Protocol):
    """A read-only place messages come from."""

    @property
    def name(self) -> str:
        """``kind:path``, stable across restarts: the cursor is stored under it, and the daemon watches its path."""

    @property
    def kind(self) -> str:
        """For people: what storage this is."""

    @property
    def generation(self) -> int:
        """Of two records with the same id, the one with the higher generation wins."""

    def touched(self) -> Iterable[str] | None:
        """Sessions that may have changed since the last call; None: unknown, check all of them."""

    def hint(self, path: str) -> None:
        """A watch event named this path; the next `touched` includes its session."""

    def state(self) -> State | None:
        """The state of its files; None if only a scan shows whether something was written."""

    def sessions(self) -> Listing[str]:
        """Every session and the stamp of its record.

        Raises:
            SourceMissing: the place is gone or its layout is unknown. Nothing may be concluded from it.
            SourceBusy: locked; later.
        """

    def messages(self, session_id: str) -> Listing[Unit]:
        """Every message of a session.

        Raises:
            BadRecord: they cannot be listed.
        """

    def holds(self, kind: str, ids: Iterable[str]) -> set[str]:
        """Those of these ``session``, ``message`` or ``part`` records that the source has, whatever its listings lack.

        Raises:
            Unreadable: that cannot be known now.
        """

    def read_session(self, session_id: str) -> Session:
        """The session's record; if only its messages exist, a record made from them.

        Raises:
            BadRecord: unreadable, and not because it is being written.
            SourceBusy: it is being written.
        """

    def read_message(self, session_id: str, message_id: str) -> Reading:
        """The message with its parts in creation order.

        Raises:
            SourceBusy: one of its records is being written.
        """

    def readings(self, session_id: str, message_ids: Sequence[str]) -> Iterator[tuple[str, Callable[[], Reading]]]:
        """Each of these messages with a function that reads it, as `read_message` does.

        A source may look up several at once. It holds no lock between two items.
        """

    def reverts(self, session_id: str) -> list[RevertMark]:
        """The session's reverts in order, if this source records them; most sources only have a pending one.

        Raises:
            BadRecord, SourceBusy: as `read_session`.
        """

    def todos(self, session_id: str) -> TodoList | None:
        """The session's todo list; None if this source has none.

        Raises:
            BadRecord, SourceBusy: as `read_session`.
        """

    def projects(self) -> list[Json]:
        """Every project: ``{id, worktree, vcs, name, sandboxes[], directories[], time, raw}``.

        Texts and lists are empty if the record lacks them; `raw` is the record as written. An unreadable project has
        its ``id``, and the reason under ``problem``.
        """

    def close(self) -> None:
        """Close files and connections."""
