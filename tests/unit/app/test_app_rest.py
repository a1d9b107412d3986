"""How long loops rest: longer and longer where file events tell of every change, half a second where they do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app.engine import Engine
from daemon.app.jobs import JobLoop
from daemon.app.loops import IntakeLoop
from daemon.requests import Requests
from tests.support.stores.make_opencode import JsonStore, session, text, user
from tests.unit.ingest.test_ingest_upkeep import Hashed


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    store = JsonStore(tmp_path / "oc")
    store.session(session("ses_a"))
    store.message(user("msg_a", "ses_a"), text("prt_a", "msg_a", "ses_a", "hello"))
    tables = {
        "opencode": {"data_dir": str(tmp_path / "oc")},
        "archive": {"dir": str(tmp_path / "a")},
        "watch": {"quiet_seconds": 0},
    }
    with Engine(msgspec.convert(tables, config.Config), embedder=lambda: (Hashed(), "a test")) as made:
        yield made


def unexpected(error: BaseException) -> None:
    raise error


def test_looks_become_rarer_while_events_tell_of_everything(engine: Engine) -> None:
    loop = IntakeLoop(engine, unexpected)
    loop.sees_all = lambda: True
    rests = [loop.turn() for _ in range(9)]
    assert rests[0] == 0.55  # a commit may be seen a moment after its last write
    assert rests[1:5] == [1.1, 2.2, 4.4, 8.8]
    assert rests[-1] == 30.0


def test_a_hint_makes_looks_frequent_again(engine: Engine) -> None:
    loop = IntakeLoop(engine, unexpected)
    loop.sees_all = lambda: True
    for _ in range(5):
        loop.turn()
    loop._woken = True
    assert loop.turn() == 0.55


@pytest.mark.parametrize("trouble", ["events", "unread", "capturing"])
def test_looks_stay_frequent_where_events_do_not_tell_of_everything(
    engine: Engine, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = IntakeLoop(engine, unexpected)
    loop.sees_all = lambda: trouble != "events"
    loop.turn()
    if trouble == "unread":
        engine._doubted.add("a source that is gone")
    if trouble == "capturing":
        monkeypatch.setattr(engine, "_capture", lambda *_, **__: setattr(engine, "_is_capturing", True))
    assert [loop.turn() for _ in range(3)] == [0.55] * 3


def test_without_targets_requests_are_looked_for_when_events_tell_of_them(engine: Engine, tmp_path: Path) -> None:
    requests = Requests(tmp_path / "requests")
    intake = IntakeLoop(engine, unexpected)
    intake.first_scan_done.set()
    jobs = JobLoop(engine, requests, intake.first_scan_done, unexpected)
    assert jobs.turn() == 0.3
    jobs.sees_all = lambda: True
    assert jobs.turn() == 30.0
    (tmp_path / "requests" / "new.txt").write_text("/somewhere\n")
    assert jobs.turn() == 0.3  # it may still be written to
    (tmp_path / "requests" / "new.txt").unlink()
    jobs.enqueue("/somewhere", 5.0)
    assert 4.0 < jobs.turn() <= 5.0
    requests.close()
