"""All words of the index in memory: which are spelt nearly as a given one, compared many at a time; how they end.

Two words are as far apart as letters must be added, left out, changed or exchanged with their neighbours. Words of one
length are rows of one table; a row is compared letter by letter only when the letters that occur in it allow it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from daemon.index import tokens
from daemon.index.lexical.endings import Endings

Codes: TypeAlias = NDArray[np.uint32]
Words: TypeAlias = NDArray[np.str_]
Letters: TypeAlias = NDArray[np.uint64]
_REMEMBERED = 256
"""Words whose near ones are remembered: one answer asks for the same ones several times, and so does the next."""


def allowed(word: str) -> int:
    """In how many places a spelling of `word` may differ; 0 for short words and whatever is not of letters alone."""
    if not tokens.is_spelt(word) or len(word) < 4:
        return 0
    return 1 if len(word) < 8 else 2


class Vocabulary:
    """A set of words that can be asked for the near ones; only those that are spelt have such. Thread-safe.

    `endings` has all others as well, from `know_endings` on; until then it is None.
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
        """Take in more words; what is known already changes nothing."""
        words = set(words)
        with self._lock:
            if self.endings is not None:
                self.endings.add(words)
            for word in words:
                if tokens.is_spelt(word):
                    self._fresh[len(word)].add(word)
            self._remembered = {}  # a new one: who is still looking puts what he finds into the old one

    def know_endings(self, words: Iterable[str]) -> None:
        """Of all words that there are, and of those added from now on. None may be added meanwhile."""
        endings = Endings()
        endings.add(words)
        self.endings = endings

    def near(self, word: str, most: int) -> list[tuple[int, str]]:
        """(distance, word) for all others at most `most` apart, nearest first."""
        remembered = self._remembered  # taken before the words are looked at
        known = remembered.get((word, most))
        if known is None:
            known = tuple(self._compared(word, most))
            if len(remembered) >= _REMEMBERED:
                remembered.clear()
            remembered[word, most] = known
        return list(known)

    def _compared(self, word: str, most: int) -> list[tuple[int, str]]:
        asked = _letters(_codes(np.array([word])))[0]
        possible = []
        for length in range(max(1, len(word) - most), len(word) + most + 1):
            words, letters = self._table(length)
            some = words[np.bitwise_count(letters ^ asked) <= 2 * most]
            if len(some):
                possible.append(some)
        if not possible:
            return []
        distances = _distances(possible, word, most)
        words = np.concatenate(possible)
        close = distances <= most
        found = dict(zip(words[close].tolist(), distances[close].tolist(), strict=True))
        found.pop(word, None)
        return sorted((distance, other) for other, distance in found.items())

    def _table(self, length: int) -> tuple[Words, Letters]:
        """The words of one length in order, those sorted in that came since somebody asked."""
        with self._lock:
            words, letters = self._sorted.get(length) or (np.empty(0, f"U{length}"), np.empty(0, np.uint64))
            fresh = self._fresh.pop(length, None)
            if fresh:
                others = np.array(sorted(fresh), dtype=f"U{length}")
                places = np.searchsorted(words, others)
                are_new = np.ones(len(others), dtype=bool)
                inside = places < len(words)
                are_new[inside] = words[places[inside]] != others[inside]
                others, places = others[are_new], places[are_new]
                words = np.insert(words, places, others)
                letters = np.insert(letters, places, _letters(_codes(others)))
                self._sorted[length] = (words, letters)
            return words, letters


def _codes(words: Words) -> Codes:
    """A row of letters for each word; all are equally long."""
    return words.view(np.uint32).reshape(len(words), words.dtype.itemsize // 4)


def _letters(rows: Codes) -> Letters:
    """The letters that occur in each row, and those that occur in it twice, as bits.

    One change alters two of them at most. Unlike letters may share one, which hides no near word.
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
    lengths = np.concatenate([np.full(len(some), some.dtype.itemsize // 4) for some in possible])
    width, longest, far = len(word), int(lengths[-1]), most + 1
    columns = np.zeros((longest, len(lengths)), dtype=np.uint32)
    for some in possible:
        rows = _codes(some)
        columns[: rows.shape[1], lengths == rows.shape[1]] = rows.T
    same = columns[:, None, :] == _codes(np.array([word]))[0][None, :, None]
    changed = (~same).astype(np.uint8)
    swapped = np.where(same[1:, :-1] & same[:-1, 1:], np.uint8(1), np.uint8(far))
    before = np.full((width + 1, len(lengths)), far, dtype=np.uint8)
    last = before.copy()
    last[: most + 1] = np.arange(min(width, most) + 1, dtype=np.uint8)[:, None]
    distances = np.full(len(lengths), far, dtype=np.uint8)
    for j in range(1, longest + 1):
        here = np.full((width + 1, len(lengths)), far, dtype=np.uint8)
        if j <= most:
            here[0] = j
        for i in range(max(1, j - most), min(width, j + most) + 1):
            best = np.minimum(last[i - 1] + changed[j - 1, i - 1], np.minimum(last[i], here[i - 1]) + 1)
            if i > 1 and j > 1:
                best = np.minimum(best, before[i - 2] + swapped[j - 2, i - 2])
            np.minimum(best, far, out=here[i])
        before, last = last, here
        distances[lengths == j] = last[width, lengths == j]
    return distances
