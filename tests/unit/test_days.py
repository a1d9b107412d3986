"""Days as people name them, in questions and as values of filters."""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import days
from daemon.days import Days
from daemon.moments import parse_moment, parse_time

NOW = datetime(2026, 11, 23, 12, 30)  # a Monday


def _days(first: str, last: str = "") -> Days:
    return Days(date.fromisoformat(first), date.fromisoformat(last or first) + timedelta(days=1))


QUESTIONS = {
    "what did I do yesterday": _days("2026-11-22"),
    "what broke today?": _days("2026-11-23"),
    "the day before yesterday we": _days("2026-11-21"),
    "errors last night": _days("2026-11-22"),
    "this morning's errors": _days("2026-11-23"),
    "what was fixed last week": _days("2026-11-16", "2026-11-22"),
    "what did we say this week": _days("2026-11-23", "2026-11-29"),
    "the past month": _days("2026-10-01", "2026-10-31"),
    "last year": _days("2025-01-01", "2025-12-31"),
    "last weekend": _days("2026-11-21", "2026-11-22"),
    "last Monday": _days("2026-11-16"),
    "on Monday": _days("2026-11-23"),
    "since Friday": _days("2026-11-20", "2026-11-23"),
    "since last week": _days("2026-11-16", "2026-11-23"),
    "two days ago": _days("2026-11-21"),
    "3 weeks ago": _days("2026-11-02", "2026-11-08"),
    "a month ago": _days("2026-10-01", "2026-10-31"),
    "13 hours ago": _days("2026-11-22"),
    "in the last 3 days": _days("2026-11-20", "2026-11-23"),
    "what changed after 3 November": _days("2026-11-04", "2026-11-23"),
    "two weeks before 3 November": None,
    "the Monday after Nov 3, 2026": None,
    "the week before last week": _days("2026-11-16", "2026-11-22"),
    "the most recent call last": None,
    "last week of the sprint in March": None,
    "the last commit, the past tense, this day": None,
    "yesterday.md and /yesterday and today-page": None,
    "Monday.com or Friday": None,
    "0x2 days": None,
}


@pytest.mark.parametrize(("question", "expected"), QUESTIONS.items())
def test_a_question_names_days_only_where_it_is_certain(question: str, expected: Days | None):
    relative = [mention.days for mention in days.mentions(question, NOW) if mention.is_relative]
    assert relative == ([expected] if expected else [])


VALUES = {
    "last week": _days("2026-11-16", "2026-11-22"),
    "Previous  month": _days("2026-10-01", "2026-10-31"),
    "monday": _days("2026-11-23"),
    "fri": _days("2026-11-20"),
    "on tuesday": _days("2026-11-17"),
    "3 May": _days("2026-05-03"),
    "May 3rd": _days("2026-05-03"),
    "24 November": _days("2025-11-24"),
    "3 May 2024": _days("2024-05-03"),
    "29 February": _days("2024-02-29"),
    "march": _days("2026-03-01", "2026-03-31"),
    "in dec": _days("2025-12-01", "2025-12-31"),
    "March 2025": _days("2025-03-01", "2025-03-31"),
    "31 February": None,
    "next friday": None,
    "tomorrow": Days(date(2026, 11, 24), date(2026, 11, 25)),
    "next week": Days(date(2026, 11, 30), date(2026, 12, 7)),
    "soonish": None,
    "the last week or so": None,
    "last week of May": None,
    "monday week": None,
    "": None,
}


@pytest.mark.parametrize(("value", "expected"), VALUES.items())
def test_a_value_is_read_whole_or_not_at_all(value: str, expected: Days | None):
    assert days.read(value, NOW) == (expected.bounds if expected else None)


def test_a_day_may_have_a_time():
    noon = int(datetime(2026, 11, 22, 14, 30).timestamp() * 1000)
    assert days.read("yesterday 14:30", NOW) == days.read("yesterday at 14:30", NOW) == (noon, noon + 60_000)
    assert days.read("yesterday 25:00", NOW) is None
    assert days.read("last week 14:30", NOW) is None


@pytest.mark.parametrize(("day", "hours"), [("28 March 2026", 24), ("29 March 2026", 23), ("25 October 2026", 25)])
def test_a_day_that_the_clock_changes_has_its_own_hours(monkeypatch: pytest.MonkeyPatch, day: str, hours: int):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        bounds = days.read(day, NOW)
        assert bounds is not None
        assert bounds[1] - bounds[0] == hours * 3_600_000
        after = datetime(2026, 3, 29, 4, 30)  # the hour from two to three was left out
        two_hours = [mention.days for mention in days.mentions("5 hours ago", after)]
        assert two_hours == [_days("2026-03-28")]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_days_are_those_of_the_callers_zone():
    noon = 1_795_435_200_000  # 2026-11-23 12:00 UTC
    with days.in_zone("Pacific/Kiritimati"):  # 14 hours ahead
        now = days.local(noon)
        assert now == datetime(2026, 11, 24, 2, 0)
        assert days.read("today", now) == (noon - 2 * 3_600_000, noon + 22 * 3_600_000)
        assert [mention.days for mention in days.mentions("3 hours ago", now)] == [_days("2026-11-23")]
        assert parse_moment("2026-11-24T02:00") == parse_moment("2026-11-23T12:00Z") == noon
        assert parse_time("1d", noon, "after") == noon - 24 * 3_600_000
    with days.in_zone("America/New_York"):
        assert parse_time("24d", noon, "after") == noon - (24 * 24 + 1) * 3_600_000  # the clock was set back between


@pytest.mark.parametrize("name", ["", "Nowhere/Town", "../etc/passwd", "/etc/localtime", "x" * 5000, "\0"])
def test_a_zone_that_is_not_known_is_the_machines(name: str):
    with days.in_zone(name):
        assert days.local(0) == datetime.fromtimestamp(0)


@given(st.text(max_size=60), st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1)))
def test_any_text_can_be_read(text: str, now: datetime):
    days.mentions(text, now)
    bounds = days.read(text, now)
    assert bounds is None or bounds[0] < bounds[1]
