"""Scripts without spaces: a run counts as held where it stands, and a text with a part of it is not said to hold it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index import Entry, Filters, Match, tokens
from daemon.index.lexical import Lexical
from daemon.index.lexical.query_terms import stretch
from daemon.model import Document, Kind, Section
from tests.support.examples import examples

ANY = Filters()
TEXTS = {
    "plan": "我们昨天讨论了数据库设计的问题",
    "settings": "数据库设置在这里",
    "apart": "数据库 的 图 和 设计",
    "japanese": "データベースを直した",
    "korean": "데이터베이스를 본다",
    "harvest": "今日の収穫はトマトです",
} | {f"only{number}": f"数据 {number}" for number in range(48)}


def entry(message_id: str, text: str, *, window: str = "") -> Entry:
    document = Document(message_id, "ses_1", (Section(f"prt_{message_id}", Kind.PROMPT, text),))
    return Entry(document, "user", 1, 0, "a title", "prj", "/home/ann/shop", window=window or text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    made = Lexical(tmp_path / "lexical")
    made.replace([entry(message_id, text) for message_id, text in TEXTS.items()])
    yield made
    made.close()


def told(found: list[Match]) -> dict[str, tuple[str, ...]]:
    return {match.message_id: match.terms for match in found}


# query, what is found with the terms that it is said to hold
RUNS = [
    ("数据库设计", {"plan": ("数据库设计",)}),
    ("数据库设置", {"settings": ("数据库设置",)}),
    ("データベース", {"japanese": ("データベース",)}),
    ("今日の収穫", {"harvest": ("今日の収穫",)}),
    ("数据库", {"plan": ("数据库",), "settings": ("数据库",), "apart": ("数据库",)}),
    ("收据数", {}),
    # Nowhere as a whole: what has a good part of it, and only that part is named.
    ("データベースサーバ", {"japanese": ("データベース",)}),
    ("데이터베이스서버관리", {"korean": ("데이터베이스",)}),
    ("数据库设计师", {"plan": ("数据库设计",), "settings": ("数据库设",), "apart": ("数据库",)}),
    # One pair of it is too little.
    ("数据科学导论", {}),
    ("サーバを直す人", {}),
]


@pytest.mark.parametrize(("query", "expected"), RUNS, ids=[query for query, _ in RUNS])
def test_a_run_is_held_where_its_characters_stand_in_order(
    index: Lexical, query: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert told(index.search(query, ANY, 60)) == expected
    assert told(index.fuzzy(query, ANY, 60)) == expected


def test_what_has_more_of_a_run_comes_first_however_long_it_is(index: Lexical) -> None:
    assert list(told(index.search("数据库设计师", ANY, 60))) == ["plan", "settings", "apart"]


def test_what_has_a_part_of_a_run_gives_way_to_what_holds_another_word(index: Lexical) -> None:
    index.replace([entry("word", "about postgres"), entry("both", "postgres 数据库设置")])
    assert told(index.search("postgres 数据库设计师", ANY, 60)) == {
        "word": ("postgres",),
        "both": ("postgres", "数据库设"),
    }


def test_a_whole_sentence_is_found_by_a_stretch_of_it(index: Lexical) -> None:
    found = told(index.search("请问你们昨天讨论了数据库设计没有呢朋友", ANY, 60))
    assert found == {"plan": ("们昨天讨论了数据库设计",)}


def test_four_characters_are_two_words_and_fewer_are_one(index: Lexical) -> None:
    index.replace([entry("both", "支付失败以后自动重试"), entry("one", "支付成功")])
    assert list(told(index.search("支付重试", ANY, 60))) == ["both"]
    assert told(index.search("付重试", ANY, 60)) == {}


def test_a_window_holds_a_run_only_where_all_its_pairs_are(index: Lexical) -> None:
    assert set(told(index.windows("数据库设计", ANY, 60))) == {"plan"}
    assert set(told(index.windows("数据库", ANY, 60))) == {"plan", "settings", "apart"}
    assert index.windows("データベースサーバ", ANY, 60) == []
    index.replace([entry("spread", "设计", window="数据库的设计\n库设")])
    assert told(index.windows("数据库设计", ANY, 60))["spread"] == ("数据库设计",)


def test_the_window_count_of_a_run_is_at_most_that_of_its_rarest_pair(index: Lexical) -> None:
    windows, counts = index.frequencies("数据库设计 データベースサーバ 数据")
    assert windows == len(TEXTS)
    assert counts == {"数据库设计": 2, "データベースサーバ": 0, "数据": 51}


LETTERS = st.text(alphabet="数据库设计师", max_size=12)


@settings(max_examples=examples(200), deadline=None)
@given(LETTERS.filter(lambda text: len(text) > 1), LETTERS)
def test_the_stretch_named_is_the_longest_that_both_have(run: str, text: str) -> None:
    [term] = tokens.terms(run)
    common = {run[i:j] for i in range(len(run)) for j in range(i + 2, len(run) + 1) if run[i:j] in text}
    longest = max(map(len, common), default=0)
    named = stretch(term, text)
    assert len(named) == longest
    assert not named or named in common


def test_a_very_long_run_is_asked_without_harm(index: Lexical) -> None:
    sentence = "".join(chr(0x4E00 + number) for number in range(3000))
    assert index.search(sentence, ANY, 5) == []
    assert index.windows(sentence, ANY, 5) == []
    many = " ".join(chr(0x4E00 + 60 * n + k) for n in range(48) for k in range(50)).replace(" ", "")
    assert index.fuzzy(" ".join(many[n : n + 50] for n in range(0, 2400, 50)), ANY, 5) == []


def test_what_a_call_was_given_and_what_came_of_it_are_both_found(tmp_path: Path) -> None:
    sections = tuple(Section("prt_1", kind, "rg zebra", "bash") for kind in (Kind.TOOL_INPUT, Kind.TOOL_OUTPUT))
    made = Lexical(tmp_path / "lexical")
    made.replace([Entry(Document("m1", "ses_1", sections), "assistant", 1, 0, "", "", "")])
    for found in (made.search("zebra", ANY, 5), made.fuzzy("zebra", ANY, 5)):
        assert [match.kind for match in found] == ["tool_input", "tool_output"]
    assert [match.kind for match in made.search("zebra", ANY, 1)] == ["tool_input"]
    made.close()
