"""Going through parts in the order of time: substrings, regular expressions, what stands next to a moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tantivy import Query

from daemon.index import Filters, Match
from daemon.index.lexical.certain import certain
from daemon.index.lexical.patterns import ODD_I, Pattern, folded
from daemon.index.lexical.reading import Reading, all_of, any_of, as_match, text_of
from daemon.index.lexical.schema import GROUPS, Group, clean

_PAGE = 1024  # to ask again costs more than a few addresses too many
_LARGEST_PAGE = 16384
_MOST_GRAMS = 6  # the rarest; more of them cost more than the texts that they save from being read
_MOST_CLAUSES = 4
_MANY = 8000  # candidates
_FEW = 5000  # documents that are read sooner than the places of words are compared
_STEP_MS = 6 * 3_600_000
_STEPS = 6


def literal(reading: Reading, text: str, filters: Filters, limit: int) -> list[Match]:
    """Parts whose text contains `text`, verified, newest first."""
    needle = text.casefold()

    def held(stored: str) -> tuple[str, ...] | None:
        return (text,) if needle in folded(stored) else None

    query = reading.restricted(holding(reading, needle, filters), filters)
    found: list[Match] = []
    _verified(_pages(reading, query, lambda: _narrower(reading, query, needle, filters)), reading, limit, held, found)
    return found


def matching(
    reading: Reading, pattern: Pattern, filters: Filters, limit: int, within_s: float
) -> tuple[list[Match], bool]:
    """Parts that the pattern matches, newest first; False when the time was over before all were looked at."""
    end = time.monotonic() + within_s

    def held(stored: str) -> tuple[str, ...] | None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return pattern.found_in(stored, left)

    clauses = sorted(pattern.required, key=lambda some: -min(map(len, some)))[:_MOST_CLAUSES]
    candidates = [_any_holding(reading, some, filters) for some in clauses]
    candidates += _spaced(reading, pattern, filters)
    query = all_of(candidates) if candidates else reading.flag("part", "1")
    found: list[Match] = []
    try:
        _verified(_pages(reading, reading.restricted(query, filters)), reading, limit, held, found)
    except TimeoutError:
        return found, False
    return found, True


def nearest(reading: Reading, moment: int, filters: Filters, limit: int, *, before: bool) -> list[Match]:
    """Parts before `moment`, newest first, or from it on, oldest first.

    Looked for in a span of time that grows until it has enough: sorting all of a large index would take longer.
    """
    every = reading.flag("part", "1")
    span = _STEP_MS
    for step in range(_STEPS + 1):
        narrowed = _narrowed(filters, moment, span if step < _STEPS else None, before=before)
        hits = reading.by_time(reading.restricted(every, narrowed), limit, newest=before)
        if len(hits) >= limit or step == _STEPS:
            break
        span *= 16
    return [reading.match(address, float(created)) for created, address in hits]


def holding(reading: Reading, needle: str, filters: Filters) -> Query:
    """Documents that may contain the folded text: its rarest trigrams, or for a shorter one any that it begins.

    Of a text with spaces its inner words too, in their order, unless the filters, which are not applied here, let
    only few documents through.
    """
    needle = clean(needle)
    if len(needle) < 3:
        grams = [gram for gram, _ in reading.searcher.terms_with_prefix("trigrams", needle)]
        return Query.term_set_query(reading.schema, "trigrams", grams) if grams else Query.empty_query()
    counted = {needle[i : i + 3]: 0 for i in range(len(needle) - 2)}
    for gram in counted:
        counted[gram] = reading.frequency("trigrams", gram)
    rarest = sorted(counted, key=lambda gram: counted[gram])[:_MOST_GRAMS]
    clauses = [reading.flag("trigrams", gram) for gram in rarest]
    if reading.at_most(filters) > _FEW:
        clauses += _standing(reading, needle, filters.kinds)
    return all_of(clauses)


def _any_holding(reading: Reading, texts: Collection[str], filters: Filters) -> Query:
    """Documents in which an expression may find one of the folded texts."""
    return any_of([*(holding(reading, text, filters) for text in sorted(texts)), *_with_odd_i(reading, texts)])


def _spaced(reading: Reading, pattern: Pattern, filters: Filters) -> Iterator[Query]:
    """For texts of a pattern that span white space, the documents with their words in this order."""
    if reading.at_most(filters) <= _FEW:
        return
    for texts in pattern.spaced:
        rows = [list(_standing(reading, text, filters.kinds)) for text in sorted(texts)]
        if all(rows):
            yield any_of([*map(all_of, rows), *_with_odd_i(reading, texts)])


def _with_odd_i(reading: Reading, texts: Collection[str]) -> list[Query]:
    """An expression takes two other letters for i as well, which are not folded to it; hardly any text has one."""
    if not any("i" in text for text in texts):
        return []
    beginnings = [letter.casefold() for letter in ODD_I]
    grams = [gram for one in beginnings for gram, _ in reading.searcher.terms_with_prefix("trigrams", one)]
    return [Query.term_set_query(reading.schema, "trigrams", grams)] if grams else []


def _standing(reading: Reading, needle: str, kinds: Collection[str]) -> Iterator[Query]:
    """For each row of words that the text has for certain, the documents that have it, whatever their kind."""
    groups = _groups(kinds)
    for one in certain(needle):
        clauses = [reading.sequence(group.words, one) for group in groups]
        known = [clause for clause in clauses if clause is not None]
        if groups and len(known) == len(groups):
            yield any_of(known)


def _groups(kinds: Collection[str]) -> list[Group]:
    return [group for group in GROUPS if not kinds or group.kinds & set(kinds)]


def _narrower(reading: Reading, query: Query, needle: str, filters: Filters) -> Query:
    """Of many candidates of a literal those whose word before its first space ends as there, if that can be asked.

    To look all words of the index through takes as long as to read some thousand texts.
    """
    if reading.count(query) < _MANY:
        return query
    groups = _groups(filters.kinds)
    for one in certain(clean(needle)):
        clauses = [reading.whole_sequence(group.words, one) for group in groups] if one.ending else []
        known = [clause for clause in clauses if clause is not None]
        if known and len(known) == len(groups):
            narrower = all_of([query, any_of(known)])
            with contextlib.suppress(ValueError):  # too many words end so
                reading.count(narrower)
                return narrower
    return query


def _narrowed(filters: Filters, moment: int, span: int | None, *, before: bool) -> Filters:
    """The filters with the span of time before or from the moment on."""
    if before:
        ends = [end for end in (filters.before, moment) if end is not None]
        begins = [begin for begin in (filters.after, None if span is None else moment - span) if begin is not None]
    else:
        begins = [begin for begin in (filters.after, moment) if begin is not None]
        ends = [end for end in (filters.before, None if span is None else moment + span) if end is not None]
    return replace(filters, after=max(begins, default=None), before=min(ends, default=None))


def _pages(
    reading: Reading, query: Query, narrower: Callable[[], Query] | None = None
) -> Iterator[Sequence[tuple[int, Any]]]:
    """Documents by time; after a first page with another query, from its beginning, if that is given."""
    offset, size = 0, _PAGE
    while True:
        page = reading.by_time(query, size, offset)
        yield page
        if len(page) < size:
            return
        offset += size
        if narrower is not None:
            query, narrower, offset = narrower(), None, 0
        size = min(size * 16, _LARGEST_PAGE)


def _verified(
    pages: Iterable[Sequence[tuple[int, Any]]],
    reading: Reading,
    limit: int,
    held: Callable[[str], tuple[str, ...] | None],
    found: list[Match],
) -> None:
    """Put candidates that `held` confirms with the terms to show into `found`, one per part and kind, up to `limit`."""
    seen: set[tuple[str, str, str]] = set()
    for page in pages:
        for created, address in page:
            document = reading.searcher.doc(address)
            text = text_of(document)
            terms = held(text)
            if terms is None:
                continue
            match = as_match(document, float(created), text, terms)
            part = (match.message_id, match.part_id, match.kind)
            if part not in seen:
                seen.add(part)
                found.append(match)
                if len(found) == limit:
                    return
