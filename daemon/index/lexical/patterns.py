"""Compiles a regular expression, and derives the literals or trigrams that every match must contain.

With them the index finds the few texts worth checking. We parse conservatively: syntax that we do not fully understand
requires nothing, so a text may be checked in vain but is never missed.
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
"""The regex module expands counted repetitions when it compiles: ``a{1000000000}`` takes all memory."""

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
"""Stands for white space of any kind and length between the literals of a pattern."""
_MOST_TEXTS = 3
_LEAST_S = 0.001
_LONGEST_TEXT = 200
_USEFUL = 3
"""Characters of a trigram."""
ODD_I = "\u0130\u0131"
"""Dotted capital and dotless small i: the regex module treats them as i, casefold does not."""
_UNREAD = _GAP + ODD_I
"""A pattern with any of these requires nothing."""

Required = list[frozenset[str]]
"""At least one text of each set must be there."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern and the folded texts that every match contains."""

    compiled: Any
    required: tuple[frozenset[str], ...]
    spaced: tuple[frozenset[str], ...] = ()
    """As `required`, for texts with white space; a space stands for any white space."""
    core: Any = None
    """A faster pattern that matches in every text that `compiled` matches; None if there is none."""

    def matched_texts(self, text: str, within_s: float) -> tuple[str, ...] | None:
        """The first matched texts, without empty ones; None if the pattern does not match.

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
        """Whether the text holds one literal of each required set; faster than matching the pattern."""
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
    """The pattern has syntax that we do not parse."""


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
    """As `required`, with white space classes as gaps."""
    try:
        return [] if any(sign in text for sign in _UNREAD) else _Reader(text).read()
    except (_Unsure, RecursionError):
        return []


def _pieces(required_texts: Required) -> Required:
    """The texts without gaps: all pieces of a single text, the longest piece of each alternative."""
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
    """The pattern without its leading classes, ``(?<=[a-z])ed x`` for ``[a-z]+ed x``; "" if it has none.

    A leading class can match at almost every character, and match a whole word, before the remainder fails.
    """
    reader = _Reader(text)
    reader.read()
    start, last = (0, "") if reader.is_split else _Reader(text).after_classes()
    remainder = text[start:] if start else ""
    return f"(?<={last}){remainder}" if remainder and last else remainder


class _Reader:
    """Parses a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.is_split = False
        """Whether the parsed pattern consists of alternatives."""

    def read(self) -> Required:
        required_texts = self._alternatives()
        if self._at < len(self._text):
            raise _Unsure
        return required_texts

    def after_classes(self) -> tuple[int, str]:
        """(position after the leading character classes, the last of them if it is not optional)."""
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
        self.is_split = len(branches) > 1  # the outermost alternatives set it last
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
            run = literal if least else ""  # the last character of a+ is next to the following one
            if least:
                required_texts += inner
        return required_texts + _as_required(run)

    def _quantifier(self) -> tuple[int, bool]:
        """(least number of repetitions of the preceding atom, whether there is a quantifier)."""
        match = _QUANTIFIER.match(self._text, self._at)
        if match is None:
            if self._text[self._at : self._at + 1] == "{" and "}" in self._text[self._at :]:
                raise _Unsure  # fuzzy matching, as {e<=1}
            return 1, False
        self._at = match.end()
        if match.group(1) is not None:
            return min(1, int(match.group(1))), True
        return int(match.group().startswith("+")), True

    def _atom(self) -> tuple[str, Required]:
        """(the next literal character, the texts that a group requires)."""
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
    """Classes of trigrams: every match of `pattern` has at least one trigram of each, case-insensitively.

    Those with most single characters come first. Empty for a pattern with groups, alternatives or other syntax that we
    do not parse. Texts with another letter for i (ODD_I) are not covered.
    """
    windows: dict[Window, None] = {}
    for run in _runs(pattern):
        for start in range(len(run) - _WIDTH + 1):
            windows[tuple(run[start : start + _WIDTH])] = None
    return sorted(windows, key=lambda window: sum(not plain_character(part) for part in window))


def plain_character(part: str) -> str:
    """The folded character; "" for a class."""
    return "" if _IS_CLASS.fullmatch(part) else part[-1].lower()


def _runs(pattern: str) -> Iterator[list[str]]:
    """Sequences of classes and characters, each as an expression; complete only if all syntax is understood."""
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
            runs.append(list(copies))  # the next atom follows the last copy
    yield from runs


def _counted(count: re.Match[str] | None) -> tuple[int, bool]:
    """(least number of repetitions, whether there may be more)."""
    if count is None:
        return 1, False
    if count["sign"]:
        return int(count["sign"] == "+"), True
    return int(count["least"]), count["more"] is not None
