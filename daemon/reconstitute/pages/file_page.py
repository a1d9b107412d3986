"""What a file's page says beside its content: where it was, who wrote which lines, how to get it back.

Guarantees: a command is only named where it gives what the page says; a line's text is redacted as part of the whole
text, so that no piece of a secret stands alone. Pure: values for the template, no archive, no disk.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from daemon.files import FileHistory, Grade, Revision
from daemon.files.disk import Disk
from daemon.files.lines import Line, blame
from daemon.files.view import OUTSIDE
from daemon.model import Operation
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact
from daemon.visible import visible

MOST_SPANS = 50
"""Rows of the table of who wrote which lines."""
_MOST_TEXT = 256 * 1024 * 1024
"""Bytes of all revisions of a file together, above which it is not worked out who wrote which lines."""

_SEEN = {
    "read": "first seen by a read",
    "snapshot": "first seen in a snapshot",
    "summary": "first seen in a recorded diff",
    "attachment": "first seen in an attachment",
    "revert": "brought back by a revert",
}
"""What showed lines that no recorded call had written, by the name of the tool."""

_CHANGES = {
    Operation.WRITE: "written",
    Operation.APPEND: "added to",
    Operation.EDIT: "edited",
    Operation.PATCH: "patched",
    Operation.MOVE: "moved here",
    Operation.COPY: "copied here",
    Operation.TOUCH: "touched",
    Operation.READ: "read",
    Operation.READ_RANGE: "read in part",
    Operation.STATE: "seen",
    Operation.SNAPSHOT: "seen",
    Operation.UNCLEAR: "may have changed",
}
_BLANK, _NOT_SHOWN = "(blank)", "(not shown: a secret of several lines stands in the file)"
_NO_TOOLS = {"summary": "recorded diff", "": "not recorded"}


def change(revision: Revision) -> str:
    """What happened to the file, in a word or two."""
    if revision.deleted:
        return "moved away" if revision.operation is Operation.MOVE else "deleted"
    if revision.tool == "revert" and revision.operation is Operation.STATE:
        return "set back"
    done = _CHANGES.get(revision.operation, revision.operation.value)
    return f"{done}, moved here" if revision.moved_from and revision.operation is not Operation.MOVE else done


def tool(revision: Revision) -> str:
    """What did it, or showed it."""
    if revision.is_from_outside:
        return OUTSIDE
    return _NO_TOOLS.get(revision.tool, revision.tool)


@dataclass(frozen=True, slots=True)
class Span:
    """Lines in a row, counted from 1, that one message last wrote; `begins` is the first not blank, redacted."""

    first: int
    last: int
    time: int
    session_id: str
    message_id: str
    how: str
    begins: str

    @property
    def lines(self) -> str:
        """``7`` or ``7-12``."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class Writers:
    """Who wrote which lines: the first of the `spans`, how many `more` there are; `is_too_long` to work it out."""

    spans: tuple[Span, ...] = ()
    more: int = 0
    is_too_long: bool = False


def writers(file: Recovered) -> Writers:
    """Who last wrote which lines of the content the page shows; empty where one message wrote all, or it is no text."""
    best = file.best
    if best is None or best.whole is None:
        return Writers()
    known = [revision for revision in file.revisions if revision.whole is not None]
    known = known[: next(n for n, revision in enumerate(known, start=1) if revision is best)]
    if len({revision.message_id for revision in known}) < 2:
        return Writers()
    if (best.size or 0) * len(known) > _MOST_TEXT:
        return Writers(is_too_long=True)
    lines = blame(FileHistory(file.path, tuple(known)))
    if len({line.message_id for line in lines}) < 2:
        return Writers()
    spans = _spans(lines, best)
    return Writers(tuple(spans[:MOST_SPANS]), max(0, len(spans) - MOST_SPANS))


def _spans(lines: list[Line], revision: Revision) -> list[Span]:
    """Consecutive lines of one message and tool, joined."""
    safe = redact((revision.content or b"").decode("utf-8", "replace")).splitlines()
    is_plain = len(safe) == len(lines)  # a secret of several lines takes lines away: then no line is cited
    spans: list[Span] = []
    start = 0
    for end in range(1, len(lines) + 1):
        one = lines[start]
        if end < len(lines) and _owner(lines[end]) == _owner(one):
            continue
        time = max(line.time for line in lines[start:end])
        begins = next((text for text in safe[start:end] if text.strip()), _BLANK) if is_plain else _NOT_SHOWN
        how = _SEEN.get(one.tool, one.tool)
        spans.append(Span(start + 1, end, time, one.session_id, one.message_id, how, begins))
        start = end
    return spans


def _owner(line: Line) -> tuple[str, str, str]:
    return line.session_id, line.message_id, line.tool


def moves(file: Recovered) -> tuple[Revision, ...]:
    """The revisions that brought the file from another path, the newest first."""
    return tuple(revision for revision in reversed(file.revisions) if revision.moved_from)


def outside_changes(file: Recovered) -> tuple[Revision, ...]:
    """The revisions that show that something else than a recorded call had changed it, the newest first."""
    return tuple(revision for revision in reversed(file.revisions) if revision.outside_change)


def restore_command(file: Recovered, revision: Revision | None, moment: int | None) -> str:
    """The command that writes what `revision` held into a new folder; empty where none would.

    A path that cannot be shown as it is (a secret, a control character) has none either.
    """
    if revision is None or revision.deleted or revision.grade is Grade.LOST:
        return ""
    if revision.size is None and (revision.whole is not None or revision.fragments is None):
        return ""
    quoted = shlex.quote(file.path)
    if redact(quoted) != quoted or " ".join(visible(quoted).split()) != quoted:
        return ""
    flags = [] if moment is None else [f"--at {moment}"]
    if revision is not file.held:
        if FileHistory(file.path, file.revisions).at(revision.time) is not revision:
            return ""  # another one of the same millisecond came after it
        flags = [f"--at {revision.time}"]
    elif file.last.deleted:
        flags.append("--deleted")
    if not revision.proven:
        flags.append(f"--grade {revision.grade}")
    return " ".join(["reconstitute restore", quoted, "--to DIR", *flags])


def on_disk(file: Recovered) -> str:
    """How the disk compares, in words; what is shown first is what it was compared with."""
    if file.state is State.DELETED and file.disk is Disk.MISSING:
        return "nothing stands at its path"
    if file.state is State.DELETED and file.disk is Disk.PRESENT:
        return "something stands at its path again"
    if file.disk is Disk.PRESENT:
        return "something stands at its path, and there is nothing proven to compare it with"
    if file.disk is Disk.IDENTICAL or file.disk is Disk.DIFFERS:
        word = "identical to" if file.disk is Disk.IDENTICAL else "differs from"
        return f"{word} the content below"
    return str(file.disk)
