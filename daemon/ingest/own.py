"""Our own sessions told from the user's: what we ask a model through OpenCode is no content (docs/reliability.md, S13).

The title tells it, as chat.opencode.server gives it. Where there is no record to read (it is being written, or only
messages are left of a deleted session) the messages do: each names our agent or a tool of that name.
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon.model import Message, Session
from daemon.opencode_ids import OWN_MARK, OWN_SESSION_TITLE
from daemon.records import table


def is_own(session: Session | None, messages: Iterable[Message]) -> bool:
    """Whether a session is ours. `session` is its record, or None; `messages` are only looked at without one.

    The title that a session has now counts: one that the user renamed, to go on with it, is the user's.
    """
    if session is not None and session.raw != b"{}":
        return session.title.startswith(OWN_SESSION_TITLE)
    return any(is_own_message(message) for message in messages)


def is_own_message(message: Message) -> bool:
    """Whether a message belongs to such a session: a prompt of ours, or the answer to one."""
    data = message.data
    if OWN_MARK in (data.get("agent"), data.get("mode")) or OWN_MARK in table(data.get("tools")):
        return True
    return any(OWN_MARK in table(part.data.get("metadata")) for part in message.parts)
