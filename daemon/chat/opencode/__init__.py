"""A chat model behind an OpenCode server: whatever model the user has configured there, without tools.

Each call is one prompt in a session of its own that is deleted afterwards. A conversation of several messages becomes
one text of delimited turns: OpenCode's sessions cannot be given a past. The delimiter is made from the messages' own
text, so no message can pass itself off as another turn.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path

from daemon import log
from daemon.chat import ContextLost, ModelUnavailable, OnText, Reply
from daemon.chat.opencode.server import OpenCodeServer, Patience, ServedModel
from daemon.chat.tokens import of_chat
from daemon.model import Json, OllamaMessage

VERSION = 1
"""Goes up whenever the words around the messages change."""

_LOG = log.get("opencode")
_COUNTED_FROM = 1000
_READ = 0.4
"""Less than this share of the least that the messages can be was not all of them."""


class OpenCodeChat:
    """ChatModel behind the OpenCode server at `url`.

    Args:
        model: ``provider/model``; empty is the server's default.
        timeout_s: how long one reply may take.
        context_tokens: how much prompt and reply may have together; the model's own limit counts where it is less.
        directory: see OpenCodeServer.
    """

    def __init__(
        self, url: str, model: str, *, timeout_s: float, context_tokens: int, directory: Path | None = None
    ) -> None:
        self._server = OpenCodeServer(url, patience=Patience(prompt=timeout_s), directory=directory)
        self._model, self._context_tokens = model, context_tokens
        self._lock = threading.Lock()
        self._is_swept = False
        self._resolved = ""

    @property
    def name(self) -> str:
        """For people; which model the server's default is stands in it once the server was asked."""
        return f"{self._resolved or self._model or 'default model'} (OpenCode)"

    @property
    def fingerprint(self) -> str:
        """The server's version, the model that answers, and the version of how it is asked.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        return f"opencode/{self._server.health()}/{self._resolve().id}/{VERSION}"

    @property
    def context_tokens(self) -> int:
        """The configured size, or the model's own limit if that is less and the server answers."""
        try:
            model_limit = self._resolve().context_tokens
        except ModelUnavailable:
            model_limit = 0
        return min(self._context_tokens, model_limit or self._context_tokens)

    def chat(
        self,
        messages: Sequence[OllamaMessage],
        tools: Sequence[Json] = (),  # noqa: ARG002 - the protocol has them
        on_text: OnText | None = None,
    ) -> Reply:
        """As ChatModel.chat; `tools` are not told to the model: `actions` does that."""
        self._sweep()
        resolved = self._resolve()
        size = of_chat(messages)
        context = min(self._context_tokens, resolved.context_tokens or self._context_tokens)
        if size.most > context:
            raise ContextLost(f"{self.name}: about {size.most:.0f} tokens do not fit into {context}; send less of it")
        system, content = as_prompt(messages)
        with self._server.session() as session_id:
            reply = self._server.prompt(session_id, system, content, model=resolved.id, on_text=on_text)
        count = reply.prompt_tokens
        if count is not None and size.least > _COUNTED_FROM and count < _READ * size.least:
            raise ContextLost(
                f"{self.name}: only {count} of at least {size.least:.0f} tokens were read; "
                "its provider dropped the rest without saying so; send less, or give the provider a larger context"
            )
        return reply

    def _resolve(self) -> ServedModel:
        served = self._server.resolve(self._model)
        self._resolved = served.id
        return served

    def close(self) -> None:
        """Delete what could not be deleted before, and release connections."""
        self._server.close()

    def _sweep(self) -> None:
        """Once, before the first prompt: delete what an earlier crash left."""
        with self._lock:
            if self._is_swept:
                return
            self._is_swept = True
        try:
            self._server.sweep()
        except ModelUnavailable as error:
            _LOG.warning("left sessions not looked for", reason=str(error))


def as_prompt(messages: Sequence[OllamaMessage]) -> tuple[str, str]:
    """The system text, and everything else as one text: a lone message of the user's as it is, else turns in order.

    A message's tool calls are part of its turn as JSON is; images are left out.
    """
    system = "\n\n".join(_text(m) for m in messages if m.get("role") == "system")
    turns = [m for m in messages if m.get("role") != "system"]
    if len(turns) == 1 and turns[0].get("role") == "user":
        return system, _text(turns[0])
    mark = hashlib.sha256("\0".join(_text(m) for m in turns).encode(errors="replace")).hexdigest()[:12]
    turns_text = [f"[{mark} {_speaker(message)}]\n{_text(message)}" for message in turns]
    rule = (
        f"This is a conversation in turns. Each begins with a line in brackets that holds {mark} and who speaks. "
        "Give the assistant's next turn: its text alone, without such a line."
    )
    return system, "\n\n".join([rule, *turns_text, f"[{mark} assistant]"])


def _speaker(message: OllamaMessage) -> str:
    role = str(message.get("role", "user"))
    name = str(message.get("tool_name") or message.get("name") or "") if role == "tool" else ""
    return f"result of {name}" if name else role


def _text(message: OllamaMessage) -> str:
    calls = message.get("tool_calls")
    texts = [str(message.get("content") or "")]
    if isinstance(calls, list):
        texts += [json.dumps(call.get("function"), ensure_ascii=False) for call in calls if isinstance(call, dict)]
    return "\n".join(text for text in texts if text)
