"""Words that certainly stand in whatever contains a given text: pure functions, no index here.

Trigrams say that all pieces of a literal are somewhere in a text; in long texts that is so of any common words. A word
between two spaces of the literal, though, is indexed as just this word, with its neighbours as neighbours. Only what
holds for every text is used: a spelling that could be indexed in another way requires nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.index import tokens
from daemon.index.lexical.endings import LEAST

_SPACE = re.compile(r"[ \t\r\n]+")
_WORD = re.compile(r"[a-z0-9]+")
# Its letters at the end, and what belongs to no word.
_LAST_WORD = re.compile(rf"([a-z]{{{LEAST},}})[\x00-/:-@\[-`{{-\x7f]*$")
_MOST_TOKENS = 24
_LEAST_PREFIX = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """Tokens that stand one behind the other in the field of words.

    Behind them, if given, one with this beginning; before them one with this ending, or one of which only the beginning
    is known (tokens.may_be_capped).
    """

    tokens: tuple[str, ...]
    beginning: str = ""
    ending: str = ""


def certain(needle: str) -> list[Standing]:
    """What the words of every text hold whose casefolded form contains `needle`, itself casefolded."""
    first, *inner = _SPACE.split(needle)
    if not inner:
        return []
    *whole, last = inner
    found: list[Standing] = []
    run: list[str] = []
    ending = _ending(first)
    for chunk in whole:
        if _is_plain(chunk):
            run += (token for term in tokens.terms(chunk) for token in term.sequence)
            continue
        found += _sequences(run, "", ending)
        run, ending = [], ""
    return [*found, *_sequences(run, _beginning(last), ending)]


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


def _sequences(run: Sequence[str], beginning: str, ending: str) -> Iterator[Standing]:
    for start in range(0, len(run), _MOST_TOKENS):
        some = tuple(run[start : start + _MOST_TOKENS])
        is_last = start + _MOST_TOKENS >= len(run)
        yield Standing(some, beginning if is_last else "", "" if start else ending)
    if not run and beginning:
        yield Standing((), beginning, ending)
