"""Which results hold the names and words of a query, and how well.

Texts are searched for names and phrases up to MOST_READ characters; beyond that we rely on what the word index says.
Sorted by date are only results that hold the query, because new ones that are only similar would come before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from daemon.display import counted
from daemon.index import TOOLS
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.query import names, parse
from daemon.recall.query.names import Standing
from daemon.recall.query.parse import Hold, Query, Tier, split
from daemon.recall.ranking.grouping import Result

MOST_READ = 1_000_000
"""Characters of texts that are searched for names and phrases."""
DEPTH = 1000
"""Candidates of each list that are sorted by date; less relevant ones are not, and the answer says so."""
_SINGULAR = {"are": "is", "contain": "contains", "match": "matches"}
_VERBATIM_MODES = frozenset({"literal", "regex"})


def tier_of(
    query: Query, candidates: CandidateLists, stands: Callable[[str, str], Standing] = names.stands
) -> Callable[[str], int]:
    """Returns a function from a message id to its Tier: how well the message holds the names of the query.

    The word index knows whole names; other names are searched in the text.
    """
    terms, read = candidates.terms(), _Reader(candidates)
    standing = {*candidates.ids("named"), *candidates.ids("tools")}

    def tier(message_id: str) -> int:
        known = set(terms.get(message_id, ()))
        text, unverified = read.text(message_id), query.named
        if stands is names.stands_loosely:  # rely on the index, except for plain words, which it stems
            unverified = tuple(name for name in unverified if name not in known or names.is_plain(name))
        elif not text:  # too long to be searched, so we trust the word index
            unverified = tuple(name for name in unverified if name not in known)
        if not unverified:
            return Tier.WHOLE
        best = parse.tier(replace(query, named=unverified), text, stands)
        if best > Tier.SOME and len(unverified) < len(query.named):
            return Tier.SOME
        return Tier.INSIDE if best is Tier.NONE and message_id in standing else best

    return tier


def hold_of(query: Query, candidates: CandidateLists) -> Callable[[str], Hold]:
    """Returns a function from a message id to its Hold: which words of a short query the message holds.

    The list of phrases has only the newest matches, so older texts are searched for the phrase here. A tool output with
    the phrase counts only as one with all of the words, so that it does not rank above prose with all of the words.
    """
    with_phrase, printed = set(candidates.ids("phrase")), set(candidates.ids("printed"))
    terms, read = candidates.terms(), _Reader(candidates)

    def hold(message_id: str) -> Hold:
        held = terms.get(message_id, ())
        has_phrase = message_id in with_phrase or (
            bool(held) and names.stands_in(query.phrase, read.text(message_id, with_tools=False))
        )
        best = parse.hold(query, has_phrase, held)
        return min(best, Hold.ALL) if message_id in printed else best

    return hold


def held_terms(query: Query, candidates: CandidateLists) -> set[str]:
    """The words of the query that any candidate holds, and the names that one holds whole; in lower case."""
    words = {term.lower() for terms in candidates.terms().values() for term in terms}
    words |= {match.terms[0].lower() for name in ("phrase", "printed") for match in candidates.lists.get(name, [])[:1]}
    for name in query.named:
        words.discard(name.lower())
        if _stands_whole(Query(name, (name,)), candidates):
            words.add(name.lower())
    return words


def _stands_whole(name: Query, candidates: CandidateLists) -> bool:
    budget = MOST_READ
    for match in (match for list_ in ("lexical", "named", "tools") for match in candidates.lists.get(list_, [])):
        budget -= len(match.text)
        if budget < 0:
            return False
        if parse.tier(name, match.text) is Tier.WHOLE:
            return True
    return False


class _Reader:
    """The matched texts of messages, up to MOST_READ characters of prose and as many of tool texts."""

    def __init__(self, candidates: CandidateLists) -> None:
        self._spoken: dict[str, dict[str, None]] = {}
        self._printed: dict[str, dict[str, None]] = {}
        self._budgets = {"spoken": MOST_READ, "printed": MOST_READ}
        for match in (match for matches in candidates.lists.values() for match in matches):
            texts = self._printed if match.kind in TOOLS else self._spoken
            texts.setdefault(match.message_id, {})[match.text] = None

    def text(self, message_id: str, *, with_tools: bool = True) -> str:
        """The matched texts of a message, with those of tools unless excluded; "" if the limit is used up."""
        texts = [self._read(self._spoken, message_id), self._read(self._printed, message_id) if with_tools else ""]
        return "\n".join(text for text in texts if text)

    def _read(self, texts: Mapping[str, Mapping[str, None]], message_id: str) -> str:
        source = "spoken" if texts is self._spoken else "printed"
        text = "\n".join(texts.get(message_id, ()))
        if len(text) > self._budgets[source]:
            return ""
        self._budgets[source] -= len(text)
        return text


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
