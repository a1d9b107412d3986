"""Which prompt a revision of a file goes back to, with a link to where it was asked.

Guarantees: a prompt is only named for what happened in its turn; titles and prompts are redacted, cut and inert. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daemon import markdown
from daemon.files import Revision
from daemon.reconstitute.facts.session_values import Call, SessionFacts, Turn
from daemon.reconstitute.pages.transcripts import Transcripts

MOST_PROMPT = 100
"""Characters of a prompt where it stands beside what it led to."""
_MOST_TITLE = 60


class Prompts:
    """The turns and calls of a target's sessions by what a revision has in hand; `titles` are by session id."""

    def __init__(self, sessions: Sequence[SessionFacts], titles: Mapping[str, str], transcripts: Transcripts) -> None:
        self._titles = titles
        self._transcripts = transcripts
        self._turns = {
            (one.id, message): turn for one in sessions for turn in one.turns for message in turn.message_ids
        }
        self._calls = {call.part_id: call for one in sessions for turn in one.turns for call in turn.calls}

    def turn(self, session_id: str, message_id: str) -> Turn | None:
        """The turn that a message belongs to."""
        return self._turns.get((session_id, message_id))

    def call(self, revision: Revision) -> Call | None:
        """The call that made a revision."""
        return self._calls.get(revision.part_id) if revision.part_id else None

    def asked(self, page: str, session_id: str, message_id: str, most: int = MOST_PROMPT) -> markdown.Markdown:
        """The prompt in quotation marks, linked; empty where none is known."""
        turn = self.turn(session_id, message_id)
        if turn is None or not turn.prompt.strip():
            return markdown.Markdown("")
        label = f"“{markdown.cut(markdown.bare(turn.prompt).strip(), most)}”"
        return self._linked(label, page, session_id, turn.prompt_id)

    def session(self, page: str, session_id: str, message_id: str = "") -> markdown.Markdown:
        """The session's title, linked to the message; empty where no session is known."""
        if not session_id:
            return markdown.Markdown("")
        title = markdown.bare(self._titles.get(session_id, "") or session_id).strip() or session_id
        return self._linked(markdown.cut(title, _MOST_TITLE), page, session_id, message_id)

    def basis(self, page: str, revision: Revision) -> tuple[object, ...]:
        """All that `page` may say of where a revision comes from, without rendering it."""
        turn, call = self.turn(revision.session_id, revision.message_id), self.call(revision)
        asked = () if turn is None else (turn.prompt, self._href(page, revision.session_id, turn.prompt_id))
        ended = () if call is None else (call.status, call.started, call.ended)
        session_id = revision.session_id
        return (asked, ended, self._titles.get(session_id, ""), self._href(page, session_id, revision.message_id))

    def _href(self, page: str, session_id: str, message_id: str) -> str:
        return self._transcripts.href(page, session_id, message_id)

    def _linked(self, label: str, page: str, session_id: str, message_id: str) -> markdown.Markdown:
        href = self._href(page, session_id, message_id)
        return markdown.link(label, href) if href else markdown.inline(label)
