"""Scores words and meaning together, weighed by the query.

Plain rank fusion ignores how good a list is: it takes the best of a poor list for as good as that of a strong one. Here
a message's score is the sum of a few features, each 0 to 1 and with one weight (`weights`). Those by words count as far
as the best match holds what the query asks for, measured in rarity: if nobody wrote the query's rare words, meaning
decides. Every candidate is scored by all of them, whichever side found it: nothing counts as zero that could be known.
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
"""The same of all parts: the best parts come first."""


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for a message, each 0 to 1.

    `words`: BM25 of its best part, relative to the best of all candidates. `window`: the same of the message read with
    its neighbours, less the longer it is itself. `coverage`: the share of the question's rarity that one part holds.
    `proximity`: the share that stands in a part as near together as in the question. `meaning`: its nearest chunk's
    cosine, from that of unrelated texts on.
    """

    words: float = 0.0
    window: float = 0.0
    coverage: float = 0.0
    proximity: float = 0.0
    meaning: float = 0.0


@dataclass(frozen=True, slots=True)
class Fused:
    """A message's place in the order; `parts` says what each feature added to the score, for explain."""

    message_id: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


def fuse(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> list[Fused]:
    """Every candidate message once, best first, by id among equals; the arguments are those of `features`."""
    counted = {**weights.FEATURES, "meaning": meaning_weight(stats)}
    fused: list[Fused] = []
    for message_id, features in features_of(lexical, windows, semantic, stats).items():
        parts = {name: weight * getattr(features, name) for name, weight in counted.items()}
        fused.append(Fused(message_id, sum(parts.values()), parts))
    return sorted(fused, key=lambda match: (-round(match.score, 12), match.message_id))


def features_of(
    lexical: Sequence[Match], windows: Sequence[Match], semantic: Sequence[Match], stats: QueryStats
) -> dict[str, Features]:
    """What speaks for each candidate message, by id.

    `lexical` are parts by their words, `windows` messages by the words of theirs and their neighbours', `semantic`
    chunks by the cosine of their meaning. What is in none of a kind scores nothing there, so each candidate should be
    in each that can score it, however low; the order within them does not matter.
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
    """What a text counts for this question that means just the same."""
    share = 1.0
    if stats.is_exact and not stats.is_worded:
        share = weights.MEANING_OF_NAMES
    elif stats.is_partly_embedded:
        share = weights.MEANING_IN_PART
    elif stats.is_exact:
        share = weights.MEANING_BESIDE_NAMES
    readable = min(1.0, max(0.0, 2 * stats.legible - 1))  # of half a question the meaning is a guess
    known = min(1.0, 2 * stats.known)  # names and rare words are in any question
    share *= weights.MEANING_OF_UNKNOWN_WORDS + (1 - weights.MEANING_OF_UNKNOWN_WORDS) * known
    # What has no vector must not stand below what has: among texts of which half have none, meaning decides only ties.
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
    """Each message's best proximity, as far as texts are read for it: those of the best parts."""
    closest: list[tuple[str, float]] = []
    budget = _MOST_READ_IN_ALL if stats.neighbours else 0
    for match in sorted(parts, key=lambda match: -match.score):
        if budget <= 0:
            break
        budget -= min(len(match.text), MOST_READ)
        closest.append((match.message_id, stats.proximity(match.text)))
    return _best(closest)


def _best_shares(candidates: Sequence[Match], stats: QueryStats) -> dict[str, float]:
    """Each message's best score relative to the best of all, as far as that one holds what is asked for."""
    top = max((match.score for match in candidates), default=0.0)
    if top <= 0:
        return {}
    deserved = max(stats.coverage(match.terms) for match in candidates) or 1.0  # nothing known of the terms: believed
    return _best((match.message_id, deserved * max(0.0, match.score) / top) for match in candidates)


def date_proximity(named_days: Sequence[CalendarDate | Days], created: int) -> float:
    """How near a message's time, in epoch ms, is to any of what is asked for: 0 to 1, by the days of the caller's zone.

    Whoever asks what was decided on 3 March wants that day before all others, though its texts need not say so. A day
    without a year is that day of any year. The day after still counts: things are told when they are over. What is seen
    from now, such as last week, is sharp.
    """
    if not named_days:
        return 0.0
    try:
        message_date = local(created).date()
        return max(_date_proximity(days, message_date) for days in named_days)
    except (OverflowError, OSError, ValueError):  # a time out of all reason
        return 0.0


def _date_proximity(days: CalendarDate | Days, message_date: date) -> float:
    """1 for the days themselves, less for those after a calendar day and for any of a calendar month, 0 for others."""
    if isinstance(days, Days):
        return 1.0 if days.first <= message_date < days.past else 0.0
    if days.day is None:
        return weights.MONTH if message_date.month == days.month and days.year in {None, message_date.year} else 0.0
    for after, share in enumerate((1.0, *weights.DAYS_AFTER)):
        day = message_date - timedelta(days=after)
        if (day.month, day.day) == (days.month, days.day) and days.year in {None, day.year}:
            return share
    return 0.0
