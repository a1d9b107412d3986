"""How much happened on each day, counted by the lexical index from the times of messages: no record is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta

from daemon.days import Days, local
from daemon.index import Filters, LexicalIndex
from daemon.model import Kind
from daemon.recall.catalog import Catalog
from daemon.recall.query.directories import is_within

MOST_DAYS = 800
"""Days of one answer."""
_PROMPTS = (str(Kind.PROMPT), str(Kind.TASK))


@dataclass(frozen=True, slots=True)
class Day:
    """What was counted on one day of the caller's zone: its messages, the prompts among them, and sessions begun."""

    date: date
    messages: int
    prompts: int
    sessions: int


def by_day(lexical: LexicalIndex, catalog: Catalog, days: Days, directory: str = "") -> list[Day]:
    """Each of `days`, oldest first, at most MOST_DAYS of the latest; of sessions in `directory` or beneath it.

    Raises:
        IndexBroken: the index must be rebuilt.
    """
    first = max(days.first, days.past - timedelta(MOST_DAYS))
    dates = [first + timedelta(number) for number in range((days.past - first).days)]
    if not dates:
        return []
    bounds = [Days(each, each + timedelta(1)).bounds[0] for each in dates]
    bounds.append(Days(first, days.past).bounds[1])
    filters = Filters(directory=directory, after=bounds[0], before=bounds[-1])
    messages = lexical.counts(filters, bounds)
    prompts = lexical.counts(replace(filters, role="user", kinds=_PROMPTS), bounds)
    begun = dict.fromkeys(dates, 0)
    for row in catalog.rows().values():
        if bounds[0] <= row.created < bounds[-1] and (not directory or is_within(row.directory, directory)):
            begun[local(row.created).date()] += 1
    return [Day(each, messages[n], prompts[n], begun[each]) for n, each in enumerate(dates)]
