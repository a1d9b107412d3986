"""Calendar times and intervals: what cron means, once however long the machine slept, and under any clock (J1)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import apscheduler.schedulers.base
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.errors import ConfigError
from daemon.schedule import Scheduler, due_since, parse
from tests.support.examples import examples

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: tzinfo = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def times(cron: str, start: datetime, count: int) -> list[str]:
    trigger, previous, now, found = parse(cron, zone=start.tzinfo), None, start, list[str]()
    for _ in range(count):
        previous = trigger.get_next_fire_time(previous, now)
        assert previous is not None
        now = previous
        found.append(previous.astimezone(UTC).isoformat()[:16])
    return found


class Clock:
    """The wall clock of a test: runs with the real one, and can be set."""

    def __init__(self, start: datetime) -> None:
        self._offset = start.timestamp() - time.time()

    def __call__(self) -> float:
        return time.time() + self._offset

    def set(self, moment: datetime) -> None:
        self._offset = moment.timestamp() - time.time()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(at("2026-06-01T12:00"))

    class Clocked(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.fromtimestamp(clock(), tz)

    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Clocked)
    return clock


@pytest.fixture
def scheduler(clock: Clock) -> Iterator[Scheduler]:
    scheduler = Scheduler(clock=clock, zone=BERLIN)
    yield scheduler
    scheduler.stop()


class Calls:
    def __init__(self) -> None:
        self.count = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, timeout=90), f"{self.count} of {count} calls"


def next_ms(scheduler: Scheduler, key: str) -> int | None:
    """When this job is due next; None when there is none, or not before `start`."""
    due = getattr(scheduler._loop.get_job(key), "next_run_time", None)
    return None if due is None else ms(due)


def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(9000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("did not come about within 90 seconds")


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * *", ["2026-06-02T01:00", "2026-06-03T01:00"]),
        ("*/30 * * * *", ["2026-06-01T10:00", "2026-06-01T10:30"]),
        ("@daily", ["2026-06-01T22:00", "2026-06-02T22:00"]),
        ("0 3 * * 0", ["2026-06-07T01:00", "2026-06-14T01:00"]),  # 2026-06-07 is a Sunday
        ("0 3 * * 7", ["2026-06-07T01:00", "2026-06-14T01:00"]),
        ("0 3 * * sun", ["2026-06-07T01:00", "2026-06-14T01:00"]),
        ("0 3 * * 1-2", ["2026-06-02T01:00", "2026-06-08T01:00"]),
        ("0 3 * * 5-7", ["2026-06-05T01:00", "2026-06-06T01:00"]),
        ("0 3 * * SAT-SUN", ["2026-06-06T01:00", "2026-06-07T01:00"]),
        ("0 3 * * */3", ["2026-06-03T01:00", "2026-06-06T01:00"]),  # Sunday, Wednesday, Saturday
        ("0 3 13 * 5", ["2026-06-05T01:00", "2026-06-12T01:00"]),  # the 13th, and every Friday
        ("0 3 2 * 5", ["2026-06-02T01:00", "2026-06-05T01:00"]),
        ("0 3 29 2 *", ["2028-02-29T02:00", "2032-02-29T02:00"]),
    ],
)
def test_cron_lines_mean_what_cron_says(cron: str, expected: list[str]) -> None:
    assert times(cron, at("2026-06-01T12:00"), 2) == expected


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "0 fields"),
        ("daily", "1 fields"),
        ("0 3 * *", "4 fields"),
        ("0 0 3 * * *", "6 fields"),
        ("60 3 * * *", "60"),
        ("0 24 * * *", "24"),
        ("0 3 * * 8", "'8' is no weekday"),
        ("0 3 * * 5-1", "run backwards"),
        ("0 3 * * 1/0", "not cron text"),
        ("0 3 * 13 *", "13"),
        ("0 3 31 2 *", "never comes"),
        ("a b c d e", "not cron text"),
    ],
)
def test_bad_cron_text_is_refused_naming_key_cause_and_fix(cron: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(cron, key="targets[0].schedule")
    assert str(caught.value).startswith("targets[0].schedule: ")
    assert why in str(caught.value)
    assert '"0 3 * * *"' in str(caught.value)


@given(text=st.text(alphabet="0123456789*/-, @amonsu", max_size=20))
@settings(max_examples=examples(60), deadline=None)
def test_any_text_parses_or_is_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        assert parse(text, zone=UTC).get_next_fire_time(None, at("2026-06-01T12:00")) is not None


@pytest.mark.parametrize(
    ("cron", "start", "expected"),
    [
        # The hour from two to three does not exist on this day: the run of 02:30 is not dropped.
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29T01:30", "2026-03-30T00:30", "2026-03-31T00:30"]),
        # The hour from two to three comes twice: the run of 02:30 does not.
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"]),
        # What runs every hour runs in both.
        ("30 * * * *", "2026-10-25T01:45", ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"]),
    ],
)
def test_a_daily_time_comes_once_when_summer_time_begins_and_ends(cron: str, start: str, expected: list[str]) -> None:
    assert times(cron, at(start), 3) == expected


@pytest.mark.parametrize(
    ("last", "now", "due"),
    [
        ("2026-06-01T03:00:05", "2026-06-01T12:00", False),  # ran today
        ("2026-06-01T03:00:05", "2026-06-02T02:59", False),
        ("2026-06-01T03:00:05", "2026-06-02T03:00", True),
        ("2026-06-01T03:00:05", "2026-06-05T12:00", True),  # off for days
        ("2026-06-05T00:00", "2026-06-01T12:00", True),  # the clock was set back
        ("2026-10-25T02:30:05", "2026-10-25T23:00", False),  # the day summer time ends
    ],
)
def test_a_time_missed_while_the_machine_was_off_is_due(last: str, now: str, due: bool) -> None:
    cron = "30 2 * * *" if "10-25" in last else "0 3 * * *"
    assert due_since(cron, ms(at(last)), ms(at(now)), zone=BERLIN) is due


def test_what_never_succeeded_is_due() -> None:
    assert due_since("0 3 * * *", None, ms(at("2026-06-01T12:00")))


@given(last=st.integers(0, 4_000_000_000_000), gap=st.integers(0, 10 * 86_400_000))
@settings(max_examples=examples(80), deadline=None)
def test_a_daily_time_is_always_due_after_25_hours_and_never_twice_at_once(last: int, gap: int) -> None:
    if gap >= 25 * 3_600_000:
        assert due_since("30 2 * * *", last, last + gap, zone=BERLIN)
    # Whoever just ran is not due, so making up ends after one run.
    assert not due_since("30 2 * * *", last + gap, last + gap, zone=BERLIN)


def test_three_due_times_slept_over_make_one_call(scheduler: Scheduler, clock: Clock) -> None:
    calls = Calls()
    scheduler.add("nightly", "0 3 * * *", calls)
    scheduler.start()
    assert next_ms(scheduler, "nightly") == ms(at("2026-06-02T03:00"))
    clock.set(at("2026-06-04T12:00"))
    scheduler.look()
    calls.wait_for(1)
    eventually(lambda: next_ms(scheduler, "nightly") == ms(at("2026-06-05T03:00")))
    scheduler.look()
    time.sleep(0.1)
    assert calls.count == 1


def test_nothing_is_called_before_its_time(scheduler: Scheduler, clock: Clock) -> None:
    calls = Calls()
    scheduler.add("nightly", "0 3 * * *", calls)
    scheduler.start()
    clock.set(at("2026-06-02T02:59:50"))
    scheduler.look()
    time.sleep(0.1)
    assert calls.count == 0


def test_a_clock_set_back_does_not_leave_jobs_in_a_far_future(scheduler: Scheduler, clock: Clock) -> None:
    calls = Calls()
    clock.set(at("2031-01-01T12:00"))
    scheduler.add("nightly", "0 3 * * *", calls)
    scheduler.interval("scan", 600, 0, calls)
    scheduler.start()
    clock.set(at("2026-06-01T12:00"))
    scheduler.look()
    eventually(lambda: next_ms(scheduler, "nightly") == ms(at("2026-06-02T03:00")))
    eventually(lambda: (next_ms(scheduler, "scan") or 0) < ms(at("2026-06-01T13:00")))
    assert calls.count == 0


def test_an_interval_repeats(scheduler: Scheduler) -> None:
    calls = Calls()
    scheduler.interval("scan", 0.05, 0.01, calls)
    scheduler.start()
    calls.wait_for(3)


def test_an_interval_spreads_by_its_jitter(scheduler: Scheduler, clock: Clock) -> None:
    scheduler.start()
    begun, due = clock(), set()
    for number in range(12):
        scheduler.interval(f"scan{number}", 600, 60, Calls())
        due.add((next_ms(scheduler, f"scan{number}") or 0) // 1000)
    assert len(due) > 3
    assert all(begun + 600 - 62 <= moment <= clock() + 600 + 62 for moment in due)


def test_a_slow_callback_is_never_called_a_second_time_meanwhile(scheduler: Scheduler) -> None:
    running, most, release = [0], [0], threading.Event()

    def slow() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        release.wait(90)
        running[0] -= 1

    scheduler.interval("scan", 0.02, 0, slow)
    scheduler.start()
    eventually(lambda: running[0] == 1)
    time.sleep(0.15)
    release.set()
    assert most[0] == 1


def test_a_callback_that_raises_is_called_again(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    calls = Calls()

    def failing() -> None:
        calls()
        raise ValueError("on purpose")

    scheduler.interval("scan", 0.03, 0, failing)
    scheduler.start()
    calls.wait_for(2)
    eventually(lambda: "on purpose" in caplog.text)


def test_a_removed_job_is_gone_and_an_unknown_one_is_no_error(scheduler: Scheduler) -> None:
    scheduler.start()
    scheduler.add("nightly", "0 3 * * *", Calls())
    scheduler.remove("nightly")
    scheduler.remove("nightly")
    assert next_ms(scheduler, "nightly") is None


def test_a_second_job_of_one_key_replaces_the_first(scheduler: Scheduler) -> None:
    scheduler.start()
    scheduler.add("nightly", "0 3 * * *", Calls())
    scheduler.add("nightly", "0 4 * * *", Calls())
    assert next_ms(scheduler, "nightly") == ms(at("2026-06-02T04:00"))


def test_bad_cron_text_of_a_job_names_its_key(scheduler: Scheduler) -> None:
    with pytest.raises(ConfigError, match=r"^targets\[2\]\.schedule: "):
        scheduler.add("targets[2].schedule", "often", Calls())


def test_stopping_twice_or_before_starting_is_no_error(clock: Clock) -> None:
    scheduler = Scheduler(clock=clock)
    scheduler.interval("scan", 60, 0, Calls())
    scheduler.stop()
    scheduler.start()
    assert next_ms(scheduler, "scan") is not None
    scheduler.stop()
    scheduler.stop()
    assert next_ms(scheduler, "scan") is None


def test_stop_ends_the_calls(scheduler: Scheduler) -> None:
    calls = Calls()
    scheduler.interval("scan", 0.03, 0, calls)
    scheduler.start()
    calls.wait_for(1)
    scheduler.stop()
    count = calls.count
    time.sleep(0.2)
    assert calls.count <= count + 1  # that was under way


def test_no_wait_between_two_looks_outlasts_half_a_minute(scheduler: Scheduler) -> None:
    """A wait does not count the hours asleep, so a longer one would make the run late by them."""
    scheduler.add("nightly", "0 3 * * *", Calls())
    scheduler.start()
    assert 0 < scheduler._loop._process_jobs() <= 30


def test_a_daily_time_is_24_hours_apart_but_for_two_days_a_year() -> None:
    trigger = parse("0 12 * * *", zone=BERLIN)
    previous, gaps = None, []
    for _ in range(366):
        following = trigger.get_next_fire_time(previous, previous or at("2026-01-01T13:00"))
        if previous:
            gaps.append(timedelta(seconds=following.timestamp() - previous.timestamp()))
        previous = following
    assert sorted(set(gaps)) == [timedelta(hours=23), timedelta(hours=24), timedelta(hours=25)]
    assert gaps.count(timedelta(hours=24)) == len(gaps) - 2
