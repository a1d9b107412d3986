"""Every call of the service, once: its request, its answer, its address.

The client, the routes and the checking of requests follow from CALLS; the engine has a method of each call's name.

Every answer is redacted, except what `Restore` and `Backup` hand out, and `Content` and `Export` when asked for it raw,
with the paths that go with it. Errors are ReconstituteError; over the socket they travel as ``{"error": {"type",
"message", "exitCode"}}`` and are raised again on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, get_args

from msgspec import Struct

from daemon.control import answers, conversation_answers, file_answers, model_answers, view_answers, web_answers
from daemon.control.answers import Answer, json_name
from daemon.model import Json

A = TypeVar("A")

Progress = Callable[[Json], None]
"""Called with ``{"phase": str, "done": int, "total": int | None}`` during long work."""

OnPart = Callable[[Any], None]
"""Called with each part of an answer that comes piece by piece; what it raises ends the call."""


def silent(_event: object) -> None:
    """A Progress, or an OnPart, that does nothing."""


class FileContent(Answer):
    """One file to be written out: its absolute path, and where it belongs beneath the new folder.

    `data` is exact, unless `partial`: then it is the known lines with the gaps marked, and `relative` says so in its
    name. `deleted`: it is what the file held before it was deleted.
    """

    path: str
    relative: str
    grade: str
    sha256: str
    data: bytes
    partial: bool = False
    deleted: bool = False
    executable: bool = False


class BackupSegment(Answer):
    """A segment of a backup: its hash, its size in bytes, its number of rows, and its file, if the client lacks it."""

    sha256: str
    size: int
    rows: int
    data: bytes | None = None


class Request(Struct, Generic[A], forbid_unknown_fields=True, rename=json_name):
    """What a client asks for; A is the answer."""


# -- the archive -----------------------------------------------------------------------------------------------------


class Status(Request[answers.Status]):
    """What is archived, indexed, followed and waiting, and what failed last."""


class Doctor(Request[answers.Doctor]):
    """Check the archive, the sources, the indexes and the models; with `full` read every record and object."""

    full: bool = False


class Index(Request[answers.Index]):
    """Read everything OpenCode has and index it by words; with `wait` by meaning, too, which takes far longer."""

    wait: bool = False


class Pause(Request[answers.Pause]):
    """Stop indexing, embedding and all runs until the time `until`, or until it is called with `resume`.

    New messages are still archived. A run or step that is under way ends first.
    """

    until: str = ""
    resume: bool = False


class Forget(Request[answers.Forget]):
    """Remove for good what was named; without `confirmed` the answer is only a preview.

    `name` is the id of a session or a message, or the absolute path of a file or folder. Or `before` is a time, for all
    sessions that ended before it, or `project` the id or the folder of a project, for all its sessions.
    """

    name: str = ""
    before: str = ""
    project: str = ""
    confirmed: bool = False


class Models(Request[model_answers.Models]):
    """Which embedding models are at hand, what each reads of this archive, and how fast it is on this machine."""


class Recall(Request[Json]):
    """One of the calls of recall, by name, its arguments as a client wrote them.

    `here` is the directory the caller stands in: it says what "this project" and "the session at hand" are.
    """

    call: str
    arguments: Json = {}
    here: str = ""


class Conversation(Request[conversation_answers.Conversation]):
    """The messages of a session from number `start` on (the first is 0), taken apart to be read.

    With `message_id` they are the `count` messages of the page that it is on, and with `change_after` those of the page
    with the next message after that number which changed a file. Texts are cut after `most_chars` characters.
    """

    session_id: str
    start: int = 0
    count: int = 50
    message_id: str = ""
    change_after: int | None = None
    most_chars: int = 20_000


class Export(Request[answers.Export]):
    """Whole sessions as text, piece by piece; the arguments are those of exports.Export."""

    arguments: Json = {}


class Backup(Request[answers.Backup]):
    """Hand out everything in the archive's database at one moment, in segments; the caller writes them.

    `have` names segments that the caller has already, by the first 32 characters of their hash.
    """

    have: list[str] = []


class Web(Request[web_answers.Web]):
    """Serve the page if it is not served yet, and make a link that lets one browser in, once."""


# -- pages -----------------------------------------------------------------------------------------------------------


class Reconstitute(Request[answers.Run]):
    """Write the pages of a folder or file."""

    path: str
    questions: list[str] | None = None
    at: str = ""
    output: str = ""


class Estimate(Request[answers.Estimate]):
    """What `Reconstitute` would ask the chat model now, which is asked nothing."""

    path: str
    questions: list[str] | None = None
    at: str = ""


class Trajectories(Request[answers.Trajectories]):
    """How questions about a target, or about all, were answered; with `started` one of them, with its messages."""

    path: str = ""
    started: int = 0


class Page(Request[view_answers.Page]):
    """The front page of a folder or file as `Reconstitute` would write it; no model is asked, nothing written."""

    path: str
    at: str = ""


# -- days ------------------------------------------------------------------------------------------------------------


class Activity(Request[view_answers.Activity]):
    """How much happened on each day from `after` until `before` (times; the last year without), newest 800 days.

    `project` is the absolute path of a folder. With a `limit`, so many entries tell what happened in that time.
    """

    after: str = ""
    before: str = ""
    project: str = ""
    limit: int = 0


class Unfinished(Request[view_answers.Unfinished]):
    """What recent sessions left open, by folder; `since` is a time, `project` the absolute path of a folder."""

    since: str = "7d"
    project: str = ""


# -- recorded files --------------------------------------------------------------------------------------------------


class Files(Request[file_answers.Files]):
    """What is known of each file at or beneath a path, at a time or now, and how the disk compares."""

    path: str = "/"
    at: str = ""
    lost: bool = False


class History(Request[file_answers.History]):
    """All revisions of one file."""

    path: str
    diff: bool = False
    lines: bool = False


class Content(Request[file_answers.Content]):
    """What a file held at a time, or last."""

    path: str
    at: str = ""
    raw: bool = False


class Lines(Request[file_answers.Lines]):
    """Lines of a file at a time, or last, from number `start` on (the first is 0), each with the prompt behind it."""

    path: str
    at: str = ""
    start: int = 0
    count: int = 1000


class Diff(Request[file_answers.Diff]):
    """What changed in a file between two times; without `old` since it did not exist, without `new` until now."""

    path: str
    old: str = ""
    new: str = ""


class Restore(Request[file_answers.Restore]):
    """Hand out each file at or beneath a path that is known well enough; the caller writes.

    With `to`, the absolute path of a new or empty folder, the service writes them into that and hands out none.

    `include` and `exclude` are patterns as in a .gitignore file, of paths beneath `path`. If there is an `include`,
    only files that match it are handed out; none that matches `exclude` is.
    """

    path: str
    at: str = ""
    deleted: bool = False
    grade: str = "proven"
    include: list[str] = []
    exclude: list[str] = []
    to: str = ""


class Alias(Request[file_answers.Alias]):
    """Say that the folder `old` is `new` now; `remove` takes that back; with no `old`, only list."""

    old: str = ""
    new: str = ""
    remove: bool = False


# -- the table -------------------------------------------------------------------------------------------------------

_SHORT_SECONDS = 15.0
_SEARCH_SECONDS = 180.0
"""A search may wait for a model server to load its embedding model."""


@dataclass(frozen=True, slots=True)
class Call:
    """How a request becomes an answer."""

    request: type[Request[Any]]
    seconds: float | None = None
    """How long a client waits; None: for as long as progress is told, since the work is long."""
    part: Any = None
    """What the answer hands out piece by piece besides; None: nothing."""
    part_name: str = ""
    changes: bool = False
    """Whether it changes what is kept, or writes pages."""
    method: str = "POST"
    fields_in_address: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name, which is that of the engine's method, too."""
        return self.request.__name__.lower()

    @property
    def answer(self) -> Any:
        """The type of its answer."""
        return get_args(self.request.__orig_bases__[0])[0]  # type: ignore[attr-defined]  # every generic class has them

    @property
    def address(self) -> str:
        """Its address, with a place for each field that stands in it."""
        return "".join((f"/{self.name}", *(f"/{{{field}}}" for field in self.fields_in_address)))


CALLS: dict[type[Request[Any]], Call] = {
    call.request: call
    for call in (
        Call(Status, _SHORT_SECONDS, method="GET"),
        Call(Recall, _SEARCH_SECONDS, fields_in_address=("call",)),
        Call(Conversation),
        Call(Export, part=str, part_name="text"),
        Call(Backup, part=BackupSegment, part_name="segment"),
        Call(Web, _SHORT_SECONDS),
        Call(Index, changes=True),
        Call(Pause, _SHORT_SECONDS, changes=True),
        Call(Forget, changes=True),
        Call(Models),
        Call(Doctor),
        Call(Reconstitute, changes=True),
        Call(Estimate),
        Call(Trajectories, _SHORT_SECONDS),
        Call(Page),
        Call(Activity, _SEARCH_SECONDS),
        Call(Unfinished),
        Call(Files),
        Call(History),
        Call(Content),
        Call(Lines),
        Call(Diff),
        Call(Restore, part=FileContent, part_name="content"),
        Call(Alias, _SHORT_SECONDS, changes=True),
    )
}
BY_NAME = {call.name: call for call in CALLS.values()}


class Service(Protocol):
    """Whoever answers: app.Engine in this process, or control.client.Client over the socket."""

    def call(self, request: Request[A], *, progress: Progress = silent, on_part: OnPart = silent) -> A:
        """The answer; `on_part` gets what the call hands out piece by piece.

        Raises:
            BadRequest: the request makes no sense.
            ReconstituteError: whatever else goes wrong.
        """


def perform(owner: object, request: Request[A], progress: Progress, on_part: OnPart) -> A:
    """The answer of the method of `owner` that has the call's name.

    It gets the request, `progress` where the work is long, and `on_part` where parts are handed out.
    """
    call = CALLS[type(request)]
    arguments: dict[str, object] = {} if call.seconds is not None else {"progress": progress}
    if call.part is not None:
        arguments["on_part"] = on_part
    answer: A = getattr(owner, call.name)(request, **arguments)
    return answer
