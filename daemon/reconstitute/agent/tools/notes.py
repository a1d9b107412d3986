"""The tool that searches what was found out before, about whatever target.

Nothing that it shows is noted in the ledger: a conclusion is no source. Nothing later than the moment in question is
shown, and nothing that the very question it is asked for was answered with: a model is not to quote itself.
"""

from __future__ import annotations

from daemon.display import counted
from daemon.errors import BadRequest, IndexBroken, Retry
from daemon.reconstitute.agent.note_blocks import note_block
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.agent.tools import schemas
from daemon.reconstitute.agent.tools.result import Sheet
from daemon.redact import redact

_MOST = 8
_WIDEST = 1800
"""Bytes of one note."""


class Noted:
    """Answers one call onto a sheet; `warnings`, for people, is added to where notes cannot be searched."""

    def __init__(
        self, notes: Notes | None, target: str, question_id: str, moment: int | None, warnings: list[str]
    ) -> None:
        self._notes, self._target, self._question_id, self._moment = notes, target, question_id, moment
        self._warnings = warnings

    def search_notes(self, asked: schemas.SearchNotes, sheet: Sheet) -> None:
        """The nearest notes.

        Raises:
            BadRequest: in words for the model, there is nothing to be searched for or in.
        """
        if self._notes is None:
            raise BadRequest("nothing was noted before; use search_sessions")
        try:
            found = self._notes.search(
                asked.query, _MOST, target=self._target, question_id=self._question_id, moment=self._moment
            )
        except (IndexBroken, Retry) as error:  # the owner of the index was told; other tools still answer
            warning = f"a search of the model in notes was not answered: {redact(str(error))}"
            if warning not in self._warnings:
                self._warnings.append(warning)
            raise BadRequest("notes cannot be searched at the moment; use search_sessions") from error
        missing = 0
        for note in found:
            block = note_block(note, min(_WIDEST, sheet.room))
            if block is None:
                missing += 1
            else:
                sheet.put(block)
        if not found:
            sheet.say("Nothing like it was noted before; search_sessions searches the records themselves.")
        if missing:
            sheet.say(f"{counted(missing, 'note')} did not fit; ask for something narrower.")
        if missing < len(found):
            sheet.say("These are earlier conclusions, no records: read_message the messages they name, and cite those.")
