"""Search with a model whose cosines lie close together, as those of the e5 family do: what is unrelated is no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from daemon import config
from daemon.app import OneShot
from daemon.embed.builtin import Builtin
from daemon.embed.calibration import PAIRS
from daemon.ingest.indexes import NOT_TELLING
from tests.e2e.talk import Talk
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.servers.fake_ollama_http import inputs
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore
from tests.support.tiny_model import tiny_model

NOWHERE = "http://127.0.0.1:9"
TOPICS = ("tulips bulbs soil watering flowers bloom", "invoice ledger euros taxes accountant payment")
SAID = ("bulbs soil watering", "ledger euros taxes", "invoice payment", "taxes parcel ledger")
QUESTION = "flowers bloom"


def crowded_model(directory: Path) -> Path:
    """A tiny model in which words of one topic are alike, and all words share a direction: cosines from 0.7 to 1."""
    topics = [*(f"{question} {answer}" for question, answer in PAIRS), *TOPICS]
    words: dict[str, np.ndarray[Any, Any]] = {}
    for number, topic in enumerate(topics):
        for word in topic.split():
            words.setdefault(word, np.append(np.eye(len(topics))[number], 1.0))
    return tiny_model(directory, words=words)


@contextmanager
def service(root: Path, **embedding: Any) -> Iterator[PlainService]:
    if not (root / "oc").exists():
        talk = Talk(JsonStore(root / "oc"))
        for text in SAID:
            talk.ask(text)
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "embedding": {"provider": "builtin", "url": NOWHERE} | embedding,
        "chat": {"provider": "none"},
    }
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as made:
        made.index(wait=True)
        yield made


def found(made: PlainService, query: str, **more: Any) -> dict[str, float]:
    answer = made.recall("recall", {"query": query, **more})
    return {result["snippet"].removeprefix("Garden "): result["score"] for result in answer["results"]}


def test_unrelated_texts_of_a_crowded_model_are_no_results(tmp_path: Path):
    place = crowded_model(tmp_path / "tiny")
    vectors = np.array(Builtin(place).embed(SAID))
    assert (vectors @ vectors.T).min() > 0.7
    with service(tmp_path, model_dir=str(place)) as made:
        assert list(found(made, QUESTION, match="smart")) == [SAID[0]]
        by_meaning = found(made, QUESTION, match="semantic")
        assert by_meaning.pop(SAID[0]) > 0.6
        assert all(score < 0.2 for score in by_meaning.values())
        assert list(found(made, QUESTION, match="semantic", threshold=0.3)) == [SAID[0]]


def test_meaning_of_a_crowded_model_counts_only_where_texts_are_related(tmp_path: Path):
    """Only one text holds a word of the question; that of the same topic must not be lost among all the others."""
    with service(tmp_path, model_dir=str(crowded_model(tmp_path / "tiny"))) as made:
        assert list(found(made, f"parcel {QUESTION}", match="hybrid")) == [SAID[0], SAID[3]]


def test_a_model_of_a_server_is_measured_once(tmp_path: Path):
    asked = [text for pair in PAIRS for text in pair]
    with FakeOllama() as server:
        for _ in range(2):
            with service(tmp_path, provider="ollama", model="embedder", url=server.url) as made:
                assert found(made, "ledger", match="semantic")
        sent = [text for path, body in server.requests if path == "/api/embed" for text in inputs(body)]
    assert [sent.count(text) for text in asked] == [1] * len(asked)


def test_status_names_a_model_that_tells_nothing_of_meaning(tmp_path: Path):
    with service(tmp_path, model_dir=str(tiny_model(tmp_path / "tiny"))) as made:
        found(made, "red", match="semantic")
        assert NOT_TELLING in made.status()["index"]["semantic"]["embedder"]
