"""What a message says, taken apart for the formats: texts, thoughts, tool calls, other parts, in their order.

Everything that comes out is clean: `clean` is put over every value here, so that no format has to think of secrets.
Bookkeeping parts (step-start, step-finish, patch, snapshot) say nothing and are left out, as replay leaves them out.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from daemon import records
from daemon.exports import Results
from daemon.model import Json, Message, Part
from daemon.transcript.replay import BOOKKEEPING
from daemon.transcript.tool_calls import PATH_KEYS, first_text

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LATEST = 253_402_300_799_999
_BINARY = re.compile(r"data:[\w.+/-]*(?:;[\w=.+-]+)*;base64,", re.ASCII)
_DELICATE = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What some readers take for the end of a line, what a terminal obeys, and what UTF-8 cannot hold."""
_IDS = frozenset({"id", "messageID", "sessionID"})
_SUMMARY_KEYS = (*PATH_KEYS, "pattern", "query", "url", "description", "prompt", "name")
_MAX_SUMMARY_CHARS = 160


def iso(ms: int | None) -> str | None:
    """Epoch ms as UTC in ISO 8601 with milliseconds and Z, as JavaScript writes it; None where there is no time.

    >>> iso(1795230486655), iso(0)
    ('2026-11-21T03:08:06.655Z', None)
    """
    if not ms or not 0 < ms <= _LATEST:
        return None
    moment = _EPOCH + dt.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(value: object) -> str:
    """`value` as JSON on one line, fields in their own order; always valid JSON and valid UTF-8.

    Characters stay as they are, but for those that end a line or steer a terminal somewhere: those are escaped. A lone
    surrogate becomes U+FFFD, and NaN and Infinity, which Python reads and JSON does not know, become null.
    """
    try:
        text = _dumps(value)
    except ValueError:
        loose = json.dumps(value, ensure_ascii=True)
        text = _dumps(json.loads(loose, parse_constant=lambda _: None))
    if text.isascii() and "\x7f" not in text:
        return text
    return _DELICATE.sub(_escaped, text)


def shortened(value: object) -> Any:
    """A JSON value in which the payload of each base64 data URL is replaced by its length.

    One that is nested too deep to be walked stays as it is.
    """
    try:
        return _shortened(value)
    except RecursionError:
        return value


def cut(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters."""
    text = " ".join(text[: 8 * limit].split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def pretty(value: object) -> str:
    """`value` as JSON over several lines, to be read."""
    text = line(value)
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except RecursionError:  # what is nested that deep is no easier to read over several lines
        return text


def _shortened(value: object) -> Any:
    if isinstance(value, str):
        head = _BINARY.match(value)
        return value if head is None else f"{head[0]}[{len(value) - head.end()} characters]"
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


Clean: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of a prompt or an answer; `is_synthetic`: OpenCode wrote it, in the user's name or the agent's."""

    text: str
    is_synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of reasoning; `time` is epoch ms."""

    subject: str
    text: str
    time: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call: one line of `summary`, and the recorded `state` where it is to be shown whole. Epoch ms."""

    part_id: str
    call_id: str
    tool: str
    status: str
    start: int
    end: int
    summary: str
    state: Json | None


@dataclass(frozen=True, slots=True)
class Other:
    """A part of another type, an attachment for one, or of a shape that its type should not have: its record."""

    part_id: str
    type: str
    data: Json


Item: TypeAlias = Text | Thought | ToolCall | Other


@dataclass(frozen=True, slots=True)
class MessageContent:
    """A message. Times are epoch ms, 0 or None where there is none; `gone` are the parts that its source dropped.

    An `orphan` was made up for parts whose own message its source no longer had; when it was completed nobody knows.
    """

    id: str
    role: str
    created: int
    completed: int | None
    model: str
    provider: str
    agent: str
    system: str
    tokens: Any
    error: Any
    deleted: int | None
    gone: tuple[str, ...]
    items: tuple[Item, ...]
    orphan: bool = False


def message_content(
    message: Message, *, results: Results, clean: Clean, deleted: int | None, deleted_parts: tuple[str, ...]
) -> MessageContent:
    """`message` taken apart; with results "none" its tool calls are left out."""
    data = message.data
    model = records.table(data.get("model"))  # of a prompt: the one it is meant for
    orphan = data.get("orphan") is True
    name = records.text(data.get("modelID")) or first_text(model, ("modelID", "id")) or records.text(data.get("model"))
    return MessageContent(
        id=message.id,
        role=clean(message.role),
        created=message.created,
        completed=None if orphan else message.completed,
        model=clean(name),
        provider=clean(records.text(data.get("providerID")) or records.text(model.get("providerID"))),
        agent=clean(records.text(data.get("agent"))),
        system=clean(records.text(data.get("system"))),
        tokens=clean(data.get("tokens")),
        error=clean(data.get("error")),
        deleted=deleted,
        gone=deleted_parts,
        items=tuple(item for part in message.parts if (item := _item(part, message, results, clean)) is not None),
        orphan=orphan,
    )


def _item(part: Part, message: Message, results: Results, clean: Clean) -> Item | None:
    text = part.data.get("text")
    if part.type in BOOKKEEPING:
        return None
    if part.type == "text" and isinstance(text, str):
        return Text(clean(text), part.data.get("synthetic") is True)
    if part.type == "reasoning" and isinstance(text, str):
        subject = records.table(part.data.get("metadata")).get("subject")
        start = records.integer(records.table(part.data.get("time")).get("start"))
        return Thought(
            clean(subject) if isinstance(subject, str) else "Thinking", clean(text), start or message.created
        )
    if part.type == "tool" and isinstance(part.data.get("state"), dict):
        return None if results == "none" else _call(part, message, results, clean)
    data = {key: value for key, value in part.data.items() if key not in _IDS}
    return Other(part.id, part.type, clean(data if results == "full" else shortened(data)))


def _call(part: Part, message: Message, results: Results, clean: Clean) -> ToolCall:
    state: Json = part.data["state"]
    time = records.table(state.get("time"))
    start = records.integer(time.get("start")) or message.created
    tool = records.text(part.data.get("tool")) or "unknown"
    status = records.text(state.get("status")) or "unknown"
    return ToolCall(
        part_id=part.id,
        call_id=records.text(part.data.get("callID")),
        tool=clean(tool),
        status=clean(status),
        start=start,
        end=records.integer(time.get("end")),
        summary=_summary(tool, status, state, clean),
        state=clean(state) if results == "full" else None,
    )


def _summary(tool: str, status: str, state: Json, clean: Clean) -> str:
    """Such as ``bash pytest -q (completed, 34 lines)``. It is cleaned before it is cut: half a secret has no shape."""
    input_ = records.table(state.get("input"))
    about = first_text(input_, ("command",)) or records.text(state.get("title")) or first_text(input_, _SUMMARY_KEYS)
    about = clean(about) if about else _other_arguments(state.get("input"), clean)
    return " ".join(
        piece
        for piece in (cut(clean(tool), 60), cut(about, _MAX_SUMMARY_CHARS), _outcome(status, state, clean))
        if piece
    )


def _other_arguments(input_: object, clean: Clean) -> str:
    if not isinstance(input_, dict):
        return clean(input_) if isinstance(input_, str) else ""
    words = {key: clean({key: value})[key] for key, value in input_.items() if isinstance(value, str | int | float)}
    return ", ".join(f"{key}={value}" for key, value in words.items())


def _outcome(status: str, state: Json, clean: Clean) -> str:
    facts = [cut(clean(status), 20)]
    error, output = state.get("error"), state.get("output")
    code = records.table(state.get("metadata")).get("exit")
    if isinstance(code, int) and code:
        facts.append(f"exit {code}")
    if status == "error" and isinstance(error, str):
        facts.append(cut(clean(error), _MAX_SUMMARY_CHARS))
    elif isinstance(output, str) and output:
        lines = len(output.splitlines())
        facts.append(f"{lines} line{'' if lines == 1 else 's'}")
    return f"({', '.join(facts)})"
