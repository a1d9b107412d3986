"""Recorded messages as delimited blocks: a whole message, a page of it, its gist, or the excerpt of a search result.

The text is what recall searches (transcript.document): prompts, answers, reasoning, tool calls with their input, their
output; never recall's own answers. A label of ours stands above each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from daemon.archive import Archive
from daemon.display import one_line
from daemon.model import Hit, Json, Kind, Section
from daemon.reconstitute.agent.context.blocks import (
    MIN_BYTES,
    Block,
    Origin,
    body_bytes,
    clean,
    cut,
    cut_at_space,
    fenced,
    left_out,
    name,
    shorten,
    size,
)
from daemon.reconstitute.withheld import visible_hit
from daemon.records import table
from daemon.redact import redact_value
from daemon.transcript.document import RECALL_BEGIN, capped, document, readable

INDEXED_KB = 1024
_WEIGHTS = {Kind.PROMPT: 4, Kind.ANSWER: 4, Kind.TASK: 4, Kind.REASONING: 2}
"""Shares of the room: what was said tells more than what a tool printed."""
_EMPTY_MESSAGE = "(nothing in it can be shown: only bookkeeping, or a file)"
_CUT = "…"
_MIN_CHARS = 8
"""Characters that two texts have in common by more than chance."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a message: its text under a label of ours."""

    label: str
    text: str
    weight: int
    part_id: str


@dataclass(frozen=True, slots=True)
class ReadableMessage:
    """One message, cleaned."""

    origin: Origin
    parts: tuple[_Part, ...]

    @property
    def text(self) -> str:
        """All of it, each part under its label: what offsets count in."""
        return "\n".join(f"{part.label}\n{part.text}" for part in self.parts)


def readable_message(archive: Archive, message_id: str) -> ReadableMessage | None:
    """What a message says; None where it is not in the archive."""
    message = archive.message(message_id)
    if message is None:
        return None
    session = archive.session(message.session_id)
    inputs = {part.id: table(part.data.get("state")).get("input") for part in message.parts}
    sections = document(message, session, INDEXED_KB).sections
    texts = [(section, _text(section, inputs.get(section.part_id))) for section in sections]
    parts = [_part(section, text) for section, text in texts if text]
    return ReadableMessage(Origin.of(message, session), tuple(parts))


def text_block(origin: Origin, body: str, limit: int, about: str = "") -> Block | None:
    """A text of a message as a block of at most `limit` bytes; None where that is too little for any of it.

    `about` goes into the heading.
    """
    heading = origin.heading + (f" | {about}" if about else "")
    text = clean(body).strip("\n")
    remaining = body_bytes(heading, limit)
    if remaining < min(MIN_BYTES, size(text)):
        return None
    if size(text) <= remaining:
        return Block(origin, fenced(heading, text), (text,))
    piece, mark = shorten(text, remaining)
    return Block(origin, fenced(heading, piece + mark), (piece,), len(piece))


def message_block(archive: Archive, message_id: str, limit: int) -> Block | None:
    """The gist of a message in at most `limit` bytes: each part whole, or its beginning and end.

    None where it is not in the archive, or the room is too small for any of it.
    """
    message = readable_message(archive, message_id)
    if message is None:
        return None
    heading = message.origin.heading
    remaining = body_bytes(heading, limit)
    if not message.parts:
        return Block(message.origin, fenced(heading, _EMPTY_MESSAGE), ()) if size(_EMPTY_MESSAGE) <= remaining else None
    if size(message.text) <= remaining:
        return Block(message.origin, fenced(heading, message.text), tuple(part.text for part in message.parts))
    body, pieces = _gist(message.parts, remaining)
    return Block(message.origin, fenced(heading, body), tuple(pieces), 0) if pieces else None


def message_page(archive: Archive, message_id: str, limit: int, offset: int = 0) -> Block | None:
    """What a message says from `offset` on, as it stands, in at most `limit` bytes; None as for message_block."""
    message = readable_message(archive, message_id)
    if message is None:
        return None
    text = message.text
    start = min(offset, len(text))
    heading = message.origin.heading
    widest = f"{heading} | characters {len(text)} to {len(text)} of {len(text)}"
    page = cut_at_space(text[start:], body_bytes(widest, limit))
    end = start + len(page)
    if not text:
        return (
            Block(message.origin, fenced(heading, _EMPTY_MESSAGE), ())
            if size(_EMPTY_MESSAGE) <= body_bytes(heading, limit)
            else None
        )
    if end == start < len(text):
        return None
    if (start, end) != (0, len(text)):
        heading += f" | characters {start} to {end} of {len(text)}"
    return Block(
        message.origin, fenced(heading, page), _within(message.parts, start, end), end if end < len(text) else None
    )


def _text(section: Section, input_: object) -> str:
    """The section's text, cleaned; what a tool was given by its names, short things first, as long as none is ours."""
    text = section.text
    if section.kind is Kind.TOOL_INPUT and isinstance(input_, dict) and RECALL_BEGIN not in readable(input_):
        text = capped("\n".join(_input_texts(redact_value(input_))), INDEXED_KB * 1024)
    return clean(text).strip("\n")


def _input_texts(input_: Json) -> list[str]:
    """Each argument under its name: which text an edit replaced, and by which."""
    texts = {
        key: str(value) if isinstance(value, bool | int | float) else readable(value) for key, value in input_.items()
    }
    short_first = sorted(texts.items(), key=lambda item: "\n" in item[1])
    return [f"{key}:\n{part}" if "\n" in part else f"{key}: {part}" for key, part in short_first if part.strip()]


def _within(parts: Sequence[_Part], start: int, end: int) -> tuple[str, ...]:
    """What of the parts' own words stands between two offsets of ReadableMessage.text."""
    pieces, place = [], 0
    for part in parts:
        place += len(part.label) + 1
        piece = part.text[max(0, start - place) : max(0, end - place)]
        if piece.strip():
            pieces.append(piece)
        place += len(part.text) + 1
    return tuple(pieces)


def _part(section: Section, text: str) -> _Part:
    tool = name(section.tool)
    labels = {
        Kind.TOOL_INPUT: f"[call of {tool or 'a tool'}]",
        Kind.TOOL_OUTPUT: f"[output of {tool}]" if tool else "[output]",
        Kind.TASK: "[task for another agent]",
    }
    label = labels.get(section.kind, f"[{section.kind}]")
    return _Part(label, text, _WEIGHTS.get(section.kind, 1), section.part_id)


def _gist(parts: Sequence[_Part], limit: int) -> tuple[str, list[str]]:
    """Each part within its share of the room, and the pieces of them that stand in it."""
    note = f"\n[… {len(parts)} parts left out …]"
    shares = _shares([(size(part.label) + size(part.text) + 2, part.weight) for part in parts], limit - size(note))
    lines: list[str] = []
    pieces: list[str] = []
    omitted = 0
    for part, share in zip(parts, shares, strict=True):
        inside = share - size(part.label) - 2
        if size(part.text) <= inside:
            lines += [part.label, part.text]
            pieces.append(part.text)
        elif inside < MIN_BYTES + size(left_out(len(part.text))):
            omitted += 1
        else:
            head, mark, tail = _ends(part.text, inside)
            lines += [part.label, f"{head}{mark}{tail}"]
            pieces += [piece for piece in (head, tail) if piece.strip()]
    end = f"\n[… {omitted} {'part' if omitted == 1 else 'parts'} left out …]" if omitted else ""
    return "\n".join(lines) + end, pieces


def _ends(text: str, limit: int) -> tuple[str, str, str]:
    """The first three and the last quarter of the room, and the mark between them; at most `limit` bytes."""
    free = limit - size(left_out(len(text))) - 1
    head = cut_at_space(text, free - free // 4)
    tail = cut(text[::-1], free // 4)[::-1]
    return head, left_out(len(text) - len(head) - len(tail)) + "\n", tail


def _shares(sizes: Sequence[tuple[int, int]], limit: int) -> list[int]:
    """How many of `limit` bytes each of (bytes, weight) gets: what it wants, or its share of what the others leave."""
    shares = [0] * len(sizes)
    open_ = set(range(len(sizes)))
    while open_:
        weight = sum(sizes[place][1] for place in open_)
        content = [place for place in open_ if sizes[place][0] * weight <= limit * sizes[place][1]]
        if not content:
            for place in open_:
                shares[place] = limit * sizes[place][1] // weight
            break
        for place in content:
            shares[place] = sizes[place][0]
            limit -= sizes[place][0]
            open_.remove(place)
    return shares


def hit_block(archive: Archive, hit: Hit, limit: int) -> Block | None:
    """The excerpt of a result in at most `limit` bytes; None where that is too little for any of it."""
    hit = visible_hit(archive, hit)
    origin = Origin(hit.message_id, hit.session_id, hit.title, hit.role, hit.created)
    about = f"{hit.kind} of {name(hit.tool)}" if hit.tool else hit.kind
    block = text_block(origin, hit.snippet, limit, about)
    if block is None:
        return None
    message = archive.message(hit.message_id)
    sections = document(message, None, INDEXED_KB).sections if message is not None else ()
    parts = [clean(one_line(section.text)) for section in sections]
    return replace(block, pieces=tuple(_without_labels(" ".join(block.pieces[0].split()).strip(_CUT), parts)))


def _without_labels(excerpt: str, parts: Sequence[str]) -> list[str]:
    """What of an excerpt stands in a part: all of it, or else a whole part, the end of one, the beginning of one."""
    if any(excerpt in part for part in parts):
        return [excerpt]
    pieces: dict[str, None] = {}
    for part in parts:
        if len(part) >= _MIN_CHARS and part in excerpt:
            pieces[part] = None
            continue
        lengths = range(min(len(part), len(excerpt)), _MIN_CHARS - 1, -1)
        end = next((length for length in lengths if part.endswith(excerpt[:length])), 0)
        beginning = next((length for length in lengths if part.startswith(excerpt[-length:])), 0)
        pieces |= dict.fromkeys(piece for piece in (excerpt[:end], excerpt[len(excerpt) - beginning :]) if piece)
    return list(pieces)
