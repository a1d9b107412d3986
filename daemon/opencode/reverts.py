"""What a revert leaves behind: marks of when it happened, and messages of which only parts are left.

OpenCode keeps at most one pending revert in a session's record; the next prompt makes it final by removing messages
(formats section 6). Pure functions over records; the journal tells the rest of the story where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from daemon import records
from daemon.model import Part
from daemon.opencode import RevertMark
from daemon.opencode.identifiers import time_of

_ASSISTANT_PARTS = frozenset({"step-start", "step-finish", "tool", "reasoning", "patch"})


def pending(revert: Any, time: int) -> list[RevertMark]:
    """The revert that a session's record shows as pending, since `time` at the latest; none for any other value."""
    data = records.table(revert)
    message_id = records.text(data.get("messageID"))
    if not message_id:
        return []
    part_id, snapshot, diff = (records.text(data.get(name)) for name in ("partID", "snapshot", "diff"))
    return [RevertMark(time, message_id, part_id, snapshot, is_undone=False, diff=diff, is_exact=False)]


def orphan_record(session_id: str, message_id: str, parts: Sequence[Part], now_ms: int) -> bytes:
    """A message record for parts whose own message a revert removed; its ``orphan`` says that we made it."""
    assistant = any(part.type in _ASSISTANT_PARTS for part in parts)
    created = time_of(message_id, now_ms) or 0
    return records.dumps(
        {
            "id": message_id,
            "sessionID": session_id,
            "role": "assistant" if assistant else "user",
            "time": {"created": created, "completed": created},
            "orphan": True,
        }
    )
