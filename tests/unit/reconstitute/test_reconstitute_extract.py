"""A person's own questions without a model: quotations, with their sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Kind, Session
from daemon.reconstitute import questions
from daemon.reconstitute.facts.session_values import Ending, Reply, SessionFacts, Turn
from daemon.reconstitute.passages import CLOSEST, NOTHING_RECORDED, Extractor, Passage, passages_of, split


def _said(text: str, kind: str = Kind.ANSWER, mid: str = "", at: int = 1000) -> Passage:
    return Passage(text, kind, mid or f"msg_{abs(hash(text))}", "ses_1", "A session", at)


POOL = [
    _said("Please build a minimal todo service for the workshop.", Kind.PROMPT, "msg_1", 1000),
    _said("The storage lives in storage.py and app.py imports it.", mid="msg_2", at=2000),
    _said("We decided to use SQLite instead of files because two processes write.", mid="msg_3", at=3000),
    _said("Seen.", mid="msg_7", at=7000),
]
WHY = questions.own("Why do we use SQLite instead of files?")


def test_what_was_said_is_what_quotations_come_from():
    turns = (
        Turn("msg_1", 1000, 1500, "Copied from the other session.", Ending.ANSWERED, ("msg_1",)),
        Turn("msg_2", 2000, 2900, "Use the large press.\n\n```\nnot prose at all\n```", Ending.ANSWERED, ("msg_2", "msg_3"),
             replies=(Reply("msg_3", 2500, "The large press it is."),)),
        Turn("msg_4", 3000, 3900, "Review the press for me.", Ending.ANSWERED, ("msg_4",), is_command=True),
    )  # fmt: skip
    session = Session("ses_1", "", "/x", "Press", 1, 2, b"{}")
    said = list(passages_of([SessionFacts(session, "Press", turns, (), copied=1)]))
    assert [(one.kind, one.message_id, one.text) for one in said] == [
        (Kind.PROMPT, "msg_2", "Use the large press."),
        (Kind.ANSWER, "msg_3", "The large press it is."),
        (Kind.TASK, "msg_4", "Review the press for me."),
    ]


def test_where_nothing_fits_it_says_so():
    found = Extractor([_said("Seen it.")]).answer(WHY, {})
    assert (found.quotes, found.note) == ((), NOTHING_RECORDED)


def test_an_own_question_is_answered_by_its_words():
    found = Extractor(POOL).answer(questions.own("Why do we use SQLite?"), {})
    assert found.quotes[0].message_id == "msg_3"
    assert found.note == ""


def test_a_question_without_shared_words_is_answered_by_recall_and_says_so():
    found = Extractor(POOL).answer(questions.own("Which database engine?"), {"msg_3": 0})
    assert [quote.message_id for quote in found.quotes] == ["msg_3"]
    assert found.note == CLOSEST


def test_of_equal_passages_the_original_is_quoted_not_the_fork():
    text = "We decided to use SQLite instead of files."
    found = Extractor([_said(text, mid="msg_fork", at=9000), _said(text, mid="msg_orig", at=1000)]).answer(WHY, {})
    assert [quote.message_id for quote in found.quotes] == ["msg_orig"]


def test_no_message_takes_more_than_two_of_the_places():
    said = [
        "We use SQLite and files at the harbour office.",
        "They use SQLite, never files, aboard every barge.",
        "Do use SQLite with files under the red bridge.",
    ]
    pool = [_said(text, mid="msg_x") for text in said] + [_said("We use SQLite; files were slow.", mid="msg_y")]
    ids = [quote.message_id for quote in Extractor(pool).answer(WHY, {}).quotes]
    assert ids.count("msg_x") == 2
    assert "msg_y" in ids


def test_what_recall_ranks_high_goes_before_an_equal_passage():
    pool = [
        _said("SQLite, the blue files.", mid="msg_a", at=1),
        _said("SQLite, a green lot of files.", mid="msg_b", at=2),
    ]
    assert Extractor(pool).answer(WHY, {"msg_b": 0}, 1).quotes[0].message_id == "msg_b"


SPLITS = {
    "One thing is so.\n\nAnother thing here.": ["One thing is so.", "Another thing here."],
    "# Heading\nUnder it stands text.": ["Under it stands text."],
    "- first item here\n- second item\n  goes on": ["first item here", "second item goes on"],
    "Run it with this:\n```sh\nmake run\n```\nand wait for it.": ["Run it with this:", "and wait for it."],
    "````\n```\ninner\n```\n````": [],
    "```\nnever closed": [],
    "ok": [],
    "": [],
    "日本語の文です。次の文です。": ["日本語の文です。次の文です。"],
}


@pytest.mark.parametrize(("text", "expected"), SPLITS.items())
def test_paragraphs_and_items_are_taken_apart(text: str, expected: list[str]):
    assert split(text) == expected


def test_long_prose_is_cut_between_sentences():
    sentences = [f"Sentence number {n} says something of its own about the matter." for n in range(40)]
    pieces = split(" ".join(sentences))
    assert " ".join(pieces) == " ".join(sentences)
    assert all(len(piece) <= 400 and piece.endswith(".") for piece in pieces)


@given(st.text(max_size=2000))
def test_every_passage_is_a_stretch_of_what_was_said(text: str):
    flat = " ".join(text.split())
    for piece in split(text):
        assert all(word in flat for word in piece.removesuffix(" …").split())


@given(st.lists(st.text(max_size=80), max_size=8), st.randoms())
def test_the_order_passages_come_in_does_not_matter(texts: list[str], chance):
    pool = [_said(text or "x", mid=f"msg_{number}", at=number) for number, text in enumerate(texts)]
    shuffled = list(pool)
    chance.shuffle(shuffled)
    question = questions.own("what about this")
    assert Extractor(pool).answer(question, {}) == Extractor(shuffled).answer(question, {})
