"""The facts of a folder as plain values, and the stable key of each entry.

Every text here is redacted and unescaped; whoever renders it escapes it. Times are epoch milliseconds, paths absolute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from daemon.reconstitute.facts.session_values import CallStatus, Citation, SessionFacts
from daemon.records import digest, dumps

_KEY_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Purpose:
    """What the folder or a file is for, in one or two sentences of the project itself.

    `origin` says where they are from, for people: ``README.md``, ``pyproject.toml``, ``first prompt``, ``docstring``.
    """

    text: str
    origin: str
    citation: Citation | None = None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What may have changed files after they were last known: in words, with the command if there is one."""

    text: str
    command: str
    time: int
    citation: Citation
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of the folder. `counts` are files by recover.State; `known_at` is the time of the newest certain state.

    `absent` are all files that the disk does not have: `missing` have a certain content, `likely` a whole but uncertain
    one. The certain content of `differing` files differs from the disk. `restore` is the command that restores what is
    certain, empty if there is nothing to restore; with ``--grade stale`` it also restores the likely ones.
    """

    last_activity: int = 0
    last_session: str = ""
    known_at: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    aftermath: tuple[Aftermath, ...] = ()
    absent: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    restore: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was really run; `group` is ``install``, ``build``, ``test``, ``run``, ``deploy``, …

    `folder` is relative to the target. `succeeded` and `failed` cite the last success and the last failure; `exit` and
    `error` belong to the last failure, `last` is the end of the last run. `taken_back`: it only ran in turns that a
    revert took back. `named`: a README, manifest or Makefile of the project names it. `ran_as` is the command before
    its script was moved; empty if it was not moved. `is_least`: it may have run more than `times`. `line_exit` is the
    exit status of the last line that it was in, if the end of the command itself is unknown.
    """

    group: str
    command: str
    folder: str
    times: int
    succeeded: Citation | None = None
    failed: Citation | None = None
    exit: int | None = None
    error: str = ""
    last: CallStatus = CallStatus.UNKNOWN
    taken_back: bool = False
    named: bool = False
    ran_as: str = ""
    is_least: bool = False
    line_exit: int | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A script or target that a file of the project names, such as a Makefile or package.json.

    `is_default`: its tool runs it without arguments, as a plain ``make`` does.
    """

    name: str
    invocation: str
    runs: str
    path: str
    group: str = ""
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """What the file at `path` says is required to run the project, such as ``flask==3.0.0`` or ``Python >=3.11``."""

    text: str
    path: str


class SetbackKind(StrEnum):
    """What kind of thing did not last."""

    REVERTED = "reverted"
    UNDONE = "undone by the agent"
    EDIT_FAILED = "edit failed"
    COMMAND_FAILED = "command failed"
    CALL_FAILED = "call failed"
    REFUSED = "refused"
    STOPPED = "stopped"
    FAILED = "answer failed"


@dataclass(frozen=True, slots=True)
class Setback:
    """Something that was taken back, failed, refused or stopped, and what came of it afterwards.

    `outcome` says in words whether it was overcome and by what; `resolved` cites what overcame it.
    """

    kind: SetbackKind
    text: str
    time: int
    citation: Citation
    detail: str = ""
    outcome: str = ""
    resolved: Citation | None = None
    paths: tuple[str, ...] = ()


class OpenKind(StrEnum):
    """Why something is still open."""

    TODO = "todo"
    QUESTION = "question"
    NOT_DONE = "not done"
    FAILING = "failing"
    UNANSWERED = "unanswered"
    REVERT = "pending revert"


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """Something that nothing in the records settles."""

    kind: OpenKind
    text: str
    time: int
    citation: Citation
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence that states a rule or a decision, word for word, by the ``user`` or the ``agent`` (`who`).

    A rule from a file for rules has `who` ``file`` and the file's relative path as its `origin`. `replaces` is what it
    took the place of. `invalid_because` says why it no longer holds; it is empty if it does. `note` says what else came
    of it, such as that nothing was changed.
    """

    text: str
    who: str
    kind: str  # "rule" or "decision"
    time: int
    citation: Citation
    reason: str = ""
    replaces: str = ""
    invalid_because: str = ""
    note: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a folder's front page says without a model; sessions oldest first, the rest in the order of the page."""

    sessions: tuple[SessionFacts, ...] = ()
    purpose: tuple[Purpose, ...] = ()
    standing: Standing = field(default_factory=Standing)
    commands: tuple[Command, ...] = ()
    scripts: tuple[Script, ...] = ()
    needs: tuple[Need, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    open: tuple[OpenPoint, ...] = ()
    rules: tuple[Rule, ...] = ()
    file_purposes: dict[str, Purpose] = field(default_factory=dict)  # by absolute path


Entry: TypeAlias = Purpose | Command | Script | Setback | OpenPoint | Rule


def key(entry: Entry) -> str:
    """The name by which an entry can be struck out.

    It depends on the entry's kind, text and citation, and stays the same when a later outcome changes the entry.
    """
    match entry:
        case Command():
            text, citation = f"{entry.folder}\n{entry.command}", None
        case Script():
            text, citation = f"{entry.path}\n{entry.name}", None
        case _:
            text, citation = entry.text, entry.citation
    kind = str(getattr(entry, "kind", ""))
    return digest(dumps([type(entry).__name__, kind, text, _place(citation)]))[:_KEY_LENGTH]


def _place(citation: Citation | None) -> list[str]:
    if citation is None:
        return []
    return [citation.session_id, citation.message_id, citation.path, citation.quote]
