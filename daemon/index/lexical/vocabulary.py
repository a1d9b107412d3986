"""Which words of the index are spelt nearly as a given one: all of its words in memory, compared many at a time.

Two words are as far apart as letters must be added, left out, changed or exchanged with their neighbours. Words of one
length are rows of one table; a row is compared letter by letter only when the letters that occur in it allow it.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from daemon.index import tokens

Table: TypeAlias = NDArray[np.uint32]
_AFEW = 500
"""New words of one length that are compared apart; more of them are sorted in."""
_REMEMBERED = 256
"""Words whose near ones are remembered: one answer asks for the same ones several times, and so does the next."""


def allowed(word: str) -> int:
    """In how many places a spelling of `word` may differ; 0 for short words and whatever is not of letters alone."""
    if not tokens.is_spelt(word) or len(word) < 4:
        return 0
    return 1 if len(word) < 8 else 2


class Vocabulary:
    """A set of words that can be asked for the near ones. Thread-safe."""

    def __init__(self, words: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._sorted: dict[int, tuple[Table, NDArray[np.uint64]]] = {}
        self._fresh: defaultdict[int, set[str]] = defaultdict(set)
        self._remembered: dict[tuple[str, int], tuple[tuple[int, str], ...]] = {}
        self.add(words)

    def add(self, words: Iterable[str]) -> None:
        """Take in more words; what is known already changes nothing."""
        with self._lock:
            for word in words:
                self._fresh[len(word)].add(word)
            self._remembered = {}  # a new one: who is still looking puts what he finds into the old one

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
        found: dict[str, int] = {}
        asked = _codes([word], len(word))
        for length in range(max(1, len(word) - most), len(word) + most + 1):
            for rows, letters in self._tables(length):
                differing = np.bitwise_count(letters ^ _letters(asked)[0])
                possible = rows[differing <= 2 * most]
                distances = _distances(possible, asked[0], most)
                close = distances <= most
                found |= zip(_words(possible[close]), distances[close].tolist(), strict=True)
        found.pop(word, None)
        return sorted((distance, other) for other, distance in found.items())

    def _tables(self, length: int) -> list[tuple[Table, NDArray[np.uint64]]]:
        with self._lock:
            fresh = self._fresh[length]
            known = self._sorted.get(length)
            if len(fresh) > _AFEW:
                rows = _codes(sorted(fresh), length)
                rows = rows if known is None else np.unique(np.concatenate([known[0], rows]), axis=0)
                known = self._sorted[length] = (rows, _letters(rows))
                fresh.clear()
            tables = [known] if known is not None else []
            if fresh:
                rows = _codes(sorted(fresh), length)
                tables.append((rows, _letters(rows)))
            return tables


def _codes(words: list[str], length: int) -> Table:
    return np.array(words, dtype=f"U{length}").view(np.uint32).reshape(len(words), length)


def _words(rows: Table) -> list[str]:
    if not len(rows):
        return []
    words: list[str] = np.ascontiguousarray(rows).view(f"U{rows.shape[1]}").reshape(-1).tolist()
    return words


def _letters(rows: Table) -> NDArray[np.uint64]:
    """The letters that occur in each row as bits; unlike letters may share one, which hides no near word."""
    masks: NDArray[np.uint64] = np.bitwise_or.reduce(np.uint64(1) << (rows % 64).astype(np.uint64), axis=1)
    return masks


def _distances(rows: Table, asked: Any, most: int) -> NDArray[np.uint8]:
    """How far each row is from `asked`, exact up to `most`: the usual table of two words, for all rows at once.

    Only its diagonal is filled, `most` wide on both sides; what is outside is farther.
    """
    count, length = rows.shape
    width, far = len(asked), most + 1
    before = np.full((width + 1, count), far, dtype=np.uint8)
    last = np.full((width + 1, count), far, dtype=np.uint8)
    for i in range(min(width, most) + 1):
        last[i] = i
    columns = np.ascontiguousarray(rows.T)
    for j in range(1, length + 1):
        here = np.full((width + 1, count), far, dtype=np.uint8)
        if j <= most:
            here[0] = j
        letter = columns[j - 1]
        for i in range(max(1, j - most), min(width, j + most) + 1):
            same = letter == asked[i - 1]
            best = np.minimum(last[i - 1] + ~same, np.minimum(last[i], here[i - 1]) + 1)
            if i > 1 and j > 1:
                swapped = (letter == asked[i - 2]) & (columns[j - 2] == asked[i - 1])
                best = np.where(swapped, np.minimum(best, before[i - 2] + 1), best)
            here[i] = np.minimum(best, far)
        before, last = last, here
    distances: NDArray[np.uint8] = last[width]
    return distances
