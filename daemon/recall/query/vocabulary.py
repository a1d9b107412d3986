"""What this archive's words say of a question's names: which are ordinary words, and what is spelt nearly so.

"declare/create", `int()` and "best practices" may be names, or words: marks alone make no name. A name is what the
archive writes as code, what few of its texts have, or what is quoted in a short query. All else counts as its words: as
a name, it would put whatever holds it above what answers the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from daemon.index import Filters, LexicalIndex
from daemon.index.tokens import STOP_WORDS
from daemon.model import Kind
from daemon.recall.query import names, parse
from daemon.recall.query.parse import MOST_SHORT, Query

LEAST_COMMON = 10
"""Texts that have a common word; fewer tell nothing, however small the archive."""
COMMON_WORD = 0.01
"""The share of all texts in which a word is common enough for ``word()``, or a phrase of such words, to be no name."""
COMMON_NAME = 0.05
"""The same for a name without marks, such as JavaScript, in a question of several other words."""
_MOST_LOOKED_AT = 20  # texts that have two words with a slash between them
_MOST_NAMES = 5
_ROW = re.compile(r"[^\W\d_]+(?:[/:][^\W\d_]+){1,2}")  # of more words it is a path
_LETTERS = re.compile(r"[A-Za-z]+")
_PIECE = re.compile(r"[^\W_]+")


def settled(query: Query, lexical: LexicalIndex) -> Query:
    """The query with those of its names as plain words that are no names in this archive."""
    doubtful = [name for name in query.named if _is_doubtful(name, query)][:_MOST_NAMES]
    if not doubtful:
        return query
    texts, counts = lexical.frequencies(" ".join(piece for name in doubtful for piece in (name, *_words(name))))
    known = _Counts(texts, {term.casefold(): count for term, count in counts.items()})
    plain = [name for name in doubtful if _is_plain(name, known, lexical)]
    return parse.parse(query.text, frozenset(plain)) if plain else query


def nearest(name: str, lexical: LexicalIndex) -> str:
    """`name` as texts have what is spelt most nearly as it, as a whole or word by word; "" where nothing is."""
    return _nearest(name, lexical) or _nearest_words(name, lexical)


def _nearest(word: str, lexical: LexicalIndex) -> str:
    for other, _ in lexical.spellings(word, 1):
        for match in lexical.search(other, Filters(), 1):
            return names.as_written(other, match.text)
    return ""


def _nearest_words(name: str, lexical: LexicalIndex) -> str:
    """With the nearest spelling of each word that no text has; "" where one of them has none."""
    _, counts = lexical.frequencies(_LETTERS.sub(r"\g<0> ", name))
    unknown = [word for word in _LETTERS.findall(name) if not counts.get(word, 1)]
    similar = {word: _nearest(word, lexical) for word in unknown}
    if not similar or not all(similar.values()):
        return ""
    return _LETTERS.sub(lambda word: similar.get(word[0], word[0]), name)


@dataclass(frozen=True, slots=True)
class _Counts:
    texts: int
    having: Mapping[str, int]

    def of(self, word: str) -> int:
        return self.having.get(word.casefold(), 0)

    def is_common(self, word: str, share: float = COMMON_WORD) -> bool:
        return self.of(word) >= max(LEAST_COMMON, share * self.texts)


def _is_doubtful(name: str, query: Query) -> bool:
    is_long = len(query.words) > MOST_SHORT
    if _ROW.fullmatch(name):
        return all(map(names.is_plain, re.split("[/:]", name)))
    if names.is_plain(name):
        return f"{name}()" in query.text
    if " " in name:
        return is_long and all(map(names.is_plain, name.split()))
    return is_long and name.isalpha()


def _is_plain(name: str, known: _Counts, lexical: LexicalIndex) -> bool:
    if _ROW.fullmatch(name):
        return all(map(known.of, _words(name))) and not _is_code(name, lexical)
    if names.is_plain(name) or " " in name:
        return all(map(known.is_common, _words(name)))
    return known.is_common(name, COMMON_NAME)


def _words(name: str) -> Iterator[str]:
    """Its words; stop words, which are not counted, where it has no others."""
    words = _PIECE.findall(name)
    yield from [word for word in words if word.lower() not in STOP_WORDS]


def _is_code(name: str, lexical: LexicalIndex) -> bool:
    """Whether at least half of the newest texts that have it write it as code: quoted, in a longer path, for a tool."""
    matches = lexical.literal(name, Filters(), _MOST_LOOKED_AT)
    wanted = re.escape(name)
    code = re.compile(rf"[/\\.~@`'\"-]{wanted}(?!\w)|(?<!\w){wanted}(?:[/\\`'\"(]|\.\w)", re.IGNORECASE)
    in_code = sum(match.kind == Kind.TOOL_INPUT or code.search(match.text) is not None for match in matches)
    return bool(matches) and 2 * in_code >= len(matches)
