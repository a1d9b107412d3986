"""Whether what a turn wrote into files was written over or taken out again later, whoever did it and in what language.

Told by the contents of the files alone: the words that the turn brought in are in none of them any more, or the lines
that it took out are all back. Nothing is said where a content is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from daemon.files import Revision
from daemon.files.history import OBSERVATIONS
from daemon.reconstitute.facts.values import Turn
from daemon.reconstitute.recover import Recovered

_MOST_BYTES = 1 << 20
_DENSE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without blanks, in which pairs of signs stand for words."""
_WORD = re.compile(rf"[{_DENSE}]+|[^\W_{_DENSE}]+")


@dataclass(frozen=True, slots=True)
class _Change:
    """A file before and after a turn, and as it was last known; `before` None: not known."""

    before: str | None
    after: str
    last: str


def since(turn: Turn, files: Sequence[Recovered]) -> bool:
    """Whether later changes undid what `turn` changed."""
    ids = frozenset(turn.message_ids)
    changes: list[_Change] = []
    for file in files:
        places = [place for place, one in enumerate(file.revisions) if one.message_id in ids]
        if all(file.revisions[place].operation in OBSERVATIONS for place in places):
            continue
        change = _change(file.revisions, places)
        if change is None:
            return False
        if change.before != change.after:
            changes.append(change)
    return any(map(_is_back, changes)) or (bool(changes) and _is_gone(changes))


def _change(revisions: Sequence[Revision], places: Sequence[int]) -> _Change | None:
    after = _newest(revisions[: places[-1] + 1])
    last = _newest(revisions)
    if after is None or last is None:
        return None
    return _Change(_newest(revisions[: places[0]]) if places[0] else "", after, last)


def _newest(revisions: Sequence[Revision]) -> str | None:
    """The last content that is known, which something unknown may have followed; None where none is."""
    for revision in reversed(revisions):
        if revision.deleted:
            return None if revision.moved_to else ""
        if (content := revision.content) is not None:
            return content.decode("utf-8", "replace") if len(content) <= _MOST_BYTES else None
    return None


def _is_back(change: _Change) -> bool:
    """Whether all lines that the turn took out of the file stand in it again."""
    if change.before is None:
        return False
    removed = {line for line in _lines(change.before) - _lines(change.after) if _WORD.search(line)}
    return bool(removed) and removed <= _lines(change.last)


def _is_gone(changes: Sequence[_Change]) -> bool:
    """Whether none of the words that the turn brought in is left in any of its files."""
    brought = {word for one in changes for word in _words(one.after) - _words(one.before or "")}
    return bool(brought) and not any(brought & _words(one.last) for one in changes)


def _lines(content: str) -> set[str]:
    return {line.strip() for line in content.splitlines()}


def _words(content: str) -> set[str]:
    found: set[str] = set()
    for word in _WORD.findall(content.casefold()):
        dense = re.match(f"[{_DENSE}]", word) and len(word) > 1
        found.update([word[place : place + 2] for place in range(len(word) - 1)] if dense else [word])
    return found
