"""Questions that offer two things ("Monday or Sunday?"), and which of them a short answer chooses.

Guarantees: nothing is said where the answer names both, neither, or anything besides, or says no to one; the texts are
stretches of what was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from daemon.reconstitute.facts.language import cues, sentences, subjects

_MOST_WORDS = 5
"""Words of an answer that names one of two things; a longer one says something of its own."""
_MOST_DENSE = 12
"""Its characters in a script without blanks."""
_CLAUSE = re.compile(r",\s|[，、；;]|\s[–—-]\s")
_SHORT_STEM = 2
_NO_CHOICE = ("veto", "explain", "moment", "condition", "never")
_MOST_OF_A_THING = 4
"""Words of what was not chosen, where it can be quoted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question that was answered by one of two things, and the `other` one; empty where its ends are not sure."""

    question: str
    other: str = ""


def choice(asked: str, answer: sentences.Sentence) -> Choice | None:
    """What an answer chooses of the two things that the text asks about at its end."""
    question = next(reversed(sentences.split(asked)), None)
    if question is None or not question.is_question or answer.is_question:
        return None
    first = sentences.whole(_CLAUSE.split(answer.text)[0])
    languages = cues.of(question.bare, asked)
    return next(filter(None, (_chosen(one, question, said) for said in (answer, first) for one in languages)), None)


def _is_long(answer: str) -> bool:
    return len(answer.split()) > _MOST_WORDS or (" " not in answer and len(answer) > _MOST_DENSE)


def _chosen(language: cues.Cues, question: sentences.Sentence, answer: sentences.Sentence) -> Choice | None:
    separator = language.find("either", question.bare)
    if separator is None or language.find("closer", question.bare) or _is_long(answer.text):
        return None
    if any(language.find(kind, answer.bare) for kind in _NO_CHOICE):
        return None
    first, second = question.text[: separator.start()], question.text[separator.end() :]
    of_first, of_second, named = (
        subjects.of(first),
        subjects.of(second),
        subjects.of(language.without_lead(answer.text)),
    )
    in_first, in_second = _alike(named, of_first - of_second), _alike(named, of_second - of_first)
    if not named <= _alike(named, of_first | of_second) or bool(in_first) == bool(in_second):
        return None
    other = second.strip(" ?？؟") if in_first else ""
    return Choice(question.text, other if 0 < len(other.split()) <= _MOST_OF_A_THING else "")


def _alike(named: frozenset[str], stems: frozenset[str]) -> frozenset[str]:
    """Those that begin like one of the stems: an ending may follow in the question or in the answer."""
    return frozenset(one for one in named if one in stems or any(_is_beginning(one, stem) for stem in stems))


def _is_beginning(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) > _SHORT_STEM and long.startswith(short)
