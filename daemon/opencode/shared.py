"""Code that the readers of all storages share: large messages, oversized records, projects, reverts, stamps.

The parts of a small message stay in memory. Those of a large one are written to a spool as they are read, so that a
second pass sees the same bytes although OpenCode goes on writing. A record over ``limits.record_mb`` is not parsed: it
is copied to a file of its own and reported. OpenCode keeps at most one pending revert in a session's record; the next
prompt makes it final by removing messages (opencode-formats.md, Reverts).

A project's `worktree` is the last folder used in OpenCode 1.1 and the first in 1.18, so no path is resolved by it. With
`sandboxes` and `directories` it tells which folders are clones or former names of one another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from daemon import records
from daemon.errors import BadRecord, DiskFull, OutputRefused
from daemon.filesystem.large_files import LargeFiles, Spool
from daemon.model import LARGE, Json, Part, Parts
from daemon.opencode import Problem, RevertMark
from daemon.records import time_of, time_until

PIECE = 1 << 20
"""Bytes of one piece of a record that is copied."""
_ASSISTANT_PARTS = frozenset({"step-start", "step-finish", "tool", "reasoning", "patch"})


class Gathered:
    """The parts of one message, as they are read."""

    def __init__(self, session_id: str, message_id: str, large: LargeFiles | None) -> None:
        self._ids = message_id, session_id
        self._large = large
        self._parts: list[Part] = []
        self._size = 0
        self._spool: Spool | None = None
        self._spooled: list[tuple[str, int]] = []

    @property
    def ids(self) -> set[str]:
        """The parts that are there."""
        return {part.id for part in self._parts} | {part_id for part_id, _ in self._spooled}

    def add(self, raw: bytes) -> None:
        """One part's record.

        Raises:
            BadRecord: it is none.
        """
        self.put(records.part(raw, *self._ids))

    def put(self, part: Part) -> None:
        """One part that has been read."""
        self._parts.append(part)
        self._size += len(part.raw)
        if self._size <= LARGE:
            return
        if self._spool is None:
            self._spool = Spool(self._large.spool() if self._large else tempfile.TemporaryFile())  # noqa: SIM115 - it outlives this
        self._write_down(self._spool)

    def _write_down(self, spool: Spool) -> None:
        for part in self._parts:
            self._spooled.append((part.id, spool.add([part.raw])))
        self._parts.clear()

    def parts(self) -> Sequence[Part]:
        """All of them in creation order, which is that of their ids."""
        if self._spool is None:
            return tuple(sorted(self._parts, key=lambda part: part.id))
        spool, places = self._spool, sorted(self._spooled)
        return Parts(
            [part_id for part_id, _ in places],
            lambda number: records.large_part(partial(spool.read, places[number][1]), *self._ids),
        )


def oversize(large: LargeFiles | None, place: str, part_id: str, size: int, pieces: Iterable[bytes]) -> Problem:
    """The problem for a record over the limit, which is copied whole if there is space (`part_id`: see Problem)."""
    reason = f"{place}: {size} bytes, more than limits.record_mb allows"
    if large is None:
        return Problem(place, reason, size, part_id=part_id)
    try:
        sha256 = large.keep(pieces, size)
    except BadRecord as error:
        return Problem(place, f"{reason}; not kept: {error}", size, part_id=part_id, is_excluded=True)
    except (DiskFull, OutputRefused, OSError) as error:
        return Problem(place, f"{reason}; not kept: {error}", size, part_id=part_id, waits=True)
    return Problem(place, f"{reason}; kept whole, not searched", size, sha256, part_id, is_kept=True)


def project_record(data: Json, time: Json, raw: bytes, directories: list[str] | None = None) -> Json:
    """A project from its record; `sandboxes` may be an array or, in a database, JSON text."""
    return {
        "id": records.text(data.get("id")),
        "worktree": records.text(data.get("worktree")),
        "vcs": records.text(data.get("vcs")),
        "name": records.text(data.get("name")),
        "sandboxes": _texts(data.get("sandboxes")),
        "directories": sorted(directories or ()),
        "time": time,
        "raw": raw.decode("utf-8", "replace"),
    }


def unreadable_project(project_id: str, reason: str) -> Json:
    """A project of which only the id is known."""
    return project_record({"id": project_id}, {}, b"") | {"problem": reason}


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        try:
            value = records.loads(value.encode())
        except BadRecord:
            return []  # the original text is still in `raw`
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def pending_revert(revert: object, time: int) -> list[RevertMark]:
    """The pending revert in a session's record, made at `time` at the latest; empty for any other value."""
    data = records.table(revert)
    message_id = records.text(data.get("messageID"))
    if not message_id:
        return []
    part_id, snapshot, diff = (records.text(data.get(name)) for name in ("partID", "snapshot", "diff"))
    return [RevertMark(time, message_id, part_id, snapshot, is_undone=False, diff=diff, is_exact=False)]


def orphan_record(session_id: str, message_id: str, parts: Sequence[Part], now_ms: int) -> bytes:
    """A message record for parts whose own message a revert removed; its ``orphan`` says that we made it."""
    assistant = any(part.type in _ASSISTANT_PARTS for part in parts)
    starts = [start for part in parts if (start := _start(part))]
    created = (time_of(message_id, min(starts)) if starts else time_until(message_id, now_ms)) or 0
    return records.dumps(
        {
            "id": message_id,
            "sessionID": session_id,
            "role": "assistant" if assistant else "user",
            "time": {"created": created, "completed": created},
            "orphan": True,
        }
    )


def _start(part: Part) -> int:
    """When the part started, epoch ms; 0 if it does not say so."""
    own = records.table(part.data.get("time"))
    of_call = records.table(records.table(part.data.get("state")).get("time"))
    return records.integer(own.get("start")) or records.integer(of_call.get("start"))


Stamps: TypeAlias = Mapping[str, object]
"""Of a message: by part id ("" for the message itself), what shows whether the row changed."""


def stored_text(value: object) -> str:
    """A value of a database as text, whatever its bytes are."""
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) if value is not None else ""
