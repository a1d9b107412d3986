"""The bodies of Ollama's chat and generate calls, checked, become one ModelRequest.

Fields unknown to Ollama are ignored, as Ollama does. Those that an OpenCode server has no place for are listed in
`ignored`; those that would change the answer, an image or a text to fill in, are refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from daemon.chat.action_text import cleaned
from daemon.chat.actions import names_of
from daemon.errors import BadRequest
from daemon.model import Json, OllamaMessage
from daemon.records import built

T = TypeVar("T")
Form = str | Json
"""What the answer's text must be: "" anything, "json" JSON, a schema JSON of that schema."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One turn that a client wants. `keeps`: whether its session may wait for the next one."""

    model: str
    messages: tuple[OllamaMessage, ...]
    tools: tuple[Json, ...] = ()
    streams: bool = True
    form: Form = ""
    keeps: bool = True
    ignored: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is no prompt: the client only wants the model loaded, or unloaded."""
        return not any(m["role"] != "system" for m in self.messages)


class _Message(msgspec.Struct, omit_defaults=True):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_name: str | None = None
    name: str | None = None
    images: list[Any] | None = None


class _Body(msgspec.Struct):
    model: str = ""
    stream: bool | None = None
    format: str | dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    keep_alive: str | float | None = None
    think: bool | str | None = None
    logprobs: bool | None = None


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
    images: list[Any] | None = None


class _Named(msgspec.Struct):
    model: str = ""
    name: str = ""


def chat(data: bytes) -> ModelRequest:
    """The body of POST /api/chat.

    Raises:
        BadRequest: it makes no sense, or has images.
    """
    body = _read(data, _Chat)
    messages = [msgspec.to_builtins(m) | {"content": m.content or ""} for m in body.messages or []]
    tools = tuple(body.tools or ())
    if not all(names_of(tools)):
        raise BadRequest('every tool needs a name: {"type": "function", "function": {"name": …}}')
    return _request(body, messages, tools)


def generate(data: bytes) -> ModelRequest:
    """The body of POST /api/generate, as a conversation of one turn.

    Raises:
        BadRequest: it makes no sense, or OpenCode has no place for what it asks.
    """
    body = _read(data, _Generate)
    if body.suffix:
        raise BadRequest(f"{body.model!r} does not support insert: no model behind OpenCode fills in text; omit suffix")
    if body.raw and (body.template or body.context or body.system):
        raise BadRequest("raw mode does not support template, system, or context")
    messages: list[OllamaMessage] = [{"role": "system", "content": body.system}] if body.system else []
    if body.prompt or body.images:
        messages.append({"role": "user", "content": body.prompt or "", "images": body.images})
    return _request(body, messages, ())


def model_of(data: bytes) -> str:
    """The model that POST /api/show names.

    Raises:
        BadRequest: there is none.
    """
    body = _read(data, _Named)
    if not (body.model or body.name):
        raise BadRequest("model is required")
    return body.model or body.name


def _request(body: _Body, messages: Sequence[OllamaMessage], tools: tuple[Json, ...]) -> ModelRequest:
    if not body.model:
        raise BadRequest("model is required")
    if any(message.pop("images", None) for message in messages):
        raise BadRequest("images are not passed on to OpenCode; send the text alone")
    form = body.format or ""
    if isinstance(form, str) and form not in ("", "json"):
        raise BadRequest(f'invalid format: {json.dumps(form)}; expected "json" or a JSON schema')
    is_unload = body.keep_alive in (0, "0", "0s", "0m", "0h")
    ignored = [name for name in ("options", "think", "logprobs", "template", "context") if getattr(body, name, None)]
    ignored += ["keep_alive"] if body.keep_alive is not None and not is_unload else []
    return ModelRequest(
        body.model, tuple(messages), tools, body.stream is not False, form, keeps=not is_unload, ignored=tuple(ignored)
    )


def _read(data: bytes, schema: type[T]) -> T:
    if not data.strip():
        raise BadRequest("missing request body")
    try:
        # Not by msgspec alone: it refuses a lone surrogate, which comes from clients that cut texts anywhere.
        return msgspec.convert(cleaned(json.loads(data)), built(schema))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadRequest(f"the body cannot be read: {error or 'it is nested too deeply'}") from None
