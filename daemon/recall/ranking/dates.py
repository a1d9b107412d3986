"""How near a message's time is to the days that a question names, and the messages of certain days.

Whoever asks what was decided on 3 March wants that day before all others, though its texts need not say so. A day
without a year is that day of any year. The day after still counts: things are told when they are over. What is seen
from now, such as last week, is sharp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from daemon.days import CalendarDate, Days
from daemon.index import Filters, LexicalIndex, Match
from daemon.model import Kind
from daemon.recall.query.parse import Query
from daemon.recall.ranking.lists import CandidateLists
from daemon.recall.ranking.weights import DAYS_AFTER, MONTH


def nearness(wanted: Sequence[CalendarDate | Days], created: int) -> float:
    """How near a message's time, in epoch ms, is to any of what is asked for: 0 to 1, by the machine's own days."""
    if not wanted:
        return 0.0
    try:
        made = datetime.fromtimestamp(created / 1000).date()  # noqa: DTZ006 - the machine's own zone
        return max(_nearness(days, made) for days in wanted)
    except (OverflowError, OSError, ValueError):  # a time out of all reason
        return 0.0


def _nearness(days: CalendarDate | Days, made: date) -> float:
    """1 for the days themselves, less for those after a calendar day and for any of a calendar month, 0 for others."""
    if isinstance(days, Days):
        return 1.0 if days.first <= made < days.past else 0.0
    if days.day is None:
        return MONTH if made.month == days.month and days.year in {None, made.year} else 0.0
    for after, share in enumerate((1.0, *DAYS_AFTER)):
        day = made - timedelta(days=after)
        if (day.month, day.day) == (days.month, days.day) and days.year in {None, day.year}:
            return share
    return 0.0


def newest(lexical: LexicalIndex, days: Days, filters: Filters, limit: int) -> list[Match]:
    """The newest messages of these days that pass the filters, newest first."""
    first, past = days.bounds
    first, past = max(first, filters.after or first), min(past, filters.before or past)
    return lexical.by_time(past, replace(filters, after=first, before=past), limit, before=True)


def is_there(lexical: LexicalIndex, filters: Filters, days: Days) -> bool:
    """Whether there is any message of these days that passes the filters."""
    return bool(newest(lexical, days, filters, 1))


def of_days(lexical: LexicalIndex, query: Query, filters: Filters, limit: int, candidates: CandidateLists) -> None:
    """Put the prompts of the query's days into the list of what is named, newest first.

    With a filter of kinds it lists these. Where no prompt of then passes the filters, it lists whatever does.
    """
    days = [some for some in query.days if isinstance(some, Days)]

    def of_kinds(kinds: tuple[str, ...]) -> list[Match]:
        narrowed = replace(filters, kinds=kinds)
        return [match for some in days for match in newest(lexical, some, narrowed, limit)]

    contents = tuple(kind for kind in Kind if kind != Kind.TITLE)
    matches = of_kinds(filters.kinds or (Kind.PROMPT,)) or of_kinds(filters.kinds or contents)
    candidates.lists["named"] = sorted(matches, key=lambda match: -match.score)[:limit]
