"""Chooses the embedder for a configuration. The same choice has the same fingerprint after every restart."""

from __future__ import annotations

from pathlib import Path

from daemon import config
from daemon.embed import Embedder
from daemon.embed.builtin import WorkerEmbedder
from daemon.embed.hub import PREFIX, HubModel
from daemon.errors import ModelUnavailable
from daemon.worker import Worker

PROBE_S = 1.0
"""For each of connecting and answering: auto decides within about two seconds."""


def local_embedder(embedding: config.Embedding, worker: Worker) -> WorkerEmbedder:
    """The embedder that needs no server."""
    if embedding.model_dir.startswith(PREFIX):
        return WorkerEmbedder(worker, hub=HubModel(embedding.model_dir, config.cache_dir() / "models"))
    return WorkerEmbedder(worker, Path(embedding.model_dir).expanduser() if embedding.model_dir else None)


def choose(embedding: config.Embedding, worker: Worker, *, was_ollama: bool = False) -> tuple[Embedder, str]:
    """The embedder, and a sentence with the reason. Never raises, because a configured server may start later.

    `was_ollama`: the archive's vectors are from Ollama. Then `auto` waits for a server that is down, because otherwise
    everything would be embedded again whenever we start before the server.
    """
    builtin = local_embedder(embedding, worker)
    if embedding.provider == "builtin":
        return builtin, f"{builtin.name}: embedding.provider is builtin"
    # Imported late: the client takes 0.4 s, and the built-in embedder does not need it.
    from daemon.embed.ollama import OllamaEmbedder, find  # noqa: PLC0415 - see above

    remote = OllamaEmbedder(embedding.url, embedding.model, embedding.num_ctx, embedding.batch)
    if embedding.provider == "ollama":
        return remote, f"{remote.name} at {embedding.url}: embedding.provider is ollama"
    try:
        find(embedding.url, embedding.model, PROBE_S)
    except ModelUnavailable as error:
        if was_ollama:
            fix = 'set embedding.provider = "builtin" to change over'
            return remote, f"{remote.name}: {error}; waiting for it, since the archive is embedded with it; {fix}"
        remote.close()
        return builtin, f"{builtin.name}: {error}"
    return remote, f"{remote.name}: {embedding.url} answers and has the model"
