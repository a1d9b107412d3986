"""Days and months that a question names."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.days import CalendarDate, Days, mentions
from daemon.recall.ranking.fuse import date_proximity
from daemon.recall.weights import MONTH


def dates_in(question: str) -> list[CalendarDate | Days]:
    return [mention.days for mention in mentions(question)]


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("what did we decide on 3 March 2026?", [CalendarDate(2026, 3, 3)]),
        ("what did we decide on March 3, 2026?", [CalendarDate(2026, 3, 3)]),
        ("what did we decide on the 3rd of March", [CalendarDate(None, 3, 3)]),
        ("the release of Aug 15th", [CalendarDate(None, 8, 15)]),
        ("errors of 2026-03-03", [CalendarDate(2026, 3, 3)]),
        ("between August 11 and August 15 2025", [CalendarDate(None, 8, 11), CalendarDate(2025, 8, 15)]),
        ("on December 1,2025", [CalendarDate(2025, 12, 1)]),
        ("what broke in May 2025", [CalendarDate(2025, 5, None)]),
        ("what broke in June", [CalendarDate(None, 6, None)]),
        ("sept. 2025", [CalendarDate(2025, 9, None)]),
        ("29 February", [CalendarDate(None, 2, 29)]),
        ("what failed on Dec 12", [CalendarDate(None, 12, 12)]),
        (
            "between May and July",
            [CalendarDate(None, 5, None), CalendarDate(None, 6, None), CalendarDate(None, 7, None)],
        ),
        (
            "from November to January",
            [CalendarDate(None, 11, None), CalendarDate(None, 12, None), CalendarDate(None, 1, None)],
        ),
        ("between aug 11 and aug 15", [CalendarDate(None, 8, 11), CalendarDate(None, 8, 15)]),
        ("sep 3 and 4 October", [CalendarDate(None, 10, 4), CalendarDate(None, 9, 3)]),
        ("on 3 may", [CalendarDate(None, 5, 3)]),
        ("what broke in may", [CalendarDate(None, 5, None)]),
        ("from dec 12 to dec 15", [CalendarDate(None, 12, 12), CalendarDate(None, 12, 15)]),
        ("dec 12 hex", []),
        ("convert dec 12 to hex", []),
        ("oct 17 in the mask", []),
        ("may 3 threads write at once", []),
        ("sep 2 columns", []),
        ("may we march on", []),
        ("who is June", []),
        ("31 February 2026", []),
        ("2026-13-45", []),
        ("build-2026-03-03-rc1 and 12026-03-031", []),
        ("version 3.2026", []),
        ("", []),
    ],
)
def test_days_are_read_however_they_are_written(question: str, days: list[CalendarDate]):
    assert dates_in(question) == days


def _at(day: date) -> int:
    return _ms(day.year, day.month, day.day)


def _ms(year: int, month: int, day: int, hour: int = 12) -> int:
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("question", "created", "near"),
    [
        ("on 31 December 2025", _ms(2025, 12, 31, 0), 1.0),
        ("on 31 December 2025", _ms(2026, 1, 1), 0.6),
        ("on 31 December", _ms(2026, 1, 1), 0.6),
        ("on 31 December 2025", _ms(2026, 1, 3), 0.4),
        ("on 31 December 2025", _ms(2026, 1, 4), 0.0),
        ("on 31 December 2025", _ms(2025, 12, 30), 0.0),
        ("on 31 December 2025", _ms(2024, 12, 31), 0.0),
        ("on 31 December", _ms(2024, 12, 31), 1.0),
        ("in December 2025", _ms(2025, 12, 1), MONTH),
        ("in December 2025", _ms(2026, 1, 1), 0.0),
        ("in December", _ms(2020, 12, 9), MONTH),
        ("on 3 May or in December 2025", _ms(2025, 12, 9), MONTH),
        ("on 31 December", 1 << 62, 0.0),
        ("on no day at all", _ms(2025, 12, 31), 0.0),
    ],
)
def test_the_day_itself_counts_most_and_the_days_after_it_still_count(question: str, created: int, near: float):
    assert date_proximity(dates_in(question), created) == near


@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.integers(-400, 400))
def test_a_day_is_nearest_to_itself(day: date, away: int):
    wanted = dates_in(f"what happened on {day.isoformat()}")
    assert wanted == dates_in(f"what happened on {day.day} {day:%B} {day.year}")
    assert date_proximity(wanted, _at(day)) == 1.0
    assert date_proximity(wanted, _at(day + timedelta(days=away))) < 1.0 or away == 0


def test_days_seen_from_now_are_sharp():
    week = [Days(date(2026, 11, 16), date(2026, 11, 23))]
    assert [date_proximity(week, _at(date(2026, 11, day))) for day in (15, 16, 22, 23)] == [0.0, 1.0, 1.0, 0.0]


@given(st.text(max_size=80), st.integers())
def test_any_text_and_any_time_have_an_answer(question: str, created: int):
    assert 0.0 <= date_proximity(dates_in(question), created) <= 1.0
