"""An Ollama model with tools, one way or the other: its own, or `Actions` where it has none.

Some models are known to have none before they are asked; others say that they have, and refuse when they are given
some. Either way the change is made once, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon.chat import OnText, Reply
from daemon.chat.actions import Actions
from daemon.chat.ollama import OllamaChat, ToolsRefused
from daemon.model import Json, OllamaMessage


class ToolsOrActions:
    """ChatModel over an Ollama model that may turn out to have no tools."""

    def __init__(self, model: OllamaChat) -> None:
        self._model = model
        # Who brings tools here takes nothing but calls: the agent's answer is a call too.
        self._actions = Actions(model, only_calls=True)
        self._refused = False

    @property
    def name(self) -> str:
        """For people; says so where tools were refused."""
        return self._actions.name if self._refused else self._model.name

    @property
    def fingerprint(self) -> str:
        """By what the model says that it can, so that it is the same before and after it refused, and a restart.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        return self._actions.fingerprint if self._model.has_tools() is False else self._model.fingerprint

    @property
    def context_tokens(self) -> int:
        """The model's."""
        return self._model.context_tokens

    def chat(
        self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: OnText | None = None
    ) -> Reply:
        """As ChatModel.chat."""
        if not self._refused and self._model.has_tools() is not False:
            try:
                return self._model.chat(messages, tools, on_text)
            except ToolsRefused:
                self._refused = True
        return self._actions.chat(messages, tools, on_text)

    def close(self) -> None:
        """Close the model."""
        self._model.close()
