"""Which reverts a session has had, and when, as far as anything that was recorded tells (opencode-formats.md, Reverts).

The journal of 1.18 tells of each one, and when. Elsewhere a pending one stands in the session's record, which is kept
even when the next prompt has cleared it there; the others show only by messages, or the last parts of one, being gone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

from daemon import records
from daemon.archive import Archive
from daemon.errors import BadRecord
from daemon.model import FileEdit, Json, Session
from daemon.opencode.shared import pending_revert

_ID = re.compile(r"[a-z]+_([0-9a-f]{12})")
_SPAN = 1 << 48  # ids keep the low 48 bits of their clock
_AT_ONE_STROKE_MS = 2000
"""A revert writes the session_diff file and then the session's record: times so near to each other are its own."""


@dataclass(frozen=True, slots=True)
class Revert:
    """Messages from `first` on, of that one the parts from `part` on: reverted between `after` and `time`, epoch ms.

    `tree` is the state before it and `diff` what git then said of the files after it; `undone` when that state was
    brought back, None while it has not been. `until`: it may have been brought back without a record, up to this time.
    Without `is_told` it only shows by messages being gone, which a person may also have deleted one by one, and no file
    with them.
    """

    first: str
    part: str
    after: int
    time: int
    tree: str = ""
    diff: str = ""
    undone: int | None = None
    until: int | None = None
    is_told: bool = True


def reverts(archive: Archive, session_id: str, edits: list[FileEdit]) -> list[Revert]:
    """The reverts of a session; `edits` are those of its edits that are looked at."""
    session, state = archive.session(session_id), archive.session_state(session_id)
    is_here = session is not None and state is not None and state["deleted"] is None
    now = _pending(session) if session is not None and is_here else []
    extra = archive.files.session_extra(session_id)
    told = extra.get("reverts", {})
    found = [revert for marks in told.values() for revert in _exact(marks)]
    seen = [mark for marks in told.values() for mark in marks if not mark.get("is_exact", True)]
    for mark in [*seen, *now]:
        if any(_is_same(mark, revert) and revert.undone is None for revert in found):
            continue  # told more exactly, or as seen before
        times = [edit.time for edit in edits if edit.message_id and is_from(edit.message_id, mark["message_id"])]
        time = mark["time"] if mark in seen else max([mark["time"], *times])
        is_exact = abs(extra.get("diff_time", 0) - time) <= _AT_ONE_STROKE_MS
        after = time if is_exact else max((one for one in times if one <= time), default=time)
        revert = replace(_revert(mark), after=after, time=time)
        is_over = is_here and not any(_is_same(one, revert) for one in now)
        found.append(_ended(archive, session, mark, revert) if is_over or "ended" in mark else revert)
    if session is not None and is_here:
        found += _removed(archive, session, edits, found)
    return found


def _pending(session: Session) -> list[Json]:
    """The revert in a session's record; the database keeps it as a text of JSON."""
    try:
        revert = records.table(records.loads(session.raw)).get("revert")
        revert = records.loads(revert.encode()) if isinstance(revert, str) and revert else revert
    except BadRecord:
        return []
    return [asdict(mark) for mark in pending_revert(revert, session.updated)]


def _exact(marks: Iterable[Json]) -> list[Revert]:
    """The reverts of which a journal told the time, set and cleared in turn."""
    found: list[Revert] = []
    for mark in marks:
        if not mark.get("is_exact", True):
            continue
        if not mark["is_undone"]:
            found.append(_revert(mark))
        elif found and found[-1].undone is None:
            found[-1] = replace(found[-1], undone=records.integer(mark["time"]))
    return found


def _revert(mark: Json) -> Revert:
    time = records.integer(mark["time"])
    return Revert(mark["message_id"], mark["part_id"], time, time, mark["snapshot"], mark.get("diff", ""))


def _is_same(mark: Json, revert: Revert) -> bool:
    return (mark["message_id"], mark["part_id"], mark["snapshot"]) == (revert.first, revert.part, revert.tree)


def _ended(archive: Archive, session: Session | None, mark: Json, revert: Revert) -> Revert:
    """A revert that is not pending any more: final, undone by the time at which that was seen, or one of the two."""
    if "ended" in mark:
        return revert if mark["is_final"] else replace(revert, undone=mark["ended"], until=mark["ended"])
    if archive.is_deleted(revert.first) or revert.part in archive.gone(revert.first):
        return revert
    return replace(revert, until=max(revert.time + 1, session.updated if session is not None else 0))


# -- what only missing messages tell -----------------------------------------------------------------------------


def _removed(archive: Archive, session: Session, edits: list[FileEdit], told: list[Revert]) -> Iterator[Revert]:
    """Reverts that are not `told` otherwise, one for each run of messages that are gone or cut off.

    Each came after the last thing that was taken back, and before the prompt that removed it, or at the latest
    before we saw it gone.
    """
    parts: dict[str, set[str]] = defaultdict(set)
    for edit in edits:
        parts[edit.message_id].add(edit.part_id)
    order = archive.message_ids(session.id)
    lost = {one: _lost(archive, one, parts[one], told) for one in order if one in parts}
    if not any(part is not None for part in lost.values()):
        return
    run: list[str] = []
    for message_id in [*order, ""]:
        part = lost.get(message_id) if message_id in parts else _lost(archive, message_id, set(), told)
        if run and (part is None or part):
            state = archive.state(message_id) or {}
            yield _run(archive, session, edits, run, lost.get(run[0]) or "", before=state.get("created"))
            run = []
        if part is not None:
            run.append(message_id)


def _lost(archive: Archive, message_id: str, touching: set[str], told: list[Revert]) -> str | None:
    """From which part on a message is gone, empty for all of it; None where it is there, or what happened is told."""
    state = archive.state(message_id)
    if state is None or any(_explains(revert, message_id, state["created"]) for revert in told):
        return None
    if state["deleted"] is not None:
        return ""
    return min(touching & archive.gone(message_id), default=None) if touching else None


def _explains(revert: Revert, message_id: str, created: int) -> bool:
    return revert.undone is None and created <= revert.time and is_from(message_id, revert.first)


def _run(
    archive: Archive, session: Session, edits: list[FileEdit], run: list[str], part: str, *, before: int | None
) -> Revert:
    states = [archive.state(one) or {} for one in run]
    ends = [edit.time for edit in edits if edit.message_id in run]
    after = max([*(one.get("created", 0) for one in states), *ends])
    seen = min(one.get("deleted") or session.updated for one in states)
    return Revert(run[0], part, after, max(after + 1, seen if before is None else before - 1), is_told=False)


def is_from(message_id: str, first: str) -> bool:
    """Whether a message of the same session is `first` or came after it, by their ids' clock, which wraps."""
    one, other = _ID.match(message_id), _ID.match(first)
    if one is None or other is None:
        return message_id >= first
    return message_id == first or 0 < (int(one[1], 16) - int(other[1], 16)) % _SPAN < _SPAN // 2
