"""The few words shown of a hit: the stretch where the query's terms stand closest together, on one line.

Guarantees: at most `width` characters, no line breaks, no control or direction-changing characters (a terminal or a
page may print it as it is). It does not redact: what comes in is redacted already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDTH = 240
SCANNED = 1 << 20
_MOST_PLACES = 2000
_SHORTEST_STEM = 4
# C0 and C1 but white space, terminal colour sequences, and what turns the reading direction.
_UNSHOWN = re.compile(
    "\x1b\\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_line(text: str) -> str:
    """`text` on one line, without characters that are not shown."""
    return " ".join(_UNSHOWN.sub("", text).split())


def _places(text: str, terms: Sequence[str]) -> list[tuple[int, int, int]]:
    """(start, end, term number) of each term in `text`; a term that is absent is looked for by its stem."""
    found: list[tuple[int, int, int]] = []
    for number, term in enumerate(terms):
        for form in dict.fromkeys((term, term[: max(_SHORTEST_STEM, len(term) - 3)])):
            pattern = re.escape(one_line(form))
            hits = [(m.start(), m.end(), number) for m in re.finditer(pattern, text, re.IGNORECASE)] if pattern else []
            if hits:
                found += hits[:_MOST_PLACES]
                break
    return sorted(found)


def _densest(places: list[tuple[int, int, int]], width: int) -> tuple[int, int]:
    """The stretch of at most `width` with the most different terms, then most places, then the earliest."""
    best, best_value, first = (places[0][0], places[0][1]), (0, 0), 0
    counts: dict[int, int] = {}
    for last, (_, end, number) in enumerate(places):
        counts[number] = counts.get(number, 0) + 1
        while first < last and end - places[first][0] > width:
            dropped = places[first][2]
            counts[dropped] -= 1
            if not counts[dropped]:
                del counts[dropped]
            first += 1
        value = (len(counts), last - first + 1)
        if value > best_value:
            best, best_value = (places[first][0], end), value
    return best


def snippet(text: str, terms: Sequence[str], width: int = WIDTH) -> str:
    """At most `width` characters of `text` around the densest match of `terms`; its beginning when none occurs."""
    line = one_line(text[:SCANNED])
    if len(line) <= width:
        return line
    places = _places(line, [term for term in terms if term.strip()])
    start, end = _densest(places, width - 2) if places else (0, 0)
    left = max(0, min(start - (width - 2 - (end - start)) // 3, len(line) - width + 1)) if places else 0
    if left:
        gap = line.find(" ", left, max(left, min(start, left + 24)))
        left = gap + 1 if gap >= 0 else left
    right = min(len(line), left + width - 1 - (1 if left else 0))
    if right < len(line):
        gap = line.rfind(" ", max(end, right - 24), right)
        right = gap if gap > left else right
    return ("…" if left else "") + line[left:right] + ("…" if right < len(line) else "")
