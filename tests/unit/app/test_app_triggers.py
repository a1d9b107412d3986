"""What makes a target that is kept up to date run again, besides new messages: one test for each thing that may change."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.app import jobs as jobs_module
from daemon.publish.edits import CLOSE
from tests.e2e.talk import Talk
from tests.support.stores.make_opencode import JsonStore, session
from tests.unit.app.test_app_jobs import Jobs

ELSEWHERE = "/home/dev/elsewhere"
SLACK_S = 0.02
"""The slack for stamps that may not tell, longer than a clock tick of the kernel."""


class House:
    """A settled target on a disk of its own, whose session lies elsewhere and only touched it."""

    def __init__(self, root: Path, store: JsonStore, talk: Talk) -> None:
        self.store, self.talk = store, talk
        self.project = root / "work" / "garden"
        self.jobs: Jobs
        self.pages = root / "out" / str(self.project)[1:]

    def settle(self) -> None:
        """Nothing is due any more; the looks at the disk have seen what the last run left."""
        for _ in range(3):
            self.runs()
        assert self.runs() == 0

    def runs(self) -> int:
        """How often the target runs until there is nothing to do, after a look at the source."""
        time.sleep(2 * SLACK_S)  # what is so new that its stamp may not tell is looked at twice
        self.jobs.engine.scan(everything=True, patient=False)
        number = 0
        for _ in range(4):
            before = self.jobs.last(str(self.project))
            time.sleep(0.002)  # the record of a run is dated in milliseconds
            self.jobs.loop.turn()
            number += self.jobs.last(str(self.project)) != before
        return number

    @property
    def readme(self) -> Path:
        return self.pages / "README.md"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    for name in ("_SETTLE_S", "_AGAIN_S", "_AGAIN_SHARE", "_GLANCE_S", "_GLANCE_SHARE"):
        monkeypatch.setattr(jobs_module, name, 0.0)
    for module in ("daemon.publish.edits", "daemon.reconstitute.output"):
        monkeypatch.setattr(f"{module}.SLACK_NS", round(SLACK_S * 1e9))
    store = JsonStore(tmp_path / "opencode")
    made = House(tmp_path, store, Talk(store, directory=ELSEWHERE))
    made.talk.ask("Grow tomatoes.")
    made.talk.write(f"{made.project}/notes.txt", "Notes\n")
    made.jobs = Jobs(tmp_path, [{"path": str(made.project)}])
    engine = made.jobs.engine
    engine.on_scanned = made.jobs.loop.on_scan
    engine.scan(everything=True, patient=False)
    while engine.archive.waiting("semantic") or engine.upkeep.semantic is None:
        engine.drain_semantic()
    made.settle()
    yield made
    made.jobs.close()


def write_session(house: House, title: str = "Garden", **more: Any) -> None:
    house.store.session(session("ses_a", ELSEWHERE, title, **more))


def write_todos(house: House) -> None:
    house.store.raw("todo/ses_a.json", '[{"id": "1", "content": "Water", "status": "pending", "priority": "high"}]')


def revert(house: House) -> None:
    write_session(house, revert={"messageID": "msg_a00002"})


def delete_session(house: House) -> None:
    (house.store.storage / "session" / "pid" / "ses_a.json").unlink()
    shutil.rmtree(house.store.storage / "message")
    shutil.rmtree(house.store.storage / "part")


def on_disk(house: House, text: str) -> None:
    house.project.mkdir(parents=True, exist_ok=True)
    (house.project / "notes.txt").write_text(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda house: write_session(house, "Tomatoes"),
        write_todos,
        revert,
        delete_session,
        lambda house: on_disk(house, "Notes\n"),
        lambda house: on_disk(house, "Other\n"),
        lambda house: house.readme.write_text("mine\n"),
        lambda house: house.readme.unlink(),
        lambda house: (house.jobs.engine.config.output_dir / "README.md").write_text("mine\n"),
    ],
    ids=["rename", "todos", "revert", "delete", "file back", "other file", "edit", "page deleted", "root edited"],
)
def test_a_change_without_a_new_message_makes_one_run(house: House, change: Callable[[House], Any]) -> None:
    change(house)
    assert house.runs() == 1
    assert house.runs() == 0


def test_a_file_that_goes_again_and_one_that_is_mended_are_seen(house: House) -> None:
    on_disk(house, "Other\n")
    house.settle()
    on_disk(house, "Notes\n")
    assert house.runs() == 1
    house.settle()
    (house.project / "notes.txt").unlink()
    assert house.runs() == 1


def test_a_file_that_differs_and_goes_on_changing_is_no_news(house: House) -> None:
    on_disk(house, "a line of a log\n")
    house.settle()
    for number in range(3):
        on_disk(house, "a line of a log\n" * (number + 2))
        assert house.runs() == 0


def test_a_page_whose_folder_has_gone_is_looked_at_once(house: House) -> None:
    house.talk.write(f"{house.project}/src/a.txt", "A\n")
    house.settle()
    shutil.rmtree(house.pages / "src")
    (house.pages / "src").write_text("mine\n")
    house.settle()
    assert (house.pages / "src").read_text() == "mine\n"


def test_notes_are_no_news(house: House) -> None:
    house.readme.write_bytes(house.readme.read_bytes().replace(CLOSE, b"mine\n" + CLOSE))
    assert house.runs() == 0


def test_an_edit_that_is_undone_brings_the_page_up_to_date_again(house: House) -> None:
    before = house.readme.read_bytes()
    house.readme.write_text("mine\n")
    assert house.runs() == 1
    assert (house.pages / "README.current.md").is_file()
    house.settle()
    house.readme.write_bytes(before)
    assert house.runs() == 1
    assert not (house.pages / "README.current.md").exists()
    assert house.readme.read_bytes() == before
