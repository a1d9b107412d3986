"""Merges the lists of candidates into one order: messages that hold the question's names first, then by score.

Scores are 0 to 1, fall along the order, and are comparable only within one answer. Ties, and texts that all contain a
literal or match a pattern, are ordered by recency. Nothing is read here: `archived` has the states from the archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from daemon.index import TOOLS, Match
from daemon.model import Kind
from daemon.recall import weights
from daemon.recall.candidates.lists import STANDING, WITHOUT_WORDS, CandidateLists
from daemon.recall.candidates.stats import QueryStats
from daemon.recall.query import names
from daemon.recall.query.parse import Query, Tier
from daemon.recall.ranking import fuse
from daemon.recall.ranking.grouping import Result
from daemon.recall.ranking.tiers import hold_of, tier_of

NOT_LOOKED_AT = 9
_TIMES_NEEDED = 2  # we search so many times the needed results for names that add to the score


@dataclass(frozen=True, slots=True)
class Archived:
    """A candidate's state in the archive."""

    session_id: str
    project_id: str
    created: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """A message's place in the order.

    `sources` are the lists that have it, or would if they were longer. `parts` says what each feature added to the
    score. `tier` is set if names only add to the score, and are not the grade.
    """

    message_id: str
    score: float
    sources: tuple[str, ...]
    parts: Mapping[str, float] = field(default_factory=dict)
    tier: int | None = None


def reasons(candidates: CandidateLists) -> Callable[[Ranked], str]:
    """For explain: what each feature added to a score, and the place of the message in lists of names and phrases."""
    places = {name: {i: place for place, i in enumerate(candidates.ids(name), start=1)} for name in STANDING}

    def reason(fused: Ranked) -> str:
        added = [f"{_ADDED.get(name, name)} {value:.3f}" for name, value in fused.parts.items() if value]
        added += [f"{_STANDS[name]} {places[name][fused.message_id]}" for name in fused.sources if name in places]
        return f"score {fused.score:.3f}" + (f" ({', '.join(added)})" if added else "")

    return reason


_ADDED = {
    "words": "words add",
    "window": "its neighbours add",
    "coverage": "the rare words of the question that it contains add",
    "proximity": "words as close as in the question add",
    "meaning": "meaning adds",
    "names": "the names that it contains add",
    "verbatim": "what stands in it as asked adds",
    "day": "a day that the question names adds",
}
_STANDS = {
    "named": "by its name place",
    "phrase": "by the phrase place",
    "tools": "by its name in tools place",
    "printed": "by the phrase in tools place",
}


def ordered(
    query: Query,
    mode: str,
    candidates: CandidateLists,
    archived: Mapping[str, Archived],
    needed: int,
    *,
    is_partly_embedded: bool,
    explain: bool = False,
) -> list[Result]:
    """All candidates that are archived, best first; one result for each matching part, parts of a message together.

    `needed` results will be shown at most, so texts are searched only until so many are found. `explain`: each result
    says what each feature added to its score.
    """
    if mode in {"smart", "hybrid"} and not query.is_of_days:
        graded = _fused(query, candidates, archived, needed, is_partly_embedded=is_partly_embedded)
    else:
        graded = [(0, fused) for fused in _plain(mode, candidates, archived)]
    matches, reason = _matches(candidates), reasons(candidates) if explain else None
    top = max((fused.score for _, fused in graded), default=1.0) or 1.0
    results: list[Result] = []
    ceiling = 1.0
    for grade, fused in graded:
        about = archived[fused.message_id]
        parts = matches[fused.message_id]
        is_similar = bool(parts[0][0].spelling_pairs)
        share = weights.TIER_SHARES.get(Tier(min(max(grade, 0), Tier.NONE)), 1.0)
        share *= weights.SIMILAR_SPELLING_SHARE if is_similar else 1.0
        if mode in {"literal", "regex"}:
            # These are sorted by date, so a later one may score more, and the threshold must not hide it.
            ceiling = fused.score
        else:
            score = fused.score if mode == "semantic" else fused.score / top * share
            ceiling = min(ceiling, max(score, 0.0))
        for match, weight in parts:
            part_share = weight if mode in {"smart", "hybrid"} else 1.0
            results.append(
                Result(
                    message_id=fused.message_id,
                    session_id=about.session_id,
                    project_id=about.project_id,
                    created=about.created,
                    match=match,
                    mode=_mode(mode, fused.sources),
                    score=round(ceiling * part_share, 4),
                    grade=_not_negative(grade if fused.tier is None else fused.tier),
                    band=_not_negative(grade),
                    terms=match.terms,
                    spelling_pairs=match.spelling_pairs,
                    sources=fused.sources,
                    reasons=(reason(fused),) if reason else (),
                )
            )
    return results


def _not_negative(grade: int) -> int:
    return grade if grade >= 0 else NOT_LOOKED_AT


# -- one order out of several lists ----------------------------------------------------------------------------------


def _fused(
    query: Query, candidates: CandidateLists, archived: Mapping[str, Archived], needed: int, *, is_partly_embedded: bool
) -> list[tuple[int, Ranked]]:
    stats = replace(
        candidates.stats,
        is_partly_embedded=is_partly_embedded,
        legible=candidates.legible,
        known=candidates.known,
        legible_texts=candidates.legible_texts,
    )
    fused = _by_features(query, candidates, archived, stats)
    if query.is_exact:
        graded = _best_first(fused, tier_of(query, candidates), needed, archived)
        if query.words and stats.is_exact and all(grade == Tier.NONE for grade, _ in graded):
            # No candidate holds a name, so the other words are an ordinary question, and meaning counts in full.
            wordy = replace(candidates, stats=replace(candidates.stats, is_exact=False))
            return _fused(query, wordy, archived, needed, is_partly_embedded=is_partly_embedded)
        if query.words and any(grade in {Tier.WHOLE, Tier.SOME} for grade, _ in graded):
            # Candidates hold the name itself, so names inside longer ones may count loosely.
            if len(query.words) > 1:
                return _with_names(query, candidates, archived, needed, replace(stats, is_exact=False))
            graded = _best_first(fused, tier_of(query, candidates, names.stands_loosely), needed, archived)
        if not query.words:  # a bare name: only texts that hold it are results
            graded = [(grade, hit) for grade, hit in graded if grade != Tier.NONE]
        return graded
    if query.is_short:
        return _best_first(fused, hold_of(query, candidates), needed, archived)
    return [(0, hit) for hit in fused]


def _with_names(
    query: Query, candidates: CandidateLists, archived: Mapping[str, Archived], needed: int, stats: QueryStats
) -> list[tuple[int, Ranked]]:
    """The order for a question of several words, where a name is one hint of several and adds to the score.

    When names decided alone, "python2" and "2d" did so too, and the sets of code and of frequently asked questions lost
    two points of mean reciprocal rank. A rare name still decides, because it is most of the question's rarity.
    """
    tier = tier_of(query, candidates, names.stands_loosely)
    ranked: list[Ranked] = []
    for number, hit in enumerate(_by_features(query, candidates, archived, stats)):
        held = tier(hit.message_id) if number < _TIMES_NEEDED * needed else -1
        added = weights.NAMES.get(Tier(held), 0.0) if held >= 0 else 0.0
        parts = {**hit.parts, "names": added} if added else hit.parts
        ranked.append(replace(hit, score=hit.score + added, parts=parts, tier=held))
    return [(0, hit) for hit in sorted(ranked, key=lambda hit: -round(hit.score, 12))]


def _by_features(
    query: Query, candidates: CandidateLists, archived: Mapping[str, Archived], stats: QueryStats
) -> list[Ranked]:
    """Every candidate by its score: from features, verbatim matches, and the days that the question names."""

    def matches(name: str, among: Container[str] = archived) -> list[Match]:
        return [
            match
            for match in candidates.all_matches(name)
            if match.message_id in archived and match.message_id in among
        ]

    similar_alone, similar = candidates.similar_alone(), candidates.similar()
    fused = fuse.fuse(matches("lexical"), matches("windows"), matches("semantic", similar), stats)
    plain = [Ranked(hit.message_id, hit.score, _sources(hit, similar_alone), hit.parts) for hit in fused]
    ranked, days = _with_standing(plain, candidates, archived), query.days
    if days:
        for place, hit in enumerate(ranked):
            added = weights.DAY * fuse.date_proximity(days, archived[hit.message_id].created)
            if added:
                ranked[place] = replace(hit, score=hit.score + added, parts={**hit.parts, "day": added})
    return sorted(
        ranked,
        key=lambda hit: (
            -round(hit.score, 12),
            hit.sources == ("semantic",),
            -archived[hit.message_id].created,
            hit.message_id,
        ),
    )


def _sources(fused: fuse.Fused, similar_alone: Container[str]) -> tuple[str, ...]:
    """The lists that have the message, or would if they were longer."""
    parts = fused.parts
    has = {
        "windows": parts["window"] > 0,
        "lexical": parts["words"] > 0 or parts["coverage"] > 0,
        "semantic": fused.message_id in similar_alone,
    }
    return tuple(name for name, is_source in has.items() if is_source) or ("semantic",)


def _best_first(
    fused: Sequence[Ranked], grade: Callable[[str], int], needed: int, archived: Mapping[str, Archived]
) -> list[tuple[int, Ranked]]:
    """Sort by grade, stable; ungraded candidates follow in their order, with the grade -1.

    Grading reads texts, so we stop once `needed` candidates have the best grade. If there are several sessions, at most
    half of `needed` count for each, because a noisy session would use up all the grading.
    """
    sessions = {archived[hit.message_id].session_id for hit in fused}
    most = needed if len(sessions) < 2 else (needed + 1) // 2
    graded: list[tuple[int, Ranked]] = []
    counted, best = 0, Counter[str]()
    for number, hit in enumerate(fused):
        if counted >= needed:
            return [*sorted(graded, key=itemgetter(0)), *((-1, unread) for unread in fused[number:])]
        graded.append((grade(hit.message_id), hit))
        session = archived[hit.message_id].session_id
        if graded[-1][0] == 0 and best[session] < most:
            best[session] += 1
            counted += 1
    return sorted(graded, key=itemgetter(0))


def _with_standing(fused: list[Ranked], candidates: CandidateLists, archived: Container[str]) -> list[Ranked]:
    """Add verbatim matches of names and phrases, which the word index cannot always find.

    A message known only by its meaning or its neighbours then counts as found by words.
    """
    by_id = {hit.message_id: hit for hit in fused}
    for name in STANDING:
        for i in candidates.ids(name):
            if i in archived:
                hit = by_id.get(i, Ranked(i, 0.0, ()))
                added = 0.0 if {"lexical", *STANDING} & set(hit.sources) else weights.VERBATIM
                parts = {**hit.parts, "verbatim": added} if added else hit.parts
                by_id[i] = Ranked(i, hit.score + added, (*hit.sources, name), parts)
    return list(by_id.values())


# -- one list --------------------------------------------------------------------------------------------------------


def _plain(mode: str, candidates: CandidateLists, archived: Mapping[str, Archived]) -> list[Ranked]:
    """The order of one list: by score, but for literal and regex prose, then tool output, each newest first."""
    name = {"semantic": "semantic", "fuzzy": "lexical"}.get(mode, "named")
    scores: dict[str, float] = {}
    for match in (*candidates.lists.get(name, []), *candidates.lists.get("tools", [])):
        if match.message_id in archived:
            score = match.score if mode in {"semantic", "fuzzy"} else weights.KIND_SHARES.get(Kind(match.kind), 1.0)
            scores[match.message_id] = max(score, scores.get(match.message_id, score))
    if mode == "fuzzy":  # the index has them in the order of similarity
        return [Ranked(i, scores[i], (mode,)) for i in candidates.ids(name) if i in scores]
    printed = _printed_only(candidates)

    def place(message_id: str) -> tuple[float, float]:
        first = -scores[message_id] if mode == "semantic" else float(message_id in printed)
        return first, -archived[message_id].created

    return [Ranked(i, scores[i], (mode,)) for i in sorted(scores, key=lambda i: (*place(i), i))]


def _printed_only(candidates: CandidateLists) -> frozenset[str]:
    spoken = {match.message_id for match in candidates.lists.get("named", []) if match.kind not in TOOLS}
    all_ids = {match.message_id for name in ("named", "tools") for match in candidates.lists.get(name, [])}
    return frozenset(all_ids - spoken)


def _matches(candidates: CandidateLists) -> dict[str, list[tuple[Match, float]]]:
    """Each message's matches, one for each part, the one to show first; matches by words before those by meaning.

    Each has its share, 0.1 to 1 and falling, of the first one's score. Only scores of the word index tell how good a
    part is, because those of the literal lists are times.
    """
    parts_of: dict[str, dict[tuple[str, str], tuple[Match, float]]] = {}
    for name in ("lexical", *STANDING):
        for match in candidates.all_matches(name):
            parts = parts_of.setdefault(match.message_id, {})
            first, last = (
                next(iter(parts.values()), (match, 1.0))[0],
                min((share for _, share in parts.values()), default=1.0),
            )
            share = match.score / first.score if name == "lexical" and first.score > 0 else last
            parts.setdefault((match.part_id, match.kind), (match, min(last, max(0.1, share))))
    best = {message_id: list(parts.values()) for message_id, parts in parts_of.items()}
    for name in ("semantic", "windows"):
        for match in candidates.lists.get(name, []):
            if match.message_id not in best:
                best[match.message_id] = [(replace(match, terms=()) if match.terms else match, 1.0)]
    return best


def _mode(mode: str, sources: tuple[str, ...]) -> str:
    if mode not in {"smart", "hybrid"}:
        return mode
    if "semantic" not in sources:
        return "smart"
    return "semantic" if set(sources) <= set(WITHOUT_WORDS) else "hybrid"
