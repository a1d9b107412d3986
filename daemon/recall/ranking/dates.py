"""The days and months that a question names, and how near a message's time is to them; pure functions.

Whoever asks what was decided on 3 March wants that day before all others, though its texts need not say so. A day
without a year is that day of any year. The day after still counts: things are told when they are over. What may as well
be another word, as in "dec 12 to hex" and "may 3 threads write", is a day only beside other words of a date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from daemon.recall.ranking.weights import DAYS_AFTER, MONTH

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NUMBERS = {
    **{name[:3]: number for number, name in enumerate(_MONTHS, start=1)},
    **{name: number for number, name in enumerate(_MONTHS, start=1)},
    "sept": 9,
}
_NAME = rf"(?P<month>{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\b\.?"
_WHOLE_NAME = rf"(?P<month>{'|'.join(_MONTHS)})\b"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        r"(?<![\w-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?![\w-])",
        rf"\b{_DAY}(?:\s+of)?\s+{_NAME}(?:,?\s+{_YEAR})?",
        rf"\b{_NAME}\s+{_DAY}(?:,?\s*{_YEAR})?",
        rf"\b{_NAME},?\s+{_YEAR}",
        # Alone, a month is told from a verb or a name only by the word before it.
        rf"\b(?:in|during|since|until|by|of|last)\s+{_WHOLE_NAME}",
    )
)
_UNSURE = frozenset(_NUMBERS) - frozenset(_MONTHS) | {"may"}
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\b", re.IGNORECASE)
_OF_A_DATE = re.compile(
    r"\b(?:on|since|until|till|before|after|between|around|during|dated?|days?|weeks?|months?|when)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class QuestionDate:
    """A day, or a whole month where `day` is None; of any year where `year` is None."""

    year: int | None
    month: int
    day: int | None

    def nearness(self, made: date) -> float:
        """1 for the day itself, less for the days after it and for any of the month, 0 for all else."""
        if self.day is None:
            return MONTH if made.month == self.month and self.year in {None, made.year} else 0.0
        for days, nearness in enumerate((1.0, *DAYS_AFTER)):
            day = made - timedelta(days=days)
            if (day.month, day.day) == (self.month, self.day) and self.year in {None, day.year}:
                return nearness
        return 0.0


def dates_in(question: str) -> tuple[QuestionDate, ...]:
    """The days and months that a question names, each once; what is no day of the calendar is none."""
    dates: dict[QuestionDate, bool] = {}
    is_dated = _OF_A_DATE.search(question) is not None
    for shape in _SHAPES:
        for match in shape.finditer(question):
            values = match.groupdict()
            year, day = values.get("year"), values.get("day")
            name = values["month"].lower()
            named = QuestionDate(
                int(year) if year else None, _NUMBERS.get(name) or int(name), int(day) if day else None
            )
            if _is_possible(named):
                is_bare = name in _UNSURE and day is not None and year is None
                dates[named] = not is_bare or _ORDINAL.search(match.group()) is not None
        question = shape.sub(" ", question)
    return tuple(dates) if is_dated or len(dates) > 1 or any(dates.values()) else ()


def nearness(wanted: Sequence[QuestionDate], created: int) -> float:
    """How near a message's time, in epoch ms, is to any of what is asked for: 0 to 1, by the days of UTC."""
    if not wanted:
        return 0.0
    try:
        made = datetime.fromtimestamp(created / 1000, UTC).date()
        return max(day.nearness(made) for day in wanted)
    except (OverflowError, OSError, ValueError):  # a time out of all reason
        return 0.0


def _is_possible(day: QuestionDate) -> bool:
    try:
        date(day.year or 2000, day.month, day.day or 1)  # 2000: 29 February is a day of some years
    except ValueError:
        return False
    return True
