"""Words that certainly stand in whatever contains a given text.

Trigrams say that all pieces of a literal are somewhere in a text, which in long texts is so of any common words. But a
word between two spaces of the literal is indexed as just this word, with its neighbours as neighbours. Only what holds
for every text is used: a spelling that could be indexed in another way requires nothing. Of a literal that begins
within a word only the ending is known; `Endings` has the words of the index by their endings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
        for letters, new_words in fresh.items():
            known = self._by_letters.get(letters, "\n")
            new = (
                sorted(new_words)
                if len(known) == 1
                else sorted(word for word in new_words if f"\n{word}\n" not in known)
            )
            if new:
                self._by_letters[letters] = known + "\n".join(new) + "\n"

    def of(self, letters: str, most: int) -> list[str] | None:
        """The tokens that end with these LEAST or more letters of a to z, or whose end is not known; None for more
        than `most`.
        """
        words, known = list(self._capped), self._by_letters.get(letters[-LEAST:], "\n")
        end = known.find(f"{letters}\n")
        while end >= 0 and len(words) <= most:
            words.append(known[known.rfind("\n", 0, end) + 1 : end + len(letters)])
            end = known.find(f"{letters}\n", end + 1)
        return words if len(words) <= most else None


_SPACE = re.compile(r"[ \t\r\n]+")
_WORD = re.compile(r"[a-z0-9]+")
# Its letters at the end, and what belongs to no word.
_LAST_WORD = re.compile(rf"([a-z]{{{LEAST},}})[\x00-/:-@\[-`{{-\x7f]*$")
_MOST_TOKENS = 24
_LEAST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class WordSequence:
    """Tokens that stand one behind the other in the field of words.

    Behind them, if given, one with this beginning; before them one with this ending, or one of which only the beginning
    is known (tokens.may_be_capped).
    """

    tokens: tuple[str, ...]
    beginning: str = ""
    ending: str = ""


def certain(needle: str) -> list[WordSequence]:
    """What the words of every text hold whose casefolded form contains `needle`, itself casefolded."""
    first, *inner = _SPACE.split(needle)
    if not inner:
        return []
    *whole, last = inner
    sequences: list[WordSequence] = []
    run: list[str] = []
    ending = _ending(first)
    for chunk in whole:
        if _is_plain(chunk):
            run += (token for term in tokens.terms(chunk) for token in term.sequence)
            continue
        sequences += _sequences(run, "", ending)
        run, ending = [], ""
    return [*sequences, *_sequences(run, _beginning(last), ending)]


def _is_plain(chunk: str) -> bool:
    """Whether its tokens depend neither on case, as with ``'S``, nor on how characters are composed."""
    return chunk.isascii() and "'" not in chunk


def _beginning(chunk: str) -> str:
    """Of the first word of a text's end: its last letter may take an accent or be cut out of a longer one."""
    word = _WORD.search(chunk)
    if word is None or not _is_plain(chunk[: word.end()]):
        return ""
    beginning = word.group()[: tokens.LONGEST // 2][:-1]
    return beginning if len(beginning) >= _LEAST_PREFIX else ""


def _ending(chunk: str) -> str:
    """Of the last word of a text's beginning: it may be cut out of a longer one; a single letter may be a ``'s``."""
    word = _LAST_WORD.search(chunk)
    return word.group(1) if word is not None else ""


def _sequences(run: Sequence[str], beginning: str, ending: str) -> Iterator[WordSequence]:
    for start in range(0, len(run), _MOST_TOKENS):
        row = tuple(run[start : start + _MOST_TOKENS])
        is_last = start + _MOST_TOKENS >= len(run)
        yield WordSequence(row, beginning if is_last else "", "" if start else ending)
    if not run and beginning:
        yield WordSequence((), beginning, ending)
