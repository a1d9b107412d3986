"""The few words shown of a hit: the stretch where the query's terms stand closest together, on one line.

Guarantees: at most `width` characters, no line breaks, no control or direction-changing characters (a terminal or a
page may print it as it is). It does not redact: what comes in is redacted already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import count, islice

WIDTH = 240
SCANNED = 1 << 20
_MOST_PLACES = 2000
_LONG = 16_384
_SHORTEST_STEM = 4
_SHORTEST_PIECE = 2
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_BETWEEN = r"[\W_]{0,3}"
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


_Spots = Callable[[Sequence[str]], list[tuple[int, int]]]
"""Where these pieces stand in a text, whatever their case, one behind the other with but a few marks between them."""


def _numbered(terms: Sequence[str], spots: _Spots) -> list[tuple[int, int, int]]:
    """(start, end, number) of each term: as it is, else with other separators, else its stem, else piece by piece.

    The word index takes walrus_protocol, walrusProtocol and "walrus protocol" for one name.
    """
    found: list[tuple[int, int, int]] = []
    numbers = count()
    for term in terms:
        pieces = _PIECE.findall(term)
        places = spots([term]) or (spots(pieces) if len(pieces) > 1 else [])
        places = places or spots([term[: max(_SHORTEST_STEM, len(term) - 3)]])
        each = [places] if places else [spots([piece]) for piece in pieces if len(piece) >= _SHORTEST_PIECE]
        for number, some in zip(islice(numbers, len(each)), each, strict=True):
            found += [(start, end, number) for start, end in some]
    return sorted(found)


def _places(line: str, terms: Sequence[str]) -> list[tuple[int, int, int]]:
    """(start, end, number) of each term in a text on one line."""

    def spots(pieces: Sequence[str]) -> list[tuple[int, int]]:
        pattern = _BETWEEN.join(re.escape(one_line(piece)) for piece in pieces)
        found = re.finditer(pattern, line, re.IGNORECASE) if pattern else ()
        return [match.span() for match in islice(found, _MOST_PLACES)]

    return _numbered(terms, spots)


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
    text, is_from_within, goes_on = _region(text[:SCANNED], terms, width)
    line = one_line(text)
    if len(line) <= width - is_from_within - goes_on:
        return ("…" if is_from_within else "") + line + ("…" if goes_on else "")
    places = _places(line, [term for term in terms if term.strip()])
    start, end = _densest(places, width - 2) if places else (0, 0)
    left = max(0, min(start - (width - 2 - (end - start)) // 3, len(line) - width + 1)) if places else 0
    if left:
        gap = line.find(" ", left, max(left, min(start, left + 24)))
        left = gap + 1 if gap >= 0 else left
    right = min(len(line), left + width - 1 - (1 if left or is_from_within else 0))
    if right < len(line):
        gap = line.rfind(" ", max(end, right - 24), right)
        right = gap if gap > left else right
    return ("…" if left or is_from_within else "") + line[left:right] + ("…" if right < len(line) or goes_on else "")


def _region(text: str, terms: Sequence[str], width: int) -> tuple[str, bool, bool]:
    """The part of a long text that is worth a closer look, and whether there is text before and after it.

    Found as plain characters, a few places a term: making a line of a million characters takes longer than a search.
    """
    if len(text) <= _LONG:
        return text, False, False
    lowered = text.lower()

    def spots(pieces: Sequence[str]) -> list[tuple[int, int]]:
        pieces = [piece.lower() for piece in pieces if piece.strip()]
        if len(pieces) == 1:
            return [(start, start + len(pieces[0])) for start in _starts(lowered, pieces[0])]
        found = re.finditer(_BETWEEN.join(map(re.escape, pieces)), lowered) if pieces else ()
        return [match.span() for match in islice(found, _MOST_PLACES)]

    places = _numbered(terms, spots)
    start, end = _densest(places, width) if places else (0, 0)
    start, end = max(0, start - _LONG // 4), min(len(text), end + _LONG // 4)
    if start and (gap := text.find(" ", start, start + 80)) >= 0:
        start = gap + 1
    return text[start:end], start > 0, end < len(text)


def _starts(lowered: str, form: str) -> list[int]:
    found: list[int] = []
    place = lowered.find(form)
    while place >= 0 and len(found) < _MOST_PLACES:
        found.append(place)
        place = lowered.find(form, place + len(form))
    return found
