"""What a document must hold to match the words of a query. Pure values, no index needed.

A word matches by itself or by its stem, a name by its spelling without separators or by its pieces in order, a path by
its segments in order or as a whole, a run of a script without spaces by its pairs of characters in order, or by all of
them in a field without order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.index import tokens
from daemon.index.lexical.schema import Group
from daemon.index.tokens import Form, Term

_MOST_TERMS = 48
_LONG_RUN = 4  # characters, usually two words of Chinese or Japanese; part of a shorter run is another word
_ENOUGH = 6  # pairs of a very long run, such as a sentence, that a text must have to be shown


@dataclass(frozen=True, slots=True)
class Spelling:
    """A word of the index that is spelt like a word of the query, and in how many places it differs."""

    query_word: str
    word: str
    distance: int


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One term of the query in the fields of one group.

    Each of `tokens`, (field, token, boost), is a match by itself; so is `phrase`, (field, tokens in order, boost).
    `conjunction` are (field, token) that must all be there. `broad` is one posting list with every match of the tokens,
    None if there is no such list. `pairs` are (field, token) of a long run: a text with `least_pairs` of them has a
    good part of the run, but does not hold it.
    """

    term: Term
    tokens: tuple[tuple[str, str, float], ...]
    phrase: tuple[str, tuple[str, ...], float] | None = None
    conjunction: tuple[tuple[str, str], ...] = ()
    broad: tuple[str, str] | None = None
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def least_pairs(self) -> int:
        """How many of `pairs` a text must have to be shown if no text holds the whole run."""
        return min((len(self.pairs) + 1) // 2, _ENOUGH)


def content(query: str) -> list[Term]:
    """The distinct terms of a query, without stop words unless it has no others."""
    distinct = {(term.form, term.whole): term for term in reversed(list(tokens.terms(query)))}
    all_terms = list(reversed(distinct.values()))
    return [term for term in all_terms if term.whole not in tokens.STOP_WORDS][:_MOST_TERMS] or all_terms[:_MOST_TERMS]


def term_match_for(term: Term, group: Group) -> TermMatch:
    """What a document of the group must hold to match one term of the query."""
    if not group.has_order:
        return _loose(term, group)
    if term.form is Form.WORD:
        stem = tokens.stem(term.whole)
        return TermMatch(term, ((group.words, term.whole, 1.0), (group.bag, stem, 0.7)), broad=(group.bag, stem))
    if term.form is Form.NAME:
        return TermMatch(term, ((group.words, term.whole, 2.0),), (group.words, term.pieces, 1.0))
    if term.form is Form.PATH:
        return TermMatch(term, ((group.bag, term.whole, 2.0),), (group.words, term.sequence, 1.0))
    return _run(term, group)


def quotation(query: str) -> list[tuple[int, str]]:
    """(place, token) for a text that quotes the whole query, with gaps for stop words."""
    places: list[tuple[int, str]] = []
    place = 0
    for term in tokens.terms(query):
        if term.whole not in tokens.STOP_WORDS:
            places += [(place + number, token) for number, token in enumerate(term.sequence)]
        place += len(term.sequence)
    return [(number - places[0][0], token) for number, token in places[:_MOST_TERMS]]


def stretch(term: Term, text: str) -> str:
    """The longest part of a run, of two characters or more, in `text`; empty if there is none."""
    whole, folded = term.whole, tokens.fold(text)
    longest, start = "", 0
    for end in range(2, len(whole) + 1):
        while end - start > 1 and whole[start:end] not in folded:
            start += 1
        if end - start > max(1, len(longest)):
            longest = whole[start:end]
    return longest


def joined(terms: Sequence[Term]) -> str:
    """The words as one, because ``rate limit`` also means rateLimit; empty unless the query is 2 to 4 plain words."""
    plain = [term.whole for term in terms if term.form is Form.WORD]
    return "".join(plain) if 1 < len(plain) == len(terms) <= 4 else ""


def _run(term: Term, group: Group) -> TermMatch:
    if len(term.whole) == 1:
        return TermMatch(term, ((group.bag, term.whole, 1.0),))
    phrase = (group.words, term.sequence, 1.0)
    if len(term.whole) < _LONG_RUN:
        return TermMatch(term, (), phrase)
    return TermMatch(term, (), phrase, pairs=_distinct(group.words, term.sequence)[:_MOST_TERMS])


def _loose(term: Term, group: Group) -> TermMatch:
    if term.form is Form.RUN and len(term.sequence) > 1:
        return TermMatch(term, (), conjunction=_distinct(group.bag, term.sequence))
    if term.form in (Form.NAME, Form.PATH):
        return TermMatch(term, ((group.bag, term.whole, 2.0),))
    return TermMatch(term, ((group.bag, tokens.stem(term.whole), 1.0),))


def _distinct(name: str, sequence: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, token) for token in dict.fromkeys(sequence))
