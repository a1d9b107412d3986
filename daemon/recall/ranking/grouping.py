"""One result for each part, message, session or project; and a first page that no single session fills.

`grouped` keeps the best result of each group and counts the others. `diverse` reorders the first page and drops
nothing. If one session fills the lists of candidates, reordering cannot bring the others back, so `spread` searches
again without that session, for no longer than the first search took. `folded` makes one result of a message and its
copies, because a fork repeats the messages of its session, and a command may print the same text again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from daemon import records
from daemon.archive import Archive
from daemon.errors import Retry, Skip
from daemon.index import Match
from daemon.model import Kind, parts_where
from daemon.recall.candidates.lists import STANDING, CandidateLists
from daemon.recall.weights import COMPARABLE, COUNTED, FURTHER
from daemon.transcript.replay import replay


@dataclass(frozen=True, slots=True)
class Result:
    """One matching part of a message, or a message found by its neighbours or its meaning.

    * `score`: 0 to 1, falls along an answer
    * `grade`: how well it holds the query, 0 is best; `band`: a result of a worse band ranks below all of a better one
    * `mode`: how it was found; `sources`: the lists that have it
    * `relevance`: set for results from farther directories
    * `hits`: number of results of its group
    * `copies`: (message, session) with exactly the same content
    """

    message_id: str
    session_id: str
    project_id: str
    created: int
    match: Match
    mode: str
    score: float = 0.0
    grade: int = 0
    terms: tuple[str, ...] = ()
    spelling_pairs: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    relevance: str = ""
    hits: int = 1
    copies: tuple[tuple[str, str], ...] = ()
    band: int = 0

    @property
    def is_own(self) -> bool:
        """Whether the message itself matches, and not only its neighbours."""
        return set(self.sources) != {"windows"}

    @property
    def is_by_words(self) -> bool:
        """Whether the message itself holds a word of the question, not only a similar spelling."""
        return self.is_own and self.mode != "semantic" and (bool(self.terms) or not self.spelling_pairs)

    def key(self, level: str) -> tuple[str, ...]:
        """The key of the result's group."""
        return {
            "part": (self.message_id, self.match.part_id, self.match.kind),
            "message": (self.message_id,),
            "session": (self.session_id,),
            "project": (self.project_id,),
        }[level]


def grouped(results: Sequence[Result], level: str) -> list[Result]:
    """The first result of each group, in order; `hits` counts the results by words, or all if there are none."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(result.key(level), []).append(result)
    counts = {key: sum(result.is_by_words for result in members) or len(members) for key, members in groups.items()}
    return [
        members[0] if counts[key] == 1 else replace(members[0], hits=counts[key]) for key, members in groups.items()
    ]


def gathered(results: Sequence[Result], level: str) -> list[Result]:
    """As `grouped`, but groups are ranked by their best messages together, so several good ones outweigh a single one.

    The best COUNTED messages of a group count, each less than the one before, so that length alone gains nothing.
    Messages of a worse band than the best one do not count.
    """
    scores: dict[tuple[str, ...], dict[str, float]] = {}
    bands: dict[tuple[str, ...], int] = {}
    for result in results:
        key = result.key(level)
        if result.band == bands.setdefault(key, result.band):
            scores.setdefault(key, {}).setdefault(result.message_id, result.score)
    whole = sum(FURTHER**place for place in range(COUNTED))
    totals = {
        key: sum(score * FURTHER**place for place, score in enumerate(list(member_scores.values())[:COUNTED])) / whole
        for key, member_scores in scores.items()
    }
    groups = sorted(grouped(results, level), key=lambda result: (result.band, -totals[result.key(level)]))
    ceiling, ranked = 1.0, []
    for result in groups:
        ceiling = min(ceiling, totals[result.key(level)])
        ranked.append(replace(result, score=round(ceiling, 4)))
    return ranked


def without_echoes(results: Sequence[Result]) -> list[Result]:
    """Drop messages found only by their neighbours if their session has another result."""
    own = {result.session_id for result in results if result.is_own}
    sessions: set[str] = set()
    distinct = []
    for result in results:
        if not result.is_own and (result.session_id in own or result.session_id in sessions):
            continue
        sessions.add(result.session_id)
        distinct.append(result)
    return distinct


def diverse(results: Sequence[Result], page: int) -> list[Result]:
    """Reorder `results` so that at most half of the first `page` is of one session, if others have comparable results.

    A comparable result has the same band and relevance, and at least COMPARABLE of the score. Postponed results come
    right after the first page; none are dropped.
    """
    most = max(1, (page + 1) // 2)
    waiting = list(results)
    counts: dict[str, int] = {}
    first_page: list[Result] = []
    while waiting and len(first_page) < page:
        place = _next(waiting, counts, most)
        result = waiting.pop(place)
        if place:
            result = replace(
                result, reasons=(*result.reasons, f"moved up {place}: {most} of its betters are of one session")
            )
        counts[result.session_id] = counts.get(result.session_id, 0) + 1
        first_page.append(result)
    return first_page + waiting


def falling(results: Sequence[Result]) -> list[Result]:
    """Cap the scores of `results` so that none is higher than the one before; the last step of ordering."""
    ceiling, capped = 1.0, []
    for result in results:
        ceiling = min(ceiling, result.score)
        capped.append(result if result.score == ceiling else replace(result, score=ceiling))
    return capped


def _next(waiting: Sequence[Result], counts: dict[str, int], most: int) -> int:
    first = waiting[0]
    if counts.get(first.session_id, 0) < most:
        return 0
    for place, result in enumerate(waiting):
        if (result.band, result.relevance) != (
            first.band,
            first.relevance,
        ) or result.score < COMPARABLE * first.score:
            break
        if counts.get(result.session_id, 0) < most:
            return place
    return 0


_MORE_SEARCHES = 2
"""Further searches at most: two sessions may fill a list between them."""


@dataclass(frozen=True, slots=True)
class PageTarget:
    """The page to fill: how many results, of single messages or of groups.

    `depth` is the requested length of the lists, in `mode`. Another search may take `within_s`. `session_of` returns a
    candidate's session, "" if it is not archived.
    """

    mode: str
    results: int
    is_single: bool
    depth: int
    within_s: float
    session_of: Callable[[str], str]


Gather = Callable[[str, frozenset[str], float], CandidateLists]
"""Gathers candidates in a mode, without these sessions, until a time on time.monotonic's clock."""


def spread(
    target: PageTarget, candidates: CandidateLists, arranged: Callable[[CandidateLists], list[Result]], gather: Gather
) -> tuple[CandidateLists, list[Result], bool]:
    """Search again without sessions that crowd out others, if the page needs it.

    Returns (candidates, results, whether no other session can have more).
    """
    results, besides, is_all = arranged(candidates), frozenset[str](), False
    for _ in range(_MORE_SEARCHES):
        crowds = _crowds(candidates, target)
        if crowds <= besides or not _is_needed(results, crowds, target):
            break
        besides |= crowds
        is_by_words = target.mode == "hybrid" and not _fill(candidates, "semantic", target) & besides
        try:
            more = gather("smart" if is_by_words else target.mode, besides, time.monotonic() + target.within_s)
        except (Retry, Skip):  # its owner was notified, and there is an answer already
            break
        candidates = together(candidates, more)
        results = arranged(candidates)
        is_all = not more.late and not more.is_full(target.depth)
    return candidates, results, is_all


def _is_needed(results: Sequence[Result], crowds: frozenset[str], target: PageTarget) -> bool:
    if not target.is_single:
        return len(results) < target.results
    counts = Counter(result.session_id for result in results[: target.results])
    most = max(1, (target.results + 1) // 2)
    return any(counts[session] > most for session in crowds)


def _crowds(candidates: CandidateLists, target: PageTarget) -> frozenset[str]:
    return frozenset[str]().union(*(_fill(candidates, name, target) for name in candidates.lists))


def _fill(candidates: CandidateLists, name: str, target: PageTarget) -> frozenset[str]:
    """The session with more than half of a list, if matches beyond its end may be as good."""
    matches = candidates.lists.get(name, [])
    if len(matches) < target.depth or (target.is_single and not _goes_on(name, matches)):
        return frozenset()
    counts = Counter(target.session_of(match.message_id) for match in matches)
    session, count = counts.most_common(1)[0]
    return frozenset({session}) if session and 2 * count > len(matches) else frozenset()


def _goes_on(name: str, matches: Sequence[Match]) -> bool:
    """Whether matches beyond the end may be comparable to the best; always true for lists by time."""
    return name in STANDING or matches[-1].score >= COMPARABLE * matches[0].score


def _key(match: Match) -> tuple[str, ...]:
    # A chunk's kind and text may be known in one search and not in the other.
    return (match.record,) if match.record else (match.message_id, match.part_id, match.kind)


def together(first: CandidateLists, more: CandidateLists) -> CandidateLists:
    """Merge the lists of two searches, each match once; warnings and statistics are those of the first.

    Scores of one index are comparable, whichever sessions were excluded.
    """
    lists: dict[str, list[Match]] = {}
    for name in dict.fromkeys((*first.lists, *more.lists)):
        both = [*first.lists.get(name, []), *more.lists.get(name, [])]
        once: dict[tuple[str, ...], Match] = {}
        for match in both:
            known = once.get(_key(match))
            if known is None or (match.text and not known.text):
                once[_key(match)] = match
        lists[name] = list(once.values())
        if name not in STANDING:
            lists[name].sort(key=lambda match: -match.score)
    merged = {
        name: [*first.more.get(name, []), *more.more.get(name, [])] for name in dict.fromkeys((*first.more, *more.more))
    }
    stands = bool(lists.get("phrase") or lists.get("printed"))
    return replace(first, lists=lists, more=merged, is_inside=(first.is_inside or more.is_inside) and not stands)


# -- copies ------------------------------------------------------------------------------------------------------------

# Copies are equal in role and in all texts, calls and outputs. Reading messages takes time, so we compare only those
# that may be copies: of the same millisecond, as in a fork, or with equal matched texts, or equal scores by meaning.


_MOST_READ = 200
"""Messages read for one answer at most; each takes up to a millisecond."""


_COPY_STEP = 0.002
"""Copies score the same by meaning only to within half of this, because each stored vector is moved (chroma.NUDGE): by
0.0006 at most, and 0.0015 where vectors are compared as integers (measured, 900 pairs)."""


def folded(results: Sequence[Result], content_of: Callable[[Result], bytes]) -> list[Result]:
    """The first result of each content, in order, with its copies. `content_of` is empty if it cannot be compared.

    Results by title are never folded, because the title names the session.
    """
    originals: list[Result] = []
    places: dict[Hashable, list[int]] = {}
    for result in results:
        signs = list(_signs(result))
        original = _original(result, [place for sign in signs for place in places.get(sign, ())], originals, content_of)
        if original is None:
            original = len(originals)
            originals.append(result)
        else:
            copies = (*originals[original].copies, (result.message_id, result.session_id), *result.copies)
            originals[original] = replace(originals[original], copies=copies)
        for sign in signs:
            places.setdefault(sign, []).append(original)
    return originals


def _signs(result: Result) -> Iterator[Hashable]:
    """Values that a result shares with its copies, and hardly with other results."""
    if result.match.kind == Kind.TITLE:
        return
    yield result.created
    if result.match.text:
        yield result.match.kind, result.match.text
    elif result.mode == "semantic":
        for shift in (0.0, 0.5):  # two grids, so that no border between steps parts two copies
            yield shift, round(result.match.score / _COPY_STEP + shift)


def _original(
    result: Result, places: Sequence[int], originals: Sequence[Result], content_of: Callable[[Result], bytes]
) -> int | None:
    for place in dict.fromkeys(places):
        if (originals[place].message_id, originals[place].match.part_id) == (result.message_id, result.match.part_id):
            continue  # the input and the output of one call
        content = content_of(result)
        if content and content == content_of(originals[place]):
            return place
    return None


class Contents:
    """Content to compare results by, read once: the matched part with `is_part`, else the whole message."""

    def __init__(self, archive: Archive, *, is_part: bool) -> None:
        self._archive, self._is_part = archive, is_part
        self._known: dict[tuple[str, str], bytes] = {}

    def __call__(self, result: Result) -> bytes:
        """A digest of the content; empty if the message is gone, or after _MOST_READ messages."""
        part_id = result.match.part_id if self._is_part else ""
        key = (result.message_id, part_id)
        if key not in self._known:
            self._known[key] = self._digest(result.message_id, part_id) if len(self._known) < _MOST_READ else b""
        return self._known[key]

    def _digest(self, message_id: str, part_id: str) -> bytes:
        message = self._archive.message(message_id)
        if message is None:
            return b""
        parts = parts_where(message.parts, lambda part: part.id == part_id) if part_id else message.parts
        content = replay(replace(message, parts=parts))
        return sha256(records.dumps(content)).digest() if content else b""
