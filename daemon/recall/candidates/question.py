"""One question to one index, in a thread of its own, so that it can be given up at a deadline.

`of_others` asks an index about candidates that it did not find itself: a score that can be known is not zero.

A text found by its meaning may hold half of the question's words and stand just below the best list by words; one found
by words has a vector. To ask for these by id takes a few milliseconds, as they are few. Deeper lists, which would show
the same, cost several times as much.
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
    """Wait for questions that were given up at their deadline, before what they read is closed; whether all ended."""
    until = time.monotonic() + within_s
    with _STARTING:
        under_way = list(_UNDER_WAY)  # one may end and leave the set meanwhile
    for question in under_way:
        question.join(max(0.0, until - time.monotonic()))
    return not any(question.is_alive() for question in under_way)


class Question(threading.Thread):
    """One question on its way; what it has found so far may be looked at while it runs."""

    def __init__(self, index: str, question: Callable[[CandidateLists], None]) -> None:
        super().__init__(name=f"recall {index}", daemon=True)
        self._question = question
        self._context = copy_context()  # the caller's zone
        self.index = index
        self.candidates = CandidateLists()
        self.error: Exception | None = None
        self.is_done = False

    def start(self) -> None:
        """As a thread; `finish` waits for it from now on, not from when it gets a processor."""
        with _STARTING:
            super().start()
            _UNDER_WAY.add(self)

    def run(self) -> None:
        """Ask; an error is kept for whoever waits."""
        try:
            self._context.run(self._question, self.candidates)
        except Exception as error:  # noqa: BLE001 - an index may fail in its library's own ways; the other one answers
            self.error = error
        with _STARTING:
            self.is_done = True
            _UNDER_WAY.discard(self)


_UNDER_WAY = set[Question]()
_STARTING = threading.Lock()
"""Held while a question becomes one that is under way, or ceases to be one."""


def left(deadline: float) -> float:
    """Seconds until then; `deadline` is on time.monotonic's clock."""
    return max(0.0, deadline - time.monotonic())


def is_over(deadline: float) -> bool:
    """Whether that time has come; `deadline` is on time.monotonic's clock."""
    return time.monotonic() >= deadline


# -- what each index is asked about the candidates of the other --------------------------------------------------------


_MOST = 100
"""Candidates of each list that are scored by the other lists' measure too: the best ones."""


def of_others(
    candidates: CandidateLists,
    query: Query,
    filters: Filters,
    lexical: LexicalIndex,
    semantic: Callable[[], SemanticIndex | None],
    *,
    vector: Vector | None,
) -> dict[str, Callable[[CandidateLists], None]]:
    """What to ask each index, by its name; an answer fills CandidateLists.more. Empty where all is known.

    `vector` is the question's, None where meaning was not asked. Only measures that were asked for are completed.
    """
    if query.is_exact and not query.words:
        return {}  # a bare name decides by itself
    ids = {name: candidates.ids(name) for name in ("lexical", "windows", "semantic", *STANDING)}

    def missing(name: str, *others: str) -> list[str]:
        known = set(ids[name])
        return [i for i in parse.once(i for other in others for i in ids[other][:_MOST]) if i not in known]

    of_parts = missing("lexical", "windows", "semantic") if "lexical" in candidates.lists else []
    of_windows = missing("windows", "lexical", "semantic") if "windows" in candidates.lists else []
    of_vectors = missing("semantic", "lexical", "windows", *STANDING)

    def by_words(own: CandidateLists) -> None:
        own.more["lexical"], own.more["windows"] = lexical.scores(query.searched, filters, of_parts, of_windows)

    def by_meaning(own: CandidateLists) -> None:
        index = semantic()
        if index is not None and vector is not None:
            own.more["semantic"] = index.similarities(vector, filters, of_vectors)

    asked: dict[str, Callable[[CandidateLists], None]] = {}
    if of_parts or of_windows:
        asked["lexical"] = by_words
    if of_vectors and vector is not None:
        asked["semantic"] = by_meaning
    return asked
