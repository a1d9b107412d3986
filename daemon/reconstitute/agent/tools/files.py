"""The tools that look at recovered files: a list, a content, a history. They read file histories, never the disk.

Everything here is recorded text, paths too, and goes into blocks; grades are explained in our words. Nothing later than
the moment in question is shown.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from daemon.errors import BadRequest
from daemon.files import FileHistory, Revision
from daemon.files.trees import above, is_beneath
from daemon.model import Operation
from daemon.moments import parse_moment
from daemon.reconstitute.agent.context.blocks import Origin, body_bytes, clean, cut_at_space, fenced, name, size, utc
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.call import Evidence, Paths, Result
from daemon.reconstitute.recover import MEANING, State, evidence

_LONGEST_PATH = 400
_REMARK_BYTES = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of a file's content: the revision it is from, cleaned text, and what must be said of it."""

    revision: Revision
    text: str
    notes: tuple[str, ...]


def files_of(histories: Iterable[FileHistory]) -> list[FileHistory]:
    """Those that are files: no folder that a command named, nothing that was only ever taken away."""
    listed = list(histories)
    folders = {folder for history in listed for folder in above(history.path)}
    return [
        history
        for history in listed
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
        f"{name(paths.relative(posixpath.join(folder, subfolder)))}/ ({number} files)"
        for subfolder, number in counts.items()
    ]
    return sorted(folders) + [_line(history, paths) for history in inside if "/" not in history.path[start:]]


def _line(history: FileHistory, paths: Paths) -> str:
    last_change = history.last_change
    when = f"last changed {utc(last_change.time)}" if last_change is not None else "no change recorded"
    last_size = next((revision.size for revision in reversed(history.revisions) if revision.size is not None), None)
    size_label = f"{last_size} bytes | " if last_size is not None else ""
    recorded = len(history.revisions)
    return f"{name(paths.relative(history.path), 400)} | {state(history)} | {size_label}{recorded} recorded | {when}"


def history_lines(history: FileHistory) -> list[tuple[Revision, str]]:
    """Each revision with a line that tells it, the newest first."""
    return [(revision, _revision_line(revision)) for revision in reversed(history.revisions)]


def _revision_line(revision: Revision) -> str:
    operation, tool = str(revision.operation), name(revision.tool)
    size_label = "deleted" if revision.deleted else "" if revision.size is None else f"{revision.size} bytes"
    moved = f"moved from {name(revision.moved_from, 400)}" if revision.moved_from else ""
    facts = [
        utc(revision.time),
        str(revision.grade),
        size_label,
        operation if tool in {"", operation} else f"{operation} by {tool}",
        moved,
        name(evidence(revision), _REMARK_BYTES),
        f"message {name(revision.message_id)}" if revision.message_id else "",
    ]
    return " | ".join(fact for fact in facts if fact)


def content(history: FileHistory) -> Content | None:
    """The newest state of the file in which it was there, as far as it is known; None where no content is known."""
    last_state = next((revision for revision in reversed(history.revisions) if not revision.deleted), None)
    if last_state is None:
        return None
    revision = last_state if _is_known(last_state) else None
    notes = []
    if revision is None:
        revision = next((r for r in reversed(history.revisions) if r.proven and r.whole is not None), None)
        if revision is None:
            return None
        notes.append("the state after this one is not known")
    if history.deleted:
        notes.append("the file was deleted later; this is what it held before")
    if not revision.proven:
        notes.append(f"{revision.grade}: {MEANING[State(revision.grade.value)]}")
    if revision.operation is Operation.UNCLEAR:
        notes.append("something may have changed it since")
    text, remark = _text(revision)
    return Content(revision, text, (*notes, *([remark] if remark else [])))


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


class FileTools:
    """Each method answers one call. It raises BadRequest, in words for the model, for what cannot be answered."""

    def __init__(self, evidence: Evidence, paths: Paths) -> None:
        self._evidence, self._paths = evidence, paths
        self._histories = {history.path: history for history in evidence.histories}
        self._outside: dict[str, FileHistory] = {}
        self._listed = files_of(evidence.histories)

    def list_files(self, request: schemas.ListFiles, result: Result) -> None:
        folder = self._paths.find(request.folder) if request.folder else self._paths.target
        lines = listing(self._listed, self._paths, folder)
        added = [path for path in self._paths.added if is_beneath(path, folder)]
        lines += [f"{name(self._paths.relative(path), _LONGEST_PATH)} | named in messages, taken up" for path in added]
        heading = f"recorded files in {name(folder, _LONGEST_PATH)}: path | how well known | size | changes | last one"
        if not lines:
            raise BadRequest(f"nothing is recorded of a folder {name(folder, _LONGEST_PATH)!r}")
        if size("\n".join(lines)) > body_bytes(heading, result.bytes_left):
            lines = overview(self._listed, self._paths, folder)
        count = result.add_table(heading, lines[request.offset :])
        if request.offset + count < len(lines):
            result.add_line(
                f"It goes on: call list_files with offset {request.offset + count}, or with one of the folders."
            )

    def read_file(self, request: schemas.ReadFile, result: Result) -> None:
        history = self._history(request.path)
        until = parse_moment(request.at)
        if until is not None:
            history = history.until(until if self._evidence.moment is None else min(until, self._evidence.moment))
        label = name(self._paths.relative(history.path), _LONGEST_PATH)
        known_content = content(history)
        if known_content is None:
            what_is_known = f"it is {state(history)}" if history.revisions else "nothing is recorded of it by then"
            raise BadRequest(f"no content is known of {label!r}: {what_is_known}; file_history tells more")
        revision, text = known_content.revision, known_content.text
        heading = f"file {label} | {revision.grade} | as of {utc(revision.time)} | message {name(revision.message_id)}"
        widest = f"{heading} | characters {len(text)} to {len(text)} of {len(text)}"
        start = min(request.offset, len(text))
        page = cut_at_space(text[start:], body_bytes(widest, result.bytes_left))
        end = start + len(page)
        if (start, end) != (0, len(text)):
            heading += f" | characters {start} to {end} of {len(text)}"
        result.add_block(fenced(heading, page))
        self._note(revision.message_id, history.path, page)
        if end < len(text):
            result.add_line(f"It goes on: call read_file with offset {end}.")
        for note in known_content.notes:
            result.add_line(f"Note: {note}.")

    def file_history(self, request: schemas.FileHistory, result: Result) -> None:
        history = self._history(request.path)
        label = name(self._paths.relative(history.path), _LONGEST_PATH)
        lines = history_lines(history)[request.offset :]
        heading = f"history of {label}, now {state(history)}, newest first"
        count = result.add_table(heading, [line for _, line in lines])
        for revision, _ in lines[:count]:
            self._note(revision.message_id)
        if count < len(lines):
            result.add_line(f"It goes on: call file_history with offset {request.offset + count}.")

    def _history(self, path_text: str) -> FileHistory:
        """The history of a file of the target, or of another file that is named by its absolute path."""
        readings = self._paths.readings(path_text)
        for path in readings:
            if path in self._histories:
                return self._histories[path]
        path = readings[0]
        if not is_beneath(path, self._paths.target) and list(islice(self._evidence.archive.paths(path), 2)) == [path]:
            if path not in self._outside:
                self._outside[path] = self._evidence.holdings.files.history(path, self._evidence.moment)
            if self._outside[path].revisions:
                return self._outside[path]
        if any(reading in self._paths for reading in readings):
            raise BadRequest(f"{name(path, _LONGEST_PATH)!r} is a folder; list_files tells what is in it")
        similar = self._paths.similar(path)
        hint = f"did you mean {' or '.join(map(repr, similar))}?" if similar else "list_files names the recorded files"
        raise BadRequest(f"nothing is recorded of a file {name(path, _LONGEST_PATH)!r}; {hint}")

    def _note(self, message_id: str, path: str = "", text: str = "") -> None:
        """A message was named; with `text`, as the one that left it in the file `path`: it may be quoted from there."""
        if not message_id or not self._evidence.is_visible(message_id):
            return
        state = self._evidence.archive.state(message_id) or {}
        session = self._evidence.archive.session(state.get("session", ""))
        title = session.title if session is not None else ""
        self._evidence.ledger.note(Origin(message_id, state.get("session", ""), title, "", state.get("created", 0)))
        self._evidence.ledger.note_file(message_id, path, text)
