"""A snapshot of the index, and the basic queries on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import tantivy
from tantivy import DocAddress, Document, FieldType, Occur, Order, Query

from daemon.index import Filters, Match
from daemon.index.lexical.required_words import Endings
from daemon.index.lexical.schema import clean, normal_path

_MOST_ALTERNATIVES = 200
"""Values of a filter that are queried one by one; for a set, tantivy collects all documents in every search."""

Place = tuple[int, int]
"""Segment and number of a document; valid for one searcher."""


class Snapshot:
    """One state of the index, for one call; it does not see later commits.

    `endings` has the tokens of the fields of words; None if they are not loaded yet.
    """

    def __init__(self, schema: tantivy.Schema, searcher: Any, endings: Endings | None = None) -> None:
        self.schema = schema
        self.searcher = searcher
        self.endings = endings
        self._frequencies: dict[tuple[str, str], int] = {}
        self._clauses: dict[Filters, list[tuple[Occur, Query]]] = {}

    def frequency(self, field: str, token: str) -> int:
        """How many documents have the token, including deleted ones that are not merged away yet."""
        known = self._frequencies.get((field, token))
        if known is None:
            known = self._frequencies[field, token] = int(self.searcher.doc_freq(field, clean(token)))
        return known

    def term(self, field: str, token: str) -> Query:
        """Documents with the token, scored."""
        return Query.term_query(self.schema, field, clean(token), "freq")

    def flag(self, field: str, value: str) -> Query:
        """Documents with the value in a field that only filters."""
        return Query.term_query(self.schema, field, clean(value), "basic")

    def phrase(self, field: str, sequence: Sequence[str]) -> Query:
        """Documents with these tokens in a row."""
        if len(sequence) == 1:
            return self.term(field, sequence[0])
        return Query.phrase_query(self.schema, field, [clean(token) for token in sequence])

    def quotation(self, field: str, tokens: Sequence[tuple[int, str]]) -> Query:
        """Documents with these tokens at these places, relative to the first one."""
        return Query.phrase_query(self.schema, field, [(number, clean(token)) for number, token in tokens])

    def restricted(self, query: Query, filters: Filters, *, kinds: bool = True) -> Query:
        """`query` and the filters, which do not score."""
        if filters.sessions is not None and not filters.sessions:
            return Query.empty_query()
        effective = filters if kinds else replace(filters, kinds=())
        clauses = self._clauses.get(effective)
        if clauses is None:  # dozens of queries have the same filters, which may name hundreds of sessions
            clauses = [(Occur.Must, _silent(limit)) for limit in self._limits(effective)]
            clauses += [(Occur.MustNot, self.flag("session_id", session)) for session in sorted(effective.besides)]
            self._clauses[effective] = clauses
        return Query.boolean_query([(Occur.Must, query), *clauses]) if clauses else query

    def at_most(self, filters: Filters) -> int:
        """An upper bound on the documents that pass the filters, without those of time and kind."""
        counts = [self.frequency(name, value) for name, value in _exact(filters).items()]
        if filters.tools:
            counts.append(sum(self.frequency("tool", tool) for tool in filters.tools))
        if filters.path:
            counts.append(sum(self.frequency("path", path) for path in _paths(filters)))
        return min(counts, default=int(self.searcher.num_docs))

    def _limits(self, filters: Filters) -> list[Query]:
        limits = [self.flag(name, value) for name, value in _exact(filters).items()]
        if filters.path:
            limits.append(any_of([self.flag("path", path) for path in _paths(filters)]))
        for name, values in (("kind", filters.kinds), ("tool", filters.tools), ("session_id", filters.sessions)):
            if values and len(values) <= _MOST_ALTERNATIVES:
                limits.append(any_of([self.flag(name, value) for value in sorted(values)]))
            elif values:
                limits.append(Query.term_set_query(self.schema, name, sorted(clean(value) for value in values)))
        if filters.after is not None or filters.before is not None:
            after, before = filters.after, filters.before
            integer, open_end = FieldType.Integer, before is None
            limits.append(Query.range_query(self.schema, "created", integer, after, before, True, open_end))
        return limits

    def best(self, query: Query, limit: int) -> list[tuple[float, DocAddress]]:
        """(score, address) of the best documents."""
        hits: list[tuple[float, DocAddress]] = self.searcher.search(query, limit, False).hits
        return hits

    def count(self, query: Query) -> int:
        """How many documents match."""
        return int(self.searcher.search(query, 1, True).count)

    def counts(self, query: Query, bounds: Sequence[int]) -> list[int]:
        """How many documents match that were made from each of these times until before the next one."""
        ranges = [{"from": begin, "to": end} for begin, end in pairwise(bounds)]
        answer = self.searcher.aggregate(query, {"time": {"range": {"field": "created", "ranges": ranges}}})
        counts = {bucket.get("from"): int(bucket["doc_count"]) for bucket in answer["time"]["buckets"]}
        # An index without documents has no buckets.
        return [counts.get(float(begin), 0) for begin in bounds[:-1]]

    def besides(self, query: Query, keys: Iterable[int]) -> Query:
        """`query` without the documents of these keys."""
        clauses = [(Occur.MustNot, Query.term_query(self.schema, "key", key, "basic")) for key in keys]
        return Query.boolean_query([(Occur.Must, query), *clauses]) if clauses else query

    def by_time(
        self, query: Query, limit: int, offset: int = 0, *, newest: bool = True
    ) -> list[tuple[int, DocAddress]]:
        """(created, address) in the order of time."""
        order = Order.Desc if newest else Order.Asc
        hits: list[tuple[int, DocAddress]] = self.searcher.search(query, limit, False, "created", offset, order).hits
        return hits

    def among(self, addresses: Sequence[DocAddress]) -> Query:
        """These documents, not scored; as alternatives, because a set of numbers takes tantivy six times as long."""
        return self.keyed(self.keys(addresses))

    def keyed(self, keys: Iterable[int]) -> Query:
        """The documents of these keys, not scored."""
        clauses = [Query.term_query(self.schema, "key", key, "basic") for key in keys]
        return _silent(any_of(clauses)) if clauses else Query.empty_query()

    def of_messages(self, message_ids: Iterable[str]) -> Query:
        """All documents of these messages, not scored."""
        clauses = [self.flag("message_id", message_id) for message_id in message_ids]
        return _silent(any_of(clauses)) if clauses else Query.empty_query()

    def lengths(self, addresses: Sequence[DocAddress]) -> list[int]:
        """Characters of prose in the messages of these windows."""
        return [int(length or 0) for length in self.searcher.fast_field_values("length", list(addresses))]

    def keys(self, addresses: Sequence[DocAddress]) -> list[int]:
        """The keys of these documents."""
        return [int(key) for key in self.searcher.fast_field_values("key", list(addresses))]

    def sums(self, among: Query, optional: Iterable[tuple[Query, float]], limit: int) -> dict[Place, float]:
        """For each document of `among` the sum of the scores of the queries that match it.

        The queries are nested, because tantivy would score thousands of other documents for one disjunction.
        """
        query = among
        for clause, boost in optional:
            query = Query.boolean_query([(Occur.Must, query), (Occur.Should, Query.boost_query(clause, boost))])
        return {place(address): score for score, address in self.best(query, limit)}

    def match(self, address: DocAddress, score: float, terms: tuple[str, ...] = ()) -> Match:
        """The stored document as a match."""
        document = self.searcher.doc(address)
        return as_match(document, score, text_of(document), terms)


def _exact(filters: Filters) -> dict[str, str]:
    """The filters that ask for one value of a field, by its name."""
    values = {
        "session_id": filters.session_id,
        "project_id": filters.project_id,
        "directory": normal_path(filters.directory),
        "role": filters.role,
        "deleted": "" if filters.deleted is None else str(int(filters.deleted)),
    }
    return {name: value for name, value in values.items() if value}


def _paths(filters: Filters) -> list[str]:
    return [normal_path(path) for path in (filters.path, *filters.former)]


def text_of(document: Document) -> str:
    """The text of a stored document."""
    return bytes(document.get_first("text") or b"").decode()


def as_match(document: Document, score: float, text: str, terms: tuple[str, ...]) -> Match:
    """A stored document as a match; its text was read already."""

    def value(name: str) -> str:
        return str(document.get_first(name) or "")

    return Match(value("message_id"), score, value("part_id"), value("kind"), value("tool"), text, terms)


def place(address: DocAddress) -> Place:
    """An address as a comparable value."""
    return address.segment_ord, address.doc


def any_of(clauses: Sequence[Query]) -> Query:
    """Documents that match at least one."""
    return clauses[0] if len(clauses) == 1 else Query.boolean_query([(Occur.Should, clause) for clause in clauses])


def all_of(clauses: Sequence[Query]) -> Query:
    """Documents that match each."""
    return clauses[0] if len(clauses) == 1 else Query.boolean_query([(Occur.Must, clause) for clause in clauses])


def _silent(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)
