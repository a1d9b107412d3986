"""Words that are spelt like those of a query: the index's vocabulary in memory, and the parts that have them.

The distance of two words is the number of letters to add, remove, change or exchange with their neighbours. Many words
are compared at a time: words of one length are rows of a table, and are compared letter by letter only if the sets of
their letters are similar. A part with a word of the query always ranks above a part with a similar
spelling.
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from daemon.index import Filters, Match, tokens
from daemon.index.lexical.query_terms import Spelling
from daemon.index.lexical.ranking import Candidate, Ranking
from daemon.index.lexical.required_words import Endings
from daemon.index.lexical.schema import GROUPS, Group
from daemon.index.lexical.searcher import Snapshot
from daemon.index.tokens import Form, Term

Codes: TypeAlias = NDArray[np.uint32]
Words: TypeAlias = NDArray[np.str_]
Letters: TypeAlias = NDArray[np.uint64]
_REMEMBERED = 256
"""Words whose similar words are cached, because answers look up the same words several times."""


def allowed(word: str) -> int:
    """In how many places a spelling of `word` may differ; 0 for short words and words with other signs than letters."""
    if not tokens.is_spelt(word) or len(word) < 4:
        return 0
    return 1 if len(word) < 8 else 2


class Vocabulary:
    """A set of words that finds similar spellings, among words of letters only. Thread-safe.

    `endings` has all words by their endings after `know_endings`; until then it is None.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.endings: Endings | None = None
        self._lock = threading.Lock()
        self._sorted: dict[int, tuple[Words, Letters]] = {}
        self._fresh: defaultdict[int, set[str]] = defaultdict(set)
        self._remembered: dict[tuple[str, int], tuple[tuple[int, str], ...]] = {}
        self.add(words)
        for length in list(self._fresh):
            self._table(length)

    def add(self, words: Iterable[str]) -> None:
        """Add words; known ones change nothing."""
        words = set(words)
        with self._lock:
            if self.endings is not None:
                self.endings.add(words)
            for word in words:
                if tokens.is_spelt(word):
                    self._fresh[len(word)].add(word)
            self._remembered = {}  # a new dict, so that a lookup in progress writes to the old one

    def know_endings(self, words: Iterable[str]) -> None:
        """Fill `endings` with all words, and keep it up to date. No words may be added meanwhile."""
        endings = Endings()
        endings.add(words)
        self.endings = endings

    def similar(self, word: str, most: int) -> list[tuple[int, str]]:
        """(distance, word) for all others at most `most` apart, the most similar first."""
        remembered = self._remembered  # read before the words, see `add`
        known = remembered.get((word, most))
        if known is None:
            known = tuple(self._compared(word, most))
            if len(remembered) >= _REMEMBERED:
                remembered.clear()
            remembered[word, most] = known
        return list(known)

    def _compared(self, word: str, most: int) -> list[tuple[int, str]]:
        word_letters = _letters(_codes(np.array([word])))[0]
        possible = []
        for length in range(max(1, len(word) - most), len(word) + most + 1):
            words, letters = self._table(length)
            plausible = words[np.bitwise_count(letters ^ word_letters) <= 2 * most]
            if len(plausible):
                possible.append(plausible)
        if not possible:
            return []
        distances = _distances(possible, word, most)
        words = np.concatenate(possible)
        is_similar = distances <= most
        similar = dict(zip(words[is_similar].tolist(), distances[is_similar].tolist(), strict=True))
        similar.pop(word, None)
        return sorted((distance, neighbour) for neighbour, distance in similar.items())

    def _table(self, length: int) -> tuple[Words, Letters]:
        """The words of one length in order; new ones are sorted in here."""
        with self._lock:
            words, letters = self._sorted.get(length) or (np.empty(0, f"U{length}"), np.empty(0, np.uint64))
            fresh = self._fresh.pop(length, None)
            if fresh:
                added = np.array(sorted(fresh), dtype=f"U{length}")
                places = np.searchsorted(words, added)
                are_new = np.ones(len(added), dtype=bool)
                inside = places < len(words)
                are_new[inside] = words[places[inside]] != added[inside]
                added, places = added[are_new], places[are_new]
                words = np.insert(words, places, added)
                letters = np.insert(letters, places, _letters(_codes(added)))
                self._sorted[length] = (words, letters)
            return words, letters


def _codes(words: Words) -> Codes:
    """A row of letters for each word; all are equally long."""
    return words.view(np.uint32).reshape(len(words), words.dtype.itemsize // 4)


def _letters(rows: Codes) -> Letters:
    """The letters that occur in each row, and those that occur in it twice, as bits.

    One change alters two of them at most. Unlike letters may share one, which hides no similar word.
    """
    once, twice = np.zeros((2, len(rows)), dtype=np.uint64)
    for column in rows.T:
        bits = np.uint64(1) << (column % 32).astype(np.uint64)
        twice |= once & bits
        once |= bits
    letters: Letters = once | twice << np.uint64(32)
    return letters


def _distances(possible: Sequence[Words], word: str, most: int) -> NDArray[np.uint8]:
    """How far each word is from `word`, exact up to `most`: the usual table of two words, for all at once.

    `possible` are words of different lengths, the shorter ones first. Only the table's diagonal is filled, `most` wide
    on both sides; what is outside is farther.
    """
    lengths = np.concatenate([np.full(len(words), words.dtype.itemsize // 4) for words in possible])
    width, longest, far = len(word), int(lengths[-1]), most + 1
    columns = np.zeros((longest, len(lengths)), dtype=np.uint32)
    for words in possible:
        rows = _codes(words)
        columns[: rows.shape[1], lengths == rows.shape[1]] = rows.T
    same = columns[:, None, :] == _codes(np.array([word]))[0][None, :, None]
    changed = (~same).astype(np.uint8)
    swapped = np.where(same[1:, :-1] & same[:-1, 1:], np.uint8(1), np.uint8(far))
    before = np.full((width + 1, len(lengths)), far, dtype=np.uint8)
    last = before.copy()
    last[: most + 1] = np.arange(min(width, most) + 1, dtype=np.uint8)[:, None]
    distances = np.full(len(lengths), far, dtype=np.uint8)
    for j in range(1, longest + 1):
        current = np.full((width + 1, len(lengths)), far, dtype=np.uint8)
        if j <= most:
            current[0] = j
        for i in range(max(1, j - most), min(width, j + most) + 1):
            best = np.minimum(last[i - 1] + changed[j - 1, i - 1], np.minimum(last[i], current[i - 1]) + 1)
            if i > 1 and j > 1:
                best = np.minimum(best, before[i - 2] + swapped[j - 2, i - 2])
            np.minimum(best, far, out=current[i])
        before, last = last, current
        distances[lengths == j] = last[width, lengths == j]
    return distances


_MOST_SPELLINGS = 8  # similar spellings of one word
_SURE = 1000  # a word that is in so many parts is no typing error
_WORTH = (1.0, 0.5, 0.3)  # the value of a word, by distance


def spellings(snapshot: Snapshot, vocabulary: Vocabulary, word: str, limit: int) -> list[tuple[int, str, int]]:
    """(distance, word, number of parts), the most similar first, then the most frequent."""
    folded = "".join(chain.from_iterable(term.pieces for term in tokens.terms(word)))
    most = allowed(folded)
    if not most:
        return []
    similar: list[tuple[int, str, int]] = []
    for distance, same_distance in groupby(vocabulary.similar(folded, most), key=itemgetter(0)):
        if len(similar) >= limit:
            break  # more distant words come later, and counting them takes time
        counted = [(distance, similar_word, _parts(snapshot, similar_word)) for _, similar_word in same_distance]
        similar += sorted((row for row in counted if row[2]), key=lambda row: (-row[2], row[1]))
    return similar[:limit]


def similar_words(snapshot: Snapshot, vocabulary: Vocabulary, terms: Sequence[Term]) -> list[tuple[int, Spelling]]:
    """(number of the term, similar word) for each term, and for the pieces of a name."""
    similar: list[tuple[int, Spelling]] = []
    for number, term in enumerate(terms):
        query_words = dict.fromkeys((term.whole, *term.spelt) if term.form is not Form.RUN else ())
        known = {term.whole, *term.spelt}
        for word in query_words:
            if _parts(snapshot, word) < (_SURE if word == term.whole else 1):
                similar += [
                    (number, Spelling(term.text, similar_word, distance))
                    for distance, similar_word, _ in spellings(snapshot, vocabulary, word, _MOST_SPELLINGS)
                    if similar_word not in known
                ]
    return similar


@dataclass(frozen=True, slots=True)
class FuzzyQuery:
    """A query with the similar spellings of its terms, each with the number of its term."""

    terms: Sequence[Term]
    quotation: Sequence[tuple[int, str]]
    spellings: Sequence[tuple[int, Spelling]]
    _worth: list[float] = field(default_factory=list, init=False)

    def worth(self, snapshot: Snapshot) -> list[float]:
        """The value of each term in this state of the index; the same in every group, so computed once."""
        if not self._worth:
            for place, term in enumerate(self.terms):
                self._worth.append(
                    _rarity(snapshot, term, [spelling for number, spelling in self.spellings if number == place])
                )
        return self._worth


def by_closeness(snapshot: Snapshot, group: Group, query: FuzzyQuery, filters: Filters, limit: int) -> list[Candidate]:
    """Candidates of one group. `score` is an integer for how much of the query they hold, plus their rank below 1."""
    numbers = {spelling: number for number, spelling in query.spellings}
    worth = query.worth(snapshot)
    candidates = Ranking(snapshot, group, query.terms, query.quotation, query.spellings).best(filters, limit)
    for candidate in candidates:
        held = dict.fromkeys(candidate.held, 1.0)
        for spelling in candidate.spellings:
            number = numbers[spelling]
            held[number] = max(held.get(number, 0.0), _WORTH[spelling.distance])
        covered = sum(worth[number] * share for number, share in held.items()) / sum(worth)
        well = candidate.score * group.weight
        candidate.score = round(1000 * covered) + well / (well + 10)
    return candidates


def pairs(match: Match, candidate: Candidate, terms: Sequence[Term]) -> tuple[tuple[str, str], ...]:
    """(word of the query, word of the text) for each term of which the match has only a similar spelling."""
    exact = {terms[number].text for number in candidate.held}
    best: dict[str, Spelling] = {}
    for spelling in sorted(candidate.spellings, key=lambda item: item.distance):
        if spelling.query_word not in exact:
            best.setdefault(spelling.query_word, spelling)
    return tuple((query_word, _written(match.text, spelling.word)) for query_word, spelling in best.items())


def _parts(snapshot: Snapshot, word: str) -> int:
    return sum(snapshot.frequency(group.spelt, word) for group in GROUPS)


def _rarity(snapshot: Snapshot, term: Term, likeliest: Sequence[Spelling]) -> float:
    """The value of a term, higher for rare ones; for a term that no text has, that of its likeliest spelling."""
    total = snapshot.searcher.num_docs
    counts = [sum(snapshot.frequency(group.words, term.whole) for group in GROUPS)]
    counts += [_parts(snapshot, spelling.word) for spelling in likeliest[:1]]
    known = [count for count in counts if count] or [1]
    return math.log(1 + (total + 1) / known[0])


def _written(text: str, word: str) -> str:
    """`word` in the case of the text; unchanged if the text has it with separators."""
    start = text.lower().find(word)
    return text[start : start + len(word)] if start >= 0 else word
