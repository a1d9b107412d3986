"""Converts a message to Ollama's ``messages[]``: exact, in part order, with the whole conversation.

One text part is one message's content, so that part boundaries stay visible; consecutive tool calls share one assistant
message, as one step of the model made them, and their results follow in the same order. Data that Ollama has no field
for becomes a line of JSON in the content: ``[opencode_part:TYPE] {…}``. Bookkeeping parts (step-start, step-finish,
patch, snapshot) are not conversation and are left out; they stay in the archive. No record makes it raise.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import replace

from daemon import records
from daemon.model import Json, Message, OllamaMessage, Part
from daemon.redact import redact_value
from daemon.transcript.tool_calls import compact, partial_output, valid, valid_text

BOOKKEEPING = frozenset({"step-start", "step-finish", "patch", "snapshot"})
KNOWN_TYPES = BOOKKEEPING | {"text", "reasoning", "tool", "file", "agent", "subtask", "compaction", "retry"}
ROLES = frozenset({"user", "assistant", "system"})
INTERRUPTED = "[Tool execution was interrupted]"
"""OpenCode shows the model this text for a call without a result."""
_IDS = frozenset({"id", "sessionID", "messageID", "type"})
IMAGE = re.compile(r"data:image/[\w.+-]+(?:;[\w=.+-]+)*;base64,", re.ASCII)
_AS_THEY_ARE = frozenset({"role", "images"})
_RECORD = "[opencode_"
"""The beginning of a line of JSON for data that Ollama has no field for."""


def replay(message: Message) -> list[OllamaMessage]:
    """The message as entries of ``messages[]``, ready to be sent; every string is valid UTF-8."""
    conversation = _Conversation(message.role if message.role in ROLES else "user")
    system = message.data.get("system")
    if isinstance(system, str) and system:
        conversation.messages.append({"role": "system", "content": valid_text(system)})
    if message.role not in ROLES:
        conversation.say(f"[opencode_role:{valid_text(message.role)}]")
    for part in message.parts:
        _add(conversation, part)
    error = message.data.get("error")
    if error:
        name = records.text(records.table(error).get("name")) or "unknown"
        conversation.say(f"[opencode_error:{valid_text(name)}] {compact(error)}")
    conversation.flush()
    return conversation.messages


def unknown_types(message: Message) -> list[str]:
    """Types of parts that this version does not know, one entry per part; `status` counts them."""
    return [part.type for part in message.parts if part.type not in KNOWN_TYPES]


class _Conversation:
    """The messages so far, the open one, and the tool results that will follow it."""

    def __init__(self, role: str) -> None:
        self.messages: list[OllamaMessage] = []
        self._role = role
        self._open: OllamaMessage | None = None
        self._results: list[OllamaMessage] = []

    def flush(self) -> None:
        if self._open is not None:
            self.messages.append(self._open)
            self._open = None
        self.messages += self._results
        self._results = []

    def _message_for(self, role: str, *filled: str) -> OllamaMessage:
        """The open message, or a new one if the role differs or one of these fields is already filled."""
        if self._open is None or self._open["role"] != role or any(self._open.get(name) for name in filled):
            self.flush()
            self._open = {"role": role, "content": ""}
        return self._open

    def say(self, text: str) -> None:
        if text:
            self._message_for(self._role, "content", "tool_calls")["content"] = text

    def think(self, text: str) -> None:
        if text:
            self._message_for("assistant", "content", "tool_calls", "thinking")["thinking"] = text

    def show(self, image: str) -> None:
        self._message_for(self._role, "tool_calls").setdefault("images", []).append(image)

    def call(self, name: str, arguments: Json, result: OllamaMessage) -> None:
        calls = self._message_for("assistant").setdefault("tool_calls", [])
        calls.append({"type": "function", "function": {"index": len(calls), "name": name, "arguments": arguments}})
        self._results.append(result)

    @property
    def thinks(self) -> bool:
        return self._role == "assistant"


def _add(conversation: _Conversation, part: Part) -> None:
    text = part.data.get("text")
    if part.type in BOOKKEEPING:
        return
    if part.type == "text" and isinstance(text, str):
        conversation.say(valid_text(text))
    elif part.type == "reasoning" and isinstance(text, str) and conversation.thinks:
        conversation.think(valid_text(text))
    elif part.type == "tool" and isinstance(part.data.get("state"), dict):
        _add_call(conversation, part)
    elif part.type == "file" and (image := _image(part.data)) is not None:
        conversation.say(_block("file", {key: value for key, value in part.data.items() if key != "url"}))
        conversation.show(image)
    else:
        conversation.say(_block(part.type, part.data))


def _block(kind: str, data: Json) -> str:
    fields = {key: value for key, value in data.items() if key not in _IDS}
    return f"[opencode_part:{valid_text(kind)}] {compact(fields)}"


def _add_call(conversation: _Conversation, part: Part) -> None:
    state: Json = part.data["state"]
    name = valid_text(records.text(part.data.get("tool"))) or "unknown"
    arguments = state.get("input")
    if arguments is None and "input" not in state:
        arguments = {}
    arguments = valid(arguments if isinstance(arguments, dict) else {"_input": arguments})
    content = [_result(state)]
    images = []
    attachments = state.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else []:
        image = _image(records.table(attachment))
        if image is None:
            content.append(f"[opencode_part:file] {compact(attachment)}")
        else:
            images.append(image)
    answer: OllamaMessage = {"role": "tool", "tool_name": name, "content": "\n".join(line for line in content if line)}
    if images:
        answer["images"] = images
    conversation.call(name, arguments, answer)


def _result(state: Json) -> str:
    """The output (also if OpenCode has pruned it from the prompt) or a part of it, and the error."""
    partial = partial_output(state)
    if state.get("status") in ("pending", "running"):
        return f"{partial}\n{INTERRUPTED}" if partial else INTERRUPTED
    for field, status in (("error", "error"), ("output", "completed")):
        if state.get("status") == status:
            return "\n".join(text for text in (partial, _as_text(state.get(field))) if text)
    texts = [_as_text(state[field]) for field in ("output", "error") if state.get(field)]
    return "\n".join(texts) or INTERRUPTED


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return valid_text(value) if isinstance(value, str) else compact(value)


def _image(file: Json) -> str | None:
    """The base64 payload of an image's data URL; None for anything else, which is kept as JSON."""
    url = file.get("url")
    prefix = IMAGE.match(url) if isinstance(url, str) else None
    if prefix is None:
        return None
    payload = prefix.string[prefix.end() :]
    return payload if _is_base64(payload) else None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def clean_replay(message: Message) -> list[OllamaMessage]:
    """The replay of `message`, redacted; structure and images are kept.

    A secret is recognised by the text around it. If `replay` writes a record as a line of JSON, its line breaks are
    escaped, and a secret at the end of a line (``password: ...``) can no longer be recognised. So such records are
    redacted before they are written out, and all others after.
    """
    entries = replay(message)
    if any(_RECORD in str(entry.get("content")) for entry in entries):
        entries = replay(_clean_records(message))
    return [
        {key: value if key in _AS_THEY_ARE else redact_value({key: value})[key] for key, value in entry.items()}
        for entry in entries
    ]


def _clean_records(message: Message) -> Message:
    parts = tuple(
        replace(part, data=_clean_record(part.data)) for part in message.parts if part.type not in BOOKKEEPING
    )
    return replace(message, parts=parts, data=message.data | {"error": redact_value(message.data.get("error"))})


def _clean_record(data: Json) -> Json:
    redacted: Json = redact_value(data)
    url = data.get("url")
    if isinstance(url, str) and IMAGE.match(url):
        redacted["url"] = url
    attachments = records.table(data.get("state")).get("attachments")
    if isinstance(attachments, list):
        redacted["state"]["attachments"] = [_attachment(attachment) for attachment in attachments]
    return redacted


def _attachment(value: object) -> object:
    return _clean_record(value) if isinstance(value, dict) else redact_value(value)
