"""What a turn changed in files, and whether later changes undid it; by the contents of the files alone.

A turn's changes are undone if the words that it added are in none of its files any more, or if the lines that it
removed are all back. Nothing is concluded from a content that is not known.
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
"""Scripts without blanks, in which pairs of characters stand for words."""
_WORD = re.compile(rf"[{_DENSE}]+|[^\W_{_DENSE}]+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")
_MARK = "\ufffc"


@dataclass(frozen=True, slots=True)
class _Change:
    """A file before and after a turn, and as it was last known; `before` is None if it is not known."""

    before: str | None
    after: str
    last: str

    def removed(self) -> set[str]:
        """The lines that the turn removed."""
        return {line for line in _lines(self.before or "") - _lines(self.after) if _WORD.search(line)}

    def added(self) -> set[str]:
        """The lines that it added."""
        return {line for line in _lines(self.after) - _lines(self.before or "") if _WORD.search(line)}


@dataclass(frozen=True, slots=True)
class NumberChange:
    """A number that a turn set in a line that otherwise stayed; `line` has a mark in place of each number."""

    path: str
    line: str
    old: str
    new: str


class TurnFiles:
    """What each turn changed in files; indexed once for all turns."""

    def __init__(self, files: Sequence[Recovered]) -> None:
        self._by_message: dict[str, dict[int, list[int]]] = {}
        self._files = files
        for number, file in enumerate(files):
            for place, revision in enumerate(file.revisions):
                self._by_message.setdefault(revision.message_id, {}).setdefault(number, []).append(place)

    def number_changes(self, turn: Turn) -> tuple[NumberChange, ...]:
        """The numbers that `turn` set in place of others, in files that are known before and after it."""
        numbers: list[NumberChange] = []
        for file, change in self._changes(turn):
            if change is not None and change.before:
                before, after = _lines(change.before), _lines(change.after)
                old, new = _by_form(before - after), _by_form(after - before)
                for form in sorted(old.keys() & new.keys()):
                    pairs = zip(old[form], new[form], strict=True)
                    numbers += [NumberChange(file.path, form, was, now) for was, now in pairs if was != now]
        return tuple(numbers)

    def wrote(self, turn: Turn, text: str) -> bool:
        """Whether `turn` wrote `text` into a file that did not have it before."""
        changes = (change for _, change in self._changes(turn) if change is not None and change.before is not None)
        return any(text in change.after and text not in (change.before or "") for change in changes)

    def overwrites(self, later: Turn, earlier: Turn) -> bool:
        """Whether `later` removed lines that `earlier` added, or whether that is not known."""
        after = {file.path: change for file, change in self._changes(later)}
        before = {file.path: change for file, change in self._changes(earlier)}
        shared = [(after[path], before[path]) for path in after.keys() & before.keys()]
        return not shared or any(
            change is None or later_change is None or bool(change.removed() & later_change.added())
            for change, later_change in shared
        )

    def is_undone(self, turn: Turn) -> bool:
        """Whether later changes undid what `turn` changed."""
        changes: list[_Change] = []
        for _, change in self._changes(turn):
            if change is None:
                return False
            if change.before != change.after:
                changes.append(change)
        return any(map(_is_back, changes)) or (bool(changes) and _is_gone(changes))

    def _changes(self, turn: Turn) -> Iterator[tuple[Recovered, _Change | None]]:
        """The files that a turn changed, with the change; None if that is not known."""
        places: dict[int, list[int]] = {}
        for message in turn.message_ids:
            for number, revisions in self._by_message.get(message, {}).items():
                places.setdefault(number, []).extend(revisions)
        for number in sorted(places):
            file, positions = self._files[number], sorted(places[number])
            if not all(file.revisions[place].operation in OBSERVATIONS for place in positions):
                yield file, _change(file.revisions, positions)


def _by_form(lines: set[str]) -> dict[str, list[str]]:
    """The numbers of the lines, by what else is in the line; lines that differ only in their numbers are left out."""
    forms: dict[str, list[list[str]]] = {}
    for line in lines:
        forms.setdefault(_NUMBER.sub(_MARK, line), []).append(_NUMBER.findall(line))
    return {form: numbers[0] for form, numbers in forms.items() if len(numbers) == 1 and _MARK in form}


def _change(revisions: Sequence[Revision], places: Sequence[int]) -> _Change | None:
    after = _newest(revisions[: places[-1] + 1])
    last = _newest(revisions)
    if after is None or last is None:
        return None
    return _Change(_newest(revisions[: places[0]]) if places[0] else "", after, last)


def _newest(revisions: Sequence[Revision]) -> str | None:
    """The last known content, which something unknown may have followed; None if there is none."""
    for revision in reversed(revisions):
        if revision.deleted:
            return None if revision.moved_to else ""
        if (content := revision.content) is not None:
            return content.decode("utf-8", "replace") if len(content) <= _MOST_BYTES else None
    return None


def _is_back(change: _Change) -> bool:
    """Whether all lines that the turn removed are in the file again."""
    if change.before is None:
        return False
    removed = change.removed()
    return bool(removed) and removed <= _lines(change.last)


def _is_gone(changes: Sequence[_Change]) -> bool:
    """Whether none of the words that the turn added is left in any of its files."""
    added = {word for change in changes for word in _words(change.after) - _words(change.before or "")}
    return bool(added) and not any(added & _words(change.last) for change in changes)


def _lines(content: str) -> set[str]:
    return {line.strip() for line in content.splitlines()}


def _words(content: str) -> set[str]:
    words: set[str] = set()
    for word in _WORD.findall(content.casefold()):
        dense = re.match(f"[{_DENSE}]", word) and len(word) > 1
        words.update([word[place : place + 2] for place in range(len(word) - 1)] if dense else [word])
    return words
