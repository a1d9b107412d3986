"""JSON lines: a session a line, with the fields of docs/exports.md.

The line is handed out message by message, so that a session of any length needs the memory of one message.
"""

from __future__ import annotations

from collections.abc import Iterator

from daemon.exports.content import Other, Said, Text, Thought, ToolCall
from daemon.exports.form import iso, line
from daemon.exports.sessions import Opened
from daemon.model import Json


def pieces(opened: Opened) -> Iterator[str]:
    """One line, in pieces."""
    session = opened.session
    head: Json = {
        "session_id": session.id,
        "project_hash": session.project_id,
        "start_time": iso(session.created),
        "last_updated": iso(session.updated),
        "source": opened.asked.source,
        "title": session.title,
        "directory": session.directory,
        "parent_id": session.parent_id,
        "version": session.version,
        "archived": iso(session.archived),
        "deleted": iso(opened.deleted),
    }
    beside = {"todos": opened.todos(), "events": opened.events()}
    head |= {name: found for name, found in beside.items() if found}
    yield line(head)[:-1] + ',"messages":['
    comma = ""
    for said in opened.said():
        yield comma + line(message(said, with_calls=opened.asked.shows != "none"))
        comma = ","
    yield "]}\n"


def message(said: Said, *, with_calls: bool = True) -> Json:
    """A message's entry. The first seven fields are always there, the others where there is something to say."""
    entry: Json = {
        "id": said.id,
        "role": said.role,
        "timestamp": iso(said.created),
        "model": said.model or None,
        "content": "".join(item.text for item in said.items if isinstance(item, Text)),
        "thoughts": [_thought(item) for item in said.items if isinstance(item, Thought)],
        "tokens": said.tokens,
    }
    if with_calls:
        entry["tool_calls"] = [_call(item) for item in said.items if isinstance(item, ToolCall)]
    more = {
        "parts": [{"id": item.part_id} | item.data for item in said.items if isinstance(item, Other)],
        "system": said.system,
        "error": said.error,
        "completed": iso(said.completed),
        "provider": said.provider,
        "agent": said.agent,
        "orphan": said.orphan,
        "deleted": iso(said.deleted),
        "deleted_parts": list(said.gone),
    }
    return entry | {name: value for name, value in more.items() if value}


def _thought(item: Thought) -> Json:
    return {"subject": item.subject, "description": item.text, "timestamp": iso(item.time)}


def _call(item: ToolCall) -> Json:
    entry: Json = {
        "id": item.part_id,
        "call_id": item.call_id,
        "tool": item.tool,
        "status": item.status,
        "timestamp": iso(item.start),
        "ended": iso(item.end),
        "summary": item.summary,
    }
    return entry if item.state is None else entry | {"state": item.state}
