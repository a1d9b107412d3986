"""The engine keeps itself in order: what a search finds broken is mended without waiting for the next message."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.app.indexing import SEVERAL_FAILURES
from daemon.errors import IndexBroken
from daemon.ingest import indexes
from tests.support.servers.plain_service import PlainService
from tests.support.stores.make_opencode import JsonStore, session, text, user
from tests.unit.ingest.test_ingest_upkeep import Hashed


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    made = JsonStore(tmp_path / "oc")
    for number in range(30):
        made.session(session(f"ses_{number:02}"))
        message = user(f"msg_{number:02}", f"ses_{number:02}")
        made.message(
            message,
            text(f"prt_{number:02}", f"msg_{number:02}", f"ses_{number:02}", f"apples number {number} token{number}x"),
        )
    return made


@pytest.fixture
def engine(store: JsonStore, tmp_path: Path) -> Iterator[PlainService]:
    tables = {"opencode": {"data_dir": str(store.storage.parent)}, "archive": {"dir": str(tmp_path / "a")}}
    model = Hashed()
    with PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (model, "a test"))) as opened:
        opened.index(wait=True)
        yield opened


def semantic_hits(engine: PlainService) -> int:
    return len(engine.recall("recall", {"query": "apples", "match": "semantic", "results": 50})["results"])


def test_a_semantic_index_found_broken_by_a_search_is_rebuilt(engine: PlainService) -> None:
    assert semantic_hits(engine) == 30
    index = engine.upkeep.semantic
    assert index is not None
    index._remote.call("close")  # as Chroma does not answer any more
    answer = engine.recall("recall", {"query": "apples"})
    assert any("meaning was not searched" in warning for warning in answer["warnings"])
    engine.drain_semantic()
    while engine.archive.waiting("semantic"):
        engine.drain_semantic()
    assert semantic_hits(engine) == 30


def test_a_word_index_that_cannot_be_parked_for_long_is_built_once_it_can(
    engine: PlainService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the disk refuses meanwhile, each turn tries it again."""
    engine.index()
    engine.upkeep.lexical.close()
    engine.archive.enqueue_all("lexical")
    with monkeypatch.context() as refusing:
        refusing.setattr(indexes, "park", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        for _ in range(2 * SEVERAL_FAILURES):
            with pytest.raises(OSError, match="Input/output"):
                engine.drain_lexical()
        assert engine.upkeep.state()["lexical"]["state"].startswith("rebuilding: ")
    with pytest.raises(IndexBroken):  # after so many failures the loop waits before the new index is tried
        engine.drain_lexical()
    assert engine.drain_lexical() == engine.archive.message_count()
    assert engine.upkeep.state()["lexical"]["state"] == "ready"


def test_index_fills_an_index_that_was_deleted_while_nothing_waited(engine: PlainService, tmp_path: Path) -> None:
    engine.close()
    shutil.rmtree(tmp_path / "a" / "index" / "semantic")
    model = Hashed()
    with PlainService(Engine(engine.config, embedder=lambda: (model, "a test"))) as again:
        found_missing = again.index()
        assert (found_missing["waiting"], again.upkeep.semantic) == (30, None)
        result = again.index(wait=True)
        assert (result["waiting"], result["embedded"], model.calls) == (0, 0, [])
        assert semantic_hits(again) == 30


def test_index_ends_when_the_words_are_indexed(store: JsonStore, tmp_path: Path) -> None:
    """No model is chosen or loaded for it, and the messages that are not embedded are counted."""
    chosen: list[Hashed] = []

    def choose() -> tuple[Hashed, str]:
        chosen.append(Hashed())
        return chosen[-1], "a test"

    tables = {"opencode": {"data_dir": str(store.storage.parent)}, "archive": {"dir": str(tmp_path / "c")}}
    with PlainService(Engine(msgspec.convert(tables, config.Config), embedder=choose)) as engine:
        result = engine.index()
        assert (result["embedded"], result["waiting"], result["running"]) == (0, 30, False)
        assert chosen == []
        found = engine.recall("recall", {"query": "token29x", "match": "literal"})["results"]
        assert [hit["messageID"] for hit in found] == ["msg_29"]


def test_a_message_written_during_a_long_scan_does_not_wait_for_its_end(store: JsonStore, tmp_path: Path) -> None:
    """The scan is made long by a slow listener; the new message belongs to a session that was passed already."""
    tables = {"opencode": {"data_dir": str(store.storage.parent)}, "archive": {"dir": str(tmp_path / "b")}}
    seen: list[bool] = []
    with PlainService(Engine(msgspec.convert(tables, config.Config), embedder=lambda: (Hashed(), "a test"))) as engine:

        def listen(event: dict[str, object]) -> None:
            done = event["done"]
            if not str(event["phase"]).startswith("reading") or not isinstance(done, int):
                return
            time.sleep(0.06)
            if done == 5:
                store.message(user("msg_new", "ses_00"), text("prt_new", "msg_new", "ses_00", "late zebra"))
                for source in engine.sources.current():
                    source.hint(str(store.storage / "message" / "ses_00" / "msg_new.json"))
            if done == 29:
                seen.append(bool(engine.recall("recall", {"query": "zebra", "match": "literal"})["results"]))

        engine.scan(everything=True, progress=listen)
        assert seen == [True]


def test_every_scan_tells_continuous_targets_which_places_changed(store: JsonStore, engine: PlainService) -> None:
    heard: list[set[str]] = []
    engine.on_scanned = lambda taken: heard.append(taken.places)
    store.message(user("msg_more", "ses_00"), text("prt_more", "msg_more", "ses_00", "more"))
    for source in engine.sources.current():
        source.hint(str(store.storage / "message" / "ses_00" / "msg_more.json"))
    engine.scan(everything=False, patient=False)
    assert "/home/dev/p" in set().union(*heard)
