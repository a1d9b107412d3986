"""What a text is about: its words without the commonest ones, in a form in which two texts can be compared."""

from __future__ import annotations

import re
from functools import lru_cache

from daemon.reconstitute.facts import cues, sentences

_STEM = 5
_KANA_ONLY = re.compile(r"[\u3040-\u309f]+")
"""Endings and particles of Japanese, which say nothing of the subject."""


def stems(text: str) -> frozenset[str]:
    """The beginnings of its words, so that "tests" and "test" are the same."""
    pieces = (piece for word in sentences.words(text) for piece in (word, *word.replace("/", ".").split(".")))
    return frozenset(_stem(piece) for piece in pieces if piece)


@lru_cache(maxsize=8192)
def of(text: str) -> frozenset[str]:
    """The stems of its words without the small words of any language that we know."""
    words = (word for word in sentences.words(text) if word not in cues.common() and not _KANA_ONLY.fullmatch(word))
    return stems(" ".join(words))


def _stem(word: str) -> str:
    return word[:_STEM].rstrip("s") or word
