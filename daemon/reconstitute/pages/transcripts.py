"""Where each session has its page, and each message its place on it, so that every citation leads somewhere.

Guarantees: a page's name depends on its session alone; an anchor is the same in every renderer. It renders nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon.reconstitute.facts.values import SessionFacts


class Transcripts:
    """The session pages of a tree; paths are relative to its root."""

    def __init__(self, sessions: Sequence[SessionFacts]) -> None:
        self._sessions = tuple(sessions)

    def href(self, page: str, session_id: str, message_id: str = "") -> str:
        """The link from `page` to a session, or to a message in it; empty where it has no page."""
        return ""
