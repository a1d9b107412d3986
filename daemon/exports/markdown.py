"""A document to read: a chapter a session, a section a message, everything that was said in fences (inert).

Reasoning is folded. The only HTML is our own ``<details>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daemon import markdown, records
from daemon.exports.content import Item, MessageContent, Text, Thought, ToolCall, iso, pretty
from daemon.exports.sessions import SessionContent
from daemon.markdown import code, inline
from daemon.model import Json
from daemon.transcript.tool_calls import partial_output, patches

_NAMES = {"user": "Prompt", "assistant": "Answer", "system": "System"}


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
    told = [records.text(item.get(name)) for name in ("status", "priority")]
    return "".join(f" · {code(fact)}" for fact in told if fact)


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
        return _call(item)
    return f"**{inline(item.type)}**\n\n{_block(pretty(item.data), 'json')}\n"


def _call(item: ToolCall) -> str:
    if item.state is None:
        return f"- **Tool** {code(item.summary)}\n"
    text = f"**Tool** {code(item.summary)}\n\nArguments:\n\n{_block(pretty(item.state.get('input')), 'json')}\n"
    for name in ("output", "error"):
        value = item.state.get(name)
        if value:
            shown = _block(value, "text") if isinstance(value, str) else _block(pretty(value), "json")
            text += f"{'Result' if name == 'output' else 'Error'}:\n\n{shown}\n"
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
