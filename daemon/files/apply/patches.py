"""Places the hunks of an apply_patch in a file's lines, and applies them.

A hunk's lines are searched from the end of the last hunk: as they are, else without trailing blanks, else without
blanks at both ends, else with typographic characters replaced by plain ones. Read in, and checked against, the versions
from 1.0.0 to 1.18.33. Text in, text out; `apply` itself handles byte order marks and versions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from daemon.transcript.javascript import BLANKS
from daemon.transcript.patch_text import Hunk

_Place: TypeAlias = tuple[int, int, Sequence[str]]
"""First line, how many lines are taken out, the lines put in."""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015", "-"),
        "\u2026": "...",
        "\u00a0": " ",
    }
)


@dataclass(frozen=True, slots=True)
class PatchRules:
    """What differs between versions.

    `exact`: lines have to stand as they are; `heeds_end`: ``*** End of File`` counts; `adds_last`: lines that are only
    added go behind the last line even where that is empty.
    """

    exact: bool = False
    heeds_end: bool = False
    adds_last: bool = False


def patched(text: str, hunks: Sequence[Hunk], rules: PatchRules) -> str | None:
    """`text` after the hunks, always with a newline at its end; None if OpenCode refuses them."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    places = _places(lines, hunks, rules)
    if places is None:
        return None
    # From the last to the first, one by one: additions may fall into what an earlier hunk takes out.
    for start, count, new in sorted(places, key=lambda place: place[0])[::-1]:
        lines[start : start + count] = new
    if not lines or lines[-1] != "":
        lines.append("")
    return "\n".join(lines)


class _Sought:
    """A file's lines in one form, joined, so that one search finds a run of lines."""

    def __init__(self, lines: Sequence[str], form: Callable[[str], str]) -> None:
        self.form = form
        shaped = list(map(form, lines))
        self._starts = [0, *accumulate(len(line) + 1 for line in shaped)]
        self._joined = "\n" + "\n".join(shaped) + "\n"

    def find(self, block: Sequence[str], start: int) -> int | None:
        """The first place at or after line `start`."""
        if start >= len(self._starts):
            return None
        at = self._joined.find(self._needle(block), self._starts[start])
        return None if at < 0 else bisect_left(self._starts, at)

    def stands_at(self, block: Sequence[str], start: int) -> bool:
        """Whether `block` is at line `start`."""
        return self._joined.startswith(self._needle(block), self._starts[start])

    def _needle(self, block: Sequence[str]) -> str:
        return "\n" + "\n".join(map(self.form, block)) + "\n"


class _Lines:
    """The forms of a file's lines in the order in which they are tried, each created on demand."""

    def __init__(self, lines: Sequence[str], rules: PatchRules) -> None:
        self._lines = lines
        self._forms = _FORMS[:1] if rules.exact else _FORMS
        self._searches: list[_Sought] = []

    def find(self, block: Sequence[str], start: int, at_end: bool) -> int | None:
        """The line of `block` at or after `start`; with `at_end`, the end of the file is tried first."""
        last = len(self._lines) - len(block)
        if not block or last < start:
            return None
        for number, form in enumerate(self._forms):
            if number == len(self._searches):
                self._searches.append(_Sought(self._lines, form))
            sought = self._searches[number]
            if at_end and sought.stands_at(block, last):
                return last
            place = sought.find(block, start)
            if place is not None:
                return place
        return None


def _places(lines: Sequence[str], hunks: Sequence[Hunk], rules: PatchRules) -> list[_Place] | None:
    file = _Lines(lines, rules)
    places: list[_Place] = []
    at = 0
    for context, old, new, ends_file in hunks:
        at_end = ends_file and rules.heeds_end
        if context:
            first = file.find((context,), at, at_end=False)
            if first is None:
                return None
            at = first + 1
        if not old:
            is_before_empty = lines and lines[-1] == "" and not rules.adds_last
            places.append((len(lines) - 1 if is_before_empty else len(lines), 0, new))
            continue
        count, put = len(old), new
        first = file.find(old, at, at_end)
        if first is None and old[-1] == "":
            # An empty last line may stand for the newline at the end of the file.
            count, put = count - 1, new[:-1] if new and new[-1] == "" else new
            first = file.find(old[:-1], at, at_end)
        if first is None:
            return None
        places.append((first, count, put))
        at = first + count
    return places


def _as_it_is(line: str) -> str:
    return line


def _right_trimmed(line: str) -> str:
    return line.rstrip(BLANKS)


def _trimmed(line: str) -> str:
    return line.strip(BLANKS)


def _plain(line: str) -> str:
    return line.strip(BLANKS).translate(_PLAIN)


_FORMS: tuple[Callable[[str], str], ...] = (_as_it_is, _right_trimmed, _trimmed, _plain)
