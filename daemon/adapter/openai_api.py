"""OpenAI's API as data: POST /v1/chat/completions becomes a ModelRequest, the answer is written in its form.

What would make the answer something else than was asked for, and has no place in OpenCode, is refused (`_REFUSED`).
What only adjusts how a model writes is left to OpenCode's settings and named in `ignored`. Other fields are ignored.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any, Literal

import msgspec

from daemon.adapter.exchange import Answer, Figures
from daemon.adapter.failures import Failure, in_shape_of
from daemon.adapter.model_request import (
    Form,
    ModelRequest,
    checked_tools,
    encoded,
    image_url,
    read_object,
    stop_texts,
    typed,
)
from daemon.adapter.schema import check_schema
from daemon.chat import ToolCall
from daemon.chat.actions import names_of
from daemon.chat.opencode.server import ServedModel
from daemon.errors import BadRequest
from daemon.model import Json, OllamaMessage

_NO_PROBABILITIES = "OpenCode does not report the probabilities of tokens"
_ONLY_TEXT = "only text is answered"
_REFUSED = {
    "n": "a request has one answer; ask again for another",
    "logprobs": _NO_PROBABILITIES,
    "top_logprobs": _NO_PROBABILITIES,
    "logit_bias": "OpenCode cannot weight tokens",
    "functions": "it was replaced by tools",
    "function_call": "it was replaced by tool_choice",
    "audio": _ONLY_TEXT,
    "modalities": _ONLY_TEXT,
    "web_search_options": "the model searches only by tools of yours",
}
_HARMLESS: Json = {"n": 1, "modalities": ["text"]}
"""Values that ask for what is done anyway."""
_LEFT_TO_OPENCODE = (
    "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty",
    "reasoning_effort", "verbosity",
)  # fmt: skip


class _Url(msgspec.Struct):
    url: str


class _Part(msgspec.Struct):
    type: str
    text: str = ""
    image_url: _Url | str = ""


class _Function(msgspec.Struct):
    name: str
    arguments: str | dict[str, Any] = ""


class _Call(msgspec.Struct):
    function: _Function
    id: str = ""


class _Message(msgspec.Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Body(msgspec.Struct):
    model: str = ""
    messages: list[_Message] = []
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None


def chat(data: bytes) -> tuple[ModelRequest, OpenAIFormat]:
    """The body of POST /v1/chat/completions, and how its answer is written.

    Raises:
        BadRequest: it makes no sense, or OpenCode has no place for what it asks.
    """
    fields = read_object(data)
    body = typed(fields, _Body)
    if not body.model:
        raise BadRequest("model is required")
    for name, why in _REFUSED.items():
        if fields.get(name) and fields[name] != _HARMLESS.get(name):
            raise BadRequest(f"{name} is not supported: {why}")
    tools, must_call = _tools(body)
    request = ModelRequest(
        body.model,
        _messages(body.messages),
        tools,
        streams=body.stream is True,
        form=_form(body.response_format or {}),
        must_call=must_call,
        stop=stop_texts(fields.get("stop"), "stop"),
        ignored=tuple(name for name in _LEFT_TO_OPENCODE if fields.get(name) is not None),
    )
    if request.is_empty:
        raise BadRequest("messages: there is none to answer")
    options = body.stream_options
    return request, OpenAIFormat(body.model, has_usage=options is not None and options.include_usage is True)


def _messages(messages: list[_Message]) -> tuple[OllamaMessage, ...]:
    """In Ollama's form, in which a result has the name of its tool in place of its call's id."""
    converted, names = list[OllamaMessage](), dict[str, str]()
    for number, message in enumerate(messages):
        role = "system" if message.role == "developer" else message.role
        text, images = _content(message.content, f"messages[{number}]")
        entry: OllamaMessage = {"role": role, "content": text} | ({"images": images} if images else {})
        if message.role == "assistant" and message.tool_calls:
            entry["tool_calls"] = [{"function": msgspec.to_builtins(call.function)} for call in message.tool_calls]
            names |= {call.id: call.function.name for call in message.tool_calls}
        if message.role == "tool":
            if message.tool_call_id not in names:
                raise BadRequest(f"messages[{number}].tool_call_id: no earlier message has a call of this id")
            entry["tool_name"] = names[message.tool_call_id]
        converted.append(entry)
    return tuple(converted)


def _content(content: str | list[_Part] | None, where: str) -> tuple[str, list[str]]:
    """The text, and the images as data: URLs."""
    if not isinstance(content, list):
        return content or "", []
    texts, images = list[str](), list[str]()
    for part in content:
        if part.type == "text":
            texts.append(part.text)
        elif part.type == "image_url":
            url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
            if not url.startswith("data:"):
                raise BadRequest(f"{where}: the adapter fetches no images; send this one as a data: URL")
            images.append(image_url(url))
        else:
            raise BadRequest(
                f"{where}: a part is of the type {json.dumps(part.type)}; only text and image_url are taken"
            )
    return "\n".join(texts), images


def _tools(body: _Body) -> tuple[tuple[Json, ...], bool]:
    """The tools that the model is told of, and whether it must call one."""
    tools, choice = checked_tools(body.tools), body.tool_choice
    if choice in (None, "auto"):
        return tools, False
    if choice == "none":
        return (), False
    if isinstance(choice, dict):
        name = names_of([choice])[0]
        tools = tuple(tool for tool in tools if name and names_of([tool]) == [name])
    elif choice != "required":
        raise BadRequest('tool_choice must be "none", "auto", "required" or name a function')
    if not tools:
        raise BadRequest("tool_choice: there is no such tool in tools")
    return tools, True


def _form(wanted: Json) -> Form:
    """The form of the answer; a mere object is the schema of one, so that a list is not taken for it."""
    match wanted.get("type", "text"):
        case "text":
            return ""
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            about = wanted.get("json_schema")
            schema = about.get("schema") if isinstance(about, dict) else None
            if isinstance(schema, dict):
                check_schema(schema, "response_format.json_schema.schema")
                return schema or {"type": "object"}
            raise BadRequest("response_format.json_schema.schema must be a JSON schema")
    raise BadRequest('response_format.type must be "text", "json_object" or "json_schema"')


# -- responses ---------------------------------------------------------------------------------------------------------


class OpenAIFormat:
    """How the answer to one request is written: one object, or server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, model: str, *, has_usage: bool) -> None:
        """`has_usage`: a stream ends with the tokens."""
        self._model, self._has_usage = model, has_usage
        self._id, self._created = f"chatcmpl-{uuid.uuid4().hex}", int(time.time())
        self._has_begun = False

    def piece(self, text: str) -> bytes:
        """An event with some text, not the last."""
        return self._chunk({"content": text})

    def end(self, answer: Answer) -> bytes:
        """What was not sent yet, and the end."""
        events = self.piece(answer.unsent) if answer.unsent else b""
        if answer.calls:
            calls = [{"index": index, **call} for index, call in enumerate(map(_call, answer.calls))]
            events += self._chunk({"content": None, "tool_calls": calls})
        events += self._chunk({}, _finish(answer))
        if self._has_usage:
            head = self._head("chat.completion.chunk")
            events += _event(head | {"choices": [], "usage": _usage(answer.figures)})
        return events + b"data: [DONE]\n\n"

    def broken_off(self, failure: Failure) -> bytes:
        """The last event of a stream that failed after it had begun."""
        return _event(in_shape_of("/v1", failure))

    def whole(self, answer: Answer) -> Json:
        """An answer that is not streamed."""
        message: Json = {"role": "assistant", "content": answer.content}
        if answer.calls:
            message |= {"content": answer.content or None, "tool_calls": [_call(call) for call in answer.calls]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return self._head("chat.completion") | {"choices": [choice], "usage": _usage(answer.figures)}

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        if not self._has_begun:  # clients put the deltas together: a role in each would be written twice
            delta = {"role": "assistant", **delta}
            self._has_begun = True
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._has_usage else {}
        return _event(self._head("chat.completion.chunk") | {"choices": [choice]} | usage)

    def _head(self, kind: str) -> Json:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}


def _event(value: Json) -> bytes:
    return b"data: " + encoded(value) + b"\n\n"


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": encoded(call.arguments).decode()}
    return {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}


def _usage(figures: Figures) -> Json | None:
    """The tokens, None where OpenCode does not know them."""
    read, written = figures.prompt_eval_count, figures.eval_count
    if read is None or written is None:
        return None
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def model_entry(model: ServedModel, since: float) -> Json:
    """An entry of /v1/models, and the answer to /v1/models/MODEL."""
    return {"id": model.id, "object": "model", "created": int(since), "owned_by": model.id.partition("/")[0]}
