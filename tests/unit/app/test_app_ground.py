"""Pages that were made before something had come are made again when it has: one test for each thing that may come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.app import jobs as jobs_module
from daemon.app.targets import MEANINGS
from daemon.embed.builtin import WorkerEmbedder
from daemon.errors import IndexBroken, ModelUnavailable, SourceBusy
from daemon.model import Target
from tests.e2e.talk import PROJECT, Talk
from tests.support.stores.make_opencode import JsonStore
from tests.unit.app.test_app_jobs import Jobs

MOVED = "/home/dev/old-garden"


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Jobs]]:
    """Job loops over the same archive; targets run as soon as they are due."""
    for name in ("_SETTLE_S", "_AGAIN_S", "_AGAIN_SHARE"):
        monkeypatch.setattr(jobs_module, name, 0.0)
    talk = Talk(JsonStore(tmp_path / "opencode"))
    talk.ask("The purpose of this project is to grow tomatoes, because the old beds were too wet.")
    talk.write(f"{PROJECT}/notes.md", "Notes\n")
    talk.write(f"{MOVED}/plan.md", "Plan\n")
    made: list[Jobs] = []

    def jobs(**more: Any) -> Jobs:
        made.append(Jobs(tmp_path, [{"path": PROJECT, **more}]))
        made[-1].engine.scan(everything=True, patient=False)
        made[-1].engine.on_scanned = made[-1].loop.on_scan
        return made[-1]

    yield jobs
    for each in made:
        each.close()


@pytest.fixture
def house(make: Callable[..., Jobs]) -> Jobs:
    """Everything has come but what is to be embedded."""
    return make()


def embed(house: Jobs) -> None:
    """All that waits, as the daemon's loop does."""
    while house.engine.waits_for_meaning or not house.engine.upkeep.is_open:
        house.engine.drain_semantic()


def run(house: Jobs) -> None:
    """One run now."""
    house.loop.enqueue(PROJECT)
    assert runs(house) == 1


def runs(house: Jobs) -> int:
    """How often the target runs until there is nothing to do."""
    before, number = house.last(PROJECT), 0
    for _ in range(6):
        house.loop.turn()
        now = house.last(PROJECT)
        number += now != before
        before = now
        time.sleep(0.002)  # the record of a run is dated in milliseconds
    return number


def assert_best(house: Jobs, tmp_path: Path) -> None:
    """The pages are those that are made now, and no further run is due."""
    assert runs(house) == 0
    fresh = Target(PROJECT, refresh="continuous", output=str(tmp_path / "fresh"))
    house.engine.run_target(fresh, lambda _: None)
    kept, new = (
        {path.name: path.read_bytes() for path in (root / PROJECT[1:]).rglob("*.md")}
        for root in (house.engine.config.output_dir, tmp_path / "fresh")
    )
    assert kept == new


def test_meaning(house: Jobs, tmp_path: Path) -> None:
    run(house)
    assert "meaning" in house.last(PROJECT)["ground"]["pending"]
    assert runs(house) == 0  # nothing has come yet
    embed(house)
    assert runs(house) == 1
    assert_best(house, tmp_path)


def test_meaning_of_a_model_that_came_back(house: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: Any) -> None:
        raise ModelUnavailable("nothing answers; start it")

    with monkeypatch.context() as patch:
        patch.setattr(WorkerEmbedder, "embed", down)
        with pytest.raises(ModelUnavailable):
            embed(house)
        run(house)
    embed(house)
    assert runs(house) == 1
    assert_best(house, tmp_path)


def test_meaning_of_an_index_that_is_rebuilt(house: Jobs, tmp_path: Path) -> None:
    embed(house)
    house.engine.upkeep.rebuild_semantic(IndexBroken("torn"))
    run(house)
    embed(house)
    assert runs(house) == 1
    assert_best(house, tmp_path)


def test_words(house: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed(house)
    house.engine.upkeep.rebuild_lexical(IndexBroken("torn"))
    with monkeypatch.context() as patch:
        patch.setattr(house.engine, "drain_lexical", lambda *_, **__: 0)
        run(house)
    house.engine.drain_lexical()
    assert runs(house) == 1
    assert_best(house, tmp_path)


def test_snapshots(house: Jobs, tmp_path: Path) -> None:
    """And long outputs, which are captured in the same way."""
    embed(house)
    spilled = [tmp_path / "opencode" / "tool-output" / f"tool_{number}" for number in range(2)]
    batch = house.engine.archive.batch()
    for path in spilled:
        house.engine.recovery._capture.want_file(batch, str(path), int(time.time() * 1000))
    house.engine.archive.commit(batch)
    run(house)
    assert "snapshots" in house.last(PROJECT)["ground"]["pending"]
    spilled[0].parent.mkdir()
    for path in spilled:  # the first leaves the queue with something in it
        path.write_text("a long output\n")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        house.engine.scan(everything=False)
        assert runs(house) == 1
    assert_best(house, tmp_path)


def test_sources(house: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: Any, **__: Any) -> None:
        raise SourceBusy("the database is locked; it is read later")

    embed(house)
    with monkeypatch.context() as patch:
        patch.setattr(house.engine, "_scan_source", locked)
        run(house)
    house.engine.scan(everything=False)
    assert runs(house) == 1
    assert_best(house, tmp_path)


def test_an_alias(house: Jobs, tmp_path: Path) -> None:
    embed(house)
    run(house)
    house.engine.alias(MOVED, f"{PROJECT}/old")
    assert runs(house) == 1
    assert (house.engine.config.output_dir / PROJECT[1:] / "old" / "plan.md.md").is_file()
    assert_best(house, tmp_path)


def test_what_came_after_a_restart(make: Callable[..., Jobs], tmp_path: Path) -> None:
    """Of a target on a schedule, which no start runs."""
    first = make(refresh="scheduled", schedule="0 3 * * *")
    run(first)
    first.close()
    again = make(refresh="scheduled", schedule="0 3 * * *")
    embed(again)
    assert runs(again) == 1
    assert_best(again, tmp_path)


def test_a_configuration_that_has_changed(make: Callable[..., Jobs], tmp_path: Path) -> None:
    """Of a target on a schedule, too: its new question is not left for the next time."""
    first = make(refresh="scheduled", schedule="0 3 * * *")
    embed(first)
    run(first)
    assert runs(first) == 0
    first.close()
    again = make(refresh="scheduled", schedule="0 3 * * *", questions=["Why tomatoes?"])
    embed(again)
    assert runs(again) == 1
    assert "Why tomatoes?" in (again.engine.config.output_dir / PROJECT[1:] / "README.md").read_text()
    assert runs(again) == 0


def test_a_request_for_once_says_what_it_was_made_without(house: Jobs) -> None:
    asking = Target(PROJECT, questions=("Why tomatoes?",))
    made = house.engine.run_target(asking, lambda _: None)
    assert any("made without messages that are not indexed by meaning yet" in text for text in made["warnings"])
    embed(house)
    assert house.engine.run_target(asking, lambda _: None)["warnings"] == []


def test_pages_of_facts_alone_are_whole_without_meaning(house: Jobs) -> None:
    assert house.engine.run_target(Target(PROJECT), lambda _: None)["warnings"] == []


def test_everything_that_may_be_pending_has_its_test() -> None:
    assert all(f"test_{what}" in globals() for what in MEANINGS)
