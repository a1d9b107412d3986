"""What the calls of the service answer: one structure each (docs/json.md).

Names in JSON are those of OpenCode's recall plugin, which agents know: camel case, ``sessionID``. Times are epoch
milliseconds. The answers of recall are those of the recall room.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.model import Json
from daemon.records import built

T = TypeVar("T")


def json_name(field: str) -> str:
    """A field's name in JSON.

    >>> json_name("session_id"), json_name("last_change"), json_name("sha256")
    ('sessionID', 'lastChange', 'sha256')
    """
    first, *words = field.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in words)


def to_json(value: object) -> Any:
    """An answer, or a part of one, as JSON data."""
    return msgspec.to_builtins(value)


def as_object(answer: Answer) -> Json:
    """An answer as a JSON object."""
    value: Json = to_json(answer)
    return value


def from_json(value: object, kind: type[T]) -> T:
    """JSON data as an answer; fields of a newer version are ignored.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return msgspec.convert(value, built(kind))


class Answer(Struct, rename=json_name):
    """What a client gets. Every field has a default, so that answers of other versions are understood."""


class LargeRecords(Answer):
    """The records that are kept whole as files, the largest of them listed."""

    count: int = 0
    bytes: int = 0
    records: list[Json] = []


class ArchiveStatus(Answer):
    """Where the archive is and what it holds; `bytes` is its size on the disk.

    `backup_before_migration` is a folder that the user may remove, once the older version is not needed any more.
    """

    dir: str = ""
    sessions: int | UnsetType = UNSET
    messages: int | UnsetType = UNSET
    parts: int | UnsetType = UNSET
    bytes: int | UnsetType = UNSET
    large: LargeRecords = msgspec.field(default_factory=LargeRecords)
    backup_before_migration: str = ""


class SourceStatus(Answer):
    """A database or folder of OpenCode's; the counts are there when it has been read.

    `newest` is when its newest message was created, `lag_seconds` by how much the newest archived one is older; null
    where that cannot be known.
    """

    name: str = "?"
    kind: str = "?"
    state: str = "?"
    last_scan: int | None = None
    seen: int | UnsetType = UNSET
    kept: int | UnsetType = UNSET
    skipped: int | UnsetType = UNSET
    quarantined: int | UnsetType = UNSET
    unknown: dict[str, int] | UnsetType = UNSET
    set_aside: list[Json] | UnsetType = UNSET
    excluded: dict[str, int] | UnsetType = UNSET
    newest: int | None = None
    lag_seconds: float | None = None


class TargetStatus(Answer):
    """A folder or file that is kept up to date, and how its last run went."""

    path: str = "?"
    refresh: str = ""
    schedule: str = ""
    last_run: int | None = None
    state: str = ""
    warnings: list[str] = []
    unanswered: int = 0


class JobsStatus(Answer):
    """What is being made now, and how much waits."""

    running: str | int | None = None
    queued: int = 0


class DiskStatus(Answer):
    """That the disk is full, and which work waits for free space."""

    since: int = 0
    reason: str = ""
    paused: list[str] = []


class Pause(Answer):
    """A pause of all work but archiving: until `until`, or null until it is resumed. Without one `since` is 0."""

    since: int = 0
    until: int | None = None


class BackedUpRecord(Answer):
    """A record that is kept whole as a file: its hash and its size in bytes."""

    sha256: str = ""
    size: int = 0


class Backup(Answer):
    """What was handed out for a backup; `large` are the records beside it that the caller copies by itself."""

    archive: str = ""
    version: str = ""
    schema: int = 0
    made: int = 0
    counts: dict[str, int] = {}
    large: list[BackedUpRecord] = []
    warnings: list[str] = []


class ErrorStatus(Answer):
    """Something that failed."""

    time: int = 0
    where: str = ""
    message: str = ""
    type: str = ""


class Check(Answer):
    """The result of one check: what was checked, its state, what that means, and the command that mends it.

    `state` is one of CHECK_STATES.
    """

    what: str = "?"
    state: str = "not checked"
    message: str = ""
    fix: str = ""


CHECK_STATES = ("ok", "attention", "broken", "not checked")


class Doctor(Answer):
    """The checks of whoever holds the archive: the service with its `pid`, or a command, which has none."""

    version: str = "?"
    pid: int | None = None
    checks: list[Check] = []


class Sizes(Answer):
    """Bytes on the disk: the archive's database, both indexes, large records, and everything beneath archive.dir."""

    archive: int = 0
    words: int = 0
    meaning: int = 0
    large: int = 0
    total: int = 0


class Rates(Answer):
    """In a second of the recent work: messages archived, messages indexed by words, texts embedded. None: none yet."""

    archived: float | None = None
    words: float | None = None
    embedded: float | None = None


class Status(Answer):
    """`running`: the service answers, with its `pid` and when it `started`; both are null without one.

    `differs`: the settings in which it differs from the caller's. `newest` is when the newest archived message was
    created, `lag_seconds` the largest of the sources. `troubles` are the checks that need a person.
    """

    version: str = "?"
    pid: int | None = None
    running: bool = False
    started: int | None = None
    config_file: str = ""
    newest: int | None = None
    lag_seconds: float | None = None
    sizes: Sizes = msgspec.field(default_factory=Sizes)
    free_bytes: int | None = None
    troubles: list[Check] = []
    archive: ArchiveStatus = msgspec.field(default_factory=ArchiveStatus)
    sources: list[SourceStatus] = []
    outbox: dict[str, int] = {}
    rates: Rates = msgspec.field(default_factory=Rates)
    index: dict[str, Json] = {}
    answers: str = ""
    targets: list[TargetStatus] = []
    jobs: JobsStatus | None = None
    watch: str = ""
    disk: DiskStatus | None = None
    pause: Pause | None = None
    errors: list[ErrorStatus] = []
    differs: list[str] | UnsetType = UNSET


class Index(Answer):
    """Counts of records and messages; `waiting` are not embedded yet, and if `running`, the service embeds them."""

    changed: int = 0
    removed: int = 0
    quarantined: int = 0
    embedded: int = 0
    refused: int = 0
    waiting: int = 0
    running: bool = False
    warnings: list[str] = []


class ForgottenSession(Answer):
    """A session that is forgotten whole; `parent_id` is set for that of a sub-agent. `updated` is epoch ms."""

    id: str = ""
    title: str = ""
    directory: str = ""
    parent_id: str = ""
    updated: int = 0
    messages: int = 0


class Forget(Answer):
    """What was removed if `forgotten`, else what would be. Of a `path`, `messages` stay without `parts` of them.

    `files` counts paths whose recorded changes go, `objects` contents of snapshots and outputs that nothing else names.
    `pages` are folders with pages made of it, which the service writes anew; `results` are results of request files.
    `notes` say what cannot be known.
    """

    forgotten: bool = False
    sessions: list[ForgottenSession] = []
    message_id: str = ""
    path: str = ""
    messages: int = 0
    parts: int = 0
    files: int = 0
    objects: int = 0
    targets: list[str] = []
    pages: list[str] = []
    results: list[str] = []
    notes: list[str] = []
    warnings: list[str] = []


class Export(Answer):
    """How much was exported."""

    sessions: int = 0
    messages: int = 0
    warnings: list[str] = []


class FileCounts(Answer):
    """How many of a target's files are proven."""

    proven: int = 0
    unproven: int = 0


class Run(Answer):
    """What became of the pages, in counts, and of the questions (reconstitute.Reconstitution.run)."""

    target: str = ""
    output: str = ""
    pages: int = 0
    written: int = 0
    unchanged: int = 0
    kept: int = 0
    edited: list[str] = []
    retired: list[str] = []
    files: FileCounts = msgspec.field(default_factory=FileCounts)
    model: str = ""
    who: str = ""
    questions: int = 0
    answered: int = 0
    answers: list[Json] = []
    model_calls: int = 0
    unanswered: int = 0
    later_seconds: float = 0
    warnings: list[str] = []


class Cost(Answer):
    """What questions of one kind would take: `calls` and `tokens` usually, `most_…` by the limits."""

    asked: int = 0
    kept: int = 0
    calls: int = 0
    tokens: int = 0
    most_calls: int = 0
    most_tokens: int = 0


class Estimate(Answer):
    """What a run would ask; `later` counts files and sessions that wait for a later one."""

    target: str = ""
    model: str = ""
    who: str = ""
    questions: Cost = msgspec.field(default_factory=Cost)
    files: Cost = msgspec.field(default_factory=Cost)
    sessions: Cost = msgspec.field(default_factory=Cost)
    later: int = 0
    calls: int = 0
    tokens: int = 0
    most_calls: int = 0
    most_tokens: int = 0
    warnings: list[str] = []


class AskedQuestion(Answer):
    """A question that was put to a model."""

    id: str = ""
    ask: str = ""


class Trajectory(Answer):
    """How a model came to an answer; `messages` are in Ollama's form."""

    target: str = ""
    question: AskedQuestion = msgspec.field(default_factory=AskedQuestion)
    model: str = ""
    started: int = 0
    resumed: int = 0
    state: str = ""
    steps: int = 0
    tokens: int = 0
    seconds: float = 0
    ended: int | UnsetType = UNSET
    messages: list[Json] | UnsetType = UNSET


class Trajectories(Answer):
    """Oldest first."""

    trajectories: list[Trajectory] = []
