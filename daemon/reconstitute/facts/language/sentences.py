"""Prose in sentences, whatever the script; quotations, code, headings and tables are no statements of the writer.

Guarantees: a sentence is a stretch of the text with its blanks made single; `Sentence.bare` is as long as its text.
Linear in the length of the text; never raises.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

_MOST_KEPT = 8192
"""Texts whose sentences are kept, for the same reason as `cues.of`."""
_LONGEST_TEXT = 60_000
"""Characters of a text that are read: what is longer was pasted, and is no conversation."""
_SOFT_WRAP = 50
"""A line at least this long goes on in the next one, unless it ends a sentence; a shorter one was ended on purpose."""

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)]|[a-z]\))\s+(?:\[[ xX]\]\s+)?")
_NO_PROSE = re.compile(r"^(?:\s{0,3}#{1,6}\s|\s*>|\s*\||\t| {4,}(?![-*+•\d])|\s*<[!/a-zA-Z]|\s*(?:[-=*_]\s*){3,}$)")
_PRINTED = re.compile(
    r"^\s*(?:[\w.]*(?:Error|Exception|Warning)\b\S*:|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL)\b|Traceback \(|"
    r"at \S+\(|File \"|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\$ )"
)
"""A line that a program printed and somebody pasted."""
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
    """`text` as written; `bare` the same, with everything quoted or in code masked."""

    text: str
    bare: str

    @property
    def is_question(self) -> bool:
        """Whether its form asks, in whatever script."""
        end = self.text.rstrip(" \"'’”»)]*_")
        return (
            end.endswith(("?", "？", "؟", "\u037e", "⸮", "?!"))
            or "՞" in end
            or (end.endswith(";") and _GREEK.search(end[-40:]) is not None)
        )


@lru_cache(maxsize=_MOST_KEPT)
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
    pieces, start = [], 0
    is_greek = _GREEK.search(line) is not None
    is_informal = line[:1].islower()  # who begins so writes no sentence with a capital letter
    masked = _QUOTED.sub(lambda match: _MASK * (len(match[0]) - 1) + _last(match[0]), line)
    for end in _END.finditer(masked):
        mark, following = end[0][0], line[end.end() : end.end() + 2].strip()
        before = line[max(start, end.start() - 12) : end.start() + 1]
        if mark in ";\u037e" and not is_greek:
            continue
        if mark == "." and ((following[:1].islower() and not is_informal) or _INITIAL.search(before)):
            continue
        pieces.append(line[start : end.end()].strip())
        start = end.end()
    return [piece for piece in [*pieces, line[start:].strip()] if any(letter.isalpha() for letter in piece)]


def _last(quoted: str) -> str:
    """A closing mark that may also end a sentence ("… done.") keeps its place."""
    return quoted[-1] if quoted[-2:-1] not in _TERMINAL else _MASK


@lru_cache(maxsize=8192)
def words(text: str) -> frozenset[str]:
    """What `text` is about, to compare it with another: its words from three letters on.

    In scripts without blanks pairs of signs stand for words.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    found = {word.strip("/.") for word in _WORD.findall(_CJK.sub(" ", folded))}
    found = {word for word in found if len(word) > 2 or word.isdigit()}
    for run in _CJK.findall(folded):
        found.update(run[place : place + 2] for place in range(max(1, len(run) - 1)))
    return frozenset(found)


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """How much of `part` is in `whole`, from 0 to 1; 0 where `part` is empty."""
    return len(part & whole) / len(part) if part else 0.0


def shorten(text: str, limit: int = 160) -> str:
    """`text` in one line of at most `limit` characters, cut between words where it has some."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    return (head[: head.rfind(" ")] if head.rfind(" ") > limit // 2 else head).rstrip() + "…"
