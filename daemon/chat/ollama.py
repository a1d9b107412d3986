"""A chat model behind an Ollama server.

Ollama drops the front of a conversation that does not fit, the system prompt first, and says nothing
(docs/reliability.md, O3). So every request names its context length; what is estimated not to fit is not sent; servers
that can (0.12.6 and newer) are told to refuse rather than to drop; and the count of what was read is held against the
least that the messages can be. That count is small for a harmless reason on servers which leave out what they had in
their cache (0.1, 0.30.0): before a reply is called void, the same prompt is counted again with a new beginning.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from typing import NamedTuple, NoReturn

from daemon.chat import BadReply, ContextLost, ModelUnavailable, OnText, Reply
from daemon.chat.actions import Actions
from daemon.chat.ollama_reply import StreamedReply
from daemon.chat.tokens import REPLY_ROOM, Size, of_chat
from daemon.model import Json, OllamaMessage
from daemon.ollama_server import ModelInfo, OllamaServer, Refused
from daemon.records import clean

VERSION = 1
"""Goes up whenever the request, or the reading of replies, changes what a reply may be."""

_ABOUT_S = 20.0
"""For questions about the model, which need nothing loaded."""
_COUNTED_FROM = 1000
"""A smaller conversation fits everywhere, and its estimate is mostly what a template adds."""
_READ = 0.6
"""Less than this share of the least that the messages can be was not all of them."""
_SEED = 7

_NO_TOOLS = re.compile(r"does not support tools", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context (?:length|size|window|limit)|exceeds? .{0,40}context|prompt (?:is )?too long|no user query found",
    re.IGNORECASE,
)
_BAD_CALL = re.compile(
    r"pars\w* .{0,30}tool|tool.?calls? pars|failed to parse (?:json|tool|xml)|xml syntax error|unexpected end of json"
    r"|invalid character .{1,40}(?:after|in |looking for|literal)|invalid tool.?call|cannot unmarshal",
    re.IGNORECASE,
)


class ToolsRefused(ModelUnavailable):
    """The model takes no tools, although it claims to: ask it without tools, or with actions."""


class _ModelIdentity(NamedTuple):
    digest: str
    info: ModelInfo


class OllamaChat:
    """ChatModel behind `url`. The server is asked what it can do before that is needed; a model that was pulled anew
    meanwhile stops one call, and is another model from then on.

    Args:
        num_ctx: context length asked for, tokens.
        think: let a model think that can; one that cannot is never asked to.
        keep_alive: how long the server keeps the model loaded: ``10m``.
        timeout_s: how long one reply may take in all, from the first byte sent to the last one read.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        num_ctx: int = 16384,
        think: bool = False,
        keep_alive: str = "10m",
        timeout_s: float = 600,
    ) -> None:
        self._url, self._model = url, model
        self._num_ctx, self._think, self._keep_alive = num_ctx, think, keep_alive
        self._server = OllamaServer(url, timeout_s, setting="chat.url")
        self._about = OllamaServer(url, min(timeout_s, _ABOUT_S), setting="chat.url")
        self._lock = threading.Lock()
        self._model_identity: _ModelIdentity | None = None
        self._trusted = 0.0  # tokens: up to here, a small count was seen to be harmless

    @property
    def name(self) -> str:
        """For people."""
        return f"{self._model} (Ollama)"

    @property
    def fingerprint(self) -> str:
        """Model, digest, options and the version of what is asked here; stays the same after a restart.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        options = (self._num_ctx, self._think, _SEED, VERSION)
        return f"ollama/{self._model}/{self._identity().digest[:12]}/{sha256(repr(options).encode()).hexdigest()[:8]}"

    @property
    def context_tokens(self) -> int:
        """What was asked for, or what the model was made for where that is less and the server can be asked."""
        try:
            return self._context(self._identity())
        except ModelUnavailable:
            return self._num_ctx

    def has_tools(self) -> bool | None:
        """Whether the model takes tools; None: the server is too old to tell.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """
        return self._identity().info.can("tools")

    def close(self) -> None:
        """Release connections; the server unloads the model by itself after `keep_alive`."""
        self._server.close()
        self._about.close()

    def chat(
        self, messages: Sequence[OllamaMessage], tools: Sequence[Json] = (), on_text: OnText | None = None
    ) -> Reply:
        """As ChatModel.chat.

        Raises:
            ToolsRefused: `tools` were given, and the model takes none.
        """
        identity = self._same_model()
        size = of_chat(messages, tools)
        context = self._context(identity)
        if size.most + REPLY_ROOM > context:
            raise ContextLost(
                f"{self.name}: about {size.most:.0f} tokens, and room for a reply, do not fit into {context}; "
                "send less, or set chat.num_ctx higher"
            )
        body = self._body(identity, messages, tools, int(min(context - size.most, max(context // 2, REPLY_ROOM))))
        received = self._receive(body, on_text)
        self._check_read(body, received, size, context)
        return received.reply(with_tools=bool(tools))

    def _body(
        self, identity: _ModelIdentity, messages: Sequence[OllamaMessage], tools: Sequence[Json], most_tokens: int
    ) -> Json:
        body: Json = {
            "model": self._model,
            "messages": clean(list(messages)),
            "options": {
                "num_ctx": self._context(identity),
                "num_predict": most_tokens,
                "temperature": 0,
                "seed": _SEED,
            },
            "keep_alive": self._keep_alive,
            # Refuse a prompt or reply that does not fit. Older servers ignore these options.
            "truncate": False,
            "shift": False,
        }
        if tools:
            body["tools"] = clean(list(tools))
        if identity.info.can("thinking"):
            body["think"] = self._think
        return body

    def _receive(self, body: Json, on_text: OnText | None) -> StreamedReply:
        received = StreamedReply()
        try:
            with closing(self._server.chat(body)) as lines:
                for line in lines:
                    received.feed(line, on_text)
        except Refused as error:
            self._judge(error)
        return received

    def _judge(self, error: Refused) -> NoReturn:
        reason = error.reason
        # Checked first, because the message quotes the model's text, which may match the other patterns.
        if error.status in {None, 500} and _BAD_CALL.search(reason):
            raise BadReply(
                f"your tool call could not be read: {reason[:300]}; call one tool, its arguments as one JSON object"
            ) from None
        if error.status == 400 and _NO_TOOLS.search(reason):
            raise ToolsRefused(f"{self.name}: takes no tools: {reason}") from None
        if _TOO_LONG.search(reason):
            raise ContextLost(f"{self.name}: the conversation does not fit: {reason}; send less of it") from None
        if error.status == 200:
            raise ModelUnavailable(f"{self._url}: answers, but not as Ollama does: {reason}; check chat.url") from None
        raise ModelUnavailable(f"{self._url}: {self._model} failed: {error}; see Ollama's log") from None

    def _check_read(self, body: Json, received: StreamedReply, size: Size, context: int) -> None:
        """Raise ContextLost if the server cannot have read all messages, or dropped some while answering (O3)."""
        count = received.prompt_tokens
        if count is None:
            return
        if count + (received.reply_tokens or 0) > context:
            raise ContextLost(
                f"{self.name}: {count} tokens and a reply of {received.reply_tokens or 0} are more than {context}: "
                "the server dropped some of them; send less"
            )
        if size.least < max(_COUNTED_FROM, self._trusted) or count >= _READ * size.least:
            return
        recount = self._counted_anew(body)
        # Tools are not counted, because some templates put them first, where they are cached again. Without a count,
        # even the new beginning was dropped.
        if recount is None or recount < _READ * of_chat(body["messages"]).least:
            raise ContextLost(
                f"{self.name}: only {recount or count} of at least {size.least:.0f} tokens were read; "
                "the server dropped the rest without saying so; send less, or give Ollama a larger context"
            )
        self._trusted = size.least * 1.5

    def _counted_anew(self, body: Json) -> int | None:
        """How many tokens the server reads of a prompt that cannot be in its cache; the reply is one token."""
        first, *following = body["messages"]
        uncached = {**first, "content": f"[{secrets.token_hex(8)}] {first.get('content') or ''}"}
        counted = {**body, "messages": [uncached, *following], "options": {**body["options"], "num_predict": 1}}
        return self._receive(counted, None).prompt_tokens

    def _context(self, identity: _ModelIdentity) -> int:
        return min(self._num_ctx, identity.info.context_tokens or self._num_ctx)

    def _identity(self) -> _ModelIdentity:
        with self._lock:
            if self._model_identity is None:
                digest = self._about.digest(self._model)
                self._model_identity = _ModelIdentity(digest, self._about.show(self._model))
            return self._model_identity

    def _same_model(self) -> _ModelIdentity:
        """The model's identity, checked again, because replies are cached under the earlier fingerprint."""
        identity = self._identity()
        if self._about.digest(self._model) == identity.digest:
            return identity
        with self._lock:
            self._model_identity = None
        raise ModelUnavailable(f"{self._url}: {self._model} was replaced while in use; it is asked again later")


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
