"""Messages of certain days, by the word index: what a question of days alone lists."""

from __future__ import annotations

from dataclasses import replace

from daemon.days import Days
from daemon.index import Filters, LexicalIndex, Match
from daemon.model import Kind
from daemon.recall.query.parse import Query
from daemon.recall.ranking.lists import CandidateLists


def newest(lexical: LexicalIndex, days: Days, filters: Filters, limit: int) -> list[Match]:
    """The newest messages of these days that pass the filters, newest first."""
    first, past = days.bounds
    first, past = max(first, filters.after or first), min(past, filters.before or past)
    return lexical.by_time(past, replace(filters, after=first, before=past), limit, before=True)


def is_there(lexical: LexicalIndex, filters: Filters, days: Days) -> bool:
    """Whether there is any message of these days that passes the filters."""
    return bool(newest(lexical, days, filters, 1))


def prompts(lexical: LexicalIndex, query: Query, filters: Filters, limit: int, candidates: CandidateLists) -> None:
    """Put the prompts of the query's days into the list of what is named, newest first.

    With a filter of kinds these, not prompts.
    """
    narrowed = replace(filters, kinds=filters.kinds or (Kind.PROMPT,))
    days = [some for some in query.days if isinstance(some, Days)]
    matches = [match for some in days for match in newest(lexical, some, narrowed, limit)]
    candidates.lists["named"] = sorted(matches, key=lambda match: -match.score)[:limit]
