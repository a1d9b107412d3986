"""A note of an earlier answer as a block: somebody's conclusion, as data, with the messages that it stands on.

It is not what a message says: nothing of it goes into the ledger, so it cannot be cited, only followed up.
"""

from __future__ import annotations

from daemon.reconstitute.agent.context.blocks import LEAST, clean, fenced, name, room, shorten, size, utc
from daemon.reconstitute.note import Note

_PATH_BYTES = 200
_MOST_PATHS, _MOST_SOURCES = 3, 8


def note_block(note: Note, most: int) -> str | None:
    """Delimited text of at most `most` bytes; None where that is too little for any of it."""
    heading = (
        f"{note.kind} about {_some(note.paths or (note.target,), _MOST_PATHS, _PATH_BYTES)} | found out about folder "
        f"{name(note.target, _PATH_BYTES)} | newest source {utc(note.created)} | from messages "
        f"{_some(note.sources, _MOST_SOURCES)}"
    )
    body, free = clean(note.text), room(heading, most)
    if free < min(size(body), LEAST):
        return None
    return fenced(heading, body if size(body) <= free else "".join(shorten(body, free)))


def _some(names: tuple[str, ...], most: int, widest: int = 80) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name(each, widest) for each in names[:most]) + rest
