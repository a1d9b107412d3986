"""The models: the one that embeds, and the one that answers. Search by words and pages of facts need neither."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.chat.choose import PROBE_S, choose
from daemon.control.answers import Check
from daemon.doctor.rows import Subject, attention, ok
from daemon.embed import LocalEmbedder
from daemon.errors import BadInput, ModelUnavailable


def embedding(subject: Subject) -> Iterator[Check]:
    """The embedding model embeds a word."""
    upkeep = subject.upkeep
    if upkeep.is_off:
        yield ok("embedding", 'off: embedding.what is "none"')
        return
    try:
        embedder = upkeep.embedder
        if isinstance(embedder, LocalEmbedder):
            embedder.load()
        vector = embedder.embed(["."])[0]
    except ModelUnavailable as error:
        yield attention("embedding", f"{error}; until then new messages are found by words alone", _start(str(error)))
        return
    if isinstance(vector, BadInput):
        yield attention("embedding", f"{embedder.name} embeds nothing: {vector}", "reconstitute models")
    else:
        yield ok("embedding", f"{embedder.name} works")


def chat(subject: Subject) -> Iterator[Check]:
    """The chat model's server has the model. With `auto`, no model is no trouble: pages are made from facts."""
    settings, opencode = subject.config.chat, subject.config.opencode
    model, why = choose(settings, opencode)
    if model is not None:
        model.close()
    if settings.provider not in ("ollama", "opencode"):
        yield ok("chat model", why)
        return
    try:
        if settings.provider == "ollama":
            _ask_ollama(settings.url, settings.model)
        else:
            _ask_opencode(opencode.server_url, opencode.server_model)
    except ModelUnavailable as error:
        message = f"{error}; until then questions wait, and pages are made from facts"
        yield attention("chat model", message, _start(str(error), settings.provider))
    else:
        yield ok("chat model", why)


def _ask_ollama(url: str, model: str) -> None:
    from daemon.ollama_server import OllamaServer  # noqa: PLC0415 - its client takes 0.4 s to import

    server = OllamaServer(url, PROBE_S, setting="chat.url")
    try:
        server.digest(model)
    finally:
        server.close()


def _ask_opencode(url: str, model: str) -> None:
    from daemon.chat.opencode.server import OpenCodeServer  # noqa: PLC0415 - only with this model

    with OpenCodeServer(url) as server:
        server.health(timeout_s=PROBE_S)
        server.resolve(model)


def _start(reason: str, provider: str = "ollama") -> str:
    """The command that mends it: an error of a server names its own after a colon."""
    _, _, command = reason.rpartition(": ")
    default = "opencode serve" if provider == "opencode" else "ollama serve"
    return command if command.startswith(("ollama ", "opencode ")) else default
