"""Candidates that one side found are scored by the other side too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon.index import Entry, Filters, Match
from daemon.index.lexical import Lexical
from daemon.model import Document, Kind, Section
from daemon.recall.candidates import index_query
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.candidates.stats import QueryStats
from daemon.recall.query import parse
from daemon.recall.ranking.fuse import fuse

TEXTS = {"both": "the old crane of the quay", "some": "a crane", "none": "a harbour at night"}
QUERY = parse.parse("where is the crane of the quay")
STATS = QueryStats(100, {"crane": 9, "quay": 3})


@pytest.fixture
def lexical() -> Iterator[Lexical]:
    index = Lexical()
    for message_id, text in TEXTS.items():
        document = Document(message_id, "ses", (Section(f"prt_{message_id}", Kind.PROMPT, text),))
        index.replace([Entry(document, "user", 1, 0, "a title", "prj", "/w", window=text)])
    yield index
    index.close()


def completed(lexical: Lexical, found: CandidateLists, query: parse.Query = QUERY) -> CandidateLists:
    asked = index_query.missing_scores(found, query, Filters(), lexical, lambda: None, vector=None)
    for ask in asked.values():
        ask(found)
    return found


def test_what_meaning_found_is_scored_by_its_words(lexical: Lexical):
    meant = [Match(message_id, 0.5, record=f"{message_id}#0") for message_id in TEXTS]
    found = completed(lexical, CandidateLists(lists={"lexical": [], "windows": [], "semantic": meant}))
    assert found.terms() == {"both": ["crane", "quay"], "some": ["crane"]}
    assert {match.message_id for match in found.all_matches("windows")} == {"both", "some"}
    assert not found.is_full(1, ("lexical",))  # they tell nothing of how much else there is


def test_the_order_does_not_depend_on_which_side_found_a_candidate(lexical: Lexical):
    words, windows = lexical.search(QUERY.text, Filters(), 9), lexical.windows(QUERY.text, Filters(), 9)
    meant = [Match(message_id, 0.5, record=f"{message_id}#0") for message_id in TEXTS]

    def order(lists: dict[str, list[Match]]) -> list:
        found = completed(lexical, CandidateLists(lists=lists))
        return fuse(found.all_matches("lexical"), found.all_matches("windows"), found.all_matches("semantic"), STATS)

    whole = order({"lexical": words, "windows": windows, "semantic": meant})
    for left in range(len(words)):
        assert order({"lexical": words[:left], "windows": windows, "semantic": meant}) == whole
        assert order({"lexical": words[:left], "windows": windows[:left], "semantic": meant}) == whole


@pytest.mark.parametrize(
    ("query", "lists"),
    [
        ("rateLimit", {"lexical": [], "semantic": [Match("both", 0.5)]}),  # a bare name decides by itself
        ("where is the crane", {"semantic": [Match("both", 0.5)]}),  # words were not asked
        ("where is the crane", {"lexical": [], "windows": []}),
    ],
)
def test_nothing_is_asked_that_does_not_count(lexical: Lexical, query: str, lists: dict[str, list[Match]]):
    asked = index_query.missing_scores(
        CandidateLists(lists=lists), parse.parse(query), Filters(), lexical, lambda: None, vector=None
    )
    assert asked == {}
