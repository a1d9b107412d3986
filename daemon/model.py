"""The values that rooms pass to each other: sessions, messages, parts, and results derived from them.

Frozen, without behaviour beyond access to their own fields. Times are epoch milliseconds, as OpenCode writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""An embedding: a unit vector whose length is the embedder's `dims`."""

Json: TypeAlias = dict[str, Any]
OllamaMessage: TypeAlias = dict[str, Any]
"""One entry of Ollama's ``messages[]``: role, content, and where they apply thinking, images, tool_calls, tool_name."""


@dataclass(frozen=True, slots=True)
class Session:
    """One OpenCode session; `raw` is the record as its source wrote it."""

    id: str
    project_id: str
    directory: str
    title: str
    created: int
    updated: int
    raw: bytes
    parent_id: str | None = None
    archived: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message: `data` is the whole record, `raw` its bytes as written (ids included)."""

    id: str
    message_id: str
    session_id: str
    type: str
    data: Json
    raw: bytes


LARGE = 8 << 20
"""Parts of a message with more bytes than this are not in memory together."""


class LargePart(Part):
    """A part whose bytes are read again on access, because most loops over parts do not need them."""

    __slots__ = ("_read",)
    _read: Callable[[], bytes]

    @property
    def raw(self) -> bytes:
        """The record as it was written."""
        return self._read()

    @raw.setter
    def raw(self, raw: bytes) -> None:
        object.__setattr__(self, "_read", lambda: raw)

    @classmethod
    def of(cls, part: Part, read: Callable[[], bytes]) -> LargePart:
        """`part` without its bytes, which `read` returns."""
        large = cls(part.id, part.message_id, part.session_id, part.type, part.data, b"")
        object.__setattr__(large, "_read", read)
        return large


class Parts(Sequence[Part]):
    """The parts of a large message; each is loaded on access, and not cached.

    Loop over them one by one, and keep only the data that you need.
    """

    def __init__(self, ids: Sequence[str], load: Callable[[int], Part]) -> None:
        self.ids = tuple(ids)
        self._load = load

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> Parts: ...
    def __getitem__(self, place: int | slice) -> Part | Parts:
        numbers = range(len(self.ids))[place]
        return self._load(numbers) if isinstance(numbers, int) else self._selected(numbers)

    def __iter__(self) -> Iterator[Part]:
        for number in range(len(self.ids)):
            yield self._load(number)

    def only(self, is_wanted: Callable[[Part], bool]) -> Parts:
        """The parts for which `is_wanted` is true; each is loaded once for that."""
        return self._selected([number for number, part in enumerate(self) if is_wanted(part)])

    def _selected(self, numbers: Sequence[int]) -> Parts:
        return Parts([self.ids[number] for number in numbers], lambda place: self._load(numbers[place]))


def part_ids(parts: Sequence[Part]) -> list[str]:
    """The ids of a message's parts, without loading any."""
    return list(parts.ids) if isinstance(parts, Parts) else [part.id for part in parts]


def parts_where(parts: Sequence[Part], is_wanted: Callable[[Part], bool]) -> Sequence[Part]:
    """The parts of a message for which `is_wanted` is true, in the same form."""
    return parts.only(is_wanted) if isinstance(parts, Parts) else tuple(part for part in parts if is_wanted(part))


@dataclass(frozen=True, slots=True)
class Message:
    """One message with its parts in creation order: a tuple, or `Parts` where they are large."""

    id: str
    session_id: str
    role: str
    created: int
    data: Json
    raw: bytes
    parts: Sequence[Part] = ()
    completed: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether OpenCode has finished writing it; a user message is written whole."""
        return self.role != "assistant" or self.completed is not None or bool(self.data.get("error"))


class Kind(StrEnum):
    """The kind of a piece of searchable text; a filter of recall."""

    PROMPT = "prompt"
    ANSWER = "answer"
    REASONING = "reasoning"
    TOOL_INPUT = "tool_input"
    TOOL_OUTPUT = "tool_output"
    TASK = "task"
    TITLE = "title"


@dataclass(frozen=True, slots=True)
class Section:
    """The searchable text of one part, redacted."""

    part_id: str
    kind: Kind
    text: str
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """The searchable text of one message, redacted; `paths` are absolute if known."""

    message_id: str
    session_id: str
    sections: tuple[Section, ...]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A window of a document that is embedded as one vector."""

    message_id: str
    number: int
    text: str
    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The semantic index's record id (docs/how-it-works.md)."""
        return f"{self.message_id}#{self.number}"


class Operation(StrEnum):
    """The effect of a recorded event on a path, or what it observed."""

    WRITE = "write"  # whole new content
    APPEND = "append"  # content at the end; creates a missing file
    EDIT = "edit"  # old text -> new text
    PATCH = "patch"  # hunks of an apply_patch update
    DELETE = "delete"
    MOVE = "move"  # this path, a file or a folder, became `other`
    COPY = "copy"  # `other` became a copy of this path
    TOUCH = "touch"  # creates a missing file, empty
    FOLDER = "folder"  # this path is a folder now
    READ = "read"  # whole content seen
    READ_RANGE = "read_range"  # some lines seen
    STATE = "state"  # whole state seen: `content` or `blob`, or gone
    SNAPSHOT = "snapshot"  # this folder, and all beneath it, as the git tree `blob` shows it
    STEP = "step"  # changed during the step that began with the git tree `blob`: what a revert goes back to
    RUN = "run"  # a program ran in this folder: its text is `content`, or in the file `other`; neither: unknown
    REFUSED = "refused"  # a change that was refused: `old` was not found in the file; without `old`, by the user
    UNCLEAR = "unclear"  # may have changed the path, and everything beneath it, in an unknown way


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program was started, so that a replay can read its text like a command line.

    `language`: ``sh``, ``bash``, ``python``, ``make``, ``package`` (a script of package.json); ``#!``: as the first
    line of the file says; ``source``: read by the shell itself. `folder` is the working directory, relative to the
    event's path. `arguments` begin with the program's own name; None for an unknown one. `status`: 0 it may have run,
    1 it ran, 2 it ran and ended with exit status 0. `shows_errors`: the output would have an error of any of its
    commands, and has none. `strict`: it was started with ``-e``. `is_piped`: its text came by standard input. `home` is
    the home folder, if known.
    """

    language: str
    folder: str = ""
    arguments: tuple[str | None, ...] = ()
    status: int = 0
    shows_errors: bool = False
    strict: bool = False
    is_piped: bool = False
    home: str | None = None


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One recorded change or observation of an absolute path.

    `content` is the whole text after a WRITE or seen by a READ, what an APPEND adds, or a STATE; `blob` is the git id
    of whole content (STATE, WRITE) or of a tree (SNAPSHOT, STEP) that the archive keeps as an object; a STATE with
    neither says that the path is gone. `old`/`new`/`replace_all` belong to EDIT and REFUSED; `hunks` to PATCH, each
    (context line, removed-and-kept lines, added-and-kept lines, whether the file's end followed), and to an EDIT what
    its recorded diff shows, each ("@@ -a,b +c,d @@", lines before, lines after, False), without common indentation
    and CRs; `before`/`after` are what OpenCode up to 1.2.1 recorded beside an edit or patch; `other` is the far end
    of a MOVE or COPY, the file that is RUN, of an UNCLEAR the file RUN just before that was given the path, and of a
    SNAPSHOT the folder that its tree is of (the work tree, which holds the path). `into` tells whether `other` is a
    folder to go into, None where that depends on what `other` was.
    `existed`: whether there was a file before a WRITE or DELETE, where the record or the command tells.
    `recursive`: a DELETE or COPY takes whole folders. `time` is when the call ended, `started` when it began, where
    that is recorded and earlier; what an UNCLEAR did may have come as late as `until`, and so may what the tree of a
    SNAPSHOT shows. `number` orders the edits of one part. A RUN stands at the folder in which its effects are looked
    for; `launch` tells how it was started, where its text can be read. `version` is the OpenCode version that made it,
    because its matching rules changed over time (opencode-formats.md, Tools).
    """

    path: str
    time: int
    session_id: str
    message_id: str
    part_id: str
    tool: str
    operation: Operation
    content: str | None = None
    old: str | None = None
    new: str | None = None
    replace_all: bool = False
    hunks: tuple[tuple[str, tuple[str, ...], tuple[str, ...], bool], ...] = ()
    before: str | None = None
    after: str | None = None
    other: str | None = None
    existed: bool | None = None
    started: int | None = None
    version: str = ""
    note: str = ""
    number: int = 0
    blob: str = ""
    until: int | None = None
    into: bool | None = False
    recursive: bool = False
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of recall; `snippet` and `title` are redacted, `score` is comparable within one answer only."""

    message_id: str
    session_id: str
    title: str
    role: str
    created: int
    kind: str
    score: float
    mode: str
    snippet: str
    part_id: str = ""
    tool: str = ""
    directory: str = ""
    project_id: str = ""
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """One file of an output tree: path relative to the tree's root, content, and the message ids it draws on.

    `content` may be a function that makes it. `basis` is a digest of everything that the content is made from, the
    renderer's version included: where it is given, a page whose basis and file are as before need not be made again.
    `key` identifies the page's subject, such as a session's id: a person's notes move with it when the path changes.
    Without a key the path identifies it.
    """

    path: str
    content: str | Callable[[], str]
    sources: tuple[str, ...] = ()
    basis: str = ""
    key: str = ""

    @property
    def text(self) -> str:
        """The content; if `content` is a function, every access calls it."""
        return self.content if isinstance(self.content, str) else self.content()


@dataclass(frozen=True, slots=True)
class Target:
    """A path to be reconstituted; `refresh` is ``continuous``, ``scheduled`` or ``once``."""

    path: str
    questions: tuple[str, ...] = ()
    schedule: str = ""
    refresh: str = "once"
    at: int | None = None
    output: str = ""


@dataclass(slots=True)
class SourceCounts:
    """Counts of one source's messages, for ``reconstitute status``."""

    seen: int = 0
    kept: int = 0
    skipped: int = 0
    unknown: dict[str, int] = field(default_factory=dict)
    quarantined: int = 0
    excluded: dict[str, int] = field(default_factory=dict)
    """What is never read, by reason: see daemon.exclude."""
