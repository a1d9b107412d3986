"""The changes between a file's states, as a page shows them: redacted before they are compared, and bounded.

Guarantees: no piece of a secret appears because a diff cut it; each page takes bounded work; what is left out is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from daemon.display import counted
from daemon.files import Revision
from daemon.files.line_diffs import unified
from daemon.files.states import Entry
from daemon.redact import redact

MOST_BYTES: Final = 256 * 1024
"""Bytes of a content that is compared."""
MOST_READ: Final = 2 * 1024 * 1024
"""Bytes of all contents that are compared for one page."""
MOST_LINES: Final = 100
MOST_TEXT: Final = 8000
"""Characters of one diff."""
_CRLF = "\r\n"


@dataclass(frozen=True, slots=True)
class Diff:
    """`text` are hunks; `added` and `removed` count lines, None where the states were not compared; `note` says why."""

    text: str = ""
    added: int | None = None
    removed: int | None = None
    note: str = ""

    @property
    def counts(self) -> str:
        """``+3 −1``; empty where nothing was counted."""
        if self.added is None or self.removed is None or not (self.added or self.removed):
            return ""
        return f"+{self.added} −{self.removed}"


class Diffs:
    """Compares the states of one page."""

    def __init__(self) -> None:
        self._left = MOST_READ
        self._texts: dict[int, str | None] = {}

    def of(self, entry: Entry) -> Diff:
        """What changed from the entry's base to its state."""
        now = entry.best
        if now.deleted and entry.base is None:
            return Diff()
        if not now.deleted and (now.whole is None or now.content is None):
            return Diff()
        base = entry.base.whole if entry.base is not None else None
        if base is not None and now.whole is not None and base.is_same(now.whole):
            return Diff()  # back to it, after a state that is not certain
        sides = [one for one in (entry.base, now) if one is not None and not one.deleted]
        if any((one.size or 0) > MOST_BYTES for one in sides) or not self._takes(sides):
            return Diff(note="The change is too long to be shown here")
        before, after = (self._text(one) for one in (entry.base, now))
        if before is None or after is None:
            return Diff(note="It is no text, so its change is not shown")
        return _compared(before, after)

    def _takes(self, sides: list[Revision]) -> bool:
        self._left -= sum(one.size or 0 for one in sides if id(one) not in self._texts)
        return self._left >= 0

    def _text(self, revision: Revision | None) -> str | None:
        """Its content, redacted; empty where there was no file, None where it is no text."""
        if revision is None or revision.deleted:
            return ""
        if id(revision) not in self._texts:
            try:
                text = (revision.content or b"").decode("utf-8")
            except UnicodeDecodeError:
                text = "\0"
            self._texts[id(revision)] = None if "\0" in text else redact(text)
        return self._texts[id(revision)]


def _compared(before: str, after: str) -> Diff:
    note = ""
    if before and after and (_CRLF in before) is not (_CRLF in after):
        note = "Its lines ended in LF before and in CRLF after" if _CRLF in after else "Its lines ended in CRLF before"
    text = unified(before.replace(_CRLF, "\n"), after.replace(_CRLF, "\n"))
    if not text:
        return Diff(note=note or ("" if before == after == "" else "Only what is redacted changed"))
    lines = text.splitlines(keepends=True)
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    shown = _cut(lines)
    if (more := len(lines) - len(shown)) > 0:
        note = ". ".join(filter(None, [note, f"Of the diff {counted(more, 'more line')} are left out"]))
    return Diff("".join(shown), added, removed, note)


def _cut(lines: list[str]) -> list[str]:
    """The first lines, as many as may be shown; a line that is too long by itself is cut."""
    kept: list[str] = []
    left = MOST_TEXT
    for line in lines[:MOST_LINES]:
        if left <= 0:
            break
        kept.append(line if len(line) <= left else line[: left - 1] + "…\n")
        left -= len(line)
    return kept
