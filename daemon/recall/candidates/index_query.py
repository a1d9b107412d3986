"""Queries one index in a thread of its own, so that the search can stop waiting for it at a deadline.

`missing_scores` queries each index for the scores of candidates that only the other one found, so that a score that can
be known does not count as zero. A text found by meaning may hold half of the query's words and stand just below the
end of the list by words; a text found by words has a vector. Looking these few up by id takes milliseconds. Asking for
longer lists, which would have them too, costs several times as much.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context

from daemon.index import Filters, LexicalIndex, SemanticIndex
from daemon.model import Vector
from daemon.recall.candidates.lists import STANDING, CandidateLists
from daemon.recall.query import parse
from daemon.recall.query.parse import Query


def finish(within_s: float) -> bool:
    """Wait for queries that outlived their deadline, before the indexes are closed; return whether all have ended."""
    until = time.monotonic() + within_s
    with _STARTING:
        running = list(_RUNNING)  # a copy, because a query that ends leaves the set
    for query in running:
        query.join(max(0.0, until - time.monotonic()))
    return not any(query.is_alive() for query in running)


class IndexQuery(threading.Thread):
    """A running query; `candidates` has its results so far and may be read while it runs."""

    def __init__(self, index: str, fill: Callable[[CandidateLists], None]) -> None:
        super().__init__(name=f"recall {index}", daemon=True)
        self._fill = fill
        self._context = copy_context()  # the caller's zone
        self.index = index
        self.candidates = CandidateLists()
        self.error: Exception | None = None
        self.is_done = False

    def start(self) -> None:
        """Start the thread. `finish` waits for it from now on, even before the thread runs."""
        with _STARTING:
            super().start()
            _RUNNING.add(self)

    def run(self) -> None:
        """Query the index; an error is kept for the caller that waits."""
        try:
            self._context.run(self._fill, self.candidates)
        except Exception as error:  # noqa: BLE001 - an index may fail in its library's own ways; the other one answers
            self.error = error
        with _STARTING:
            self.is_done = True
            _RUNNING.discard(self)


_RUNNING = set[IndexQuery]()
_STARTING = threading.Lock()
"""Guards _RUNNING and `is_done`."""


def seconds_until(deadline: float) -> float:
    """Seconds until the deadline, which is on time.monotonic's clock."""
    return max(0.0, deadline - time.monotonic())


def is_over(deadline: float) -> bool:
    """Whether the deadline has passed; it is on time.monotonic's clock."""
    return time.monotonic() >= deadline


# -- the scores of candidates that only the other index found ----------------------------------------------------------


_MOST = 100
"""Candidates of each list, the best ones, that are also scored by the other lists."""


def missing_scores(
    candidates: CandidateLists,
    query: Query,
    filters: Filters,
    lexical: LexicalIndex,
    semantic: Callable[[], SemanticIndex | None],
    *,
    vector: Vector | None,
) -> dict[str, Callable[[CandidateLists], None]]:
    """A query for each index, by its name, that fills CandidateLists.more; empty if nothing is missing.

    `vector` is the embedded question, None if meaning was not searched. Only lists that were searched are completed.
    """
    if query.is_exact and not query.words:
        return {}  # a bare name decides by itself
    ids = {name: candidates.ids(name) for name in ("lexical", "windows", "semantic", *STANDING)}

    def missing(name: str, *sources: str) -> list[str]:
        known = set(ids[name])
        return [i for i in parse.once(i for source in sources for i in ids[source][:_MOST]) if i not in known]

    of_parts = missing("lexical", "windows", "semantic") if "lexical" in candidates.lists else []
    of_windows = missing("windows", "lexical", "semantic") if "windows" in candidates.lists else []
    of_vectors = missing("semantic", "lexical", "windows", *STANDING)

    def by_words(own: CandidateLists) -> None:
        own.more["lexical"], own.more["windows"] = lexical.scores(query.searched, filters, of_parts, of_windows)

    def by_meaning(own: CandidateLists) -> None:
        index = semantic()
        if index is not None and vector is not None:
            own.more["semantic"] = index.similarities(vector, filters, of_vectors)

    queries: dict[str, Callable[[CandidateLists], None]] = {}
    if of_parts or of_windows:
        queries["lexical"] = by_words
    if of_vectors and vector is not None:
        queries["semantic"] = by_meaning
    return queries
