"""Which chat model a configuration means, and the sentence that says so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from daemon import config
from daemon.chat import ChatModel
from daemon.errors import ModelUnavailable

if TYPE_CHECKING:
    from daemon.ollama_server import OllamaServer

PROBE_S = 1.0
"""For each question to a server; auto decides within about two seconds where nothing answers."""
_LOOK_S = 5.0
"""For looking at what else a server has; whatever is found by then is chosen from."""

_NONE = "no chat model: the pages are made from facts alone"


def choose(chat: config.Chat, opencode: config.OpenCode) -> tuple[ChatModel | None, str]:
    """The model, or None for none, and a sentence that says which one and why.

    A server that is named may be down now and come up later: it is not asked here, and raises ModelUnavailable when it
    is needed. Only ``auto`` asks, and never takes an OpenCode server, whose models may cost money.

    Raises:
        ConfigError: an address that is none.
    """
    if chat.provider == "none":
        return None, f"{_NONE}: chat.provider is none"
    if chat.provider == "opencode":
        return _opencode(chat, opencode)
    if chat.provider == "ollama":
        model = _ollama(chat, chat.model)
        return model, f"{model.name} at {chat.url}: chat.provider is ollama"
    return _auto(chat, opencode)


def _auto(chat: config.Chat, opencode: config.OpenCode) -> tuple[ChatModel | None, str]:
    from daemon.ollama_server import OllamaServer  # noqa: PLC0415 - its client takes 0.4 s to import

    server = OllamaServer(chat.url, PROBE_S, setting="chat.url")
    try:
        name, why = _best(server, chat)
    except ModelUnavailable as error:
        return None, f"{_NONE}: {error}, and then: ollama pull {chat.model}{_opencode_hint(opencode)}"
    finally:
        server.close()
    if not name:
        return None, f"{_NONE}: {chat.url}: {why}; get one with: ollama pull {chat.model}{_opencode_hint(opencode)}"
    model = _ollama(chat, name)
    return model, f"{model.name}: {chat.url} {why}"


def _best(server: OllamaServer, chat: config.Chat) -> tuple[str, str]:
    """The name of the model to take, empty for none, and why.

    Raises:
        ModelUnavailable: the server is down, or stopped answering.
    """
    from daemon.ollama_server import full_name  # noqa: PLC0415 - as above

    models = server.models()
    lacks = f"does not have {chat.model}"
    for name in (chat.model, full_name(chat.model)):
        if name in models:
            info = server.show(name)
            if info.can("completion") is not False:
                return chat.model, f"answers and has the model{_words(has_tools=info.can('tools'))}"
            lacks = f"has {chat.model}, which cannot chat"
            del models[name]
            break
    candidates = []
    until = time.monotonic() + _LOOK_S
    for name in sorted(models):
        if time.monotonic() > until:
            break
        info = server.show(name)
        if info.can("completion"):
            candidates.append((not info.can("tools"), name))
    if not candidates:
        return "", f"{lacks}, and no other model that can chat"
    without_tools, name = min(candidates)
    return name, (
        f"{lacks}; this is the first of {len(candidates)} there that can chat{_words(has_tools=not without_tools)}; "
        f"get the other with: ollama pull {chat.model}"
    )


def _words(*, has_tools: bool | None) -> str:
    return ", without tools of its own: it is told them in words" if has_tools is False else ""


def _ollama(chat: config.Chat, name: str) -> ChatModel:
    from daemon.chat.ollama import OllamaChat, ToolsOrActions  # noqa: PLC0415 - as above

    return ToolsOrActions(
        OllamaChat(
            chat.url,
            name,
            num_ctx=chat.num_ctx,
            think=chat.think,
            keep_alive=chat.keep_alive,
            timeout_s=chat.timeout_seconds,
        )
    )


def _opencode(chat: config.Chat, opencode: config.OpenCode) -> tuple[ChatModel, str]:
    from daemon.chat.actions import Actions  # noqa: PLC0415 - only with this model
    from daemon.chat.opencode import OpenCodeChat  # noqa: PLC0415 - as above

    server = OpenCodeChat(
        opencode.server_url, opencode.server_model, timeout_s=chat.timeout_seconds, context_tokens=chat.num_ctx
    )
    model = Actions(server, only_calls=True)
    return model, f"{model.name} at {opencode.server_url}: chat.provider is opencode"


def _opencode_hint(opencode: config.OpenCode) -> str:
    if not _is_opencode(opencode.server_url):
        return ""
    return (
        f'; an OpenCode server answers at {opencode.server_url}: chat.provider = "opencode" asks its models, '
        "which may cost money"
    )


def _is_opencode(url: str) -> bool:
    """Whether an OpenCode server answers there; only its health is requested."""
    from daemon.chat.opencode.server import OpenCodeServer  # noqa: PLC0415 - for those without a model only

    try:
        with OpenCodeServer(url) as server:
            return bool(server.health(timeout_s=PROBE_S))
    except ModelUnavailable:
        return False
