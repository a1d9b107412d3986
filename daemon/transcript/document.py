"""A message as searchable text: one redacted section per part, of the kind that recall filters by.

Tool inputs become readable text, not JSON escapes. A part that is too long keeps its head and its tail, with a note of
what is left out; the archive has all of it. Quoted answers of our own recall are dropped, so that a search never finds
itself (docs/reliability.md, S13): text between our marks, and the output of our tools and of our shell commands.
`chunks`, not this module, decides what is embedded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from daemon import records
from daemon.model import Document, Json, Kind, Message, Part, Section, Session
from daemon.redact import redact, redact_value
from daemon.transcript.evidence.edits import each_edit
from daemon.transcript.own_calls import is_own_call, shows_own_answer
from daemon.transcript.paths import paths
from daemon.transcript.replay import BOOKKEEPING
from daemon.transcript.tool_calls import partial_output, patches, valid_text

RECALL_BEGIN = "<<<reconstitute:recall"
RECALL_END = "reconstitute:recall>>>"
"""Our tools put these lines around what they quote from sessions; the block is never indexed again."""
_MARK = re.compile(f"{re.escape(RECALL_BEGIN)}|{re.escape(RECALL_END)}")
_ERROR = "error"
"""Used as the part id of a message's error."""

_LONG = 64 << 10
"""A field of so many characters is not a password or key."""
_MARGIN = 1 << 16
"""Characters; twice the longest secret that the edge of a window may cut."""

_READ_TEXT = ("Called the Read tool", "<path>", "<file>", "Called the list tool", "Called the List tool")
_NAMED = frozenset({"text", "content", "prompt", "command", "patchText", "oldString", "newString"})
"""Input fields whose text needs no label."""


def document(message: Message, session: Session | None, indexed_kb: int) -> Document:
    """The searchable text of `message`; a section holds at most `indexed_kb` × 1024 characters of its part."""
    where = _redacted(paths(message, session, each_edit(message, session)))
    return Document(message.id, message.session_id, tuple(sections(message, indexed_kb)), where)


def sections(message: Message, indexed_kb: int) -> Iterator[Section]:
    """The sections of the message's `document`."""
    limit = indexed_kb * 1024
    for part in message.parts:
        for kind, tool, text in _texts(part, message.role):
            excerpt = _excerpt(without_recall(text, kind), limit)
            if excerpt.strip():
                yield Section(part.id, kind, excerpt, tool)
    failure = _excerpt(_failure(message), limit)
    if failure.strip():
        yield Section(_ERROR, Kind.TOOL_OUTPUT, failure)


def _failure(message: Message) -> str:
    """The message's own error, as ``name: message``: of the model's server, or that it was stopped."""
    error = message.data.get("error")
    table = records.table(error)
    words = [error, table.get("name"), records.table(table.get("data")).get("message") or table.get("message")]
    failure = ": ".join(text for word in words if (text := valid_text(records.text(word))))
    return without_recall(failure, Kind.TOOL_OUTPUT)


def _redacted(names: tuple[str, ...]) -> tuple[str, ...]:
    """Each path redacted. We check all of them at once first, because there are many and hardly any holds a secret."""
    together = "\n".join(names)
    return names if redact(together) == together else tuple(redact(name) for name in names)


def _excerpt(text: str, limit: int) -> str:
    """`text`, redacted and capped. Of a long text we redact only the part that is displayed, and a margin around it."""
    if len(text) <= limit + 2 * _MARGIN:
        return capped(redact(text), limit)
    tail = limit // 4
    head = limit - tail
    return _framed(redacted_end(text, head, 1), len(text) - head - tail, redacted_end(text, tail, -1))


def redacted_end(text: str, size: int, end: int, margin: int = _MARGIN) -> str:
    """The first (`end` 1) or last (-1) `size` characters of the redacted text, redacting no more than necessary.

    The edge of the window may cut a secret, which then cannot be recognised. So the edge must lie at least `margin`
    characters outside the displayed text, even after redaction has shortened the text before it.
    """
    width = size + margin
    while width < len(text):
        redacted = redact(text[:width] if end > 0 else text[-width:])
        if len(redacted) >= size + margin // 2:
            break
        width *= 2
    else:
        redacted = redact(text)
    return redacted[:size] if end > 0 else redacted[len(redacted) - min(size, len(redacted)) :]


def capped(text: str, limit: int) -> str:
    """`text`, or its first three and its last quarter of `limit` characters around a note of what was left out."""
    if len(text) <= limit:
        return text
    head, tail = limit - limit // 4, limit // 4
    return _framed(text[:head], len(text) - head - tail, text[len(text) - tail :])


def _framed(head: str, left_out: int, tail: str) -> str:
    return f"{head}\n[… {left_out} characters left out …]\n{tail}"


def _texts(part: Part, role: str) -> Iterator[tuple[Kind, str, str]]:
    """(kind, tool, text) of a part."""
    text = valid_text(records.text(part.data.get("text")))
    if part.type in BOOKKEEPING:
        return
    if part.type == "text":
        yield (*_spoken(part, role, text), text)
    elif part.type == "reasoning":
        yield Kind.REASONING, "", text
    elif part.type == "tool":
        yield from _called(part)
    elif part.type in ("subtask", "agent"):
        named = {name: part.data.get(name) for name in ("name", "agent", "description", "prompt", "command")}
        yield Kind.TASK, "", _clean(named)
    elif part.type == "file":
        url = records.text(part.data.get("url"))
        yield Kind.PROMPT, "", readable([part.data.get("filename"), "" if url.startswith("data:") else url])
    elif part.type not in ("compaction", "retry"):
        fields = {key: value for key, value in part.data.items() if key not in ("id", "sessionID", "messageID", "type")}
        yield Kind.TOOL_OUTPUT, "", _clean(fields)


def _spoken(part: Part, role: str, text: str) -> tuple[Kind, str]:
    if part.data.get("synthetic") is True:
        return Kind.TOOL_OUTPUT, "read" if text.startswith(_READ_TEXT) else ""
    kinds = {"user": Kind.PROMPT, "assistant": Kind.ANSWER}
    return kinds.get(role, Kind.TASK), ""


def _called(part: Part) -> Iterator[tuple[Kind, str, str]]:
    state: Json = records.table(part.data.get("state"))
    tool = valid_text(records.text(part.data.get("tool")))
    if is_own_call(part):  # skip its input too, because a search should not find an earlier search
        return
    yield Kind.TASK if tool == "task" else Kind.TOOL_INPUT, tool, _clean(state.get("input"))
    if shows_own_answer(part):  # the command stays: it is what was done
        return
    for name in ("output", "error"):
        yield Kind.TOOL_OUTPUT, tool, _clean(state.get(name))
    yield Kind.TOOL_OUTPUT, tool, partial_output(state)
    call_input = readable(state.get("input"))
    for _, patch in patches(state):
        yield Kind.TOOL_INPUT, tool, _unsaid(patch, call_input)


def _unsaid(patch: str, call_input: str) -> str:
    """The lines that a patch adds or removes and the call's input lacks; most inputs have all of them."""
    lines = [
        line[1:].strip() for line in patch.splitlines() if line[:1] in "+-" and not line.startswith(("+++", "---"))
    ]
    input_lines = {line.strip() for line in call_input.splitlines()}
    return "\n".join(line for line in lines if line and line not in input_lines)


def _clean(value: object) -> str:
    """As `readable`, redacted while the names of the fields still show what their values are.

    Long texts are redacted later, and only the displayed part (`_excerpt`), because they cannot be a secret by name.
    """
    if not isinstance(value, dict):
        return readable(value if isinstance(value, str) else redact_value(value))
    short = {key: item for key, item in value.items() if not (isinstance(item, str) and len(item) > _LONG)}
    return readable(value | redact_value(short))


def readable(value: object, label: str = "") -> str:
    """A JSON value as lines of text: its strings as they are, short scalars behind their names."""
    if isinstance(value, str):
        text = valid_text(value)
        is_short = label and label not in _NAMED and "\n" not in text and len(text) <= 200
        return f"{label}: {text}" if text and is_short else text
    if isinstance(value, dict):
        return "\n".join(line for key, item in value.items() if (line := readable(item, valid_text(str(key)))))
    if isinstance(value, list):
        return "\n".join(line for item in value if (line := readable(item)))
    if value is None or isinstance(value, bool):
        return label if value is True else ""
    return f"{label}: {value}" if label else str(value)


def without_recall(text: str, kind: Kind) -> str:
    """`text` without the blocks between our marks. A tool's output that was cut inside a block ends there."""
    if RECALL_BEGIN not in text:
        return text
    pieces: list[str] = []
    depth = done = 0
    for mark in _MARK.finditer(text):
        if mark[0] == RECALL_BEGIN:
            if depth == 0:
                pieces.append(text[done : mark.start()])
                done = mark.end()
            depth += 1
        elif depth > 0:
            depth -= 1
            done = mark.end()
    if depth == 0 or kind is not Kind.TOOL_OUTPUT:
        pieces.append(text[done:])
    return "".join(pieces)
