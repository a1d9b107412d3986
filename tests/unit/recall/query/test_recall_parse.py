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


SCRIPTS = {
    "为什么用PostgreSQL": (("PostgreSQL",), ("为什么用",)),
    "PostgreSQL，为什么": (("PostgreSQL",), ("为什么",)),
    "订单/支付": ((), ("订单", "支付")),
    "请看docs/设计.md文件": (("docs/设计.md",), ("请看", "文件")),
    "用int()函数": (("int",), ("函数",)),
    "なぜPostgreSQLを使うのか": (("PostgreSQL",), ("なぜ", "を使うのか")),
    "ユーザー・認証の設定": ((), ("ユーザー", "認証の設定")),
    "「接続エラー」とは": (("接続エラー",), ()),
    "PostgreSQL을": (("PostgreSQL",), ()),
    "rateLimit에서 왜": (("rateLimit",), ("왜",)),
    "ใช้PostgreSQLทำไม": (("PostgreSQL",), ("ใช้", "ทำไม")),
    "डेटाबेस क्या": ((), ("डेटाबेस", "क्या")),
}


@pytest.mark.parametrize(("query", "expected"), SCRIPTS.items())
def test_words_and_names_end_where_another_script_begins(query: str, expected: tuple[tuple[str, ...], tuple[str, ...]]):
    """A particle that is glued to a name in other letters is a stop word."""
    parsed = parse.parse(query)
    assert (parsed.named, parsed.words) == expected


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
def test_a_name_matches_with_any_separator_but_not_another_name(case, expected):
    query, text = case
    assert parse.tier(parse.parse(query), text) is expected


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


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_asked_for_and_looked_into(query: str, text: str):
    assert parse.tier(parse.parse(query), text) in Tier


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        ("app.py:1 app.py:12", {"app.py:1": "app.py", "app.py:12": "app.py"}, "app.py app.py"),
        ("app.py:1, then (app.py:1)?", {"app.py:1": "app.py"}, "app.py, then (app.py)?"),
        ("a/b in src/a/b.py", {"a/b": "a b"}, "a b in src/a/b.py"),
        ('"a/b"  and “a/b”', {"a/b": "a b"}, '"a b"  and “a b”'),
        ('"see a/b here" a/b', {"a/b": "a b"}, '"see a/b here" a b'),
        ("為什麼app.py:1會失敗", {"app.py:1": "app.py"}, "為什麼app.py會失敗"),
    ],
)
def test_another_name_stands_for_a_whole_name_only(text: str, others: dict[str, str], expected: str):
    assert parse.with_names(text, others) == expected


@given(st.text(max_size=60))
def test_a_query_without_other_names_stays_as_it_is(text: str):
    assert parse.with_names(text, {}) == text


@pytest.mark.parametrize(
    ("text", "stretch", "expected"),
    [
        ('"2 days ago" csv 2 days ago', "2 days ago", '"2 days ago" csv  '),
        ("csv of 12 days ago, 2 days ago", "2 days ago", "csv of 12 days ago,  "),
        ("yesterday.md of yesterday", "yesterday", "yesterday.md of  "),
        ("today; and today", "today", " ; and  "),
    ],
)
def test_a_stretch_goes_where_it_is_no_quotation_and_no_part_of_another(text: str, stretch: str, expected: str):
    assert parse.parse(text, without=[stretch]).searched == expected


def test_names_with_a_slash_are_words_only_where_they_stand_alone():
    assert parse.parse("a/b of src/a/b.py", plain={"a/b"}).searched == "a b of src/a/b.py"
