"""A search result as a block. What counts as the message's own words is only what stands in one of its parts.

A result may show more than that: the title of its session, or the end of one part and the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from daemon.archive import Archive
from daemon.display import one_line
from daemon.model import Hit
from daemon.reconstitute.agent.context.blocks import Block, Origin, clean, name
from daemon.reconstitute.agent.context.messages import INDEXED_KB, quoted
from daemon.transcript.document import document

_CUT = "…"
_LEAST = 8
"""Characters that two texts have in common by more than chance."""


def hit_block(archive: Archive, hit: Hit, most: int) -> Block | None:
    """The excerpt of a result in at most `most` bytes; None where that is too little for any of it."""
    origin = Origin(hit.message_id, hit.session_id, hit.title, hit.role, hit.created)
    about = f"{hit.kind} of {name(hit.tool)}" if hit.tool else hit.kind
    block = quoted(origin, hit.snippet, most, about)
    if block is None:
        return None
    message = archive.message(hit.message_id)
    sections = document(message, None, INDEXED_KB).sections if message is not None else ()
    parts = [clean(one_line(section.text)) for section in sections]
    return replace(block, pieces=tuple(_own(" ".join(block.pieces[0].split()).strip(_CUT), parts)))


def _own(excerpt: str, parts: Sequence[str]) -> list[str]:
    """What of an excerpt stands in a part: all of it, or else a whole part, the end of one, the beginning of one."""
    if any(excerpt in part for part in parts):
        return [excerpt]
    pieces: dict[str, None] = {}
    for part in parts:
        if len(part) >= _LEAST and part in excerpt:
            pieces[part] = None
            continue
        lengths = range(min(len(part), len(excerpt)), _LEAST - 1, -1)
        end = next((length for length in lengths if part.endswith(excerpt[:length])), 0)
        beginning = next((length for length in lengths if part.startswith(excerpt[-length:])), 0)
        pieces |= dict.fromkeys(piece for piece in (excerpt[:end], excerpt[len(excerpt) - beginning :]) if piece)
    return list(pieces)
