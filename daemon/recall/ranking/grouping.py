"""One result for each part, message, session or project; and a first page that no single session fills.

`grouped` keeps the best result of each group and counts the others. `diverse` reorders the first page and drops
nothing. Where one session fills the lists of candidates, no order brings the others back: `spread` then searches again
without that session, for no longer than the first search took.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from daemon.errors import Retry, Skip
from daemon.index import Match
from daemon.recall.ranking.lists import STANDING, Found
from daemon.recall.ranking.weights import COMPARABLE, COUNTED, FURTHER


@dataclass(frozen=True, slots=True)
class Find:
    """One part of a message that answers the question, or a message found by its neighbours or its meaning.

    `score` is 0 to 1 and falls along an answer; `grade` 0 is the best way to hold what was asked for, and a find of a
    worse grade stands below all of a better one; `mode` is how it was found; `sources` are the lists that had it;
    `relevance` is set where an answer was filled up from farther directories; `hits` counts the finds of its group.
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
    near: tuple[tuple[str, str], ...] = ()
    sources: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    relevance: str = ""
    hits: int = 1

    @property
    def is_own(self) -> bool:
        """Whether the message itself holds words of the question, or its meaning: not only its neighbours."""
        return set(self.sources) != {"windows"}

    @property
    def is_by_words(self) -> bool:
        """Whether the message itself holds a word of the question as it was asked."""
        return self.is_own and self.mode != "semantic" and (bool(self.terms) or not self.near)

    def key(self, level: str) -> tuple[str, ...]:
        """What finds of one group have in common."""
        return {
            "part": (self.message_id, self.match.part_id, self.match.kind),
            "message": (self.message_id,),
            "session": (self.session_id,),
            "project": (self.project_id,),
        }[level]


def grouped(finds: Sequence[Find], level: str) -> list[Find]:
    """The first find of each group, in order, with the number of its finds by words, or where none is, of all."""
    groups: dict[tuple[str, ...], list[Find]] = {}
    for find in finds:
        groups.setdefault(find.key(level), []).append(find)
    counts = {key: sum(find.is_by_words for find in some) or len(some) for key, some in groups.items()}
    return [some[0] if counts[key] == 1 else replace(some[0], hits=counts[key]) for key, some in groups.items()]


def gathered(finds: Sequence[Find], level: str) -> list[Find]:
    """As `grouped`, the groups ranked by their best messages together: several good ones outweigh a single one.

    Three messages of a group count, each further one less, so that nothing is gained by length alone; those of a worse
    grade than the group's best do not count.
    """
    scores: dict[tuple[str, ...], dict[str, float]] = {}
    grades: dict[tuple[str, ...], int] = {}
    for find in finds:
        key = find.key(level)
        if find.grade == grades.setdefault(key, find.grade):
            scores.setdefault(key, {}).setdefault(find.message_id, find.score)
    whole = sum(FURTHER**place for place in range(COUNTED))
    totals = {
        key: sum(score * FURTHER**place for place, score in enumerate(list(some.values())[:COUNTED])) / whole
        for key, some in scores.items()
    }
    groups = sorted(grouped(finds, level), key=lambda find: (find.grade, -totals[find.key(level)]))
    ceiling, ranked = 1.0, []
    for find in groups:
        ceiling = min(ceiling, totals[find.key(level)])
        ranked.append(replace(find, score=round(ceiling, 4)))
    return ranked


def without_echoes(finds: Sequence[Find]) -> list[Find]:
    """Without messages that were found by their neighbours alone, where a find of their session is there anyway."""
    own = {find.session_id for find in finds if find.is_own}
    taken: set[str] = set()
    kept = []
    for find in finds:
        if not find.is_own and (find.session_id in own or find.session_id in taken):
            continue
        taken.add(find.session_id)
        kept.append(find)
    return kept


def diverse(finds: Sequence[Find], page: int) -> list[Find]:
    """`finds` with at most half of the first `page` from one session, as far as others have comparable finds.

    Comparable is what has the same grade, comes from as near and has at least COMPARABLE of the score. What is put
    off comes right after the first page's others; nothing is lost.
    """
    most = max(1, (page + 1) // 2)
    waiting = list(finds)
    counts: dict[str, int] = {}
    shown: list[Find] = []
    while waiting and len(shown) < page:
        place = _next(waiting, counts, most)
        find = waiting.pop(place)
        if place:
            find = replace(find, reasons=(*find.reasons, f"moved up {place}: {most} of its betters are of one session"))
        counts[find.session_id] = counts.get(find.session_id, 0) + 1
        shown.append(find)
    return shown + waiting


def falling(finds: Sequence[Find]) -> list[Find]:
    """`finds` as they stand, none with a higher score than the one before it: the last thing done to an order."""
    ceiling, made = 1.0, []
    for find in finds:
        ceiling = min(ceiling, find.score)
        made.append(find if find.score == ceiling else replace(find, score=ceiling))
    return made


def _next(waiting: Sequence[Find], counts: dict[str, int], most: int) -> int:
    first = waiting[0]
    if counts.get(first.session_id, 0) < most:
        return 0
    for place, find in enumerate(waiting):
        if (find.grade, find.relevance) != (first.grade, first.relevance) or find.score < COMPARABLE * first.score:
            break
        if counts.get(find.session_id, 0) < most:
            return place
    return 0


_LOOKS = 2
"""At most so many more: two sessions may crowd a list between them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The page that is to be filled: how many finds, of single messages or of groups that stand for many.

    `depth` is how long a list was asked to be, in `mode`; another look may take `within_s`; `session_of` tells a
    candidate's session, "" where it is not archived.
    """

    mode: str
    results: int
    is_single: bool
    depth: int
    within_s: float
    session_of: Callable[[str], str]


Gather = Callable[[str, frozenset[str], float], Found]
"""Candidates in a mode, besides these sessions, until a time of time.monotonic's clock."""


def spread(
    wanted: Wanted, found: Found, arranged: Callable[[Found], list[Find]], gather: Gather
) -> tuple[Found, list[Find], bool]:
    """`found` and the finds that it is `arranged` to, with what sessions have that others crowded out.

    And whether no other session can have anything more.
    """
    finds, besides, is_all = arranged(found), frozenset[str](), False
    for _ in range(_LOOKS):
        crowds = _crowds(found, wanted)
        if crowds <= besides or not _is_needed(finds, crowds, wanted):
            break
        besides |= crowds
        is_by_words = wanted.mode == "hybrid" and not _fill(found, "semantic", wanted) & besides
        try:
            more = gather("smart" if is_by_words else wanted.mode, besides, time.monotonic() + wanted.within_s)
        except (Retry, Skip):  # its owner was told; there is an answer already
            break
        found = together(found, more)
        finds = arranged(found)
        is_all = not more.late and not more.is_full(wanted.depth)
    return found, finds, is_all


def _is_needed(finds: Sequence[Find], crowds: frozenset[str], wanted: Wanted) -> bool:
    if not wanted.is_single:
        return len(finds) < wanted.results
    counts = Counter(find.session_id for find in finds[: wanted.results])
    most = max(1, (wanted.results + 1) // 2)
    return any(counts[session] > most for session in crowds)


def _crowds(found: Found, wanted: Wanted) -> frozenset[str]:
    return frozenset[str]().union(*(_fill(found, name, wanted) for name in found.lists))


def _fill(found: Found, name: str, wanted: Wanted) -> frozenset[str]:
    """The session that has more than half of a list, if the list went on with what is worth as much."""
    matches = found.lists.get(name, [])
    if len(matches) < wanted.depth or (wanted.is_single and not _goes_on(name, matches)):
        return frozenset()
    counts = Counter(wanted.session_of(match.message_id) for match in matches)
    session, count = counts.most_common(1)[0]
    return frozenset({session}) if session and 2 * count > len(matches) else frozenset()


def _goes_on(name: str, matches: Sequence[Match]) -> bool:
    """Whether what was cut off may be comparable to the best; lists in the order of time tell nothing of that."""
    return name in STANDING or matches[-1].score >= COMPARABLE * matches[0].score


def _key(match: Match) -> tuple[str, ...]:
    # A chunk's kind and text may be told in one look and not in the other.
    return (match.record,) if match.record else (match.message_id, match.part_id, match.kind)


def together(first: Found, more: Found) -> Found:
    """The lists of two looks as one, each match once; what went wrong and what is known of the question is the first's.

    The scores of one index are of one scale, whatever was left out.
    """
    lists: dict[str, list[Match]] = {}
    for name in dict.fromkeys((*first.lists, *more.lists)):
        told = [*first.lists.get(name, []), *more.lists.get(name, [])]
        once: dict[tuple[str, ...], Match] = {}
        for match in told:
            known = once.get(_key(match))
            if known is None or (match.text and not known.text):
                once[_key(match)] = match
        lists[name] = list(once.values())
        if name not in STANDING:
            lists[name].sort(key=lambda match: -match.score)
    stands = bool(lists.get("phrase") or lists.get("printed"))
    return replace(first, lists=lists, is_inside=(first.is_inside or more.is_inside) and not stands)
