"""Which sentences of an answer say that something was not checked yet, or is only provisional (`unchecked.toml`).

The table knows no task and no phrase: it joins each language's negations with its words for checking, running and
publishing. A text whose language is not in it says nothing. Pure, never raises.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from daemon.reconstitute.facts import cues, sentences

_MOST_KEPT = 16_384
"""Sentences whose reading is kept: a service reads the same ones again with every message."""

_CLAUSE = re.compile(r"[,;:，、；：]")


@dataclass(frozen=True, slots=True)
class _Language:
    unchecked: re.Pattern[str]
    pending: re.Pattern[str]
    within: re.Pattern[str]


@cache
def _languages() -> dict[str, _Language]:
    text = (files(__package__) / "unchecked.toml").read_text(encoding="utf-8")
    return {code: _compile(table) for code, table in tomllib.loads(text).items()}


def _compile(table: dict[str, str | list[str]]) -> _Language:
    def joined(patterns: str | list[str]) -> re.Pattern[str]:
        said = "|".join(f"(?:{one})" for one in ([patterns] if isinstance(patterns, str) else patterns))
        return re.compile(said.replace("DONE", f"(?:{table['done']})").replace("APO", "['’]"), re.IGNORECASE)

    return _Language(joined(table["unchecked"]), joined(table["pending"]), joined(table["within"]))


def is_unchecked(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it says that something was not tried, checked or put to use."""
    return not sentence.is_question and _says("unchecked", sentence.bare, _codes(sentence, context))


def is_pending(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it says that what was made is provisional, or that somebody has to look at it."""
    return not sentence.is_question and _says("pending", sentence.bare, _codes(sentence, context))


def is_within(code: str, before: str) -> bool:
    """Whether what follows `before` in a sentence is what a condition or a question in it is about."""
    known = _languages().get(code)
    return known is not None and known.within.search(_CLAUSE.split(before)[-1]) is not None


def _codes(sentence: sentences.Sentence, context: str) -> tuple[str, ...]:
    return tuple(one.code for one in cues.of(sentence.bare, context))


@lru_cache(maxsize=_MOST_KEPT)
def _says(kind: str, bare: str, codes: Sequence[str]) -> bool:
    for code, language in ((code, _languages()[code]) for code in codes if code in _languages()):
        found = (language.unchecked if kind == "unchecked" else language.pending).search(bare)
        is_condition = cues.named(code).find("condition", bare) is not None
        if found is not None and not is_condition and not is_within(code, bare[: found.start()]):
            return True
    return False
