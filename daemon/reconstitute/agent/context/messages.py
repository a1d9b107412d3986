"""Recalled text as data: what was said and done in one message as a delimited block, whole, a page, or the gist.

The text is that which recall searches (transcript.document): prompts, answers, reasoning, calls with what they were
given, what they printed; never recall's own answers. A label of ours stands above each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from daemon.archive import Archive
from daemon.model import Json, Kind, Section
from daemon.reconstitute.agent.context.blocks import (
    LEAST,
    Block,
    Origin,
    clean,
    cut,
    cut_at_space,
    fenced,
    left_out,
    name,
    room,
    shorten,
    size,
)
from daemon.records import table
from daemon.redact import redact_value
from daemon.transcript.document import RECALL_BEGIN, capped, document, readable

INDEXED_KB = 1024
_SPOKEN = frozenset({Kind.PROMPT, Kind.ANSWER, Kind.TASK})
_WEIGHTS = {Kind.PROMPT: 4, Kind.ANSWER: 4, Kind.TASK: 4, Kind.REASONING: 2}
"""Shares of the room: what was said tells more than what a tool printed."""
_NOTHING = "(nothing in it can be shown: only bookkeeping, or a file)"


@dataclass(frozen=True, slots=True)
class _Said:
    """One part of a message: its text under a label of ours."""

    label: str
    text: str
    weight: int
    part_id: str


@dataclass(frozen=True, slots=True)
class Telling:
    """One message, cleaned."""

    origin: Origin
    parts: tuple[_Said, ...]

    @property
    def text(self) -> str:
        """All of it, each part under its label: what offsets count in."""
        return "\n".join(f"{said.label}\n{said.text}" for said in self.parts)


def telling(archive: Archive, message_id: str) -> Telling | None:
    """What a message says; None where it is not in the archive."""
    message = archive.message(message_id)
    if message is None:
        return None
    session = archive.session(message.session_id)
    given = {part.id: table(part.data.get("state")).get("input") for part in message.parts}
    sections = document(message, session, INDEXED_KB).sections
    texts = [(section, _text(section, given.get(section.part_id))) for section in sections]
    parts = [_said(section, text) for section, text in texts if text]
    return Telling(Origin.of(message, session), tuple(parts))


def quoted(origin: Origin, body: str, most: int, about: str = "") -> Block | None:
    """A text of a message as a block of at most `most` bytes; None where that is too little for any of it.

    `about` goes into the heading.
    """
    heading = origin.heading + (f" | {about}" if about else "")
    shown = clean(body).strip("\n")
    left = room(heading, most)
    if left < min(LEAST, size(shown)):
        return None
    if size(shown) <= left:
        return Block(origin, fenced(heading, shown), (shown,))
    piece, mark = shorten(shown, left)
    return Block(origin, fenced(heading, piece + mark), (piece,), len(piece))


def message_block(archive: Archive, message_id: str, most: int) -> Block | None:
    """The gist of a message in at most `most` bytes: each part whole, or its beginning and end.

    None where it is not in the archive, or the room is too small for any of it.
    """
    told = telling(archive, message_id)
    if told is None:
        return None
    heading = told.origin.heading
    left = room(heading, most)
    if not told.parts:
        return Block(told.origin, fenced(heading, _NOTHING), ()) if size(_NOTHING) <= left else None
    if size(told.text) <= left:
        return Block(told.origin, fenced(heading, told.text), tuple(said.text for said in told.parts))
    body, pieces = _gist(told.parts, left)
    return Block(told.origin, fenced(heading, body), tuple(pieces), 0) if pieces else None


def message_page(archive: Archive, message_id: str, most: int, offset: int = 0) -> Block | None:
    """What a message says from `offset` on, as it stands, in at most `most` bytes; None as for message_block."""
    told = telling(archive, message_id)
    if told is None:
        return None
    text = told.text
    start = min(offset, len(text))
    heading = told.origin.heading
    widest = f"{heading} | characters {len(text)} to {len(text)} of {len(text)}"
    page = cut_at_space(text[start:], room(widest, most))
    end = start + len(page)
    if not text:
        return Block(told.origin, fenced(heading, _NOTHING), ()) if size(_NOTHING) <= room(heading, most) else None
    if end == start < len(text):
        return None
    if (start, end) != (0, len(text)):
        heading += f" | characters {start} to {end} of {len(text)}"
    return Block(told.origin, fenced(heading, page), _within(told.parts, start, end), end if end < len(text) else None)


def _text(section: Section, given: Any) -> str:
    """The section's text, cleaned; what a tool was given by its names, short things first, as long as none is ours."""
    text = section.text
    if section.kind is Kind.TOOL_INPUT and isinstance(given, dict) and RECALL_BEGIN not in readable(given):
        text = capped("\n".join(_named(redact_value(given))), INDEXED_KB * 1024)
    return clean(text).strip("\n")


def _named(given: Json) -> list[str]:
    """Each argument under its name: which text an edit replaced, and by which."""
    texts = {
        key: str(value) if isinstance(value, bool | int | float) else readable(value) for key, value in given.items()
    }
    short_first = sorted(texts.items(), key=lambda each: "\n" in each[1])
    return [f"{key}:\n{said}" if "\n" in said else f"{key}: {said}" for key, said in short_first if said.strip()]


def _within(parts: Sequence[_Said], start: int, end: int) -> tuple[str, ...]:
    """What of the parts' own words stands between two offsets of Telling.text."""
    pieces, place = [], 0
    for said in parts:
        place += len(said.label) + 1
        piece = said.text[max(0, start - place) : max(0, end - place)]
        if piece.strip():
            pieces.append(piece)
        place += len(said.text) + 1
    return tuple(pieces)


def _said(section: Section, text: str) -> _Said:
    tool = name(section.tool)
    labels = {
        Kind.TOOL_INPUT: f"[call of {tool or 'a tool'}]",
        Kind.TOOL_OUTPUT: f"[output of {tool}]" if tool else "[output]",
        Kind.TASK: "[task for another agent]",
    }
    label = labels.get(section.kind, f"[{section.kind}]")
    return _Said(label, text, _WEIGHTS.get(section.kind, 1), section.part_id)


def _gist(parts: Sequence[_Said], most: int) -> tuple[str, list[str]]:
    """Each part within its share of the room, and the pieces of them that stand in it."""
    more = f"\n[… {len(parts)} parts left out …]"
    shares = _shares([(size(said.label) + size(said.text) + 2, said.weight) for said in parts], most - size(more))
    lines: list[str] = []
    pieces: list[str] = []
    missing = 0
    for said, share in zip(parts, shares, strict=True):
        inside = share - size(said.label) - 2
        if size(said.text) <= inside:
            lines += [said.label, said.text]
            pieces.append(said.text)
        elif inside < LEAST + size(left_out(len(said.text))):
            missing += 1
        else:
            head, mark, tail = _ends(said.text, inside)
            lines += [said.label, f"{head}{mark}{tail}"]
            pieces += [piece for piece in (head, tail) if piece.strip()]
    end = f"\n[… {missing} {'part' if missing == 1 else 'parts'} left out …]" if missing else ""
    return "\n".join(lines) + end, pieces


def _ends(text: str, most: int) -> tuple[str, str, str]:
    """The first three and the last quarter of the room, and the mark between them; at most `most` bytes."""
    free = most - size(left_out(len(text))) - 1
    head = cut_at_space(text, free - free // 4)
    tail = cut(text[::-1], free // 4)[::-1]
    return head, left_out(len(text) - len(head) - len(tail)) + "\n", tail


def _shares(wanted: Sequence[tuple[int, int]], most: int) -> list[int]:
    """How many of `most` bytes each of (bytes, weight) gets: what it wants, or its share of what the others leave."""
    shares = [0] * len(wanted)
    open_ = set(range(len(wanted)))
    while open_:
        weight = sum(wanted[place][1] for place in open_)
        content = [place for place in open_ if wanted[place][0] * weight <= most * wanted[place][1]]
        if not content:
            for place in open_:
                shares[place] = most * wanted[place][1] // weight
            break
        for place in content:
            shares[place] = wanted[place][0]
            most -= wanted[place][0]
            open_.remove(place)
    return shares
