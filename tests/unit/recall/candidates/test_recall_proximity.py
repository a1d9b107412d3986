"""Words that stand side by side in a question and near each other in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.recall.candidates.stats import MOST_READ, neighbours, proximity


@pytest.mark.parametrize(
    ("question", "terms", "pairs"),
    [
        ("where is the support group held", ("support", "group", "held"), (("support", "group"), ("group", "held"))),
        ("the support of a group", ("support", "group"), ()),
        ("rate-limit (header)", ("rate-limit", "header"), (("rate-limit", "header"),)),
        ("a road, road trips", ("road", "trips"), ()),
        ("supporting groups", ("support", "group"), ()),
        ("quay", ("quay",), ()),
        ("", (), ()),
        ("x", ("unasked", "words"), ()),
    ],
)
def test_only_what_stands_side_by_side_is_a_pair(question: str, terms: tuple[str, ...], pairs: tuple):
    assert neighbours(question, terms) == pairs


@pytest.mark.parametrize(
    ("text", "is_close"),
    [
        ("the support group meets", True),
        ("Supporting such groups", True),
        ("support for the group", True),
        ("support\n\ngroup", True),
        ("support for the whole other group", False),
        ("group support", False),
        ("insupport group", False),
        ("insupport group, support group", True),
        ("supportgroup", False),
        ("support", False),
        ("", False),
    ],
)
def test_a_pair_is_close_in_its_order_and_in_any_regular_form(text: str, is_close: bool):
    assert proximity({("support", "group"): 0.5}, text) == (0.5 if is_close else 0.0)


def test_every_pair_counts_what_it_is_worth():
    pairs = {("support", "group"): 0.5, ("pride", "parade"): 0.25, ("road", "trips"): 0.125}
    assert proximity(pairs, "a pride parade, no road, the trip of a support group") == 0.75 + 0.125
    assert proximity(pairs, "trips by road") == 0.0


def test_of_a_long_text_the_beginning_is_looked_through():
    assert proximity({("support", "group"): 1.0}, "x " * MOST_READ + "support group") == 0.0


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=8), max_size=4), st.text(max_size=80))
def test_any_texts_have_an_answer(question: str, terms: list[str], text: str):
    pairs = neighbours(question, terms)
    assert 0.0 <= proximity(dict.fromkeys(pairs, 1.0), text) <= len(pairs)
