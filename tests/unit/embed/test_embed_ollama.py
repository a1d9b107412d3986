"""The Ollama embedder over the official client against a real HTTP server that fails as Ollama is known to."""

from __future__ import annotations

import re
import socket
import threading
import time

import numpy as np
import pytest

from daemon.config import Embedding
from daemon.embed.builtin import WorkerEmbedder
from daemon.embed.choose import choose
from daemon.embed.ollama import OllamaEmbedder
from daemon.errors import BadInput, ConfigError, ModelUnavailable
from daemon.worker import Worker
from tests.support.processes.ports import free_port
from tests.support.servers.fake_ollama import FakeOllama, vector


@pytest.fixture
def server():
    with FakeOllama() as fake:
        yield fake


@pytest.fixture
def embedder(server):
    made = OllamaEmbedder(server.url, "embedder", num_ctx=2048, batch=4, timeout_s=60)
    yield made
    made.close()


def is_for(found, text, dims=64):
    return not isinstance(found, BadInput) and float(np.dot(found, vector(text, dims))) > 0.999


def test_vectors_come_in_order_with_length_one(embedder):
    texts = ["one two", "three", "one two", "four five six", "seven", "eight nine"]
    found = embedder.embed(texts)
    assert all(is_for(v, t) for v, t in zip(found, texts, strict=True))
    assert all(v.dtype == np.float32 and abs(np.linalg.norm(v) - 1) < 1e-6 for v in found)


def test_requests_carry_context_length_and_keep_alive_and_forbid_cutting(server, embedder):
    embedder.embed(["some text"])
    body = server.requests[-1][1]
    assert body["options"] == {"num_ctx": 2048}
    assert body["truncate"] is False
    assert re.fullmatch(r"\d+m", body["keep_alive"])


def test_equal_texts_are_sent_once_and_batches_keep_to_their_size(server, embedder):
    embedder.embed(["a"] * 9 + [f"text {n}" for n in range(8)])
    batches = [body["input"] for path, body in server.requests if path == "/api/embed"]
    assert max(len(batch) for batch in batches) == 4
    assert server.embedded().count("a") == 1


def test_one_request_at_a_time_from_several_threads(server, embedder):
    server.delay_s = 0.02
    threads = [threading.Thread(target=embedder.embed, args=([f"text {n}"],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.most_in_flight == 1


# O1


def test_a_text_that_becomes_nan_costs_only_itself(server, embedder):
    server.nan_mark = "POISON"
    texts = [f"good {n}" for n in range(6)] + ["POISON pill"]
    found = embedder.embed(texts)
    assert all(is_for(v, t) for v, t in zip(found[:6], texts[:6], strict=True))
    assert isinstance(found[6], BadInput)
    assert "NaN" in str(found[6])


def test_a_trivial_variant_saves_a_text_that_becomes_nan(server, embedder):
    server.nan_mark, server.nan_unless_suffix = "POISON", "."
    (found,) = embedder.embed(["POISON pill"])
    assert not isinstance(found, BadInput)


def test_a_plain_sentence_that_fails_blames_the_server_not_the_text(server, embedder):
    assert embedder.dims == 64
    server.broken, server.broken_path = 500, "/api/embed"
    with pytest.raises(ModelUnavailable, match="plain sentence"):
        embedder.embed(["one", "two"])
    server.broken = 0
    assert not any(isinstance(v, BadInput) for v in embedder.embed(["one", "two"]))


# prefixes

PREFIXES = [
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
    ("mxbai-embed-large:335m", "Represent this sentence for searching relevant passages: ", ""),
    ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
    ("snowflake-arctic-embed2", "query: ", ""),
    ("jeffh/intfloat-multilingual-e5-large:f16", "query: ", "passage: "),
    (
        "qwen3-embedding:0.6b",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        "",
    ),
    ("bge-m3", "", ""),
    ("all-minilm:l6-v2", "", ""),
    ("somebodys-own", "", ""),
]


@pytest.mark.parametrize(("model", "query", "passage"), PREFIXES)
def test_a_known_model_gets_its_texts_with_their_prefixes(server, model, query, passage):
    server.models = {model if ":" in model else f"{model}:latest": "ab" * 32}
    made = OllamaEmbedder(server.url, model, timeout_s=5)
    assert is_for(made.embed(["a shop"])[0], f"{passage}a shop")
    assert is_for(made.embed_query("a shop"), f"{query}a shop")
    assert isinstance(made.embed_query(" "), BadInput)
    is_as_before = bool(re.fullmatch(r"[a-z0-9-]+-abababab-64", made.fingerprint))
    assert is_as_before is (not passage)  # vectors that were made without the prefix are not mixed with others
    assert len(made.fingerprint) <= 36
    made.close()


def test_each_part_of_a_text_too_long_has_the_prefix(server):
    server.models = {"nomic-embed-text:latest": "ab" * 32}
    made = OllamaEmbedder(server.url, "nomic-embed-text", timeout_s=5)
    assert made.dims
    server.context_chars = 80
    assert not isinstance(made.embed([" ".join(f"word{n}" for n in range(40))])[0], BadInput)
    assert all(text.startswith("search_document: ") for text in server.embedded())
    made.close()


@pytest.mark.parametrize(
    ("model", "reads"),
    [("nomic-embed-text", 0), ("nomic-embed-text-v2-moe", 1), ("all-minilm", 0), ("bge-m3", 1), ("somebodys-own", 1)],
)
def test_what_a_model_reads_is_known_or_taken_to_be_everything(server, model, reads):
    made = OllamaEmbedder(server.url, model, timeout_s=5)
    assert (made.legible("日本語の設定"), made.legible("English words")) == (reads, 1)
    assert server.requests == []
    made.close()


# O2


def test_a_text_too_long_is_halved_and_averaged(server, embedder):
    server.context_chars = 60
    long = " ".join(f"word{n}" for n in range(40))
    short, found = embedder.embed(["short", long])
    assert is_for(short, "short")
    assert float(np.dot(found, vector(long, 64))) > 0.8


def test_a_text_still_too_long_after_six_halvings_is_refused(server, embedder):
    assert embedder.dims
    server.context_chars = 50
    ok, found = embedder.embed(["fine", "x" * 10_000])
    assert is_for(ok, "fine")
    assert isinstance(found, BadInput)
    assert "too long" in str(found)


# O4


@pytest.mark.parametrize("text", ["", " ", "\n\t "])
def test_a_blank_text_is_never_sent(server, embedder, text):
    blank, word = embedder.embed([text, "word"])
    assert isinstance(blank, BadInput)
    assert is_for(word, "word")
    assert all(sent.strip() for sent in server.embedded())


@pytest.mark.parametrize("shape", [[], None, "absent", [[]], [[0.0] * 64], {}])
def test_an_answer_without_vectors_is_never_taken_for_one(server, embedder, shape):
    assert embedder.dims == 64
    server.empty_shape = shape
    with pytest.raises(ModelUnavailable):
        embedder.embed(["one", "two", "three"])


@pytest.mark.parametrize("shape", [[float("nan")] * 64, [float("inf")] * 64, [0.0] * 64, [1.0] * 63, [], None])
def test_a_vector_that_is_infinite_zero_or_of_wrong_length_is_refused(server, embedder, shape):
    assert embedder.dims == 64
    server.vector_shape = shape
    with pytest.raises(ModelUnavailable):
        embedder.embed(["one"])


# O6


def test_a_missing_model_names_the_address_and_the_command_that_gets_it(server):
    absent = OllamaEmbedder(server.url, "qwen3-embedding:8b")
    with pytest.raises(ModelUnavailable, match=rf"{server.url}.*ollama pull qwen3-embedding:8b"):
        absent.embed(["text"])
    absent.close()


def test_down_and_up_again_without_a_new_embedder(server, embedder):
    server.down()
    with pytest.raises(ModelUnavailable, match=rf"{server.url}: nothing answers.*ollama serve"):
        embedder.embed(["text"])
    server.up()
    assert is_for(embedder.embed(["text"])[0], "text")
    server.down()
    with pytest.raises(ModelUnavailable):
        embedder.embed(["text"])


def test_a_slow_server_is_unavailable_but_a_cold_start_is_awaited(server):
    patient, hasty = (OllamaEmbedder(server.url, "embedder", timeout_s=t) for t in (5, 0.1))
    server.delay_s = 0.4
    with pytest.raises(ModelUnavailable, match="in time"):
        hasty.embed(["text"])
    assert is_for(patient.embed(["text"])[0], "text")
    patient.close()
    hasty.close()


@pytest.mark.parametrize("status", [401, 429, 503])
def test_a_server_that_refuses_condemns_no_text(server, embedder, status):
    assert embedder.dims
    server.broken, server.broken_path = status, "/api/embed"
    with pytest.raises(ModelUnavailable, match=str(status)):
        embedder.embed(["one", "two"])


# C11


def test_the_fingerprint_survives_a_restart_and_changes_with_the_model(server):
    def fingerprint():
        made = OllamaEmbedder(server.url, "embedder")
        try:
            return made.fingerprint
        finally:
            made.close()

    first = fingerprint()
    assert re.fullmatch(r"[a-z0-9-]{12,36}", first)
    assert first == fingerprint() == "embedder-ab12cd34-64"
    server.models["embedder:latest"] = "ff" * 32
    assert fingerprint() != first


def test_a_long_model_name_still_makes_a_short_fingerprint(server):
    name = "hf.co/Some.One/An-Embedding_Model-With-A-Very-Long-Name:Q4_K_M"
    server.models[name], server.dims = "0123456789" * 6, 4096
    made = OllamaEmbedder(server.url, name)
    assert re.fullmatch(r"[a-z0-9-]{12,36}", made.fingerprint)
    made.close()


def test_a_model_replaced_while_in_use_stops_the_embedder(server, embedder):
    embedder.embed(["one"])
    server.models["embedder:latest"] = "ff" * 32
    with pytest.raises(ModelUnavailable, match="replaced"):
        embedder.embed(["two"])


# choice


def test_probe_tells_digest_or_nothing(server):
    assert OllamaEmbedder.probe(server.url, "embedder") == server.models["embedder:latest"]
    assert OllamaEmbedder.probe(server.url, "other") is None
    server.down()
    assert OllamaEmbedder.probe(server.url, "embedder") is None


def test_auto_takes_ollama_when_it_has_the_model(server):
    chosen, why = choose(Embedding(url=server.url, model="embedder"), Worker())
    assert chosen.name == "embedder (Ollama)"
    assert server.url in why
    chosen.close()


def test_auto_uses_the_built_in_model_and_says_how_to_get_the_missing_one(server):
    chosen, why = choose(Embedding(url=server.url, model="other"), Worker())
    assert isinstance(chosen, WorkerEmbedder)
    assert "ollama pull other" in why


def test_auto_does_not_wait_for_a_server_that_accepts_and_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        chosen, why = choose(Embedding(url=f"http://127.0.0.1:{silent.getsockname()[1]}"), Worker())
        took = time.monotonic() - started
    assert isinstance(chosen, WorkerEmbedder)
    assert "in time" in why
    assert took < 100  # not the 300 s of an embedding call


def test_a_named_provider_is_kept_even_when_it_is_down():
    port = free_port()
    chosen, _ = choose(Embedding(provider="ollama", url=f"http://127.0.0.1:{port}", model="m"), Worker())
    with pytest.raises(ModelUnavailable):
        _ = chosen.fingerprint
    chosen.close()
    assert isinstance(choose(Embedding(provider="builtin"), Worker())[0], WorkerEmbedder)


def test_an_address_that_is_none_is_a_configuration_error():
    with pytest.raises(ConfigError, match=r"embedding\.url"):
        OllamaEmbedder("http://[nonsense", "m")
