"""The watchdog's ping is earned: a loop that promised a sign and did not give it is not alive."""

from __future__ import annotations

from daemon.app.heartbeat import Heartbeat


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_loop_that_hangs_is_not_alive() -> None:
    clock = Clock()
    beat = Heartbeat("intake", clock)
    beat.busy(120)
    clock.now += 120
    assert beat.is_alive
    clock.now += 0.1
    assert not beat.is_alive


def test_each_sign_buys_new_time() -> None:
    clock = Clock()
    beat = Heartbeat("intake", clock)
    for _ in range(10):
        beat.busy(120)
        clock.now += 100
        assert beat.is_alive


def test_a_loop_that_asked_for_longer_is_given_it() -> None:
    clock = Clock()
    beat = Heartbeat("embed", clock)
    beat.busy(900)
    clock.now += 600
    assert beat.is_alive


def test_idle_is_healthy_however_long_it_lasts() -> None:
    clock = Clock()
    beat = Heartbeat("jobs", clock)
    assert beat.is_alive
    beat.busy(1)
    beat.idle()
    clock.now += 1e9
    assert beat.is_alive
