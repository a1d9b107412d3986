"""Words and meaning in one order, weighed by the question; pure functions over what the indexes answered.

Plain rank fusion throws away how good a list is: it takes the best of a poor list for as good as that of a strong one.
Here a list by words counts as far as its best hit holds what the question asks for, measured in rarity: a question
whose rare words nobody wrote leaves the order to meaning. Meaning counts by its cosine, squared, which is comparable
from question to question. How much each counts stands in `weights`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Protocol

from daemon.recall.ranking import weights

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


_MOST_READ = 100_000  # characters of parts in which close words are looked for: the best parts come first
_CAPITALISED = re.compile(r"(?<![\w./:@-])[A-Z][a-z]+(?:['’]s)?(?![\w/:@-]|\.\w)")


class Scored(Protocol):
    """A candidate, as the indexes give it: a message may come several times, once for each part or chunk."""

    @property
    def message_id(self) -> str:
        """Its message."""

    @property
    def score(self) -> float:
        """More is better: of any scale for words, a cosine for meaning."""

    @property
    def text(self) -> str:
        """The part's text; a window or a chunk may have none."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of the question that it holds, as the question writes them."""


@dataclass(frozen=True)
class Facts:
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

    def closeness(self, text: str) -> float:
        """The share, 0 to 1, of the question's rarity that neighbours make up which stand close in the text too."""
        return min(1.0, closeness(self._pairs, text)) if self._pairs else 0.0

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


def meaning(text: str, facts: Facts) -> str:
    """The text to embed for a question: proper names that so many texts have that they tell nothing become I and my.

    A name draws the vector of a short question to itself: whoever asks what Anna painted gets all texts that greet
    Anna. Where she is in every conversation, what she painted stands there as "I painted". Words that are not
    capitalised, identifiers, paths and rare names stay, and so does the first word, capitalised whatever it is.
    """
    if facts.documents <= 0:
        return text
    shares = {term.casefold(): count / facts.documents for term, count in facts.frequencies.items()}

    def kept(found: re.Match[str]) -> str:
        word = found.group().casefold()
        bare = word[:-2] if word.endswith(("'s", "’s")) else word
        share = max(shares.get(word, 0.0), shares.get(bare, 0.0))
        if text[: found.start()].strip() == "" or share <= weights.COMMON_NAME:
            return found.group()
        return "I" if bare == word else "my"

    return " ".join(_CAPITALISED.sub(kept, text).split())


def fuse(lexical: Sequence[Scored], windows: Sequence[Scored], semantic: Sequence[Scored], facts: Facts) -> list[Fused]:
    """Every candidate message once, best first, by id among equals.

    `lexical` are parts by their words, `windows` messages by the words of theirs and their neighbours', `semantic`
    chunks by the cosine of their meaning. A list may be empty: the others then decide, in the order they have.
    """
    parts: dict[str, dict[str, float]] = {}

    def add(name: str, values: Mapping[str, float]) -> None:
        for message_id, value in values.items():
            parts.setdefault(message_id, {})[name] = value

    add("windows", _shared(windows, weights.WINDOWS, facts))
    add("lexical", _with_close(_shared(lexical, weights.LEXICAL, facts, weights.COVERAGE), lexical, facts))
    weight = semantic_weight(facts)
    add("semantic", {message_id: weight * max(0.0, score) ** 2 for message_id, score in _best(semantic).items()})
    fused = [Fused(message_id, sum(some.values()), some) for message_id, some in parts.items()]
    return sorted(fused, key=lambda one: (-round(one.score, 12), one.message_id))


def semantic_weight(facts: Facts) -> float:
    """What a cosine of 1 counts for this question."""
    if facts.is_exact and not facts.is_worded:
        return weights.SEMANTIC_OF_NAMES
    if facts.is_partly_embedded:
        return weights.SEMANTIC_IN_PART
    return weights.SEMANTIC_BESIDE_NAMES if facts.is_exact else weights.SEMANTIC


def _best(candidates: Sequence[Scored]) -> dict[str, float]:
    """Each message's best score."""
    best: dict[str, float] = {}
    for one in candidates:
        best[one.message_id] = max(one.score, best.get(one.message_id, one.score))
    return best


def _with_close(values: Mapping[str, float], parts: Sequence[Scored], facts: Facts) -> dict[str, float]:
    """What each message counts by its parts, and besides by the words that stand as close in one as in the question."""
    closest: dict[str, float] = {}
    left = _MOST_READ if facts.neighbours else 0
    for one in parts:
        if left <= 0:
            break
        left -= min(len(one.text), MOST_READ)
        closest[one.message_id] = max(facts.closeness(one.text), closest.get(one.message_id, 0.0))
    return {
        message_id: value + weights.PROXIMITY * closest.get(message_id, 0.0) for message_id, value in values.items()
    }


def _shared(candidates: Sequence[Scored], weight: float, facts: Facts, for_coverage: float = 0.0) -> dict[str, float]:
    """Scores relative to the list's best, of the weight that the list deserves."""
    top = max((one.score for one in candidates), default=0.0)
    if top <= 0:
        return {}
    covered = [facts.coverage(one.terms) for one in candidates]
    deserved = weight * (max(covered) or 1.0)  # nothing known of the terms: the list is believed
    found: dict[str, float] = {}
    for one, share in zip(candidates, covered, strict=True):
        value = deserved * max(0.0, one.score) / top + for_coverage * share
        found[one.message_id] = max(value, found.get(one.message_id, value))
    return found
