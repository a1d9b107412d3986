"""What was found out on one question, as a page shows it: a model's checked statements, or else quotations.

Guarantees: a statement never stands without its sources, nor a model's words where a quotation is meant. Pure values
for the templates; the templates redact and escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from daemon import markdown
from daemon.recall.snippet import counted
from daemon.reconstitute.answer import Answer, Statement, unchecked
from daemon.reconstitute.extract import NOTHING, Findings, Passage
from daemon.reconstitute.pages.material import Known
from daemon.reconstitute.questions import CODE, DOCUMENTS, Question
from daemon.redact import redact

WAITS = "Not answered yet: no model was asked."
NOT_FOUND = "No quotation was found; no model was asked."
_MOST_HEADING = 120

_READING = (
    "purpose", "says", "readers", "state", "run", "structure", "configuration", "decisions", "dead-ends", "open",
)  # fmt: skip
"""The questions asked of every target, by id, in the order in which a person who lost the folder wants to read."""


@dataclass(frozen=True, slots=True)
class Section:
    """One question's place on a page; with statements `passages` is empty, and `note` comes last of all."""

    question: Question
    statements: tuple[Statement, ...]
    passages: tuple[Passage, ...]
    sure: str = ""
    note: str = ""
    has_answer: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read under it but a note of ours, or not even that."""
        return not (self.has_answer or self.statements or self.passages) and self.note in {"", WAITS, NOT_FOUND}

    @property
    def sources(self) -> set[str]:
        """The ids of the messages it draws on."""
        cited = {source.message_id for one in self.statements for source in one.sources}
        return cited | {passage.message_id for passage in self.passages}


def section(
    question: Question,
    answer: Answer | None,
    passages: tuple[Passage, ...] = (),
    note: str = "",
    *,
    statements: tuple[Statement, ...] = (),
    waits: bool = False,
) -> Section:
    """What stands under a question: the `answer`; where it has no statements the `passages`, quoted.

    `statements` are what a model said of it elsewhere, where it was not asked; `waits` says that a model is still to
    be asked. Without a model nobody knows that nothing recorded answers it: only that no quotation was found.
    """
    if answer is None:
        if waits and not statements and not passages:
            note = WAITS
        elif note == NOTHING:
            note = "" if statements or passages else NOT_FOUND
        return Section(question, statements, () if statements else passages, note=note)
    sound = tuple(one for one in answer.statements if one.text.strip() and one.sources)
    if sound:
        return Section(question, sound, (), _sure(answer), _note(answer), has_answer=True)
    return Section(question, (), passages, note=_none(answer), has_answer=True)


def sections(known: Known) -> list[Section]:
    """What is known on each question of the target, in reading order, a person's own questions last."""
    found = {finding.question.id: finding for finding in known.material.findings}
    every = (*CODE, *DOCUMENTS)
    asked = {question.id: question for question in every if known.answer(question.id) or known.waits(question.id)}
    asked |= {name: finding.question for name, finding in found.items()}
    made = []
    for name, question in asked.items():
        finding = found.get(name, Findings(question, ()))
        waits = known.waits(name)
        made.append(section(question, known.answer(name), finding.quotes, finding.note or NOTHING, waits=waits))
    return sorted(made, key=lambda one: _place(one.question))


def is_own(question: Question) -> bool:
    """Whether it is a person's, and none of those that are asked of every target."""
    return question.id not in _READING


def who_answered(made: Sequence[Section]) -> str:
    """What a page says once of the questions that no model answered; empty where there are none."""
    left = [one for one in made if not one.has_answer]
    if not left:
        return ""
    if len(left) == len(made):
        return "No chat model answered; the best recorded passages are quoted instead."
    quoted = " The best recorded passages are quoted there instead." if any(one.passages for one in left) else ""
    named = headings(left)
    return f"Not answered by a model yet: {named}{'' if named.endswith(('?', '!', '…')) else '.'}{quoted}"


def headings(made: Iterable[Section]) -> str:
    """The questions by their headings, redacted; a person's own may be long and is cut."""
    return ", ".join(markdown.cut(redact(one.question.heading), _MOST_HEADING).rstrip(".") for one in made)


def unanswered(made: Iterable[Section]) -> list[str]:
    """A line for each reason why questions have nothing to read under them, with their headings."""
    empty = [one for one in made if one.is_empty]
    reasons = dict.fromkeys(one.note for one in empty)
    return [f"{headings(one for one in empty if one.note == reason)}: {_lower(reason)}" for reason in sorted(reasons)]


def _lower(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def cited(statements: Iterable[Statement]) -> set[str]:
    """The ids of the messages that `statements` stand on."""
    return {source.message_id for one in statements for source in one.sources}


def _place(question: Question) -> int:
    return _READING.index(question.id) if question.id in _READING else len(_READING)


def _sure(answer: Answer) -> str:
    by = f" Answered by {answer.model}" if answer.model else " Answered by a model"
    dropped = _dropped(answer)
    support = f"{counted(answer.quotes, 'quote')} from {counted(answer.sessions, 'session')}"
    return f"Stands on {support}.{by}{f'; {dropped}' if dropped else '.'}"


def _none(answer: Answer) -> str:
    """Why a model's answer has no statement."""
    note, dropped = _note(answer), _dropped(answer)
    said = [note, dropped] if note or dropped else [NOTHING]
    return f"No answer by {answer.model or 'a model'}: {' '.join(filter(None, said))}"


def _note(answer: Answer) -> str:
    """Its note without the sentence that counts what was dropped: `_dropped` says that, and says why."""
    return answer.note.replace(unchecked(answer.dropped), " ").strip()


def _dropped(answer: Answer) -> str:
    if not answer.dropped:
        return ""
    said = "was dropped because its source" if answer.dropped == 1 else "were dropped because their sources"
    return f"{counted(answer.dropped, 'statement')} {said} did not hold."
