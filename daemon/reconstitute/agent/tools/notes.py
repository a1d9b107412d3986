"""The tool that searches notes: what was found out before, about this target or another.

Nothing that it shows is entered in the ledger: a conclusion is no source. It shows nothing later than the moment in
question, and nothing that answered the very question being asked: a model must not quote itself.
"""

from __future__ import annotations

from daemon.display import counted
from daemon.errors import BadRequest, Retry
from daemon.reconstitute.agent.context.blocks import LEAST, body_room, clean, fenced, name, shorten, size, utc
from daemon.reconstitute.agent.notes import Note
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.call import Evidence, Result
from daemon.redact import redact

_PATH_BYTES = 200
_MOST_PATHS, _MOST_SOURCES = 3, 8
_MOST = 8
_WIDEST = 1800
"""Bytes of one note."""


def note_block(note: Note, most: int) -> str | None:
    """Delimited text of at most `most` bytes; None where that is too little for any of it."""
    heading = (
        f"{note.kind} about {_some(note.paths or (note.target,), _MOST_PATHS, _PATH_BYTES)} | found out about folder "
        f"{name(note.target, _PATH_BYTES)} | newest source {utc(note.created)} | from messages "
        f"{_some(note.sources, _MOST_SOURCES)}"
    )
    body, free = clean(note.text), body_room(heading, most)
    if free < min(size(body), LEAST):
        return None
    return fenced(heading, body if size(body) <= free else "".join(shorten(body, free)))


def _some(names: tuple[str, ...], most: int, widest: int = 80) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name(each, widest) for each in names[:most]) + rest


class NoteTools:
    """Searches the notes, but for those that answered `question_id` about this target."""

    def __init__(self, evidence: Evidence, question_id: str) -> None:
        self._evidence, self._question_id = evidence, question_id

    def search_notes(self, request: schemas.SearchNotes, result: Result) -> None:
        """Add the nearest notes.

        Raises:
            BadRequest: in words for the model, there is nothing to search for or in.
        """
        evidence, index = self._evidence, self._evidence.holdings.notes
        if index is None:
            raise BadRequest("nothing was noted before; use search_sessions")
        try:
            notes = index.search(
                request.query, _MOST, target=evidence.target, question_id=self._question_id, moment=evidence.moment
            )
        except Retry as error:  # the owner of the index was told; other tools still answer
            evidence.warn(f"a search of the model in notes was not answered: {redact(str(error))}")
            raise BadRequest("notes cannot be searched at the moment; use search_sessions") from error
        missing = 0
        for note in notes:
            block = note_block(note, min(_WIDEST, result.room))
            if block is None:
                missing += 1
            else:
                result.add_block(block)
        if not notes:
            result.add_line("Nothing like it was noted before; search_sessions searches the records themselves.")
        if missing:
            result.add_line(f"{counted(missing, 'note')} did not fit; ask for something narrower.")
        if missing < len(notes):
            result.add_line(
                "These are earlier conclusions, no records: read_message the messages they name, and cite those."
            )
