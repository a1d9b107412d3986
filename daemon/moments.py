"""A moment as a person or an agent writes it becomes epoch milliseconds. It reads no clock: `now` is given."""

from __future__ import annotations

import datetime as dt
import re

from daemon import days
from daemon.errors import BadRequest

_EARLIEST = 946_684_800_000  # 2000-01-01: a smaller number is seconds, or a slip
_LATEST = 253_402_300_799_000
_SECOND = 1000
_DAY = 86_400 * _SECOND
_UNITS = {
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": _DAY,
    "w": 7 * _DAY,
    "mo": 30 * _DAY,
    "y": 365 * _DAY,
}
_WORDS = {"sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d", "week": "w"}
_WORDS |= {"month": "mo", "year": "y"}
_SPAN = re.compile(r"(?:(?:the )?(?:last|past|previous) )?([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*([a-z]+)(?: ago)?", re.ASCII)
_FORM = "write 2026-11-21, 2026-11-21T14:30, 2026-11-21T14:30:00Z or epoch milliseconds"


def parse_moment(text: str, now: int | None = None) -> int | None:
    """Epoch ms of an ISO date or time, or of epoch ms as digits; None for an empty text.

    A date alone means the end of that day, a time without a zone is of the caller's zone (days.in_zone). With `now`, in
    epoch ms, also what else `parse_time` reads; days are their end.

    Raises:
        BadRequest: anything else.
    """
    if now is not None:
        return parse_time(text, now, "at", is_end=True)
    stripped = text.strip()
    return _absolute(stripped, "at", _FORM, is_end=True) if stripped else None


def written(milliseconds: int) -> str:
    """Epoch ms as `parse_moment` reads them: ``2026-11-22T20:05:30.237Z``; without a fraction where there is none.

    Empty for a moment that `parse_moment` refuses, which a damaged record may have.

    >>> written(1_795_377_930_237), written(1_795_377_930_000)
    ('2026-11-22T20:05:30.237Z', '2026-11-22T20:05:30Z')
    """
    if not _EARLIEST <= milliseconds <= _LATEST:
        return ""
    moment = dt.datetime.fromtimestamp(milliseconds // 1000, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{milliseconds % 1000:03}" if milliseconds % 1000 else ""
    return f"{moment}{fraction}Z"


def written_local(milliseconds: int) -> str:
    """As `written`, in the machine's own zone, with its offset: ``2026-11-22T21:05:30.237+01:00``."""
    if not written(milliseconds):
        return ""
    moment = dt.datetime.fromtimestamp(milliseconds // 1000).astimezone()
    moment += dt.timedelta(milliseconds=milliseconds % 1000)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds")


def parse_span(text: str, name: str = "last") -> int | None:
    """Milliseconds of a while such as ``2h``, ``7d``, ``3 weeks``, ``90 min``; None for an empty text.

    Raises:
        BadRequest: anything else.
    """
    normalised = " ".join(text.lower().split())
    if not normalised:
        return None
    span = _span(normalised)
    if span is None:
        raise BadRequest(f"`{name}` {text!r}: not a while; write 90m, 2h, 7d, 3w, 6mo or 1y")
    return span


def parse_time(value: float | str, now: int, name: str, *, is_end: bool = False) -> int | None:
    """Epoch ms of what `parse_moment` reads, of ``now``, ``7d``, ``30d ago``, and of days as people name them
    (days.read): ``yesterday``, ``last week``, ``monday``, ``3 May``.

    A day or more ago is the same time of that day in the caller's zone, also where the clock was changed between.
    Days are their beginning, or with `is_end` their last millisecond; `now` is epoch ms, `name` is what the error calls
    the value. None for a blank text.

    Raises:
        BadRequest: anything else, also numbers that are no time after the year 2000.
    """
    form = (
        "write 7d, '30d ago', now, yesterday, 'last week', monday, '3 May', 2026-01-31, 2026-01-31T14:30:00Z or epoch "
        "milliseconds"
    )
    if not isinstance(value, str):
        return _checked(int(value) if abs(value) < 1e18 else -1, name, str(value), form)
    normalised = " ".join(value.lower().split())
    if not normalised:
        return None
    if normalised == "now":
        return now
    spelt = days.in_digits(normalised)
    span = _span(spelt)
    if span is not None:
        return _days_ago(now, span) if _is_of_days(spelt) else max(now - span, 0)
    named = days.read(normalised, days.local(now))
    if named is not None:
        return _checked(named[1] - 1 if is_end else named[0], name, value, form)
    return _absolute(value.strip(), name, form, is_end=is_end)


def _is_of_days(text: str) -> bool:
    match = _SPAN.fullmatch(text)
    return match is not None and _unit(match[2]) in {"d", "w", "mo", "y"}


def _days_ago(now: int, span: int) -> int:
    try:
        then = days.local(now // 1000 * 1000) - dt.timedelta(milliseconds=span)
        return max(round(days.seconds(then) * 1000) + now % 1000, 0)
    except (OverflowError, OSError, ValueError):  # before the calendar begins
        return 0


def _unit(written: str) -> str:
    return written if written in _UNITS else _WORDS.get(written.removesuffix("s"), written.removesuffix("s"))


def _span(text: str) -> int | None:
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    unit = _unit(match[2])
    return int(float(match[1]) * _UNITS[unit]) if unit in _UNITS else None


def _absolute(text: str, name: str, form: str, *, is_end: bool) -> int:
    if re.fullmatch(r"[0-9]{1,15}", text) and len(text) != len("20261121"):
        return _checked(int(text), name, text, form)
    try:
        if "T" in text or " " in text or ":" in text:
            moment = dt.datetime.fromisoformat(text)
        else:
            day = dt.date.fromisoformat(text)
            moment = dt.datetime.combine(day, dt.time(23, 59, 59, 999_000) if is_end else dt.time())
        seconds = int(days.seconds(moment.replace(microsecond=0)))  # a float of all of it would lose a millisecond
        return _checked(seconds * 1000 + moment.microsecond // 1000, name, text, form)
    except (ValueError, OverflowError, OSError):
        raise BadRequest(f"`{name}` {text!r}: not a date or time; {form}") from None


def _checked(milliseconds: int, name: str, text: str, form: str) -> int:
    if not _EARLIEST <= milliseconds <= _LATEST:
        raise BadRequest(f"`{name}` {text!r}: not a time after the year 2000; {form}")
    return milliseconds
