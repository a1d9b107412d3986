"""Where the secrets of a text stand: every rule on every view of it, put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from daemon.redact import assignments, custom, known
from daemon.redact.forms import FORMS, cookies, encoded, private_keys
from daemon.redact.rules import VENDORS, Rule
from daemon.redact.views import View, composed, lower, peeled, unwrapped

SHAPES: tuple[Rule, ...] = (*VENDORS, *FORMS)

_MARKER = re.compile(r"\[REDACTED:[a-z0-9-]{1,20}:[0-9a-f]{8}\]")
_CUT_OFF = ("…", "...", "truncated", "omitted", "left out")
_LAST_RUN = re.compile(r"(?=[A-Za-z_=.-]{0,200}[0-9])[A-Za-z0-9_=-][A-Za-z0-9_=.-]{5,300}")
"""The end of a text, read backwards: a key has a digit."""
_LONG_RUN = re.compile(r"[A-Za-z0-9_+/=.~:$,%-]{20,}+")
"""No provider's key is shorter."""
_LEAST_CUT = 6
"""Characters behind a provider's prefix that tell a key that was cut off from a word."""


@dataclass(frozen=True, slots=True)
class Span:
    """A secret: where it stands, of what kind it is, and what it is once its escapes are undone."""

    start: int
    end: int
    kind: str
    secret: str


def find(text: str, *, deep: bool = True) -> list[Span]:
    """The secrets of `text`, in order and apart. `deep` looks into runs of base64, too."""
    found = _plain(text, deep=deep)
    inner = peeled(text)
    whole = text if inner is None else inner.text
    if inner is not None:
        found += _traced(inner, _plain(inner.text, deep=deep))
    outer = unwrapped(whole)
    if outer is not None:
        found += _traced(composed(outer, inner), _plain(outer.text, deep=deep))
    return _apart(text, found) if found else found


def _encoded(text: str) -> Iterator[tuple[int, int]]:
    for start, end, inside in encoded(text):
        if find(inside, deep=False):
            yield start, end


def _plain(text: str, *, deep: bool) -> list[Span]:
    found = [Span(start, end, kind, text[start:end]) for start, end, kind in _spans(text)]
    found += [
        Span(start, end, kind, text[start:end])
        for start, end, kind in _cut(text)
        if not any(start < span.end and span.start < end for span in found)
    ]
    if deep:
        found += [Span(start, end, "encoded", text[start:end]) for start, end in _encoded(text)]
    return [span for span in found if not custom.is_allowed(span.secret)]


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    yield from known.find(text)
    yield from custom.find(text)
    yield from private_keys(text)
    runs = "\n".join(_LONG_RUN.findall(text))
    for rule in VENDORS:
        if rule.words[0] in runs:
            yield from _matches(rule, text)
    for rule in FORMS:
        if any(word in text for word in rule.words):
            yield from _matches(rule, text)
    yield from cookies(text)
    lowered = lower(text)
    if any(word in lowered for word in assignments.WORDS):
        yield from assignments.find(text, lowered)
        yield from assignments.phrases(text, lowered)


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
        for prefix, kind in _PREFIXES if run is not None else ():
            before, found, rest = run[0][::-1].rpartition(prefix) if run is not None else ("", "", "")
            is_start = bool(found) and not before[-1:].isalnum() and before[-1:] not in {"-", "_"}
            least = _LEAST_CUT if len(prefix) >= 4 and prefix[-1] in "_-." else 3 * _LEAST_CUT
            is_key = any(c.isdigit() for c in rest) and any(c.isalpha() for c in rest)
            if least > _LEAST_CUT:  # a prefix that words begin with, too
                is_key = is_key and sum(c.isdigit() for c in rest) >= 3 and not (rest.islower() and "_" in rest)
            if is_start and is_key and len(rest) >= least:
                yield end - len(rest) - len(prefix), end, kind


def _cuts(text: str) -> Iterator[int]:
    """Where a text ends that goes on somewhere else."""
    yield len(text.rstrip())
    for mark in _CUT_OFF:
        at = text.find(mark)
        while at >= 0:
            opened = max(text.rfind("[", max(0, at - 40), at), text.rfind("(", max(0, at - 40), at))
            yield len(text[max(0, at - 300) : opened if opened >= 0 else at].rstrip()) + max(0, at - 300)
            at = text.find(mark, at + len(mark))


_PREFIXES = tuple((rule.words[0], rule.kind) for rule in VENDORS if not rule.before)


def _traced(view: View, spans: Iterable[Span]) -> list[Span]:
    return [Span(*view.origin(span.start, span.end), span.kind, span.secret) for span in spans]


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
        first, end = min((last, span), key=lambda one: order[id(one)]), max(last.end, span.end)
        is_same = (first.start, first.end) == (last.start, end)
        merged = Span(last.start, end, first.kind, first.secret if is_same else text[last.start : end])
        order[id(merged)] = order[id(first)]
        whole[-1] = merged
    return whole
