"""When so many runs have crashed that the next one is in safe mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.app.crashes import MAX_CRASHES, WINDOW_S, Crashes


class Clock:
    now = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def crashes(tmp_path: Path, clock: Clock) -> Crashes:
    return Crashes(tmp_path, clock)


def begun(crashes: Crashes, clock: Clock, *, times: int, every_s: float) -> list[int]:
    """How many crashes each of so many runs is given, of which none ends."""
    counts = []
    for _ in range(times):
        counts.append(len(crashes.begin()))
        clock.now += every_s
    return counts


def test_the_run_after_several_crashes_gets_them(crashes: Crashes, clock: Clock) -> None:
    assert begun(crashes, clock, times=MAX_CRASHES + 3, every_s=5) == [0] * MAX_CRASHES + [MAX_CRASHES] * 3


def test_crashes_that_are_far_apart_are_not_too_many(crashes: Crashes, clock: Clock) -> None:
    assert not any(begun(crashes, clock, times=3 * MAX_CRASHES, every_s=WINDOW_S / (MAX_CRASHES - 1) + 1))


def test_crashes_that_just_fit_are_too_many(crashes: Crashes, clock: Clock) -> None:
    assert begun(crashes, clock, times=MAX_CRASHES + 1, every_s=WINDOW_S / (MAX_CRASHES - 1) - 1)[-1] == MAX_CRASHES


def test_a_run_that_ended_as_told_lets_earlier_crashes_count_no_more(crashes: Crashes, clock: Clock) -> None:
    begun(crashes, clock, times=MAX_CRASHES, every_s=1)
    crashes.end()
    assert not any(begun(crashes, clock, times=MAX_CRASHES, every_s=1))


def test_a_clock_that_went_back_makes_no_crashes_of_the_future(crashes: Crashes, clock: Clock) -> None:
    begun(crashes, clock, times=MAX_CRASHES, every_s=1)
    clock.now -= 86_400
    assert not any(begun(crashes, clock, times=MAX_CRASHES - 1, every_s=1))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"running":1}', b"\xff\0"])
def test_a_damaged_count_begins_anew(tmp_path: Path, clock: Clock, content: bytes) -> None:
    (tmp_path / "crashes.json").write_bytes(content)
    assert begun(Crashes(tmp_path, clock), clock, times=MAX_CRASHES + 1, every_s=1) == [0] * MAX_CRASHES + [MAX_CRASHES]


def test_where_nothing_can_be_written_the_service_runs_all_the_same(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "crashes.json").mkdir()
    crashes = Crashes(tmp_path, clock)
    assert begun(crashes, clock, times=MAX_CRASHES + 1, every_s=1) == [0] * (MAX_CRASHES + 1)
    crashes.end()
