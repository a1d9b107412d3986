"""Answers questions with quotations: searches the records, and chooses passages with the question's words.

Guarantees: every quote is from one prompt or answer, redacted, never from tool output. The same sessions and ranks give
the same quotes. If nothing fits, the answer says so. Ranks are stored while the target's evidence is the same, so a run
with nothing new searches nothing and embeds no query. Ranks with warnings of recall are not stored.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from daemon.archive import Archive
from daemon.errors import BadRequest, Retry, Skip
from daemon.files.trees import is_beneath
from daemon.index import Filters
from daemon.index.tokens import STOP_WORDS
from daemon.model import Json, Kind
from daemon.recall.search import RecallEngine
from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.questions import Question
from daemon.reconstitute.scope import Scope
from daemon.records import digest, dumps

VERSION = 3
"""Part of the key of stored answers; raise it when passages are chosen in another way."""

NOTHING_RECORDED = "Nothing recorded answers this."
CLOSEST = "No passage uses the words of the question; these are the closest ones recall found."

_WEIGHTS = {Kind.ANSWER: 1.1, Kind.PROMPT: 1.0, Kind.TASK: 0.7}
_SHORTEST, _USUAL, _LONGEST = 12, 320, 700
_MOST_PER_MESSAGE = 2
_LEAST_SHARE = 0.4
"""A passage that scores less than this share of the best one adds noise."""
_ALIKE = 0.75
"""Two passages say the same if they share at least this part of their words."""
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_WORD = re.compile(r"\w+")
_CANDIDATES = 60
_MOST_SESSIONS = 6
_LONGEST_QUERY = 2000
"""Characters of a query, because a person's question may be long."""
_CACHE_S = 30 * 86_400.0
_KIND = "search"
_SEARCH_VERSION = "3"


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of recorded text, redacted."""

    text: str
    kind: str
    message_id: str
    session_id: str
    title: str
    created: int


@dataclass(frozen=True, slots=True)
class Findings:
    """The answer to one question: quotes, best first, and a note about them."""

    question: Question
    quotes: tuple[Passage, ...]
    note: str = ""

    def to_json(self) -> Json:
        """Everything but the question, as `from_json` reads it."""
        return {"note": self.note, "quotes": [asdict(quote) for quote in self.quotes]}

    @classmethod
    def from_json(cls, question: Question, stored: Json) -> Findings:
        """The stored answer to `question`."""
        return cls(question, tuple(Passage(**quote) for quote in stored["quotes"]), stored["note"])


def split(text: str) -> list[str]:
    """The prose of `text` in passages of one line: paragraphs and list items, long ones cut between sentences.

    Fenced blocks are left out.
    """
    pieces: list[str] = []
    prose: list[str] = []
    fence = ""

    def end_prose() -> None:
        line = " ".join(" ".join(prose).split())
        prose.clear()
        pieces.extend(piece for piece in _sentences(line) if _says_something(piece))

    for line in text.splitlines():
        opening = _FENCE.match(line)
        if fence:
            fence = "" if opening and opening[1].startswith(fence) else fence
        elif opening:
            end_prose()
            fence = opening[1]
        elif not line.strip() or _HEADING.match(line):
            end_prose()
        else:
            if _ITEM.match(line):
                end_prose()
            prose.append(_ITEM.sub("", line, count=1) if not prose else line)
    end_prose()
    return pieces


def _says_something(piece: str) -> bool:
    return len(piece) >= _SHORTEST and len(_WORD.findall(piece)) > 1


def _sentences(line: str) -> list[str]:
    """`line` in stretches of whole sentences of about 320 characters; a sentence over 700 is cut at a space."""
    pieces: list[str] = []
    start = 0
    ends = [*sentences.ends(line), len(line)]
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None or following - start > _USUAL:
            pieces.append(line[start:end].strip())
            start = end
    return [piece if len(piece) <= _LONGEST else piece[:_LONGEST].rsplit(" ", 1)[0] + " …" for piece in pieces if piece]


def passages_of(sessions: Iterable[SessionFacts]) -> Iterator[Passage]:
    """All passages of the sessions' prompts and answers."""
    for session in sessions:
        for turn in session.own_turns:  # the copies in a fork are quoted from their original session
            kind = Kind.TASK if turn.is_command else Kind.PROMPT
            for text in split(turn.prompt):
                yield Passage(text, kind, turn.prompt_id, session.id, session.title, turn.time)
            for reply in turn.replies:
                for text in split(reply.text):
                    yield Passage(text, Kind.ANSWER, reply.message_id, session.id, session.title, reply.time)


class Extractor:
    """Scores one pool of passages for any number of questions."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._passages = tuple(passages)
        self._stems = [frozenset(_stems(passage.text)) for passage in self._passages]
        self._often = Counter(stem for stems in self._stems for stem in stems)

    def answer(self, question: Question, ranks: Mapping[str, int], limit: int = 5) -> Findings:
        """Up to `limit` passages for `question`; `ranks` maps message ids to their place (from 0) in recall."""
        stems = frozenset(_stems(question.ask))
        scored = []
        for number, passage in enumerate(self._passages):
            overlap = self._overlap(stems, number)
            if overlap:
                search_score = 1.2 / (1 + ranks[passage.message_id] / 5) if passage.message_id in ranks else 0.0
                scored.append((4.0 * overlap * _WEIGHTS[Kind(passage.kind)] + search_score, passage))
        best = max((score for score, _ in scored), default=0.0)
        quotes = _choose([pair for pair in scored if pair[0] >= _LEAST_SHARE * best], limit)
        if quotes:
            return Findings(question, quotes)
        closest = [(1.0 / (1 + ranks[p.message_id]), p) for p in self._passages if p.message_id in ranks]
        closest_passages = _choose(closest, min(limit, 3))
        return Findings(question, closest_passages, CLOSEST if closest_passages else NOTHING_RECORDED)

    def _overlap(self, stems: frozenset[str], number: int) -> float:
        """The share of the question's words that the passage has, rare words weighing more; 0 below a third."""
        if not stems:
            return 0.0
        rarity = {stem: math.log1p(len(self._passages) / (1 + self._often[stem])) for stem in stems}
        share = sum(rarity[stem] for stem in stems & self._stems[number]) / (sum(rarity.values()) or 1.0)
        return share if share >= 1 / 3 else 0.0


def _stems(text: str) -> Iterable[str]:
    for word in _WORD.findall(text.lower()):
        if word not in STOP_WORDS and len(word) > 1:
            yield word if len(word) < 6 else word[:6].rstrip("e")


def _choose(scored: Sequence[tuple[float, Passage]], limit: int) -> tuple[Passage, ...]:
    """The best, no two alike and at most two of one message; of equal texts the oldest (a fork copies messages)."""
    oldest: dict[str, Passage] = {}
    for _, passage in scored:
        key = _key(passage.text)
        first = oldest.get(key)
        if first is None or (passage.created, passage.message_id) < (first.created, first.message_id):
            oldest[key] = passage
    order = sorted(scored, key=lambda pair: (-round(pair[0], 9), pair[1].created, pair[1].message_id, pair[1].text))
    chosen: list[Passage] = []
    words: list[frozenset[str]] = []
    for _, candidate in order:
        passage = oldest[_key(candidate.text)]
        words_here = frozenset(_WORD.findall(passage.text.lower()))
        crowded = sum(chosen_passage.message_id == passage.message_id for chosen_passage in chosen) >= _MOST_PER_MESSAGE
        if crowded or any(
            len(words_here & other_words) >= _ALIKE * min(len(words_here), len(other_words)) for other_words in words
        ):
            continue
        chosen.append(passage)
        words.append(words_here)
        if len(chosen) == limit:
            break
    return tuple(chosen)


def _key(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


class QuestionSearch:
    """Searches for the questions of one target in its scope; `warnings` collects those of recall."""

    def __init__(
        self,
        archive: Archive,
        recall: RecallEngine,
        path: str,
        scope: Scope,
        moment: int | None = None,
        *,
        is_early: bool = False,
    ) -> None:
        """`moment` (epoch ms): later messages are left out. `is_early`: the indexes are not complete yet, so ranks are
        neither stored nor taken from the store.
        """
        self.moment, self._is_early = moment, is_early
        self._archive, self._recall, self.path, self.scope = archive, recall, path, scope
        self._message_ids = {message_id for session in scope.sessions for message_id in session.message_ids}
        self._is_over = False
        self.warnings: list[str] = []

    def ranks(self, question: Question) -> dict[str, int]:
        """The best place in recall, from 0, of each message of the scope, over the question's queries."""
        key = digest(
            self.scope.fingerprint.encode(), dumps([self.path, question.queries, self.moment, _SEARCH_VERSION])
        )
        stored: dict[str, int] | None = None if self._is_early else self._archive.cache_get(_KIND, key)
        if stored is not None:
            return stored
        warnings_before = len(self.warnings)
        ranks = self._search(question)
        if not self._is_early and not self._is_over and len(self.warnings) == warnings_before and not self.warnings:
            self._archive.cache_put(_KIND, key, ranks, _CACHE_S)
        return ranks

    def _search(self, question: Question) -> dict[str, int]:
        ranks: dict[str, int] = {}
        for query, filters in self._searches(question):
            if self._is_over or not query.strip():
                continue
            try:
                answer = self._recall.search(query[:_LONGEST_QUERY], limit=_CANDIDATES, filters=filters)
            except BadRequest:
                raise
            except (Retry, Skip) as error:  # the pages can do without recall's ranks, and say so
                self._warn(f"recall did not answer: {error}")
                self._is_over = True
                return {}
            for warning in answer.degraded:
                self._warn(warning)
            for place, hit in enumerate(hit for hit in answer.hits if hit.message_id in self._message_ids):
                ranks[hit.message_id] = min(place, ranks.get(hit.message_id, place))
        return ranks

    def _searches(self, question: Question) -> list[tuple[str, Filters]]:
        """(query, filters) of each search: everything beneath the target, and the busiest sessions elsewhere."""
        outside = [session for session in self.scope.sessions if not is_beneath(session.session.directory, self.path)]
        busiest = sorted(outside, key=lambda session: (-len(session.message_ids), session.session.id))[:_MOST_SESSIONS]
        end = None if self.moment is None else self.moment + 1
        searches = [
            (query, Filters(session_id=session.session.id, before=end))
            for session in busiest
            for query in question.queries[:1]
        ]
        if len(outside) < len(self.scope.sessions):
            searches += [(query, Filters(directory=self.path, before=end)) for query in question.queries]
        return searches

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)


def kept(
    archive: Archive,
    questions: Sequence[Question],
    search: QuestionSearch,
    pending: Iterable[str],
    progress: Callable[[Json], None],
    *,
    stores: bool = True,
) -> tuple[Findings, ...]:
    """The quotations that answer each of `questions`, which a person asked of the target of `search`.

    They are stored while the evidence and the questions are the same, unless recall was incomplete at that time, or
    work was `pending`; without `stores`, never.
    """
    if not questions:
        return ()
    key = digest(
        search.scope.fingerprint.encode(),
        dumps([asdict(question) for question in questions]),
        f"{VERSION} {search.moment}".encode(),
    )
    name = "answers" if search.moment is None else "answers-at"
    stored = archive.target_get(search.path, name)
    if stored is not None and stored["key"] == key and not stored["warnings"]:
        return tuple(Findings.from_json(question, stored["answers"][question.id]) for question in questions)
    findings: list[Findings] = []
    extractor = Extractor(passages_of(search.scope.sessions))
    for number, question in enumerate(questions):
        progress({"phase": "quote", "done": number, "total": len(questions)})
        findings.append(extractor.answer(question, search.ranks(question)))
    progress({"phase": "quote", "done": len(questions), "total": len(questions)})
    answers = {finding.question.id: finding.to_json() for finding in findings}
    value = {"key": key, "answers": answers, "warnings": [*search.warnings, *pending]}
    if stores and stored != value:
        archive.target_put(search.path, name, value)
    return tuple(findings)
