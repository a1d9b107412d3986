"""Finds the secrets of a text: every rule, applied to every view of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ahocorasick_rs import BytesAhoCorasick

from daemon.redact import assignments, columns, known
from daemon.redact.forms import FORMS, OTHER_WORDS, cookies, encoded, private_keys
from daemon.redact.rules import UNMISTAKABLE, VENDORS, Rule
from daemon.redact.views import JOINED, WIDE, View, composed, lower, peeled, raw, unwrapped

_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,20}:[0-9a-f]{8}\\?\]")
"""Also as Markdown escapes it: pages are redacted once more when they are written."""
_CUT_OFF = ("…", "...", "truncated", "omitted", "left out")
_LAST_RUN = re.compile(r"[A-Za-z0-9_=.-]{20,300}")
"""The end of a text, read backwards."""
_LONG_RUN = re.compile(r"[A-Za-z0-9_+/=.~:$,%-]{20,}+")
"""No provider's key is shorter."""
_IS_RUN = bytes(97 if chr(code) in JOINED else 32 for code in range(256))
_WIDE_RUN = b"a" * WIDE
_SHORT, _MOST_SHORT = 200, 8192
"""Characters of an innocent text that is remembered, and how many are: paths and phrases come again and again."""
_INNOCENT: set[tuple[object, str]] = set()
"""Short texts without a secret, each with the configuration by which it has none."""
_LEAST_CUT = 12
"""So many letters and digits in one piece after a provider's prefix are a truncated key, not words."""


@dataclass(frozen=True, slots=True)
class Span:
    """A secret: where it stands, of what kind it is, and what it is once its escapes are undone."""

    start: int
    end: int
    kind: str
    secret: str
    is_sure: bool = True
    """Whether the whole secret was seen, so that it may be looked for by its value elsewhere."""


def find(text: str, *, deep: bool = True) -> list[Span]:
    """The secrets of `text`, in order and apart. `deep` looks into runs of base64, too."""
    if not text:
        return []
    if not deep or len(text) > _SHORT or known.has_values():
        return _found(text, deep=deep)
    if (key := (known.in_use(), text)) in _INNOCENT:
        return []
    spans = _found(text, deep=True)
    if not spans:
        if len(_INNOCENT) >= _MOST_SHORT:
            _INNOCENT.clear()
        _INNOCENT.add(key)
    return spans


def _found(text: str, *, deep: bool) -> list[Span]:
    words = _words_in(text)
    spans = _plain(text, words, deep=deep)
    inner = peeled(text)
    whole = text if inner is None else inner.text
    if inner is not None:
        words = _words_in(whole)
        spans += _traced(inner, _plain(whole, words, deep=deep))
    # Without its prefix, a line is a part of what it was: only joined lines have new words, known values or base64.
    if words or known.has_patterns() or _WIDE_RUN in raw(whole).translate(_IS_RUN):
        outer = unwrapped(whole)
        if outer is not None:
            spans += _traced(composed(outer, inner), _plain(outer.text, _words_in(outer.text), deep=deep))
    return _apart(text, spans) if spans else spans


def _encoded(text: str) -> Iterator[tuple[int, int]]:
    for start, end, inside in encoded(text):
        if find(inside, deep=False):
            yield start, end


def _plain(text: str, words: _Hits, *, deep: bool) -> list[Span]:
    """The secrets of a view."""
    spans = [Span(start, end, kind, text[start:end]) for start, end, kind in known.find(text)]
    if words:
        spans += [Span(start, end, kind, text[start:end]) for start, end, kind in _by_rules(text, words)]
        spans += [
            Span(start, end, kind, text[start:end], is_sure=False)
            for start, end, kind in _cut(text)
            if not any(start < span.end and span.start < end for span in spans)
        ]
    if deep:
        spans += [Span(start, end, "encoded", text[start:end]) for start, end in _encoded(text)]
    return [span for span in spans if not known.is_allowed(span.secret)]


def _words_in(text: str) -> _Hits:
    """The words of our rules in `text`, whatever their case. Without one, only known values and base64 are secrets.

    One pass of an automaton, because asking for each of the 300 words takes twenty times as long.
    """
    return _automaton().find_matches_as_indexes(raw(lower(text)), overlapping=True)


@cache
def _automaton() -> BytesAhoCorasick:
    return BytesAhoCorasick([word.encode() for word in _WORDS])


def _by_rules(text: str, hits: _Hits) -> Iterator[tuple[int, int, str]]:
    yield from private_keys(text)
    words = {_WORDS[number] for number, _, _ in hits}
    if not _VENDOR_WORDS.isdisjoint(words) and (runs := "\n".join(_LONG_RUN.findall(text))):
        for rule in VENDORS:
            if rule.words[0] in runs:
                yield from _matches(rule, text)
    if not _FORM_WORDS.isdisjoint(words):
        for rule in FORMS:
            if any(map(text.__contains__, rule.words)):
                yield from _matches(rule, text)
    yield from cookies(text)
    if not _STARTS.isdisjoint(words):
        lowered = lower(text)
        starts = _places(lowered, sorted({start for number, start, _ in hits if _WORDS[number] in _STARTS}))
        yield from assignments.find(text, lowered, starts)
        yield from assignments.phrases(text, lowered, starts)
        yield from columns.find(text, starts)


def _places(text: str, offsets: list[int]) -> list[int]:
    """The characters of `text` at these offsets in its bytes."""
    if text.isascii():
        return offsets
    whole, places, done, at = raw(text), [], 0, 0
    for offset in offsets:
        at += len(whole[done:offset].decode("utf-8", "surrogatepass"))
        places.append(at)
        done = offset
    return places


def _matches(rule: Rule, text: str) -> Iterator[tuple[int, int, str]]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    for match in rule.pattern.finditer(text):
        if rule.check is None or rule.check(match):
            start, end = match.span(group)
            yield start - rule.before, end, rule.kind


def _cut(text: str) -> Iterator[tuple[int, int, str]]:
    """Keys of which only the beginning is there, because the text ends or was cut behind it."""
    for end in _cuts(text):
        run = _LAST_RUN.match(text[max(0, end - 300) : end][::-1])
        if run is None or not _DIGITS.search(run[0]):  # nothing random without
            continue
        key = _CUT_KEY.search(run[0][::-1])
        if key is not None and _is_random(key["rest"]):
            ending = _ENDINGS.search(key["rest"])  # a file may be named by a key; what kind of file it is, stays
            yield end - len(run[0]) + key.start(), end - len(ending[0] if ending else ""), _CUT_KINDS[key["prefix"]]


def _is_random(text: str) -> bool:
    """Whether digits and letters are mixed as in no word, and in no name made of words and versions."""
    pieces = _PIECE.findall(text)
    mixed = sum(
        any(map(str.isdigit, piece)) and any(map(str.isupper, piece)) and any(map(str.islower, piece))
        for piece in pieces
    )
    return mixed >= 2 or any(
        len(piece) >= _LEAST_CUT and (len(_DIGITS.findall(piece)) >= 3 or (mixed and len(_TURN.findall(piece)) >= 3))
        for piece in pieces
    )


def _cuts(text: str) -> Iterator[int]:
    """Where a text ends that goes on somewhere else."""
    yield len(text.rstrip())
    for mark in _CUT_OFF:
        at = text.find(mark)
        while at >= 0:
            opened = max(text.rfind("[", max(0, at - 40), at), text.rfind("(", max(0, at - 40), at))
            for end in {at, opened} - {-1}:  # the key may stand before the bracket or in it
                yield len(text[max(0, at - 300) : end].rstrip()) + max(0, at - 300)
            at = text.find(mark, at + len(mark))


_Hits = list[tuple[int, int, int]]
"""Words of our rules in a text: number in _WORDS, and where it starts and ends in the text's bytes."""
_FORM_WORDS = frozenset(word.lower() for rule in FORMS for word in rule.words)
_STARTS = frozenset(assignments.STARTS)
_VENDOR_WORDS = frozenset(rule.words[0].lower() for rule in VENDORS)
_WORDS = tuple({*_VENDOR_WORDS, *_FORM_WORDS, *_STARTS, *OTHER_WORDS, *(prefix.lower() for prefix in UNMISTAKABLE)})
"""Every secret that a rule finds has one of these in its text, in lower case."""
_CUT_KINDS = {rule.words[0]: rule.kind for rule in reversed(VENDORS) if rule.words[0] in {*UNMISTAKABLE, "SK"}}
_PREFIX = "|".join(map(re.escape, sorted(UNMISTAKABLE, key=len, reverse=True)))
_CUT_KEY = re.compile(
    rf"(?<![A-Za-z0-9_-])(?P<prefix>{_PREFIX}|SK(?=[0-9a-f]{{20}}))"
    r"(?P<rest>[A-Za-z0-9_=.-]{12,}+)"
)
_ENDINGS = re.compile(r"(?:\.[a-z][a-z0-9]{0,4})+\Z")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_DIGITS = re.compile(r"\d+")
_TURN = re.compile(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")


def _traced(view: View, spans: Iterable[Span]) -> list[Span]:
    return [Span(*view.origin(span.start, span.end), span.kind, span.secret, span.is_sure) for span in spans]


def _apart(text: str, spans: list[Span]) -> list[Span]:
    """Those that overlap as one, of the kind of the first that was found; markers of ours are left as they are."""
    order = {id(span): number for number, span in enumerate(spans)}
    markers = [match.span() for match in _MARKER.finditer(text)] if "[REDACTED:" in text else []
    whole: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, order[id(span)])):
        if any(
            start < span.end and span.start < end and not span.start <= start <= end <= span.end
            for start, end in markers
        ):
            continue
        last = whole[-1] if whole else None
        if last is None or span.start >= last.end:
            whole.append(span)
            continue
        first, end = min((last, span), key=lambda item: order[id(item)]), max(last.end, span.end)
        is_same = (first.start, first.end) == (last.start, end)
        secret = first.secret if is_same else text[last.start : end]
        merged = Span(last.start, end, first.kind, secret, last.is_sure and span.is_sure)
        order[id(merged)] = order[id(first)]
        whole[-1] = merged
    return whole
