"""Recovered files as a model is shown them: a list, a history, a content; from the file histories, never from the disk.

Everything here is recorded text (paths too) and goes into blocks; the grades are explained in our words.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from daemon.files import FileHistory, Revision
from daemon.files.trees import above, is_beneath
from daemon.model import Operation
from daemon.reconstitute.agent.context.blocks import clean, name, utc
from daemon.reconstitute.agent.tools.paths import Paths
from daemon.reconstitute.recover import MEANING, State, evidence

_REMARK_BYTES = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of a file's content: the revision it is from, cleaned text, and what must be said of it."""

    revision: Revision
    text: str
    notes: tuple[str, ...]


def files_of(histories: Iterable[FileHistory]) -> list[FileHistory]:
    """Those that are files: no folder that a command named, nothing that was only ever taken away."""
    known = list(histories)
    folders = {folder for history in known for folder in above(history.path)}
    return [
        history
        for history in known
        if any(not revision.deleted or revision.whole is not None for revision in history.revisions)
        and not (history.path in folders and all(r.whole is None and r.fragments is None for r in history.revisions))
    ]


def state(history: FileHistory) -> State:
    """As people are told it: the grade of its last state, or that it was deleted."""
    last = history.latest
    if last is not None and last.deleted and last.proven:
        return State.DELETED
    return State(history.grade.value)


def listing(files: Sequence[FileHistory], paths: Paths, folder: str) -> list[str]:
    """A line for each file at or beneath `folder`, sorted."""
    return [_line(history, paths) for history in files if is_beneath(history.path, folder)]


def overview(files: Sequence[FileHistory], paths: Paths, folder: str) -> list[str]:
    """A line for each file in `folder` itself, and one for each folder in it with the number of files beneath."""
    inside = [history for history in files if is_beneath(history.path, folder) and history.path != folder]
    start = len(folder.rstrip("/")) + 1
    counts = Counter(history.path[start:].split("/", 1)[0] for history in inside if "/" in history.path[start:])
    folders = [
        f"{name(paths.relative(posixpath.join(folder, each)))}/ ({number} files)" for each, number in counts.items()
    ]
    return sorted(folders) + [_line(history, paths) for history in inside if "/" not in history.path[start:]]


def _line(history: FileHistory, paths: Paths) -> str:
    changed = history.last_change
    when = f"last changed {utc(changed.time)}" if changed is not None else "no change recorded"
    held = next((revision.size for revision in reversed(history.revisions) if revision.size is not None), None)
    size = f"{held} bytes | " if held is not None else ""
    recorded = len(history.revisions)
    return f"{name(paths.relative(history.path), 400)} | {state(history)} | {size}{recorded} recorded | {when}"


def history_lines(history: FileHistory) -> list[tuple[Revision, str]]:
    """Each revision with a line that tells it, the newest first."""
    return [(revision, _told(revision)) for revision in reversed(history.revisions)]


def _told(revision: Revision) -> str:
    operation, tool = str(revision.operation), name(revision.tool)
    what = "deleted" if revision.deleted else "" if revision.size is None else f"{revision.size} bytes"
    moved = f"moved from {name(revision.moved_from, 400)}" if revision.moved_from else ""
    facts = [
        utc(revision.time),
        str(revision.grade),
        what,
        operation if tool in {"", operation} else f"{operation} by {tool}",
        moved,
        name(evidence(revision), _REMARK_BYTES),
        f"message {name(revision.message_id)}" if revision.message_id else "",
    ]
    return " | ".join(fact for fact in facts if fact)


def content(history: FileHistory) -> Content | None:
    """The newest state of the file in which it was there, as far as it is known; None where no content is known."""
    held = next((revision for revision in reversed(history.revisions) if not revision.deleted), None)
    if held is None:
        return None
    shown = held if _is_known(held) else None
    notes = []
    if shown is None:
        shown = next((r for r in reversed(history.revisions) if r.proven and r.whole is not None), None)
        if shown is None:
            return None
        notes.append("the state after this one is not known")
    if history.deleted:
        notes.append("the file was deleted later; this is what it held before")
    if not shown.proven:
        notes.append(f"{shown.grade}: {MEANING[State(shown.grade.value)]}")
    if shown.operation is Operation.UNCLEAR:
        notes.append("something may have changed it since")
    text, remark = _text(shown)
    return Content(shown, text, (*notes, *([remark] if remark else [])))


def _is_known(revision: Revision) -> bool:
    return revision.whole is not None or (revision.fragments is not None and bool(revision.fragments.runs))


def _text(revision: Revision) -> tuple[str, str]:
    """The text of a revision, and what must be said where it is not as it was."""
    if revision.whole is None:
        return clean(revision.fragments.marked() if revision.fragments is not None else ""), ""
    data = revision.content
    if data is None:
        return "", "the content is known by its hash, but it was not kept"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "", f"the content ({len(data)} bytes) is no UTF-8 text and is not shown"
    if "\0" in text:
        return "", f"the content ({len(data)} bytes) is binary and is not shown"
    return clean(text), "" if text else "the file is empty"
