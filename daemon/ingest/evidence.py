"""Extracts evidence from records: file edits, objects to capture, and data of whole sessions.

Evidence goes into the batch of its records, so that a crash leaves neither without the other. For archives of older
versions, `renew` extracts the file edits again, and `move_events` separates events from messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from daemon import log, records
from daemon.archive import Archive, Batch, keys
from daemon.archive.forgotten import DIFFS
from daemon.archive.objects import BLOB
from daemon.errors import BadRecord, SourceBusy, Unreadable
from daemon.exclude import Exclusion
from daemon.ingest.capture import LEFT_OUT, Capture
from daemon.ingest.forgotten_paths import exclusion_of
from daemon.model import FileEdit, Json, Message, Operation, Session
from daemon.opencode import Source, configuration
from daemon.opencode.database_v2 import TYPE, is_session_event, session_event
from daemon.opencode.json_files import session_diffs
from daemon.transcript.evidence.attachments import attached_blobs
from daemon.transcript.evidence.edits import each_edit
from daemon.transcript.evidence.recorded_diffs import session_diff_edits
from daemon.transcript.tool_calls import working_directory, worktree

VERSION = "7"
"""Version of the extraction; raise it to extract the file edits of existing archives again."""

_NOTE = "file edits"
_EVENTS_NOTE = "events are no messages"
_LOG = log.get("evidence")
_AT_ONCE = 200
_RECENT_S = 2.0
"""Consecutive sessions often share a folder, so within this time its configuration is read only once."""

Progress = Callable[[int, int], None]
Note = Callable[[str, BadRecord | SourceBusy | None], None]
"""Called with a place and why it cannot be read; or with None, because it was read."""


class Evidence:
    """Extracts file evidence from records; `data_dir` and `further` are OpenCode's folders with session_diff files."""

    def __init__(
        self,
        archive: Archive,
        capture: Capture,
        data_dir: Path,
        record_mb: int,
        further: Sequence[Path] = (),
        *,
        exclusion: Exclusion | None = None,
    ) -> None:
        self._exclusion = exclusion or Exclusion()
        self._archive = archive
        self._capture = capture
        self._data_dirs = (data_dir, *further)
        self._record_mb = record_mb
        self._roots: dict[str, str] = {}
        self._configured: dict[str, float] = {}  # folder -> when its configuration was looked at
        if next(iter(archive.all_message_ids()), None) is None:
            archive.set_note(_NOTE, VERSION)

    # -- messages ------------------------------------------------------------------------------------------------

    def of_message(
        self, batch: Batch, message: Message, session: Session | None, peek: Callable[[], Iterable[Message]]
    ) -> Iterator[FileEdit]:
        """Yield the message's file edits; queues the objects they name and stores attachments. `peek`: its session.

        They are yielded one by one; consume all of them.
        """
        root = ""
        # A prompt does not name its work tree, nor does a message of which only the parts are left.
        if not records.table(message.data.get("path")) and _needs_root(message):
            root = self._root(message.session_id, peek)
        self._of_parts(batch, message, session)
        for edit in each_edit(message, session, root=root):
            self._capture.want(batch, [edit])
            yield edit

    def _of_parts(self, batch: Batch, message: Message, session: Session | None) -> None:
        """Store the parts' attachments, and queue the outputs that they name."""
        for content in attached_blobs(message, session):
            self._archive.objects.put(batch, BLOB, content)
        for part in message.parts:
            if part.type == "tool":
                state = records.table(part.data.get("state"))
                spilled = records.text(records.table(state.get("metadata")).get("outputPath"))
                if spilled:
                    bases = dict.fromkeys((working_directory(message, session), worktree(message, session)))
                    self._capture.want_file(batch, spilled, message.created, [base for base in bases if base])

    def _root(self, session_id: str, peek: Callable[[], Iterable[Message]]) -> str:
        """The work tree from a session's answers, because a prompt does not have it."""
        if not self._roots.get(session_id):
            if len(self._roots) > 10_000:
                self._roots.clear()
            for message in peek():
                root = records.text(records.table(message.data.get("path")).get("root"))
                if len(root) > 1:
                    self._roots[session_id] = root
                    break
        return self._roots.get(session_id, "")

    # -- sessions ------------------------------------------------------------------------------------------------

    def of_session(
        self, batch: Batch, source: Source, session: Session, peek: Callable[[], Iterable[Message]], note: Note
    ) -> bool:
        """Store the session's reverts, session_diff file and formatters; unreadable ones are read at the next scan.

        Returns whether something was new.
        """
        place = f"session_diff of {session.id}"
        self._note_formatters(batch, session.directory.rstrip("/"))
        old = self._archive.files.session_extra(session.id)
        reverts: Json = dict(old.get("reverts", {}))  # by source: a mark that one gives and takes back is not another's
        try:
            marks = [asdict(mark) for mark in source.reverts(session.id)]
            reverts[source.name] = _remembered(source, session.id, reverts.get(source.name, []), marks)
        except (BadRecord, SourceBusy) as error:
            _LOG.debug("reverts unreadable", source=source.name, session=session.id)
            if not isinstance(error, BadRecord) or isinstance(error, Unreadable):
                note(f"reverts of {session.id}", error)
        else:
            note(f"reverts of {session.id}", None)
        diffs: list[Json] = []
        written = 0
        try:
            # A session belongs to one data directory; in a copy of it, the file that was written last counts.
            listings = (session_diffs(folder, session.id, self._record_mb) for folder in self._data_dirs)
            diffs, written = max(listings, key=lambda listing: listing[1])
            note(place, None)
        except (BadRecord, SourceBusy) as error:
            note(place, error)
        if self._archive.forgotten.has(DIFFS, session.id):
            diffs, old = [], old | {"diffs": []}
        if not diffs:  # gone or emptied at the source, so keep the old ones
            diffs, written = old.get("diffs", []), old.get("diff_time", 0)
        if not any(reverts.values()) and not diffs and not old:
            return False
        root = self._root(session.id, peek) if diffs else ""
        diffs = self._exclusion.diffs(diffs, [place for place in (root, session.directory) if place])
        diffs = self._exclusion.values(diffs)
        if (forgotten := exclusion_of(self._archive.forgotten, session.id)) is not None:
            diffs = forgotten.diffs(diffs, [place for place in (root, session.directory) if place])
        extra = {"reverts": reverts, "diffs": diffs, "diff_time": written}
        edits = session_diff_edits(session, diffs, written, root=root)
        is_new = batch.session_extra(session.id, extra, edits)
        trees = [_tree(session, mark) for marks in reverts.values() for mark in marks if mark.get("snapshot")]
        self._capture.want(batch, trees)
        return is_new

    def of_todos(self, batch: Batch, source: Source, session_id: str, note: Note) -> bool:
        """Store the session's current todo list; returns whether it is new."""
        place = f"todo list of {session_id}"
        try:
            todos = source.todos(session_id)
        except (BadRecord, SourceBusy) as error:
            note(place, error)
            return False
        note(place, None)
        if todos is None:
            return False
        return self._archive.beside.put_todos(batch, session_id, source.name, todos.items, todos.time)

    def _note_formatters(self, batch: Batch, directory: str) -> None:
        """Add the folder's formatters in OpenCode's current configuration; former ones stay."""
        now = time.monotonic()
        if now - self._configured.get(directory, -_RECENT_S) < _RECENT_S:
            return
        self._configured[directory] = now
        name = f"formatters {directory}"
        known = configuration.from_json(self._archive.note(name))
        settings = known | configuration.on_disk(directory)
        if settings != known:
            batch.put(keys.note(name), configuration.to_json(settings).encode())
            batch.outdate(directory or "/")

    def of_projects(self, source: Source) -> None:
        """Store which folders belong to one project, to recognise renamed and cloned ones."""
        try:
            projects = source.projects()
        except (BadRecord, SourceBusy):
            return  # read again by the next scan; only a hint depends on it
        names = ("id", "worktree", "sandboxes", "directories")
        text = records.dumps([{name: project.get(name) for name in names} for project in projects]).decode()
        if self._archive.note(f"projects {source.name}") != text:
            self._archive.set_note(f"projects {source.name}", text)

    # -- renewal -------------------------------------------------------------------------------------------------

    def renew(self, progress: Progress | None = None) -> int:
        """Extract the file edits of every message again if an older version did; returns the number of messages.

        Also after a change of exclude.paths, because that queues again what was not captured under the former one.
        """
        is_left_out = self._archive.note(LEFT_OUT) not in ("", self._exclusion.fingerprint)
        if self._archive.note(_NOTE) == VERSION and not is_left_out:
            return 0
        order = list(self._archive.all_message_ids())
        batch = self._archive.batch()
        for number, message_id in enumerate(order, 1):
            message = self._archive.message(message_id)
            if message is not None:
                session = self._archive.session(message.session_id)
                edits = self.of_message(batch, message, session, partial(self._archive.messages, message.session_id))
                batch.renew_edits(message_id, edits)
            if number % _AT_ONCE == 0 or number == len(order):
                self._archive.commit(batch)
                batch = self._archive.batch()
                if progress is not None:
                    progress(number, len(order))
        self._archive.set_note(_NOTE, VERSION)
        self._archive.set_note(LEFT_OUT, "")
        return len(order)


def _needs_root(message: Message) -> bool:
    diffs = records.table(message.data.get("summary")).get("diffs")
    return bool(diffs) or any(part.type in ("step-start", "step-finish", "patch") for part in message.parts)


def _remembered(source: Source, session_id: str, old: list[Json], new: list[Json]) -> list[Json]:
    """`new`, and earlier pending reverts, which a source without a journal forgets at the next prompt.

    A revert that is no longer pending has ended: it became final, or was undone. The first time that we saw it is the
    closest to its own time.
    """
    if any(mark["is_exact"] for mark in new):
        return new
    marks: list[Json] = []
    for mark in old:
        if mark.get("is_exact", True):
            continue
        if "ended" not in mark and not any(_is_same(mark, earlier) for earlier in new):
            is_final = not _is_there(source, session_id, mark)
            marks.append(mark | {"ended": _ended(source, session_id, mark), "is_final": is_final})
        else:
            marks.append(mark)
    return marks + [
        mark for mark in new if not any("ended" not in earlier and _is_same(mark, earlier) for earlier in marks)
    ]


def _ended(source: Source, session_id: str, mark: Json) -> int:
    """The latest end of a revert: when its session last changed, or just before the first later prompt.

    We read the source's record, because the archived one is as old as the scan that saw the revert pending.
    """
    updated = source.read_session(session_id).updated
    times = (records.time_of(message_id, updated) for message_id in source.messages(session_id))
    return max(
        records.integer(mark["time"]) + 1,
        min([updated, *(time for time in times if time is not None and time > mark["time"])]),
    )


def _is_same(mark: Json, second_mark: Json) -> bool:
    return mark | {"time": 0} == second_mark | {"time": 0}


def _is_there(source: Source, session_id: str, mark: Json) -> bool:
    """Whether the reverted messages are still, or again, part of the session."""
    if mark["message_id"] not in source.messages(session_id):
        return False
    reading = source.read_message(session_id, mark["message_id"])
    if reading.message is None or reading.orphan:
        return False
    return not mark["part_id"] or any(part.id == mark["part_id"] for part in reading.message.parts)


def _tree(session: Session, mark: Json) -> FileEdit:
    """An edit that only names a revert's tree, so that the tree is captured."""
    moment, place = records.integer(mark.get("time")), session.directory or "/"
    tree = records.text(mark.get("snapshot"))
    return FileEdit(place, moment, session.id, "", "", "revert", Operation.STEP, blob=tree)


def move_events(archive: Archive) -> int:
    """Convert the empty answers of archives of version 0.1 to events, once; returns their number.

    They are events of OpenCode 1.15 and 2, such as a change of the model. A session that has nothing else and no record
    of its own was created for them, and is removed.
    """
    if archive.note(_EVENTS_NOTE):
        return 0
    batch, number = archive.batch(), 0
    for message_id in list(archive.all_message_ids()):
        state = archive.state(message_id)
        message = archive.message(message_id) if state is not None and not state["parts"] else None
        if message is None or not is_session_event(message_id, records.text(message.data.get(TYPE))):
            continue
        _move(archive, batch, message)
        number += 1
        if number % _AT_ONCE == 0:
            archive.commit(batch)
            batch = archive.batch()
    archive.commit(batch)
    archive.set_note(_EVENTS_NOTE, "1")
    return number


def _move(archive: Archive, batch: Batch, message: Message) -> None:
    data = message.data
    verbatim = records.dumps(data.get("v2", {}))
    raw = session_event(message.session_id, message.id, records.text(data.get(TYPE)), data.get("time"), verbatim)
    archive.beside.put_event(batch, message.session_id, message.id, raw)
    batch.drop_message(message.id)
    session = archive.session(message.session_id)
    if session is not None and session.raw == b"{}" and not batch.message_ids(message.session_id):
        batch.drop_session(message.session_id)
