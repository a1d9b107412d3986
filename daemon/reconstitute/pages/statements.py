"""What a model answered, as the sections of a page: checked statements with footnotes, and what supports them.

Guarantees: a statement never stands without its sources, and how sure one may be is told by counts, not by the model.
It makes lines of Markdown and reads nothing.

`Footnotes` are the citations of one page, each once, in the order in which what they cite was said.

Guarantees: a label depends on what is cited alone, so that a fact more or less on a page changes no other lines; a
definition begins with plain words, so that no renderer takes it for a link definition; ids of sessions and messages
stand in link targets only; quotes are inert.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from string import ascii_lowercase
from typing import TypeAlias

from daemon import markdown
from daemon.display import counted
from daemon.reconstitute.answer import OUTDATED, Answer, Source, Statement, unchecked
from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.pages.layout import Transcripts
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.passages import NOTHING_RECORDED, Passage
from daemon.reconstitute.questions import CODE, DOCUMENTS, PURPOSE, Question
from daemon.redact import redact

_MOST_CITED = 200
_MOST_TITLE = 60
_MOST_NAME = 24
_Place: TypeAlias = tuple[int, int, int, str]


class Footnotes:
    """Collects what a page cites. `titles` are the sessions' by id; `file_href` leads from the page to a file's page.

    A quote is cut to `limit` characters.
    """

    def __init__(
        self,
        page: str,
        transcripts: Transcripts,
        titles: Mapping[str, str],
        file_href: Callable[[str], str] = lambda _: "",
        *,
        limit: int = _MOST_CITED,
    ) -> None:
        self._page = page
        self._transcripts = transcripts
        self._titles = titles
        self._file_href = file_href
        self._limit = limit
        self._labels: dict[tuple[str, str, str, str], str] = {}
        self._definitions: list[tuple[_Place, markdown.Markdown]] = []

    def mark(self, *citations: Citation | Source | None, beside: str = "") -> markdown.Markdown:
        """``[^4-12][^5-1]``, the marks of the citations; a quote that the text `beside` them has is not repeated."""
        labels = dict.fromkeys(self._label(citation, beside) for citation in citations if citation is not None)
        return markdown.Markdown("".join(f"[^{label}]" for label in labels))

    @property
    def definitions(self) -> tuple[markdown.Markdown, ...]:
        """The footnotes so far, oldest sessions first: ``[^4-12]: 2026-11-21 03:41, [Build the API](…): “…”``."""
        return tuple(text for _, text in sorted(self._definitions))

    @property
    def sources(self) -> set[str]:
        """The ids of the messages cited so far."""
        return {message_id for _, message_id, _, _ in self._labels}

    def _label(self, cited: Citation | Source, beside: str) -> str:
        quote = "" if _words(cited.quote) in _words(beside) else cited.quote
        key = (cited.session_id, cited.message_id, cited.path, quote)
        if key not in self._labels:
            time = cited.created if isinstance(cited, Source) else cited.time
            title = cited.title if isinstance(cited, Source) else ""
            session, message = self._transcripts.place(cited.session_id, cited.message_id)
            label = unused(_stem(session, message, key), "\0".join(key), set(self._labels.values()))
            self._labels[key] = label
            defined = self._definition(label, cited, time, title, quote)
            self._definitions.append(((session, message, time, label), defined))
        return self._labels[key]

    def _definition(
        self, footnote_label: str, cited: Citation | Source, time: int, title: str, quote: str
    ) -> markdown.Markdown:
        """One footnote: when, in which file, in which session, and the words."""
        label = markdown.cut(markdown.bare(self._titles.get(cited.session_id) or title or "a session"), _MOST_TITLE)
        href = self._transcripts.href(self._page, cited.session_id, cited.message_id)
        where = markdown.link(label, href) if href else markdown.inline(label)
        if cited.path:
            name, page = redact(posixpath.basename(cited.path)), self._file_href(cited.path)
            where = markdown.Markdown(f"{markdown.link(name, page) if page else markdown.inline(name)} after {where}")
        words = f": {markdown.quoted(markdown.bare(quote), self._limit)}" if quote.strip() else ""
        return markdown.Markdown(f"[^{footnote_label}]: {markdown.moment(time)}, {where}{words}")


def _stem(session: int, message: int, cited: tuple[str, str, str, str]) -> Iterator[str]:
    """The pieces of a label: which session and message by number, the name of a file, and letters for a quote."""
    session_id, message_id, path, quote = cited
    yield f"{session}-{message}" if session and message else f"s{letters(session_id + message_id, 4)}"
    name = re.sub(r"[^a-z0-9]+", "-", posixpath.basename(redact(path)).lower()).strip("-")
    if path:
        yield name[:_MOST_NAME].strip("-") or "file"
    if quote:
        yield letters(f"{path}\0{quote}", 2)


def unused(stem: Iterable[str], key: str, labels_taken: Collection[str]) -> str:
    """A label of these pieces; if it is in `labels_taken`, with letters after it that depend on `key`."""
    pieces = [*stem]
    labels = ("-".join([*pieces, *([letters(key, extra)] if extra else [])]) for extra in count())
    return next(label for label in labels if label not in labels_taken)


def letters(text: str, limit: int) -> str:
    """That many letters which depend on `text` alone."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return "".join(ascii_lowercase[number // 26**place % 26] for place in range(limit))


def _words(text: str) -> str:
    return " ".join(text.split())


WAITS = "Not answered yet: no model was asked."
NOT_FOUND = "No quotation was found; no model was asked."
_MOST_HEADING = 120
_MOST_TEXT = 600
_MOST_QUOTE = 300
_QUESTIONS = {question.id: question for question in (*CODE, *DOCUMENTS)}
_OWN_SECTIONS = ("structure", "configuration", "says", "readers", "state")
"""The questions asked of every target that no fact answers, by id, in reading order."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, which is others' text, and what stands under it."""

    heading: str
    text: markdown.Markdown


class ModelAnswers:
    """A model's answers about the target of a page."""

    def __init__(self, index: MaterialIndex, links: Links, notes: Footnotes) -> None:
        self._index = index
        self._links = links
        self._notes = notes

    def sound(self, question_id: str) -> tuple[Statement, ...]:
        """The statements of an answer that stand on something; empty without an answer."""
        answer = self._index.answer(question_id)
        return (
            ()
            if answer is None
            else tuple(statement for statement in answer.statements if statement.text.strip() and statement.sources)
        )

    def model(self, question_id: str) -> str:
        """By whom a question was answered, escaped; ``a model`` where its name is not known."""
        answer = self._index.answer(question_id)
        return "a model" if answer is None else _model(answer)

    def answer(self, question_id: str, skipped: int = 0) -> markdown.Markdown:
        """The statements but the first `skipped`, and what supports them; empty where there are none."""
        answer, sound = self._index.answer(question_id), self.sound(question_id)[skipped:]
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
        all_sections = [Section("Summary", self.answer(PURPOSE.id, skipped=1))]
        all_sections += [
            Section(_QUESTIONS[question_id].heading, self.answer(question_id)) for question_id in _OWN_SECTIONS
        ]
        return [section for section in all_sections if section.text]

    def own(self) -> list[Section]:
        """A person's own questions, each with a model's answer, else with the best quotations."""
        findings = [finding for finding in self._index.material.findings if finding.question.id not in _QUESTIONS]
        return [
            Section(_heading(finding.question), self._own_answer(finding.question, finding.quotes))
            for finding in findings
        ]

    def _own_answer(self, question: Question, passages: Sequence[Passage]) -> markdown.Markdown:
        answered = self.answer(question.id)
        if answered:
            return answered
        answer = self._index.answer(question.id)
        quotes = "\n".join(f"- {self._passage(passage)}" for passage in passages)
        note: str
        if answer is not None:
            note = _none(answer)
        elif quotes:
            note = ""
        else:
            note = WAITS if self._index.waits(question.id) else NOT_FOUND
        return markdown.Markdown("\n\n".join(filter(None, [note, quotes])))

    def _passage(self, passage: Passage) -> str:
        quote = markdown.quoted(markdown.bare(passage.text), _MOST_QUOTE)
        return f"{quote}{self._notes.mark(Citation(passage.session_id, passage.message_id, passage.created))}"

    def unanswered(self) -> list[markdown.Markdown]:
        """A line for each question that a model was asked and gave no answer to that holds."""
        lines = []
        for question_id, question in _QUESTIONS.items():
            answer = self._index.answer(question_id)
            if answer is not None and not self.sound(question_id):
                lines.append(markdown.Markdown(f"{markdown.inline(question.heading)}: {_none(answer)}"))
        return lines


def sentence(statement: Statement, notes: Footnotes, limit: int = _MOST_TEXT) -> markdown.Markdown:
    """A statement without its reason, with its footnotes; it says when there is newer evidence."""
    newer = f" ({OUTDATED.rstrip('.')})" if statement.is_outdated else ""
    return markdown.Markdown(
        f"{markdown.prose(redact(statement.text), limit)}{newer}{notes.mark(*statement.sources, beside=statement.text)}"
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
    return markdown.Markdown(f"no answer by {_model(answer)}: {why or NOTHING_RECORDED}")


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
