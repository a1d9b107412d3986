"""Scores words and meaning together, weighed by the query.

Plain rank fusion ignores how good a list is: it takes the best of a poor list for as good as that of a strong one. Here
a message's score is the sum of a few features, each 0 to 1 and with one weight (`weights`). Those by words count as far
as the best match holds what the query asks for, measured in rarity: if nobody wrote the query's rare words, meaning
decides. Every candidate is scored by all of them, whichever side found it: nothing counts as zero that could be known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
    says more than that. `is_partly_embedded`: not all messages have vectors yet. `legible`: the share of the question
    that the model can read. `neighbours`: terms that stand side by side in the question.
    """

    documents: int
    frequencies: Mapping[str, int]
    is_exact: bool = False
    is_worded: bool = False
    is_partly_embedded: bool = False
    legible: float = 1.0
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
class Features:
    """What speaks for a message, each 0 to 1.

    `words`: BM25 of its best part, relative to the best of all candidates. `window`: the same of the message read with
    its neighbours, less the longer it is itself. `coverage`: the share of the question's rarity that one part holds.
    `proximity`: the share that stands in a part as near together as in the question. `meaning`: its nearest chunk's
    cosine, from that of unrelated texts on.
    """

    words: float = 0.0
    window: float = 0.0
    coverage: float = 0.0
    proximity: float = 0.0
    meaning: float = 0.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A message's place in the order; `parts` says what each feature added to the score, for explain."""

    message_id: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


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
    """Every candidate message once, best first, by id among equals; the arguments are those of `features`."""
    counted = {**weights.FEATURES, "meaning": meaning_weight(stats)}
    fused: list[Fused] = []
    for message_id, features in features_of(lexical, windows, semantic, stats).items():
        parts = {name: weight * getattr(features, name) for name, weight in counted.items()}
        fused.append(Fused(message_id, sum(parts.values()), parts))
    return sorted(fused, key=lambda match: (-round(match.score, 12), match.message_id))


def features_of(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> dict[str, Features]:
    """What speaks for each candidate message, by id.

    `lexical` are parts by their words, `windows` messages by the words of theirs and their neighbours', `semantic`
    chunks by the cosine of their meaning. What is in none of a kind scores nothing there, so each candidate should be
    in each that can score it, however low; the order within them does not matter.
    """
    words, window = _best_shares(lexical, stats), _best_shares(windows, stats)
    lengths = {match.message_id: match.length for match in windows}
    coverage = _best((match.message_id, stats.coverage(match.terms)) for match in lexical)
    proximity = _closest(lexical, stats)
    meaning = _best((match.message_id, _meaning(match.score)) for match in semantic)
    return {
        message_id: Features(
            words.get(message_id, 0.0),
            window.get(message_id, 0.0) * weights.WINDOW_FADES / (weights.WINDOW_FADES + lengths.get(message_id, 0)),
            coverage.get(message_id, 0.0),
            proximity.get(message_id, 0.0),
            meaning.get(message_id, 0.0),
        )
        for message_id in dict.fromkeys((*words, *window, *meaning))
    }


def meaning_weight(stats: QueryStats) -> float:
    """What a text counts for this question that means just the same."""
    share = 1.0
    if stats.is_exact and not stats.is_worded:
        share = weights.MEANING_OF_NAMES
    elif stats.is_partly_embedded:
        share = weights.MEANING_IN_PART
    elif stats.is_exact:
        share = weights.MEANING_BESIDE_NAMES
    readable = min(1.0, max(0.0, 2 * stats.legible - 1))  # of half a question the meaning is a guess
    return share * readable * weights.FEATURES["meaning"]


def _meaning(cosine: float) -> float:
    return min(1.0, max(0.0, (cosine - weights.UNRELATED) / (weights.ALIKE - weights.UNRELATED)))


def _best(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each message's best value."""
    best: dict[str, float] = {}
    for message_id, value in values:
        best[message_id] = max(value, best.get(message_id, value))
    return best


def _closest(parts: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """Each message's best proximity, as far as texts are read for it: those of the best parts."""
    closest: list[tuple[str, float]] = []
    left = _MOST_READ_IN_ALL if stats.neighbours else 0
    for match in sorted(parts, key=lambda match: -match.score):
        if left <= 0:
            break
        left -= min(len(match.text), MOST_READ)
        closest.append((match.message_id, stats.proximity(match.text)))
    return _best(closest)


def _best_shares(candidates: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """Each message's best score relative to the best of all, as far as that one holds what is asked for."""
    top = max((match.score for match in candidates), default=0.0)
    if top <= 0:
        return {}
    deserved = max(stats.coverage(match.terms) for match in candidates) or 1.0  # nothing known of the terms: believed
    return _best((match.message_id, deserved * max(0.0, match.score) / top) for match in candidates)
