r"""Trigrams that a pattern without a text of its own asks for: ``[a-z]_[a-z]`` of ``\bE[A-Z]{4,}_[A-Z]{4,}\b``.

Where single characters and classes of characters stand side by side in a pattern, any three of them are a trigram of
whatever matches. The index knows all its trigrams, so those that fit are told one by one. Read conservatively: what is
not understood for certain asks for nothing. Pure functions; no index here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLASS = r"\[(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?|\\d)+\]|\\d"
_PLAIN = r"[A-Za-z0-9_ :;,=<>@%&~'\"!/-]|\\[!-/:-@\[-`{-~]"
_IS_CLASS = re.compile(_CLASS)
_ATOM = re.compile(
    rf"(?P<one>{_CLASS}|{_PLAIN})|(?P<nothing>\\[bB]|[$^])|(?P<other>\.|\\[sSwWD]|\\[ntr]|\[\^?\]?[^\]\\]*\])"
)
_COUNT = re.compile(r"(?:\{(?P<least>\d+)(?P<more>,\d*)?\}|(?P<sign>[*+?]))[?+]?")
_MOST_COPIES = 3
_WIDTH = 3


Window = tuple[str, ...]
"""Three classes or characters, each as an expression."""


def windows(pattern: str) -> list[Window]:
    """What whatever matches `pattern` has at least one trigram of each of, whatever their case.

    Those with most single characters first. None for a pattern with groups, alternatives or anything else that is not
    understood. Of texts with another letter for i (patterns.ODD_I) nothing is said.
    """
    found: dict[Window, None] = {}
    for run in _runs(pattern):
        for start in range(len(run) - _WIDTH + 1):
            found[tuple(run[start : start + _WIDTH])] = None
    return sorted(found, key=lambda window: sum(not character(one) for one in window))


def character(one: str) -> str:
    """The character that this is, folded; "" for a class."""
    return "" if _IS_CLASS.fullmatch(one) else one[-1].lower()


def _runs(pattern: str) -> Iterator[list[str]]:
    """Classes and characters that stand side by side, each as an expression; all told only if all is understood."""
    runs: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        atom = _ATOM.match(pattern, at)
        if atom is None:
            return
        count = _COUNT.match(pattern, atom.end())
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
