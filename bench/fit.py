"""Fits the weights of the ranking on several question sets at once, and tells their worth on sets they never saw.

    python bench/fit.py [--data DIR] [--keep DIR] [--most 4000] [--questions 200] [--only SET]...

The sets are those of bench/quality.py, with the same arguments. Each question's candidates are taken once from the
product's own search, with their features (recall.ranking.fuse); then weights are tried without it. From equal
weights, a coordinate search changes one weight at a time, by factors, as long as that helps: the mean over the sets
of how far the MRR is above that of the better half, whatever is below it counted twice. Meaning keeps its weight, as
only ratios count.

Leave-one-set-out: for each set the weights are fitted on all others and judged on it. The last line has the weights
fitted on all sets. Tiers of names and short queries are not modelled, so bench/quality.py has the last word.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench import quality, quality_house
from daemon.embed.builtin import Builtin
from daemon.index import Filters
from daemon.recall import weights
from daemon.recall.candidates import CandidateSearch
from daemon.recall.query import parse
from daemon.recall.ranking import fuse

NAMES = tuple(weights.FEATURES)
_MEANING = NAMES.index("meaning")
_DEPTH = 200
_FACTORS = (0.0, 0.5, 0.8, 1.25, 2.0)
_LEAST_GAIN = 1e-4

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Of one question: features by message (rows) and name (columns), cosines, days, and each message's session."""

    features: Floats
    cosines: Floats
    days: Floats
    session: NDArray[np.int64]
    is_right: NDArray[np.bool_]

    def rank(self, scores: Floats) -> float:
        """The reciprocal rank of the first right session, with sessions scored as grouping.gathered does."""
        if not self.is_right.any():
            return 0.0
        order = np.lexsort((-scores, self.session))
        session, ordered = self.session[order], scores[order]
        first = np.r_[0, np.flatnonzero(np.diff(session)) + 1]
        place = np.arange(len(session)) - np.repeat(first, np.diff(np.r_[first, len(session)]))
        counts = place < weights.COUNTED
        values = ordered[counts] * weights.FURTHER ** place[counts]
        totals = np.bincount(session[counts], weights=values, minlength=len(self.is_right))
        above = int((totals > totals[self.is_right].max() + 1e-12).sum())
        return 1 / (above + 1) if above < quality_house.DEEP else 0.0


def candidates_of(house: quality_house.House, question: quality_house.Question, embedder: Builtin) -> Candidates | None:
    """What hybrid has to order for a question; None where it finds nothing."""
    search = CandidateSearch(house.lexical, lambda: house.semantic, embedder, _fail)
    query = parse.parse(question.text)
    found = search.gather(query, "hybrid", Filters(), _DEPTH, deadline=time.monotonic() + quality_house.BUDGET_S)
    similar = found.similar()
    meant = [match for match in found.all_matches("semantic") if match.message_id in similar]
    features = fuse.features_of(found.all_matches("lexical"), found.all_matches("windows"), meant, found.stats)
    states = {message_id: house.archive.state(message_id) for message_id in features}
    ids = [message_id for message_id, state in states.items() if state is not None]
    if not ids:
        return None
    cosines: dict[str, float] = {}
    for match in found.all_matches("semantic"):
        cosines[match.message_id] = max(match.score, cosines.get(match.message_id, -1.0))
    sessions = [states[i]["session"] for i in ids]
    numbers = {session: number for number, session in enumerate(dict.fromkeys(sessions))}
    unread = house.archive.unread_among(found.by_words())
    stats = replace(
        found.stats,
        legible=found.legible,
        known=found.known,
        legible_texts=1 - len(unread) / max(1, len(found.by_words())),
    )
    made = np.array([[getattr(features[i], name) for name in NAMES] for i in ids])
    made[:, _MEANING] *= fuse.meaning_weight(stats) / weights.FEATURES["meaning"]
    return Candidates(
        made,
        np.array([cosines.get(i, -1.0) for i in ids]),
        np.array([weights.DAY * fuse.date_proximity(query.days, states[i]["created"]) for i in ids]),
        np.array([numbers[session] for session in sessions]),
        np.array([session in question.right for session in numbers]),
    )


def _fail(index: str, error: Exception) -> None:
    raise SystemExit(f"the {index} index failed: {error}")


Sets: TypeAlias = Mapping[str, Sequence[Candidates | None]]


def mrr(asked: Sequence[Candidates | None], chosen: Floats) -> float:
    """The mean reciprocal rank of a set's questions with these weights."""
    ranks = [one.rank(one.features @ chosen + one.days) if one else 0.0 for one in asked]
    return float(np.mean(ranks))


def better_half(asked: Sequence[Candidates | None], chosen: Floats) -> float:
    """The better MRR of words with these weights and of meaning alone."""
    by_words = np.where(np.arange(len(NAMES)) == _MEANING, 0.0, chosen)
    by_meaning = float(np.mean([one.rank(np.maximum(one.cosines, -1.0) + 1.0) if one else 0.0 for one in asked]))
    return max(mrr(asked, by_words), by_meaning)


def fitted(sets: Sets) -> Floats:
    """The weights that coordinate search ends at, meaning at its own."""
    equal = np.full(len(NAMES), float(weights.FEATURES["meaning"]))
    halves = {name: better_half(asked, equal) for name, asked in sets.items()}

    def value(chosen: Floats) -> float:
        above = np.array([mrr(asked, chosen) - halves[name] for name, asked in sets.items()])
        return float(np.mean(above) + np.mean(np.minimum(above, 0.0)))

    best, chosen, is_better = value(equal), equal, True
    while is_better:
        is_better = False
        for number in (number for number in range(len(NAMES)) if number != _MEANING):
            for factor in _FACTORS:
                tried = chosen.copy()
                tried[number] = factor * chosen[number] if chosen[number] else 0.1 * factor
                if (gained := value(tried)) > best + _LEAST_GAIN:
                    best, chosen, is_better = gained, tried, True
    return chosen


def main() -> None:
    given = quality.options().parse_args()
    sets: dict[str, list[Candidates | None]] = {}
    embedder = Builtin()
    for made in quality.wanted_sets(given):
        with tempfile.TemporaryDirectory() as scratch, quality.housed(made, given, Path(scratch), embedder) as house:
            sets[made.name] = [candidates_of(house, question, embedder) for question in made.questions]
        print(f"{made.name}: {len(made.questions)} questions", file=sys.stderr, flush=True)
    today = np.array(list(weights.FEATURES.values()))
    print(
        f"{'set':15} {'better half':>11} {'held out':>8} {'today':>6}   weights of the other sets: {', '.join(NAMES)}"
    )
    for name, asked in sets.items():
        others = fitted({other: some for other, some in sets.items() if other != name})
        columns = f"{better_half(asked, today):11.3f} {mrr(asked, others):8.3f} {mrr(asked, today):6.3f}"
        print(f"{name:15} {columns}   {_listed(others)}", flush=True)
    print(f"{'all':15} {'':27}   {_listed(fitted(sets))}")


def _listed(chosen: Floats) -> str:
    return ", ".join(f"{weight:.2f}" for weight in chosen)


if __name__ == "__main__":
    main()
