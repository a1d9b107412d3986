"""A session as pages show it: its turns, the calls in them, and what it did to files.

Every text here is redacted and unescaped; whoever renders it escapes it. Times are epoch milliseconds, paths absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from daemon.model import Session


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a fact: a message, or with `path` the content of that file as the message left it.

    `quote` is the text in the message or file that says it; empty if the record itself is the proof.
    """

    session_id: str
    message_id: str
    time: int
    quote: str = ""
    path: str = ""


class CallStatus(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    FAILED = "failed"  # the tool reported an error, or a command ended with another exit status than 0
    REFUSED = "refused"  # the user, or a rule, did not permit it
    STOPPED = "stopped"  # cut off by the user, a time limit or the end of the process
    UNKNOWN = "unknown"  # not recorded


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. `title` is its input in one line.

    In a shell call, `command` is the whole command, `folder` its working directory, `exit` its status if that is
    recorded, and `output` the end of its output. `error` is the beginning of an error; in a shell call, the line that
    says what went wrong. All are bounded. `changed` are the paths that it changed according to its record. `child` is
    the session of the sub-agent that it started.
    """

    tool: str
    title: str
    status: CallStatus
    message_id: str
    part_id: str
    started: int
    ended: int
    command: str = ""
    folder: str = ""
    exit: int | None = None
    output: str = ""
    error: str = ""
    changed: tuple[str, ...] = ()
    child: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A text of the agent."""

    message_id: str
    time: int
    text: str


class Ending(StrEnum):
    """How a turn ended."""

    ANSWERED = "answered"
    STOPPED = "stopped"  # the user aborted it, or the process ended in the middle
    REFUSED = "refused"  # a call in its last step was not permitted, and OpenCode ended it there
    FAILED = "failed"  # the model or the provider returned an error, kept in Turn.error
    OPEN = "open"  # nothing followed the prompt, or it is still being answered


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and everything up to the next one. The first turn may have no prompt.

    `message_ids` are all its messages in order. `prompt` is without attachments and without what OpenCode added.
    `is_command`: the prompt came from a custom command or is a sub-agent's task. `taken_back`: a revert removed the
    turn, wholly or (`in_part`) from some part on, and was not undone; `in_doubt`: only missing messages show it.
    `kept` are the absolute paths of the folder's files that surely kept what the taken-back turn wrote.
    """

    prompt_id: str
    time: int
    ended: int
    prompt: str
    ending: Ending
    message_ids: tuple[str, ...]
    calls: tuple[Call, ...] = ()
    replies: tuple[Reply, ...] = ()
    error: str = ""
    agent: str = ""
    is_command: bool = False
    is_compaction: bool = False
    taken_back: bool = False
    in_doubt: bool = False
    in_part: bool = False
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A revert of a session. `undone` is when it was itself undone, epoch ms; `pending`: OpenCode can still undo it.

    `prompts` are those that it took back, `paths` the files that it set back or removed, as far as known.
    """

    time: int
    message_id: str
    part_id: str = ""
    undone: int | None = None
    pending: bool = False
    prompts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Todo:
    """An entry of a session's todo list in its last state; `status` as OpenCode wrote it."""

    text: str
    status: str
    priority: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is still to be done."""
        return self.status not in {"completed", "cancelled"}


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a session did to a file, all in all: lines added and removed, None if one of the states is not known.

    `kind` is ``added``, ``changed``, ``deleted``, ``moved`` (from `moved_from`) or ``written``: a folder in which
    a `command` changed many `files`. `undone`: a revert took all of it back. `seen_in` is the message after whose step
    the change was seen, if no call recorded it.
    """

    path: str
    kind: str
    added: int | None = None
    removed: int | None = None
    moved_from: str = ""
    undone: bool = False
    seen_in: str = ""
    files: int = 1
    command: str = ""


@dataclass(frozen=True, slots=True)
class TestRun:
    """The last run of one test command in one folder (`place`) in a session."""

    __test__ = False

    command: str
    passed: bool
    summary: str
    citation: Citation
    place: str = ""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session as a page shows it; `message_ids` are its messages that concern the folder, in order.

    `is_whole`: all its messages do. `forked_from` is the session that it copies, `copied` the number of copied turns.
    `commits` are the subjects of its valid commits, `undone_commits` of those that a later ``git reset`` or ``git
    revert`` undid, perhaps in a later session. `deleted`: OpenCode deleted it. `outside` are files elsewhere that its
    calls changed, relative to the target. `numbers` are the places of the `message_ids` among all messages of the
    session, from 1 (empty: it `is_whole`). `sizes` are about the bytes of each on a page (empty: unknown).
    """

    session: Session
    title: str
    turns: tuple[Turn, ...]
    message_ids: tuple[str, ...]
    is_whole: bool = True
    reverts: tuple[TakenBack, ...] = ()
    todos: tuple[Todo, ...] = ()
    changes: tuple[FileChange, ...] = ()
    tests: tuple[TestRun, ...] = ()
    commits: tuple[str, ...] = ()
    undone_commits: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    forked_from: str = ""
    copied: int = 0
    deleted: bool = False
    numbers: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def own_turns(self) -> tuple[Turn, ...]:
        """Its turns without those that a fork copied from its origin."""
        return self.turns[self.copied :]

    @property
    def exchanges(self) -> tuple[Turn, ...]:
        """Its own turns without compactions."""
        return tuple(turn for turn in self.own_turns if not turn.is_compaction)

    @property
    def last(self) -> int:
        """When the last of its turns ended."""
        return max((turn.ended for turn in self.turns), default=self.session.created)
