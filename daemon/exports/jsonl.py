"""The two formats with a session a line: JSON lines with the fields of docs/exports.md, and chat messages as Ollama's.

A line is handed out message by message, so a session of any length takes the memory of one message. In chat messages
each call keeps its result right behind it, whatever is left out (transcript.replay.validate finds nothing to say).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from daemon.exports import Results
from daemon.exports.content import MessageContent, Other, Text, Thought, ToolCall, iso, line
from daemon.exports.sessions import SessionContent
from daemon.model import Json, OllamaMessage

_MOST = 200


def record_line(content: SessionContent) -> Iterator[str]:
    """The line of a session and all it has, in pieces."""
    session = content.session
    head: Json = {
        "session_id": session.id,
        "project_hash": session.project_id,
        "start_time": iso(session.created),
        "last_updated": iso(session.updated),
        "source": content.request.source,
        "title": session.title,
        "directory": session.directory,
        "parent_id": session.parent_id,
        "version": session.version,
        "archived": iso(session.archived),
        "deleted": iso(content.deleted),
    }
    beside = {"todos": content.todos(), "events": content.events()}
    head |= {name: found for name, found in beside.items() if found}
    yield line(head)[:-1] + ',"messages":['
    comma = ""
    for message in content.messages():
        yield comma + line(message_entry(message, with_calls=content.request.shows != "none"))
        comma = ","
    yield "]}\n"


def message_entry(message: MessageContent, *, with_calls: bool = True) -> Json:
    """A message's entry. The first seven fields are always there, the others where there is something to say."""
    entry: Json = {
        "id": message.id,
        "role": message.role,
        "timestamp": iso(message.created),
        "model": message.model or None,
        "content": "".join(item.text for item in message.items if isinstance(item, Text)),
        "thoughts": [_thought(item) for item in message.items if isinstance(item, Thought)],
        "tokens": message.tokens,
    }
    if with_calls:
        entry["tool_calls"] = [_call(item) for item in message.items if isinstance(item, ToolCall)]
    more = {
        "parts": [{"id": item.part_id} | item.data for item in message.items if isinstance(item, Other)],
        "system": message.system,
        "error": message.error,
        "completed": iso(message.completed),
        "provider": message.provider,
        "agent": message.agent,
        "orphan": message.orphan,
        "deleted": iso(message.deleted),
        "deleted_parts": list(message.gone),
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


def chat_line(content: SessionContent) -> Iterator[str]:
    """The line of a session's conversation, in pieces."""
    session = content.session
    yield line({"session_id": session.id, "title": session.title, "directory": session.directory})[:-1]
    yield ',"messages":['
    comma = ""
    for entries in content.replayed():
        for entry in shown(entries, content.request.shows):
            yield comma + line(entry)
            comma = ","
    yield "]}\n"


def shown(entries: Iterable[OllamaMessage], results: Results) -> Iterator[OllamaMessage]:
    """What `results` leaves of a message's entries: full: all; summary: long arguments and results cut; none: no calls.

    An entry of which nothing is left is left out.
    """
    for entry in entries:
        if results == "full":
            yield entry
        elif results == "summary":
            yield _summary(entry)
        elif entry.get("role") != "tool":
            rest = {key: value for key, value in entry.items() if key != "tool_calls"}
            if any(value for key, value in rest.items() if key != "role"):
                yield rest


def _summary(entry: OllamaMessage) -> OllamaMessage:
    if entry.get("role") == "tool":
        return {"role": "tool", "tool_name": entry["tool_name"], "content": _short(entry["content"])}
    if "tool_calls" not in entry:
        return entry
    return entry | {"tool_calls": [_short_call(call) for call in entry["tool_calls"]]}


def _short_call(call: Json) -> Json:
    function = call["function"]
    return call | {"function": function | {"arguments": {key: _short(v) for key, v in function["arguments"].items()}}}


def _short(value: Any) -> Any:
    """Long text cut, and said so; a large value as the beginning of its JSON."""
    text = value if isinstance(value, str) else line(value)
    if len(text) <= _MOST:
        return value
    return f"{text[:_MOST].rstrip()}… [{len(text)} characters]"
