"""A model server that is down, slow or picky holds up nothing but the search by meaning, and that only for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.talk import PROJECT, Talk, words
from tests.support.processes.daemon_process import Daemon, until
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.stores.make_opencode import JsonStore

CANARY = "The quick brown fox jumps over the lazy dog."


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with FakeOllama(dims=512) as running:
        yield running


@pytest.fixture
def start(make_daemon: Callable[..., Daemon], server: FakeOllama) -> Callable[..., Daemon]:
    """`start(key=value...)`: a running daemon that embeds with the server; keys of [embedding]."""

    def run(**more: Any) -> Daemon:
        table = {"provider": "ollama", "model": "embedder", "url": server.url, **more}
        made: Daemon = make_daemon(tables={"embedding": table}).run()
        return made

    return run


def semantic(daemon: Daemon) -> dict[str, Any]:
    state: dict[str, Any] = daemon.status()["index"]["semantic"]
    return state


def means(daemon: Daemon, words_: str) -> str:
    hits = daemon.search(words_, "semantic", 1)
    return hits[0]["messageID"] if hits else ""


def test_the_outbox_drains_when_the_model_server_is_back(
    server: FakeOllama, start: Callable[..., Daemon], data_dir: Path
) -> None:
    """Everything that needs no embeddings works meanwhile."""
    server.down()
    talk = Talk(JsonStore(data_dir))
    told = {words(n): talk.ask(f"About {words(n)}.") for n in range(10)}
    talk.write(f"{PROJECT}/notes.md", f"{words(50)}\n")
    daemon = start()

    assert set(daemon.wait_until_found(told, timeout_s=8)) == set(told)
    until(lambda: semantic(daemon)["state"].startswith("waiting:"))
    assert "ollama serve" in semantic(daemon)["state"]
    assert daemon.status()["outbox"] == {"lexical": 0, "semantic": 11, "tools": 0}
    assert [error["where"] for error in daemon.status()["errors"]] == ["embedding"]
    with daemon.client() as client:
        answer = client.post("/recall/recall", json={"arguments": {"query": words(3)}}).json()
    assert [hit["messageID"] for hit in answer["results"]] == [told[words(3)]]
    assert any("meaning was not searched" in warning for warning in answer["warnings"])
    daemon.drop_request("garden.txt", f"{PROJECT}\n")
    assert [path.parent.name for path in daemon.wait_for_results(1)] == ["done"]
    assert words(50) in (daemon.output_dir / PROJECT[1:] / "notes.md.md").read_text()
    assert server.requests == []

    server.up()

    status = daemon.wait_until_drained(40)
    assert status["index"]["semantic"]["state"] == "ready"
    assert [means(daemon, f"About {word}.") for word in told] == list(told.values())
    assert daemon.terminate()[0] == 0


def test_text_the_model_cannot_embed_is_set_aside_with_a_reason(
    server: FakeOllama, start: Callable[..., Daemon], data_dir: Path
) -> None:
    """The messages around it are indexed as usual."""
    server.nan_mark, server.context_chars = words(90), 300
    talk = Talk(JsonStore(data_dir))
    told = {words(n): talk.ask(f"About {words(n)}.") for n in range(6)}
    bad = talk.ask(f"About {words(90)}.")
    long = talk.answer(f"About {words(91)}. " * 60)
    talk.ask(" \n\t ")
    told |= {words(n): talk.ask(f"About {words(n)}.") for n in range(6, 12)}
    daemon = start(batch=5)

    status = daemon.wait_until_drained(40)

    state = status["index"]["semantic"]
    assert (state["state"], state["refused"]) == ("ready", 1)
    assert "NaN" in state["reasons"][0]
    assert [means(daemon, f"About {word}.") for word in told] == list(told.values())
    assert means(daemon, f"About {words(91)}.") == long
    assert [hit["messageID"] for hit in daemon.search(words(90))] == [bad]
    assert "1 refused by the model" in " ".join(daemon.ask("status").stdout.split())
    assert all(text.strip() for text in server.embedded())


def test_a_server_that_drops_out_midway_gets_each_text_about_once(
    server: FakeOllama, start: Callable[..., Daemon], data_dir: Path
) -> None:
    server.delay_s = 0.1
    talk = Talk(JsonStore(data_dir))
    told = {f"About {words(n)}.": talk.ask(f"About {words(n)}.") for n in range(40)}
    daemon = start(batch=4)
    until(lambda: len(server.embedded()) > 12)
    server.down()
    until(lambda: any(error["where"] == "embedding" for error in daemon.status()["errors"]))

    server.delay_s = 0
    server.up()
    daemon.wait_until_drained(40)

    counts = Counter(text for text in server.embedded() if text != CANARY)
    assert max(counts.values()) <= 2
    assert counts.total() - len(counts) <= 4  # the batch that was under way
    assert [means(daemon, text) for text in told] == list(told.values())


def test_auto_switches_to_ollama_on_the_next_start(
    server: FakeOllama, start: Callable[..., Daemon], data_dir: Path
) -> None:
    """It begins with the built-in model while no server is there."""
    server.down()
    told = Talk(JsonStore(data_dir)).ask(f"About {words(1)}.")
    daemon = start(provider="auto")
    assert "built in" in daemon.wait_until_drained()["index"]["semantic"]["embedder"]
    daemon.terminate()

    server.up()
    daemon.run()
    until(lambda: "Ollama" in semantic(daemon)["embedder"])
    daemon.wait_until_drained()
    assert means(daemon, f"About {words(1)}.") == told
    daemon.terminate()

    server.down()
    daemon.run()
    until(lambda: "waiting for it" in semantic(daemon)["embedder"])
    assert daemon.status()["outbox"]["semantic"] == 0
    assert [hit["messageID"] for hit in daemon.search(words(1))] == [told]
