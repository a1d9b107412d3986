"""Searches a Chroma collection for the nearest chunks, with or without filters.

Chroma evaluates a filter in SQLite, in 0.1 ms for every row that passes, and then walks its graph past all rows that
do not: 100 to 200 ms among 33,000 rows. Even when it is given ids it walks for 75 to 300 ms among 474,000 (measured,
chromadb 1.5.9). So the lexical index supplies the ids of the messages that pass the filters (AllowedIds).

* If at most 60,000 chunks pass, or there are no more, we compare vectors directly, in memory (`vector_cache`): exact,
  12 ms. Where half of 5,000 or 20,000 vectors were equal (people write "continue" often), 2 of 60 others were not among
  the 20 that Chroma found nearest to themselves. Up to 20,000 chunks Chroma takes longer, too.
* If more pass, we ask Chroma for more than are wanted and drop those that do not pass.

Until the vectors are in memory, which takes seconds for hundreds of thousands, we read the vectors of a few chunks from
Chroma, and give it the ids of many. Fetching metadata and text is the slow part (0.13 ms a row), so we fetch it only
for rows that need it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from daemon.errors import ReconstituteError
from daemon.index import AllowedIds, Filters, Match, number_of
from daemon.index.semantic.chroma import PAGE, passes, unit, where
from daemon.index.semantic.vector_cache import Rows, VectorCache
from daemon.model import Kind, Vector

EF_SEARCH = 200
"""The least number of rows that a search in Chroma's graph visits (ef_search)."""

_READ_COST = 4
"""Reading a vector takes as long as four steps of that search: 36 and 8 microseconds among 474,000 rows."""
_MOST_MESSAGES = 10_000  # allowed messages that we list: 10 ms
_MOST_COMPARED = 60_000  # chunks whose vectors we compare one by one: 12 ms
_DEEPEST = 2000  # nearest rows that we ask Chroma for, to filter them here: 30 ms
_FOR_TOOLS = 4  # times as many rows for a tool, since a chunk of a message with that tool may be of another part

Row = tuple[str, float]
"""Record id and cosine similarity."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Query:
    """A filtered query, with what answers it."""

    vector: Vector
    filters: Filters
    allowed_ids: AllowedIds
    cache: VectorCache

    @property
    def is_by_kind(self) -> bool:
        """Whether kinds are the only filter: then the cache needs no allowed ids."""
        return self.filters == Filters(kinds=self.filters.kinds)


class VectorSearch:
    """Searches one collection. `gate` is `Semantic._gate`: one call at a time, and Chroma's errors become ours."""

    def __init__(self, collection: Any, dims: int, gate: Callable[[str], AbstractContextManager[None]]) -> None:
        self._collection, self._dims, self._gate = collection, dims, gate
        self._total: int | None = None
        self._cache: VectorCache | None = None
        self._is_listed = False

    # -- what there is -------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether the cache has every chunk with its vector."""
        return self._is_listed and self._cache is not None and self._cache.is_whole

    def read(self, within_s: float) -> bool:
        """Fill the cache for about `within_s` seconds; whether it is full. The next call goes on where this one ended.

        Listing 500,000 chunks takes 6 s and is not interrupted; after that each vector takes 40 microseconds.
        """
        end = time.monotonic() + within_s
        cache = self._cache
        if cache is None or not self._is_listed:
            cache = self._listed()
        while not cache.is_whole:
            with self._gate("reading it"):  # no row may be removed meanwhile
                without_vector = cache.without_vector(PAGE)
                page = self._collection.get(ids=without_vector, include=["embeddings"])
                for record, vector in zip(page["ids"], page["embeddings"], strict=True):
                    cache.set_vector(record, vector)
                for record in set(without_vector).difference(page["ids"]):
                    cache.remove(record)
            if time.monotonic() >= end:
                break
        return cache.is_whole

    def _listed(self) -> VectorCache:
        with self._gate("listing it"):
            self._cache = cache = VectorCache(self._dims)
            for record in self._collection.get(include=[])["ids"]:
                cache.put(record)
        for kind in map(str, Kind):  # chunks written meanwhile add themselves (`wrote`)
            with self._gate("listing it"):
                for record in self._collection.get(where={"kinds": {"$contains": kind}}, include=[])["ids"]:
                    cache.add_kind(record, kind)
        self._is_listed = True
        return cache

    def wrote(self, record: str, kinds: Sequence[str], vector: Vector) -> None:
        """A chunk was added or rewritten."""
        self._total = None
        if self._cache is not None:
            self._cache.put(record, kinds, vector)

    def removed(self, records: Sequence[str]) -> None:
        """These chunks are not there any more."""
        self._total = None
        if self._cache is not None:
            for record in records:
                self._cache.remove(record)

    def total(self) -> int:
        """How many rows there are. Counting costs a fifth of a query, so we count again only after a write."""
        if self._total is None:
            self._total = int(self._collection.count())
        return self._total

    # -- asking --------------------------------------------------------------------------------------------------

    def best(self, vector: Vector, filters: Filters, limit: int, allowed_ids: AllowedIds | None) -> list[Match]:
        """The nearest chunks that pass the filters, best first. The caller holds the gate."""
        if not self.total():
            return []
        if filters == Filters():
            return _as_matches(self._nearest_of_all(vector, limit))
        if allowed_ids is None or self._cache is None or not self._is_listed:
            return self._filtered_by_chroma(vector, filters, limit)
        try:
            return self._filtered_by_ids(_Query(vector, filters, allowed_ids, self._cache), limit)
        except ReconstituteError:
            raise
        except Exception as error:  # noqa: BLE001 - if Chroma is broken, the next question to it says so
            # On a server another daemon may have removed rows that our cache has: Chroma refuses ids that it lacks.
            _log.warning("Chroma filters by itself until all chunks are listed again: %s", error)
            self._is_listed = False
            return self._filtered_by_chroma(vector, filters, limit)

    def _nearest_of_all(self, vector: Vector, limit: int) -> list[Row]:
        if self._cache is not None and self.is_read and self.total() <= _MOST_COMPARED:
            rows = self._cache.of_kinds()
            if len(rows) == self._collection.count():  # else another daemon writes to the server
                return self._cache.most_similar(rows, vector, limit)
        return self._chroma_query(vector, limit)

    def _filtered_by_ids(self, query: _Query, limit: int) -> list[Match]:
        tools = query.filters.tools
        depth = limit * _FOR_TOOLS if tools else limit
        while True:
            rows = self._best_allowed(query, depth)
            matches = _as_matches(self._of_tools(rows, tools) if tools else rows)
            if len(matches) >= limit or len(rows) < depth:
                return matches[:limit]
            depth *= _FOR_TOOLS

    def _best_allowed(self, query: _Query, limit: int) -> list[Row]:
        """The `limit` nearest rows that pass the filters."""
        cache, kinds = query.cache, query.filters.kinds
        allowed = self._allowed_rows(query)
        if allowed is None or len(allowed) > _MOST_COMPARED:
            rows = self._filter_results(query, limit, None if allowed is None else len(allowed))
            if rows is not None:
                return rows
        if allowed is None:
            allowed = cache.rows(query.allowed_ids(query.filters, self.total()) or (), kinds)
        if cache.is_whole:
            return cache.most_similar(allowed, query.vector, limit)
        return self._compared(query.vector, [cache.record(row) for row in allowed.tolist()], limit)

    def _allowed_rows(self, query: _Query) -> Rows | None:
        """The rows that pass; None if too many messages do to list them."""
        if query.is_by_kind:
            return query.cache.of_kinds(query.filters.kinds)
        numbers = query.allowed_ids(query.filters, _MOST_MESSAGES)
        return None if numbers is None else query.cache.rows(numbers, query.filters.kinds)

    def _filter_results(self, query: _Query, limit: int, allowed_count: int | None) -> list[Row] | None:
        """The nearest rows that pass; None if too few do. `allowed_count`: how many rows pass in all, if known."""
        total = self.total()
        deep = min(
            _DEEPEST, max(EF_SEARCH, limit * 16 if allowed_count is None else 2 * limit * total // allowed_count)
        )
        while True:
            rows = self._chroma_query(query.vector, deep)
            passing = [row for row in rows if query.cache.has(row[0], query.filters.kinds)]
            if not query.is_by_kind:
                numbers = {record: number_of(record.rpartition("#")[0]) for record, _ in passing}
                passed = frozenset(query.allowed_ids(query.filters, deep, set(numbers.values())) or ())
                passing = [row for row in passing if numbers[row[0]] in passed]
            if len(passing) >= limit or deep >= total:
                return passing[:limit]
            if deep >= _DEEPEST:
                return None
            deep = min(deep * 4, _DEEPEST)

    def _chroma_query(self, vector: Vector, limit: int, records: Sequence[str] | None = None) -> list[Row]:
        """The `limit` nearest rows, of all or of `records`."""
        limit = min(limit, self.total() if records is None else len(records))
        ids = None if records is None else list(records)
        answer = self._collection.query(query_embeddings=[vector], n_results=limit, ids=ids, include=["distances"])
        return [
            (record, 1.0 - float(distance))
            for record, distance in zip(answer["ids"][0], answer["distances"][0], strict=True)
        ]

    def _compared(self, vector: Vector, records: Sequence[str], limit: int) -> list[Row]:
        if len(records) * _READ_COST > EF_SEARCH * self.total() / max(1, len(records)):
            return self._chroma_query(vector, limit, records)
        rows: list[Row] = []
        for start in range(0, len(records), PAGE):
            page = self._collection.get(ids=list(records[start : start + PAGE]), include=["embeddings"])
            rows += self._similar(page, vector)
        rows.sort(key=lambda row: -row[1])
        return rows[:limit]

    def _of_tools(self, rows: Sequence[Row], tools: tuple[str, ...]) -> list[Row]:
        held: set[str] = set()
        for start in range(0, len(rows), PAGE):
            page = [record for record, _ in rows[start : start + PAGE]]
            held.update(self._collection.get(ids=page, where=where(Filters(tools=tools)), include=[])["ids"])
        return [row for row in rows if row[0] in held]

    def similarities(self, vector: Vector, filters: Filters, message_ids: Collection[str]) -> list[Match]:
        """See SemanticIndex.similarities. The caller holds the gate.

        A vector in memory takes microseconds; if some are not in memory, one call reads all of them from Chroma.
        """
        cache = self._cache
        if cache is not None and self._is_listed and not filters.tools:
            rows = cache.rows(map(number_of, message_ids), filters.kinds)
            if cache.is_whole:
                return _best_of_each(cache.most_similar(rows, vector, len(rows)) if len(rows) else ())
            selection: dict[str, Any] = {"ids": [cache.record(row) for row in rows.tolist()]}
        else:
            of_messages: dict[str, Any] = {"message_id": {"$in": sorted(message_ids)}}
            filter_clause = where(Filters(kinds=filters.kinds, tools=filters.tools))
            selection = {"where": {"$and": [of_messages, filter_clause]} if filter_clause else of_messages}
        page = self._collection.get(**selection, include=["embeddings"])
        return _best_of_each(self._similar(page, vector))

    @staticmethod
    def _similar(page: Any, vector: Vector) -> list[Row]:
        """The rows of a page that was read with its vectors, by cosine similarity, best first."""
        if not page["ids"]:
            return []
        stored = np.asarray(page["embeddings"], dtype=np.float32)
        similarities = stored @ unit(vector) / np.maximum(np.linalg.norm(stored, axis=1), 1e-12)
        return sorted(zip(page["ids"], similarities.tolist(), strict=True), key=lambda row: -row[1])

    def with_texts(self, matches: Sequence[Match]) -> list[Match]:
        """See SemanticIndex. The caller holds the gate."""
        records = [match.record for match in matches if match.record and not match.text]
        known: dict[str, tuple[Any, Any]] = {}
        for start in range(0, len(records), PAGE):
            page = self._collection.get(ids=records[start : start + PAGE], include=["metadatas", "documents"])
            known |= zip(page["ids"], zip(page["metadatas"], page["documents"], strict=True), strict=True)
        return [
            _match(match.record, match.score, *known[match.record]) if match.record in known else match
            for match in matches
        ]

    def _filtered_by_chroma(self, vector: Vector, filters: Filters, limit: int) -> list[Match]:
        """Without the cache: first query more rows and filter them here, because Chroma takes time for each match.

        If too few of them pass, Chroma filters, and we query more until it has no more.
        """
        total = self.total()
        clause: Any = {"session_id": filters.session_id} if filters.session_id else None
        depth, full = max(50, limit * 4), where(filters)
        while True:
            query = min(depth, total)
            matches, row_count = self._chroma_matches(vector, clause, query, filters)
            if len(matches) >= limit or (clause == full and (row_count < query or query == total)):
                return matches[:limit]
            if clause == full:
                depth *= 4
            clause = full

    def _chroma_matches(self, vector: Vector, clause: Any, depth: int, filters: Filters) -> tuple[list[Match], int]:
        """Matches among the `depth` nearest rows, and how many rows there were."""
        include = ["metadatas", "documents", "distances"]
        answer = self._collection.query(query_embeddings=[vector], n_results=depth, where=clause, include=include)
        columns = (answer[name][0] for name in ("ids", "distances", "metadatas", "documents"))
        rows = list(zip(*columns, strict=True))
        matches = [
            _match(record, 1.0 - float(distance), data, text)
            for record, distance, data, text in rows
            if data is not None and passes(data, filters)
        ]
        return matches, len(rows)


def _as_matches(rows: Sequence[Row]) -> list[Match]:
    return [Match(record.rpartition("#")[0], score, record=record) for record, score in rows]


def _best_of_each(rows: Sequence[Row]) -> list[Match]:
    """The first row of each message, as a match."""
    best: dict[str, Match] = {}
    for match in _as_matches(rows):
        best.setdefault(match.message_id, match)
    return list(best.values())


def _match(record: str, score: float, data: Any, text: Any) -> Match:
    data = data or {}
    return Match(
        message_id=record.rpartition("#")[0],
        score=score,
        kind=str((data.get("kinds") or [""])[0]),
        tool=str((data.get("tools") or [""])[0]),
        text=str(text or ""),
        record=record,
    )
