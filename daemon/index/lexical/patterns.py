"""A regular expression, checked and compiled, and the literals or trigrams without which nothing can match it.

They let the index name the few texts worth looking at. Both are read conservatively: what is not understood for
certain requires nothing, so a text is looked at in vain rather than missed.
"""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]  # it ships no types

from daemon.errors import BadRequest
from daemon.index import tokens

_LONGEST = 1000
_MOST_REPEATS = 100_000
"""The module writes a counted repetition out while it compiles: ``a{1000000000}`` takes all memory."""

_COUNT = re.compile(r"\{\s*(\d+)")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:,\d*)?\}|\{,\d+\})[?+]?")
_PLAIN_GROUP = re.compile(r"\(\?(?:[:>]|P?<[A-Za-z_]\w*>|[ims]*(?:-[ims]+)?:)|\((?![?*])")
_FLAGS = re.compile(r"\(\?[ims]+\)")
_LOOK = re.compile(r"\(\?<?[=!]")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_SET = re.compile(r"\[\^?\]?(?:\[:[^\]]*:\]|\\.|[^\]\\])*\]", re.DOTALL)
_SPECIAL = re.compile(r"\\(?:[bBAZzdDsSwW]|[pP]\{[^}]*\})")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
_CLASS = re.compile(_SET.pattern + r"|\.|\\(?:[dDsSwW]|[pP]\{[^}]*\})", re.DOTALL)
_GAP = "\ue000"
"""White space of whatever kind and length between the literals of a pattern."""
_MOST_TEXTS = 3
_LEAST_S = 0.001
_LONGEST_TEXT = 200
_USEFUL = 3
"""Characters of a trigram."""
ODD_I = "\u0130\u0131"
"""With and without a dot against the rule: the module takes them for i, casefold does not."""
_UNREAD = _GAP + ODD_I
"""Signs of a pattern that nothing can be required for."""

Required = list[frozenset[str]]
"""Of each set at least one text must be there."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern and what a text must hold, folded, for it to match."""

    compiled: Any
    required: tuple[frozenset[str], ...]
    spaced: tuple[frozenset[str], ...] = ()
    """As `required`, of texts that span white space; a space stands for any number of any such characters."""
    core: Any = None
    """Matches somewhere in whatever `compiled` matches, and is tried more quickly; None where there is none."""

    def matched_texts(self, text: str, within_s: float) -> tuple[str, ...] | None:
        """The first texts that it matches there, empty ones left out; None where it does not match.

        Raises:
            TimeoutError: it took longer.
        """
        if not self._is_possible(text):
            return None
        whole = text
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
        if self.core is not None:
            end = time.monotonic() + within_s
            if self.core.search(text, timeout=within_s, concurrent=True) is None:
                return None
            within_s = max(end - time.monotonic(), _LEAST_S)
        texts = self._first_texts(text, within_s)
        return texts if text is whole or not texts else tuple(tokens.as_composed_in(each, whole) for each in texts)

    def _is_possible(self, text: str) -> bool:
        """Whether each required text, one of each set, is there: quicker to say than whether the pattern matches."""
        if not self.required or any(letter in text for letter in ODD_I):
            return True
        whole = tokens.caseless(text)
        return all(any(literal in whole for literal in alternatives) for alternatives in self.required)

    def _first_texts(self, text: str, within_s: float) -> tuple[str, ...] | None:
        texts: dict[str, None] = {}
        matches = False
        for match in self.compiled.finditer(text, timeout=within_s, concurrent=True):
            matches = True
            if match.group():
                texts[match.group()[:_LONGEST_TEXT]] = None
            if len(texts) == _MOST_TEXTS or not match.group():
                break
        return tuple(texts) if matches else None


class _Unsure(Exception):  # no error: it ends the reading of a pattern
    """Something that changes what a pattern means and that is not followed here."""


def pattern(text: str) -> Pattern:
    """Compile `text` without regard to case, and to how its letters are composed.

    Raises:
        BadRequest: it is no regular expression, or one too large to be tried.
    """
    text = unicodedata.normalize("NFC", text)
    if not text:
        raise BadRequest("the pattern is empty; give a regular expression")
    if len(text) > _LONGEST:
        raise BadRequest(f"the pattern has {len(text)} characters; give at most {_LONGEST}")
    if math.prod(max(1, int(count)) for count in _COUNT.findall(text)) > _MOST_REPEATS:
        raise BadRequest(f"the pattern repeats something more than {_MOST_REPEATS:,} times; use * or + instead")
    try:
        compiled = regex.compile(text, regex.IGNORECASE)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        raise BadRequest(f"the pattern is no regular expression: {error or 'nested too deeply'}; correct it") from None
    required_texts = _read(text)
    core = _core(text) if required_texts else ""
    compiled_core = regex.compile(core, regex.IGNORECASE) if core else None
    return Pattern(compiled, tuple(_pieces(required_texts)), tuple(_spaced(required_texts)), compiled_core)


def required(text: str) -> Required:
    """Sets of folded texts of at least three characters; whatever matches holds one of each set."""
    return _pieces(_read(text))


def _read(text: str) -> Required:
    """As `required`, with white space as it was asked for by class."""
    try:
        return [] if any(sign in text for sign in _UNREAD) else _Reader(text).read()
    except (_Unsure, RecursionError):
        return []


def _pieces(required_texts: Required) -> Required:
    """Without the gaps: of a text by itself all its pieces, of alternatives the longest of each."""
    split: Required = []
    for alternatives in required_texts:
        if len(alternatives) == 1:
            split += [
                frozenset({piece}) for text in alternatives for piece in text.split(_GAP) if len(piece) >= _USEFUL
            ]
        else:
            split.append(frozenset(max(text.split(_GAP), key=len) for text in alternatives))
    return split


def _spaced(required_texts: Required) -> Required:
    return [
        frozenset(text.replace(_GAP, " ") for text in alternatives)
        for alternatives in required_texts
        if any(_GAP in text for text in alternatives)
    ]


def _core(text: str) -> str:
    """A pattern without the classes that it begins with, ``(?<=[a-z])ed x`` of ``[a-z]+ed x``; "" where there are none.

    A class can begin at almost every character of a text, and be as long as a word, before the rest is seen to fail.
    """
    reader = _Reader(text)
    reader.read()
    start, last = (0, "") if reader.is_split else _Reader(text).after_classes()
    remainder = text[start:] if start else ""
    return f"(?<={last}){remainder}" if remainder and last else remainder


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.is_split = False
        """Whether what was read consists of alternatives."""

    def read(self) -> Required:
        required_texts = self._alternatives()
        if self._at < len(self._text):
            raise _Unsure
        return required_texts

    def after_classes(self) -> tuple[int, str]:
        """Where the pattern goes on behind the classes of characters, however often repeated, that it begins with.

        And the last of these, if it must be there.
        """
        after, last = 0, ""
        while match := _CLASS.match(self._text, self._at) or _SPECIAL.match(self._text, self._at):
            is_class = _CLASS.match(self._text, self._at) is not None
            self._at = match.end()
            least, _ = self._quantifier()
            after, last = (self._at, match.group() if least else "") if is_class else (after, last)
        return after, last

    def _alternatives(self) -> Required:
        """Up to the closing parenthesis or the end."""
        branches = [self._sequence()]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            branches.append(self._sequence())
        self.is_split = len(branches) > 1  # the outermost is the last to tell
        if len(branches) == 1:
            return branches[0]
        if not all(branches):
            return []
        return [frozenset[str]().union(*(_longest(branch) for branch in branches))]

    def _sequence(self) -> Required:
        required_texts: Required = []
        run = ""
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            literal, inner = self._atom()
            least, is_repeated = self._quantifier()
            if literal and (not is_repeated or (literal == _GAP and least)):
                run += literal
                continue
            if literal == _GAP:
                literal = ""
            required_texts += _as_required(run + literal if least else run)
            run = literal if least else ""  # the last of a+ stands before what follows
            if least:
                required_texts += inner
        return required_texts + _as_required(run)

    def _quantifier(self) -> tuple[int, bool]:
        """How often what stands before is there at least, and whether anything is said of that."""
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            if self._text[self._at : self._at + 1] == "{" and "}" in self._text[self._at :]:
                raise _Unsure  # "near" matches, as {e<=1}
            return 1, False
        self._at = match.end()
        if match.group(1) is not None:
            return min(1, int(match.group(1))), True
        return int(match.group().startswith("+")), True

    def _atom(self) -> tuple[str, Required]:
        """The next character that stands for itself, or what a group requires, or nothing."""
        char = self._text[self._at]
        if char == "(":
            return "", self._group()
        if char == "[":
            self._skip(_SET)
        elif char == "\\":
            return self._escape(), []
        elif char in "*+?":
            raise _Unsure
        else:
            self._at += 1
            return ("" if char in ".^$" else char), []
        return "", []

    def _group(self) -> Required:
        for silent in (_COMMENT, _FLAGS):
            if silent.match(self._text, self._at):
                self._skip(silent)
                return []
        is_look = _LOOK.match(self._text, self._at) is not None
        self._skip(_LOOK if is_look else _PLAIN_GROUP)
        required_texts = self._alternatives()
        if self._text[self._at : self._at + 1] != ")":
            raise _Unsure
        self._at += 1
        return [] if is_look else required_texts

    def _escape(self) -> str:
        if _SPECIAL.match(self._text, self._at):
            begun = self._at
            self._skip(_SPECIAL)
            return _GAP if self._text[begun : self._at] == r"\s" else ""
        char = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if char in _CONTROL:
            return _CONTROL[char]
        if not char or char.isalnum() or not char.isascii():
            raise _Unsure
        return char

    def _skip(self, kind: re.Pattern[str]) -> None:
        match = kind.match(self._text, self._at)
        if match is None:
            raise _Unsure
        self._at = match.end()


def _as_required(run: str) -> Required:
    whole = tokens.caseless(run)
    return [frozenset({whole})] if _weight(whole) >= _USEFUL else []


def _longest(sets: Sequence[frozenset[str]]) -> frozenset[str]:
    return max(sets, key=lambda texts: min(map(_weight, texts)))


def _weight(text: str) -> int:
    return max(map(len, text.split(_GAP)))


# -- trigrams of a pattern without a text of its own: ``[a-z]_[a-z]`` of ``\bE[A-Z]{4,}_[A-Z]{4,}\b`` -----------------

_CHARS = r"\[(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?|\\d)+\]|\\d"
_CHARACTER = r"[A-Za-z0-9_ :;,=<>@%&~'\"!/-]|\\[!-/:-@\[-`{-~]"
_IS_CLASS = re.compile(_CHARS)
_ATOM = re.compile(
    rf"(?P<one>{_CHARS}|{_CHARACTER})|(?P<nothing>\\[bB]|[$^])|(?P<other>\.|\\[sSwWD]|\\[ntr]|\[\^?\]?[^\]\\]*\])"
)
_TIMES = re.compile(r"(?:\{(?P<least>\d+)(?P<more>,\d*)?\}|(?P<sign>[*+?]))[?+]?")
_MOST_COPIES = 3
_WIDTH = 3

Window = tuple[str, ...]
"""Three classes or characters, each as an expression."""


def class_trigrams(pattern: str) -> list[Window]:
    """What whatever matches `pattern` has at least one trigram of each of, whatever their case.

    Those with most single characters first. None for a pattern with groups, alternatives or anything else that is not
    understood. Of texts with another letter for i (ODD_I) nothing is said.
    """
    windows: dict[Window, None] = {}
    for run in _runs(pattern):
        for start in range(len(run) - _WIDTH + 1):
            windows[tuple(run[start : start + _WIDTH])] = None
    return sorted(windows, key=lambda window: sum(not plain_character(part) for part in window))


def plain_character(part: str) -> str:
    """The character that this is, folded; "" for a class."""
    return "" if _IS_CLASS.fullmatch(part) else part[-1].lower()


def _runs(pattern: str) -> Iterator[list[str]]:
    """Classes and characters that stand side by side, each as an expression; all told only if all is understood."""
    runs: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:
            return
        count = _TIMES.match(pattern, atom.end())
        at = count.end() if count else atom.end()
        if count is None and pattern[at : at + 1] == "{":
            return
        if atom["nothing"]:
            continue
        least, goes_on = _counted(count)
        copies = [atom["one"]] * min(least, _MOST_COPIES) if atom["one"] else []
        runs[-1] += copies
        if goes_on or least > _MOST_COPIES or not copies:
            runs.append(list(copies))  # what follows stands beside the last of them
    yield from runs


def _counted(count: re.Match[str] | None) -> tuple[int, bool]:
    """How often it is there at least, and whether it may be there more often."""
    if count is None:
        return 1, False
    if count["sign"]:
        return int(count["sign"] == "+"), True
    return int(count["least"]), count["more"] is not None
