"""Overlays the lexical index with a small one of the newest messages, so that a search need not wait for a commit.

The small index replaces its messages in the large one, whatever version that has. Best-first answers are merged by
score. The scores of the small index are scaled to those of the large one, because rarity means nothing among a handful
of texts. Answers in the order of time are concatenated, the small index first, because its messages are the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from daemon.index import PROSE, Entry, Filters, LexicalIndex, Match, number_of, tokens

_PART = 0.5  # the value of a term that a text holds only in part


class Overlay:
    """LexicalIndex that reads `fresh` over `index`, which it writes to. `shadowed`: the ids of what `fresh` has."""

    def __init__(self, index: LexicalIndex, fresh: LexicalIndex, shadowed: frozenset[str]) -> None:
        self._index = index
        self._fresh = fresh
        self._shadowed = shadowed

    def replace(self, entries: Iterable[Entry]) -> None:
        """See LexicalIndex."""
        self._index.replace(entries)

    def remove(self, message_ids: Sequence[str]) -> None:
        """See LexicalIndex."""
        self._index.remove(message_ids)

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        """See LexicalIndex."""

        def ranked(filters: Filters, limit: int) -> list[Match]:
            return self._ranked(lambda index, most: index.search(query, filters, most), query, limit)

        best = ranked(filters, limit)
        kinds = PROSE.intersection(filters.kinds) if filters.kinds else PROSE
        if not kinds or len(best) < limit or sum(match.kind in PROSE for match in best) >= least_prose:
            return best
        known = {(match.message_id, match.part_id, match.kind) for match in best}
        more = ranked(replace(filters, kinds=tuple(sorted(kinds))), least_prose)
        best += [match for match in more if (match.message_id, match.part_id, match.kind) not in known]
        return sorted(best, key=lambda match: -match.score)

    def windows(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """See LexicalIndex."""
        return self._ranked(lambda index, most: index.windows(query, filters, most), query, limit)

    def scores(
        self, query: str, filters: Filters, of_parts: Collection[str], of_windows: Collection[str]
    ) -> tuple[list[Match], list[Match]]:
        """See LexicalIndex."""

        def divided(message_ids: Collection[str]) -> tuple[list[str], list[str]]:
            own = [i for i in message_ids if i in self._shadowed]
            return own, [i for i in message_ids if i not in self._shadowed]

        (own_parts, parts), (own_windows, windows) = divided(of_parts), divided(of_windows)
        own = self._fresh.scores(query, filters, own_parts, own_windows)
        large = self._index.scores(query, filters, parts, windows)
        merged = [
            [*_scaled(fresh_matches, large_matches, query), *large_matches]
            for fresh_matches, large_matches in zip(own, large, strict=True)
        ]
        return merged[0], merged[1]

    def fuzzy(self, query: str, filters: Filters, limit: int) -> list[Match]:
        """See LexicalIndex."""
        return self._ranked(lambda index, most: index.fuzzy(query, filters, most), query, limit)

    def literal(self, text: str, filters: Filters, limit: int) -> list[Match]:
        """See LexicalIndex."""
        return self._newest(lambda index, most: index.literal(text, filters, most), limit)

    def regex(self, pattern: str, filters: Filters, limit: int, within_s: float) -> tuple[list[Match], bool]:
        """See LexicalIndex."""
        are_all = []

        def search(index: LexicalIndex, most: int) -> list[Match]:
            results, is_all = index.regex(pattern, filters, most, within_s)
            are_all.append(is_all)
            return results

        results = self._newest(search, limit)
        return results, all(are_all)

    def by_time(self, time: int, filters: Filters, limit: int, *, before: bool) -> list[Match]:
        """See LexicalIndex; `score` is the time."""
        results = self._both(lambda index, most: index.by_time(time, filters, most, before=before), limit)
        return sorted(results, key=lambda match: match.score, reverse=before)[:limit]

    def allowed_ids(self, filters: Filters, most: int, among: Collection[int] | None = None) -> Collection[int] | None:
        """See AllowedIds."""
        own = self._fresh.allowed_ids(filters, len(self._shadowed), among)
        large_ids = self._index.allowed_ids(filters, most, among)
        if own is None or large_ids is None:
            return None
        shadowed = {number_of(message_id) for message_id in self._shadowed}
        return {*own, *(number for number in large_ids if number not in shadowed)}

    def counts(self, filters: Filters, bounds: Sequence[int], without: Collection[str] = ()) -> list[int]:
        """See LexicalIndex."""
        large = self._index.counts(filters, bounds, {*without, *self._shadowed})
        own = self._fresh.counts(filters, bounds, without)
        return [in_large + in_own for in_large, in_own in zip(large, own, strict=True)]

    def frequencies(self, query: str) -> tuple[int, dict[str, int]]:
        """See LexicalIndex."""
        return self._index.frequencies(query)

    def spellings(self, word: str, limit: int) -> list[tuple[str, int]]:
        """See LexicalIndex."""
        return self._index.spellings(word, limit)

    def count(self) -> int:
        """See LexicalIndex."""
        return self._index.count()

    def close(self) -> None:
        """See LexicalIndex; the small index belongs to its owner."""
        self._index.close()

    def _newest(self, search: Callable[[LexicalIndex, int], list[Match]], limit: int) -> list[Match]:
        return self._both(search, limit)[:limit]

    def _ranked(self, search: Callable[[LexicalIndex, int], list[Match]], query: str, limit: int) -> list[Match]:
        large = self._unshadowed(search, limit)
        own = _scaled(search(self._fresh, limit), large, query)
        return sorted([*own, *large], key=lambda match: -match.score)[:limit]

    def _both(self, search: Callable[[LexicalIndex, int], list[Match]], limit: int) -> list[Match]:
        return [*search(self._fresh, limit), *self._unshadowed(search, limit)]

    def _unshadowed(self, search: Callable[[LexicalIndex, int], list[Match]], limit: int) -> list[Match]:
        """The matches of the large index, without messages that the small one has."""
        results = search(self._index, limit)
        unshadowed = [match for match in results if match.message_id not in self._shadowed]
        if len(unshadowed) < len(results) == limit:  # the removed matches may have displaced others
            unshadowed = [match for match in search(self._index, limit * 2) if match.message_id not in self._shadowed]
        return unshadowed[:limit]


def _scaled(own: list[Match], large: Sequence[Match], query: str) -> list[Match]:
    """The matches of the small index, scaled to the large one's; lower if they hold fewer terms."""
    if not own or not large or own[0].score <= 0:
        return own
    query_terms = {term.text for term in tokens.terms(query)}
    most = max(_held(match, query_terms) for match in large) or 1
    share = min(1.0, max(_held(match, query_terms) for match in own) / most)
    scale = share * large[0].score / own[0].score
    return [replace(match, score=match.score * scale) for match in own]


def _held(match: Match, query_terms: Collection[str]) -> float:
    return sum(1.0 if term in query_terms else _PART for term in match.terms)
