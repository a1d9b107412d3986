"""The formats of an export: each writes one session in pieces, so a session of any length takes little memory.

`record_line` writes JSON with the fields of docs/exports.md, `chat_line` chat messages as Ollama's, in which each call
keeps its result right behind it, `chapter` Markdown with everything that was said in fences. Its only HTML is our own
``<details>``.

`export` hands out the selected sessions as text, one after the other, while they are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from daemon import markdown, records
from daemon.archive import Archive
from daemon.archive.paths import is_touched, unknown
from daemon.exports import Export, Results
from daemon.exports.content import Item, MessageContent, Other, Text, Thought, ToolCall, iso, line, pretty
from daemon.exports.sessions import SessionContent, open_session, select
from daemon.markdown import code, inline
from daemon.model import Json, OllamaMessage
from daemon.redact import redact
from daemon.transcript.tool_calls import partial_output, patches

_MAX_TEXT_CHARS = 200
"""Characters of an argument or a result in a summary."""
_NAMES = {"user": "Prompt", "assistant": "Answer", "system": "System"}


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
    head |= {name: value for name, value in beside.items() if value}
    yield line(head)[:-1] + ',"messages":['
    comma = ""
    for message in content.messages():
        yield comma + line(_message_entry(message, with_calls=content.request.shows != "none"))
        comma = ","
    yield "]}\n"


def _message_entry(message: MessageContent, *, with_calls: bool = True) -> Json:
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
        entry["tool_calls"] = [_call_entry(item) for item in message.items if isinstance(item, ToolCall)]
    optional = {
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
    return entry | {name: value for name, value in optional.items() if value}


def _thought(item: Thought) -> Json:
    return {"subject": item.subject, "description": item.text, "timestamp": iso(item.time)}


def _call_entry(item: ToolCall) -> Json:
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
        for entry in _filtered(entries, content.request.shows):
            yield comma + line(entry)
            comma = ","
    yield "]}\n"


def _filtered(entries: Iterable[OllamaMessage], results: Results) -> Iterator[OllamaMessage]:
    """What `results` leaves of a message's entries: full: all; summary: long arguments and results cut; none: no calls.

    An entry of which nothing is left is left out.
    """
    for entry in entries:
        if results == "full":
            yield entry
        elif results == "summary":
            yield _summary(entry)
        elif entry.get("role") != "tool":
            other_fields = {key: value for key, value in entry.items() if key != "tool_calls"}
            if any(value for key, value in other_fields.items() if key != "role"):
                yield other_fields


def _summary(entry: OllamaMessage) -> OllamaMessage:
    if entry.get("role") == "tool":
        return {"role": "tool", "tool_name": entry["tool_name"], "content": _short(entry["content"])}
    if "tool_calls" not in entry:
        return entry
    return entry | {"tool_calls": [_short_call(call) for call in entry["tool_calls"]]}


def _short_call(call: Json) -> Json:
    function = call["function"]
    return call | {"function": function | {"arguments": {key: _short(v) for key, v in function["arguments"].items()}}}


def _short(value: object) -> Any:
    """Long text cut, and said so; a large value as the beginning of its JSON."""
    text = value if isinstance(value, str) else line(value)
    if len(text) <= _MAX_TEXT_CHARS:
        return value
    return f"{text[:_MAX_TEXT_CHARS].rstrip()}… [{len(text)} characters]"


def chapter(content: SessionContent) -> Iterator[str]:
    """The chapter of a session, in pieces."""
    session = content.session
    facts = [
        ("Session", code(session.id)),
        ("Directory", code(session.directory) if session.directory else "unknown"),
        ("Project", code(session.project_id) if session.project_id else "unknown"),
        ("Started", iso(session.created) or "unknown"),
        ("Last updated", iso(session.updated) or "unknown"),
        ("Sub-agent of", code(session.parent_id) if session.parent_id else ""),
        ("Archived", iso(session.archived) or ""),
        ("Deleted in OpenCode", iso(content.deleted) or ""),
    ]
    yield f"# {inline(session.title) or code(session.id)}\n\n"
    yield "".join(f"- {name}: {value}\n" for name, value in facts if value) + "\n"
    yield _todos(content.todos())
    for message in content.messages():
        yield from _message(message)


def _todos(items: Sequence[Json]) -> str:
    """The todo list in its last state; what is done is ticked."""
    lines = [
        f"- [{'x' if item.get('status') == 'completed' else ' '}] {code(records.text(item.get('content')))}"
        f"{_facts(item)}\n"
        for item in items
    ]
    return f"**Todo list**\n\n{''.join(lines)}\n" if lines else ""


def _facts(item: Json) -> str:
    facts = [records.text(item.get(name)) for name in ("status", "priority")]
    return "".join(f" · {code(fact)}" for fact in facts if fact)


def _message(message: MessageContent) -> Iterator[str]:
    facts = [
        _NAMES.get(message.role) or inline(message.role),
        iso(message.created) or "unknown time",
        code(message.model) if message.model else "",
        "its own record is gone" if message.orphan else "",
        "deleted in OpenCode" if message.deleted is not None else "",
    ]
    yield f"## {' · '.join(fact for fact in facts if fact)}\n\n"
    if message.system:
        yield _folded("System prompt", message.system)
    in_list = False
    for item in message.items:
        is_entry = isinstance(item, ToolCall)
        # Entries of one list stand together; whatever follows a list is kept apart from it.
        yield ("\n" if in_list and not is_entry else "") + _item(item)
        in_list = is_entry and isinstance(item, ToolCall) and item.state is None
    if in_list:
        yield "\n"
    if message.error:
        name = records.text(records.table(message.error).get("name")) or "unknown"
        yield f"**Error** {code(name)}\n\n{_block(pretty(message.error), 'json')}\n"
    if message.gone:
        yield f"Deleted in OpenCode: {', '.join(code(part) for part in message.gone)}\n\n"


def _item(item: Item) -> str:
    if isinstance(item, Text):
        return _block(item.text, "text") + "\n" if item.text.strip() else ""
    if isinstance(item, Thought):
        subject = "" if item.subject == "Thinking" else item.subject
        return _folded("Reasoning", item.text, subject) if item.text.strip() else ""
    if isinstance(item, ToolCall):
        return _call_text(item)
    return f"**{inline(item.type)}**\n\n{_block(pretty(item.data), 'json')}\n"


def _call_text(item: ToolCall) -> str:
    if item.state is None:
        return f"- **Tool** {code(item.summary)}\n"
    text = f"**Tool** {code(item.summary)}\n\nArguments:\n\n{_block(pretty(item.state.get('input')), 'json')}\n"
    for name in ("output", "error"):
        value = item.state.get(name)
        if value:
            block = _block(value, "text") if isinstance(value, str) else _block(pretty(value), "json")
            text += f"{'Result' if name == 'output' else 'Error'}:\n\n{block}\n"
    if partial := partial_output(item.state):
        text += f"Output until then:\n\n{_block(partial, 'text')}\n"
    for file, patch in patches(item.state):
        text += f"Changed {code(file or 'a file')}:\n\n{_block(patch, 'diff')}\n"
    if item.state.get("attachments"):
        text += f"Attachments:\n\n{_block(pretty(item.state['attachments']), 'json')}\n"
    return text


def _block(text: str, info: str) -> str:
    return f"{markdown.fence(text, info)}\n"


def _folded(title: str, text: str, subject: str = "") -> str:
    about = f"{code(subject)}\n\n" if subject else ""
    return f"<details><summary>{title}</summary>\n\n{about}{_block(text, 'text')}\n</details>\n\n"


# -- sessions one after the other --------------------------------------------------------------------------------------


_FORMATS: dict[str, Callable[[SessionContent], Iterator[str]]] = {
    "jsonl": record_line,
    "messages": chat_line,
    "markdown": chapter,
}
_PIECE = 1 << 16
"""Characters that are gathered before they are handed out; a session's end is handed out at once."""
_MAX_WARNINGS = 20


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
            left_out += len(warnings) >= _MAX_WARNINGS
            warnings += [redact(warning)] if len(warnings) < _MAX_WARNINGS else []
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
        ids = ", ".join(session.missing[:3])
        yield f"session {session.session.id}: {len(session.missing)} messages are not in the archive any more: {ids}"
