"""A moment as a person writes it."""

from __future__ import annotations

import time

import pytest

from daemon.errors import BadRequest
from daemon.reconstitute.moment import parse_moment, tree_suffix

NOON = 1_795_262_400_000  # 2026-11-21T12:00:00Z
GOOD = {
    "": None,
    "  ": None,
    "2026-11-21T12:00:00Z": NOON,
    "2026-11-21T13:00:00+01:00": NOON,
    "2026-11-21T12:00": NOON,
    "2026-11-21 12:00:00": NOON,
    str(NOON): NOON,
    "2026-11-21": NOON + 12 * 3600 * 1000 - 1,
    "20261121": NOON + 12 * 3600 * 1000 - 1,
}
BAD = ["yesterday", "2026-13-01", "12", "1795262400", "-5", "2026-11-21T25:00", "9" * 15, "9" * 40, "1969-01-01", "٣"]


@pytest.mark.parametrize(("text", "expected"), GOOD.items())
def test_dates_times_and_epoch_milliseconds_are_understood(text, expected, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert parse_moment(text) == expected


@pytest.mark.parametrize("text", BAD)
def test_nonsense_is_refused_with_the_forms_that_are_understood(text):
    with pytest.raises(BadRequest, match="epoch milliseconds"):
        parse_moment(text)


def test_an_earlier_state_is_called_by_its_moment_in_utc():
    assert tree_suffix(None) == ""
    assert tree_suffix(1_790_899_199_999) == tree_suffix(1_790_899_199_000) == "@2026-10-01T235959Z"
    assert tree_suffix(1_790_899_199_123) == "@2026-10-01T235959.123Z"
