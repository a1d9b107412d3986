"""JavaScript's text functions that OpenCode's tools use and that differ from Python's.

Blank means what JavaScript calls white space: U+FEFF belongs to it, the separators U+001C to U+001F and U+0085 do not.
Lengths and edit distances are counted in UTF-16 code units. Nothing here knows of files or of OpenCode.
"""

from __future__ import annotations

import re
from array import array

BLANKS = "".join(("\t\n\v\f\r \u00a0\u1680", *map(chr, range(0x2000, 0x200B)), "\u2028\u2029\u202f\u205f\u3000\ufeff"))
BLANK_RUN = f"[{BLANKS}]+"

_RUN = re.compile(BLANK_RUN)
_SPECIAL = re.compile(r"\$[$&`']")
_WORD = 512  # bits that an operation on large integers takes in its stride


def length(text: str) -> int:
    """``text.length``."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def collapsed(text: str) -> str:
    """`text` with every run of blanks as one space, and none at its ends."""
    return _RUN.sub(" ", text).strip(BLANKS)


def is_plain(text: str) -> bool:
    """Whether each character of `text` is one code unit."""
    return text.isascii() or max(text) <= "\uffff"


def replace_all(text: str, old: str, new: str) -> str:
    """``text.replaceAll(old, new)``: ``$$``, ``$&``, ``$` `` and ``$'`` in `new` are interpreted.

    An empty `old` stands before every character and at the end; for that `text` has to be plain (`is_plain`), since
    JavaScript would part the halves of a character that is not.
    """
    if not _SPECIAL.search(new):
        return text.replace(old, new)
    pieces = []
    done = 0
    for at in _places(text, old):
        pieces += [text[done:at], _expanded(text, old, new, at)]
        done = at + len(old)
    return "".join([*pieces, text[done:]])


def replace_first(text: str, old: str, new: str) -> str:
    """``text.replace(old, new)``, which interprets `new` as `replace_all` does."""
    at = text.find(old)
    return text if at < 0 else text[:at] + _expanded(text, old, new, at) + text[at + len(old) :]


def _places(text: str, old: str) -> list[int]:
    step = max(1, len(old))
    places = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + step)
    return places


def _expanded(text: str, old: str, new: str, at: int) -> str:
    """`new` expanded for the `old` at `at`."""

    def replacement(match: re.Match[str]) -> str:
        match match[0]:
            case "$$":
                return "$"
            case "$&":
                return old
            case "$`":
                return text[:at]
            case _:
                return text[at + len(old) :]

    return _SPECIAL.sub(replacement, new)


class TooCostlyError(Exception):
    """An answer would take too long."""


class Costs:
    """A budget of steps of about a microsecond each, shared by all work for one answer."""

    def __init__(self, limit: int) -> None:
        self._remaining = limit

    def spend(self, steps: int) -> None:
        """Subtract `steps`; raises TooCostlyError when the budget is used up."""
        self._remaining -= steps
        if self._remaining < 0:
            raise TooCostlyError


def distance(first: str, second: str, costs: Costs) -> int:
    """Insertions, deletions and replacements of code units between the two (Levenshtein's distance).

    The method (a column of the table as one large integer, after Myers and Hyyrö) is another than OpenCode's, so that
    long lines take milliseconds; the result is the same.

    Raises:
        TooCostlyError: the budget is used up.
    """
    if first == second:
        return 0
    a, b = _without_common_ends(_units(first), _units(second))
    if not a or not b:
        return len(a) + len(b)
    if len(a) < len(b):
        a, b = b, a
    costs.spend(len(b) * (1 + len(a) // _WORD) + len(a) // 8)
    return _counted(a, b)


def _units(text: str) -> array[int]:
    return array("H", text.encode("utf-16-le", "surrogatepass"))


def _without_common_ends(a: array[int], b: array[int]) -> tuple[array[int], array[int]]:
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and a[start] == b[start]:
        start += 1
    end = 0
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end]


def _counted(a: array[int], b: array[int]) -> int:
    """Bit i of `plus` and `minus` is set if the table goes up or down by one from row i to row i + 1."""
    places: dict[int, int] = {}
    for number, unit in enumerate(a):
        places[unit] = places.get(unit, 0) | 1 << number
    mask = (1 << len(a)) - 1
    last = 1 << (len(a) - 1)
    plus, minus, total = mask, 0, len(a)
    for unit in b:
        matches = places.get(unit, 0)
        across = (((matches & plus) + plus) ^ plus) | matches | minus
        up = minus | (mask & ~(across | plus))
        down = plus & across
        if up & last:
            total += 1
        elif down & last:
            total -= 1
        up = (up << 1 | 1) & mask
        down = (down << 1) & mask
        plus = down | (mask & ~(across | up))
        minus = up & across
    return total
