"""Scores words and meaning together, weighted by the query.

Plain rank fusion ignores how good a list is: the best of a poor list counts as much as the best of a strong one. Here
the score of a message is the sum of a few features, each 0 to 1 and with one weight (`weights`). Features by words are
scaled by how much of the query's rarity the best match holds, so meaning decides if no text has the query's rare words.
Every candidate is scored by all features, whichever index found it, so no known score counts as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from daemon.days import CalendarDate, Days, local
from daemon.index import Match
from daemon.recall import weights
from daemon.recall.candidates.stats import MOST_READ, QueryStats

_MOST_READ_IN_ALL = 100_000
"""The same for all parts together, best parts first."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a message, each 0 to 1.

    * `words`: BM25 of its best part, relative to the best of all candidates
    * `window`: the same for the message with its neighbours; less for long messages
    * `coverage`: the share of the question's rarity that one part holds
    * `proximity`: the share that is as close together in a part as in the question
    * `meaning`: the cosine of its nearest chunk, scaled so that unrelated texts have 0
    """

    words: float = 0.0
    window: float = 0.0
    coverage: float = 0.0
    proximity: float = 0.0
    meaning: float = 0.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A message with its score; `parts` is what each feature added, for explain."""

    message_id: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


def fuse(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> list[Fused]:
    """Every candidate message once, best first, equal ones by id; the arguments are those of `features_of`."""
    counted = {**weights.FEATURES, "meaning": meaning_weight(stats)}
    fused: list[Fused] = []
    for message_id, features in features_of(lexical, windows, semantic, stats).items():
        parts = {name: weight * getattr(features, name) for name, weight in counted.items()}
        fused.append(Fused(message_id, sum(parts.values()), parts))
    return sorted(fused, key=lambda match: (-round(match.score, 12), match.message_id))


def features_of(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> dict[str, Features]:
    """The features of each candidate message, by id.

    `lexical` are parts by their words, `windows` messages by the words of their windows, `semantic` chunks by their
    cosine. A candidate that is missing in one of them scores nothing there, so each should be in every list that can
    score it, however low. Their order does not matter.
    """
    words, window = _best_shares(lexical, stats), _best_shares(windows, stats)
    lengths = {match.message_id: match.length for match in windows}
    coverage = _best((match.message_id, stats.coverage(match.terms)) for match in lexical)
    proximity = _closest(lexical, stats)
    meaning = _best((match.message_id, _meaning(match.score)) for match in semantic)
    return {
        message_id: Features(
            words.get(message_id, 0.0),
            window.get(message_id, 0.0) * weights.WINDOW_FADES / (weights.WINDOW_FADES + lengths.get(message_id, 0)),
            coverage.get(message_id, 0.0),
            proximity.get(message_id, 0.0),
            meaning.get(message_id, 0.0),
        )
        for message_id in dict.fromkeys((*words, *window, *meaning))
    }


def meaning_weight(stats: QueryStats) -> float:
    """The weight of meaning for this question: what a text with the same meaning scores."""
    share = 1.0
    if stats.is_exact and not stats.is_worded:
        share = weights.MEANING_OF_NAMES
    elif stats.is_partly_embedded:
        share = weights.MEANING_IN_PART
    elif stats.is_exact:
        share = weights.MEANING_BESIDE_NAMES
    readable = min(1.0, max(0.0, 2 * stats.legible - 1))  # the meaning of half a question is a guess
    known = min(1.0, 2 * stats.known)  # every question has some names and rare words
    share *= weights.MEANING_OF_UNKNOWN_WORDS + (1 - weights.MEANING_OF_UNKNOWN_WORDS) * known
    # Texts without a vector must not rank below texts with one: if half have none, meaning decides only ties.
    share *= max(weights.MEANING_OF_NAMES, 2 * stats.legible_texts - 1)
    return share * readable * weights.FEATURES["meaning"]


def _meaning(cosine: float) -> float:
    return min(1.0, max(0.0, (cosine - weights.UNRELATED) / (weights.ALIKE - weights.UNRELATED)))


def _best(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each message's best value."""
    best: dict[str, float] = {}
    for message_id, value in values:
        best[message_id] = max(value, best.get(message_id, value))
    return best


def _closest(parts: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """Each message's best proximity. Only the texts of the best parts are read."""
    closest: list[tuple[str, float]] = []
    budget = _MOST_READ_IN_ALL if stats.neighbours else 0
    for match in sorted(parts, key=lambda match: -match.score):
        if budget <= 0:
            break
        budget -= min(len(match.text), MOST_READ)
        closest.append((match.message_id, stats.proximity(match.text)))
    return _best(closest)


def _best_shares(candidates: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """Each message's best score relative to the best of all, scaled by how much of the query that one holds."""
    top = max((match.score for match in candidates), default=0.0)
    if top <= 0:
        return {}
    deserved = (
        max(stats.coverage(match.terms) for match in candidates) or 1.0
    )  # if nothing is known of the terms, the score counts in full
    return _best((match.message_id, deserved * max(0.0, match.score) / top) for match in candidates)


def date_proximity(named_days: Sequence[CalendarDate | Days], created: int) -> float:
    """How close a message's time, in epoch ms, is to any of the named days: 0 to 1, in the caller's time zone.

    "What was decided on 3 March" should find that day first, although its texts need not name it. A day without a year
    is that day of any year. The next days count less, because people talk about things afterwards. A relative time,
    such as last week, has sharp bounds.
    """
    if not named_days:
        return 0.0
    try:
        message_date = local(created).date()
        return max(_date_proximity(days, message_date) for days in named_days)
    except (OverflowError, OSError, ValueError):  # a time out of range
        return 0.0


def _date_proximity(days: CalendarDate | Days, message_date: date) -> float:
    """1 for the days themselves, less for the days after a calendar day and for a calendar month, else 0."""
    if isinstance(days, Days):
        return 1.0 if days.first <= message_date < days.past else 0.0
    if days.day is None:
        return weights.MONTH if message_date.month == days.month and days.year in {None, message_date.year} else 0.0
    for after, share in enumerate((1.0, *weights.DAYS_AFTER)):
        day = message_date - timedelta(days=after)
        if (day.month, day.day) == (days.month, days.day) and days.year in {None, day.year}:
            return share
    return 0.0
