"""Answers without a model: the best recorded passages, quoted word for word, with where and when they were said.

Guarantees: every quote is a stretch of one prompt, answer or piece of reasoning (or a whole shell command that ended
well), redacted, never tool output; the same passages and ranks give the same answer; where nothing fits it says so.
It reads no archive and asks no index: passages and recall's ranks are given to it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from daemon.model import Kind
from daemon.recall.rank import STOPWORDS
from daemon.reconstitute.questions import Question

VERSION = 2
"""Part of the evidence fingerprint: a new way to choose passages answers anew."""

QUOTED_KINDS = frozenset({Kind.PROMPT, Kind.ANSWER, Kind.REASONING, Kind.TASK})
COMMAND = "command"
NOTHING = "Nothing recorded answers this."
CLOSEST = "No passage uses the words of the question; these are the closest ones recall found."

_SHORTEST, _USUAL, _LONGEST = 12, 320, 700
_MOST_PER_MESSAGE = 2
_LEAST_BASE = 0.9
"""Below this a passage is no answer, however high recall ranks its message."""
_LEAST_SHARE = 0.4
"""A passage that scores less than this share of the best one adds noise."""
_FEW_WORDS = 5
_ALIKE = 0.75
_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"')\]`*]*\s+|(?<=[。！？])")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[^\s`'\"()\[\]{}<>,;:|*]+")
_ANNOUNCES = re.compile(
    r"(now|next|first|then|let me|let's|i'?ll|i will|i'm going to|i am going to|running|looking|checking|reading|"
    r"writing|start(ing)?|on(ly|e more)?)\b",
    re.IGNORECASE,
)
_RUNS = re.compile(
    r"(^|[;&|]\s*)(\w+=\S+ )*(sudo )?"
    r"(python3? (-m )?[\w./]|pip3? install|pytest|flask|uvicorn|gunicorn|uv |poetry |tox|nox|npm |npx |pnpm |yarn |"
    r"bun |deno |node [\w./]|tsc\b|make\b|cmake |cargo |go (run|test|build)|mvn |gradle|\./[\w./-]+|"
    r"(ba)?sh [\w./-]+\.sh|docker|podman|systemctl |ruby |rake|bundle |rails |php |composer |dotnet |swift )"
)
_NOT_RUNS = re.compile(r"<<|python3? -c|node -e|\n.*\n.*\n")


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of recorded text, redacted. `opening` marks what a session began with."""

    text: str
    kind: str
    message_id: str
    session_id: str
    title: str
    created: int
    opening: bool = False
    code: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """The answer to one question: quotes, best first, and what must be said about them."""

    question: Question
    quotes: tuple[Passage, ...]
    note: str = ""


def split(text: str) -> list[tuple[str, bool]]:
    """`text` in passages: (one line of prose or a block of code as written, whether it is code).

    Paragraphs, list items and fenced blocks are taken apart; long prose is cut between sentences.
    """
    found: list[tuple[str, bool]] = []
    prose: list[str] = []
    code: list[str] = []
    fence = ""

    def end_prose() -> None:
        line = " ".join(" ".join(prose).split())
        prose.clear()
        found.extend((piece, False) for piece in _sentences(line) if _says_something(piece))

    for line in text.splitlines():
        opened = _FENCE.match(line)
        if fence:
            if opened and opened[1].startswith(fence):
                found.append(("\n".join(code), True))
                fence = ""
            else:
                code.append(line)
        elif opened:
            end_prose()
            fence, code = opened[1], []
        elif not line.strip() or _HEADING.match(line):
            end_prose()
        else:
            if _ITEM.match(line):
                end_prose()
            prose.append(_ITEM.sub("", line, count=1) if not prose else line)
    end_prose()
    if fence:  # never closed: what follows it is still what was said
        found.append(("\n".join(code), True))
    return [(piece, is_code) for piece, is_code in found if piece.strip() and (not is_code or len(piece) <= _LONGEST)]


def _says_something(piece: str) -> bool:
    return len(piece) >= _SHORTEST and len(_WORD.findall(piece)) > 1


def _sentences(line: str) -> list[str]:
    """`line` in stretches of whole sentences of about 320 characters; a sentence over 700 is cut at a space."""
    pieces: list[str] = []
    start = 0
    ends = [match.end() for match in _SENTENCE.finditer(line)] + [len(line)]
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        if following is None or following - start > _USUAL:
            pieces.append(line[start:end].strip())
            start = end
    return [piece if len(piece) <= _LONGEST else piece[:_LONGEST].rsplit(" ", 1)[0] + " …" for piece in pieces if piece]


def is_run_command(command: str) -> bool:
    """Whether a shell command looks like building, starting or testing something."""
    return len(command) <= _LONGEST and bool(_RUNS.search(command)) and not _NOT_RUNS.search(command)


class Extractor:
    """Scores one pool of passages for any number of questions.

    A passage that speaks of the target by `name`, or of one of the `paths` beneath it, counts more.
    """

    def __init__(self, passages: Iterable[Passage], name: str = "", paths: Iterable[str] = ()) -> None:
        self._passages = tuple(passages)
        self._target = _key_of(name)
        self._paths = {_key_of(path) for path in paths}
        self._stems = [frozenset(_stems(passage.text)) for passage in self._passages]
        self._often = Counter(stem for stems in self._stems for stem in stems)
        self._names = [frozenset(_name_keys(passage.text)) for passage in self._passages]
        self._naming: dict[str, list[int]] = {}
        for number, names in enumerate(self._names):
            for key in names:
                self._naming.setdefault(key, []).append(number)
        times = [passage.created for passage in self._passages]
        self._first, self._span = min(times, default=0), max(1, max(times, default=0) - min(times, default=0))

    def answer(self, question: Question, ranks: Mapping[str, int], limit: int = 5) -> Findings:
        """Up to `limit` passages for `question`; `ranks` maps message ids to their place (from 0) in recall."""
        asked = frozenset(_stems(question.ask)) if not question.cues else frozenset()
        scored = []
        for number, passage in enumerate(self._passages):
            score = self._score(question, asked, number, passage, ranks)
            if score > 0:
                scored.append((score, passage))
        best = max((score for score, _ in scored), default=0.0)
        quotes = _choose([pair for pair in scored if pair[0] >= _LEAST_SHARE * best], limit)
        if quotes:
            if question.in_time_order:
                quotes = tuple(sorted(quotes, key=lambda quote: (quote.created, quote.message_id)))
            return Findings(question, quotes)
        if not question.cues and ranks:
            closest = [(1.0 / (1 + ranks[p.message_id]), p) for p in self._passages if p.message_id in ranks]
            nearest = _choose(closest, min(limit, 3))
            return Findings(question, nearest, CLOSEST if nearest else NOTHING)
        return Findings(question, (), NOTHING)

    def describe(
        self,
        names: Iterable[str],
        question: Question,
        messages: frozenset[str],
        limit: int = 2,
        *,
        short: Iterable[str] = (),
        sessions: Container[str] | None = None,
    ) -> tuple[Passage, ...]:
        """What was said of one file or folder: passages that name it, those of `messages` (which touched it) first.

        `names` mean it wherever they are said; `short` ones may mean another elsewhere, and count in `sessions` only
        (None: in all).
        """
        full = [name for name in names if len(name) > 1]
        wanted = [*full, *(name for name in short if len(name) > 1)]
        anywhere, inside = _any_of(full), _any_of(wanted)
        scored = []
        for number in sorted({number for name in wanted for number in self._naming.get(_key_of(name), ())}):
            passage = self._passages[number]
            named = inside if sessions is None or passage.session_id in sessions else anywhere
            if passage.code or not named.search(passage.text):
                continue
            score = 1.0 + _cues(question, passage.text) + (1.5 if passage.message_id in messages else 0.0)
            scored.append((score * question.kinds.get(passage.kind, 0.5), passage))
        return _choose(scored, limit)

    def _score(
        self, question: Question, asked: frozenset[str], number: int, passage: Passage, ranks: Mapping[str, int]
    ) -> float:
        if passage.kind == COMMAND and not question.commands:
            return 0.0
        if passage.code and not question.commands:
            return 0.0
        base = _cues(question, passage.text) + 4.0 * self._overlap(asked, number)
        if passage.kind == COMMAND:
            base += 1.5
        if passage.opening:
            base += question.opening
        base *= _weight(question, passage)
        spoken_of = self._target in self._names[number]
        if spoken_of or (not question.opening and not self._paths.isdisjoint(self._names[number])):
            base *= 1.25
        if base < _LEAST_BASE:
            return 0.0
        if passage.message_id in ranks:
            base += 1.2 / (1 + ranks[passage.message_id] / 5)
        age = (passage.created - self._first) / self._span
        return base + 0.8 * {"early": 1 - age, "late": age}.get(question.favours, 0.0)

    def _overlap(self, asked: frozenset[str], number: int) -> float:
        """The share of the question's words that the passage has, rare words weighing more; 0 below a third."""
        if not asked:
            return 0.0
        rarity = {stem: math.log1p(len(self._passages) / (1 + self._often[stem])) for stem in asked}
        share = sum(rarity[stem] for stem in asked & self._stems[number]) / (sum(rarity.values()) or 1.0)
        return share if share >= 1 / 3 else 0.0


def _stems(text: str) -> Iterable[str]:
    for word in _WORD.findall(text.lower()):
        if word not in STOPWORDS and len(word) > 1:
            yield word if len(word) < 6 else word[:6].rstrip("e")


def _cues(question: Question, text: str) -> float:
    return min(5.0, sum(weight for pattern, weight in question.cues if re.search(pattern, text, re.IGNORECASE)))


def _weight(question: Question, passage: Passage) -> float:
    """How much a passage of this kind and form is worth; announcements of the next step tell little."""
    if passage.kind == COMMAND:
        return 1.0
    weight = question.kinds.get(passage.kind, 0.5)
    if passage.kind in {Kind.ANSWER, Kind.REASONING} and _ANNOUNCES.match(passage.text):
        weight *= 0.5
    return weight * (0.7 if len(_WORD.findall(passage.text)) < _FEW_WORDS else 1.0)


def _name_keys(text: str) -> Iterable[str]:
    """What may be the end of a file's or folder's name in `text`: each piece of each path-like word."""
    for token in _TOKEN.findall(text.lower()):
        for piece in token.split("/"):
            if len(piece) > 1:
                yield piece.strip(".")


def _key_of(name: str) -> str:
    """The piece of a name by which `_name_keys` would find it."""
    pieces = _TOKEN.findall(name.lower().rstrip("/").rsplit("/", 1)[-1])
    return pieces[-1].strip(".") if pieces else ""


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of `names` standing alone."""
    if not (names := set(names)):
        return re.compile(r"(?!)")
    alternatives = sorted({re.escape(name) for name in names}, key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(alternatives)})(?![\w-])", re.IGNORECASE)


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
        these = frozenset(_WORD.findall(passage.text.lower()))
        crowded = sum(other.message_id == passage.message_id for other in chosen) >= _MOST_PER_MESSAGE
        if crowded or any(len(these & those) >= _ALIKE * min(len(these), len(those)) for those in words):
            continue
        chosen.append(passage)
        words.append(these)
        if len(chosen) == limit:
            break
    return tuple(chosen)


def _key(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
