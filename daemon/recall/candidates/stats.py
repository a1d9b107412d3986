"""Statistics of a question from the word index: how rare its words are, and which of them are neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from daemon.index import LexicalIndex
from daemon.recall import weights
from daemon.recall.query.parse import MOST_SHORT, Query

MOST_READ = 4000
"""Characters of one text that are searched for neighbouring words."""


_BETWEEN = 2  # words


_SHORTEST = 4


_ENDING = 3


_MOST_PAIRS = 8


_CAPITALISED = re.compile(r"(?<![\w./:@-])[A-Z][a-z]+(?:['’]s)?(?![\w/:@-]|\.\w)")


Pair = tuple[str, str]


def neighbours(question: str, terms: Sequence[str]) -> tuple[Pair, ...]:
    """At most _MOST_PAIRS pairs of terms that are neighbours in the question; `terms` are in its order."""
    pairs: list[Pair] = []
    place = 0
    for first, second in pairwise(terms):
        place = max(place, question.find(first, place))
        if re.match(rf"\W+{re.escape(second)}(?!\w)", question[place + len(first) :]):
            pairs.append((first, second))
    return tuple(pairs[:_MOST_PAIRS])


def proximity(pairs: Mapping[Pair, float], text: str) -> float:
    """The sum of the values of the pairs that are close to each other in `text`, in their order."""
    lowered = text[:MOST_READ].lower()
    return sum(value for pair, value in pairs.items() if _occurs(_pattern(*pair), lowered))


def _occurs(pattern: re.Pattern[str], lowered: str) -> bool:
    match = pattern.search(lowered)
    while match is not None:
        if not match.start() or not _is_of_word(lowered[match.start() - 1]):
            return True
        match = pattern.search(lowered, match.start() + 1)
    return False


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=512)
def _pattern(first: str, second: str) -> re.Pattern[str]:
    # The pattern begins with plain characters, because a lookbehind would make the search several times slower.
    begin, end = (re.escape(word.lower()[: max(_SHORTEST, len(word) - _ENDING)]) for word in (first, second))
    return re.compile(rf"{begin}\w*\W+(?:\w+\W+){{0,{_BETWEEN}}}?{end}")


@dataclass(frozen=True)
class QueryStats:
    """What the index knows of a question.

    * `documents`: number of texts; `frequencies`: in how many of them each content term of the question is, 0 for none
    * `is_exact`: the question names an identifier, a path or a quoted phrase; `is_worded`: it has other words as well
    * `is_partly_embedded`: not all messages have vectors yet
    * `legible`: share of the question that the model can read; `known`: share in words that it knows
    * `legible_texts`: share of the messages with words of the question that the model can read
    * `neighbours`: pairs of terms that are neighbours in the question
    """

    documents: int
    frequencies: Mapping[str, int]
    is_exact: bool = False
    is_worded: bool = False
    is_partly_embedded: bool = False
    legible: float = 1.0
    known: float = 1.0
    legible_texts: float = 1.0
    neighbours: tuple[Pair, ...] = ()

    def rarity(self, term: str) -> float:
        """BM25's inverse document frequency, above 0; 0 for a term that is not of the question."""
        return self._rarities.get(term, 0.0)

    def coverage(self, terms: Sequence[str]) -> float:
        """The share, 0 to 1, of the question's rarity in these terms."""
        whole = self._whole
        return min(1.0, sum(map(self.rarity, set(terms))) / whole) if whole > 0 else 0.0

    def proximity(self, text: str) -> float:
        """The share, 0 to 1, of the question's rarity in neighbours that are also close to each other in the text."""
        return min(1.0, proximity(self._pairs, text)) if self._pairs else 0.0

    # Computed once for a question, not for each of its hundreds of candidates.

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        # The counts are taken at slightly different moments, so a word may seem to be in more texts than there are.
        having = {term: min(count, self.documents) for term, count in self.frequencies.items()}
        return {term: math.log1p((self.documents - count + 0.5) / (count + 0.5)) for term, count in having.items()}

    @cached_property
    def _whole(self) -> float:
        return sum(self._rarities.values())

    @cached_property
    def _pairs(self) -> Mapping[Pair, float]:
        whole = self._whole
        return {pair: sum(map(self.rarity, pair)) / whole for pair in self.neighbours} if whole > 0 else {}


def text_to_embed(text: str, stats: QueryStats) -> str:
    """The text to embed for a question: very common proper names become "I" and "my".

    A name dominates the vector of a short question: "what did Anna paint" would find all texts that greet Anna. If Anna
    takes part in every conversation, the answer reads "I painted". Words without a capital, identifiers, paths, rare
    names and the first word stay.
    """
    if stats.documents <= 0:
        return text
    shares = {term.casefold(): count / stats.documents for term, count in stats.frequencies.items()}

    def plain_word(name: re.Match[str]) -> str:
        word = name.group().casefold()
        bare = word[:-2] if word.endswith(("'s", "’s")) else word
        share = max(shares.get(word, 0.0), shares.get(bare, 0.0))
        if text[: name.start()].strip() == "" or share <= weights.COMMON_NAME:
            return name.group()
        return "I" if bare == word else "my"

    return " ".join(_CAPITALISED.sub(plain_word, text).split())


def stats_of(lexical: LexicalIndex, query: Query) -> QueryStats:
    """How rare the question's words are."""
    documents, frequencies = lexical.frequencies(query.searched)
    pairs, is_worded = neighbours(query.searched, tuple(frequencies)), len(query.words) > MOST_SHORT
    return QueryStats(documents, frequencies, is_exact=query.is_exact, is_worded=is_worded, neighbours=pairs)
