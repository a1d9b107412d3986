"""Results sorted by date: only messages that hold the words of the query are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.display import counted
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.ranking.grouping import Result

DEPTH = 1000
"""Candidates of each list; less relevant ones are not sorted, and the answer says so."""
_SINGULAR = {"are": "is", "contain": "contains", "match": "matches"}
_VERBATIM_MODES = frozenset({"literal", "regex"})


@dataclass(frozen=True, slots=True)
class SortedResults:
    """Results sorted by date; `description` says which results these are, as the end of a sentence (`order_note`)."""

    results: list[Result]
    description: str


def sort_by_date(results: Sequence[Result], query: Query, mode: str, *, is_newest_first: bool) -> SortedResults:
    """The results that hold the query, sorted by date; at equal dates the better one first.

    In a search by words these are the messages with all words, or if there are none, those with some. Messages that are
    only similar are left out, because new ones would come before those that hold the words.
    """
    chosen, description = _chosen(results, query, mode)
    sign = -1 if is_newest_first else 1
    in_order = sorted(chosen, key=lambda result: (sign * result.created, -result.score, result.message_id))
    return SortedResults(in_order, description)


def order_note(description: str, number: int, *, is_newest_first: bool, is_full: bool) -> str:
    """A sentence that says which results were sorted."""
    order = "newest" if is_newest_first else "oldest"
    limit = f"; there may be more: only the {DEPTH} best of each index were looked at" if is_full else ""
    verb, blank, predicate = description.partition(" ")
    held = f"{_SINGULAR[verb] if number == 1 else verb}{blank}{predicate}"
    return f"sorted by date, {order} first: {counted(number, 'result')} that {held}{limit}"


def _chosen(results: Sequence[Result], query: Query, mode: str) -> tuple[list[Result], str]:
    if mode in _VERBATIM_MODES:
        return list(results), "match"
    by_words = [result for result in results if result.is_by_words]
    if mode == "semantic" or not by_words:
        own = [result for result in results if result.is_own]
        description = "contain words with similar spellings" if mode == "fuzzy" else "are similar in meaning"
        return own or list(results), description
    if query.is_of_days:
        return by_words, "are from these days"
    held: dict[str, set[str]] = {}
    for result in by_words:
        names = split(query.named) if result.grade == Tier.WHOLE else set[str]()
        held.setdefault(result.message_id, set()).update(split(result.terms) | names)
    query_words = split((*query.named, *query.words))
    whole = [result for result in by_words if held[result.message_id] >= query_words]
    return (whole, "contain all of the words") if whole else (by_words, "contain some of the words")
