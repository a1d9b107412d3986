"""Prose in sentences, in any script; without quotations, code, headings and tables, which state nothing themselves.

A sentence is a stretch of the text with single blanks; `Sentence.bare` is as long as its text. Linear in the length of
the text; never raises.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

_MOST_CACHED = 8192
"""Texts whose sentences are cached, for the same reason as in `cues.of`."""
_LONGEST_TEXT = 60_000
"""Characters of a text that are read: a longer text was pasted."""
_SOFT_WRAP = 50
"""A line at least this long continues in the next one, unless it ends a sentence; a shorter one ends on purpose."""

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)]|[a-z]\))\s+(?:\[[ xX]\]\s+)?")
_NO_PROSE = re.compile(r"^(?:\s{0,3}#{1,6}\s|\s*>|\s*\||\t| {4,}(?![-*+•\d])|\s*<[!/a-zA-Z]|\s*(?:[-=*_]\s*){3,}$)")
_PRINTED = re.compile(
    r"^\s*(?:[\w.]*(?:Error|Exception|Warning)\b\S*:|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL)\b|Traceback \(|"
    r"at \S+\(|File \"|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\$ )"
)
"""A pasted line of a program's output."""
_END = re.compile(r"[.!?…]+[\"'’”»)\]*_]*(?=\s)|[。！？．｡][」』”）]*|[؟۔।։](?=\s|$)|[;\u037e](?=\s)")
_TERMINAL = ".!?…。！？:؟۔।։｡"
_INITIAL = re.compile(
    r"(?:^|[\s(])(?:\w|\d{1,2}|\w\.\s?\w|etc|vs|ca|cf|bzw|usw|resp|approx|No|Nr|núm|p\. ?ej|incl|inkl)\.$"
)
_QUOTED = re.compile(
    r"`[^`]*`|\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«]*«|「[^」]*」|『[^』]*』|‹[^›]*›|‘[^’]*’(?!\w)|(?<!\w)'[^']+'(?!\w)"
)
_LINK = re.compile(r"\bhttps?://\S+")
_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")
_MASK = "\ufffc"
_WORD = re.compile(r"[^\W_]+(?:[_./-][^\W_]+)*/?")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as written; in `bare` everything quoted or in code is masked."""

    text: str
    bare: str

    @property
    def is_question(self) -> bool:
        """Whether it has the form of a question, in any script."""
        end = self.text.rstrip(" \"'’”»)]*_")
        return (
            end.endswith(("?", "？", "؟", "\u037e", "⸮", "?!"))
            or "՞" in end
            or (end.endswith(";") and _GREEK.search(end[-40:]) is not None)
        )


@lru_cache(maxsize=_MOST_CACHED)
def split(text: str) -> tuple[Sentence, ...]:
    """The sentences of `text`'s prose, in order."""
    return tuple(whole(piece) for block in _blocks(text[:_LONGEST_TEXT]) for piece in _cut(block))


def whole(text: str) -> Sentence:
    """`text`, which is one line, as one sentence."""
    bare = _QUOTED.sub(lambda match: _MASK * len(match[0]), text)
    return Sentence(text, _LINK.sub(lambda match: _MASK * len(match[0]), bare))


def _blocks(text: str) -> list[str]:
    """Paragraphs, items and lines that were ended on purpose, each as one line."""
    blocks: list[list[str]] = []
    fence = ""
    is_open = False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        if mark:
            fence, is_open = mark[1], False
        elif not line.strip() or _NO_PROSE.match(line) or _PRINTED.match(line):
            is_open = False
        elif is_open and not _ITEM.match(line):
            blocks[-1].append(line)
            is_open = _goes_on(line)
        else:
            blocks.append([_ITEM.sub("", line, count=1)])
            is_open = _goes_on(line)
    return [" ".join(" ".join(lines).split()) for lines in blocks]


def _goes_on(line: str) -> bool:
    line = line.rstrip()
    return len(line) >= _SOFT_WRAP and not line.endswith(tuple(_TERMINAL))


def _cut(line: str) -> list[str]:
    bounds = [0, *ends(line), len(line)]
    pieces = (line[start:end].strip() for start, end in pairwise(bounds))
    return [piece for piece in pieces if any(letter.isalpha() for letter in piece)]


def ends(line: str) -> list[int]:
    """Where the sentences of `line` end, in order, without the end of `line`."""
    places, start = [], 0
    is_greek = _GREEK.search(line) is not None
    is_informal = line[:1].islower()  # who begins so writes no sentence with a capital letter
    masked = _QUOTED.sub(lambda match: _MASK * (len(match[0]) - 1) + _closing_mark(match[0]), line)
    for end in _END.finditer(masked):
        mark, following = end[0][0], line[end.end() : end.end() + 2].strip()
        before = line[max(start, end.start() - 12) : end.start() + 1]
        if mark in ";\u037e" and not is_greek:
            continue
        if mark == "." and ((following[:1].islower() and not is_informal) or _INITIAL.search(before)):
            continue
        start = end.end()
        places.append(start)
    return places


def _closing_mark(quotation: str) -> str:
    """The last character of a masked quotation: a closing mark that may also end a sentence ("… done.") stays."""
    return quotation[-1] if quotation[-2:-1] not in _TERMINAL else _MASK


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """The words of `text` from three letters on, to compare it with another text.

    In scripts without blanks, pairs of characters stand for words.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    stripped = (word.strip("/.") for word in _WORD.findall(_CJK.sub(" ", folded)))
    result = {word for word in stripped if len(word) > 2 or word.isdigit()}
    for run in _CJK.findall(folded):
        result.update(run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return frozenset(result)


def share(part: frozenset[str], total: frozenset[str]) -> float:
    """How much of `part` is in `total`, from 0 to 1; 0 where `part` is empty."""
    return len(part & total) / len(part) if part else 0.0


def shorten(text: str, limit: int = 160) -> str:
    """`text` in one line of at most `limit` characters, cut between words if possible."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    return (head[: head.rfind(" ")] if head.rfind(" ") > limit // 2 else head).rstrip() + "…"
