"""What OpenCode has on disk becomes Session, Message and Part. Read-only, always.

A source lists cheap stamps first and reads a record only when its stamp is new. Stamps are opaque; equal stamps mean
unchanged, different ones mean "look": whether anything changed is decided by content. All sources are read at once and
united by id; the one with the higher `generation` wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.model import Json, Message, Session

JSON_TREE, DATABASE, DATABASE_2 = 1, 2, 3
"""Generations of OpenCode's storage (opencode-formats.md, Versions)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A message as a source lists it: its stamp, and when it or one of its parts last changed (epoch ms).

    `is_event`: no message, but a record of its session that is listed among them, such as a change of the model.
    """

    stamp: str
    changed: int
    is_event: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A record that could not be read: where, why, how large, and the hash of what was there.

    `part_id` tells which record of its message it is, empty for the message's own; `is_kept` that all of it has been
    copied to a file named by its hash, `waits` that it could not be copied now.
    """

    place: str
    reason: str
    size: int = 0
    sha256: str = ""
    part_id: str = ""
    is_kept: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading one message gave.

    `message` is None when nothing usable was there. `orphan` says that only its parts are left: OpenCode's clean-up
    after a revert removes the message and leaves the parts (opencode-formats.md, Writing). `event` is the record where
    the unit is no message: ``{id, sessionID, type, time, data}``, `data` as it was written.
    """

    message: Message | None
    problems: tuple[Problem, ...] = ()
    orphan: bool = False
    event: bytes = b""


@dataclass(frozen=True, slots=True)
class TodoList:
    """A session's todo list as it stands, in order, each item as recorded; `time`: when it changed (epoch ms)."""

    items: tuple[Json, ...]
    time: int


@dataclass(frozen=True, slots=True)
class RevertMark:
    """A moment at which a session was taken back, or the taking back was undone (opencode-formats.md, Reverts).

    At `time` (epoch ms) the session went back to where `message_id` (or its `part_id`, else empty) begins, and the
    files with it, as far as the `patch` parts from there on tell of them (opencode-formats.md, Tools 13); `snapshot` is
    the tree of how they were just before, and `diff` is `git diff` from that tree to the files after it. Where no part
    was worth keeping before the one that a user chose, OpenCode records the prompt of that turn as `message_id` and no
    part, though the files keep what came before it: then only `diff` tells. `is_undone` says that this revert was taken
    back: files are as in `snapshot` again. A revert that the next prompt made final has no further mark. Without
    `is_exact`, `time` is only the latest at which it can have been.
    """

    time: int
    message_id: str
    part_id: str
    snapshot: str
    is_undone: bool
    diff: str = ""
    is_exact: bool = True


class Source(Protocol):
    """A read-only place messages come from."""

    @property
    def name(self) -> str:
        """Stable across restarts: the cursor is kept under it."""

    @property
    def kind(self) -> str:
        """For people: what storage this is."""

    @property
    def generation(self) -> int:
        """Which of two records with one id wins."""

    def touched(self) -> Iterable[str] | None:
        """Sessions that may have changed since the last call; None: cannot tell, look at all."""

    def hint(self, path: str) -> None:
        """A watch event named this path; `touched` will account for it."""

    def sessions(self) -> Mapping[str, str]:
        """Every session and the stamp of its record.

        Raises:
            SourceMissing: the place is gone or its layout is unknown. Nothing may be concluded from it.
            SourceBusy: locked; later.
        """

    def messages(self, session_id: str) -> Mapping[str, Unit]:
        """Every message of a session."""

    def read_session(self, session_id: str) -> Session:
        """The session's record; where only its messages are left, one made from what they tell.

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
        """Each of these messages with what reads it, as `read_message` does.

        A source may look up several at once. Nothing is locked while it waits to be asked for the next one.
        """

    def reverts(self, session_id: str) -> list[RevertMark]:
        """The session's reverts in order, as far as this source tells; most tell only the one that is pending.

        Raises:
            BadRecord, SourceBusy: as `read_session`.
        """

    def todos(self, session_id: str) -> TodoList | None:
        """The session's todo list; None where this source knows of none.

        Raises:
            BadRecord, SourceBusy: as `read_session`.
        """

    def projects(self) -> list[Json]:
        """Every project: ``{id, worktree, vcs, name, sandboxes[], directories[], time, raw}``.

        Texts are empty and lists too where the record says nothing; `raw` is the record as it stands. One that cannot
        be read has its ``id`` and the reason under ``problem``.
        """

    def close(self) -> None:
        """Let go of files and connections."""
