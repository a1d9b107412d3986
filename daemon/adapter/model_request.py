"""What a client asks for in either API: one turn of a model. And how a body is read, and a value written, as JSON.

Messages are in Ollama's form; `images` of a message are data: URLs, as OpenCode takes them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from daemon.chat.action_text import cleaned
from daemon.errors import BadRequest
from daemon.model import Json, OllamaMessage
from daemon.records import built

T = TypeVar("T")
Form = str | Json
"""What the answer's text must be: "" anything, "json" JSON, a schema JSON of that schema."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One turn that a client wants.

    `keeps`: whether its session may wait for the next turn. `must_call`: only a tool call will do as an answer.
    `stop`: texts before which the answer ends. `ignored`: what the client sent that OpenCode has no place for.
    """

    model: str
    messages: tuple[OllamaMessage, ...]
    tools: tuple[Json, ...] = ()
    streams: bool = True
    form: Form = ""
    keeps: bool = True
    must_call: bool = False
    stop: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any("images" in message and message["role"] == "system" for message in self.messages):
            raise BadRequest("a system message cannot have images; put them into a message of the user")

    @property
    def is_empty(self) -> bool:
        """Whether there is no prompt."""
        return not any(m["role"] != "system" for m in self.messages)

    @property
    def has_images(self) -> bool:
        """Whether the model must be able to see."""
        return any("images" in message for message in self.messages)


def read_object(data: bytes) -> Json:
    """The JSON object in a body.

    Raises:
        BadRequest: there is none.
    """
    if not data.strip():
        raise BadRequest("missing request body")
    try:
        # Not by msgspec: it refuses a lone surrogate, which comes from clients that cut texts anywhere.
        value = cleaned(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body cannot be read: {error or 'it is nested too deeply'}") from None
    if not isinstance(value, dict):
        raise BadRequest("the body cannot be read: it must be a JSON object")
    return value


def typed(value: Json, schema: type[T]) -> T:
    """The object as a `schema`; unknown fields are ignored.

    Raises:
        BadRequest: a field has another type; the message names it.
    """
    try:
        return msgspec.convert(value, built(schema))
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the body cannot be read: {error}") from None


def encoded(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def stop_texts(value: object, name: str) -> tuple[str, ...]:
    """The texts before which an answer ends: one, a list of them, or none.

    Raises:
        BadRequest: it is something else.
    """
    texts = [value] if isinstance(value, str) else value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadRequest(f"{name} must be a text or a list of texts")
    return tuple(text for text in texts if text)


def checked_tools(tools: Sequence[Json] | None) -> tuple[Json, ...]:
    """The tools, each of which must be a function with a name.

    Raises:
        BadRequest: one is not.
    """
    for tool in tools or ():
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not (isinstance(name, str) and name.strip()):
            raise BadRequest('every tool needs a name: {"type": "function", "function": {"name": …}}')
    return tuple(tools or ())


def image_url(text: str) -> str:
    """A data: URL of the image in `text`, which is base64 or such a URL. The bytes say of what type it is.

    Raises:
        BadRequest: it is no image that models take.
    """
    prefix, _, after = text.partition(";base64,")
    content = "".join((after if prefix.startswith("data:") else text).split())
    try:
        # All of it is decoded, because what a provider says of a broken image helps nobody.
        head = base64.b64decode(content, validate=True)[:12]
    except (binascii.Error, ValueError):
        raise BadRequest("an image must be in base64; this one cannot be decoded") from None
    kind = _image_type(head)
    if not kind:
        raise BadRequest("an image must be PNG, JPEG, GIF or WebP; this one is none of them")
    return f"data:image/{kind};base64,{content}"


def _image_type(head: bytes) -> str:
    if head.startswith(b"RIFF") and head.endswith(b"WEBP"):
        return "webp"
    signs = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
    return next((kind for sign, kind in signs.items() if head.startswith(sign)), "")
