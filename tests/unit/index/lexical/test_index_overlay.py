"""A few messages over the index: every question sees them, in their newest version, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.index import Entry, Filters, Match
from daemon.index.lexical import Lexical
from daemon.index.lexical.overlay import Overlay
from daemon.model import Document, Kind, Section

ANY = Filters()


def entry(message_id: str, text: str, created: int, session: str = "ses_1") -> Entry:
    document = Document(message_id, session, (Section(f"prt_{message_id}", Kind.PROMPT, text),))
    return Entry(document, "user", created, 0, "a title", "prj", "/home/ann/shop", window=text)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Lexical]:
    made = Lexical(tmp_path / "lexical")
    made.replace([entry(f"m{n}", f"the crane number {n} moves slowly over the quay", n) for n in range(20)])
    made.replace([entry("old", "the zebra crane sleeps", 50)])
    yield made
    made.close()


def over(index: Lexical, *entries: Entry) -> Overlay:
    fresh = Lexical()
    fresh.replace(entries)
    return Overlay(index, fresh, frozenset(one.document.message_id for one in entries))


def ids(found: list[Match]) -> list[str]:
    return [match.message_id for match in found]


def test_each_question_finds_what_the_index_does_not_have_yet(index: Lexical) -> None:
    both = over(index, entry("new", "a walrus crane arrives", 100))
    assert ids(both.search("walrus", ANY, 5)) == ["new"]
    assert ids(both.windows("walrus", ANY, 5)) == ["new"]
    assert ids(both.fuzzy("walrsu crane", ANY, 5))[0] == "new"
    assert ids(both.literal("walrus cr", ANY, 5)) == ["new"]
    assert ids(both.regex("wal.us", ANY, 5, 1.0)[0]) == ["new"]
    assert ids(both.by_time(101, ANY, 2, before=True)) == ["new", "old"]
    assert ids(both.by_time(50, ANY, 2, before=False)) == ["old", "new"]


def test_what_is_asked_of_both_comes_in_one_order(index: Lexical) -> None:
    both = over(index, entry("new", "the crane sleeps", 100))
    assert set(ids(both.search("crane sleeps", ANY, 2))) == {"new", "old"}
    assert ids(both.literal("crane", ANY, 3)) == ["new", "old", "m19"]
    assert len(both.literal("crane", ANY, 22)) == 22


def test_an_altered_message_is_found_by_its_new_words_only(index: Lexical) -> None:
    both = over(index, entry("old", "the walrus sleeps", 50))
    assert both.search("zebra", ANY, 5) == []
    assert both.literal("zebra", ANY, 5) == []
    assert ids(both.search("walrus", ANY, 5)) == ["old"]
    assert ids(both.literal("crane", ANY, 3)) == ["m19", "m18", "m17"]


def test_filters_hold_for_what_lies_over_the_index_too(index: Lexical) -> None:
    both = over(index, entry("new", "a walrus", 100, session="ses_2"))
    assert both.search("walrus", Filters(session_id="ses_1"), 5) == []
    assert ids(both.search("walrus", Filters(session_id="ses_2"), 5)) == ["new"]
    assert both.literal("walrus", Filters(before=100), 5) == []


def test_what_holds_fewer_of_the_words_does_not_rise_to_the_top(index: Lexical) -> None:
    both = over(index, entry("new", "slowly", 100))
    assert ids(both.search("zebra crane sleeps", ANY, 1)) == ["old"]
    assert "new" not in ids(both.search("crane number 7 moves slowly", ANY, 1))


def test_what_has_a_part_of_a_run_does_not_rise_above_what_holds_it(index: Lexical) -> None:
    index.replace([entry("whole", "我们昨天讨论了数据库设计的问题", 60)])
    both = over(index, entry("part", "数据库设置", 100))
    assert ids(both.search("数据库设计", ANY, 5)) == ["whole", "part"]
    assert [match.terms for match in both.search("数据库设计", ANY, 5)] == [("数据库设计",), ("数据库设",)]
    assert ids(both.windows("数据库设计", ANY, 5)) == ["whole"]


def test_messages_are_counted_between_times_each_once(index: Lexical) -> None:
    bounds = [0, 10, 20, 50, 51, 200]
    assert index.counts(ANY, bounds) == [10, 10, 0, 1, 0]
    both = over(index, entry("new", "a walrus", 100), entry("m3", "moved in time", 60))
    assert both.counts(ANY, bounds) == [9, 10, 0, 1, 2]
    assert both.counts(Filters(session_id="ses_2"), bounds) == [0] * 5
    assert index.counts(ANY, [10]) == index.counts(ANY, []) == []
    assert Lexical().counts(ANY, bounds) == [0] * 5


def test_many_days_are_counted_at_once(index: Lexical) -> None:
    bounds = list(range(1_000))
    counts = index.counts(ANY, bounds)
    assert (len(counts), sum(counts), counts[50], counts[20]) == (999, 21, 1, 0)
