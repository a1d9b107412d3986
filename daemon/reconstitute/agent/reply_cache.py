"""A chat model that is never asked the same twice: replies are kept by what was asked (design section 4, cache:chat).

It is also how a question goes on after a crash: the tools only read, so asking again from the start brings the same
messages, and all but the last reply are there already.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from daemon.archive import Archive
from daemon.chat import ChatModel, OnText, Reply, ToolCall
from daemon.model import Json, OllamaMessage
from daemon.records import digest, dumps

KEPT_S = 30 * 86_400.0
_KIND = "chat"


class Cached:
    """A ChatModel over another. `asked` counts calls that reached it, `reused` those that did not."""

    def __init__(self, model: ChatModel, archive: Archive) -> None:
        self._model, self._archive = model, archive
        self.asked = 0
        self.reused = 0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def fingerprint(self) -> str:
        return self._model.fingerprint

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def close(self) -> None:
        self._model.close()

    def chat(
        self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: OnText | None = None
    ) -> Reply:
        """As ChatModel's."""
        key = digest(self._model.fingerprint.encode(), dumps(list(messages)), dumps(list(tools)))
        stored = self._archive.cache_get(_KIND, key)
        if stored is not None:
            self.reused += 1
            calls = tuple(ToolCall(name, json.loads(arguments)) for name, arguments in stored["calls"])
            return Reply(**stored | {"calls": calls})
        self.asked += 1
        reply = self._model.chat(messages, tools, on_text)
        fields = ("content", "thinking", "prompt_tokens", "reply_tokens")
        # As text, since the archive sorts names: what goes back to the model is to be what it wrote, to the letter.
        written = [(call.name, json.dumps(call.arguments)) for call in reply.calls]
        self._archive.cache_put(_KIND, key, {f: getattr(reply, f) for f in fields} | {"calls": written}, KEPT_S)
        return reply
