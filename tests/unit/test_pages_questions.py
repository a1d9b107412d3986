"""Which questions are asked of what a target holds."""

from __future__ import annotations

import re

import pytest

from daemon.model import Target
from daemon.reconstitute.questions import CODE, DOCUMENTS, of

TARGET = Target("/home/dev/x")


@pytest.mark.parametrize(
    ("paths", "asked"),
    [
        ([], CODE),
        (["app.py", "README.md"], CODE),
        (["app.py", "README.md", "docs/a.md"], DOCUMENTS),
        (["Thesis.TEX", "refs.bib", "figures/a.png"], DOCUMENTS),
        (["letter.docx"], DOCUMENTS),
        (["Makefile", "a.c"], CODE),
        ([".md"], CODE),
    ],
)
def test_a_folder_of_documents_is_asked_about_documents(paths: list[str], asked):
    assert of(TARGET, paths) == asked
    assert of(TARGET, reversed(paths)) == asked


def test_a_persons_questions_come_last_each_once():
    found = of(Target("/x", ("Why?", " Why? ", "", "How?")), ["a.md"])
    assert [one.heading for one in found[len(DOCUMENTS) :]] == ["Why?", "How?"]


@pytest.mark.parametrize("question", {q.id: q for q in (*CODE, *DOCUMENTS)}.values(), ids=lambda question: question.id)
def test_each_question_is_concrete_and_can_be_looked_for(question):
    assert "statement" in question.ask
    assert len(question.queries) >= 2
    assert all(re.compile(pattern) for pattern, _ in question.cues)


def test_ids_are_distinct_and_those_that_pages_and_records_know():
    assert [question.id for question in CODE] == [
        "purpose", "run", "structure", "configuration", "decisions", "dead-ends", "open",
    ]  # fmt: skip
    assert [question.id for question in DOCUMENTS] == [
        "purpose", "says", "readers", "state", "decisions", "dead-ends", "open",
    ]  # fmt: skip
