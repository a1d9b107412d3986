"""Which chunks a collection holds, by message and kind: what makes records of the messages that pass a filter.

In memory, a few dozen bytes a chunk, since every filtered question goes through it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable

from daemon.index import number_of
from daemon.model import Kind

_HELD = 1 << 15
_BITS = {str(kind): 1 << place for place, kind in enumerate(Kind)}


class Roster:
    """Record ids as the semantic index gives them, `{message id}#{number}`. Its caller sees to it that calls wait."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[str, array[int]]] = {}

    def put(self, record: str, kinds: Iterable[str] = ()) -> None:
        """A chunk that is held, of these kinds; what was known of it is forgotten."""
        self._chunks(record)[_place(record)] = _HELD | _mask(kinds)

    def mark(self, record: str, kind: str) -> None:
        """A chunk that is held is of this kind too."""
        self._chunks(record)[_place(record)] |= _HELD | _mask((kind,))

    def drop(self, record: str) -> None:
        """A chunk that is not held any more."""
        message_id, _, _ = record.rpartition("#")
        number = number_of(message_id)
        if number in self._held:
            self._chunks(record)[_place(record)] = 0
            if not any(self._held[number][1]):
                del self._held[number]

    def records(self, numbers: Iterable[int], kinds: Collection[str] = ()) -> list[str]:
        """The chunks of these messages (index.number_of), of any of these kinds."""
        wanted = _mask(kinds) if kinds else _HELD
        held = (self._held[number] for number in numbers if number in self._held)
        return [f"{message}#{place}" for message, chunks in held for place, mask in enumerate(chunks) if mask & wanted]

    def has(self, record: str, kinds: Collection[str] = ()) -> bool:
        """Whether the chunk is held and of any of these kinds."""
        message_id, _, _ = record.rpartition("#")
        _, chunks = self._held.get(number_of(message_id), ("", ()))
        place = _place(record)
        return place < len(chunks) and bool(chunks[place] & (_mask(kinds) if kinds else _HELD))

    def _chunks(self, record: str) -> array[int]:
        """Those of the record's message, long enough for it."""
        message_id, _, _ = record.rpartition("#")
        _, chunks = self._held.setdefault(number_of(message_id), (message_id, array("H")))
        missing = _place(record) + 1 - len(chunks)
        if missing > 0:
            chunks.extend([0] * missing)
        return chunks


def _place(record: str) -> int:
    return int(record.rpartition("#")[2])


def _mask(kinds: Iterable[str]) -> int:
    return sum({_BITS.get(kind, 0) for kind in kinds})
