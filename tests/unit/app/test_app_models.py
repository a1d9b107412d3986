"""`reconstitute models`: which models are at hand, what they read, and the advice that follows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from daemon import config
from daemon.app import OneShot
from daemon.app.calls.models import advice, texts_per_second
from daemon.cli.subcommands.config import models as command
from daemon.control.model_answers import EmbeddingModel
from daemon.errors import BadInput
from tests.e2e.talk import Talk
from tests.support.servers.fake_hub import FakeHub
from tests.support.servers.fake_ollama import FakeOllama
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore
from tests.support.tiny_model import tiny_model
from tests.unit.ingest.test_ingest_upkeep import Hashed

NOWHERE = "http://127.0.0.1:9"
ENGLISH = ["Why do we use PostgreSQL?", "The rows are numbered from one.", "Rename the module, please."]
JAPANESE = "なぜこのデータベースを使うのですか"


@contextmanager
def engine(root: Path, *texts: str, **embedding: Any) -> Iterator[PlainService]:
    talk = Talk(JsonStore(root / "oc"))
    for text in texts:
        talk.ask(text)
    tables = {
        "opencode": {"data_dir": str(root / "oc")},
        "archive": {"dir": str(root / "archive")},
        "embedding": {"provider": "builtin", "url": NOWHERE} | embedding,
        "chat": {"provider": "none"},
    }
    with PlainService(OneShot(msgspec.convert(tables, config.Config))) as made:
        yield made


def test_the_built_in_model_is_judged_by_the_archives_own_messages(tmp_path: Path) -> None:
    with engine(tmp_path, *ENGLISH, JAPANESE) as made:
        answer = made.models()
    (model,) = answer["models"]
    assert (answer["messages"], answer["sample"]) == (4, 4)
    assert (model["name"], model["inUse"], model["dims"]) == ("all-MiniLM-L6-v2 (built in)", True, 384)
    assert model["readable"] == 0.75
    assert model["textsPerSecond"] > 0
    assert model["seconds"] >= 0
    assert "cannot read 25% of the messages" in answer["advice"]
    assert "multilingual" in answer["advice"]
    assert "nothing answers" in answer["warnings"][0]


def test_no_model_is_in_use_while_search_by_meaning_is_off(tmp_path: Path) -> None:
    with engine(tmp_path, *ENGLISH, what="none") as made:
        answer = made.models()
    assert [model["inUse"] for model in answer["models"]] == [False]
    assert any('embedding.what is "none"' in warning for warning in answer["warnings"])


def test_a_directory_and_the_models_of_a_server_stand_beside_the_one_in_use(tmp_path: Path) -> None:
    with FakeOllama({"bge-m3:latest": "ab" * 32, "qwen3:8b": "cd" * 32, "old:1b": "ef" * 32}) as server:
        server.capabilities = {"bge-m3:latest": ["embedding"], "qwen3:8b": ["completion"], "old:1b": None}
        place = tiny_model(tmp_path / "tiny")
        with engine(tmp_path, *ENGLISH, JAPANESE, url=server.url, model_dir=str(place)) as made:
            answer = made.models()
    names = [model["name"] for model in answer["models"]]
    assert names == [f"{place} (embedding.model_dir)", "all-MiniLM-L6-v2 (built in)", "bge-m3 (Ollama)"]
    assert [model["inUse"] for model in answer["models"]] == [True, False, False]
    settings = [model["setting"] for model in answer["models"]]
    assert settings == [
        "",
        'embedding.provider = "builtin", embedding.model_dir = ""',
        'embedding.provider = "ollama", embedding.model = "bge-m3"',
    ]
    assert answer["models"][2]["readable"] == 1
    assert answer["warnings"] == []
    assert "bge-m3 (Ollama) reads 100%" in answer["advice"]


def test_a_model_that_does_not_work_is_an_entry_and_no_error(tmp_path: Path) -> None:
    with engine(tmp_path, *ENGLISH, model_dir=str(tmp_path / "absent")) as made:
        answer = made.models()
    assert "has no model.onnx" in answer["models"][0]["error"]
    assert answer["models"][1]["error"] == ""
    assert "does not work" in answer["advice"]
    assert answer["models"][0]["error"] not in answer["advice"]
    assert 'embedding.model_dir = ""' in answer["advice"]


def test_a_model_of_the_hub_is_listed_with_its_cost_and_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tiny_model(tmp_path / "tiny")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with FakeHub({"maker/tiny": place}) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        with engine(tmp_path, *ENGLISH, model_dir="hf:maker/tiny") as made:
            answer = made.models()
            assert [path for path in hub.paths if "resolve" in path] == []
            made.index(wait=True)
            known = made.models()
    model = answer["models"][0]
    assert (model["name"], model["inUse"]) == ("maker/tiny (embedding.model_dir)", True)
    assert "not downloaded yet" in model["error"]
    assert "(0 MB are to be downloaded)" in model["error"]
    assert (known["models"][0]["error"], known["models"][0]["dims"]) == ("", 4)


def test_an_empty_archive_has_models_but_no_share(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        answer = made.models()
    assert (answer["messages"], answer["sample"], answer["models"][0]["readable"]) == (0, 0, None)
    assert "nothing is archived yet" in answer["advice"]


def test_the_command_says_it_in_lines_or_json(tmp_path: Path) -> None:
    with engine(tmp_path, *ENGLISH, JAPANESE) as made:
        settings = SimpleNamespace(ask=made._service.call)
        lines = CliRunner().invoke(command, [], obj=settings, catch_exceptions=False)
        as_json = CliRunner().invoke(command, ["--json"], obj=settings, catch_exceptions=False)
    assert (lines.exit_code, as_json.exit_code) == (0, 0)
    assert "all-MiniLM-L6-v2 (built in), in use" in lines.stdout
    assert "reads 75% of 4 messages, 384 dimensions," in lines.stdout
    assert json.loads(as_json.stdout)["sample"] == 4


def test_speed_is_measured_within_its_time_and_bad_texts_do_not_count() -> None:
    model = Hashed()
    times: Iterator[float] = iter(range(100))
    assert texts_per_second(model, ["a text"] * 50, lambda: next(times)) == 0.7  # two texts until a clock says 2 s
    model.refused = "bad"
    times = iter([0.0, *[0.1] * 99])
    assert texts_per_second(model, ["bad", "good"], lambda: next(times)) == 10
    with pytest.raises(BadInput):
        texts_per_second(model, ["bad"])


def judged(name: str, readable: float | None, seconds: float = 60, error: str = "") -> EmbeddingModel:
    speed = 1000 / seconds
    return EmbeddingModel(
        name=name, readable=readable, seconds=seconds, texts_per_second=speed, setting=f"use {name}", error=error
    )


ADVICE = [
    ([judged("a", 1.0), judged("b", 1.0)], "nothing needs to be changed"),
    ([judged("a", 0.99), judged("b", 1.0)], "nothing needs to be changed"),
    ([judged("a", 0.5), judged("b", 0.9), judged("c", 1.0)], "c reads 100%: use c"),
    ([judged("a", 0.5), judged("b", 1.0, error="broken")], "ollama pull bge-m3"),
    ([judged("a", 0.5), judged("b", 0.5)], "ollama pull bge-m3"),
    ([judged("a", 1.0, 90_000), judged("b", 1.0, 600), judged("c", 0.4, 10)], "b is quicker: use b"),
    ([judged("a", 1.0, 90_000), judged("c", 0.4, 10)], "nothing needs to be changed"),
    (
        [judged("a", None, error="broken"), judged("b", None)],
        "a does not work; mend what its error names; or use b: use b",
    ),
]


@pytest.mark.parametrize(("models", "expected"), ADVICE)
def test_the_advice_follows_from_the_figures(models: list[EmbeddingModel], expected: str) -> None:
    assert expected in advice(models)
