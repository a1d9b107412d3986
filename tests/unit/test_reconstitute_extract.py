"""Answers without a model: quotations, with their sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Kind, Target
from daemon.reconstitute import questions
from daemon.reconstitute.extract import (
    CLOSEST,
    COMMAND,
    NOTHING,
    Extractor,
    Passage,
    is_run_command,
    split,
)


def _said(text: str, kind: str = Kind.ANSWER, mid: str = "", at: int = 1000, **more) -> Passage:
    return Passage(text, kind, mid or f"msg_{abs(hash(text))}", "ses_1", "A session", at, **more)


POOL = [
    _said("Please build a minimal todo service for the workshop.", Kind.PROMPT, "msg_1", 1000, opening=True),
    _said("The storage lives in storage.py and app.py imports it.", mid="msg_2", at=2000),
    _said("We decided to use SQLite instead of files because two processes write.", mid="msg_3", at=3000),
    _said("The delete route is not yet covered and still fails for unknown ids.", mid="msg_4", at=4000),
    _said("Start it with python3 app.py and open port 8000.", mid="msg_5", at=5000),
    _said("python3 -m pytest -q", COMMAND, "msg_6", 6000, code=True),
    _said("Seen.", mid="msg_7", at=7000),
    _said("We tried a websocket for the updates, but it does not work behind the proxy, so I gave up on it.", mid="msg_8", at=8000),
    _said("The environment variable TODO_PORT sets the port and defaults to 8000.", mid="msg_9", at=9000),
    _said("The first chapter explains why the shop was moved.", mid="msg_10", at=10_000),
    _said("The report is written for the customers and is due before the deadline.", mid="msg_11", at=11_000),
    _said("The second chapter is a draft, the numbers are still to be checked.", mid="msg_12", at=12_000),
]  # fmt: skip
EXPECTED = {
    "purpose": "msg_1",
    "structure": "msg_2",
    "decisions": "msg_3",
    "open": "msg_4",
    "run": "msg_5",
    "dead-ends": "msg_8",
    "configuration": "msg_9",
    "says": "msg_10",
    "readers": "msg_11",
    "state": "msg_12",
}
EVERY = tuple({question.id: question for question in (*questions.CODE, *questions.DOCUMENTS)}.values())


@pytest.mark.parametrize("question", EVERY, ids=lambda question: question.id)
def test_each_default_question_finds_the_passage_that_answers_it(question):
    quotes = Extractor(POOL).answer(question, {}).quotes
    assert EXPECTED[question.id] in [quote.message_id for quote in quotes[:2]]


def test_shell_commands_that_ended_well_answer_only_how_to_run_it():
    extractor = Extractor(POOL)
    assert any(quote.kind == COMMAND for quote in extractor.answer(questions.RUN, {}).quotes)
    for question in (question for question in EVERY if question is not questions.RUN):
        assert all(quote.kind != COMMAND for quote in extractor.answer(question, {}).quotes)


def test_where_nothing_fits_it_says_so():
    found = Extractor([_said("Seen it.")]).answer(questions.DECISIONS, {})
    assert (found.quotes, found.note) == ((), NOTHING)


def test_an_own_question_is_answered_by_its_words():
    found = Extractor(POOL).answer(questions.own("Why do we use SQLite?"), {})
    assert found.quotes[0].message_id == "msg_3"
    assert found.note == ""


def test_an_own_question_without_a_shared_word_gets_what_recall_found_and_says_so():
    found = Extractor(POOL).answer(questions.own("Which database engine?"), {"msg_3": 0})
    assert [quote.message_id for quote in found.quotes] == ["msg_3"]
    assert found.note == CLOSEST


def test_of_equal_passages_the_original_is_quoted_not_the_fork():
    text = "We decided to use SQLite instead of files."
    found = Extractor([_said(text, mid="msg_fork", at=9000), _said(text, mid="msg_orig", at=1000)]).answer(
        questions.DECISIONS, {}
    )
    assert [quote.message_id for quote in found.quotes] == ["msg_orig"]


def test_no_message_takes_more_than_two_of_the_places():
    said = [
        "We decided on plain files.",
        "The team chose red rather than blue.",
        "I opted for weekly backups instead of daily.",
    ]
    pool = [_said(text, mid="msg_x") for text in said]
    pool.append(_said("It was agreed to ship on Friday because the fair opens.", mid="msg_y"))
    ids = [quote.message_id for quote in Extractor(pool).answer(questions.DECISIONS, {}).quotes]
    assert ids.count("msg_x") == 2
    assert "msg_y" in ids


def test_what_recall_ranks_high_goes_before_an_equal_passage():
    pool = [_said("We chose the blue one.", mid="msg_a", at=1), _said("We chose a green thing.", mid="msg_b", at=2)]
    assert Extractor(pool).answer(questions.DECISIONS, {"msg_b": 0}, 1).quotes[0].message_id == "msg_b"


def test_newer_open_problems_go_before_older_ones():
    pool = [_said("Upload still fails.", mid="msg_a", at=1000), _said("Login still fails.", mid="msg_b", at=9000)]
    assert Extractor(pool).answer(questions.OPEN, {}).quotes[0].message_id == "msg_b"


def test_a_file_is_described_by_what_names_it_and_not_by_a_longer_name():
    pool = [_said("app.py holds the routes."), _said("The myapp.py file is old."), _said("It has no routes at all.")]
    quotes = Extractor(pool).describe({"app.py"}, questions.PURPOSE, frozenset())
    assert [quote.text for quote in quotes] == ["app.py holds the routes."]


def test_decisions_are_told_in_the_order_they_were_made():
    pool = [
        _said("We chose Flask, because it is small.", mid="msg_b", at=9000),
        _said("We decided to use SQLite instead of files because two processes write.", mid="msg_c", at=5000),
        _said("I agreed to drop the cache rather than mend it.", mid="msg_a", at=1000),
    ]
    quotes = Extractor(pool).answer(questions.DECISIONS, {}).quotes
    assert [quote.message_id for quote in quotes] == ["msg_a", "msg_c", "msg_b"]


SPLITS = {
    "One thing is so.\n\nAnother thing here.": [("One thing is so.", False), ("Another thing here.", False)],
    "# Heading\nUnder it stands text.": [("Under it stands text.", False)],
    "- first item here\n- second item\n  goes on": [("first item here", False), ("second item goes on", False)],
    "Run it:\n```sh\nmake run\n```\nand wait for it.": [("make run", True), ("and wait for it.", False)],
    "````\n```\ninner\n```\n````": [("```\ninner\n```", True)],
    "```\nnever closed": [("never closed", True)],
    "ok": [],
    "": [],
    "日本語の文です。次の文です。": [("日本語の文です。次の文です。", False)],
}


@pytest.mark.parametrize(("text", "expected"), SPLITS.items())
def test_paragraphs_items_and_code_are_taken_apart(text: str, expected: list[tuple[str, bool]]):
    assert split(text) == expected


def test_long_prose_is_cut_between_sentences():
    sentences = [f"Sentence number {n} says something of its own about the matter." for n in range(40)]
    pieces = [piece for piece, _ in split(" ".join(sentences))]
    assert " ".join(pieces) == " ".join(sentences)
    assert all(len(piece) <= 400 and piece.endswith(".") for piece in pieces)


@given(st.text(max_size=2000))
def test_every_passage_is_a_stretch_of_what_was_said(text: str):
    flat = " ".join(text.split())
    for piece, code in split(text):
        if not code:
            for line in piece.removesuffix(" …").split("\n"):
                assert all(word in flat for word in line.split())


@given(st.lists(st.text(max_size=80), max_size=8), st.randoms())
def test_the_order_passages_come_in_does_not_matter(texts: list[str], chance):
    pool = [_said(text or "x", mid=f"msg_{number}", at=number) for number, text in enumerate(texts)]
    shuffled = list(pool)
    chance.shuffle(shuffled)
    for question in (*questions.CODE, questions.own("what about this")):
        assert Extractor(pool).answer(question, {}) == Extractor(shuffled).answer(question, {})


RUNS = {
    "pytest -q": True,
    "cd web && npm run build": True,
    "FLASK_ENV=dev flask run": True,
    "./scripts/dev.sh": True,
    "docker compose up -d": True,
    "python3 -m csvcli.main sum data.csv qty": True,
    "ls -la": False,
    "cat Makefile": False,
    "git commit -m 'make it run'": False,
    "rm -rf build": False,
    "cat > run.sh <<'E'\nmake run\nE": False,
    'python3 -c "print(1)"': False,
    "grep -r make .": False,
}


@pytest.mark.parametrize(("command", "expected"), RUNS.items())
def test_commands_that_build_start_or_test_are_told_from_others(command: str, expected: bool):
    assert is_run_command(command) is expected


def test_a_targets_own_questions_follow_the_default_ones_each_once():
    target = Target("/x", questions=("Why?", " Why? ", "", "How long?"))
    asked = questions.of(target)
    assert [question.heading for question in asked[-2:]] == ["Why?", "How long?"]
    assert len(asked) == len(questions.CODE) + 2
    assert len({question.id for question in asked}) == len(asked)
