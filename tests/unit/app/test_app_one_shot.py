"""A single command without a daemon: what it finds by meaning, and what it says of what is not embedded yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import app, config
from daemon.app import OneShot
from daemon.errors import BadInput, ModelUnavailable, Retry
from daemon.model import Json, Vector
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore, session, text, user
from tests.unit.ingest.test_ingest_upkeep import Hashed


class Down(Hashed):
    """A model whose server does not run: it says neither who it is nor anything else."""

    @property
    def fingerprint(self) -> str:
        raise ModelUnavailable("http://127.0.0.1:11434 does not answer; start it with: ollama serve")

    @fingerprint.setter
    def fingerprint(self, value: str) -> None:
        pass

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        raise ModelUnavailable("http://127.0.0.1:11434 does not answer; start it with: ollama serve")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    store = JsonStore(tmp_path / "oc")
    for number in range(40):
        name = f"{number:02}"
        store.session(session(f"ses_{name}"))
        message = user(f"msg_{name}", f"ses_{name}")
        store.message(message, text(f"prt_{name}", f"msg_{name}", f"ses_{name}", f"apples number {number}"))
    return tmp_path / "oc"


@contextmanager
def _alone(data: Path, model: Hashed | None = None, progress: Callable[[Json], None] = print) -> Iterator[PlainService]:
    tables: dict[str, Any] = {
        "opencode": {"data_dir": str(data)},
        "archive": {"dir": str(data.parent / "archive")},
    }
    chosen = model or Hashed()
    with PlainService(
        OneShot(msgspec.convert(tables, config.Config), progress, embedder=lambda: (chosen, "a test"))
    ) as engine:
        yield engine


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_the_first_question_ever_is_answered_by_meaning(data: Path, mode: str):
    with _alone(data) as engine:
        found = engine.recall("recall", {"query": "apples number 7", "match": mode, "results": 50})
        assert {one["messageID"] for one in found["results"]} == {f"msg_{number:02}" for number in range(40)}
        assert found["coverage"]["semantic"] == "used"
        assert (found["warnings"], engine.archive.waiting("semantic")) == ([], 0)


@pytest.mark.parametrize("match", ["literal", "regex", "fuzzy", "smart"])
def test_questions_by_words_do_not_wait_for_embedding(data: Path, match: str):
    model = Hashed()
    with _alone(data, model) as engine:
        found = engine.recall("recall", {"query": "apples", "match": match})
        assert (len(found["results"]), model.calls, found["warnings"]) == (10, [], [])


def test_nothing_found_by_meaning_while_everything_waits_is_no_answer(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(app._EMBEDDING_S, "semantic", 0.0)
    waits = r"40 messages are not searchable by meaning yet; run `index"
    with _alone(data) as engine, pytest.raises(Retry, match=waits):
        engine.recall("recall", {"query": "apples", "match": "semantic"})


@pytest.mark.parametrize(("mode", "query"), [("hybrid", "apples"), ("hybrid", "pears"), ("smart", "pears of autumn")])
def test_what_meaning_would_have_to_be_asked_for_is_said_to_wait(
    data: Path, monkeypatch: pytest.MonkeyPatch, mode: str, query: str
) -> None:
    monkeypatch.setitem(app._EMBEDDING_S, "hybrid", 0.0)
    with _alone(data) as engine:
        found = engine.recall("recall", {"query": query, "match": mode})
        assert "run `index(wait=true)`" in found["warnings"][-1]


def test_a_filter_that_no_session_passes_is_no_reason_to_come_again(data: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(app._EMBEDDING_S, "semantic", 0.0)
    with _alone(data) as engine:
        found = engine.recall("recall", {"query": "apples", "match": "semantic", "title": "no such title"})
        assert found["results"] == []


@pytest.mark.parametrize(("quiet_s", "phases"), [(60.0, set()), (0.0, {"embedding", "indexing words"})])
def test_long_work_is_shown_and_short_work_is_not(
    data: Path, monkeypatch: pytest.MonkeyPatch, quiet_s: float, phases: set[str]
) -> None:
    monkeypatch.setattr(app, "_QUIET_S", quiet_s)
    seen: list[Json] = []
    with _alone(data, progress=seen.append) as engine:
        engine.recall("recall", {"query": "apples", "match": "semantic"})
    assert {event["phase"] for event in seen} >= phases
    assert bool(seen) == bool(phases)


@pytest.mark.parametrize("match", ["semantic", "hybrid"])
def test_without_its_model_server_the_answer_names_what_starts_it(data: Path, match: str):
    with _alone(data, Down()) as engine:
        if match == "semantic":
            with pytest.raises(ModelUnavailable, match="ollama serve"):
                engine.recall("recall", {"query": "apples", "match": match})
        else:
            found = engine.recall("recall", {"query": "apples", "match": match})
            assert any("ollama serve" in warning for warning in found["warnings"])
            assert len(found["results"]) == 10
