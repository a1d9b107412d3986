"""Lists of candidates become finds in one order: what holds the question's names first, then by rank.

Scores are 0 to 1, fall along the order and mean something within one answer only. Recency decides nothing but ties, and
the order of texts that all contain a literal or match a pattern. No index, no archive; `archived` is told.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace

from daemon.index import Match
from daemon.model import Kind
from daemon.recall import fuse, rank
from daemon.recall.candidates import TOOLS, Found
from daemon.recall.group import Find
from daemon.recall.rank import Fused, Hold, Query, Tier

MOST_READ = 1_000_000
"""Characters of texts that are looked through for names and phrases; beyond them the word index is believed."""

_SHARE = {Tier.WHOLE: 1.0, Tier.SOME: 0.75, Tier.INSIDE: 0.5, Tier.NONE: 0.35}
_NEAR_SHARE = 0.6
_BY_KIND = {Kind.REASONING: 0.9, Kind.TASK: 0.9, Kind.TOOL_INPUT: 0.8, Kind.TOOL_OUTPUT: 0.7}
NOT_LOOKED_AT = 9


@dataclass(frozen=True, slots=True)
class Archived:
    """What the archive says of a candidate."""

    session_id: str
    project_id: str
    created: int


def ordered(
    asked: Query,
    mode: str,
    found: Found,
    archived: Mapping[str, Archived],
    needed: int,
    *,
    is_partly_embedded: bool,
    explain: bool = False,
) -> list[Find]:
    """All candidates that the archive has, best first, one find a matching part; the parts of a message together.

    `needed` is how many of the best are surely wanted: texts are looked through for that many. `explain`: each find
    says at which place each list had it.
    """
    if mode in {"smart", "hybrid"}:
        graded = _fused(asked, found, archived, needed, is_partly_embedded=is_partly_embedded)
    else:
        graded = [(0, fused) for fused in _plain(mode, found, archived)]
    matches, reason = _matches(found), _reasons(found) if explain else None
    top = max((fused.score for _, fused in graded), default=1.0) or 1.0
    finds: list[Find] = []
    ceiling = 1.0
    for grade, fused in graded:
        about = archived[fused.message_id]
        parts = matches[fused.message_id]
        share = _SHARE.get(Tier(min(max(grade, 0), Tier.NONE)), 1.0) * (_NEAR_SHARE if parts[0].near else 1.0)
        score = fused.score if mode == "semantic" else fused.score / top * share
        ceiling = min(ceiling, max(score, 0.0))
        best = max((match.score for match in parts), default=0.0)
        is_weighed = best > 0 and mode in {"smart", "hybrid"}
        for match in parts:
            part_share = min(1.0, max(0.1, match.score / best)) if is_weighed else 1.0
            finds.append(
                Find(
                    message_id=fused.message_id,
                    session_id=about.session_id,
                    project_id=about.project_id,
                    created=about.created,
                    match=match,
                    mode=_mode(mode, fused.sources),
                    score=round(ceiling * part_share, 4),
                    grade=grade if grade >= 0 else NOT_LOOKED_AT,
                    terms=match.terms,
                    near=match.near,
                    sources=fused.sources,
                    reasons=(reason(fused),) if reason else (),
                )
            )
    return finds


# -- one order out of several lists ----------------------------------------------------------------------------------


def _fused(
    asked: Query, found: Found, archived: Mapping[str, Archived], needed: int, *, is_partly_embedded: bool
) -> list[tuple[int, Fused]]:
    def kept(name: str, among: Container[str] = archived) -> list[Match]:
        return [
            match for match in found.lists.get(name, []) if match.message_id in archived and match.message_id in among
        ]

    near = found.near() if "semantic" in found.lists else frozenset()
    facts = replace(found.facts, is_partly_embedded=is_partly_embedded)
    made = fuse.fuse(kept("lexical"), kept("windows"), kept("semantic", near), facts)
    fused = [Fused(one.message_id, one.score, one.sources) for one in made]
    known = {one.message_id for one in fused}
    for name in ("named", "phrase"):  # what the word index cannot find: it holds what was asked for as it stands
        fused += [Fused(i, fuse.COVERAGE, (name,)) for i in found.ids(name) if i in archived and i not in known]
        known.update(found.ids(name))
    fused.sort(
        key=lambda one: (
            -round(one.score, 12),
            one.sources == ("semantic",),
            -archived[one.message_id].created,
            one.message_id,
        )
    )
    if asked.is_exact:
        graded = rank.best_first(fused, _tier(asked, found), needed)
        if not asked.words:  # a bare name: what does not hold it answers another question
            graded = [(grade, one) for grade, one in graded if grade != Tier.NONE]
        return graded
    if asked.is_short:
        return rank.best_first(fused, _hold(asked, found), needed)
    return [(0, one) for one in fused]


def _tier(asked: Query, found: Found) -> Callable[[Fused], int]:
    """How well a message holds the names; the word index knows of whole names, the text is read for the rest."""
    terms, read, named = found.terms(), _Reader(found), set(found.ids("named"))

    def tier(one: Fused) -> int:
        held = set(terms.get(one.message_id, ()))
        left = tuple(name for name in asked.named if name not in held)
        if not left:
            return Tier.WHOLE
        best = rank.tier(replace(asked, named=left), read.text(one.message_id))
        if best > Tier.SOME and len(left) < len(asked.named):
            return Tier.SOME
        return Tier.INSIDE if best is Tier.NONE and one.message_id in named else best

    return tier


def _hold(asked: Query, found: Found) -> Callable[[Fused], int]:
    phrase, terms, read = set(found.ids("phrase")), found.terms(), _Reader(found)

    def hold(one: Fused) -> int:
        held = terms.get(one.message_id, ())
        has_phrase = one.message_id in phrase
        if not has_phrase and held and " " not in asked.phrase:
            has_phrase = rank.stands_in(asked.phrase, read.text(one.message_id))
        return Hold(rank.hold(asked, has_phrase, held))

    return hold


class _Reader:
    """The matched texts of a message, until enough has been read."""

    def __init__(self, found: Found) -> None:
        self._texts = found.texts()
        self._left = MOST_READ

    def text(self, message_id: str) -> str:
        """Empty where too much was read already."""
        text = "\n".join(self._texts.get(message_id, ()))
        if len(text) > self._left:
            return ""
        self._left -= len(text)
        return text


# -- one list --------------------------------------------------------------------------------------------------------


def _plain(mode: str, found: Found, archived: Mapping[str, Archived]) -> list[Fused]:
    """In literal and regex what was said, then what tools printed, each newest first. Others: by score."""
    name = {"semantic": "semantic", "fuzzy": "lexical"}.get(mode, "named")
    scores: dict[str, float] = {}
    for match in (*found.lists.get(name, []), *found.lists.get("tools", [])):
        if match.message_id in archived:
            score = match.score if mode in {"semantic", "fuzzy"} else _BY_KIND.get(Kind(match.kind), 1.0)
            scores[match.message_id] = max(score, scores.get(match.message_id, score))
    if mode == "fuzzy":  # the index knows best which spelling is nearer
        return [Fused(i, scores[i], (mode,)) for i in found.ids(name) if i in scores]
    printed = _printed_only(found)

    def place(message_id: str) -> tuple[float, float]:
        first = -scores[message_id] if mode == "semantic" else float(message_id in printed)
        return first, -archived[message_id].created

    return [Fused(i, scores[i], (mode,)) for i in sorted(scores, key=lambda i: (*place(i), i))]


def _printed_only(found: Found) -> frozenset[str]:
    said = {match.message_id for match in found.lists.get("named", []) if match.kind not in TOOLS}
    every = {match.message_id for name in ("named", "tools") for match in found.lists.get(name, [])}
    return frozenset(every - said)


def _matches(found: Found) -> dict[str, list[Match]]:
    """Each message's matches, one a part, the one to show first; what words found before what meaning found."""
    kept: dict[str, dict[tuple[str, str], Match]] = {}
    for name in ("lexical", "named", "phrase", "tools"):
        for match in found.lists.get(name, []):
            kept.setdefault(match.message_id, {}).setdefault((match.part_id, match.kind), match)
    best = {message_id: list(parts.values()) for message_id, parts in kept.items()}
    for name in ("semantic", "windows"):
        for match in found.lists.get(name, []):
            if match.message_id not in best:
                best[match.message_id] = [replace(match, terms=())]
    return best


def _mode(mode: str, sources: tuple[str, ...]) -> str:
    if mode not in {"smart", "hybrid"}:
        return mode
    if sources == ("semantic",):
        return "semantic"
    return "hybrid" if "semantic" in sources else "smart"


def _reasons(found: Found) -> Callable[[Fused], str]:
    """For explain: at which place each list had a message."""
    places = {name: {i: place for place, i in enumerate(found.ids(name), start=1)} for name in found.lists}

    def reason(fused: Fused) -> str:
        had = ", ".join(f"{_SAYS[name]} {places[name][fused.message_id]}" for name in fused.sources if name in places)
        return f"score {fused.score:.3f}" + (f" ({had})" if had else "")

    return reason


_SAYS = {
    "lexical": "by words place",
    "named": "by its name place",
    "phrase": "by the phrase place",
    "tools": "in tools place",
    "windows": "by its neighbours place",
    "semantic": "by meaning place",
}
