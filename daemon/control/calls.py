"""The calls a client may make, whoever answers: the running daemon over its socket, or the engine in this process.

Every answer is plain JSON data, already redacted; only the contents that `restore` hands out, and `content` when asked
for raw bytes, are as they were, and the paths that go with them. Errors are ReconstituteError; over the socket they
travel as ``{"error": {"type", "message", "exit_code"}}`` and are raised again on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from daemon.model import Json

Progress = Callable[[Json], None]
"""Called with ``{"phase": str, "done": int, "total": int | None}`` during long work."""


def silent(_event: Json) -> None:
    """The Progress that nobody looks at."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """One file to be written out: its absolute path, and where it belongs beneath the new folder.

    `data` is exact, but where `partial` is true: then it is the known lines with the gaps marked, and `relative` says
    so in its name. `deleted`: it is what the file held before it was deleted.
    """

    path: str
    relative: str
    grade: str
    sha256: str
    data: bytes
    partial: bool = False
    deleted: bool = False
    executable: bool = False


Take = Callable[[FileContent], None]
"""Called with each file, one after the other; what it raises ends the call."""

TakeText = Callable[[str], None]
"""Called with one piece of an export after the other, to be written as they come; what it raises ends the call."""


class Service(Protocol):
    """Implemented by app.Engine and by control.client.Client."""

    def status(self) -> Json:
        """Version, pid, sources with their counts, outbox, index health, targets, jobs, last errors."""

    def recall(self, call: str, arguments: Json, *, here: str = "") -> Json:
        """One of the calls of recall.query.request.CALLS, by name, its arguments as a client wrote them.

        `here` is the directory the caller stands in: it says what "this project" and "the session at hand" are. The
        answers are those of recall.answer.results; each has `ok` and `warnings`.

        Raises:
            BadRequest: an unknown call, an argument that makes no sense, an id that is not in the archive.
        """

    def export(self, arguments: Json, *, take: TakeText, progress: Progress = silent) -> Json:
        """Sessions in one of the formats of exports.Export, piece by piece: ``{sessions, messages, warnings}``.

        Raises:
            BadRequest: an argument that makes no sense, a session that is not in the archive.
        """

    def index(self, progress: Progress) -> Json:
        """One full scan, then the outbox drained: ``{changed, removed, embedded, waiting, quarantined}``."""

    def reconstitute(
        self, path: str, *, questions: list[str] | None = None, at: str = "", output: str = "", progress: Progress
    ) -> Json:
        """One run: ``{target, output, pages, written, unchanged, kept, files: {proven, unproven}, warnings}``."""

    def estimate(
        self, path: str, *, questions: list[str] | None = None, at: str = "", progress: Progress = silent
    ) -> Json:
        """What `reconstitute` would ask the chat model now, which is asked nothing: ``{target, model, who, questions,
        files, sessions, later, calls, tokens, most_calls, most_tokens, warnings}``.

        Each kind is ``{asked, kept, calls, tokens, most_calls, most_tokens}``: `asked` is how many are to be asked,
        `kept` how many need not; `calls` and `tokens` are what that usually takes, the others what the limits allow.
        """

    def files(self, path: str = "/", *, at: str = "", lost: bool = False, progress: Progress = silent) -> Json:
        """What is known of each file at or beneath `path`, at a moment or now, and how the disk compares.

        ``{path, files: [{path, grade, evidence: [str], sha256, size, deleted, disk, last_change: {time, session_id,
        message_id, tool}, note}], hints: [str], warnings: [str]}``, by path; with `lost` only what is missing on the
        disk or differs from it, and what was deleted, most recoverable first. Of a deleted file `sha256` and `size` are
        those of what it held last, `grade` is how well that is known, and `disk` is identical where nothing stands.

        Raises:
            BadRequest: `path` is not absolute, `at` is no time.
        """

    def history(self, path: str, *, diff: bool = False, lines: bool = False, progress: Progress = silent) -> Json:
        """All revisions of one file, oldest first.

        ``{path, grade, deleted, revisions: [{time, session_id, session_title, message_id, tool, operation, grade,
        evidence: [str], note, outside_change, deleted, size, sha256, moved_from, diff?, diff_note?}], lines?: [{text,
        message_id, session_id, time, tool}], warnings}``. A path that no session touched has no revisions.

        Raises:
            BadRequest: `path` is not absolute.
        """

    def content(self, path: str, *, at: str = "", raw: bool = False, progress: Progress = silent) -> Json:
        """What a file held at a moment, or last: ``{path, grade, proven, known, deleted, partial, content_base64,
        sha256, size, redacted, evidence, note, time, session_id, message_id, tool, last, hint, warnings}``.

        `content_base64` is null where nothing is known or the file was deleted; `last` then describes the newest
        revision with content, where there is one. It is redacted, and `redacted` says whether that changed anything,
        unless `raw`; `sha256` and `size` are always the file's own.

        Raises:
            BadRequest: `path` is not absolute, `at` is no time.
        """

    def restore(
        self,
        path: str,
        *,
        at: str = "",
        deleted: bool = False,
        grade: str = "proven",
        take: Take,
        progress: Progress = silent,
    ) -> Json:
        """Hand each file at or beneath `path` that is known well enough to `take`; the caller writes.

        ``{path, files, deleted, skipped: [{path, reason}], warnings}``; `files` is how many were handed out, `deleted`
        how many of the skipped ones had only been deleted.

        Raises:
            BadRequest: `path` is not absolute, `at` is no time, `grade` is none.
        """

    def trajectories(self, path: str = "", *, started: int = 0) -> Json:
        """How questions about a target, or about all, were answered by a model, oldest first.

        ``{trajectories: [{target, question: {id, ask}, model, started, ended?, resumed, state, steps, tokens, seconds,
        messages?}]}``; times are epoch ms. With `started` only the one that began then, with its messages.

        Raises:
            BadRequest: none began then.
        """

    def alias(self, old: str = "", new: str = "", *, remove: bool = False) -> Json:
        """Say that the folder `old` is `new` now; `remove` takes that back; with no `old`, only list.

        ``{aliases: [{old, new}]}``.

        Raises:
            BadRequest: the two make no sense together, or there is nothing to remove.
        """
