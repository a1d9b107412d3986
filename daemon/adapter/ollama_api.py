"""Ollama's API as data: calls become a ModelRequest, answers are written in its form.

Fields unknown to Ollama are ignored, as Ollama does. Those that an OpenCode server has no place for are listed in
`ignored`; those that would change the answer, an image or a text to fill in, are refused.

What goes out are the lines of an answer, errors, and the models on offer. Figures that are not known are left out: a
client that divides by a made-up one would show a made-up speed.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec

from daemon.chat import ToolCall
from daemon.chat.action_text import cleaned
from daemon.chat.actions import names_of
from daemon.chat.opencode.server import OpenCodeServer, ServedModel
from daemon.errors import BadRequest, Skip
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


class _ModelName(msgspec.Struct):
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
    body = _read(data, _ModelName)
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


# -- responses ---------------------------------------------------------------------------------------------------------


Api = Literal["chat", "generate"]
VERSION = "0.13.0"
"""The version of Ollama's API that is spoken; clients ask, and some refuse old ones."""
_FRESH_S = 30.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one answer: nanoseconds and tokens; None where it is not known."""

    total_duration: int
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None

    def fields(self) -> Json:
        """As they stand in a final line."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}


def timestamp(seconds: float | None = None) -> str:
    """A time, now by default, as Ollama writes it."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def piece(api: Api, model: str, text: str = "", calls: tuple[ToolCall, ...] = ()) -> Json:
    """One line that is not the last: some text, or calls."""
    return {"model": model, "created_at": timestamp(), **_content(api, text, calls), "done": False}


def final(api: Api, model: str, figures: Figures, text: str = "", calls: tuple[ToolCall, ...] = ()) -> Json:
    """The last line of a stream, or the whole answer when it has text or calls."""
    head = {"model": model, "created_at": timestamp(), **_content(api, text, calls)}
    return {**head, "done": True, "done_reason": "stop", **figures.fields()}


def loaded(api: Api, model: str, *, is_unload: bool) -> Json:
    """The answer to a request without a prompt."""
    reason = "unload" if is_unload else "load"
    return {"model": model, "created_at": timestamp(), **_content(api, "", ()), "done": True, "done_reason": reason}


def broken_off(api: Api, model: str, message: str, apology: str) -> Json:
    """The last line of a stream that failed after it had begun; clients raise on `error`, people may read `apology`."""
    head = {"model": model, "created_at": timestamp(), **_content(api, apology, ())}
    return {**head, "done": True, "done_reason": "error", "error": message}


def line(value: Json) -> bytes:
    """One line of NDJSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _content(api: Api, text: str, calls: tuple[ToolCall, ...]) -> Json:
    if api == "generate":
        return {"response": text}
    message: Json = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [{"function": {"name": call.name, "arguments": call.arguments}} for call in calls]
    return {"message": message}


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
        "capabilities": ["completion", "tools"],
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


class UnknownModel(Skip):
    """The server does not have the model."""


class Catalog:
    """Asks the server at most every half minute, and at once for a name that it did not have. Safe for threads."""

    def __init__(self, server: OpenCodeServer, first: str = "") -> None:
        """`first`: the name of the model that is listed first, the user's choice; else it is the server's default."""
        self._server, self._first = server, first
        self._lock = threading.Lock()
        self._models: dict[str, ServedModel] = {}
        self._fetched = 0.0

    def all(self) -> list[ServedModel]:
        """Every model, the one that is meant by default first.

        Raises:
            ModelUnavailable: the server does not answer.
        """
        return list(self._models_by_id(_FRESH_S).values())

    def find(self, name: str) -> ServedModel:
        """The model of this name; Ollama's clients may write ``:latest`` after it.

        Raises:
            UnknownModel: there is none; in Ollama's words, which clients look for.
            ModelUnavailable: the server does not answer.
        """
        for fresh_s in (_FRESH_S, 0.0):
            models = self._models_by_id(fresh_s)
            model = models.get(name) or models.get(name.removesuffix(":latest"))
            if model is not None:
                return model
        raise UnknownModel(f"model '{name}' not found")

    def _models_by_id(self, fresh_s: float) -> dict[str, ServedModel]:
        with self._lock:
            if not self._models or time.monotonic() - self._fetched > fresh_s:
                models = sorted(self._server.models(), key=lambda m: (m.id != self._first, not m.is_default))
                self._models = {model.id: model for model in models}
                self._fetched = time.monotonic()
            return self._models
