"""Messages become a reply: the protocol of chat models, and what every one of them promises.

Messages are Ollama's (``{role, content, …}``); tools are its JSON-schema functions. A model may sit behind any server
and may have no tools of its own: `actions` gives it some. What comes back is checked: a reply without text and without
a call, or with a call that cannot be read, is an error and never a success (docs/reliability.md, O7, O8); a server that
drops the front of a conversation is found out (O3). A model remembers nothing between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from daemon.errors import BadReply, ContextLost, ModelUnavailable
from daemon.model import Json, OllamaMessage

__all__ = ["BadReply", "ChatModel", "ContextLost", "ModelUnavailable", "OnText", "Reply", "ToolCall"]

OnText = Callable[[str], None]
"""Told each piece of a reply's text as it comes; a sign of life for whoever waits."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; `arguments` are an object, and nothing else is known of them."""

    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said. `content` has no thinking in it; tokens are the server's count, None where it gives none."""

    content: str
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    prompt_tokens: int | None = None
    reply_tokens: int | None = None

    def message(self) -> OllamaMessage:
        """The next entry of the conversation: this reply."""
        entry: OllamaMessage = {"role": "assistant", "content": self.content}
        if self.calls:
            entry["tool_calls"] = [{"function": {"name": c.name, "arguments": c.arguments}} for c in self.calls]
        return entry


class ChatModel(Protocol):
    """One model, ready to chat."""

    @property
    def name(self) -> str:
        """For people: ``qwen3-vl:8b-instruct (Ollama)``."""

    @property
    def fingerprint(self) -> str:
        """Names everything that a reply depends on beside the messages: model digest, options, protocol.

        Raises:
            ModelUnavailable: the server must be asked for it, and is down or lacks the model.
        """

    @property
    def context_tokens(self) -> int:
        """How much prompt and reply may have together."""

    def chat(
        self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: OnText | None = None
    ) -> Reply:
        """The model's next turn.

        Raises:
            ModelUnavailable: the server is down, busy, too slow, or lacks the model; ask again later.
            BadReply: what came is no usable reply; the message says what was wrong, in words for the model.
            ContextLost: the server did not read all of the messages; what it answered is void.
        """

    def close(self) -> None:
        """Release connections, and whatever the server keeps for us."""
