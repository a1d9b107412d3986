"""The watchdog is fed only while work is possible, and a daemon that cannot be built leaves the archive free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from daemon import config
from daemon.app.beat import Beat
from daemon.app.service import Daemon
from daemon.archive import Archive
from daemon.errors import ArchiveCorrupt, ConfigError, OutputRefused


def configuration(root: Path, **more: Any) -> config.Config:
    tables = {
        "opencode": {"data_dir": str(root / "opencode")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "out")},
        "embedding": {"provider": "builtin"},
    }
    return msgspec.convert(tables | more, config.Config)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(configuration(tmp_path))
    yield made
    made._requests.close()
    made._engine.close()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("name", ["_intake", "_embed", "_jobs"])
def test_one_hung_loop_is_enough_to_stop_the_pings(daemon: Daemon, name: str) -> None:
    clock = Clock()
    loop = getattr(daemon, name)
    loop.beat = Beat(loop.beat.name, clock)
    loop.sign()
    clock.now += 60
    assert daemon._is_able()
    clock.now += 3600
    assert not daemon._is_able()
    loop.beat.idle()
    assert daemon._is_able()


def test_a_model_call_may_take_longer_than_a_scan(daemon: Daemon) -> None:
    clock = Clock()
    for loop, minutes in ((daemon._intake, 1.9), (daemon._embed, 14), (daemon._jobs, 14)):
        loop.beat = Beat(loop.beat.name, clock)
        loop.sign()
        clock.now += minutes * 60
        assert loop.beat.is_alive, loop.beat.name
        loop.beat.idle()


def test_an_archive_that_does_not_answer_stops_the_pings(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_message_id: str) -> None:
        raise ArchiveCorrupt("the archive failed a check")

    monkeypatch.setattr(daemon._engine.archive, "state", broken)
    assert not daemon._is_able()
    assert daemon._engine.errors[-1]["where"] == "archive"


def test_a_corrupt_archive_ends_the_daemon_with_its_own_exit_code(daemon: Daemon) -> None:
    daemon._fatal(ArchiveCorrupt("the archive failed a check"))
    assert daemon._code == ArchiveCorrupt.exit_code


def test_a_wrong_schedule_is_found_before_the_archive_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"targets\[0\]\.schedule"):
        Daemon(configuration(tmp_path, targets=[{"path": "/home/dev", "schedule": "61 * * * *"}]))
    assert not (tmp_path / "archive").exists()


def test_a_daemon_that_cannot_be_built_leaves_the_archive_free(tmp_path: Path) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    with pytest.raises(OutputRefused, match=str(occupied)):
        Daemon(configuration(tmp_path, watch={"requests_dir": str(occupied)}))
    with Archive(tmp_path / "archive") as archive:
        assert archive.figures()["messages"] == 0
