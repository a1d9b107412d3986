"""One result a part, a message, a session or a project; and a first page that no single session fills.

Pure functions over finds in their order. Grouping keeps the best of each group and counts the others; diversity moves
finds, never drops them, and says of each that it was moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from daemon.index import Match
from daemon.recall.ranking.fuse import FURTHER

COMPARABLE = 0.5
"""A find of another session goes before one too many of the same if it has at least this share of its score."""
_COUNTED = 3


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
    whole = sum(FURTHER**place for place in range(_COUNTED))
    totals = {
        key: sum(score * FURTHER**place for place, score in enumerate(list(some.values())[:_COUNTED])) / whole
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
