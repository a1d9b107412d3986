"""Words that every text with a given literal certainly has.

Trigrams only say that all pieces of a literal are somewhere in a text, which is true of common words in most long
texts. But a word between two spaces of the literal is indexed as this word, next to its neighbours. We use only what
holds for every text: a spelling that could be indexed in another way requires nothing. If a literal begins within a
word, only the ending of that word is known; `Endings` has the words of the index by their endings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from daemon.index import tokens

LEAST = 3
"""Letters of an ending that must be known."""

_LETTERS = re.compile(rf"[a-z]{{{LEAST}}}")


class Endings:
    """Tokens of a field of words, by their endings. One thread may add at a time; others may read meanwhile."""

    def __init__(self) -> None:
        self._by_letters: dict[str, str] = {}  # each token between two line feeds
        self._capped: frozenset[str] = frozenset()

    def add(self, words: Iterable[str]) -> None:
        """Add tokens; known ones change nothing."""
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
        """The tokens that end with these LEAST or more letters of a to z, and all tokens that are cut off.

        None for more than `most`.
        """
        words, known = list(self._capped), self._by_letters.get(letters[-LEAST:], "\n")
        end = known.find(f"{letters}\n")
        while end >= 0 and len(words) <= most:
            words.append(known[known.rfind("\n", 0, end) + 1 : end + len(letters)])
            end = known.find(f"{letters}\n", end + 1)
        return words if len(words) <= most else None


_SPACE = re.compile(r"[ \t\r\n]+")
_WORD = re.compile(r"[a-z0-9]+")
# Letters at the end of the last word, then characters that belong to no word.
_LAST_WORD = re.compile(rf"([a-z]{{{LEAST},}})[\x00-/:-@\[-`{{-\x7f]*$")
_MOST_TOKENS = 24
_LEAST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class WordSequence:
    """Consecutive tokens of a field of words.

    After them comes a token with this `beginning`, if given; before them one with this `ending`, or a token that is cut
    off (tokens.may_be_capped).
    """

    tokens: tuple[str, ...]
    beginning: str = ""
    ending: str = ""


def certain(needle: str) -> list[WordSequence]:
    """The sequences of words in every text whose casefolded form contains `needle`, which is casefolded too."""
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
    """The beginning of the first word of `chunk`, without its last letter, to which an accent may belong."""
    word = _WORD.search(chunk)
    if word is None or not _is_plain(chunk[: word.end()]):
        return ""
    beginning = word.group()[: tokens.LONGEST // 2][:-1]
    return beginning if len(beginning) >= _LEAST_PREFIX else ""


def _ending(chunk: str) -> str:
    """The last word of `chunk`, as an ending: the text may have a longer word."""
    word = _LAST_WORD.search(chunk)
    return word.group(1) if word is not None else ""


def _sequences(run: Sequence[str], beginning: str, ending: str) -> Iterator[WordSequence]:
    for start in range(0, len(run), _MOST_TOKENS):
        row = tuple(run[start : start + _MOST_TOKENS])
        is_last = start + _MOST_TOKENS >= len(run)
        yield WordSequence(row, beginning if is_last else "", "" if start else ending)
    if not run and beginning:
        yield WordSequence((), beginning, ending)
