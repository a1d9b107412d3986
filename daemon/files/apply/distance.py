"""How many single changes turn one line into another (Levenshtein's distance), at a bounded cost.

Counted in UTF-16 code units, as OpenCode counts. The result is the exact distance: the method (a column of the table
as one large integer, after Myers and Hyyrö) is another than OpenCode's, so that long lines take milliseconds. `Costs`
keeps what was spent; beyond its limit `TooCostlyError` is raised, and the caller says that it is not certain.
"""

from __future__ import annotations

from array import array

_WORD = 512  # bits that an operation on large integers takes in its stride


class TooCostlyError(Exception):
    """An answer would take longer than anybody should wait for."""


class Costs:
    """A budget of steps of about a microsecond, spent by whoever works for one answer."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def spend(self, steps: int) -> None:
        """Takes `steps` off; raises TooCostlyError when the budget is used up."""
        self._left -= steps
        if self._left < 0:
            raise TooCostlyError


def distance(first: str, second: str, costs: Costs) -> int:
    """Insertions, deletions and replacements of code units between the two; raises TooCostlyError."""
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
    """Bit i of `plus` and `minus` tells whether the table goes up or down by one from row i to row i + 1."""
    places: dict[int, int] = {}
    for number, unit in enumerate(a):
        places[unit] = places.get(unit, 0) | 1 << number
    every = (1 << len(a)) - 1
    last = 1 << (len(a) - 1)
    plus, minus, total = every, 0, len(a)
    for unit in b:
        same = places.get(unit, 0)
        across = (((same & plus) + plus) ^ plus) | same | minus
        up = minus | (every & ~(across | plus))
        down = plus & across
        if up & last:
            total += 1
        elif down & last:
            total -= 1
        up = (up << 1 | 1) & every
        down = (down << 1) & every
        plus = down | (every & ~(across | up))
        minus = up & across
    return total
