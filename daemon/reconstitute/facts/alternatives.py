"""Questions that offer two things ("Monday or Sunday?"), and which of them a short answer chooses.

Guarantees: nothing is said where the answer names both, neither, or more than a few words; the texts are stretches of
what was written.
"""

from __future__ import annotations

from dataclasses import dataclass

from daemon.reconstitute.facts import cues, sentences, subjects

_MOST_WORDS = 5
"""Words of an answer that names one of two things; a longer one says something of its own."""
_MOST_DENSE = 12
"""Its characters in a script without blanks."""
_MOST_OF_A_THING = 4
"""Words of what was not chosen, where it can be quoted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question that was answered by one of two things, and the `other` one; empty where its ends are not sure."""

    question: str
    other: str = ""


def choice(asked: str, answer: sentences.Sentence) -> Choice | None:
    """What an answer chooses of the two things that the text asks about at its end."""
    pieces = sentences.split(asked)
    if not pieces or not pieces[-1].is_question or answer.is_question:
        return None
    question = pieces[-1]
    is_long = len(answer.text.split()) > _MOST_WORDS or (" " not in answer.text and len(answer.text) > _MOST_DENSE)
    if is_long:
        return None
    for language in cues.of(question.bare, asked):
        separator = language.find("either", question.bare)
        if separator is None or language.find("closer", question.bare):
            continue
        if any(language.find(kind, answer.bare) for kind in ("veto", "explain", "moment", "condition")):
            return None
        first, second = question.text[: separator.start()], question.text[separator.end() :]
        named = subjects.of(answer.text)
        in_first, in_second = (
            named & (subjects.of(one) - subjects.of(two)) for one, two in ((first, second), (second, first))
        )
        if bool(in_first) == bool(in_second):
            return None
        other = second.strip(" ?？؟") if in_first else ""
        return Choice(question.text, other if 0 < len(other.split()) <= _MOST_OF_A_THING else "")
    return None
