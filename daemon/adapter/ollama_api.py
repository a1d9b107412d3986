"""Ollama's API as data: calls become a ModelRequest, answers are written in its form.

Fields unknown to Ollama are ignored, as Ollama does. Those that an OpenCode server has no place for are listed in
`ignored`; those that would change what the answer is, a text to fill in or probabilities, are refused.

What goes out are the lines of an answer and the models on offer. Figures that are not known are left out: a client that
divides by a made-up one would show a made-up speed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from daemon.adapter.exchange import Answer
from daemon.adapter.failures import Failure, in_shape_of
from daemon.adapter.model_request import ModelRequest, checked_tools, encoded, image_url, read_object, stop_texts, typed
from daemon.adapter.schema import check_schema
from daemon.chat import ToolCall
from daemon.chat.opencode.server import ServedModel
from daemon.errors import BadRequest
from daemon.model import Json, OllamaMessage


class _Message(msgspec.Struct, omit_defaults=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_name: str | None = None
    name: str | None = None
    images: list[str] | None = None


class _Body(msgspec.Struct):
    model: str = ""
    stream: bool | None = None
    format: str | dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    keep_alive: str | float | None = None
    think: bool | str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None


class _Chat(_Body):
    messages: list[_Message] | None = None
    tools: list[dict[str, Any]] | None = None


class _Generate(_Body):
    prompt: str | None = None
    system: str | None = None
    suffix: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    images: list[str] | None = None


class _ModelName(msgspec.Struct):
    model: str = ""
    name: str = ""


def chat(data: bytes) -> tuple[ModelRequest, OllamaFormat]:
    """The body of POST /api/chat, and how its answer is written.

    Raises:
        BadRequest: it makes no sense.
    """
    body = typed(read_object(data), _Chat)
    messages = [msgspec.to_builtins(m) | {"content": m.content or ""} for m in body.messages or []]
    return _request(body, messages, checked_tools(body.tools)), OllamaFormat("chat", body.model)


def generate(data: bytes) -> tuple[ModelRequest, OllamaFormat]:
    """The body of POST /api/generate, as a conversation of one turn, and how its answer is written.

    Raises:
        BadRequest: it makes no sense, or OpenCode has no place for what it asks.
    """
    body = typed(read_object(data), _Generate)
    if body.suffix:
        raise BadRequest(f"{body.model!r} does not support insert: no model behind OpenCode fills in text; omit suffix")
    if body.raw and (body.template or body.context or body.system):
        raise BadRequest("raw mode does not support template, system, or context")
    messages: list[OllamaMessage] = [{"role": "system", "content": body.system}] if body.system else []
    if body.prompt or body.images:
        messages.append({"role": "user", "content": body.prompt or "", "images": body.images})
    return _request(body, messages, ()), OllamaFormat("generate", body.model)


def model_of(data: bytes) -> str:
    """The model that POST /api/show names.

    Raises:
        BadRequest: there is none.
    """
    body = typed(read_object(data), _ModelName)
    if not (body.model or body.name):
        raise BadRequest("model is required")
    return body.model or body.name


def _request(body: _Body, messages: Sequence[OllamaMessage], tools: tuple[Json, ...]) -> ModelRequest:
    if not body.model:
        raise BadRequest("model is required")
    if body.logprobs or body.top_logprobs:
        raise BadRequest("logprobs: OpenCode does not report the probabilities of tokens; leave it out")
    for message in messages:
        if images := message.pop("images", None):
            message["images"] = [image_url(image) for image in images]
    form = body.format or ""
    if isinstance(form, str) and form not in ("", "json"):
        raise BadRequest(f'invalid format: {json.dumps(form)}; expected "json" or a JSON schema')
    if isinstance(form, dict):
        check_schema(form, "format")
    is_unload = body.keep_alive in (0, "0", "0s", "0m", "0h")
    options = body.options or {}
    ignored = ["options"] if options.keys() - {"stop"} else []
    ignored += [name for name in ("think", "template", "context") if getattr(body, name, None)]
    ignored += ["keep_alive"] if body.keep_alive is not None and not is_unload else []
    return ModelRequest(
        body.model,
        tuple(messages),
        tools,
        body.stream is not False,
        form,
        keeps=not is_unload,
        stop=stop_texts(options.get("stop"), "options.stop"),
        ignored=tuple(ignored),
    )


# -- responses ---------------------------------------------------------------------------------------------------------


VERSION = "0.13.0"
"""The version of Ollama's API that is spoken; clients ask, and some refuse old ones."""


class OllamaFormat:
    """How the answer to one request is written: one object, or lines of JSON."""

    media_type = "application/x-ndjson"

    def __init__(self, api: Literal["chat", "generate"], model: str) -> None:
        self._api, self._model = api, model

    def piece(self, text: str) -> bytes:
        """A line with some text, not the last."""
        return _line(self._head(text) | {"done": False})

    def end(self, answer: Answer) -> bytes:
        """What was not sent yet, and the last line."""
        rest = (
            _line(self._head(answer.unsent, answer.calls) | {"done": False}) if answer.unsent or answer.calls else b""
        )
        return rest + _line(self._last("", (), answer))

    def broken_off(self, failure: Failure) -> bytes:
        """The last line of a stream that failed after it had begun."""
        return _line(in_shape_of("/api", failure))

    def whole(self, answer: Answer) -> Json:
        """An answer that is not streamed."""
        return self._last(answer.content, answer.calls, answer)

    def loaded(self, *, is_unload: bool) -> Json:
        """The answer to a request without a prompt."""
        return self._head("") | {"done": True, "done_reason": "unload" if is_unload else "load"}

    def _last(self, text: str, calls: tuple[ToolCall, ...], answer: Answer) -> Json:
        figures = {name: value for name, value in asdict(answer.figures).items() if value is not None}
        return self._head(text, calls) | {"done": True, "done_reason": "stop"} | figures

    def _head(self, text: str, calls: tuple[ToolCall, ...] = ()) -> Json:
        head = {"model": self._model, "created_at": timestamp()}
        if self._api == "generate":
            return head | {"response": text}
        message: Json = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [{"function": {"name": call.name, "arguments": call.arguments}} for call in calls]
        return head | {"message": message}


def _line(value: Json) -> bytes:
    return encoded(value) + b"\n"


def timestamp(seconds: float | None = None) -> str:
    """A time, now by default, as Ollama writes it."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def model_entry(model: ServedModel, since: float) -> Json:
    """An entry of /api/tags; what has no meaning for a model that runs elsewhere is empty."""
    return {
        "name": model.id,
        "model": model.id,
        "modified_at": timestamp(since),
        "size": 0,
        "digest": _digest(model),
        "details": _details(model),
    }


def running_model(model: ServedModel, until: float) -> Json:
    """An entry of /api/ps: a session waits for its next turn until then."""
    entry = model_entry(model, until) | {"expires_at": timestamp(until), "size_vram": 0}
    del entry["modified_at"]
    return entry | ({"context_length": model.context_tokens} if model.context_tokens else {})


def model_details(model: ServedModel, since: float) -> Json:
    """The answer to /api/show. Tools work with every model, since the prompt describes them."""
    family = _details(model)["family"]
    about: Json = {"general.architecture": family, "general.basename": model.name}
    if model.context_tokens:
        about[f"{family}.context_length"] = model.context_tokens
    return {
        "modelfile": f"# {model.id} of an OpenCode server\nFROM {model.id}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _details(model),
        "model_info": about,
        "capabilities": ["completion", "tools", *(["vision"] if model.takes_images else [])],
        "modified_at": timestamp(since),
    }


def _details(model: ServedModel) -> Json:
    family = model.id.partition("/")[0]
    return {
        "parent_model": "",
        "format": "opencode",
        "family": family,
        "families": [family],
        "parameter_size": "",
        "quantization_level": "",
    }


def _digest(model: ServedModel) -> str:
    return hashlib.sha256(model.id.encode()).hexdigest()
