"""A query becomes an answer: hits that exist in the archive, best first, one per message.

`literal` is the text as it stands, newest first; `semantic` is nearness of meaning; `hybrid` fuses words and meaning by
rank. Whatever was unavailable, left out or deleted at its source is said in the answer: it never silently answers
another question than the one asked. It reads the indexes and the archive and changes neither.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from daemon.archive import STAGES, Archive
from daemon.embed import Embedder
from daemon.errors import BadRequest, IndexBroken
from daemon.index import Filters, LexicalIndex, Match, SemanticIndex
from daemon.model import Hit, Json, Session
from daemon.recall.answer.matching_part import Allowed, meant
from daemon.recall.answer.snippet import counted, snippet
from daemon.recall.ask import BUDGET_S, Room, answer
from daemon.recall.catalog import Catalog
from daemon.recall.query import parse
from daemon.recall.query.parse import Query, Tier
from daemon.recall.query.request import Recall as Asked
from daemon.recall.ranking.candidates import Candidates
from daemon.recall.ranking.lists import WORDS, Found
from daemon.recall.ranking.order import holding
from daemon.redact import redact
from daemon.transcript.document import document

MODES = ("hybrid", "literal", "semantic")
MOST = 200
_DEEPEST = 5000
_END_OF_TIME = 1 << 62
_CHECKED = 40
"""How many messages are read from the archive to see whether they hold what was named."""

ANY = Filters()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found.

    `deleted` are the message ids among the hits that no source has any more; `degraded` those of the warnings that say
    an index or model did not answer.
    """

    query: str
    mode: str
    hits: tuple[Hit, ...]
    warnings: tuple[str, ...] = ()
    coverage: Json = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()
    degraded: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """The shape of control.calls Service.search; each hit has one field more, `deleted`."""
        hits = [
            asdict(hit) | {"terms": list(hit.terms), "deleted": hit.message_id in self.deleted} for hit in self.hits
        ]
        return {
            "query": redact(self.query),
            "mode": self.mode,
            "hits": hits,
            "coverage": self.coverage,
            "warnings": list(self.warnings),
        }


class Recall:
    """Search over one archive and its indexes.

    `semantic` gives the semantic index in use, or None while there is none (being rebuilt, parked as broken);
    `on_failure` is told which index, lexical or semantic, failed and how, so that the owner may mend it.
    """

    def __init__(
        self,
        archive: Archive,
        lexical: LexicalIndex,
        semantic: Callable[[], SemanticIndex | None],
        embedder: Embedder,
        *,
        indexed_kb: int = 1024,
        on_failure: Callable[[str, Exception], None] = lambda _index, _error: None,
        catalog: Catalog | None = None,
        budget_s: float = BUDGET_S,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """`prepare` loads what a question by meaning needs; it is called before such a question's time begins."""
        self._archive = archive
        self._lexical, self._on_failure = lexical, on_failure
        self._candidates = partial(Candidates, lexical, semantic, embedder, on_failure, self._is_behind)
        self._embedder = embedder
        self._indexed_kb = indexed_kb
        self._catalog = catalog or Catalog(archive)
        self._budget_s = budget_s
        self._prepare = prepare

    def _is_behind(self) -> bool:
        """Words are indexed first; only while they are indexed anew does more wait for them than for meaning."""
        return self._archive.waiting("lexical") > self._archive.waiting("semantic")

    def search(self, query: str, mode: str = "hybrid", limit: int = 10, filters: Filters = ANY) -> Answer:
        """At most `limit` hits, best first.

        Raises:
            BadRequest: an empty or overlong query, an unknown mode, a limit outside 1 to 200.
            ReconstituteError: nothing could be asked: in mode semantic the model or the semantic index failed, in
                mode literal the lexical index, in mode hybrid both.
        """
        _check(query, mode, limit)
        asked = parse.parse(query)
        depth = max(50, 3 * limit)
        found, candidates = Found(), self._candidates()
        while True:
            found = candidates.gather(asked, mode, filters, depth)
            if depth >= _DEEPEST or not found.is_full(depth) or len(found.best()) >= limit:
                break
            depth *= 4
        return self._answer(asked, mode, limit, found, filters)

    def ask(self, asked: Asked, here: str = "", now: int | None = None) -> Json:
        """The answer to the call `recall`, as clients get it (recall.ask).

        `here` is the directory the caller stands in, "" where that is unknown; `now` is epoch ms, None for the clock's.

        Raises:
            BadRequest: an empty or overlong query, filters that make no sense, a bad regular expression.
            ReconstituteError: nothing could be searched.
        """
        model, budget_s = self._embedder.name, self._budget_s
        room = Room(self._archive, self._candidates(), self._catalog, model, budget_s, self._prepare)
        return answer(room, asked, here, time.time_ns() // 1_000_000 if now is None else now)

    # -- order ---------------------------------------------------------------------------------------------------

    def _answer(self, asked: Query, mode: str, limit: int, found: Found, filters: Filters) -> Answer:
        allowed = Allowed(filters.kinds, filters.tool)
        warnings = list(found.warnings)
        created, gone = self._created(found)
        if gone:
            warnings.append(f"not in the archive: {counted(gone, 'indexed message')}; the index is behind, rebuild it")
        waiting = {stage: self._archive.waiting(stage) for stage in STAGES}
        ranked = _ranked(asked, mode, found, created, waiting["semantic"] > waiting["lexical"])
        tiered = self._by_tier(asked, mode, ranked, found, limit)
        if asked.is_exact and not asked.words:  # nothing else was asked for
            tiered = [(tier, fused) for tier, fused in tiered if tier is not Tier.NONE]
        best = found.best()
        sessions: dict[str, Session | None] = {}
        chosen: list[parse.Fused] = []
        hits: list[Hit] = []
        for _, fused in tiered:
            if len(hits) == limit:
                break
            hit = self._hit(asked, mode, fused, best[fused.message_id], sessions, allowed=allowed)
            if hit is not None:
                chosen.append(fused)
                hits.append(hit)
        others: list[Hit] = []
        if mode == "hybrid" and filters.kinds and len(hits) < limit:
            others = self._others(asked, filters, limit - len(hits), {hit.message_id for hit in hits}, sessions)
            hits += others
        deleted = frozenset(hit.message_id for hit in hits if self._archive.is_deleted(hit.message_id))
        if deleted:
            warnings.append(f"deleted in OpenCode, and only in this archive: {counted(len(deleted), 'hit')}")
        coverage = self._coverage(found, len(created), deleted) | {"waiting": waiting}
        is_sure = found.states.get("lexical") == "used"
        warnings += (
            _notes(asked, tiered, limit, is_sure=is_sure) if asked.is_exact else _word_notes(asked, mode, found, chosen)
        )
        if others:
            warnings.append(f"the last {_hits(len(others))} just the newest other {_of(filters.kinds)}")
        warnings += _waiting(coverage, mode)
        return Answer(asked.text, mode, tuple(hits), tuple(warnings), coverage, deleted, tuple(found.warnings))

    def _others(
        self, asked: Query, filters: Filters, most: int, besides: set[str], sessions: dict[str, Session | None]
    ) -> list[Hit]:
        """The newest other messages that have a part of the kinds asked for.

        Who names a kind wants to see what there is of it, also where no text has the words and none is near in meaning.
        """
        depth, hits, seen = 2 * (most + len(besides)), list[Hit](), set(besides)
        try:
            while True:
                matches = self._lexical.nearest(_END_OF_TIME, filters, depth, before=True)
                fresh = [match for match in matches if match.message_id not in seen]
                seen.update(match.message_id for match in fresh)
                for match in {match.message_id: match for match in reversed(fresh)}.values():
                    hit = self._hit(
                        asked,
                        "hybrid",
                        parse.Fused(match.message_id, 0.0, ("kind",)),
                        match,
                        sessions,
                        allowed=Allowed(filters.kinds, filters.tool),
                    )
                    hits += [hit] if hit is not None else []
                if len(hits) >= most or len(matches) < depth or depth >= _DEEPEST:
                    break
                depth *= 4
        except Exception as error:  # noqa: BLE001 - the question by words met the same failure, and reports it
            self._on_failure("lexical", error)
        return sorted(hits, key=lambda hit: (-hit.created, hit.message_id))[:most]

    def _created(self, found: Found) -> tuple[dict[str, int], int]:
        """When each candidate that the archive has was made, and how many it does not have."""
        states = {message_id: self._archive.state(message_id) for message_id in found.best()}
        created = {message_id: state["created"] for message_id, state in states.items() if state is not None}
        return created, len(states) - len(created)

    def _by_tier(
        self, asked: Query, mode: str, ranked: Sequence[parse.Fused], found: Found, limit: int
    ) -> list[tuple[int, parse.Fused]]:
        """Better tiers first, order kept within; -1 is the tier of what comes too late to be looked at."""
        if mode != "hybrid" or not asked.is_exact:
            return [(Tier.WHOLE, fused) for fused in ranked]
        texts = found.texts()
        checked = 0

        def tier(fused: parse.Fused) -> Tier:
            nonlocal checked
            some = texts[fused.message_id]
            best = parse.tier(asked, "\n".join(some))
            # One name alone would have been found in the part that holds it; several may stand in different parts.
            if best is not Tier.WHOLE and len(asked.named) > 1 and checked < _CHECKED:
                checked += 1
                best = parse.tier(asked, "\n".join([*some, self._text(fused.message_id)]))
            return best

        return parse.best_first(ranked, tier, limit)

    # -- what is shown -------------------------------------------------------------------------------------------

    def _text(self, message_id: str, part_id: str = "") -> str:
        """The searchable text of a message, or of one part of it."""
        message = self._archive.message(message_id)
        if message is None:
            return ""
        sections = document(message, self._archive.session(message.session_id), self._indexed_kb).sections
        return "\n".join(section.text for section in sections if part_id in {"", section.part_id})

    def _hit(
        self,
        asked: Query,
        mode: str,
        fused: parse.Fused,
        match: Match,
        sessions: dict[str, Session | None],
        *,
        allowed: Allowed,
    ) -> Hit | None:
        """None where nothing of the message is allowed: a chunk of it has the kind, and another part the tool."""
        message = self._archive.message(fused.message_id)
        if message is None:
            raise IndexBroken(f"message {fused.message_id} left the archive while it was searched; search again")
        if message.session_id not in sessions:
            sessions[message.session_id] = self._archive.session(message.session_id)
        session = sessions[message.session_id]
        terms = (asked.text,) if mode == "literal" else (*asked.named, *asked.words)
        chosen = meant(match, message, session.title if session else "", allowed, terms)
        if chosen is None:
            return None
        match = chosen
        text = match.text or self._text(message.id, match.part_id)
        sources = {"lexical" if name in WORDS else name for name in fused.sources}
        return Hit(
            message_id=message.id,
            session_id=message.session_id,
            title=redact(session.title) if session else "",
            role=message.role,
            created=message.created,
            kind=match.kind,
            score=round(fused.score, 6),
            mode=mode if mode != "hybrid" or len(sources) > 1 else next(iter(sources)),
            snippet=snippet(text, [*terms, *match.terms]),
            part_id=match.part_id,
            tool=match.tool,
            directory=session.directory if session else "",
            project_id=session.project_id if session else "",
            terms=tuple(dict.fromkeys(redact(term) for term in (*terms, *match.terms))),
        )

    def _coverage(self, found: Found, candidates: int, deleted: frozenset[str]) -> Json:
        states = {"lexical": "not asked", "semantic": "not asked"} | found.states
        return {
            **states,
            "model": self._embedder.name if states["semantic"] == "used" else "",
            "candidates": candidates,
            "deleted": sorted(deleted),
        }


def _check(query: str, mode: str, limit: int) -> None:
    parse.check(query)
    if mode not in MODES:
        raise BadRequest(f"mode {mode!r} is unknown: use one of {', '.join(MODES)}")
    if not 1 <= limit <= MOST:
        raise BadRequest(f"limit {limit} is out of range: use 1 to {MOST}")


def _ranked(
    asked: Query, mode: str, found: Found, created: dict[str, int], is_partly_embedded: bool
) -> list[parse.Fused]:
    """Candidates in order; `created` holds those the archive has."""
    if mode == "hybrid":
        lists = {name: [i for i in found.ids(name) if i in created] for name in found.lists}
        if "semantic" in lists:
            near = found.near()
            lists["semantic"] = [i for i in lists["semantic"] if i in near]
        fused = parse.fuse(lists, parse.weights(asked, is_partly_embedded), created)
        if not asked.is_short:
            return fused
        hold = holding(asked, found)
        return sorted(fused, key=lambda one: hold(one.message_id))
    name = "named" if mode == "literal" else "semantic"
    scores: dict[str, float] = {}
    for match in found.lists.get(name, []):
        scores[match.message_id] = max(match.score, scores.get(match.message_id, match.score))
    newest_first = [(0.0 if mode == "literal" else -scores[i], -created[i], i) for i in scores if i in created]
    return [parse.Fused(message_id, scores[message_id], (mode,)) for _, _, message_id in sorted(newest_first)]


def _notes(asked: Query, tiered: Sequence[tuple[int, parse.Fused]], limit: int, *, is_sure: bool) -> list[str]:
    """What must be said so that nobody takes another name for the one that was asked for.

    `is_sure`: all texts were searched for it.
    """
    named = ", ".join(repr(redact(name)) for name in asked.named)
    chosen = tiered[:limit]
    best = min((tier for tier, _ in tiered if tier >= 0), default=Tier.NONE)
    without = sum(tier == Tier.NONE for tier, _ in chosen)
    if best == Tier.NONE:
        rest = "these hits are only similar" if chosen else "mode semantic finds what is only similar"
        nothing = "nothing recorded contains" if is_sure else "nothing that could be searched contains"
        return [f"{nothing} {named}; {rest}"]
    notes = []
    if best == Tier.SOME:
        notes.append(f"no message contains all of {named}")
    if best == Tier.INSIDE:
        notes.append(f"{named} occurs only inside longer names")
    if without:
        notes.append(f"the last {'hit does' if without == 1 else f'{without} hits do'} not contain {named}")
    return notes


def _word_notes(asked: Query, mode: str, found: Found, chosen: Sequence[parse.Fused]) -> list[str]:
    """What must be said when no text, or only meaning, has what a query of plain words asks for."""
    if mode != "hybrid" or found.states.get("lexical") != "used":
        return []
    if not found.by_words():
        words = ", ".join(repr(redact(word)) for word in asked.phrase.split() or asked.words) or "a word of the query"
        if found.is_inside:
            return [f"{words} occurs only inside longer words; mode literal finds it there"]
        rest = "these hits are only similar in meaning" if chosen else "nothing similar was found either"
        return [f"no current text contains {words}; {rest}"]
    if not asked.is_short:
        return []
    without = sum(fused.sources == ("semantic",) for fused in chosen)
    return [f"the last {_hits(without)} only similar in meaning"] if without else []


def _hits(number: int) -> str:
    return "hit is" if number == 1 else f"{number} hits are"


def _of(kinds: Sequence[str]) -> str:
    return f"messages of kind {' or '.join(kinds)}"


def _waiting(coverage: Json, mode: str) -> list[str]:
    needs = {"literal": ("lexical",), "semantic": ("semantic",)}.get(mode, STAGES)
    behind = max((coverage["waiting"][stage] for stage in needs), default=0)
    return [f"{counted(behind, 'archived message')} still waiting to be indexed"] if behind else []
