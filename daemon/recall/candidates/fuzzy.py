"""Orders the matches of mode fuzzy: verbatim matches first, then similar spellings, then longer names.

The word index knows similar spellings only of words of letters. Here we add the verbatim matches of names and phrases
that mode smart finds, and mark a name that occurs only inside a longer one. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import count

from daemon.index import Match, tokens
from daemon.recall.query import names, parse
from daemon.recall.query.names import Standing
from daemon.recall.query.parse import Query

_MOST_READ = 1_000_000  # characters of texts that are searched for names; beyond that we trust the word index


class _Place(IntEnum):
    WHOLE = 0
    SIMILAR = 1
    INSIDE = 2
    OTHER_WORDS = 3  # holds only other words than the names


def held_whole(query: Query, matches: Sequence[Match], *, is_all: bool) -> set[str]:
    """The names that the word index found verbatim, and the phrase if a match has all of its words.

    These need no search in texts, because the word index finds them everywhere. It ignores stop words and marks, so for
    names that differ only in these it is complete only if `matches` are all that it has (`is_all`).
    """
    held = {name for name in query.named if (is_all or _has_pieces(name)) and _is_among(name, matches)}
    if 0 < len(query.phrase.split()) <= len(query.words):
        together = any(parse.split(match.terms).issuperset(query.words) for match in matches)
        held |= {query.phrase} if together else set()
    return held


def _has_pieces(name: str) -> bool:
    return sum(len(term.pieces) for term in tokens.terms(name)) > 1


def _is_among(name: str, matches: Sequence[Match]) -> bool:
    return any(
        budget >= 0 and names.stands(name, match.text) is Standing.WHOLE for match, budget in _with_budgets(matches)
    )


def merged(query: Query, matches: Sequence[Match], standing: Sequence[Match]) -> tuple[list[Match], bool]:
    """`matches`, as the word index ranks them, merged with `standing`, verbatim matches; one a part, scores falling.

    The first term of a standing match is the name or phrase. If a match has a name only inside a longer one, it has no
    terms, and the pair is in `spelling_pairs`. The second result says whether any of `standing` is of this kind.
    """
    candidates = {_part(match): _placed(query, match, budget) for match, budget in _with_budgets(matches)}
    is_inside = False
    for match in standing:
        name = match.terms[0]
        is_whole = _is_whole(query, name, match.text)
        is_inside |= not is_whole
        place, known = candidates.get(_part(match), (_Place.OTHER_WORDS, None))
        if is_whole:
            extended = match if known is None else replace(known, terms=tuple(dict.fromkeys((*known.terms, name))))
            candidates[_part(match)] = (_Place.WHOLE, extended)
        elif place is _Place.OTHER_WORDS:
            pair = (name, names.around(name, match.text) or name)
            before = () if known is None else tuple(pair for pair in known.spelling_pairs if pair[0] != name)
            candidates[_part(match)] = (
                _Place.INSIDE,
                replace(known or match, terms=known.terms if known else (), spelling_pairs=(*before, pair)),
            )
    order = sorted(zip(candidates.values(), count(), strict=False), key=lambda item: (item[0][0], item[1]))
    return _falling([match for (_, match), _ in order], {_part(match): match.score for match in matches}), is_inside


def _placed(query: Query, match: Match, budget: int) -> tuple[_Place, Match]:
    """The place of a match of the word index. Pieces of a name that it lacks move from `terms` to `spelling_pairs`.

    The order of the index is kept if the query has no names, or if the budget of characters is used up.
    """
    if not query.named or budget < 0:
        return _Place.SIMILAR, match
    missed = [name for name in query.named if names.stands(name, match.text) is not Standing.WHOLE]
    unsaid = [
        name for name in query.named if name not in missed and not parse.split((name,)) <= parse.split(match.terms)
    ]
    match = replace(match, terms=(*match.terms, *unsaid))
    if not missed:
        return _Place.WHOLE, match
    is_similar = len(missed) < len(query.named) or any(
        word in name for word, _ in match.spelling_pairs for name in missed
    )
    for name in missed:
        match = _without(match, name, keep=query.words)
    return _Place.SIMILAR if is_similar else _Place.OTHER_WORDS, match


def _without(match: Match, name: str, keep: Sequence[str]) -> Match:
    """The match without the pieces of a name that its text does not hold as a whole."""
    pieces = parse.split((name,))
    if not pieces or not pieces <= parse.split(match.terms):
        return match
    gone = [term for term in match.terms if parse.split((term,)) <= pieces.difference(keep)]
    pair = (name, names.around(name, match.text) or " ".join(gone) or name)
    return replace(
        match,
        terms=tuple(term for term in match.terms if term not in gone),
        spelling_pairs=(*match.spelling_pairs, pair),
    )


def _with_budgets(matches: Sequence[Match]) -> list[tuple[Match, int]]:
    """Each match with the budget of characters that remains after it."""
    budget, counted = _MOST_READ, []
    for match in matches:
        budget -= len(match.text)
        counted.append((match, budget))
    return counted


def _is_whole(query: Query, name: str, text: str) -> bool:
    if name == query.phrase:
        return names.stands_in(name, text)
    return names.stands(name, text) is Standing.WHOLE


def _falling(matches: Sequence[Match], scores: dict[tuple[str, str, str], float]) -> list[Match]:
    """The matches with the scores of the word index, capped so that they fall; others take the score of their place."""
    ceiling = max(scores.values(), default=1.0)
    rescored = []
    for match in matches:
        ceiling = min(ceiling, scores.get(_part(match), ceiling))
        rescored.append(replace(match, score=ceiling))
    return rescored


def _part(match: Match) -> tuple[str, str, str]:
    return match.message_id, match.part_id, match.kind
