"""What a query asks for, and the order of what answers it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.recall.query import names, parse
from daemon.recall.query.parse import Tier

NAMES = {
    "where is rateLimit set": ("rateLimit",),
    "rate_limit": ("rate_limit",),
    "error E1234 again": ("E1234",),
    "open src/app.py please": ("src/app.py",),
    'who said "hello world" first': ("hello world",),
    "does fetch() retry": ("fetch",),
    "what is __init__ for": ("__init__",),
    "ask std::vector": ("std::vector",),
    "the pre-commit-hook failed": ("pre-commit-hook",),
    "why did we choose a well-known store, e.g. plain files?": (),
    "Wie funktioniert die Suche?": (),
    "who met on the 18th of May, at 5pm?": (),
}


@pytest.mark.parametrize(("query", "named"), NAMES.items())
def test_a_query_names_what_looks_like_a_name_and_nothing_else(query: str, named: tuple[str, ...]):
    assert parse.parse(query).named == named


TIERS = {
    ("rateLimit", "set rateLimit to 5"): Tier.WHOLE,
    ("rateLimit", "the rate-limit is 5"): Tier.WHOLE,
    ("rateLimit", "RATE_LIMIT=5"): Tier.WHOLE,
    ("rateLimit", "the rateLimiter class"): Tier.INSIDE,
    ("rateLimit", "the limit of the rate"): Tier.NONE,
    ("E1234", "E12345 happened"): Tier.INSIDE,
    ("E1234", "E123 happened"): Tier.NONE,
    ("src/app.py", "I edited src/app.py."): Tier.WHOLE,
    ("src/app.py a_b", "I edited src/app.py."): Tier.SOME,
    ("plain words", "anything at all"): Tier.WHOLE,
}


@pytest.mark.parametrize(("case", "expected"), TIERS.items())
def test_a_name_counts_as_held_however_it_is_separated_but_not_when_it_is_another(case, expected):
    query, text = case
    assert parse.tier(parse.parse(query), text) is expected


def test_what_both_lists_have_stands_above_what_only_one_has():
    order = parse.fuse({"lexical": ["a", "b"], "semantic": ["c", "b"]}, {"lexical": 1.0, "semantic": 1.0}, {})
    assert order[0].message_id == "b"
    assert order[0].sources == ("lexical", "semantic")


def test_of_equal_scores_words_come_before_mere_meaning_then_the_newer_then_the_smaller_id():
    even = {"lexical": 1.0, "named": 1.0, "semantic": 1.0}
    order = parse.fuse({"lexical": ["old"], "semantic": ["new"]}, even, {"old": 1, "new": 2})
    assert [fused.message_id for fused in order] == ["old", "new"]
    order = parse.fuse({"lexical": ["old"], "named": ["new"]}, even, {"old": 1, "new": 2})
    assert [fused.message_id for fused in order] == ["new", "old"]
    order = parse.fuse({"lexical": ["y"], "named": ["x"]}, even, {})
    assert [fused.message_id for fused in order] == ["x", "y"]


SHORT = {
    "screenshot": "screenshot",
    "not found": "not found",
    " rate   limit? ": "rate limit",
    "where is the rate limit of the checkout set": "",
    "three plain words": "",
    "rateLimit": "",
}


@pytest.mark.parametrize(("query", "phrase"), SHORT.items())
def test_a_word_or_two_are_looked_up_and_a_question_is_not(query: str, phrase: str):
    assert parse.parse(query).phrase == phrase


def test_the_phrase_goes_before_all_words_before_some_before_none():
    query = parse.parse("red kite")
    held = [
        parse.hold(query, *given) for given in ((True, ()), (False, ("Kite", "red")), (False, ("red",)), (False, ()))
    ]
    assert held == [parse.Hold.PHRASE, parse.Hold.ALL, parse.Hold.SOME, parse.Hold.NONE]


def test_a_phrase_stands_in_a_text_as_whole_words_only():
    assert names.stands_in("not found", "error: Not\n found.")
    assert not names.stands_in("car", "a scar, a card")


def test_what_is_only_far_off_in_meaning_is_no_hit_unless_it_has_the_words():
    assert parse.similar({"near": 0.6, "so-so": 0.28, "words": 0.05}, ["words", "other"]) == {"near", "words"}
    assert parse.similar({"unrelated": 0.2}, []) == set()


@given(st.lists(st.text(min_size=1, max_size=3), unique=True), st.lists(st.text(min_size=1, max_size=3), unique=True))
def test_fusing_loses_nothing_and_repeats_nothing(one: list[str], two: list[str]):
    order = parse.fuse({"lexical": one, "semantic": two}, {"lexical": 2.0, "semantic": 0.5}, {})
    ids = [fused.message_id for fused in order]
    assert sorted(ids) == sorted(set(one) | set(two))
    assert [fused.score for fused in order] == sorted((fused.score for fused in order), reverse=True)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_asked_for_and_looked_into(query: str, text: str):
    assert parse.tier(parse.parse(query), text) in Tier


def test_better_grades_come_first_and_nothing_is_graded_for_nothing():
    looked: list[str] = []

    def grade(item: str) -> int:
        looked.append(item)
        return int(item[0])

    assert parse.best_first(["1a", "0b", "2c", "0d", "0e"], grade, 2) == [
        (0, "0b"),
        (0, "0d"),
        (1, "1a"),
        (2, "2c"),
        (-1, "0e"),
    ]
    assert looked == ["1a", "0b", "2c", "0d"]


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 5))
def test_grading_loses_nothing(grades: list[int], needed: int):
    order = list(enumerate(grades))
    graded = parse.best_first(order, lambda item: item[1], needed)
    assert sorted(item for _, item in graded) == order
