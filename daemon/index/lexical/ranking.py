"""The best documents of one group for the words of a query.

First we collect candidates, with queries that are fast even for common words: a plain disjunction of terms, which
tantivy prunes, and conjunctions and phrases with a rare word. Then we score only the candidates, by everything that
counts: the words, their stems, all of them together, their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tantivy import DocAddress, Occur, Query

from daemon.index import Filters, Match
from daemon.index.lexical.query_terms import Spelling, TermMatch, joined, stretch, term_match_for
from daemon.index.lexical.schema import GROUPS, Group
from daemon.index.lexical.searcher import Place, Snapshot, all_of, any_of, as_match, place, text_of
from daemon.index.tokens import Term

_IN_ORDER = 0.5  # boost: all words, in their order
_JOINED = 0.75  # boost: all words, written as one
_BY_DISTANCE = (1.0, 0.3, 0.15)  # boost by the distance of a similar word
_LEADS = 40_000  # a conjunction or phrase is fast if its rarest word is in no more documents
_FEW = 5000  # in so few documents the next match is found at once
_PART = 0.25  # boost: only a part of a run
_BROAD = 120_000  # from so many postings on, words are searched only by their stems
_MOST_PAIRS = 48  # of one run, for candidates
_BITS = 20  # a sum of powers of two that a 32-bit float holds exactly


@dataclass(slots=True)
class Candidate:
    """A candidate document.

    `held` and `partly` are numbers of terms of the query: those that it holds, and those of which it has a good part.
    """

    group: Group
    address: DocAddress
    score: float
    held: list[int] = field(default_factory=list)
    spellings: list[Spelling] = field(default_factory=list)
    partly: list[int] = field(default_factory=list)


def worthwhile(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates with a term or a similar spelling; if there are none, those with a good part of a term."""
    return [candidate for candidate in candidates if candidate.held or candidate.spellings] or candidates


class Ranking:
    """One query against one group of kinds."""

    def __init__(
        self,
        snapshot: Snapshot,
        group: Group,
        terms: Sequence[Term],
        quotation: Sequence[tuple[int, str]] = (),
        spellings: Sequence[tuple[int, Spelling]] = (),
    ) -> None:
        self._snapshot = snapshot
        self._group = group
        self._terms = terms
        self._quotation = quotation if len(quotation) > 1 and len(terms) > 1 and group.has_order else ()
        self._joined = joined(terms) if group.has_order else ""
        self._spellings = spellings  # each with the number of its term
        self._term_matches = [term_match_for(term, group) for term in terms]

    def best(self, filters: Filters, limit: int, among: Query | None = None) -> list[Candidate]:
        """The best `limit` candidates, best first, among the documents of `among` if given; `among` does not score."""
        addresses: dict[Place, DocAddress] = {}
        scores: dict[Place, float] = {}
        sources = list(self._sources())
        if among is not None:  # few documents: together is faster than one by one
            sources = [all_of([among, any_of(sources)])] if sources else []
        for source in sources:
            for score, address in self._snapshot.best(self._snapshot.restricted(source, filters), limit):
                key = place(address)
                addresses[key] = address
                scores[key] = scores.get(key, 0.0) + score
        if not addresses:
            return []
        is_sure = not self._spellings and not self._term_matches[0].pairs and not self._term_matches[0].conjunction
        if len(self._term_matches) == 1 and is_sure:  # every match holds the term
            candidates = [Candidate(self._group, addresses[key], score, [0]) for key, score in scores.items()]
        else:
            candidates = self._scored(self._snapshot.among(list(addresses.values())), addresses)
        candidates.sort(key=lambda candidate: -candidate.score)
        return candidates

    def _sources(self) -> Iterator[Query]:
        """Fast queries for candidates."""
        flat = list(self._flat())
        if flat:
            yield any_of([Query.boost_query(self._snapshot.term(name, token), boost) for name, token, boost in flat])
        for term in self._term_matches:
            if term.phrase is not None and (
                len(self._term_matches) == 1 or self._leads(term.phrase[0], term.phrase[1])
            ):
                yield self._snapshot.phrase(term.phrase[0], term.phrase[1])
            if term.conjunction and self._leads(term.conjunction[0][0], [token for _, token in term.conjunction]):
                yield self._conjunction(term)
        if len(self._term_matches) == 1:
            return
        rarest = min(self._rarity(term) for term in self._term_matches)
        if 0 < rarest <= _LEADS:
            yield all_of([self._whole(term) for term in self._term_matches])
        if self._quotation and self._leads(self._group.words, [token for _, token in self._quotation]):
            yield self._snapshot.quotation(self._group.words, self._quotation)
        if self._joined:
            yield self._snapshot.term(self._group.words, self._joined)

    def _flat(self) -> Iterator[tuple[str, str, float]]:
        """(field, token, boost) of single terms, then similar spellings; for very common words only the stem."""
        flat_tokens = [token for term in self._term_matches for token in term.tokens]
        crowded = sum(self._snapshot.frequency(name, token) for name, token, _ in flat_tokens) > _BROAD
        for term in self._term_matches:
            if crowded and term.broad is not None:
                yield (*term.broad, sum(boost for *_, boost in term.tokens))
            else:
                yield from term.tokens
            for name, token in (*term.conjunction, *term.pairs)[:_MOST_PAIRS]:
                yield name, token, _PART
        for _, spelling in self._spellings:
            yield self._group.spelt, spelling.word, _BY_DISTANCE[spelling.distance]

    def _leads(self, name: str, sequence: Sequence[str]) -> bool:
        return 0 < min(self._snapshot.frequency(name, token) for token in sequence) <= _LEADS

    def _rarity(self, term: TermMatch) -> int:
        """About how many documents hold the term."""
        total = sum(self._snapshot.frequency(name, token) for name, token, _ in term.tokens)
        if term.phrase is not None:
            total += min(self._snapshot.frequency(term.phrase[0], token) for token in term.phrase[1])
        if term.conjunction:
            total += min(self._snapshot.frequency(name, token) for name, token in term.conjunction)
        return total

    def _whole(self, term: TermMatch) -> Query:
        """Documents that hold the term in any way."""
        if term.broad is not None:
            return self._snapshot.term(*term.broad)
        clauses = [self._snapshot.term(name, token) for name, token, _ in term.tokens]
        if term.phrase is not None:
            clauses.append(self._snapshot.phrase(term.phrase[0], term.phrase[1]))
        if term.conjunction:
            clauses.append(self._conjunction(term))
        return any_of(clauses)

    def _conjunction(self, term: TermMatch) -> Query:
        return all_of([self._snapshot.term(name, token) for name, token in term.conjunction])

    def _scored(self, among: Query, addresses: dict[Place, DocAddress]) -> list[Candidate]:
        # (query, boost, number of the term): for whole terms, then for parts of terms, then for similar words.
        pieces: list[tuple[Query, float, int]] = []
        for number, term in enumerate(self._term_matches):
            pieces += [(self._snapshot.term(name, token), boost, number) for name, token, boost in term.tokens]
            if term.phrase is not None:
                phrase = self._snapshot.phrase(term.phrase[0], term.phrase[1])
                pieces.append((self._optional(among, phrase, *term.phrase[:2]), term.phrase[2], number))
            if term.conjunction:
                name, tokens = term.conjunction[0][0], [token for _, token in term.conjunction]
                pieces.append((self._optional(among, self._conjunction(term), name, tokens), 1.0, number))
        exact = len(pieces)
        pieces += [(self._part(term), _PART, number) for number, term in enumerate(self._term_matches) if term.pairs]
        parts = len(pieces)
        pieces += [
            (self._snapshot.term(self._group.spelt, spelling.word), _BY_DISTANCE[spelling.distance], number)
            for number, spelling in self._spellings
        ]
        extra = self._extra(among)
        limit = len(addresses)
        sums = self._snapshot.sums(among, [*((query, boost) for query, boost, _ in pieces), *extra], limit)
        candidates = {
            key: Candidate(self._group, addresses[key], score) for key, score in sums.items() if key in addresses
        }
        for key, numbers in self._held(among, [query for query, _, _ in pieces], limit).items():
            if key in candidates:
                candidate = candidates[key]
                candidate.held = list(dict.fromkeys(pieces[number][2] for number in numbers if number < exact))
                partly = {pieces[number][2] for number in numbers if exact <= number < parts}
                candidate.partly = sorted(partly.difference(candidate.held))
                candidate.spellings = [self._spellings[number - parts][1] for number in numbers if number >= parts]
                if len(self._term_matches) > 1 and len(candidate.held) == len(self._term_matches):
                    candidate.score *= self._group.complete
        return [
            candidate for candidate in candidates.values() if candidate.held or candidate.spellings or candidate.partly
        ]

    def _part(self, term: TermMatch) -> Query:
        """Documents with a good part of a long run, in any order; more and rarer pairs score higher.

        The length of the text does not count, or a short text with half of the run would rank above a longer one with
        nearly all of it.
        """
        total = self._snapshot.searcher.num_docs
        clauses = []
        for name, token in term.pairs:
            rarity = math.log(1 + (total + 1) / (self._snapshot.frequency(name, token) + 1))
            clauses.append((Occur.Should, Query.const_score_query(self._snapshot.term(name, token), rarity)))
        return Query.boolean_query(clauses, minimum_number_should_match=term.least_pairs)

    def _optional(self, among: Query, row: Query, name: str, tokens: Sequence[str]) -> Query:
        """A phrase or conjunction as an optional clause; for common words, restricted to the candidates.

        Tantivy advances an optional clause to its next match, which may be thousands of documents farther.
        """
        is_rare = min(self._snapshot.frequency(name, token) for token in tokens) <= _FEW
        return row if is_rare else all_of([among, row])

    def _extra(self, among: Query) -> list[tuple[Query, float]]:
        extra = []
        if self._quotation:
            quotation = self._snapshot.quotation(self._group.words, self._quotation)
            tokens = [token for _, token in self._quotation]
            extra.append((self._optional(among, quotation, self._group.words, tokens), _IN_ORDER))
        if self._joined:
            extra.append((self._snapshot.term(self._group.words, self._joined), _JOINED))
        return extra

    def _held(self, among: Query, queries: Sequence[Query], limit: int) -> dict[Place, list[int]]:
        """For each candidate the numbers of matching queries. We run several at once, scored as powers of two."""
        held: dict[Place, list[int]] = {}
        for start in range(0, len(queries), _BITS):
            batch = queries[start : start + _BITS]
            coded = [(Query.const_score_query(query, 1.0), float(1 << bit)) for bit, query in enumerate(batch)]
            for key, total in self._snapshot.sums(among, coded, limit).items():
                bits = round(total)
                held.setdefault(key, []).extend(start + bit for bit in range(len(batch)) if bits >> bit & 1)
        return held


# -- of all groups ---------------------------------------------------------------------------------------------------


def groups_for(filters: Filters) -> Iterator[tuple[Group, Filters]]:
    """The groups that may pass the filters, each with the filters that it still needs."""
    kinds = set(filters.kinds)
    for group in GROUPS:
        if not kinds or group.kinds <= kinds:
            yield group, replace(filters, kinds=())
        elif group.kinds & kinds:
            yield group, filters


def best_first(candidates: list[Candidate]) -> list[Candidate]:
    """The candidates worth showing, best first."""
    return sorted(worthwhile(candidates), key=lambda candidate: -candidate.score)


def unique_matches(
    snapshot: Snapshot, candidates: Sequence[Candidate], terms: Sequence[Term], limit: int
) -> Iterator[tuple[Match, Candidate]]:
    """The first `limit` matches, one per part; the input and the output of a call are two."""
    parts: set[tuple[str, str, str]] = set()
    for candidate in candidates:
        document = snapshot.searcher.doc(candidate.address)
        text = text_of(document)
        match = as_match(document, candidate.score, text, matched_terms(candidate, terms, text))
        part = (match.message_id, match.part_id, match.kind)
        if part not in parts:
            parts.add(part)
            yield match, candidate
        if len(parts) == limit:
            return


def window_matches(snapshot: Snapshot, candidates: Sequence[Candidate], terms: Sequence[Term]) -> list[Match]:
    """One match a window, without part, kind, tool and text."""
    lengths = snapshot.lengths([candidate.address for candidate in candidates])
    return [
        Match(
            snapshot.match(candidate.address, 0).message_id,
            candidate.score,
            terms=matched_terms(candidate, terms, ""),
            length=length,
        )
        for candidate, length in zip(candidates, lengths, strict=True)
    ]


def matched_terms(candidate: Candidate, terms: Sequence[Term], text: str) -> tuple[str, ...]:
    """The terms that the candidate holds, and the parts that its text has of others."""
    held = [terms[number].text for number in sorted(candidate.held)]
    parts = [stretch(terms[number], text) for number in candidate.partly] if text else []
    return tuple(dict.fromkeys((*held, *filter(None, parts))))


def windows_with(snapshot: Snapshot, term: TermMatch) -> int:
    """The number of windows with a term; an upper bound for a run."""
    together = min((snapshot.frequency(name, token) for name, token in term.conjunction), default=0)
    return max([together, *(snapshot.frequency(name, token) for name, token, _ in term.tokens)])
