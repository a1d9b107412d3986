"""What the indexes are asked about candidates that they did not find themselves: a score that can be known is not zero.

A text found by its meaning may hold half of the question's words and stand just below the best list by words; one found
by words has a vector. To ask for these by id takes a few milliseconds, as they are few. Deeper lists, which would show
the same, cost several times as much.
"""

from __future__ import annotations

from collections.abc import Callable

from daemon.index import Filters, LexicalIndex, SemanticIndex
from daemon.model import Vector
from daemon.recall.candidates.lists import STANDING, CandidateLists
from daemon.recall.query import parse
from daemon.recall.query.parse import Query

_MOST = 100
"""Candidates of each list that are scored by the other lists' measure too: the best ones."""


def questions(
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
