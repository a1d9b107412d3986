"""A pause stops all work but archiving, holds over restarts, and ends at its time or when it is resumed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from daemon import config
from daemon.app import loops
from daemon.app.calls.pausing import Pausing, end_of_pause
from daemon.app.engine import Engine
from daemon.app.loops import Loop
from daemon.archive import Archive
from daemon.cli import main
from daemon.cli.subcommands import status
from daemon.control import answers, calls
from daemon.errors import BadRequest
from tests.support.processes.daemon_process import until as eventually

NOW = 1_795_262_400_000  # 2026-11-21T12:00:00Z


class Clock:
    def __init__(self) -> None:
        self.ms = NOW

    def __call__(self) -> float:
        return self.ms / 1000


def engine_at(root: Path) -> Engine:
    tables = {
        "opencode": {"data_dir": str(root / "opencode")},
        "archive": {"dir": str(root / "archive")},
        "output": {"dir": str(root / "out")},
        "chat": {"provider": "none"},
    }
    return Engine(msgspec.convert(tables, config.Config))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with engine_at(tmp_path) as opened:
        yield opened


def test_a_pause_holds_over_a_restart(tmp_path: Path) -> None:
    clock = Clock()
    with Archive(tmp_path / "archive") as archive:
        Pausing(archive, clock).begin(None)
    with Archive(tmp_path / "archive") as archive:
        assert Pausing(archive, clock).state() == answers.Pause(NOW, None)


def test_a_pause_ends_at_its_time(tmp_path: Path) -> None:
    clock = Clock()
    with Archive(tmp_path / "archive") as archive:
        pausing = Pausing(archive, clock)
        pausing.begin(NOW + 60_000)
        assert pausing.left_s() == 60.0
        clock.ms += 60_000
        assert (pausing.left_s(), pausing.state()) == (0.0, None)


@pytest.mark.parametrize(
    "text",
    ["no JSON", "[]", "{}", '{"since": 1}', '{"since": "1", "until": null}', '{"since": 1, "until": "soon"}',
     '{"since": true, "until": null}', '{"since": 1, "until": ' + "9" * 400 + "}", "[" * 100_000],
)  # fmt: skip
def test_a_damaged_note_is_no_pause_and_is_logged_once(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Archive(tmp_path / "archive") as archive:
        archive.set_note("pause", text)
        with caplog.at_level(logging.WARNING):
            pausing = Pausing(archive, Clock())
            assert (pausing.state(), pausing.left_s()) == (None, 0.0)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        pausing.begin(None)
        assert Pausing(archive, Clock()).state() == answers.Pause(NOW, None)


def test_a_new_end_keeps_the_beginning_of_a_pause_that_is_on(tmp_path: Path) -> None:
    clock = Clock()
    with Archive(tmp_path / "archive") as archive:
        pausing = Pausing(archive, clock)
        pausing.begin(NOW + 60_000)
        clock.ms += 30_000
        pausing.begin(None)
        assert pausing.state() == answers.Pause(NOW, None)
        pausing.begin(NOW + 40_000)
        clock.ms += 30_000  # it is over, so another one begins anew
        pausing.begin(None)
        assert pausing.state() == answers.Pause(clock.ms, None)


def test_the_call_pauses_and_resumes_and_status_says_so(engine: Engine) -> None:
    resumed = []
    engine.on_resumed = lambda: resumed.append(True)
    paused = engine.call(calls.Pause())
    assert paused.since
    assert paused.until is None
    assert engine.call(calls.Status()).pause == paused
    assert engine.call(calls.Pause(resume=True)) == answers.Pause()
    assert engine.call(calls.Status()).pause is None
    assert resumed == [True]


@pytest.mark.parametrize(
    ("text", "until"),
    [("", None), ("2h", NOW + 7_200_000), ("90 min", NOW + 5_400_000), ("2026-11-21T12:30:00Z", NOW + 1_800_000)],
)
def test_the_end_is_a_while_or_a_time(text: str, until: int | None) -> None:
    assert end_of_pause(text, NOW) == until


@pytest.mark.parametrize("text", ["2026-11-21T11:00:00Z", "yesterday", "soon", "0h"])
def test_an_end_that_is_not_in_the_future_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="until"):
        end_of_pause(text, NOW)


def test_resume_with_an_end_is_refused(engine: Engine) -> None:
    with pytest.raises(BadRequest, match="exclude each other"):
        engine.call(calls.Pause(until="2h", resume=True))


class Counting(Loop):
    """Counts its turns; `stops` says whether a pause stops it."""

    def __init__(self, engine: Engine, *, stops: bool) -> None:
        super().__init__("counting", engine, lambda error: pytest.fail(str(error)))
        self.stops_in_pause = stops
        self.turns = 0

    def turn(self) -> float:
        self.turns += 1
        return 0.01

    def failed(self, error: Exception) -> None:
        pytest.fail(str(error))


def test_a_pause_stops_loops_that_it_concerns_and_no_others(engine: Engine) -> None:
    engine.call(calls.Pause())
    paused, archiving = Counting(engine, stops=True), Counting(engine, stops=False)
    for loop in (paused, archiving):
        loop.start()
    try:
        eventually(lambda: archiving.turns > 3)
        assert paused.turns == 0
        assert paused.heartbeat.is_alive
        engine.on_resumed = paused.wake
        engine.call(calls.Pause(resume=True))
        eventually(lambda: paused.turns > 0)
    finally:
        for loop in (paused, archiving):
            loop.stop()
            assert loop.join(5)


class Resting(Counting):
    """Counts the calls of `at_pause`, the first of which fails."""

    rests = 0

    def at_pause(self) -> None:
        self.rests += 1
        if self.rests == 1:
            raise ValueError

    def failed(self, error: Exception) -> None:
        assert isinstance(error, ValueError)


def test_a_paused_loop_goes_on_after_a_failure(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_PAUSE_S", 0.01)
    monkeypatch.setattr(loops, "_BACKOFF_S", (0.01,))
    engine.call(calls.Pause())
    loop = Resting(engine, stops=True)
    loop.start()
    eventually(lambda: loop.rests > 2)
    loop.stop()
    assert loop.join(5)
    assert loop.turns == 0


def test_a_stop_ends_a_loop_that_is_paused(engine: Engine) -> None:
    engine.call(calls.Pause())
    loop = Counting(engine, stops=True)
    loop.start()
    ended = threading.Thread(target=loop.stop)
    ended.start()
    begun = time.monotonic()
    assert loop.join(10)
    assert time.monotonic() - begun < 10
    ended.join()


def test_the_status_names_the_pause_and_how_to_end_it() -> None:
    lines = list(status._paused(answers.Status(pause=answers.Pause(NOW, None))))
    assert "until it is resumed" in lines[0]
    assert "reconstitute pause --resume" in lines[1]
    assert list(status._paused(answers.Status())) == []


def test_the_command_pauses_the_archive_without_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("RECONSTITUTE_ARCHIVE_DIR", str(tmp_path / "archive"))
    monkeypatch.setenv("RECONSTITUTE_OPENCODE_DIR", str(tmp_path / "opencode"))
    assert main(["pause", "--until", "2h"]) == 0
    assert "Paused until" in capsys.readouterr().out
    assert main(["pause", "--json"]) == 0
    assert '"until": null' in capsys.readouterr().out
    assert main(["pause", "--resume"]) == 0
    assert capsys.readouterr().out == "The work goes on.\n"
    assert main(["pause", "--resume", "--until", "2h"]) == 64
