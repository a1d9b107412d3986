"""Text becomes vectors: the protocol, and what every embedder promises.

Many models embed a question in another way than the passages that answer it, so each has a method of its own. A model
gives a vector to any text, also to one that it cannot read: `Embedder.legible` says how much of it can be read.

`embed` returns one entry per text, in order: a unit vector, or a BadInput that says why this text has none. A bad text
never affects its batch or the queue. If a model server is down, ModelUnavailable is raised, and nothing was embedded.

How much of a text a model can read is decided by its tokenizer and not by a list of languages.

A model has learned a script if its vocabulary has pieces of words in it. The vocabulary of an English model has the
single letters of many scripts as well, but nothing that could mean anything: of 30,522 pieces of MiniLM, 27,534 are
Latin pieces of two letters or more, 8 are Cyrillic and none is Japanese or Chinese. So a letter is legible if

* the vocabulary has `_LEARNED` pieces of two letters or more in the letter's script, or `_LETTERS` different single
  letters of it (tokenizers cut Chinese into its characters), or no script has more pieces, and
* the tokenizer has a token for it, and not only the unknown token. The length of its word does not matter: tokenizers
  give up on a hash of 100 digits, but that is not another language.

A Chinese character says more than a Latin letter, so it counts for more. Digits and signs do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

from daemon.errors import BadInput
from daemon.model import Vector

__all__ = ["LEGIBLE_VERSION", "BadInput", "Embedder", "LocalEmbedder", "Vector", "reads"]

LEGIBLE_VERSION = 2
"""Raise it when the rules of legibility change. Semantic indexes are then refilled from the vectors in the archive."""
_UNREAD_HALF = 0.5
"""The vector of a less legible text means little."""


class Embedder(Protocol):
    """A model as ingest and recall use it."""

    @property
    def fingerprint(self) -> str:
        """Name, digest and dims of the model, in 12 to 36 of ``[a-z0-9-]``. Vectors of two models never mix."""

    @property
    def dims(self) -> int:
        """Length of every vector."""

    @property
    def name(self) -> str:
        """For people: ``all-MiniLM-L6-v2 (built in)`` or ``qwen3-embedding:8b (Ollama)``."""

    def close(self) -> None:
        """Release connections; harmless when there are none."""

    def embed(self, texts: Sequence[str]) -> list[Vector | BadInput]:
        """Unit vectors of passages, one per text, in order.

        Raises:
            ModelUnavailable: the server is down or lacks the model; nothing was embedded.
        """

    def embed_query(self, text: str) -> Vector | BadInput:
        """The unit vector of a question, to compare with those of passages.

        Raises:
            ModelUnavailable: the server is down or lacks the model.
        """

    def legible(self, text: str) -> float:
        """The share of `text` that the model can read, 0 to 1 (`legible_share`).

        Raises:
            ModelUnavailable: the model's files are missing or unreadable.
        """

    def known_words(self, text: str) -> float:
        """The share of `text` in words of the model's vocabulary, 0 to 1 (`known_share`).

        Raises:
            ModelUnavailable: the model's files are missing or unreadable.
        """


@runtime_checkable
class LocalEmbedder(Protocol):
    """An Embedder whose model we load ourselves, into the worker; a server loads its own."""

    def load(self) -> None:
        """Load the model into memory, unless it is there."""


def reads(embedder: Embedder, text: str) -> bool:
    """Whether the model can read more than half of the text, so that its vector means something.

    Raises:
        ModelUnavailable: the model's files are missing or unreadable.
    """
    return embedder.legible(text) > _UNREAD_HALF


_LEARNED = 300
_LETTERS = 1_000
_WEIGHTS = {"CJK": 5, "HIRAGANA": 5, "KATAKANA": 3, "HANGUL": 3}
"""The weight of a letter by script; 2 for all others. A word has about five letters, or two Chinese characters."""
_USUAL = 2
_UNSPACED = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"})
"""Scripts without spaces between words, or with compounds, so that a token need not be a whole word."""
_WORD = re.compile(r"[^\W\d_]+")


def legible_share(text: str, scripts: Collection[str], unknown: Sequence[tuple[int, int]] = ()) -> float:
    """The share of `text`, 0 to 1, that a model with these learned `scripts` can read.

    `unknown` are the ranges of characters, without their ends, for which the tokenizer has only its unknown token.
    Text without letters is legible.
    """
    if text.isascii() and "LATIN" in scripts and not unknown:
        return 1.0
    unread = {position for start, end in unknown for position in range(start, end)}
    whole = legible = 0
    for position, letter in enumerate(text):
        if not letter.isalpha():
            continue
        script = script_of(letter)
        weight = _WEIGHTS.get(script, _USUAL)
        whole += weight
        legible += weight * (script in scripts and position not in unread)
    return legible / whole if whole else 1.0


def known_share(text: str, tokens: Iterable[tuple[int, int]]) -> float:
    """The share of the letters of `text`, 0 to 1, in words that are one token.

    `tokens` are the ranges of characters of the tokens. Text after the last one was cut off and does not count. A
    vocabulary has frequent words of its languages as single tokens, and builds other words from pieces. With the
    built-in model about nine tenths of English questions are single tokens, and a quarter or less of German, Spanish or
    Turkish ones. Texts made of pieces are similar by spelling more than by meaning.
    """
    ends = dict(sorted(tokens))
    end_of_all = max(ends.values(), default=0)
    letters = known = 0
    for word in _WORD.finditer(text, 0, end_of_all):
        # A token may begin with the space before the word.
        is_whole = any(ends.get(start, 0) >= word.end() for start in (word.start(), word.start() - 1))
        letters += len(word[0])
        known += len(word[0]) * (is_whole or script_of(word[0][0]) in _UNSPACED)
    return known / letters if letters else 1.0


def learned_scripts(vocabulary: Iterable[str]) -> frozenset[str]:
    """The scripts that a model with this vocabulary has learned, as named by `script_of`."""
    pieces = list(vocabulary)
    if "Ġ" in pieces:  # the vocabulary writes bytes as characters, "Ġ" for a space
        pieces = [_decoded(piece) for piece in pieces]
    words: Counter[str] = Counter()
    letters: dict[str, set[str]] = {}
    for piece in pieces:
        if piece.isascii():  # most are
            words["LATIN"] += sum(map(str.isalpha, piece)) > 1
            continue
        scripts = [script_of(letter) for letter in piece if letter.isalpha()]
        if len(scripts) > 1:
            words.update(set(scripts))
        elif scripts:
            letters.setdefault(scripts[0], set()).add(next(letter for letter in piece if letter.isalpha()))
    most = max(words.values(), default=0)
    learned = {script for script, count in words.items() if count >= _LEARNED or count == most}
    return frozenset(learned | {script for script, examples in letters.items() if len(examples) >= _LETTERS})


@lru_cache(maxsize=65_536)
def script_of(letter: str) -> str:
    """The script of a letter, the first word of its Unicode name: ``LATIN``, ``CJK``; "" for a nameless one."""
    plain = unicodedata.normalize("NFKC", letter)[:1]
    return unicodedata.name(plain, "").replace("-", " ").partition(" ")[0]


@lru_cache(maxsize=1)
def _bytes_of_characters() -> dict[str, int]:
    """The byte of each character of a byte-level vocabulary; printable characters are their own bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(unprintable)}


def _decoded(piece: str) -> str:
    known = _bytes_of_characters()
    return bytes(known[character] for character in piece if character in known).decode("utf-8", "ignore")
