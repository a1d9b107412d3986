"""Which of a question's names are ordinary words, by what the archive has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon.recall.candidates.words import LEAST_COMMON, resolve_names
from daemon.recall.query import Recall, parse
from tests.support.stores.recorded_sessions import Recorded, call, recorded

COMMON = "How do you declare an int or create one? Best practices of JavaScript say to read first and write then."


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses_a", "/work/shop", "Basics")
        for number in range(LEAST_COMMON):
            made.say("ses_a", "user", f"{COMMON} This is note {number}.")
        made.session("ses_b", "/work/lamp", "Paths")
        made.say("ses_b", "user", "Grant read/write access to the table, and render the button in `web/button`.")
        made.say(
            "ses_b", "assistant", "I moved src/cart below lib/src/cart/index.", call("bash", command="ls src/cart")
        )
        made.say("ses_b", "assistant", "The cart has a src attribute; fetch() is called once, the web is slow.")
        made.say("ses_b", "assistant", "The lamp controller wants rateLimit and the refund flow.")
        made.index()
        yield made


# question, names, what is searched where that is not the question
QUESTIONS = [
    ("how to declare/create a lamp", (), "how to declare create a lamp"),
    ("read/write", (), "read write"),
    ("and/or", (), "and or"),
    ("what is src/cart", ("src/cart",), ""),
    ("src/cart", ("src/cart",), ""),
    ("web/button", ("web/button",), ""),
    ("declare/quux", ("declare/quux",), ""),
    ("lib/src/cart/index", ("lib/src/cart/index",), ""),
    ("declare/create/write.py", ("declare/create/write.py",), ""),
    ("what does int() return", (), ""),
    ("does fetch() retry", ("fetch",), ""),
    ("quux()", ("quux",), ""),
    ('which "best practices" hold for slow refund lamps', (), ""),
    ('"best practices"', ("best practices",), ""),
    ('which "refund flow" holds for slow red lamps', ("refund flow",), ""),
    ('which "best practices 7" hold for slow refund lamps', ("best practices 7",), ""),
    ("which refund flow does JavaScript give the slow lamp", (), ""),
    ("JavaScript", ("JavaScript",), ""),
    ("which refund flow does rateLimit give the slow lamp", ("rateLimit",), ""),
    ("a step-by-step guide, out-of-memory", (), ""),
]


@pytest.mark.parametrize(("question", "named", "searched"), QUESTIONS)
def test_a_name_is_what_the_archive_uses_as_one(house: Recorded, question: str, named: tuple[str, ...], searched: str):
    query = resolve_names(parse.parse(question), house.lexical)
    assert query.named == named
    assert query.searched == (searched or question)


def test_what_holds_the_words_as_they_were_put_comes_first(house: Recorded):
    results = house.recall().answer(Recall(query="read/write", match="smart"))["results"]
    assert "read/write access" in results[0]["snippet"]
    assert len(results) > 1


def test_an_absent_name_does_not_hide_what_answers_the_rest(house: Recorded):
    """Meaning counts in full, as in the same question without the name."""
    answer = house.recall().answer(Recall(query="quuxFlow controller wants", match="hybrid"))
    assert "lamp controller wants" in answer["results"][0]["snippet"]
    assert any("'quuxFlow'" in warning for warning in answer["warnings"])
