"""Queries for the documents that may contain a text: all that do, and few others.

Trigrams filter by every piece of the text, its words (see `certain`) by their order. We build a query so that tantivy
can iterate over its rarest list: it checks phrases and single words only for documents of that list, but collects a set
of words as a whole first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import regex  # type: ignore[import-untyped]  # it ships no types
from tantivy import Query

from daemon.index import Filters
from daemon.index.lexical.patterns import ODD_I, Pattern, class_trigrams, plain_character
from daemon.index.lexical.required_words import WordSequence, certain
from daemon.index.lexical.schema import GROUPS, Group, clean
from daemon.index.lexical.searcher import Snapshot, all_of, any_of

_MOST_CLAUSES = 4
_FEW = 1000  # so few documents are read faster than words are looked up
_LEADS = 30_000  # if the rarest list is no longer, further trigrams cost little
_MOST_GRAMS = 12  # the rarest trigrams, behind a short list
_GRAMS_WITHOUT_LEAD = 6  # without a short list
_LEAST_GRAMS = 3  # without a short list, but with words
_MOST_BEGINNINGS = 4096  # words of one beginning
_MOST_ENDINGS = 24  # words of one ending
_RARE = 1000  # if fewer documents have a word, the next word is not checked
_MOST_PAIRS = 32  # of a word before and one behind
_WORTH_A_PLACE = 10  # from so many documents with a word on, its place is checked
_MOST_PLACES = 32  # words with one beginning whose place is checked
_FEW_PLACES = 2  # if several words before it are rare enough together
_SMALL = 0.1  # share of all documents
_MOST_SESSIONS = 200  # queried one by one
_MOST_WINDOWS = 2  # of a pattern: each is matched with every trigram of the index
_MOST_GATHERED = 2_000_000  # documents in a set of trigrams, counted for each: 20 ms
_ALONE = 4  # words queried one by one


@dataclass(frozen=True, slots=True)
class _RowQuery:
    """Documents with a sequence of words that pass the filters except time; there are at most `most`."""

    query: Query
    most: int


def literal(snapshot: Snapshot, needle: str, filters: Filters) -> Query:
    """Documents that pass the filters and may contain the folded text."""
    rows = _rows(snapshot, clean(needle), filters)
    query = all_of([*_grams(snapshot, clean(needle), rows), *(row.query for row in rows)])
    if not rows:
        return _restricted(snapshot, query, filters)
    return snapshot.restricted(query, _span(filters))  # the rows apply the other filters


def matching(snapshot: Snapshot, pattern: Pattern, filters: Filters) -> Query:
    """Documents that pass the filters and may match the pattern."""
    clauses = sorted(pattern.required, key=lambda texts: -min(map(len, texts)))[:_MOST_CLAUSES]
    candidates = [_any_holding(snapshot, texts, filters) for texts in clauses]
    candidates += _spaced(snapshot, pattern, filters)
    query = all_of(candidates) if candidates else snapshot.flag("part", "1")
    return _restricted(snapshot, query, filters)


def _restricted(snapshot: Snapshot, query: Query, filters: Filters) -> Query:
    """`query` with the filters, as alternatives of single values: for a set tantivy would collect all documents."""
    clauses = [query]
    if filters.kinds:
        clauses.append(any_of([snapshot.flag("kind", kind) for kind in filters.kinds]))
    if filters.sessions and len(filters.sessions) <= _MOST_SESSIONS:
        clauses.append(any_of([snapshot.flag("session_id", session) for session in filters.sessions]))
        filters = replace(filters, sessions=None)
    return snapshot.restricted(all_of(clauses), filters, kinds=False)


# -- trigrams --------------------------------------------------------------------------------------------------------


def _grams(snapshot: Snapshot, needle: str, rows: Sequence[_RowQuery]) -> list[Query]:
    """The rarest trigrams of a text; for a shorter text all trigrams that begin with it."""
    if len(needle) < 3:
        grams = [gram for gram, _ in snapshot.searcher.terms_with_prefix("trigrams", needle)]
        return [Query.term_set_query(snapshot.schema, "trigrams", grams) if grams else Query.empty_query()]
    counted = {needle[i : i + 3]: 0 for i in range(len(needle) - 2)}
    for gram in counted:
        counted[gram] = snapshot.frequency("trigrams", gram)
    most = _GRAMS_WITHOUT_LEAD if not rows else _LEAST_GRAMS
    if min([*counted.values(), *(row.most for row in rows)]) <= _LEADS:
        most = _MOST_GRAMS
    rarest = sorted(counted, key=lambda gram: counted[gram])[:most]
    return [snapshot.flag("trigrams", gram) for gram in rarest]


def _any_holding(snapshot: Snapshot, texts: Collection[str], filters: Filters) -> Query:
    """Documents that may contain one of the folded texts, for a regular expression."""
    holding = []
    for text in sorted(texts):
        rows = _rows(snapshot, clean(text), filters)
        holding.append(all_of([*_grams(snapshot, clean(text), rows), *(row.query for row in rows)]))
    return any_of([*holding, *_with_odd_i(snapshot, texts)])


def _with_odd_i(snapshot: Snapshot, texts: Collection[str]) -> list[Query]:
    """The regex module also treats two other letters as i, which folding does not; few texts have one."""
    if not any("i" in text for text in texts):
        return []
    beginnings = [letter.casefold() for letter in ODD_I]
    grams = [gram for letters in beginnings for gram, _ in snapshot.searcher.terms_with_prefix("trigrams", letters)]
    return [Query.term_set_query(snapshot.schema, "trigrams", grams)] if grams else []


def classed(snapshot: Snapshot, pattern: Pattern, filters: Filters, end: float) -> Query | None:
    """As `matching`, for a pattern without required literals: by the trigrams of its classes.

    None if too many documents remain, or if `end`, on time.monotonic's clock, has passed: 1000 trigrams of the index
    take 1 ms.
    """
    fewest: tuple[int, list[str]] | None = None
    for window in class_trigrams(pattern.compiled.pattern)[:_MOST_WINDOWS]:
        if time.monotonic() >= end:
            break
        fits = regex.compile("".join(window), regex.IGNORECASE).fullmatch
        trigrams = snapshot.searcher.terms_with_prefix("trigrams", plain_character(window[0]))
        fitting = [(gram, count) for gram, count in trigrams if fits(gram)]
        total = sum(count for _, count in fitting)
        if fewest is None or total < fewest[0]:
            fewest = total, [gram for gram, _ in fitting]
    if fewest is None or fewest[0] > _MOST_GATHERED:
        return None
    having = Query.term_set_query(snapshot.schema, "trigrams", fewest[1]) if fewest[1] else Query.empty_query()
    return _restricted(snapshot, any_of([having, *_with_odd_i(snapshot, ["i"])]), filters)


# -- words -----------------------------------------------------------------------------------------------------------


def _spaced(snapshot: Snapshot, pattern: Pattern, filters: Filters) -> Iterator[Query]:
    """For literals of a pattern with white space, the documents with their words in this order."""
    for texts in pattern.spaced:
        alternatives = [[row.query for row in _rows(snapshot, text, filters)] for text in sorted(texts)]
        if all(alternatives):
            yield any_of([*map(all_of, alternatives), *_with_odd_i(snapshot, texts)])


def _rows(snapshot: Snapshot, needle: str, filters: Filters) -> list[_RowQuery]:
    """For each sequence of words that the text certainly has, the documents with it, of the requested kinds.

    Empty if so few documents pass the filters that reading them is as fast.
    """
    rows = certain(needle)
    most = _at_most(snapshot, filters)
    if not rows or most <= _FEW:
        return []
    kinds = set(filters.kinds)
    groups = [group for group in GROUPS if not kinds or group.kinds & kinds]
    share = most / snapshot.searcher.num_docs
    tells_kind = bool(kinds) and all(group.kinds <= kinds for group in groups)
    led = replace(filters, kinds=() if tells_kind else filters.kinds)
    row_queries = (_in_groups(snapshot, sequence, groups, led, share) for sequence in rows)
    return [row for row in row_queries if row is not None]


def _at_most(snapshot: Snapshot, filters: Filters) -> int:
    """An upper bound on the documents that pass the filters, without those of time."""
    most = [snapshot.at_most(filters)]
    if filters.sessions is not None and len(filters.sessions) <= _MOST_SESSIONS:
        most.append(sum(snapshot.frequency("session_id", session) for session in filters.sessions))
    if filters.kinds:
        most.append(sum(snapshot.frequency("kind", kind) for kind in filters.kinds))
    return min(most)


def _span(filters: Filters) -> Filters:
    """Only the filters of time."""
    return Filters(after=filters.after, before=filters.before)


def _in_groups(
    snapshot: Snapshot, sequence: WordSequence, groups: Sequence[Group], led: Filters, share: float
) -> _RowQuery | None:
    """None if one of the groups would need too many words."""
    most = sum(
        min((snapshot.frequency(group.words, token) for token in sequence.tokens), default=0) for group in groups
    )
    is_timed = _span(led) != Filters() and len(sequence.tokens) > 1 and most > _LEADS
    if not is_timed:  # collecting a span of time takes long, and would be repeated for each alternative
        led = replace(led, after=None, before=None)
    share = 0.0 if is_timed else share
    per_group = [
        _begun(snapshot, group.words, sequence) or _in_field(snapshot, group.words, sequence, share) for group in groups
    ]
    known = [result for result in per_group if result is not None]
    if not groups or len(known) < len(groups):
        return None
    clauses = [clause for clauses, _ in known for clause in clauses] or [Query.empty_query()]
    # Tantivy collects all documents of alternatives, whatever the other clauses, so each gets the filters.
    each_led = [_restricted(snapshot, clause, led) for clause in clauses]
    return _RowQuery(any_of(each_led), sum(most for _, most in known))


def _in_field(snapshot: Snapshot, field: str, sequence: WordSequence, share: float) -> tuple[list[Query], int] | None:
    """Alternatives for the sequence of words, and an upper bound on their documents.

    The ending before the words is ignored. A rare last word may be anywhere, because checking places takes longer.
    """
    counts = [snapshot.frequency(field, token) for token in sequence.tokens]
    if not all(counts):
        return [], 0
    if not sequence.beginning:
        return [snapshot.phrase(field, sequence.tokens)], min(counts)
    if len(sequence.tokens) > 1 and share < _SMALL:  # few have them
        return [snapshot.phrase(field, sequence.tokens)], min(counts)
    known = snapshot.searcher.terms_with_prefix(field, sequence.beginning, None, _MOST_BEGINNINGS + 1)
    if len(known) > _MOST_BEGINNINGS:
        return ([snapshot.phrase(field, sequence.tokens)], min(counts)) if sequence.tokens else None
    together = sum(count for _, count in known)
    if not sequence.tokens:
        return _any_word(snapshot, field, [word for word, _ in known]), together
    known.sort(key=lambda word: -word[1])
    most = _MOST_PLACES if len(sequence.tokens) == 1 else _FEW_PLACES
    placed = [word for word, count in known[:most] if count * share > _WORTH_A_PLACE]
    clauses = [snapshot.phrase(field, [*sequence.tokens, word]) for word in placed]
    unplaced = _any_word(snapshot, field, [word for word, _ in known[len(placed) :]])
    clauses += [all_of([clause, snapshot.phrase(field, sequence.tokens)]) for clause in unplaced]
    return clauses, min([*counts, together])


def _begun(snapshot: Snapshot, field: str, sequence: WordSequence) -> tuple[list[Query], int] | None:
    """As `_in_field`, with the word before the sequence; None if too many words have this ending."""
    if not sequence.ending or snapshot.endings is None or len(sequence.tokens) > 1:
        return None
    known = snapshot.endings.of(sequence.ending, _MOST_ENDINGS)
    if known is None:
        return None
    first = {word: count for word in known if (count := snapshot.frequency(field, word))}
    most = min([sum(first.values()), *(snapshot.frequency(field, token) for token in sequence.tokens)])
    if sequence.tokens and (not sequence.beginning or most <= _RARE):
        return [snapshot.phrase(field, [word, *sequence.tokens]) for word in first], most
    last = snapshot.searcher.terms_with_prefix(field, sequence.beginning, None, _MOST_PAIRS + 1)
    if len(first) * len(last) > _MOST_PAIRS:
        return None
    clauses = [snapshot.phrase(field, [word, *sequence.tokens, after]) for word in first for after, _ in last]
    return clauses, min(most, sum(count for _, count in last))


def _any_word(snapshot: Snapshot, field: str, words: Sequence[str]) -> list[Query]:
    """Alternatives for any of these words."""
    if len(words) > _ALONE:
        return [Query.term_set_query(snapshot.schema, field, list(words))]
    return [snapshot.term(field, word) for word in words]
