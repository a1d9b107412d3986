"""A second look where one session fills the lists of candidates: what the others have is then asked for by itself.

A list is as long as it was asked for. A session with more hits than that hides all others, and no order of what is in
the lists brings them back. So the indexes are asked once more besides that session: only where the page would be more
than half of it and the lists went on, for no longer than the first look took.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from daemon.errors import ReconstituteError
from daemon.index import Match
from daemon.recall.ranking.grouping import COMPARABLE, Find
from daemon.recall.ranking.lists import STANDING, Found

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
        except ReconstituteError:  # its owner was told; there is an answer already
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
