"""What a model answered, as the sections of a page: checked statements with footnotes, and what supports them.

Guarantees: a statement never stands without its sources, and how sure one may be is told by counts, not by the model.
It makes lines of Markdown and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from daemon import markdown
from daemon.display import counted
from daemon.reconstitute.answer import OUTDATED, Answer, Statement, unchecked
from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.pages.footnotes import Footnotes
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.passages import NOTHING, Passage
from daemon.reconstitute.questions import CODE, DOCUMENTS, PURPOSE, Question
from daemon.redact import redact

WAITS = "Not answered yet: no model was asked."
NOT_FOUND = "No quotation was found; no model was asked."
_MOST_HEADING = 120
_MOST_TEXT = 600
_MOST_QUOTE = 300
_QUESTIONS = {question.id: question for question in (*CODE, *DOCUMENTS)}
_ALONE = ("structure", "configuration", "says", "readers", "state")
"""The questions asked of every target that no fact answers, by id, in reading order."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, which is others' text, and what stands under it."""

    heading: str
    text: markdown.Markdown


class ModelAnswers:
    """A model's answers about the target of a page."""

    def __init__(self, known: MaterialIndex, links: Links, notes: Footnotes) -> None:
        self._known = known
        self._links = links
        self._notes = notes

    def sound(self, question_id: str) -> tuple[Statement, ...]:
        """The statements of an answer that stand on something; empty without an answer."""
        answer = self._known.answer(question_id)
        return (
            ()
            if answer is None
            else tuple(statement for statement in answer.statements if statement.text.strip() and statement.sources)
        )

    def model(self, question_id: str) -> str:
        """By whom a question was answered, escaped; ``a model`` where its name is not known."""
        answer = self._known.answer(question_id)
        return "a model" if answer is None else _model(answer)

    def answer(self, question_id: str, skipped: int = 0) -> markdown.Markdown:
        """The statements but the first `skipped`, and what supports them; empty where there are none."""
        answer, sound = self._known.answer(question_id), self.sound(question_id)[skipped:]
        if answer is None or not sound:
            return markdown.Markdown("")
        question = _QUESTIONS.get(question_id)
        listed = self.statements(sound, is_dated=question is not None and question.in_time_order)
        return markdown.Markdown(f"{listed}\n\n{_support(answer, sound)}")

    def statements(self, statements: Iterable[Statement], *, is_dated: bool = False) -> markdown.Markdown:
        """A list of statements, each with its reason, the paths it speaks of and its footnotes."""
        return markdown.Markdown(
            "\n".join(f"- {self._statement(statement, is_dated=is_dated)}" for statement in statements)
        )

    def _statement(self, statement: Statement, *, is_dated: bool) -> str:
        line = f"{markdown.day(statement.when)}: " if is_dated and statement.when else ""
        line += sentence(statement, self._notes)
        if statement.why:
            line += f" Why: {markdown.prose(redact(statement.why), _MOST_TEXT)}"
        about = [path for path in dict.fromkeys(statement.paths) if self._links.label(path) not in statement.text]
        return line + (f" (about {', '.join(self._links.file(path) for path in about)})" if about else "")

    def sections(self) -> list[Section]:
        """What only a model tells: structure, configuration, and what documents say."""
        made = [Section("Summary", self.answer(PURPOSE.id, skipped=1))]
        made += [Section(_QUESTIONS[question_id].heading, self.answer(question_id)) for question_id in _ALONE]
        return [section for section in made if section.text]

    def own(self) -> list[Section]:
        """A person's own questions, each with a model's answer, else with the best quotations."""
        findings = [finding for finding in self._known.material.findings if finding.question.id not in _QUESTIONS]
        return [
            Section(_heading(finding.question), self._own(finding.question, finding.quotes)) for finding in findings
        ]

    def _own(self, question: Question, passages: Sequence[Passage]) -> markdown.Markdown:
        answered = self.answer(question.id)
        if answered:
            return answered
        answer = self._known.answer(question.id)
        quotes = "\n".join(f"- {self._passage(passage)}" for passage in passages)
        note: str
        if answer is not None:
            note = _none(answer)
        elif quotes:
            note = ""
        else:
            note = WAITS if self._known.waits(question.id) else NOT_FOUND
        return markdown.Markdown("\n\n".join(filter(None, [note, quotes])))

    def _passage(self, passage: Passage) -> str:
        quote = markdown.quoted(markdown.bare(passage.text), _MOST_QUOTE)
        return f"{quote}{self._notes.mark(Citation(passage.session_id, passage.message_id, passage.created))}"

    def unanswered(self) -> list[markdown.Markdown]:
        """A line for each question that a model was asked and gave no answer to that holds."""
        made = []
        for question_id, question in _QUESTIONS.items():
            answer = self._known.answer(question_id)
            if answer is not None and not self.sound(question_id):
                made.append(markdown.Markdown(f"{markdown.inline(question.heading)}: {_none(answer)}"))
        return made


def sentence(statement: Statement, notes: Footnotes, most: int = _MOST_TEXT) -> markdown.Markdown:
    """A statement without its reason, with its footnotes; it says when there is newer evidence."""
    newer = f" ({OUTDATED.rstrip('.')})" if statement.is_outdated else ""
    return markdown.Markdown(
        f"{markdown.prose(redact(statement.text), most)}{newer}{notes.mark(*statement.sources, beside=statement.text)}"
    )


def _heading(question: Question) -> str:
    return markdown.cut(redact(question.heading), _MOST_HEADING)


def _support(answer: Answer, statements: Sequence[Statement]) -> str:
    """By whom it was answered, and what it stands on."""
    sources = {source for statement in statements for source in statement.sources}
    count, sessions = len(sources), len({source.session_id for source in sources})
    line = f"Answered by {_model(answer)}, on {counted(count, 'quote')} from {counted(sessions, 'session')}"
    return " ".join([f"{line}{_dropped(answer, '; ') or '.'}", *_note(answer)])


def _none(answer: Answer) -> markdown.Markdown:
    """Why a model's answer has no statement."""
    why = " ".join([*_note(answer), _dropped(answer, "").capitalize()]).strip()
    return markdown.Markdown(f"no answer by {_model(answer)}: {why or NOTHING}")


def _model(answer: Answer) -> str:
    return markdown.inline(redact(answer.model)) if answer.model else "a model"


def _note(answer: Answer) -> list[str]:
    """Its note without the sentence that counts what was dropped: `_dropped` says that, and says why."""
    note = answer.note.replace(unchecked(answer.dropped), " ").strip()
    return [markdown.prose(redact(note), _MOST_TEXT)] if note else []


def _dropped(answer: Answer, before: str) -> str:
    if not answer.dropped:
        return ""
    why = "was dropped because its source" if answer.dropped == 1 else "were dropped because their sources"
    return f"{before}{counted(answer.dropped, 'statement')} {why} did not hold."
