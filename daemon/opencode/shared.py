"""Reading records of any size: a large message goes into a spool as it is read, a record over the limit into a file.

A message's parts are held in memory while they are small together. Beyond that each is written down as it was read, so
that whoever goes through them again finds the same bytes although OpenCode goes on writing. What is over
``limits.record_mb`` is not taken apart: it is copied in pieces to where it is kept whole, and named.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from functools import partial

from daemon import records
from daemon.errors import DiskFull
from daemon.filesystem.large_files import LargeFiles, Spool
from daemon.model import LARGE, Part, Parts
from daemon.opencode import Problem

PIECE = 1 << 20
"""Bytes of one piece of a record that is copied."""


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
            self._spool = Spool(self._large.spool() if self._large else tempfile.TemporaryFile())  # noqa: SIM115
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
    """A record over the limit, kept whole if there is room, and named. `part_id` is empty for the message's own."""
    reason = f"{place}: {size} bytes, more than limits.record_mb allows"
    if large is None:
        return Problem(place, reason, size, part_id=part_id)
    try:
        sha256 = large.keep(pieces, size)
    except DiskFull as error:
        return Problem(place, f"{reason}; not kept: {error}", size, part_id=part_id, waits=True)
    return Problem(place, f"{reason}; kept whole, not searched", size, sha256, part_id, is_kept=True)
