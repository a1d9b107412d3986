"""Which numbers a turn set in files, and whether what it wrote was written over or taken out again later.

Whoever did it, and in whatever language: told by the contents of the files alone. What a turn wrote is gone where the
words that it brought in are in none of its files any more, or the lines that it took out are all back. Nothing is said
where a content is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.files import Revision
from daemon.files.history import OBSERVATIONS
from daemon.reconstitute.facts.session_values import Turn
from daemon.reconstitute.recover import Recovered

_MOST_BYTES = 1 << 20
_DENSE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Scripts without blanks, in which pairs of signs stand for words."""
_WORD = re.compile(rf"[{_DENSE}]+|[^\W_{_DENSE}]+")


NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")
_MARK = "\ufffc"


@dataclass(frozen=True, slots=True)
class _Change:
    """A file before and after a turn, and as it was last known; `before` None: not known."""

    before: str | None
    after: str
    last: str

    def taken_out(self) -> set[str]:
        """The lines that the turn took out of the file."""
        return {line for line in _lines(self.before or "") - _lines(self.after) if _WORD.search(line)}

    def brought_in(self) -> set[str]:
        """The lines that it brought in."""
        return {line for line in _lines(self.after) - _lines(self.before or "") if _WORD.search(line)}


class Written:
    """Which messages have to do with which files, looked up once for all turns."""

    def __init__(self, files: Sequence[Recovered]) -> None:
        self._by_message: dict[str, dict[int, list[int]]] = {}
        self._files = files
        for number, file in enumerate(files):
            for place, one in enumerate(file.revisions):
                self._by_message.setdefault(one.message_id, {}).setdefault(number, []).append(place)

    def by(self, turn: Turn) -> Iterator[tuple[Recovered, list[int]]]:
        """The files that a turn has to do with, and the places of its revisions."""
        places: dict[int, list[int]] = {}
        for message in turn.message_ids:
            for number, those in self._by_message.get(message, {}).items():
                places.setdefault(number, []).extend(those)
        yield from ((self._files[number], sorted(places[number])) for number in sorted(places))


@dataclass(frozen=True, slots=True)
class Value:
    """A number in a line that was otherwise left as it is (`line`, with a mark for each of its numbers)."""

    path: str
    line: str
    old: str
    new: str


def values(turn: Turn, written: Written) -> tuple[Value, ...]:
    """The numbers that `turn` set in the place of others, where the file is known before and after it."""
    found: list[Value] = []
    for file, change in _changes_of(turn, written):
        if change is not None and change.before:
            before, after = _lines(change.before), _lines(change.after)
            old, new = _by_form(before - after), _by_form(after - before)
            for form in sorted(old.keys() & new.keys()):
                pairs = zip(old[form], new[form], strict=True)
                found += [Value(file.path, form, one, other) for one, other in pairs if one != other]
    return tuple(found)


def wrote(turn: Turn, written: Written, text: str) -> bool:
    """Whether `turn` wrote `text` into a file in which it was not before."""
    changes = (change for _, change in _changes_of(turn, written) if change is not None and change.before is not None)
    return any(text in change.after and text not in (change.before or "") for change in changes)


def goes_over(later: Turn, earlier: Turn, written: Written) -> bool:
    """Whether `later` took out lines that `earlier` brought in, or whether that is not known."""
    after = {file.path: change for file, change in _changes_of(later, written)}
    before = {file.path: change for file, change in _changes_of(earlier, written)}
    shared = [(after[path], before[path]) for path in after.keys() & before.keys()]
    return not shared or any(
        one is None or other is None or bool(one.taken_out() & other.brought_in()) for one, other in shared
    )


def _by_form(lines: set[str]) -> dict[str, list[str]]:
    """The numbers of those lines that no other one is like."""
    forms: dict[str, list[list[str]]] = {}
    for line in lines:
        forms.setdefault(NUMBER.sub(_MARK, line), []).append(NUMBER.findall(line))
    return {form: those[0] for form, those in forms.items() if len(those) == 1 and _MARK in form}


def _changes_of(turn: Turn, written: Written) -> Iterator[tuple[Recovered, _Change | None]]:
    """The files that a turn changed, with how; None where that is not known."""
    for file, places in written.by(turn):
        if not all(file.revisions[place].operation in OBSERVATIONS for place in places):
            yield file, _change(file.revisions, places)


def since(turn: Turn, written: Written) -> bool:
    """Whether later changes undid what `turn` changed."""
    changes: list[_Change] = []
    for _, change in _changes_of(turn, written):
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
    removed = change.taken_out()
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
