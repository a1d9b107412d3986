"""What is shown of a match: the part it is in, and a snippet around the query's terms.

`snippet` returns at most `width` characters on one line, without control or direction-changing characters. It does not
redact: its input is redacted. Short parts of a message share a chunk, which a filter by kind or tool passes if one of
them does; `matched_part` then finds that part in the archived message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

from daemon.display import one_line
from daemon.index import Match
from daemon.model import Kind, Message, Section
from daemon.recall.query.scope import ANYTHING, SectionFilter
from daemon.redact import redact
from daemon.transcript.document import document

WIDTH = 240
SCANNED = 1 << 20
_MOST_PLACES = 500
_MOST_TERMS = 32
"""We look for the first so many terms: no snippet has room for more, and each costs a pass over the text."""
_LONG = 16_384
_SHORTEST_STEM = 4
_SHORTEST_PIECE = 2
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_BETWEEN = r"[\W_]{0,3}"

_Spots = Callable[[Sequence[str]], list[tuple[int, int]]]
"""Where these pieces stand in a text, whatever their case, one behind the other with but a few marks between them."""


def _numbered(terms: Sequence[str], spots: _Spots) -> list[tuple[int, int, int]]:
    """(start, end, number) of each term: as it is, else with other separators, else its stem, else piece by piece.

    The word index takes walrus_protocol, walrusProtocol and "walrus protocol" for one name.
    """
    numbered: list[tuple[int, int, int]] = []
    numbers = count()
    for term in terms:
        pieces = _PIECE.findall(term)
        places = spots([term]) or (spots(pieces) if len(pieces) > 1 else [])
        places = places or spots([term[: max(_SHORTEST_STEM, len(term) - 3)]])
        each = [places] if places else [spots([piece]) for piece in pieces if len(piece) >= _SHORTEST_PIECE]
        for number, spans in zip(islice(numbers, len(each)), each, strict=True):
            numbered += [(start, end, number) for start, end in spans]
    return sorted(numbered)


def _places(line: str, terms: Sequence[str]) -> list[tuple[int, int, int]]:
    """(start, end, number) of each term in a text on one line."""

    def spots(pieces: Sequence[str]) -> list[tuple[int, int]]:
        pattern = _BETWEEN.join(re.escape(one_line(piece)) for piece in pieces)
        matches = re.finditer(pattern, line, re.IGNORECASE) if pattern else ()
        return [match.span() for match in islice(matches, _MOST_PLACES)]

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
    """At most `width` characters of `text` around the densest match of `terms`; its beginning when none occurs.

    Of more than _MOST_TERMS terms the first are looked for, and of a term no more than a snippet can show.
    """
    terms = list(islice(dict.fromkeys(term[: width - 2] for term in terms if term.strip()), _MOST_TERMS))
    if terms and len(terms[0]) > width // 2 and terms[0].lower() in text[:SCANNED].lower():
        del terms[1:]  # a snippet of it has no room to choose what else to show
    text, is_from_within, goes_on = _region(text[:SCANNED], terms, width)
    line = one_line(text)
    if len(line) <= width - is_from_within - goes_on:
        return ("…" if is_from_within else "") + line + ("…" if goes_on else "")
    places = _places(line, terms)
    start, end = _densest(places, width - 2) if places else (0, 0)
    begin = max(0, min(start - (width - 2 - (end - start)) // 3, len(line) - width + 1)) if places else 0
    if begin:
        gap = line.find(" ", begin, max(begin, min(start, begin + 24)))
        begin = gap + 1 if gap >= 0 else begin
    stop = min(len(line), begin + width - 1 - (1 if begin or is_from_within else 0))
    if stop < len(line):
        gap = line.rfind(" ", max(end, stop - 24), stop)
        stop = gap if gap > begin else stop
    return ("…" if begin or is_from_within else "") + line[begin:stop] + ("…" if stop < len(line) or goes_on else "")


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
        matches = re.finditer(_BETWEEN.join(map(re.escape, pieces)), lowered) if pieces else ()
        return [match.span() for match in islice(matches, _MOST_PLACES)]

    places = _numbered(terms, spots)
    start, end = _densest(places, width) if places else (0, 0)
    start, end = max(0, start - _LONG // 4), min(len(text), end + _LONG // 4)
    if start and (gap := text.find(" ", start, start + 80)) >= 0:
        start = gap + 1
    return text[start:end], start > 0, end < len(text)


def _starts(lowered: str, form: str) -> list[int]:
    starts: list[int] = []
    place = lowered.find(form)
    while place >= 0 and len(starts) < _MOST_PLACES:
        starts.append(place)
        place = lowered.find(form, place + len(form))
    return starts


_LONG_PART = 8192
"""A text longer than this has chunks of its own, so it shares none. Redacting it would take most of the time."""
_JOINT = "\n\n"
_WHOLE_KB = 1024


def matched_part(
    match: Match, message: Message, title: str, section_filter: SectionFilter, words: Sequence[str]
) -> Match | None:
    """Narrow `match`, of a chunk of `message`, to a part that passes `section_filter`; None if no part passes.

    `title` is the session's. Of several parts we take the one with most of `words`, then the longest. A match by words
    belongs to a part already and is returned unchanged.
    """
    if not match.record or match.part_id or section_filter == ANYTHING:
        return match
    sections = [
        section
        for section in _sections(message, title, is_light=True)
        if section_filter.has(section.kind, section.tool)
    ]
    whole = _JOINT + match.text + _JOINT
    pieces = [section for section in sections if _JOINT + section.text.strip() + _JOINT in whole]
    if pieces:
        return _as_match(match, _best(pieces, words))
    if match.text and section_filter.has(match.kind, match.tool):
        return match  # a window of a long text, which shares it with nothing
    if not sections:
        all_sections = _sections(message, title, is_light=False)
        sections = [section for section in all_sections if section_filter.has(section.kind, section.tool)]
    return _as_match(match, _best(sections, words)) if sections else None


def _sections(message: Message, title: str, *, is_light: bool) -> Iterator[Section]:
    """The searchable texts of the message, redacted; `is_light`: without the long ones."""
    if title.strip():
        yield Section("title", Kind.TITLE, redact(title))
    if is_light:
        parts = tuple(replace(part, data=_light(part.data)) for part in message.parts)
        message = replace(message, parts=parts)
    yield from document(message, None, _WHOLE_KB).sections


def _light(value: object) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONG_PART else ""
    if isinstance(value, dict):
        return {key: _light(item) for key, item in value.items()}
    return [_light(item) for item in value] if isinstance(value, list) else value


def _best(pieces: Sequence[Section], words: Sequence[str]) -> Section:
    def worth(section: Section) -> tuple[int, int]:
        text = section.text.casefold()
        return sum(word.casefold() in text for word in words), len(text)

    return max(pieces, key=worth)


def _as_match(match: Match, section: Section) -> Match:
    text = section.text.strip()
    return replace(match, part_id=section.part_id, kind=str(section.kind), tool=section.tool, text=text)
