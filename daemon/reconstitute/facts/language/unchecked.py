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

from daemon.reconstitute.facts.language import cues, sentences

_MOST_KEPT = 16_384
"""Sentences whose reading is kept: a service reads the same ones again with every message."""

_MAIN_CLAUSE = re.compile(r"\w+ (?:ich|wir|ik|we|wij|jag|vi)\b", re.IGNORECASE)
"""In the languages that put the verb second it stands before its subject in no other clause."""
_CLAUSE = re.compile(r"[,;:，、；：]")


@dataclass(frozen=True, slots=True)
class _Language:
    unchecked: re.Pattern[str]
    undone: re.Pattern[str]
    pending: re.Pattern[str]
    within: re.Pattern[str]
    back: re.Pattern[str]


@cache
def _languages() -> dict[str, _Language]:
    text = (files(__package__) / "unchecked.toml").read_text(encoding="utf-8")
    return {code: _compile(table) for code, table in tomllib.loads(text).items()}


def _compile(table: dict[str, str | list[str]]) -> _Language:
    def joined(patterns: str | list[str]) -> re.Pattern[str]:
        said = "|".join(f"(?:{one})" for one in ([patterns] if isinstance(patterns, str) else patterns))
        return re.compile(said.replace("DONE", f"(?:{table['done']})").replace("APO", "['’]"), re.IGNORECASE)

    return _Language(*(joined(table[kind]) for kind in ("unchecked", "undone", "pending", "within", "back")))


def is_unchecked(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it says that something was not tried, checked or put to use, or is left to be done."""
    codes = _codes(sentence, context)
    return not sentence.is_question and any(_says(kind, sentence.bare, codes) for kind in ("unchecked", "undone"))


def is_pending(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it says that what was made is provisional, or that somebody has to look at it."""
    return not sentence.is_question and _says("pending", sentence.bare, _codes(sentence, context))


def refers_back(sentence: sentences.Sentence, context: str) -> bool:
    """Whether it begins with a word that stands for something before it ("It", "That")."""
    known = _languages()
    codes = (code for code in _codes(sentence, context) if code in known)
    return any(known[code].back.match(sentence.bare) is not None for code in codes)


def is_within(code: str, before: str, said: str = "") -> bool:
    """Whether what is `said` behind `before` in a sentence is what a condition or a question in it is about."""
    known = _languages().get(code)
    if known is None or _MAIN_CLAUSE.match(said):
        return False
    return known.within.search(_CLAUSE.split(before)[-1]) is not None


def _codes(sentence: sentences.Sentence, context: str) -> tuple[str, ...]:
    return tuple(one.code for one in cues.of(sentence.bare, context))


def _pattern(language: _Language, kind: str) -> re.Pattern[str]:
    return {"unchecked": language.unchecked, "undone": language.undone, "pending": language.pending}[kind]


@lru_cache(maxsize=_MOST_KEPT)
def _says(kind: str, bare: str, codes: Sequence[str]) -> bool:
    for code, language in ((code, _languages()[code]) for code in codes if code in _languages()):
        found = _pattern(language, kind).search(bare)
        if found is None or is_within(code, bare[: found.start()], found[0]):
            continue
        excuses = ("condition", "undone_not") if kind == "undone" else ("condition",)
        if not any(cues.named(code).find(excuse, bare) for excuse in excuses):
            return True
    return False
