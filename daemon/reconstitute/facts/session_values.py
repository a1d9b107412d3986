"""A session as pages show it: its turns, the calls in them, and what it did to files.

Every text here is redacted and unescaped; whoever renders it escapes it. Times are epoch milliseconds, paths absolute.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from daemon.model import Session


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a fact stands in the records: a message, or with `path` that file's content as the message left it.

    `quote` is the text in the message or file that says it; empty where the record itself is the proof.
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
    UNKNOWN = "unknown"  # the record does not tell


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call. `title` is its input in one line.

    Of a shell call `command` is the whole command, `folder` its working directory and `exit` its status, where it is
    recorded, and `output` the end of what it printed. `error` is the beginning of what went wrong, of a
    shell call the one line that says it; all are bounded.
    `changed` are the paths that its record says it changed; `child` is the session of the sub-agent that it started.
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
    """A prompt and everything up to the next one. A session that begins without a prompt has a first turn without one.

    `message_ids` are all its messages in order. `prompt` is without attachments and what OpenCode added by itself;
    `is_command` marks a prompt that came from a custom command or a sub-agent's task. `taken_back`: a revert removed
    the turn, wholly or (`in_part`) from some part on, and was not undone; `in_doubt`: only missing messages tell of it.
    `kept` are the absolute paths of the folder's files that surely still are as the taken-back turn left them.
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
    """A revert of a session. `undone` is when it was undone again, epoch ms; `pending`: OpenCode can still undo it.

    `prompts` are those that it took back, `paths` the files that it set back or removed, where that is known.
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
    """What a session did to a file, all in all: lines added and removed, None where one of the states is not known.

    `kind` is ``added``, ``changed``, ``deleted`` or ``moved``, with the path it came `moved_from`; `undone`: a revert
    took all of it back. `seen_in` is the message after whose step it was seen, where no call tells of it. Many of those
    that came of one command are one ``written`` folder: `path`, with how many `files` and the `command`.
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
    """A session as a page tells of it; `message_ids` are those that have to do with the folder, in order.

    `is_whole`: all of its messages have. `forked_from` is the session it is a copy of, `copied` how many of its turns
    are that session's. `commits` are subjects of commits made in it, `undone_commits` of those that a later
    ``git reset`` or ``git revert`` undid, also in a later session. `deleted`: OpenCode deleted it.
    `outside` are files elsewhere that its calls say they changed, relative to the target.
    `numbers` are the places of the `message_ids` among all messages of the session, from 1 (empty: it `is_whole`), and
    `sizes` about the bytes that each takes up on a page (empty: unknown).
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
