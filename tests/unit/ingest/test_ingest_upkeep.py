"""An index is searched only when it is the one this archive filled; whatever else lies there is filled anew."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from daemon.archive import TOOLS, Archive
from daemon.embed import Embedder, Vector
from daemon.embed.calibration import PAIRS
from daemon.errors import BadInput, IndexBroken, ModelUnavailable, Retry
from daemon.index import Filters
from daemon.index.semantic.process import _LEAST_S, WorkerIndex
from daemon.ingest import Upkeep, indexes, outbox
from daemon.opencode.json_tree import JsonTree
from daemon.transcript import chunks
from daemon.worker import Worker
from tests.e2e.talk import Talk, words
from tests.support.servers.fake_ollama import vector
from tests.support.stores.intake import intake_of
from tests.support.stores.make_opencode import JsonStore
from tests.unit.index.semantic.test_index_semantic import opened, serving

MESSAGES = 12
CALIBRATING = frozenset(itertools.chain(*PAIRS))


class Hashed:
    """A model: equal words, equal vectors. `refused` is a word of texts it cannot take, `foreign` one of texts it cannot
    read; `calls` what it was asked, besides the texts that models are calibrated with.
    """

    dims = 256
    name = "hashed"

    def __init__(self, fingerprint: str = "hashed-00000000-256") -> None:
        self.fingerprint = fingerprint
        self.calls: list[str] = []
        self.refused = self.foreign = ""

    def close(self) -> None:
        pass

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        self.calls += [text for text in texts if text not in CALIBRATING]
        return [
            BadInput("no vector for this text")
            if self.refused and self.refused in text
            else np.asarray(vector(text, self.dims), dtype=np.float32)
            for text in texts
        ]

    def embed_query(self, text: str) -> Vector | BadInput:
        return self.embed([text])[0]

    def legible(self, text: str) -> float:
        return 0.4 if self.foreign and self.foreign in text else 1.0

    def known_words(self, text: str) -> float:
        return 1.0


class Down(Hashed):
    @property
    def fingerprint(self) -> str:
        raise ModelUnavailable("nothing answers; start it")

    @fingerprint.setter
    def fingerprint(self, value: str) -> None:
        pass


class House:
    """An archive with some messages, and the upkeep of its indexes, which may be closed and opened again."""

    def __init__(self, root: Path, chroma: str = "embedded") -> None:
        self.root = root
        self.chroma, self.embed_scope = chroma, "all"
        self.archive = Archive(root / "archive")
        self.said: list[str] = []
        self.upkeep: Upkeep | None = None

    def fill(self) -> None:
        talk = Talk(JsonStore(self.root / "opencode"))
        for number in range(MESSAGES):
            talk.ask(f"About {words(number)}.")
        intake_of(self.archive, quiet_s=0, free_mb=0).scan(JsonTree(self.root / "opencode" / "storage"), patient=False)

    def open(self, embedder: Embedder | None = None) -> Upkeep:
        if self.upkeep is not None:
            self.upkeep.close()
        self.said.clear()
        chosen = embedder or Hashed()
        self.upkeep = Upkeep(
            self.archive,
            self.root / "index",
            chroma=self.chroma,
            choose=lambda: (chosen, "chosen"),
            on_event=lambda what, message: self.said.append(f"{what}: {message}"),
            indexed_kb=64,
            embedded_kb=4,
            batch=4,
            embed_scope=self.embed_scope,
        )
        return self.upkeep

    def drain(self) -> None:
        assert self.upkeep is not None
        while self.archive.waiting("lexical"):
            self.upkeep.lexical_drain().step()
        self.upkeep.open_semantic()
        while self.archive.waiting("semantic") or self.archive.waiting(TOOLS):
            self.upkeep.semantic_drain().step()

    def missing(self) -> list[int]:
        """The messages that words, or meaning, do not find."""
        assert self.upkeep is not None
        meaning = self.upkeep.open_semantic()
        lost = []
        for number in range(MESSAGES):
            asked = np.asarray(vector(f"About {words(number)}.", Hashed.dims), dtype=np.float32)
            by_words = self.upkeep.lexical.literal(words(number), Filters(), 1)
            by_meaning = meaning.query(asked, Filters(), 1)
            if not by_words or not by_meaning or by_words[0].message_id != by_meaning[0].message_id:
                lost.append(number)
        return lost


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    made.fill()
    made.open()
    made.drain()
    assert made.missing() == []
    yield made
    if made.upkeep is not None:
        made.upkeep.close()
    made.archive.close()


def test_an_index_that_is_ours_and_whole_is_opened_as_it_is(house: House) -> None:
    house.open()
    assert house.archive.waiting("lexical") == 0
    house.upkeep.open_semantic()
    assert house.archive.waiting("semantic") == 0
    assert house.said == ["embedder: chosen"]


def emptied(place: Path) -> None:
    shutil.rmtree(place)
    place.mkdir()


def unnamed(place: Path) -> None:
    (place / "belongs-to").unlink()


def garbled(place: Path) -> None:
    for path in place.rglob("*"):
        if path.is_file() and path.name != "belongs-to":
            path.write_bytes(b"\0garbage" * 100)


@pytest.mark.parametrize("damage", [shutil.rmtree, emptied, unnamed, garbled])
@pytest.mark.parametrize("stage", ["lexical", "semantic"])
def test_a_damaged_index_is_refilled_without_the_model(
    house: House, stage: str, damage: Callable[[Path], None]
) -> None:
    """The index directory is gone, emptied, without its name or garbled."""
    house.upkeep.close()
    damage(house.root / "index" / stage)
    model = Hashed()

    house.open(model)
    house.upkeep.open_semantic()
    assert house.archive.waiting(stage) == MESSAGES
    house.drain()

    assert house.missing() == []
    assert model.calls == []


@pytest.mark.parametrize("stage", ["lexical", "semantic"])
def test_another_archives_index_is_never_taken_for_ours(house: House, tmp_path: Path, stage: str) -> None:
    other = House(tmp_path / "other")
    other.open()
    other.drain()
    other.upkeep.close()
    other.archive.close()
    house.upkeep.close()
    shutil.rmtree(house.root / "index" / stage)
    shutil.copytree(other.root / "index" / stage, house.root / "index" / stage)

    house.open()
    house.drain()

    assert house.missing() == []


def test_a_crash_between_claiming_and_filling_is_made_good(house: House) -> None:
    house.upkeep.close()
    shutil.rmtree(house.root / "index")
    house.open()
    house.upkeep.lexical_drain().step(limit=3)
    house.upkeep.open_semantic()
    house.upkeep.semantic_drain().step(limit=3)

    house.open()
    house.drain()

    assert house.missing() == []


def test_another_model_gets_its_own_collection_and_returning_is_free(house: House) -> None:
    second = Hashed("second-11111111-256-c1")
    house.open(second)
    house.drain()
    assert house.missing() == []
    assert len(second.calls) == MESSAGES

    first = Hashed()
    house.open(first)
    house.drain()
    assert house.missing() == []
    assert first.calls == []


def test_another_chunker_embeds_everything_again_and_mixes_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def texts() -> set[str]:
        semantic = house.upkeep.open_semantic() if house.upkeep is not None else None
        assert semantic is not None
        found = semantic.query(np.asarray(vector("x", Hashed.dims), dtype=np.float32), Filters(), 10 * MESSAGES)
        return {match.text for match in found}

    whole = texts()
    monkeypatch.setattr(outbox, "CHUNKER_VERSION", "another")
    monkeypatch.setattr(chunks, "WINDOW", 12)
    monkeypatch.setattr(chunks, "OVERLAP", 0)
    model = Hashed()
    house.open(model)
    house.drain()
    assert model.calls
    assert texts() == set(model.calls)
    assert max(map(len, texts())) <= 12 < min(map(len, whole))


def test_a_broken_index_is_parked_and_at_most_one_is_kept(house: House) -> None:
    for _ in range(2):
        house.upkeep.rebuild_lexical(IndexBroken("it was found broken"))
        house.upkeep.rebuild_semantic(IndexBroken("it was found broken"))
        assert "rebuilding: it was found broken" in house.upkeep.state()["semantic"]["state"]
        house.drain()

    assert house.missing() == []
    assert sorted(path.name for path in (house.root / "index").iterdir()) == [
        "lexical", "lexical.parked", "semantic", "semantic.parked",
    ]  # fmt: skip


def test_an_index_is_not_broken_for_having_been_closed_under_a_caller(house: House) -> None:
    house.upkeep.close()
    for rebuild in (house.upkeep.rebuild_lexical, house.upkeep.rebuild_semantic):
        with pytest.raises(IndexBroken, match="was closed"):
            rebuild(IndexBroken("it was closed"))
    with pytest.raises(IndexBroken, match="closed"):
        house.upkeep.open_semantic()
    house.open()

    assert house.missing() == []
    assert not any("parked" in said for said in house.said)


def test_the_state_says_what_is_waited_for_and_what_the_model_refused(house: House) -> None:
    house.open(Down())
    with pytest.raises(ModelUnavailable):
        house.upkeep.open_semantic()
    assert house.upkeep.state()["semantic"]["state"] == "waiting: nothing answers; start it"

    picky = Hashed("picky-22222222-256-c1")
    picky.refused = words(3)
    house.open(picky)
    house.drain()
    state = house.upkeep.state()["semantic"]
    assert (state["state"], state["refused"], state["reasons"]) == ("ready", 1, ["no vector for this text"])
    assert house.missing() == [3]

    house.open(Hashed("kinder-33333333-256-c1"))
    house.drain()
    assert house.upkeep.state()["semantic"]["refused"] == 0
    assert house.missing() == []


def foreign(word: str) -> Hashed:
    model = Hashed()
    model.foreign = word
    return model


@pytest.mark.parametrize("word", [words(3), "About"], ids=["one message", "all messages"])
def test_what_the_model_cannot_read_has_no_vector_and_is_no_damage(tmp_path: Path, word: str) -> None:
    """Nothing waits for ever, and the next start finds nothing missing."""
    house = House(tmp_path)
    house.fill()
    unread = MESSAGES if word == "About" else 1
    house.open(foreign(word))
    house.drain()
    for _ in range(2):
        state = house.upkeep.state()["semantic"]
        assert (state["count"], state["unread"], state["refused"]) == (MESSAGES - unread, unread, 0)
        assert (house.archive.waiting("semantic"), house.archive.waiting("lexical")) == (0, 0)
        house.open(foreign(word))
        assert house.upkeep.state()["semantic"]["unread"] == unread  # before anything is opened
        house.upkeep.open_semantic()
        assert house.said == ["embedder: chosen"]
    house.upkeep.close()
    house.archive.close()


def test_vectors_of_an_earlier_time_leave_the_index_and_come_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules of legibility have changed: the archive still has the vectors, so no model is asked."""
    monkeypatch.setattr(outbox, "LEGIBLE_VERSION", "other")
    model = foreign(words(3))
    house.open(model)
    house.drain()
    assert house.missing() == [3]
    house.open(foreign(words(3)))
    house.upkeep.open_semantic()
    assert house.said == ["embedder: chosen"]

    monkeypatch.setattr(outbox, "LEGIBLE_VERSION", "another")
    house.open(Hashed())
    house.drain()
    assert (house.missing(), model.calls) == ([], [])
    assert house.upkeep.state()["semantic"]["unread"] == 0


def test_a_model_that_reads_more_takes_what_another_could_not(house: House) -> None:
    house.open(foreign(words(3)))
    house.archive.enqueue_all("semantic")
    house.drain()
    assert house.upkeep.state()["semantic"]["unread"] == 1
    house.open(Hashed("second-11111111-256-c1"))
    house.drain()
    assert (house.missing(), house.upkeep.state()["semantic"]["unread"]) == ([], 0)


def test_a_chroma_server_is_not_filled_again_where_nothing_is_legible(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        opened(url).close()  # it answers
        house = House(tmp_path, chroma=url)
        house.fill()
        house.open(foreign("About"))
        house.drain()
        house.open(foreign("About"))
        house.upkeep.open_semantic()
        assert house.archive.waiting("semantic") == 0
        house.upkeep.close()
        house.archive.close()


def test_questions_do_not_try_again_and_again_to_open_an_index(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep, tries = house.open(Down()), []
    opening = upkeep.open_semantic
    monkeypatch.setattr(upkeep, "open_semantic", lambda: (tries.append(1), opening()))
    for _ in range(3):
        upkeep.load()
    assert (len(tries), upkeep.is_open) == (1, False)
    monkeypatch.setattr(indexes, "_RETRY_S", 0.0)
    upkeep._next_try = 0.0
    upkeep.load()
    upkeep.load()
    assert len(tries) == 3


def test_a_question_waits_only_a_while_for_an_index_that_is_being_loaded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep, may_end, loads = house.open(), threading.Event(), []
    opening = upkeep._opened
    monkeypatch.setattr(upkeep, "_opened", lambda *each: (loads.append(opening(*each)), may_end.wait(60)) and loads[-1])
    for _ in range(2):
        upkeep.load(within_s=0.2)
        assert upkeep.semantic is None
    may_end.set()
    upkeep.load(within_s=60)
    assert upkeep.semantic is not None
    assert len(loads) == 1, "it is loaded once, however many wait"


def test_an_index_that_was_let_go_of_is_opened_for_the_next_question(house: House) -> None:
    assert not house.upkeep.end_worker_if_idle(after_s=60.0)
    assert house.upkeep.end_worker_if_idle(after_s=0.0)
    assert (house.upkeep.is_open, house.upkeep.end_worker_if_idle(after_s=0.0)) == (False, False)
    assert house.upkeep.state()["semantic"]["state"] == "built; opened when it is needed"
    house.upkeep.load()
    assert house.upkeep.is_open
    assert house.missing() == []


def kill(upkeep: Upkeep, number: signal.Signals = signal.SIGKILL) -> None:
    assert upkeep.worker.pid is not None
    os.kill(upkeep.worker.pid, number)


def test_a_worker_killed_while_idle_is_started_by_the_next_question(house: House) -> None:
    house.said.clear()
    kill(house.upkeep)
    while house.upkeep.is_open:
        time.sleep(0.01)
    state = house.upkeep.state()["semantic"]
    assert (state["count"], house.upkeep.semantic, house.upkeep.notes) == (None, None, None)

    house.upkeep.load()

    assert house.upkeep.is_open
    assert (house.missing(), house.said) == ([], [])


def test_a_worker_killed_in_a_question_means_to_try_again(house: House) -> None:
    def allowed(*_: object) -> Collection[int]:
        kill(house.upkeep)
        return ()

    index = house.upkeep.open_semantic()
    assert house.upkeep.prepare_semantic(60.0) is False
    asked = np.asarray(vector("x", Hashed.dims), dtype=np.float32)
    with pytest.raises(Retry, match=r"the semantic index: its process has ended .SIGKILL.*try again") as raised:
        index.query(asked, Filters(role="user"), 3, allowed)
    assert not isinstance(raised.value, IndexBroken)

    assert house.missing() == []


@pytest.mark.parametrize("delay_s", [None, 0.0, 0.02])
def test_messages_wait_until_the_index_has_them_when_its_worker_is_killed(house: House, delay_s: float | None) -> None:
    """Killed before it has read the request (it is stopped first), or somewhere in the work."""
    model = Hashed()
    house.open(model)
    house.archive.enqueue_all("semantic")
    drain, errors = house.upkeep.semantic_drain(), list[BaseException]()
    if delay_s is None:
        kill(house.upkeep, signal.SIGSTOP)

    def step() -> None:
        try:
            drain.step()
        except Retry as error:
            errors.append(error)

    adding = threading.Thread(target=step)
    adding.start()
    while adding.is_alive() and not house.upkeep.worker.is_busy:
        pass
    time.sleep(delay_s or 0.0)
    kill(house.upkeep)
    adding.join()
    while house.upkeep.is_open:  # it may have been killed after its work, and then nobody waits for its end
        time.sleep(0.01)

    if delay_s is None:
        assert [type(error) for error in errors] == [Retry]
    if errors:
        assert house.archive.waiting("semantic") == MESSAGES
    house.drain()
    assert (house.missing(), model.calls) == ([], [])


def test_an_index_whose_worker_crashes_again_and_again_is_rebuilt(house: House) -> None:
    for _ in range(indexes._CRASHES):
        house.upkeep.open_semantic()
        assert house.archive.waiting("semantic") == 0
        kill(house.upkeep, signal.SIGSEGV)
        while house.upkeep.is_open:
            time.sleep(0.01)
    house.upkeep.open_semantic()
    assert any("its process has crashed 3 times; parked" in said for said in house.said)
    house.drain()
    assert house.missing() == []


class Unloadable:
    def __init__(self) -> None:
        raise ModuleNotFoundError("No module named 'onnxruntime'")


def test_an_index_is_not_rebuilt_because_a_library_beside_it_cannot_be_loaded(house: House) -> None:
    for _ in range(indexes._CRASHES + 1):
        house.upkeep.open_semantic()
        with pytest.raises(Retry, match="onnxruntime"):
            house.upkeep.worker.create(Unloadable)
        while house.upkeep.is_open:
            time.sleep(0.01)
    house.upkeep.open_semantic()
    assert not any("parked" in said for said in house.said)
    assert house.missing() == []


def test_an_index_is_not_opened_before_another_worker_has_closed_it(house: House, worker: Worker) -> None:
    """As after its parent was killed."""
    place = house.root / "index" / "semantic"
    house.upkeep.close()
    other = WorkerIndex(worker, place, "another", Hashed.dims)
    threading.Timer(1.0, other.close).start()
    house.open()
    house.upkeep.open_semantic()
    assert not other.is_alive
    assert house.missing() == []


@pytest.mark.usefixtures("worker_of_its_own")
def test_an_index_is_not_rebuilt_because_python_does_not_start(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = house.open()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(Retry, match="exit status 1"):
            upkeep.open_semantic()
    assert upkeep.state()["semantic"]["state"].startswith("waiting: ")
    assert (house.missing(), house.said) == ([], ["embedder: chosen"])


def test_closing_does_not_wait_for_an_index_that_is_being_opened(house: House) -> None:
    """Here the check of the index hangs, and so does its process, which has to be killed."""
    upkeep = house.open()
    upkeep.worker.create(Hashed)
    kill(upkeep, signal.SIGSTOP)
    opening = threading.Thread(target=upkeep.load)
    opening.start()
    while not upkeep.worker.is_busy:
        time.sleep(0.01)
    begun = time.monotonic()
    upkeep.close()
    assert time.monotonic() - begun < _LEAST_S / 2
    opening.join()
    house.open()
    assert (house.missing(), house.said) == ([], ["embedder: chosen"])
