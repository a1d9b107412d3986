"""Which questions are asked of what a target holds."""

from __future__ import annotations

import pytest

from daemon.model import Target
from daemon.reconstitute.questions import CODE, DOCUMENTS, of_target, own

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
    assert of_target(TARGET, paths) == asked
    assert of_target(TARGET, reversed(paths)) == asked


def test_a_persons_questions_come_last_each_once():
    found = of_target(Target("/x", ("Why?", " Why? ", "", "How?")), ["a.md"])
    assert [one.heading for one in found[len(DOCUMENTS) :]] == ["Why?", "How?"]


def test_every_question_asks_for_single_statements():
    assert all("statement" in question.ask.lower() for question in (*CODE, *DOCUMENTS))


def test_a_persons_question_is_searched_for_in_its_own_words():
    assert own("Why do we use SQLite?").queries[0] == "Why do we use SQLite?"
    assert not any(question.queries for question in (*CODE, *DOCUMENTS))


def test_ids_are_distinct_and_those_that_pages_and_records_know():
    assert [question.id for question in CODE] == [
        "purpose", "run", "structure", "configuration", "decisions", "dead-ends", "open",
    ]  # fmt: skip
    assert [question.id for question in DOCUMENTS] == [
        "purpose", "says", "readers", "state", "decisions", "dead-ends", "open",
    ]  # fmt: skip
