"""The nearest chunks of a collection of Chroma's, for a question with or without filters.

Chroma evaluates a filter in SQLite, in 0.1 ms for every row that passes, and then walks its graph past all rows that
do not: 100 to 200 ms among 33,000 rows. Even when it is given names it walks for 75 to 300 ms among 474,000 (measured,
chromadb 1.5.9). So messages that pass are told by an index that has them sorted (Passing), and

* where up to an eighth of all chunks are left, these are compared one by one, in memory (`roster`): exact, in 12 ms;
* where more are left, Chroma is asked for more than are wanted, and those that do not pass are left out.

Until the vectors have been read into memory, which takes seconds for hundreds of thousands, a few chunks are read from
Chroma, and of many it is given the names. Metadata and texts cost it more than all the rest (0.13 ms a row), so they
are asked of those alone that need them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from daemon.errors import ReconstituteError
from daemon.index import AllowedIds, Filters, Match, number_of
from daemon.index.semantic.chroma import PAGE, passes, unit, where
from daemon.index.semantic.vector_cache import Rows, VectorCache
from daemon.model import Kind, Vector

SEARCHED = 200
"""Rows that Chroma's graph is searched for at least (ef_search)."""

_READING = 4
"""To read a vector takes as long as four steps of that search: 36 and 8 microseconds among 474,000 rows."""
_MOST_MESSAGES = 10_000  # that are told one by one: 10 ms
_MOST_COMPARED = 60_000  # chunks: 12 ms
_DEEPEST = 2000  # rows that are sifted: 30 ms
_FOR_TOOLS = 4  # a chunk of a message with the tool may be of another part

Row = tuple[str, float]
"""Record id and cosine similarity."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A filtered question, who tells what passes, and what there is."""

    vector: Vector
    filters: Filters
    passing: AllowedIds
    roster: VectorCache

    @property
    def is_by_kind(self) -> bool:
        """Whether only kinds are asked for: the roster knows these by itself."""
        return self.filters == Filters(kinds=self.filters.kinds)


class VectorSearch:
    """`named` is the gate of the semantic index: one caller at a time, and what Chroma raises gets a name."""

    def __init__(self, collection: Any, dims: int, named: Callable[[str], AbstractContextManager[None]]) -> None:
        self._collection, self._dims, self._named = collection, dims, named
        self._total: int | None = None
        self._roster: VectorCache | None = None
        self._is_listed = False

    # -- what there is -------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether all chunks have been listed, and their vectors read."""
        return self._is_listed and self._roster is not None and self._roster.is_whole

    def read(self, within_s: float) -> bool:
        """Take note of all chunks, then of their vectors; whether all is read. It may be called again and again.

        It takes 6 s to list 500,000 chunks, which is done at once, and 40 microseconds a vector.
        """
        end = time.monotonic() + within_s
        roster = self._roster
        if roster is None or not self._is_listed:
            roster = self._listed()
        while not roster.is_whole:
            with self._named("reading it"):  # and no row may go meanwhile
                unknown = roster.unknown(PAGE)
                page = self._collection.get(ids=unknown, include=["embeddings"])
                for record, vector in zip(page["ids"], page["embeddings"], strict=True):
                    roster.learn(record, vector)
                for record in set(unknown).difference(page["ids"]):
                    roster.drop(record)
            if time.monotonic() >= end:
                break
        return roster.is_whole

    def _listed(self) -> VectorCache:
        with self._named("listing it"):
            self._roster = roster = VectorCache(self._dims)
            for record in self._collection.get(include=[])["ids"]:
                roster.put(record)
        for kind in map(str, Kind):  # what is written meanwhile takes note of itself
            with self._named("listing it"):
                for record in self._collection.get(where={"kinds": {"$contains": kind}}, include=[])["ids"]:
                    roster.mark(record, kind)
        self._is_listed = True
        return roster

    def wrote(self, record: str, kinds: Sequence[str], vector: Vector) -> None:
        """A chunk was put in, or written anew."""
        self._total = None
        if self._roster is not None:
            self._roster.put(record, kinds, vector)

    def removed(self, records: Sequence[str]) -> None:
        """These chunks are not there any more."""
        self._total = None
        if self._roster is not None:
            for record in records:
                self._roster.drop(record)

    def total(self) -> int:
        """How many rows there are, asked of Chroma only after something was written: it cost a fifth of a query."""
        if self._total is None:
            self._total = int(self._collection.count())
        return self._total

    # -- asking --------------------------------------------------------------------------------------------------

    def best(self, vector: Vector, filters: Filters, limit: int, passing: AllowedIds | None) -> list[Match]:
        """The nearest chunks that pass, best first; to be called behind the gate."""
        if not self.total():
            return []
        if filters == Filters():
            return _bare(self._near(vector, limit))
        if passing is None or self._roster is None or not self._is_listed:
            return self._filtered_there(vector, filters, limit)
        try:
            return self._filtered_here(_Asked(vector, filters, passing, self._roster), limit)
        except ReconstituteError:
            raise
        except Exception as error:  # noqa: BLE001 - if Chroma is broken, the next question to it says so
            # On a server another daemon may have removed what we know of: Chroma refuses names that it does not have.
            _log.warning("filters are Chroma's again until all is listed anew: %s", error)
            self._is_listed = False
            return self._filtered_there(vector, filters, limit)

    def _filtered_here(self, asked: _Asked, limit: int) -> list[Match]:
        tool = asked.filters.tool
        wanted = limit * _FOR_TOOLS if tool else limit
        while True:
            rows = self._passing(asked, wanted)
            found = _bare(self._of_tool(rows, tool) if tool else rows)
            if len(found) >= limit or len(rows) < wanted:
                return found[:limit]
            wanted *= _FOR_TOOLS

    def _passing(self, asked: _Asked, wanted: int) -> list[Row]:
        """The `wanted` nearest rows of messages that pass, and of the kinds asked for."""
        roster, kinds = asked.roster, asked.filters.kinds
        left = self._left(asked)
        if left is None or len(left) > _MOST_COMPARED:
            rows = self._sifted(asked, wanted, None if left is None else len(left))
            if rows is not None:
                return rows
        if left is None:
            left = roster.rows(asked.passing(asked.filters, self.total()) or (), kinds)
        if roster.is_whole:
            return roster.nearest(left, asked.vector, wanted)
        return self._among(asked.vector, [roster.record(row) for row in left.tolist()], wanted)

    def _left(self, asked: _Asked) -> Rows | None:
        """The rows that pass; None where these are of too many messages to be told one by one."""
        if asked.is_by_kind:
            return asked.roster.of_kinds(asked.filters.kinds)
        numbers = asked.passing(asked.filters, _MOST_MESSAGES)
        return None if numbers is None else asked.roster.rows(numbers, asked.filters.kinds)

    def _sifted(self, asked: _Asked, wanted: int, left: int | None) -> list[Row] | None:
        """What passes of the nearest, `left` of all if that is known; None where too little of what is near does."""
        total = self.total()
        deep = min(_DEEPEST, max(SEARCHED, wanted * 16 if left is None else 2 * wanted * total // left))
        while True:
            rows = self._near(asked.vector, deep)
            kept = [row for row in rows if asked.roster.has(row[0], asked.filters.kinds)]
            if not asked.is_by_kind:
                numbers = {record: number_of(record.rpartition("#")[0]) for record, _ in kept}
                passed = frozenset(asked.passing(asked.filters, deep, set(numbers.values())) or ())
                kept = [row for row in kept if numbers[row[0]] in passed]
            if len(kept) >= wanted or deep >= total:
                return kept[:wanted]
            if deep >= _DEEPEST:
                return None
            deep = min(deep * 4, _DEEPEST)

    def _near(self, vector: Vector, wanted: int, named: Sequence[str] | None = None) -> list[Row]:
        """The `wanted` nearest rows, of all or of those that are named."""
        wanted = min(wanted, self.total() if named is None else len(named))
        ids = None if named is None else list(named)
        answer = self._collection.query(query_embeddings=[vector], n_results=wanted, ids=ids, include=["distances"])
        return [
            (record, 1.0 - float(distance))
            for record, distance in zip(answer["ids"][0], answer["distances"][0], strict=True)
        ]

    def _among(self, vector: Vector, named: Sequence[str], wanted: int) -> list[Row]:
        if len(named) * _READING > SEARCHED * self.total() / max(1, len(named)):
            return self._near(vector, wanted, named)
        rows: list[Row] = []
        for start in range(0, len(named), PAGE):
            page = self._collection.get(ids=list(named[start : start + PAGE]), include=["embeddings"])
            stored = np.asarray(page["embeddings"], dtype=np.float32)
            near = stored @ unit(vector) / np.maximum(np.linalg.norm(stored, axis=1), 1e-12)
            rows += zip(page["ids"], near.tolist(), strict=True)
        rows.sort(key=lambda row: -row[1])
        return rows[:wanted]

    def _of_tool(self, rows: Sequence[Row], tool: str) -> list[Row]:
        held: set[str] = set()
        for start in range(0, len(rows), PAGE):
            page = [record for record, _ in rows[start : start + PAGE]]
            held.update(self._collection.get(ids=page, where={"tools": {"$contains": tool}}, include=[])["ids"])
        return [row for row in rows if row[0] in held]

    def told(self, matches: Sequence[Match]) -> list[Match]:
        """See SemanticIndex; to be called behind the gate."""
        wanted = [match.record for match in matches if match.record and not match.text]
        known: dict[str, tuple[Any, Any]] = {}
        for start in range(0, len(wanted), PAGE):
            page = self._collection.get(ids=wanted[start : start + PAGE], include=["metadatas", "documents"])
            known |= zip(page["ids"], zip(page["metadatas"], page["documents"], strict=True), strict=True)
        return [
            _match(match.record, match.score, *known[match.record]) if match.record in known else match
            for match in matches
        ]

    def _filtered_there(self, vector: Vector, filters: Filters, limit: int) -> list[Match]:
        """Chroma filters: a broad filter is applied to a larger answer afterwards, since each row that matches costs.

        Only when that leaves too few does Chroma filter, and then it is asked until it has no more.
        """
        total = self.total()
        clause: Any = {"session_id": filters.session_id} if filters.session_id else None
        wanted, full = max(50, limit * 4), where(filters)
        while True:
            asked = min(wanted, total)
            found, seen = self._there(vector, clause, asked, filters)
            if len(found) >= limit or (clause == full and (seen < asked or asked == total)):
                return found[:limit]
            if clause == full:
                wanted *= 4
            clause = full

    def _there(self, vector: Vector, clause: Any, wanted: int, filters: Filters) -> tuple[list[Match], int]:
        """Matches among the `wanted` nearest rows, and how many rows there were."""
        include = ["metadatas", "documents", "distances"]
        answer = self._collection.query(query_embeddings=[vector], n_results=wanted, where=clause, include=include)
        columns = (answer[name][0] for name in ("ids", "distances", "metadatas", "documents"))
        rows = list(zip(*columns, strict=True))
        found = [
            _match(record, 1.0 - float(distance), data, text)
            for record, distance, data, text in rows
            if data is not None and passes(data, filters)
        ]
        return found, len(rows)


def _bare(rows: Sequence[Row]) -> list[Match]:
    return [Match(record.rpartition("#")[0], score, record=record) for record, score in rows]


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
