"""Scores words and meaning together, weighed by the query.

Plain rank fusion ignores how good a list is: it takes the best of a poor list for as good as that of a strong one. Here
a list by words counts as far as its best match holds what the query asks for, measured in rarity: if nobody wrote the
query's rare words, meaning decides. Meaning counts by its cosine, squared, which is comparable between queries. How
much each counts stands in `weights`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

from daemon.index import Match
from daemon.recall.ranking import weights

MOST_READ = 4000
"""Characters of one text that are searched for near words."""
_MOST_READ_IN_ALL = 100_000
"""The same of all parts: the best parts come first."""
_BETWEEN = 2  # words
_SHORTEST = 4
_ENDING = 3
_MOST_PAIRS = 8
_CAPITALISED = re.compile(r"(?<![\w./:@-])[A-Z][a-z]+(?:['’]s)?(?![\w/:@-]|\.\w)")

Pair = tuple[str, str]


def neighbours(question: str, terms: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs of terms that stand side by side in the question; `terms` are in its order. At most _MOST_PAIRS."""
    pairs: list[Pair] = []
    place = 0
    for first, second in pairwise(terms):
        place = max(place, question.find(first, place))
        if re.match(rf"\W+{re.escape(second)}(?!\w)", question[place + len(first) :]):
            pairs.append((first, second))
    return tuple(pairs[:_MOST_PAIRS])


def proximity(pairs: Mapping[Pair, float], text: str) -> float:
    """The values, summed up, of those pairs that stand near each other in `text`, in their order."""
    lowered = text[:MOST_READ].lower()
    return sum(value for pair, value in pairs.items() if _stand_near(_pattern(*pair), lowered))


def _stand_near(pattern: re.Pattern[str], lowered: str) -> bool:
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
    # It begins with plain characters: a look behind it would make the search several times as slow.
    begin, end = (re.escape(word.lower()[: max(_SHORTEST, len(word) - _ENDING)]) for word in (first, second))
    return re.compile(rf"{begin}\w*\W+(?:\w+\W+){{0,{_BETWEEN}}}?{end}")


@dataclass(frozen=True)
class QueryStats:
    """What the index knows of a question.

    `documents` is how many texts it has, `frequencies` in how many of them each content term of the question stands;
    a term that nobody wrote is there with 0. `is_exact`: names an identifier, a path or a quoted phrase; `is_worded`:
    says more than that. `is_partly_embedded`: not all messages have vectors yet. `neighbours`: terms that stand side by
    side in the question.
    """

    documents: int
    frequencies: Mapping[str, int]
    is_exact: bool = False
    is_worded: bool = False
    is_partly_embedded: bool = False
    neighbours: tuple[Pair, ...] = ()

    def rarity(self, term: str) -> float:
        """BM25's inverse document frequency, above 0; 0 for a term that is not of the question."""
        return self._rarities.get(term, 0.0)

    def coverage(self, terms: Sequence[str]) -> float:
        """The share, 0 to 1, of the question's rarity that these terms make up."""
        whole = self._whole
        return min(1.0, sum(map(self.rarity, set(terms))) / whole) if whole > 0 else 0.0

    def proximity(self, text: str) -> float:
        """The share, 0 to 1, of the question's rarity that neighbours make up which stand close in the text too."""
        return min(1.0, proximity(self._pairs, text)) if self._pairs else 0.0

    # Worked out once for a question, not for each of its hundreds of candidates.

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        # The sources count their texts at slightly different moments: never more texts with a word than there are.
        having = {term: min(count, self.documents) for term, count in self.frequencies.items()}
        return {term: math.log1p((self.documents - some + 0.5) / (some + 0.5)) for term, some in having.items()}

    @cached_property
    def _whole(self) -> float:
        return sum(self._rarities.values())

    @cached_property
    def _pairs(self) -> Mapping[Pair, float]:
        whole = self._whole
        return {pair: sum(map(self.rarity, pair)) / whole for pair in self.neighbours} if whole > 0 else {}


@dataclass(frozen=True, slots=True)
class Fused:
    """A message's place in the order; `parts` says what each source added to the score, for explain."""

    message_id: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The lists that had it."""
        return tuple(self.parts)


def text_to_embed(text: str, stats: QueryStats) -> str:
    """The text to embed for a question: proper names that so many texts have that they tell nothing become I and my.

    A name draws the vector of a short question to itself: whoever asks what Anna painted gets all texts that greet
    Anna. Where she is in every conversation, what she painted stands there as "I painted". Words that are not
    capitalised, identifiers, paths and rare names stay, and so does the first word, capitalised whatever it is.
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


def fuse(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> list[Fused]:
    """Every candidate message once, best first, by id among equals.

    `lexical` are parts by their words, `windows` messages by the words of theirs and their neighbours', `semantic`
    chunks by the cosine of their meaning. A list may be empty: the others then decide, in the order they have.
    """
    parts: dict[str, dict[str, float]] = {}

    def add(name: str, values: Mapping[str, float]) -> None:
        for message_id, value in values.items():
            parts.setdefault(message_id, {})[name] = value

    add("windows", _relative(windows, weights.WINDOWS, stats))
    add("lexical", _with_proximity(_relative(lexical, weights.LEXICAL, stats, weights.COVERAGE), lexical, stats))
    weight = semantic_weight(stats)
    add("semantic", {message_id: weight * max(0.0, score) ** 2 for message_id, score in _best(semantic).items()})
    fused = [Fused(message_id, sum(some.values()), some) for message_id, some in parts.items()]
    return sorted(fused, key=lambda match: (-round(match.score, 12), match.message_id))


def semantic_weight(stats: QueryStats) -> float:
    """What a cosine of 1 counts for this question."""
    if stats.is_exact and not stats.is_worded:
        return weights.SEMANTIC_OF_NAMES
    if stats.is_partly_embedded:
        return weights.SEMANTIC_IN_PART
    return weights.SEMANTIC_BESIDE_NAMES if stats.is_exact else weights.SEMANTIC


def _best(candidates: Sequence[Match]) -> dict[str, float]:
    """Each message's best score."""
    best: dict[str, float] = {}
    for match in candidates:
        best[match.message_id] = max(match.score, best.get(match.message_id, match.score))
    return best


def _with_proximity(values: Mapping[str, float], parts: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """`values`, and for each message what the words count that stand as near each other in a part as in the query."""
    closest: dict[str, float] = {}
    left = _MOST_READ_IN_ALL if stats.neighbours else 0
    for match in parts:
        if left <= 0:
            break
        left -= min(len(match.text), MOST_READ)
        closest[match.message_id] = max(stats.proximity(match.text), closest.get(match.message_id, 0.0))
    return {
        message_id: value + weights.PROXIMITY * closest.get(message_id, 0.0) for message_id, value in values.items()
    }


def _relative(
    candidates: Sequence[Match], weight: float, stats: QueryStats, for_coverage: float = 0.0
) -> dict[str, float]:
    """Each message's best score relative to the list's best, times the weight that the list deserves."""
    top = max((match.score for match in candidates), default=0.0)
    if top <= 0:
        return {}
    covered = [stats.coverage(match.terms) for match in candidates]
    deserved = weight * (max(covered) or 1.0)  # nothing known of the terms: the list is believed
    best: dict[str, float] = {}
    for match, share in zip(candidates, covered, strict=True):
        value = deserved * max(0.0, match.score) / top + for_coverage * share
        best[match.message_id] = max(value, best.get(match.message_id, value))
    return best
