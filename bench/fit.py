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
    candidates = search.gather(query, "hybrid", Filters(), _DEPTH, deadline=time.monotonic() + quality_house.BUDGET_S)
    similar = candidates.similar()
    similar_matches = [match for match in candidates.all_matches("semantic") if match.message_id in similar]
    features = fuse.features_of(
        candidates.all_matches("lexical"), candidates.all_matches("windows"), similar_matches, candidates.stats
    )
    states = {message_id: house.archive.state(message_id) for message_id in features}
    ids = [message_id for message_id, state in states.items() if state is not None]
    if not ids:
        return None
    cosines: dict[str, float] = {}
    for match in candidates.all_matches("semantic"):
        cosines[match.message_id] = max(match.score, cosines.get(match.message_id, -1.0))
    sessions = [states[i]["session"] for i in ids]
    numbers = {session: number for number, session in enumerate(dict.fromkeys(sessions))}
    unread = house.archive.unread_among(candidates.by_words())
    stats = replace(
        candidates.stats,
        legible=candidates.legible,
        known=candidates.known,
        legible_texts=1 - len(unread) / max(1, len(candidates.by_words())),
    )
    rows = np.array([[getattr(features[i], name) for name in NAMES] for i in ids])
    rows[:, _MEANING] *= fuse.meaning_weight(stats) / weights.FEATURES["meaning"]
    return Candidates(
        rows,
        np.array([cosines.get(i, -1.0) for i in ids]),
        np.array([weights.DAY * fuse.date_proximity(query.days, states[i]["created"]) for i in ids]),
        np.array([numbers[session] for session in sessions]),
        np.array([session in question.right for session in numbers]),
    )


def _fail(index: str, error: Exception) -> None:
    raise SystemExit(f"the {index} index failed: {error}")


Sets: TypeAlias = Mapping[str, Sequence[Candidates | None]]


def mrr(questions: Sequence[Candidates | None], chosen: Floats) -> float:
    """The mean reciprocal rank of a set's questions with these weights."""
    ranks = [question.rank(question.features @ chosen + question.days) if question else 0.0 for question in questions]
    return float(np.mean(ranks))


def better_half(questions: Sequence[Candidates | None], chosen: Floats) -> float:
    """The better MRR of words with these weights and of meaning alone."""
    by_words = np.where(np.arange(len(NAMES)) == _MEANING, 0.0, chosen)
    by_meaning = float(
        np.mean(
            [question.rank(np.maximum(question.cosines, -1.0) + 1.0) if question else 0.0 for question in questions]
        )
    )
    return max(mrr(questions, by_words), by_meaning)


def fitted(sets: Sets) -> Floats:
    """The weights that coordinate search ends at, meaning at its own."""
    equal = np.full(len(NAMES), float(weights.FEATURES["meaning"]))
    halves = {name: better_half(questions, equal) for name, questions in sets.items()}

    def value(chosen: Floats) -> float:
        above = np.array([mrr(questions, chosen) - halves[name] for name, questions in sets.items()])
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
    arguments = quality.options().parse_args()
    sets: dict[str, list[Candidates | None]] = {}
    embedder = Builtin()
    for question_set in quality.requested_sets(arguments):
        with (
            tempfile.TemporaryDirectory() as scratch,
            quality.housed(question_set, arguments, Path(scratch), embedder) as house,
        ):
            sets[question_set.name] = [candidates_of(house, question, embedder) for question in question_set.questions]
        print(f"{question_set.name}: {len(question_set.questions)} questions", file=sys.stderr, flush=True)
    today = np.array(list(weights.FEATURES.values()))
    print(
        f"{'set':15} {'better half':>11} {'held out':>8} {'today':>6}   weights of the other sets: {', '.join(NAMES)}"
    )
    for name, questions in sets.items():
        fitted_weights = fitted(
            {training_set: members for training_set, members in sets.items() if training_set != name}
        )
        columns = (
            f"{better_half(questions, today):11.3f} {mrr(questions, fitted_weights):8.3f} {mrr(questions, today):6.3f}"
        )
        print(f"{name:15} {columns}   {_listed(fitted_weights)}", flush=True)
    print(f"{'all':15} {'':27}   {_listed(fitted(sets))}")


def _listed(chosen: Floats) -> str:
    return ", ".join(f"{weight:.2f}" for weight in chosen)


if __name__ == "__main__":
    main()
