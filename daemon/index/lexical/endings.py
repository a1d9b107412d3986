"""Which words of the index end with given letters: a literal may begin within a word, and only its end is known.

Kept as a few long texts, by the last letters: a table of all words would take ten times their size.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from daemon.index import tokens

LEAST = 3
"""Letters that must be known."""

_LETTERS = re.compile(rf"[a-z]{{{LEAST}}}")


class Endings:
    """A set of tokens of the field of words. To be filled by one thread at a time; anyone may ask meanwhile."""

    def __init__(self) -> None:
        self._by_letters: dict[str, str] = {}  # each token between two line feeds
        self._capped: frozenset[str] = frozenset()

    def add(self, words: Iterable[str]) -> None:
        """Take in more of them; what is known already changes nothing."""
        fresh: defaultdict[str, set[str]] = defaultdict(set)
        for word in words:
            if tokens.may_be_capped(word):
                self._capped |= {word}
            elif _LETTERS.fullmatch(word, len(word) - LEAST if len(word) >= LEAST else 0):
                fresh[word[-LEAST:]].add(word)
        for letters, some in fresh.items():
            known = self._by_letters.get(letters, "\n")
            new = sorted(some) if len(known) == 1 else sorted(word for word in some if f"\n{word}\n" not in known)
            if new:
                self._by_letters[letters] = known + "\n".join(new) + "\n"

    def of(self, letters: str, most: int) -> list[str] | None:
        """The tokens that end with these LEAST or more letters of a to z, or whose end is not known; None for more
        than `most`.
        """
        found, known = list(self._capped), self._by_letters.get(letters[-LEAST:], "\n")
        end = known.find(f"{letters}\n")
        while end >= 0 and len(found) <= most:
            found.append(known[known.rfind("\n", 0, end) + 1 : end + len(letters)])
            end = known.find(f"{letters}\n", end + 1)
        return found if len(found) <= most else None
