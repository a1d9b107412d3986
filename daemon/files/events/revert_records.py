"""Finds the reverts of a session and their times in the records (opencode-formats.md, Reverts).

The journal of 1.18 records each one and its time. Elsewhere the session's record has a pending one, which we keep after
the next prompt has cleared it; other reverts show only because messages, or the last parts of one, are gone. Up to 1.15
the session_diff file may be of a turn or of a revert: `check_session_diff` compares it with the remaining trees.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from daemon import records
from daemon.archive import Archive
from daemon.errors import BadRecord
from daemon.files.trees import UNKNOWN, Objects
from daemon.model import FileEdit, Json, Message, Operation, Part, Session
from daemon.opencode.shared import pending_revert
from daemon.records import blob_id
from daemon.transcript.evidence.recorded_diffs import recorded_sides
from daemon.transcript.evidence.steps import FINISH, START
from daemon.transcript.paths import unquoted

_MARK = b"\xef\xbb\xbf"
_LOSSY = "\ufffd"
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_SPAN = 1 << 48  # ids keep the low 48 bits of their clock
_CHANGING_PARTS = frozenset({"tool", "patch"})
"""The parts that record a file's change: one that is gone may have been reverted."""
_AT_ONE_STROKE_MS = 2000
"""A revert writes the session_diff file and then the session's record: within this time both are of one revert."""


@dataclass(frozen=True, slots=True)
class Revert:
    """A revert of the messages from `first` on, or from its `part` on, between `after` and `time` (epoch ms).

    `tree` is the state before the revert, `diff` git's diff from there to the files after it. `undone` is when the
    revert was undone, None if it was not; `until`: it may have been undone without a record up to this time. Without
    `is_recorded` we infer it from missing messages; a person may also have deleted these one by one, which changes no
    file.
    """

    first: str
    part: str
    after: int
    time: int
    tree: str = ""
    diff: str = ""
    undone: int | None = None
    until: int | None = None
    is_recorded: bool = True


def reverts(archive: Archive, session_id: str, edits: list[FileEdit]) -> list[Revert]:
    """The reverts of a session; `edits` are its edits in the replay."""
    session, state = archive.session(session_id), archive.session_state(session_id)
    is_here = session is not None and state is not None and state["deleted"] is None
    now = _pending(session) if session is not None and is_here else []
    extra = archive.files.session_extra(session_id)
    marks_by_source = extra.get("reverts", {})
    reverts_so_far = [revert for marks in marks_by_source.values() for revert in _exact(marks)]
    inexact = [mark for marks in marks_by_source.values() for mark in marks if not mark.get("is_exact", True)]
    for mark in [*inexact, *now]:
        if any(_is_same(mark, revert) and revert.undone is None for revert in reverts_so_far):
            continue  # known more exactly, or already
        times = [edit.time for edit in edits if edit.message_id and is_from(edit.message_id, mark["message_id"])]
        time = mark["time"] if mark in inexact else max([mark["time"], *times])
        is_exact = abs(extra.get("diff_time", 0) - time) <= _AT_ONE_STROKE_MS
        after = time if is_exact else max((moment for moment in times if moment <= time), default=time)
        revert = replace(_revert(mark), after=after, time=time)
        is_over = is_here and not any(_is_same(moment, revert) for moment in now)
        reverts_so_far.append(_ended(archive, session, mark, revert) if is_over or "ended" in mark else revert)
    if session is not None and is_here:
        reverts_so_far += _removed(archive, session, edits, reverts_so_far)
    return reverts_so_far


def _pending(session: Session) -> list[Json]:
    """The revert in a session's record; in the database it is JSON text."""
    try:
        revert = records.table(records.loads(session.raw)).get("revert")
        revert = records.loads(revert.encode()) if isinstance(revert, str) and revert else revert
    except BadRecord:
        return []
    return [asdict(mark) for mark in pending_revert(revert, session.updated)]


def _exact(marks: Iterable[Json]) -> list[Revert]:
    """The reverts in a journal with their times, set and cleared in turn."""
    exact: list[Revert] = []
    for mark in marks:
        if not mark.get("is_exact", True):
            continue
        if not mark["is_undone"]:
            exact.append(_revert(mark))
        elif exact and exact[-1].undone is None:
            exact[-1] = replace(exact[-1], undone=records.integer(mark["time"]))
    return exact


def _revert(mark: Json) -> Revert:
    time = records.integer(mark["time"])
    return Revert(mark["message_id"], mark["part_id"], time, time, mark["snapshot"], mark.get("diff", ""))


def _is_same(mark: Json, revert: Revert) -> bool:
    return (mark["message_id"], mark["part_id"], mark["snapshot"]) == (revert.first, revert.part, revert.tree)


def _ended(archive: Archive, session: Session | None, mark: Json, revert: Revert) -> Revert:
    """A revert that is no longer pending: final, or undone before our scan, or one of the two."""
    if "ended" in mark:
        return revert if mark["is_final"] else replace(revert, undone=mark["ended"], until=mark["ended"])
    if archive.is_deleted(revert.first) or revert.part in archive.gone(revert.first):
        return revert
    return replace(revert, until=max(revert.time + 1, session.updated if session is not None else 0))


# -- what they took back -----------------------------------------------------------------------------------------


def marks(archive: Archive, session_id: str) -> dict[str, str]:
    """The messages that a revert took back and that did not come back: ``whole``, in ``part``, or ``perhaps``.

    ``perhaps`` where no revert is recorded, but messages are missing as after one.
    """
    session = archive.session(session_id)
    if session is None or not may_have_any(archive, session, archive.message_ids(session_id)):
        return {}
    created: dict[str, int] = {}
    edits: list[FileEdit] = []
    for message in archive.messages(session_id):
        created[message.id] = message.created
        edits += part_edits([message])
    marked: dict[str, str] = {}
    for revert in reverts(archive, session_id, edits):
        if revert.undone is not None or revert.until is not None:
            continue
        for message_id, time in created.items():
            if _covers(revert, message_id, time) and marked.get(message_id, "perhaps") == "perhaps":
                is_part = revert.part != "" and message_id == revert.first
                marked[message_id] = "perhaps" if not revert.is_recorded else "part" if is_part else "whole"
    return marked


def may_have_any(archive: Archive, session: Session, message_ids: Iterable[str]) -> bool:
    """Whether there is any sign of a revert of these messages.

    Few sessions have one, and finding them reads every message's state.
    """
    if b'"revert"' in session.raw or archive.files.session_extra(session.id).get("reverts"):
        return True
    states = (archive.state(message_id) or {} for message_id in message_ids)
    return any(state.get("deleted") is not None or state.get("gone") for state in states)


def is_covered(revert: Revert, message: Message) -> bool:
    """Whether a revert took back a message, or some of its parts."""
    return _covers(revert, message.id, message.created)


def _covers(revert: Revert, message_id: str, created: int) -> bool:
    return created <= revert.time and is_from(message_id, revert.first)


def part_edits(messages: Iterable[Message]) -> list[FileEdit]:
    """One event for each part that may have changed files: the reverts of a session are found by these."""
    return [
        FileEdit("", _time(part, message), part.session_id, message.id, part.id, "", Operation.UNCLEAR)
        for message in messages
        for part in message.parts
        if part.type in _CHANGING_PARTS
    ]


def _time(part: Part, message: Message) -> int:
    time = records.table(records.table(part.data.get("state")).get("time"))
    return max(message.created, records.integer(time.get("end")))


# -- reverts that only missing messages show ---------------------------------------------------------------------


def _removed(archive: Archive, session: Session, edits: list[FileEdit], known: list[Revert]) -> Iterator[Revert]:
    """Reverts inferred from missing messages, one for each run of missing or truncated messages.

    Each came after the last reverted event, and before the prompt that removed the messages, or before our scan.
    """
    parts: dict[str, set[str]] = defaultdict(set)
    for edit in edits:
        parts[edit.message_id].add(edit.part_id)
    order = archive.message_ids(session.id)
    lost = {lost_id: _lost(archive, lost_id, parts[lost_id], known) for lost_id in order if lost_id in parts}
    if not any(part is not None for part in lost.values()):
        return
    run: list[str] = []
    for message_id in [*order, ""]:
        part = lost.get(message_id) if message_id in parts else _lost(archive, message_id, set(), known)
        if run and (part is None or part):
            state = archive.state(message_id) or {}
            yield _run(archive, session, edits, run, lost.get(run[0]) or "", before=state.get("created"))
            run = []
        if part is not None:
            run.append(message_id)


def _lost(archive: Archive, message_id: str, touching: set[str], known: list[Revert]) -> str | None:
    """The first missing part of a message, empty for all of it; None if nothing is missing, or by a known revert."""
    state = archive.state(message_id)
    if state is None or any(_explains(revert, message_id, state["created"]) for revert in known):
        return None
    if state["deleted"] is not None:
        return ""
    return min(touching & archive.gone(message_id), default=None) if touching else None


def _explains(revert: Revert, message_id: str, created: int) -> bool:
    return revert.undone is None and created <= revert.time and is_from(message_id, revert.first)


def _run(
    archive: Archive, session: Session, edits: list[FileEdit], run: list[str], part: str, *, before: int | None
) -> Revert:
    states = [archive.state(state) or {} for state in run]
    ends = [edit.time for edit in edits if edit.message_id in run]
    after = max([*(state.get("created", 0) for state in states), *ends])
    noticed = min(state.get("deleted") or session.updated for state in states)
    return Revert(run[0], part, after, max(after + 1, noticed if before is None else before - 1), is_recorded=False)


def is_from(message_id: str, first: str) -> bool:
    """Whether a message of the same session is `first` or later, by the clock in their ids, which wraps."""
    id_match, first_match = _ID.match(message_id), _ID.match(first)
    if id_match is None or first_match is None:
        return message_id >= first
    return message_id == first or 0 < (int(id_match[1], 16) - int(first_match[1], 16)) % _SPAN < _SPAN // 2


# -- the session_diff file ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionDiffCheck:
    """A session_diff file compared with the snapshot trees of existing messages.

    `is_matched`: the trees contain both sides of every diff. `is_prompted`: something other than an answer follows the
    last tree, or there is none. `is_kept`: the last tree is in the archive.
    """

    is_matched: bool = False
    is_prompted: bool = False
    is_kept: bool = False


def check_session_diff(archive: Archive, session_id: str, edits: Iterable[FileEdit]) -> SessionDiffCheck:
    """Compare a session's session_diff file with its trees, which are among `edits`.

    Up to 1.15 OpenCode writes the file at the end of every turn: the diff from the session's first tree to its last. In
    every version a revert writes it, from the first tree of the reverted messages to the last. If trees of existing
    messages have both sides, no revert has removed those messages, and a revert of other messages would have written
    another file. The next prompt removes messages, so after a prompt without a later tree the doubt remains. A deleted
    session proves nothing, because we do not know what came after our last scan.
    """
    state = archive.session_state(session_id)
    if state is None or state["deleted"] is not None:
        return SessionDiffCheck()
    order = archive.message_ids(session_id)
    trees = _trees_left(archive, order, edits)
    if not trees:
        return SessionDiffCheck(is_prompted=True)
    is_prompted = _is_prompted_after(archive, order, trees[-1])
    if archive.objects.tree(trees[-1].blob) is None:
        return SessionDiffCheck(is_prompted=is_prompted)
    diffs = archive.files.session_extra(session_id).get("diffs", [])
    by_name = {
        unquoted(records.text(diff.get("file"))): sides for diff in diffs if (sides := recorded_sides(diff)) is not None
    }
    before, after = ({name: sides[which] for name, sides in by_name.items()} for which in (0, 1))
    is_matched = _shows_all(archive.objects, trees, START, before) and _shows_all(archive.objects, trees, FINISH, after)
    return SessionDiffCheck(is_matched and by_name != {}, is_prompted, is_kept=True)


def _trees_left(archive: Archive, order: list[str], edits: Iterable[FileEdit]) -> list[FileEdit]:
    """The trees of existing messages and parts, in the order of the conversation."""
    number = {message_id: n for n, message_id in enumerate(order) if not archive.is_deleted(message_id)}
    trees = [e for e in edits if e.operation is Operation.SNAPSHOT and e.message_id in number]
    remaining = [tree for tree in trees if tree.part_id not in archive.gone(tree.message_id)]
    return sorted(remaining, key=lambda tree: (number[tree.message_id], tree.part_id))


def _is_prompted_after(archive: Archive, order: list[str], tree: FileEdit) -> bool:
    """Whether anything other than answers follows the message of a tree, existing or not."""
    following = map(archive.message, order[order.index(tree.message_id) + 1 :])
    return any(message is None or message.role != "assistant" for message in following)


def _shows_all(objects: Objects, trees: list[FileEdit], side: str, files: dict[str, str | None]) -> bool:
    """Whether a tree at this side of a step contains all of `files`, None for no file."""
    ids = dict.fromkeys(tree.blob for tree in reversed(trees) if tree.note == side)
    return any(all(_holds(objects, id_, name, content) for name, content in files.items()) for id_ in ids)


def _holds(objects: Objects, tree: str, name: str, content: str | None) -> bool:
    entry = objects.find(tree, name)
    if entry is None or content is None:
        return entry is None and content is None
    data = content.encode()
    return entry[1] in (blob_id(data), blob_id(_MARK + data)) or (_LOSSY in content and entry[0] != UNKNOWN)
