"""What an index must hold for the words of a query to count as found: pure values, no index needed.

A word is found by itself or by its stem, a name by its spelling without separators or by its pieces in order, a path
by its segments in order or as a whole, a run of a script without spaces by its pairs of characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.index import tokens
from daemon.index.lexical.schema import Group
from daemon.index.tokens import Form, Term

_MOST_TERMS = 48
_STOP_TEXT = (
    "a an and are as at be but by can could did do does for from had has have how i if in into is it its me my no "
    "not of on or our should so that the their them then there these they this to was we were what when where "
    "which who why will with would you your"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())


@dataclass(frozen=True, slots=True)
class Near:
    """A word of the index that is spelt nearly as a word of the query, and in how many places it differs."""

    asked: str
    word: str
    distance: int


@dataclass(frozen=True, slots=True)
class Clue:
    """One term of the query in the fields of one group.

    `tokens` are (field, token, boost), each enough alone; `phrase` is (field, tokens in order, boost); `broad` the one
    posting list, where there is one, in which every match of the tokens is found.
    """

    term: Term
    tokens: tuple[tuple[str, str, float], ...]
    phrase: tuple[str, tuple[str, ...], float] | None = None
    broad: tuple[str, str] | None = None


def content(query: str) -> list[Term]:
    """The distinct terms of a query without the words that every text has, unless it has no others."""
    distinct = {(term.form, term.whole): term for term in reversed(list(tokens.terms(query)))}
    every = list(reversed(distinct.values()))
    return [term for term in every if term.whole not in _STOP_WORDS][:_MOST_TERMS] or every[:_MOST_TERMS]


def clue(term: Term, group: Group) -> Clue:
    """What a document of the group must hold to match one term of the query."""
    if not group.has_order:
        return Clue(term, _loose(term, group))
    if term.form is Form.WORD:
        stem = tokens.stem(term.whole)
        return Clue(term, ((group.words, term.whole, 1.0), (group.bag, stem, 0.7)), broad=(group.bag, stem))
    if term.form is Form.NAME:
        return Clue(term, ((group.words, term.whole, 2.0),), (group.words, term.pieces, 1.0))
    if term.form is Form.PATH:
        return Clue(term, ((group.bag, term.whole, 2.0),), (group.words, term.sequence, 1.0))
    return _run(term, group)


def quoted(query: str) -> list[tuple[int, str]]:
    """The tokens of the whole query as a text that quotes it has them: (place, token), stop words only as gaps."""
    found: list[tuple[int, str]] = []
    place = 0
    for term in tokens.terms(query):
        if term.whole not in _STOP_WORDS:
            found += [(place + number, token) for number, token in enumerate(term.sequence)]
        place += len(term.sequence)
    return [(number - found[0][0], token) for number, token in found[:_MOST_TERMS]]


def joined(wanted: Sequence[Term]) -> str:
    """``rate limit`` means rateLimit as well; empty where the query is no few plain words."""
    plain = [term.whole for term in wanted if term.form is Form.WORD]
    return "".join(plain) if 1 < len(plain) == len(wanted) <= 4 else ""


def _run(term: Term, group: Group) -> Clue:
    if len(term.whole) == 1:
        return Clue(term, ((group.bag, term.whole, 1.0),))
    if len(term.whole) <= 4:
        return Clue(term, (), (group.words, term.sequence, 1.0))
    return Clue(term, tuple((group.words, pair, 1.0) for pair in term.sequence[:_MOST_TERMS]))


def _loose(term: Term, group: Group) -> tuple[tuple[str, str, float], ...]:
    if term.form is Form.RUN and len(term.whole) > 1:
        return tuple((group.bag, pair, 1.0) for pair in term.sequence[:_MOST_TERMS])
    if term.form in (Form.NAME, Form.PATH):
        return ((group.bag, term.whole, 2.0),)
    return ((group.bag, tokens.stem(term.whole), 1.0),)
