"""What the calls about recorded files answer: histories, contents, restored files, moved folders (docs/json.md)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from daemon.control.answers import Answer


class Change(Answer):
    """When a file was changed, and by which message and tool."""

    time: int = 0
    session_id: str = ""
    message_id: str = ""
    tool: str = ""


class RecordedFile(Answer):
    """A file's last state. For a deleted file, `sha256`, `size` and `grade` describe its last content.

    `disk` is ``identical``, ``differs``, ``missing``, ``present`` (nothing is proven to compare it with) or
    ``unreadable``; for a deleted file ``absent``, or ``differs`` if something is there again. `folder`: it is no file,
    but a folder of which not even the names in it are kept.
    """

    path: str = ""
    grade: str = ""
    evidence: list[str] = []
    sha256: str | None = None
    size: int | None = None
    deleted: bool = False
    disk: str = ""
    last_change: Change | None = None
    note: str = ""
    folder: bool = False


class Files(Answer):
    """By path, lost ones the most recoverable first. `known`: something is recorded at or beneath the path."""

    path: str = ""
    known: bool = False
    files: list[RecordedFile] = []
    hints: list[str] = []
    warnings: list[str] = []


class FileRevision(Change):
    """One state of a file. `diff` is what changed since the last known content; `diff_note` says why it is empty."""

    session_title: str = ""
    operation: str = ""
    grade: str = ""
    evidence: list[str] = []
    note: str = ""
    outside_change: bool = False
    deleted: bool = False
    size: int | None = None
    sha256: str | None = None
    moved_from: str | None = None
    diff: str | UnsetType = UNSET
    diff_note: str | UnsetType = UNSET


class FileLine(Change):
    """A line of a file's newest known content, and the message that last wrote it."""

    text: str = ""


class History(Answer):
    """Oldest first; a path that no session touched has no revisions."""

    path: str = ""
    grade: str = ""
    deleted: bool = False
    revisions: list[FileRevision] = []
    warnings: list[str] = []
    lines: list[FileLine] | UnsetType = UNSET


class LineAuthor(Change):
    """A change that wrote lines, the title of its session, and the beginning of the prompt that asked for it."""

    session_title: str = ""
    prompt_id: str = ""
    prompt: str = ""


class Lines(Answer):
    """Some lines of a file at a moment: `lines` are those from number `start` of `total`; the first line is 0.

    `state` is the revision that has them, and `note` says why there are none; `last` is then the time of the newest
    one with a content. `by` has the index in `authors` of each line's author, -1 for an unknown one. `cut` is how many
    of the lines are longer than what is given of them. `redacted`: secrets in the file are hidden.
    """

    path: str = ""
    at: int | None = None
    known: bool = False
    state: FileRevision | None = None
    last: int | None = None
    redacted: bool = False
    note: str = ""
    total: int = 0
    start: int = 0
    cut: int = 0
    lines: list[str] = []
    by: list[int] = []
    authors: list[LineAuthor] = []
    warnings: list[str] = []


class Diff(Answer):
    """What a file's state `new` changed in its state `old`, as the hunks of a unified diff.

    A state is null where nothing was recorded by then. `note` says why `diff` is empty.
    """

    path: str = ""
    old: FileRevision | None = None
    new: FileRevision | None = None
    diff: str = ""
    note: str = ""
    warnings: list[str] = []


class LastContent(Change):
    """The newest revision whose content is known, of a file that is deleted or whose last content is not."""

    grade: str = ""
    size: int | None = None
    sha256: str | None = None


class Content(Answer):
    """What a file held. `content_base64` is null where nothing is known or the file was deleted: then see `last`.

    `redacted`: secrets in it are hidden; `sha256` and `size` are always the file's own.
    """

    path: str = ""
    at: int | None = None
    known: bool = False
    grade: str = ""
    proven: bool = False
    deleted: bool = False
    partial: bool = False
    sha256: str | None = None
    size: int | None = None
    redacted: bool = False
    last: LastContent | None = None
    warnings: list[str] = []
    time: int | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    tool: str | UnsetType = UNSET
    evidence: list[str] | UnsetType = UNSET
    note: str | UnsetType = UNSET
    content_base64: str | None = None


class SkippedFile(Answer):
    """A file that is not restored, and why."""

    path: str = ""
    reason: str = ""


class Restore(Answer):
    """`files` is how many were handed out, `deleted` how many of the skipped ones had only been deleted."""

    path: str = ""
    files: int = 0
    deleted: int = 0
    skipped: list[SkippedFile] = []
    warnings: list[str] = []


class FolderAlias(Answer):
    """The folder `old` is `new` now."""

    old: str = ""
    new: str = ""


class Alias(Answer):
    """All there are."""

    aliases: list[FolderAlias] = []
    warnings: list[str] = []
