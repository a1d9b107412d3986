"""What was found out on one question, as a page shows it: a model's checked statements, or else quotations.

Guarantees: a statement never stands without its sources, nor a model's words where a quotation is meant. Pure values
for the templates; the templates redact and escape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from daemon.recall.snippet import counted
from daemon.reconstitute.answer import Answer, Statement
from daemon.reconstitute.extract import NOTHING, Findings, Passage
from daemon.reconstitute.pages.material import Known
from daemon.reconstitute.questions import CODE, DOCUMENTS, Question

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
        """Whether there is nothing to read under it."""
        return not (self.has_answer or self.statements or self.passages) and self.note in {"", NOTHING}

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
) -> Section:
    """What stands under a question: the `answer`; where it has no statements the `passages`, quoted.

    `statements` are what a model said of it elsewhere, where it was not asked.
    """
    if answer is None:
        return Section(question, statements, () if statements else passages, note=note)
    sound = tuple(one for one in answer.statements if one.text.strip() and one.sources)
    if sound:
        return Section(question, sound, (), _sure(answer), answer.note, has_answer=True)
    return Section(question, (), passages, note=_none(answer), has_answer=True)


def sections(known: Known) -> list[Section]:
    """What is known on each question of the target, in reading order, a person's own questions last."""
    found = {finding.question.id: finding for finding in known.material.findings}
    asked = {question.id: question for question in (*CODE, *DOCUMENTS) if known.answer(question.id)}
    asked |= {name: finding.question for name, finding in found.items()}
    made = []
    for name, question in asked.items():
        finding = found.get(name, Findings(question, ()))
        made.append(section(question, known.answer(name), finding.quotes, finding.note))
    return sorted(made, key=lambda one: _place(one.question))


def is_own(question: Question) -> bool:
    """Whether it is a person's, and none of those that are asked of every target."""
    return question.id not in _READING


def who_answered(made: Sequence[Section]) -> str:
    """What a page says once of the questions that no model answered; empty where there are none."""
    left = sum(not one.has_answer for one in made)
    if not left:
        return ""
    which = "" if left == len(made) else f" {left} of {counted(len(made), 'question')}"
    return f"No chat model answered{which}; the best recorded passages are quoted instead."


def cited(statements: Iterable[Statement]) -> set[str]:
    """The ids of the messages that `statements` stand on."""
    return {source.message_id for one in statements for source in one.sources}


def _place(question: Question) -> int:
    return _READING.index(question.id) if question.id in _READING else len(_READING)


def _sure(answer: Answer) -> str:
    by = f" Answered by {answer.model}" if answer.model else " Answered by a model"
    dropped = _dropped(answer)
    return f"Sure: {answer.confidence}.{by}{f'; {dropped}' if dropped else '.'}"


def _none(answer: Answer) -> str:
    """Why a model's answer has no statement."""
    said = f"No answer by {answer.model or 'a model'}: {answer.note.strip() or 'it says no reason.'}"
    return f"{said} {_dropped(answer)}".strip()


def _dropped(answer: Answer) -> str:
    if not answer.dropped:
        return ""
    said = "was dropped because its source" if answer.dropped == 1 else "were dropped because their sources"
    return f"{counted(answer.dropped, 'statement')} {said} did not hold."
