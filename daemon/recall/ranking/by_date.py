"""Results in the order of time: everything that holds what was asked for, not the first page by relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.display import counted
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.ranking.grouping import Result

DEPTH = 1000
"""Candidates a list: what is less relevant than so many is not sorted, and that is said."""
_OF_ONE = {"are": "is", "hold": "holds", "match": "matches"}
_AS_IT_STANDS = frozenset({"literal", "regex"})


@dataclass(frozen=True, slots=True)
class Dated:
    """Results in the order of time, and in words which they are."""

    results: list[Result]
    what: str


def dated(results: Sequence[Result], query: Query, mode: str, *, is_newest_first: bool) -> Dated:
    """Those that hold what was asked for, sorted by date; of equal dates the better first.

    By words these are the messages that hold all of them, where there are any, else those that hold some: a date is no
    reason to show what is only similar before what holds the words.
    """
    chosen, what = _chosen(results, query, mode)
    sign = -1 if is_newest_first else 1
    in_order = sorted(chosen, key=lambda result: (sign * result.created, -result.score, result.message_id))
    return Dated(in_order, what)


def said_of(what: str, number: int, *, is_newest_first: bool, is_full: bool) -> str:
    """A sentence that says which results were sorted."""
    order = "newest" if is_newest_first else "oldest"
    limit = f"; there may be more: only the {DEPTH} best of each index were looked at" if is_full else ""
    verb, blank, rest = what.partition(" ")
    held = f"{_OF_ONE[verb] if number == 1 else verb}{blank}{rest}"
    return f"sorted by date, {order} first: {counted(number, 'result')} that {held}{limit}"


def _chosen(results: Sequence[Result], query: Query, mode: str) -> tuple[list[Result], str]:
    if mode in _AS_IT_STANDS:
        return list(results), "match"
    by_words = [result for result in results if result.is_by_words]
    if mode == "semantic" or not by_words:
        near = [result for result in results if result.is_own]
        return near or list(results), "hold nearly such words" if mode == "fuzzy" else "are similar in meaning"
    if query.is_of_days:
        return by_words, "are of these days"
    held: dict[str, set[str]] = {}
    for result in by_words:
        names = split(query.named) if result.grade == Tier.WHOLE else set[str]()
        held.setdefault(result.message_id, set()).update(split(result.terms) | names)
    wanted = split((*query.named, *query.words))
    whole = [result for result in by_words if held[result.message_id] >= wanted]
    return (whole, "hold all of the words") if whole else (by_words, "hold some of the words")
