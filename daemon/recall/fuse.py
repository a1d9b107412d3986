"""Words and meaning in one order, weighed by the question; pure functions over what the indexes answered.

Plain rank fusion throws away how good a list is: it takes the best of a poor list for as good as that of a strong one.
Here a list by words counts as far as its best hit holds what the question asks for, measured in rarity: a question
whose rare words nobody wrote leaves the order to meaning. Meaning counts by its cosine, squared, which is comparable
from question to question. The constants are one set for conversations and for code, chosen where both halves of both
question sets do well (bench/quality_locomo.py, bench/quality_code.py). No index, no archive.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

WINDOWS = 0.7
"""What the best text counts that is read together with its neighbours, if it holds all of the question."""
LEXICAL = 0.2
"""The same for the best part."""
COVERAGE = 0.3
"""What a part counts that holds all of the question, however long it is and however often it says it."""
SEMANTIC = 1.8
"""What a cosine of 1 counts. It counts squared: texts that have nothing to do with a question still have one of 0.2."""
SEMANTIC_OF_NAMES = 0.1
"""The same where a name is asked for: meaning is a poor guide to a name, and decides only among equals."""
SEMANTIC_IN_PART = 0.5
"""The same while only some of the messages have vectors: what has none yet must not stand below what has."""
FURTHER = 0.3
"""How much each further message of a group adds, of what the one before it would."""

TOO_COMMON = 0.1
"""A capitalised word in a larger share of the texts than this is taken out of the text whose meaning is asked."""
_FURTHEST = 3
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
    def terms(self) -> tuple[str, ...]:
        """The terms of the question that it holds, as the question writes them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the index knows of a question.

    `documents` is how many texts it has, `frequencies` in how many of them each content term of the question stands;
    a term that nobody wrote is there with 0. `is_exact`: names an identifier, a path or a quoted phrase.
    `is_partly_embedded`: not all messages have vectors yet.
    """

    documents: int
    frequencies: Mapping[str, int]
    is_exact: bool = False
    is_partly_embedded: bool = False

    def rarity(self, term: str) -> float:
        """BM25's inverse document frequency, above 0; 0 for a term that is not of the question."""
        if term not in self.frequencies:
            return 0.0
        # The sources count their texts at slightly different moments: never more texts with a word than there are.
        having = min(self.frequencies[term], self.documents)
        return math.log1p((self.documents - having + 0.5) / (having + 0.5))

    def coverage(self, terms: Sequence[str]) -> float:
        """The share, 0 to 1, of the question's rarity that these terms make up."""
        whole = sum(self.rarity(term) for term in self.frequencies)
        return min(1.0, sum(self.rarity(term) for term in set(terms)) / whole) if whole > 0 else 0.0


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


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that belong together, best first."""

    key: str
    score: float
    members: tuple[Fused, ...]


def meaning(text: str, facts: Facts) -> str:
    """The text to embed for a question: without proper names that so many texts have that they tell nothing.

    A name draws the vector of a short question to itself: whoever asks what Anna painted gets all texts that greet
    Anna. Where she is in every conversation only "what painted" tells one from another. Words that are not
    capitalised, identifiers, paths and rare names stay, and so does a text of which nothing else would be left.
    """
    if facts.documents <= 0:
        return text
    shares = {term.casefold(): count / facts.documents for term, count in facts.frequencies.items()}

    def kept(found: re.Match[str]) -> str:
        word = found.group().casefold()
        bare = word[:-2] if word.endswith(("'s", "’s")) else word
        return " " if max(shares.get(word, 0.0), shares.get(bare, 0.0)) > TOO_COMMON else found.group()

    left = " ".join(_CAPITALISED.sub(kept, text).split())
    return left if sum(character.isalpha() for character in left) > 2 and " " in left else text


def fuse(lexical: Sequence[Scored], windows: Sequence[Scored], semantic: Sequence[Scored], facts: Facts) -> list[Fused]:
    """Every candidate message once, best first, by id among equals.

    `lexical` are parts by their words, `windows` messages by the words of theirs and their neighbours', `semantic`
    chunks by the cosine of their meaning. A list may be empty: the others then decide, in the order they have.
    """
    parts: dict[str, dict[str, float]] = {}

    def add(name: str, values: Mapping[str, float]) -> None:
        for message_id, value in values.items():
            parts.setdefault(message_id, {})[name] = value

    add("windows", _shared(windows, WINDOWS, facts))
    add("lexical", _shared(lexical, LEXICAL, facts, COVERAGE))
    weight = semantic_weight(facts)
    add("semantic", {message_id: weight * max(0.0, score) ** 2 for message_id, score in _best(semantic).items()})
    fused = [Fused(message_id, sum(some.values()), some) for message_id, some in parts.items()]
    return sorted(fused, key=lambda one: (-round(one.score, 12), one.message_id))


def semantic_weight(facts: Facts) -> float:
    """What a cosine of 1 counts for this question."""
    if facts.is_exact:
        return SEMANTIC_OF_NAMES
    return SEMANTIC_IN_PART if facts.is_partly_embedded else SEMANTIC


def grouped(fused: Sequence[Fused], key: Callable[[str], str]) -> list[Group]:
    """Groups of messages, best first: the best message counts whole, the next ones with falling weight.

    `key` names a message's group. Three messages count at most, so that a long session gains nothing by its length.
    """
    members: dict[str, list[Fused]] = {}
    for one in sorted(fused, key=lambda one: (-round(one.score, 12), one.message_id)):
        members.setdefault(key(one.message_id), []).append(one)
    groups = [
        Group(name, sum(one.score * FURTHER**place for place, one in enumerate(some[:_FURTHEST])), tuple(some))
        for name, some in members.items()
    ]
    return sorted(groups, key=lambda group: (-round(group.score, 12), group.key))


def _best(candidates: Sequence[Scored]) -> dict[str, float]:
    """Each message's best score."""
    best: dict[str, float] = {}
    for one in candidates:
        best[one.message_id] = max(one.score, best.get(one.message_id, one.score))
    return best


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
