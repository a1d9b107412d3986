"""A message's place in the order and, in words, what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from daemon.recall.ranking.lists import STANDING, CandidateLists


@dataclass(frozen=True, slots=True)
class Ranked:
    """A message's place in the order.

    `sources` are the lists that had it or would have it; `parts` says what each feature added to the score. `tier` is
    how well it holds the names of a question, where that adds to the score and is no grade.
    """

    message_id: str
    score: float
    sources: tuple[str, ...]
    parts: Mapping[str, float] = field(default_factory=dict)
    tier: int | None = None


def reasons(candidates: CandidateLists) -> Callable[[Ranked], str]:
    """For explain: what each feature added to a score, and at which place a list of names or phrases had a message."""
    places = {name: {i: place for place, i in enumerate(candidates.ids(name), start=1)} for name in STANDING}

    def reason(fused: Ranked) -> str:
        added = [f"{_ADDED.get(name, name)} {value:.3f}" for name, value in fused.parts.items() if value]
        added += [f"{_STANDS[name]} {places[name][fused.message_id]}" for name in fused.sources if name in places]
        return f"score {fused.score:.3f}" + (f" ({', '.join(added)})" if added else "")

    return reason


_ADDED = {
    "words": "words add",
    "window": "its neighbours add",
    "coverage": "the rare words of the question that it holds add",
    "proximity": "words as close as in the question add",
    "meaning": "meaning adds",
    "names": "the names that it holds add",
    "verbatim": "what stands in it as asked adds",
    "day": "a day that the question names adds",
}
_STANDS = {
    "named": "by its name place",
    "phrase": "by the phrase place",
    "tools": "by its name in tools place",
    "printed": "by the phrase in tools place",
}
