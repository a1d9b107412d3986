"""An export: the sessions that were asked for, one after the other, handed out as text while they are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from daemon.archive import Archive
from daemon.archive.paths import is_touched, unknown
from daemon.exports import Export
from daemon.exports.formats import chapter, chat_line, record_line
from daemon.exports.sessions import SessionContent, open_session, select
from daemon.model import Json
from daemon.redact import redact

_FORMATS: dict[str, Callable[[SessionContent], Iterator[str]]] = {
    "jsonl": record_line,
    "messages": chat_line,
    "markdown": chapter,
}
_PIECE = 1 << 16
"""Characters that are gathered before they are handed out; a session's end is handed out at once."""
_MOST_WARNINGS = 20


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def export(
    archive: Archive,
    request: Export,
    on_part: Callable[[str], None],
    progress: Callable[[Json], None],
    *,
    clock: Callable[[], int] = _now_ms,
) -> Json:
    """Hand the sessions to `on_part`, piece by piece; they are to be written one behind the other, as UTF-8.

    ``{"sessions": n, "messages": n, "warnings": [str]}``. Nothing is handed out when nothing matches. What `on_part`
    raises ends the export. `progress` is told sessions done, of how many. `clock` tells the time in epoch ms.

    Raises:
        BadRequest: a session that is not in the archive, a path that is not absolute, a time that is none.
    """
    chosen = select(archive, request, clock())
    count, warnings, left_out = 0, list[str](), 0
    if not chosen and request.path and not is_touched(archive, request.path):
        warnings.append(redact(unknown(archive, request.path)))
    write = _FORMATS[request.format]
    for number, session_id in enumerate(chosen):
        progress({"phase": "export", "done": number, "total": len(chosen)})
        session = open_session(archive, request, session_id)
        _hand_out(write(session), on_part)
        count += session.count
        for warning in _warnings(session):
            left_out += len(warnings) >= _MOST_WARNINGS
            warnings += [redact(warning)] if len(warnings) < _MOST_WARNINGS else []
    progress({"phase": "export", "done": len(chosen), "total": len(chosen)})
    if left_out:
        warnings.append(f"and {left_out} more of this kind")
    return {"sessions": len(chosen), "messages": count, "warnings": warnings}


def _hand_out(pieces: Iterator[str], on_part: Callable[[str], None]) -> None:
    waiting: list[str] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            on_part("".join(waiting))
            waiting, size = [], 0
    if waiting:
        on_part("".join(waiting))


def _warnings(session: SessionContent) -> Iterator[str]:
    if not session.has_record:
        yield (
            f"session {session.session.id}: its own record is missing or could not be read; "
            "its times and directory are those of its messages"
        )
    if session.missing:
        named = ", ".join(session.missing[:3])
        yield f"session {session.session.id}: {len(session.missing)} messages are not in the archive any more: {named}"
