"""The text of one result, kept within its bytes as it is written: blocks whole or not at all, our own words cut."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.errors import BadRequest
from daemon.reconstitute.agent.context.blocks import cut, fenced, room, size

_GAP = "\n\n"
_RESERVED = 400
"""Bytes that blocks leave for how to read on, and for notes; a fifth of a small sheet."""


class Sheet:
    """At most `most` bytes."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._reserved = min(_RESERVED, most // 5)
        self._texts: list[str] = []

    @property
    def room(self) -> int:
        """Bytes that a block may have now."""
        return max(0, self._left - self._reserved - len(_GAP))

    @property
    def text(self) -> str:
        """All of it."""
        return _GAP.join(self._texts)

    def put(self, block: str) -> None:
        """A block of at most `room` bytes.

        Raises:
            BadRequest: it is longer; a limit on results leaves no room for it.
        """
        if size(block) > self.room:
            raise BadRequest("results may not be as long as this one would be (agent.result_kb)")
        self._add(block)

    def say(self, words: str) -> None:
        """Words of ours, cut where they do not fit."""
        free = self._left - (len(_GAP) if self._texts else 0)
        said = words if size(words) <= free else cut(words, free - 3) + "…" if free > 3 else ""
        if said:
            self._add(said)

    def lines(self, heading: str, lines: Sequence[str]) -> int:
        """A block of cleaned lines, as many as fit, at least one; answers how many."""
        left = room(heading, self.room)
        kept: list[str] = []
        for line in lines:
            if size(line) + 1 > left and kept:
                break
            kept.append(cut(line, left))
            left -= size(line) + 1
        self.put(fenced(heading, "\n".join(kept)))
        return len(kept)

    def list(self, lines: Sequence[str]) -> None:
        """Lines of ours, as many as fit, and how many did not."""
        kept = list(lines)
        while kept and size("\n".join(kept)) + 40 > self._left:
            kept.pop()
        rest = len(lines) - len(kept)
        self.say("\n".join([*kept, *([f"and {rest} more"] if rest else [])]))

    def _add(self, text: str) -> None:
        self._left -= size(text) + (len(_GAP) if self._texts else 0)
        self._texts.append(text)
