"""How similar a text must be to be a result by its meaning alone."""

from __future__ import annotations

import pytest

from daemon.index import Match
from daemon.recall.candidates.lists import CandidateLists, least_cosine
from daemon.recall.weights import LEAST_COSINE

FLOORS = {
    "": LEAST_COSINE,  # not known
    "ok": LEAST_COSINE + 0.3,
    "x = 1": LEAST_COSINE + 0.3,
    "Looks good.": LEAST_COSINE + 0.075,
    "हिन्दी में पाँच शब्द हैं": LEAST_COSINE + 0.012,
    "one two three four five": LEAST_COSINE + 0.012,
    "数据库设计的问题" * 10: LEAST_COSINE + 0.003,
}


@pytest.mark.parametrize(("text", "floor"), FLOORS.items())
def test_the_shorter_a_text_the_more_similar_it_must_be(text: str, floor: float):
    assert least_cosine(text) == pytest.approx(floor)


def test_what_holds_a_word_of_the_query_needs_no_likeness():
    found = CandidateLists()
    found.lists["semantic"] = [
        Match("a", 0.4, text="ok"),
        Match("b", 0.4, text="yes"),
        Match("c", 0.4, text="red " * 9),
    ]
    found.lists["lexical"] = [Match("b", 1.0, "p", "prompt", text="yes", terms=("yes",))]
    assert found.similar_alone() == {"c"}
    assert found.similar() == {"b", "c"}
