"""When messages are embedded, and when the process with the model is there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon.app import embed_loop
from daemon.app.daemon import Daemon
from daemon.app.embed_loop import EmbedLoop
from daemon.app.yielding import YieldingEmbedder
from daemon.embed.builtin import WorkerEmbedder
from tests.support.processes.daemon_process import until
from tests.support.stores.make_opencode import T0, JsonStore, assistant, session, text


def unexpected(error: BaseException) -> None:
    raise error


def test_meaning_is_loaded_for_a_question_and_let_go_of_after_a_rest(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = daemon._engine.upkeep
    embedder = upkeep.embedder
    assert isinstance(embedder, YieldingEmbedder)
    assert isinstance(embedder._embedder, WorkerEmbedder)
    assert EmbedLoop(daemon._engine, unexpected).turn() > 0  # a new index is made at once
    assert upkeep.end_worker_if_idle(0.0)
    embedding = EmbedLoop(daemon._engine, unexpected)
    assert embedding.turn() > 0
    assert (upkeep.is_open, upkeep.worker.pid) == (False, None)

    upkeep.load()
    assert upkeep.is_open
    assert upkeep.worker.pid is not None
    while not embedding.turn():
        pass
    assert upkeep.is_open
    monkeypatch.setattr(embed_loop, "WORKER_IDLE_S", 0.0)
    embedding.turn()
    assert upkeep.worker.pid is None
    upkeep.load()
    assert upkeep.is_open


def test_a_pause_ends_the_idle_worker(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = daemon._engine.upkeep
    upkeep.open_semantic()  # `load` would not wait for long
    assert upkeep.worker.pid is not None
    daemon._engine.pausing.begin(None)
    monkeypatch.setattr(embed_loop, "WORKER_IDLE_S", 0.0)
    embedding = EmbedLoop(daemon._engine, unexpected)
    embedding.start()
    until(lambda: upkeep.worker.pid is None, what="the worker ended")
    embedding.stop()
    assert embedding.join(10)


# -- answers that are being written ----------------------------------------------------------------------------------

Write = Callable[..., None]


@pytest.fixture
def write(daemon: Daemon, tmp_path: Path) -> Write:
    """`write(number, words)` writes an answer, and the service archives it and indexes its words."""
    store = JsonStore(tmp_path / "opencode")
    store.session(session("ses_1"))
    now = int(time.time() * 1000)

    def written(number: int, words: str, *, created: int = 0, done: bool = False) -> None:
        name, began = f"msg_{number}", created or now
        record = assistant(name, "ses_1", began, began + 1 if done else None)
        store.message(record, text(f"prt_{number}", name, "ses_1", words))
        daemon._engine.scan(everything=True, patient=False)

    return written


def waiting(daemon: Daemon) -> int:
    return daemon._engine.waits_for_meaning


def drained(embedding: EmbedLoop) -> None:
    while not embedding.turn():
        pass


def test_an_answer_is_embedded_when_it_is_complete(daemon: Daemon, write: Write) -> None:
    embedding = EmbedLoop(daemon._engine, unexpected)
    embedding.turn()  # makes the index
    assert daemon._engine.upkeep.end_worker_if_idle(0.0)
    for words in ("The value", "The value grows", "The value grows now"):
        write(1, words)
        assert embedding.turn() > 0
        assert waiting(daemon) == 1
    assert daemon._engine.upkeep.worker.pid is None
    write(1, "The value grows now.", done=True)
    drained(embedding)
    assert waiting(daemon) == 0


def test_an_answer_that_grows_no_more_is_embedded_as_it_is(
    daemon: Daemon, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it began long ago: what counts is when it changed."""
    embedding = EmbedLoop(daemon._engine, unexpected)
    embedding.turn()
    write(1, "The value", created=T0)
    while not embedding.turn():  # it is not known to grow
        pass
    assert waiting(daemon) == 0
    for words in ("The value grows", "The value grows now"):
        write(1, words, created=T0)
        assert embedding.turn() > 0
        assert waiting(daemon) == 1
    monkeypatch.setattr(embed_loop, "_GROWS_S", 0.0)
    drained(embedding)
    assert waiting(daemon) == 0


@pytest.mark.parametrize("more", [{"created": T0}, {"done": True}], ids=["begun long ago", "complete"])
def test_what_does_not_grow_is_embedded_at_once(daemon: Daemon, write: Write, more: dict[str, Any]) -> None:
    write(1, "The value", **more)
    drained(EmbedLoop(daemon._engine, unexpected))
    assert waiting(daemon) == 0


def test_a_message_that_was_forgotten_is_not_waited_for(
    daemon: Daemon, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(1, "The value", created=T0)
    monkeypatch.setattr(daemon._engine.archive, "message", lambda _id: None)
    assert not EmbedLoop(daemon._engine, unexpected)._is_growing()


def test_what_grows_keeps_nothing_else_waiting(daemon: Daemon, write: Write) -> None:
    write(1, "The value")
    write(2, "Another one.", done=True)
    drained(EmbedLoop(daemon._engine, unexpected))
    assert waiting(daemon) == 0
