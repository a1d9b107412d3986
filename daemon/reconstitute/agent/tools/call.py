"""What every tool works with: the evidence that it may look at, and the result that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from daemon.archive import Archive
from daemon.errors import BadRequest
from daemon.files import FileHistory, Files
from daemon.recall.search import RecallEngine
from daemon.reconstitute.agent.context.blocks import body_bytes, cut, fenced, size
from daemon.reconstitute.agent.context.ledger import Ledger
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.scope import Scope

_GAP = "\n\n"
_RESERVED = 400
"""Bytes that blocks leave free for our own lines; a fifth of a small result."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is searched and read, whatever the target."""

    archive: Archive
    recall: RecallEngine
    files: Files
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the tools may look at for a question about one target (an absolute path).

    Nothing later than `moment` (epoch ms; None: now) is shown; `histories` end there. Whatever is shown of a message is
    entered in the ledger. `warnings` are for people: what did not work.
    """

    holdings: Holdings
    scope: Scope
    histories: Sequence[FileHistory]
    target: str
    moment: int | None = None
    ledger: Ledger = field(default_factory=Ledger)
    warnings: list[str] = field(default_factory=list)

    @property
    def archive(self) -> Archive:
        """Where the messages are."""
        return self.holdings.archive

    def is_visible(self, message_id: str) -> bool:
        """Whether the archive has this message, and it is not too late."""
        state = self.archive.state(message_id)
        return state is not None and (self.moment is None or state["created"] <= self.moment)

    def warn(self, warning: str) -> None:
        """Note a warning, each once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


class Result:
    """The text of one call's result, at most `most` bytes: blocks whole or not at all, our own lines cut."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._reserved = min(_RESERVED, most // 5)
        self._texts: list[str] = []

    @property
    def bytes_left(self) -> int:
        """How many bytes the next block may have."""
        return max(0, self._left - self._reserved - len(_GAP))

    @property
    def text(self) -> str:
        """All of it."""
        return _GAP.join(self._texts)

    def add_block(self, block: str) -> None:
        """Add a block of at most `bytes_left` bytes.

        Raises:
            BadRequest: the block is longer, because results are limited to too few bytes.
        """
        if size(block) > self.bytes_left:
            raise BadRequest("results may not be as long as this one would be (agent.result_kb)")
        self._add(block)

    def add_line(self, line: str) -> None:
        """Add a line of ours, cut where it does not fit."""
        free = self._left - (len(_GAP) if self._texts else 0)
        fitting = line if size(line) <= free else cut(line, free - 3) + "…" if free > 3 else ""
        if fitting:
            self._add(fitting)

    def add_table(self, heading: str, lines: Sequence[str]) -> int:
        """Add a block of cleaned lines, as many as fit and at least one. Returns how many."""
        left = body_bytes(heading, self.bytes_left)
        fitting: list[str] = []
        for line in lines:
            if size(line) + 1 > left and fitting:
                break
            fitting.append(cut(line, left))
            left -= size(line) + 1
        self.add_block(fenced(heading, "\n".join(fitting)))
        return len(fitting)

    def add_lines(self, lines: Sequence[str]) -> None:
        """Add lines of ours, as many as fit, and how many did not."""
        fitting = list(lines)
        while fitting and size("\n".join(fitting)) + 40 > self._left:
            fitting.pop()
        rest = len(lines) - len(fitting)
        self.add_line("\n".join([*fitting, *([f"and {rest} more"] if rest else [])]))

    def _add(self, text: str) -> None:
        self._left -= size(text) + (len(_GAP) if self._texts else 0)
        self._texts.append(text)
