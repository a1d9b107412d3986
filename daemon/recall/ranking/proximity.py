"""Words that stand side by side in a question and near each other in a text: they mean there what they mean here.

A word counts in all of its regular forms: by its beginning, as in snippets. Pure functions over lower-case texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

MOST_READ = 4000
"""Characters of one text that are looked through."""
_BETWEEN = 2  # words
_SHORTEST = 4
_ENDING = 3
_MOST = 8

Pair = tuple[str, str]


def neighbours(question: str, terms: Sequence[str]) -> tuple[Pair, ...]:
    """Those of the question's terms, told in their order, that stand side by side in it; the first _MOST pairs."""
    found: list[Pair] = []
    place = 0
    for one, other in pairwise(terms):
        place = max(place, question.find(one, place))
        if re.match(rf"\W+{re.escape(other)}(?!\w)", question[place + len(one) :]):
            found.append((one, other))
    return tuple(found[:_MOST])


def closeness(pairs: Mapping[Pair, float], text: str) -> float:
    """The sum of what those pairs count, told by `pairs`, that stand near each other in `text`, in their order."""
    lowered = text[:MOST_READ].lower()
    return sum(value for (one, other), value in pairs.items() if _stand_near(_pattern(one, other), lowered))


def _stand_near(pattern: re.Pattern[str], lowered: str) -> bool:
    found = pattern.search(lowered)
    while found is not None:
        if not found.start() or not _is_of_word(lowered[found.start() - 1]):
            return True
        found = pattern.search(lowered, found.start() + 1)
    return False


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=512)
def _pattern(one: str, other: str) -> re.Pattern[str]:
    # It begins with plain characters: a look behind it would make the search several times as slow.
    first, second = (re.escape(word.lower()[: max(_SHORTEST, len(word) - _ENDING)]) for word in (one, other))
    return re.compile(rf"{first}\w*\W+(?:\w+\W+){{0,{_BETWEEN}}}?{second}")
