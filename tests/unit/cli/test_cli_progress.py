"""Progress where there is no terminal, and the time that is left."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from daemon.cli import progress


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("time.monotonic", made)
    return made


def lines_of(
    clock: Clock, events: list[tuple[float, str, int, int | None]], capsys: pytest.CaptureFixture
) -> list[str]:
    with progress.display() as step:
        for seconds, phase, done, total in events:
            clock.now = 100.0 + seconds
            step({"phase": phase, "done": done, "total": total})
    out, err = capsys.readouterr()
    assert out == ""
    return [line.removeprefix("reconstitute: ") for line in err.splitlines()]


def test_without_a_terminal_a_line_is_printed_every_ten_seconds(clock: Clock, capsys: pytest.CaptureFixture) -> None:
    events = [(n * 0.5, "embedding", n, 1200) for n in range(60)]
    assert lines_of(clock, events, capsys) == [
        "messages searchable by meaning: 20 of 1,200, about 10 min left",
        "messages searchable by meaning: 40 of 1,200, about 10 min left",
    ]


def test_a_quick_command_prints_nothing(clock: Clock, capsys: pytest.CaptureFixture) -> None:
    assert lines_of(clock, [(n, "export", n, 9) for n in range(10)], capsys) == []


@pytest.mark.parametrize(
    ("phase", "done", "total", "text"),
    [
        ("reading JSON files", 3, 7, "sessions read: 3 of 7"),
        ("indexing words", 1200, None, "messages searchable by words: 1,200"),
        ("collect", 0, None, "collecting what is recorded"),
        ("a newer phase", 2, 4, "a newer phase: 2 of 4"),
    ],
)
def test_phases_have_words_that_users_know(phase: str, done: int, total: int | None, text: str) -> None:
    assert progress._Phase(phase).text(done, total) == text


def test_no_time_is_told_where_none_can_be_known(clock: Clock) -> None:
    phase = progress._Phase("reading one")
    assert phase.text(5, 100) == "sessions read: 5 of 100"
    clock.now += 60
    assert phase.text(5, 100) == "sessions read: 5 of 100"
    assert phase.text(25, 100) == "sessions read: 25 of 100, about 4 min left"
    assert phase.text(100, 100) == "sessions read: 100 of 100"
    assert phase.text(1, 50) == "sessions read: 1 of 50"  # the next source


def test_a_note_has_a_line_of_its_own(capsys: pytest.CaptureFixture) -> None:
    with progress.display() as step:
        step({"phase": "ask the model", "done": 0, "total": None, "note": "a model is asked"})
    assert capsys.readouterr().err == "reconstitute: a model is asked\n"
