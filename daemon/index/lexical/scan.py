"""Going through parts in the order of time: substrings, regular expressions, what stands next to a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tantivy import Query

from daemon.index import Filters, Match
from daemon.index.lexical.patterns import Pattern
from daemon.index.lexical.reading import Reading, all_of, any_of
from daemon.index.lexical.schema import clean

_PAGE = 64
_LARGEST_PAGE = 8192
_MOST_GRAMS = 6  # the rarest; more of them cost more than the texts that they save from being read
_MOST_CLAUSES = 4
_STEP_MS = 6 * 3_600_000
_STEPS = 6


def literal(reading: Reading, text: str, filters: Filters, limit: int) -> list[Match]:
    """Parts whose text contains `text`, verified, newest first."""
    needle = text.casefold()

    def held(stored: str) -> tuple[str, ...] | None:
        return (text,) if needle in stored.casefold() else None

    query = reading.restricted(holding(reading, needle), filters)
    return _verified(reading, query, limit, held)


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
    candidates = [any_of([holding(reading, text) for text in sorted(some)]) for some in clauses]
    query = all_of(candidates) if candidates else reading.flag("part", "1")
    found: list[Match] = []
    try:
        _verified(reading, reading.restricted(query, filters), limit, held, found)
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


def holding(reading: Reading, needle: str) -> Query:
    """Documents that may contain the folded text: its rarest trigrams, or for a shorter one any that it begins."""
    needle = clean(needle)
    if len(needle) < 3:
        grams = [gram for gram, _ in reading.searcher.terms_with_prefix("trigrams", needle)]
        return Query.term_set_query(reading.schema, "trigrams", grams) if grams else Query.empty_query()
    counted = {needle[i : i + 3]: 0 for i in range(len(needle) - 2)}
    for gram in counted:
        counted[gram] = reading.frequency("trigrams", gram)
    rarest = sorted(counted, key=lambda gram: counted[gram])[:_MOST_GRAMS]
    return all_of([reading.flag("trigrams", gram) for gram in rarest])


def _narrowed(filters: Filters, moment: int, span: int | None, *, before: bool) -> Filters:
    """The filters with the span of time before or from the moment on."""
    if before:
        ends = [end for end in (filters.before, moment) if end is not None]
        begins = [begin for begin in (filters.after, None if span is None else moment - span) if begin is not None]
    else:
        begins = [begin for begin in (filters.after, moment) if begin is not None]
        ends = [end for end in (filters.before, None if span is None else moment + span) if end is not None]
    return replace(filters, after=max(begins, default=None), before=min(ends, default=None))


def _pages(reading: Reading, query: Query) -> Iterator[Sequence[tuple[int, Any]]]:
    offset, size = 0, _PAGE
    while True:
        page = reading.by_time(query, size, offset)
        yield page
        if len(page) < size:
            return
        offset += size
        size = min(size * 4, _LARGEST_PAGE)


def _verified(
    reading: Reading,
    query: Query,
    limit: int,
    held: Callable[[str], tuple[str, ...] | None],
    found: list[Match] | None = None,
) -> list[Match]:
    """Candidates that `held` confirms with the terms to show, newest first, one per part, put into `found`."""
    found = [] if found is None else found
    seen: set[tuple[str, str]] = set()
    for page in _pages(reading, query):
        for created, address in page:
            match = reading.match(address, float(created))
            part = (match.message_id, match.part_id)
            if part in seen:
                continue
            terms = held(match.text)
            if terms is not None:
                seen.add(part)
                found.append(replace(match, terms=terms))
                if len(found) == limit:
                    return found
    return found
