"""Which embedder is meant: what the configuration names, and for auto what the archive's vectors were made with."""

from __future__ import annotations

import pytest

from daemon import config
from daemon.embed.builtin import WorkerEmbedder
from daemon.embed.choose import choose
from daemon.embed.ollama import OllamaEmbedder
from daemon.errors import ModelUnavailable
from daemon.worker import Worker
from tests.support.servers.fake_ollama import FakeOllama

NOWHERE = "http://127.0.0.1:9"
"""Port 9 of loopback: nothing listens there, the connection is refused at once."""


def section(provider: str, url: str = NOWHERE, model: str = "embedder") -> config.Embedding:
    return config.Embedding(provider=provider, url=url, model=model)


def test_auto_takes_the_server_that_answers_and_has_the_model() -> None:
    with FakeOllama() as server:
        embedder, why = choose(section("auto", server.url), Worker())
        assert isinstance(embedder, OllamaEmbedder)
        assert server.url in why
        embedder.close()


@pytest.mark.parametrize("model", ["embedder", "another"])
def test_auto_picks_the_built_in_model_without_a_usable_server(model: str) -> None:
    if model == "embedder":
        embedder, why = choose(section("auto"), Worker())
        assert "nothing answers" in why
    else:
        with FakeOllama() as server:
            embedder, why = choose(section("auto", server.url, model), Worker())
        assert "ollama pull another" in why
    assert isinstance(embedder, WorkerEmbedder)
    embedder.close()


def test_auto_waits_for_a_server_that_made_the_archives_vectors() -> None:
    embedder, why = choose(section("auto"), Worker(), was_ollama=True)

    assert isinstance(embedder, OllamaEmbedder)
    assert "waiting for it" in why
    assert 'embedding.provider = "builtin"' in why
    with pytest.raises(ModelUnavailable):
        embedder.embed(["hello"])
    embedder.close()


@pytest.mark.parametrize("was_ollama", [True, False])
def test_what_is_named_is_taken_whatever_was_before(*, was_ollama: bool) -> None:
    named, _ = choose(section("ollama"), Worker(), was_ollama=was_ollama)
    assert isinstance(named, OllamaEmbedder)
    named.close()
    assert isinstance(choose(section("builtin"), Worker(), was_ollama=was_ollama)[0], WorkerEmbedder)
