"""What goes out, in Ollama's form: the lines of an answer, errors, and the models on offer.

Figures that are not known are left out: a client that divides by a made-up one would show a made-up speed.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from daemon.chat import ToolCall
from daemon.chat.opencode.server import OpenCodeServer, ServedModel
from daemon.errors import Skip
from daemon.model import Json

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
        return list(self._known(_FRESH_S).values())

    def find(self, name: str) -> ServedModel:
        """The model of this name; Ollama's clients may write ``:latest`` after it.

        Raises:
            UnknownModel: there is none; in Ollama's words, which clients look for.
            ModelUnavailable: the server does not answer.
        """
        for fresh_s in (_FRESH_S, 0.0):
            known = self._known(fresh_s)
            model = known.get(name) or known.get(name.removesuffix(":latest"))
            if model is not None:
                return model
        raise UnknownModel(f"model '{name}' not found")

    def _known(self, fresh_s: float) -> dict[str, ServedModel]:
        with self._lock:
            if not self._models or time.monotonic() - self._fetched > fresh_s:
                models = sorted(self._server.models(), key=lambda m: (m.id != self._first, not m.is_default))
                self._models = {model.id: model for model in models}
                self._fetched = time.monotonic()
            return self._models
