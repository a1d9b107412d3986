"""The days that a text names as people write them: "yesterday", "last week", "since Monday", "3 May", "in March 2025".

One reader for questions (`mentions`) and for values of filters (`read`), in English. Days are those of the caller's
zone (`in_zone`), else of the machine's own. Nothing is guessed: in a question a day is read only where it can hardly be
anything else ("dec 12 to hex" names none), and a value is read whole or not at all. It reads no clock: `now` is given,
naive and local.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_ZONE: ContextVar[ZoneInfo | None] = ContextVar("zone", default=None)
_ONE_DAY = timedelta(days=1)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBERS = {
    **{name[:3]: number for number, name in enumerate(_MONTHS, start=1)},
    **{name: number for number, name in enumerate(_MONTHS, start=1)},
    "sept": 9,
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT_WEEKDAYS = {"tues": 1, "thur": 3, "thurs": 3, **{name[:3]: number for number, name in enumerate(_WEEKDAYS)}}
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = rf"(?P<count>\d{{1,3}}|an?|{'|'.join(_COUNTS[1:])})"

# -- days of the calendar --------------------------------------------------------------------------------------------

_NAME = rf"(?P<month>{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\b\.?"
_WHOLE_NAME = rf"(?P<month>{'|'.join(_MONTHS)})\b"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_DATES = (
    r"(?<![\w-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?![\w-])",
    rf"\b{_DAY}(?:\s+of)?\s+{_NAME}(?:,?\s+{_YEAR})?",
    rf"\b{_NAME}\s+{_DAY}(?:,?\s*{_YEAR})?",
    rf"\b{_NAME},?\s+{_YEAR}",
)
# In a question only the words before it distinguish a bare month from a verb or a name.
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (*_DATES, rf"\b(?:in|during|since|until|by|of|last|between|from)\s+{_WHOLE_NAME}")
)
_SECOND_MONTH = re.compile(
    rf"\b(?:between|from)\s+(?P<first>{'|'.join(_MONTHS)})\s+(?:and|to)\s+{_WHOLE_NAME}(?!\s*\d)", re.IGNORECASE
)
_VALUES = tuple(re.compile(rf"(?:on |in )?(?:{shape})", re.IGNORECASE) for shape in (*_DATES, _NAME))
_UNSURE = frozenset(_NUMBERS) - frozenset(_MONTHS) | {"may"}
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b", re.IGNORECASE)
_OF_A_DATE = re.compile(
    r"\b(?:on|since|until|till|before|after|between|around|during|dated?|days?|weeks?|months?|when)\b", re.IGNORECASE
)


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Meanwhile days and times are those of this zone, such as ``Europe/Berlin``; of the machine's own for "".

    So they are for a name that is not known here, and in other threads, which begin without it.
    """
    try:
        zone = ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):  # no such zone, or no name of one
        zone = None
    token = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(token)


def local(milliseconds: float) -> datetime:
    """Epoch ms as the clock on the wall shows them, without a zone.

    Raises:
        OverflowError, OSError, ValueError: a time out of all reason.
    """
    return datetime.fromtimestamp(milliseconds / 1000, _ZONE.get()).replace(tzinfo=None)


def seconds(moment: datetime) -> float:
    """The reverse, in epoch seconds; a moment that has a zone keeps it."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=_ZONE.get())).timestamp()


@dataclass(frozen=True, slots=True)
class Days:
    """All days from `first` until before `past`."""

    first: date
    past: date

    def __str__(self) -> str:
        last = self.past - _ONE_DAY
        return f"{self.first} to {last}" if last > self.first else str(self.first)

    @property
    def bounds(self) -> tuple[int, int]:
        """Epoch ms of their beginning and end; a day that the clock changes has 23 or 25 hours."""
        return _ms(datetime.combine(self.first, time())), _ms(datetime.combine(self.past, time()))


@dataclass(frozen=True, slots=True)
class CalendarDate:
    """A day, or a whole month where `day` is None; of any year where `year` is None."""

    year: int | None
    month: int
    day: int | None

    def latest(self, today: date) -> Days | None:
        """The latest that has begun; None if there is none."""
        for year in [self.year] if self.year else range(today.year, today.year - 8, -1):
            try:
                first = date(year, self.month, self.day or 1)
            except ValueError:  # 29 February
                continue
            if first <= today or self.year:
                return Days(first, first + _ONE_DAY if self.day else _month_after(first))
        return None


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of a text that names days; `is_relative`: as seen from now."""

    text: str
    days: CalendarDate | Days
    is_relative: bool = False


def mentions(text: str, now: datetime | None = None) -> tuple[Mention, ...]:
    """The days and months that a question names, each once; without `now` only those of the calendar."""
    relative: list[Mention] = []
    if now is not None:
        for shape in _RELATIVE:
            for match in shape.finditer(text):
                days = _relative(match, now)
                if days is not None:
                    relative.append(Mention(match.group(), days, is_relative=True))
            text = shape.sub(" ", text)
    return (*relative, *_dates(text))


def _dates(question: str) -> tuple[Mention, ...]:
    dates: dict[CalendarDate, tuple[str, bool]] = {}
    is_dated = _OF_A_DATE.search(question) is not None
    for match in _SECOND_MONTH.finditer(question):
        first, last = _NUMBERS[match["first"].lower()], _NUMBERS[match["month"].lower()]
        for number in range(first, last + 1 if last >= first else last + 13):
            dates[CalendarDate(None, (number - 1) % 12 + 1, None)] = match.group(), True
    question = _SECOND_MONTH.sub(" ", question)
    for shape in _SHAPES:
        for match in shape.finditer(question):
            day = _date(match)
            if day is not None:
                is_bare = match["month"].lower() in _UNSURE and day.day is not None and day.year is None
                dates[day] = match.group(), not is_bare or _ORDINAL.search(match.group()) is not None
        question = shape.sub(" ", question)
    if not (is_dated or len(dates) > 1 or any(is_sure for _, is_sure in dates.values())):
        return ()
    return tuple(Mention(text, day) for day, (text, _) in dates.items())


def _date(match: re.Match[str]) -> CalendarDate | None:
    """None for what is no day of the calendar."""
    values = match.groupdict()
    year, day, name = values.get("year"), values.get("day"), values["month"].lower()
    day_named = CalendarDate(int(year) if year else None, _NUMBERS.get(name) or int(name), int(day) if day else None)
    try:
        date(day_named.year or 2000, day_named.month, day_named.day or 1)  # 2000 is a leap year
    except ValueError:
        return None
    return day_named


# -- days as seen from now -------------------------------------------------------------------------------------------

_ALONE = r"(?<![\w./-])"
_UNITS = ("minute", "hour", "day", "week", "weekend", "month", "year", "morning", "afternoon", "evening", "night")
_NO_OFFSET = "".join(rf"(?<!{unit}\s)(?<!{unit}s\s)" for unit in (*_UNITS, *_WEEKDAYS))
"""“Two weeks before 11 August” and “the Monday after 24 July” mean a time near that date, not all before or after."""
_BOUND = _NO_OFFSET + "(?P<since>since|until|till|before|after)"
_SINCE = f"(?:{_BOUND} )?"
_END = r"(?![\w/-]|\.\w)"
_PERIOD = rf"(?P<which>last|past|this) (?P<period>week|weekend|month|year|{'|'.join(_WEEKDAYS)})"
_RELATIVE = tuple(
    re.compile(_ALONE + shape.replace(" ", r"\s+") + _END, re.IGNORECASE)
    for shape in (
        *(rf"{_BOUND} (?:the )?{shape}" for shape in (*_DATES, _WHOLE_NAME)),
        rf"{_SINCE}(?P<word>(?:the )?day before yesterday|yesterday|today|last night)",
        r"(?P<word>this (?:morning|afternoon|evening))",
        rf"{_SINCE}(?:the )?{_PERIOD}(?! (?:of|in)\b)",
        rf"(?:(?:in|over|during|within|for) )?(?:the )?(?:last|past) {_COUNT} (?P<while>hour|day|week|month|year)s?",
        rf"{_SINCE}{_COUNT} (?P<unit>minute|hour|day|week|month|year)s? ago",
        rf"(?P<since>since|until|till|before|after|on) (?P<weekday>{'|'.join(_WEEKDAYS)})",
    )
)
_VALUE = (
    re.compile(
        r"(?P<word>(?:the )?day before yesterday|yesterday|today|last night|this (?:morning|afternoon|evening)|"
        r"(?:the )?day after tomorrow|tomorrow)"
    ),
    re.compile(rf"(?:the )?{_PERIOD.replace('this', 'previous|this')}"),
    re.compile(r"(?P<which>next) (?P<period>week|month|year)"),
    re.compile(rf"(?:on )?(?P<weekday>{'|'.join((*_WEEKDAYS, *_SHORT_WEEKDAYS))})\.?"),
)
_IN_WORDS = re.compile(rf"\b(?:an?|{'|'.join(_COUNTS[1:])})(?= (?:minute|hour|day|week|month|year)s?\b)")
_CLOCK = re.compile(r"(?P<day>.+?)(?: at)? (?P<hour>\d{1,2}):(?P<minute>\d\d)")


def in_digits(text: str) -> str:
    """A text in lower case with the number of a while in digits: ``2 weeks ago`` of ``two weeks ago``."""
    return _IN_WORDS.sub(lambda match: str(_counted(match.group())), text)


def read(text: str, now: datetime) -> tuple[int, int] | None:
    """Epoch ms of the beginning and the end of the days that a value names; None where it names none.

    With a time, as in ``yesterday 14:30``, both are that minute's. A day or month without a year is the latest that has
    begun.
    """
    normalised = " ".join(text.lower().split())
    clock = _CLOCK.fullmatch(normalised)
    days = _read(clock["day"] if clock else normalised, now)
    if days is None:
        return None
    if clock is None:
        return days.bounds
    hour, minute = int(clock["hour"]), int(clock["minute"])
    if hour > 23 or minute > 59 or days.past != days.first + _ONE_DAY:
        return None
    moment = _ms(datetime.combine(days.first, time(hour, minute)))
    return moment, moment + 60_000


def _read(normalised: str, now: datetime) -> Days | None:
    for shape in _VALUE:
        match = shape.fullmatch(normalised)
        if match is not None:
            return _relative(match, now)
    for shape in _VALUES:
        match = shape.fullmatch(normalised)
        if match is not None and (day := _date(match)) is not None:
            return day.latest(now.date())
    return None


def _relative(match: re.Match[str], now: datetime) -> Days | None:
    values, today = match.groupdict(), now.date()
    try:
        named = _date(match) if values.get("month") else None
        days = named.latest(today) if named is not None else _named(values, now)
        if days is None:
            return None
        since = (values.get("since") or "").lower()
        if since in {"since", "after"}:
            first = days.past if since == "after" else days.first
            return Days(first, today + _ONE_DAY) if first <= today else None
        if since in {"until", "till", "before"}:
            return Days(date(2000, 1, 1), days.first if since == "before" else days.past)
    except (OverflowError, ValueError):  # before the calendar begins
        return None
    return days


def _named(values: dict[str, str | None], now: datetime) -> Days:
    today = now.date()
    if word := (values.get("word") or "").lower():
        back = 2 if "before" in word else 1 if word == "yesterday" or word.startswith("last") else 0
        back -= 2 if "after " in word else 1 if word == "tomorrow" else 0
        return Days(today - back * _ONE_DAY, today - (back - 1) * _ONE_DAY)
    if name := (values.get("weekday") or "").lower():
        return _weekday(name, today)
    if period := (values.get("period") or "").lower():
        return _period((values.get("which") or "").lower(), period, today)
    count = _counted(values.get("count") or "")
    if unit := (values.get("while") or "").lower():
        return Days(_before(now, unit, count).date(), today + _ONE_DAY)
    unit = (values.get("unit") or "").lower()
    then = _before(now, unit, count).date()
    if unit in {"week", "month", "year"}:
        return _span(unit, then)
    return Days(then, then + _ONE_DAY)


def _counted(count: str) -> int:
    count = count.lower()
    return int(count) if count.isdigit() else 1 if count in {"a", "an"} else _COUNTS.index(count)


def _period(which: str, period: str, today: date) -> Days:
    if period in _WEEKDAYS:
        return _weekday(period, today if which == "this" else today - _ONE_DAY)
    if period == "weekend":
        saturday = _weekday("saturday", today if which == "this" else today - _ONE_DAY).first
        if which != "this" and today.weekday() == 6:
            saturday -= 7 * _ONE_DAY  # it is not over yet
        return Days(saturday, saturday + 2 * _ONE_DAY)
    this = _span(period, today)
    if which == "next":
        return _span(period, this.past)
    return this if which == "this" else _span(period, this.first - _ONE_DAY)


def _weekday(name: str, until: date) -> Days:
    """The latest day of this name that is not after `until`."""
    number = _WEEKDAYS.index(name) if name in _WEEKDAYS else _SHORT_WEEKDAYS[name]
    day = until - ((until.weekday() - number) % 7) * _ONE_DAY
    return Days(day, day + _ONE_DAY)


def _span(unit: str, day: date) -> Days:
    """The week (from Monday), month or year that the day is in."""
    if unit == "week":
        monday = day - day.weekday() * _ONE_DAY
        return Days(monday, monday + 7 * _ONE_DAY)
    if unit == "month":
        return Days(day.replace(day=1), _month_after(day))
    return Days(date(day.year, 1, 1), date(day.year + 1, 1, 1))


def _month_after(day: date) -> date:
    return _shifted(datetime.combine(day.replace(day=1), time()), months=1).date()


def _before(now: datetime, unit: str, count: int) -> datetime:
    """As the clock on the wall goes for days and more; hours and minutes are those that have passed."""
    if unit in {"hour", "minute"}:
        return local((seconds(now) - count * {"hour": 3600, "minute": 60}[unit]) * 1000)
    return _shifted(now, **{f"{unit}s": -count})


def _shifted(moment: datetime, **by: int) -> datetime:
    from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]  # noqa: PLC0415 - few name days

    shifted: datetime = moment + relativedelta(**by)
    return shifted


def _ms(moment: datetime) -> int:
    return int(seconds(moment)) * 1000
