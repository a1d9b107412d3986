"""Scans parts in the order of time: for substrings, regular expressions, or parts close to a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tantivy import DocAddress, Query

from daemon.index import Filters, Match, number_of, tokens
from daemon.index.lexical import prefilter
from daemon.index.lexical.patterns import Pattern
from daemon.index.lexical.searcher import Snapshot, as_match

_NEWEST = 256  # documents to check before a pattern is prefiltered by its classes
_PAGE = 2048  # a second query costs more than a few addresses too many
_LARGEST_PAGE = 16384
_STEP_MS = 6 * 3_600_000
_STEPS = 6

TermsOf = Callable[[bytes], tuple[str, ...] | None]
"""Returns the terms to show of a stored text, None if it does not match."""


def literal(snapshot: Snapshot, text: str, filters: Filters, limit: int) -> list[Match]:
    """Parts whose text contains `text`, composed or decomposed, verified, newest first."""
    needle = tokens.caseless(text)
    plain = needle.encode() if needle.isascii() else None

    def held(stored: bytes) -> tuple[str, ...] | None:
        if stored.isascii():  # most are ASCII, and need not be decoded
            return (text,) if plain is not None and plain in stored.lower() else None
        whole = stored.decode()
        return (tokens.as_composed_in(text, whole),) if needle in tokens.caseless(whole) else None

    results: list[Match] = []
    _verified(_pages(snapshot, prefilter.literal(snapshot, needle, filters)), snapshot, limit, held, results)
    return results


def matching(
    snapshot: Snapshot, pattern: Pattern, filters: Filters, limit: int, within_s: float
) -> tuple[list[Match], bool]:
    """Parts that the pattern matches, newest first; False if the time was over before all were checked."""
    end = time.monotonic() + within_s

    def held(stored: bytes) -> tuple[str, ...] | None:
        remaining_s = end - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return pattern.matched_texts(stored.decode(), remaining_s)

    newest: list[Match] = []
    results: list[Match] = []
    query = prefilter.matching(snapshot, pattern, filters)
    try:
        if not pattern.required:  # a common pattern is among the newest; for a rare one a prefilter pays
            _verified([snapshot.by_time(query, _NEWEST)], snapshot, limit, held, newest)
            if len(newest) == limit:
                return newest, True
            query = prefilter.classed(snapshot, pattern, filters, end) or query
        _verified(_pages(snapshot, query), snapshot, limit, held, results)
    except TimeoutError:
        return max(newest, results, key=len), False
    return results, True


def by_time(snapshot: Snapshot, moment: int, filters: Filters, limit: int, *, before: bool) -> list[Match]:
    """Parts before `moment`, newest first, or from it on, oldest first.

    We search a span of time that grows until it has enough, because sorting a large index takes longer.
    """
    all_parts = snapshot.flag("part", "1")
    span = _STEP_MS
    for step in range(_STEPS + 1):
        in_span = _within_span(filters, moment, span if step < _STEPS else None, before=before)
        hits = snapshot.by_time(snapshot.restricted(all_parts, in_span), limit, newest=before)
        if len(hits) >= limit or step == _STEPS:
            break
        span *= 16
    return [snapshot.match(address, float(created)) for created, address in hits]


def counts(snapshot: Snapshot, filters: Filters, bounds: Sequence[int], without: Collection[str]) -> list[int]:
    """The messages between each two of `bounds`, without those of the ids in `without`."""
    if len(bounds) < 2:
        return []
    query = snapshot.restricted(snapshot.flag("part", "0"), filters)
    return snapshot.counts(snapshot.besides(query, map(number_of, without)), bounds)


def _within_span(filters: Filters, moment: int, span: int | None, *, before: bool) -> Filters:
    """The filters with the span of time before or from the moment on."""
    if before:
        ends = [end for end in (filters.before, moment) if end is not None]
        begins = [begin for begin in (filters.after, None if span is None else moment - span) if begin is not None]
    else:
        begins = [begin for begin in (filters.after, moment) if begin is not None]
        ends = [end for end in (filters.before, None if span is None else moment + span) if end is not None]
    return replace(filters, after=max(begins, default=None), before=min(ends, default=None))


def _pages(snapshot: Snapshot, query: Query) -> Iterator[Sequence[tuple[int, DocAddress]]]:
    """Documents by time."""
    offset, size = 0, _PAGE
    while True:
        page = snapshot.by_time(query, size, offset)
        yield page
        if len(page) < size:
            return
        offset += size
        size = _LARGEST_PAGE


def _verified(
    pages: Iterable[Sequence[tuple[int, DocAddress]]],
    snapshot: Snapshot,
    limit: int,
    held: TermsOf,
    results: list[Match],
) -> None:
    """Put candidates that `held` confirms into `results`, with their terms: one per part and kind, up to `limit`."""
    parts: set[tuple[str, str, str]] = set()
    stored_of = snapshot.searcher.doc
    for page in pages:
        for created, address in page:
            document = stored_of(address)
            stored = document.get_first("text") or b""
            terms = held(stored)
            if terms is None:
                continue
            match = as_match(document, float(created), stored.decode(), terms)
            part = (match.message_id, match.part_id, match.kind)
            if part not in parts:
                parts.add(part)
                results.append(match)
                if len(results) == limit:
                    return
