"""Spellings near to what was asked, for a query that may have typing errors, always behind what has it as asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter

from daemon.index import Filters, Match, tokens
from daemon.index.lexical.query_terms import Near
from daemon.index.lexical.ranking import Found, Ranking
from daemon.index.lexical.schema import GROUPS, Group
from daemon.index.lexical.searcher import Reading
from daemon.index.lexical.vocabulary import Vocabulary, allowed
from daemon.index.tokens import Form, Term

_MOST_NEAR = 8  # spellings of one word
_SURE = 1000  # a word that so many parts have is no typing error
_WORTH = (1.0, 0.5, 0.3)  # of a word that differs in so many places


def spellings(reading: Reading, vocabulary: Vocabulary, word: str, limit: int) -> list[tuple[int, str, int]]:
    """(distance, word, number of parts), nearest first, then most frequent."""
    folded = "".join(chain.from_iterable(term.pieces for term in tokens.terms(word)))
    most = allowed(folded)
    if not most:
        return []
    found: list[tuple[int, str, int]] = []
    for distance, others in groupby(vocabulary.near(folded, most), key=itemgetter(0)):
        if len(found) >= limit:
            break  # what is farther comes behind them, and to count it takes time
        counted = [(distance, other, _parts(reading, other)) for _, other in others]
        found += sorted((one for one in counted if one[2]), key=lambda one: (-one[2], one[1]))
    return found[:limit]


def near_words(reading: Reading, vocabulary: Vocabulary, wanted: Sequence[Term]) -> list[tuple[int, Near]]:
    """For each term, by its number, the words that may have been meant: of a name its pieces apart, too."""
    found: list[tuple[int, Near]] = []
    for number, term in enumerate(wanted):
        asked = dict.fromkeys((term.whole, *term.spelt) if term.form is not Form.RUN else ())
        known = {term.whole, *term.spelt}
        for word in asked:
            if _parts(reading, word) < (_SURE if word == term.whole else 1):
                found += [
                    (number, Near(term.text, other, distance))
                    for distance, other, _ in spellings(reading, vocabulary, word, _MOST_NEAR)
                    if other not in known
                ]
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """A query with the near spellings of its terms, each with the number of its term."""

    wanted: Sequence[Term]
    quoted: Sequence[tuple[int, str]]
    near: Sequence[tuple[int, Near]]
    _worth: list[float] = field(default_factory=list, init=False)

    def worth(self, reading: Reading) -> list[float]:
        """What each term counts in this state of the index: the same in every group, so looked up once."""
        if not self._worth:
            for place, term in enumerate(self.wanted):
                self._worth.append(_rarity(reading, term, [one for number, one in self.near if number == place]))
        return self._worth


def by_closeness(reading: Reading, group: Group, asked: Asked, filters: Filters, limit: int) -> list[Found]:
    """Candidates of one group; `score` is a whole number for how much of the query they have, and how well below 1."""
    numbers = {one: number for number, one in asked.near}
    worth = asked.worth(reading)
    found = Ranking(reading, group, asked.wanted, asked.quoted, asked.near).best(filters, limit)
    for one in found:
        held = dict.fromkeys(one.held, 1.0)
        for spelling in one.near:
            number = numbers[spelling]
            held[number] = max(held.get(number, 0.0), _WORTH[spelling.distance])
        covered = sum(worth[number] * share for number, share in held.items()) / sum(worth)
        well = one.score * group.weight
        one.score = round(1000 * covered) + well / (well + 10)
    return found


def pairs(match: Match, found: Found, wanted: Sequence[Term]) -> tuple[tuple[str, str], ...]:
    """(asked, found) for each term that the match has only nearly, the found word as it is written there."""
    exact = {wanted[number].text for number in found.held}
    best: dict[str, Near] = {}
    for near in sorted(found.near, key=lambda one: one.distance):
        if near.asked not in exact:
            best.setdefault(near.asked, near)
    return tuple((asked, _written(match.text, near.word)) for asked, near in best.items())


def _parts(reading: Reading, word: str) -> int:
    return sum(reading.frequency(group.spelt, word) for group in GROUPS)


def _rarity(reading: Reading, term: Term, near: Sequence[Near]) -> float:
    """What a term counts: the rarer the more; of one that nobody wrote, its likeliest spelling."""
    total = reading.searcher.num_docs
    counts = [sum(reading.frequency(group.words, term.whole) for group in GROUPS)]
    counts += [_parts(reading, one.word) for one in near[:1]]
    known = [count for count in counts if count] or [1]
    return math.log(1 + (total + 1) / known[0])


def _written(text: str, word: str) -> str:
    """`word` as the text has it; written with separators there, it is given as it was folded."""
    start = text.lower().find(word)
    return text[start : start + len(word)] if start >= 0 else word
