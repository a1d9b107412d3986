"""A moment as a person or an agent writes it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.errors import BadRequest
from daemon.moments import parse_moment, parse_span, parse_time, written, written_local

NOON = 1_795_262_400_000  # 2026-11-21T12:00:00Z
HOUR = 3600 * 1000
DAY = 24 * HOUR
MIDNIGHT = NOON - 12 * HOUR


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


GOOD = {
    "": None,
    "  ": None,
    "2026-11-21T12:00:00Z": NOON,
    "2026-11-21T13:00:00+01:00": NOON,
    "2026-11-21T12:00": NOON,
    "2026-11-21 12:00:00": NOON,
    str(NOON): NOON,
    "2026-11-21": NOON + 12 * HOUR - 1,
    "20261121": NOON + 12 * HOUR - 1,
}
BAD = ["yesterday", "2026-13-01", "12", "1795262400", "-5", "2026-11-21T25:00", "9" * 15, "9" * 40, "1969-01-01", "٣"]


@pytest.mark.parametrize(("text", "expected"), GOOD.items())
def test_dates_times_and_epoch_milliseconds_are_understood(text, expected):
    assert parse_moment(text) == expected


@pytest.mark.parametrize("text", BAD)
def test_nonsense_is_refused_with_the_forms_that_are_understood(text):
    with pytest.raises(BadRequest, match="epoch milliseconds"):
        parse_moment(text)


TIMES = {
    "now": NOON,
    " NOW ": NOON,
    "today": MIDNIGHT,
    "tomorrow": MIDNIGHT + DAY,
    "the day after tomorrow": MIDNIGHT + 2 * DAY,
    "next week": MIDNIGHT + 2 * DAY,
    "past 3 days": NOON - 3 * DAY,
    "the previous 2 weeks": NOON - 14 * DAY,
    "yesterday": MIDNIGHT - DAY,
    "7d": NOON - 7 * DAY,
    "30d ago": NOON - 30 * DAY,
    "2 hours ago": NOON - 2 * HOUR,
    "90 min": NOON - 90 * 60_000,
    "last 3 weeks": NOON - 21 * DAY,
    "two hours ago": NOON - 2 * HOUR,
    "a day ago": NOON - DAY,
    "last week": MIDNIGHT - 12 * DAY,
    "Saturday": MIDNIGHT,
    "20 Nov": MIDNIGHT - DAY,
    "yesterday 12:00": NOON - DAY,
    "1.5h ago": NOON - 90 * 60_000,
    "999999y": 0,
    "2026-11-20": MIDNIGHT - DAY,
    "2026-11-21T12:00:00Z": NOON,
    str(NOON): NOON,
    NOON: NOON,
    float(NOON): NOON,
    "": None,
    " ": None,
}


@pytest.mark.parametrize(("value", "expected"), TIMES.items(), ids=map(repr, TIMES))
def test_relative_and_absolute_times_are_understood(value, expected):
    assert parse_time(value, NOON, "after") == expected


def test_the_end_of_a_day_is_its_last_millisecond():
    assert parse_time("2026-11-20", NOON, "to", is_end=True) == MIDNIGHT - 1
    assert parse_time("yesterday", NOON, "to", is_end=True) == MIDNIGHT - 1
    assert parse_time("last week", NOON, "to", is_end=True) == MIDNIGHT - 5 * DAY - 1
    assert parse_time("2d ago", NOON, "to", is_end=True) == NOON - 2 * DAY


@pytest.mark.parametrize(
    "value",
    [
        "soon",
        "next friday",
        "last week of May",
        "7x",
        "d",
        "2026-13-01",
        12,
        1_795_262_400,
        1e300,
        "7d 3h",
        "ago",
        "NaN",
    ],
)
def test_a_time_that_cannot_be_read_is_named_with_what_can(value):
    with pytest.raises(BadRequest, match=r"`since` .*epoch milliseconds"):
        parse_time(value, NOON, "since")


def test_days_and_weeks_ago_are_at_the_same_time_of_day(monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    now = 1_793_596_200_237  # 2026-11-02T00:10-05:00; the clock went back in the night before
    for value in ("1 day ago", "1d", "a day ago", "last 1 day"):
        assert parse_time(value, now, "after") == now - 25 * HOUR
    assert parse_time("2 weeks ago", now, "after") == now - 14 * DAY - HOUR
    assert parse_time("24h ago", now, "after") == now - DAY


def test_an_earlier_state_may_be_asked_for_by_days_too():
    assert parse_moment("yesterday", NOON) == MIDNIGHT - 1
    assert parse_moment("2 days ago", NOON) == NOON - 2 * DAY
    assert parse_moment("2026-11-20", NOON) == MIDNIGHT - 1
    assert parse_moment(" ", NOON) is None


SPANS = {"2h": 2 * HOUR, "7d": 7 * DAY, "3w": 21 * DAY, "90 m": 90 * 60_000, "6mo": 180 * DAY, "1 year": 365 * DAY}


@pytest.mark.parametrize(("text", "expected"), SPANS.items())
def test_a_while_is_a_number_and_a_unit(text, expected):
    assert parse_span(text) == expected


@pytest.mark.parametrize("text", ["7", "week", "2026-01-01", "-3d", "7d7"])
def test_a_while_that_is_none_is_refused(text):
    with pytest.raises(BadRequest, match=r"`last` .*7d"):
        parse_span(text)


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_bad_request(text):
    try:
        found = parse_time(text, NOON, "after")
    except BadRequest:
        return
    assert found is None or found >= 0


@given(st.integers(946_684_800_000, 4_102_444_800_000))
def test_a_written_moment_is_read_back_to_the_millisecond(milliseconds: int):
    assert parse_moment(written(milliseconds)) == milliseconds


@given(st.integers(max_value=946_684_799_999) | st.integers(min_value=253_402_300_799_001))
def test_a_moment_that_would_be_refused_is_not_written(milliseconds: int):
    assert written(milliseconds) == ""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
@pytest.mark.parametrize("ms", [NOON, NOON + 237, 1_793_493_000_000, 1_793_496_600_001])
def test_a_local_time_is_read_back_as_the_same_moment(monkeypatch, zone, ms):
    """Also in the hour that comes twice when summer time ends, and whatever zone reads it."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    text = written_local(ms)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert parse_moment(text) == ms
    assert written_local(12) == ""
