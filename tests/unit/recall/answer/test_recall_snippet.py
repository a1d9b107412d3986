"""The few words shown of a hit."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.display import one_line
from daemon.recall.answer import excerpt
from daemon.recall.answer.excerpt import WIDTH, snippet

FILLER = "lorem ipsum dolor sit amet " * 60


def test_a_snippet_shows_the_place_where_the_terms_stand_together():
    text = f"limit {FILLER} the rate limit is five {FILLER} rate"
    shown = snippet(text, ["rate", "limit"])
    assert "the rate limit is five" in shown
    assert (shown[0], shown[-1]) == ("…", "…")


def test_a_term_that_occurs_only_in_another_form_is_found_by_its_stem():
    assert "decided on Postgres" in snippet(f"{FILLER} we decided on Postgres {FILLER}", ["deciding"])


SPELLINGS = {
    "walrus_protocol": "walrus protocol",
    "walrusProtocol": "walrus-protocol",
    "walrus-protocol": "the WalrusProtocol",
    "HTTPServerError": "http_server_error",
    "walrus::protocol": "a protocol of the walrus",
    "walrus protocol": "walrus\nprotocol",
}


@pytest.mark.parametrize("times", [1, 50], ids=["short", "long"])
@pytest.mark.parametrize(("term", "there"), SPELLINGS.items())
def test_a_name_is_shown_where_it_stands_with_other_separators(term: str, there: str, times: int):
    shown = snippet(f"{FILLER * times} {there} {FILLER * times}", [term])
    assert " ".join(there.split()) in shown
    alone = snippet(f"{FILLER * times} protocol {FILLER * times} {there} {FILLER * times}", [term])
    assert " ".join(there.split()) in alone


def test_a_text_without_the_terms_is_shown_from_its_beginning():
    assert snippet(f"first words {FILLER}", ["absent"]).startswith("first words")


def test_a_short_text_is_shown_whole_on_one_line():
    assert snippet("one\n\ttwo\r\nthree", ["two"]) == "one two three"


def test_terminal_sequences_and_direction_marks_are_not_shown():
    assert one_line("a\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eabc\u2066\x9b1m") == "ared ]0;title abc1m"


@given(st.text(max_size=3000), st.lists(st.text(max_size=12), max_size=4), st.integers(8, WIDTH))
def test_a_snippet_is_one_bounded_line_without_control_characters(text, terms, width):
    shown = snippet(text, terms, width)
    assert len(shown) <= width
    assert shown.splitlines() in ([], [shown])
    assert not any(unicodedata.category(character) == "Cc" for character in shown)


@given(st.text(alphabet="ab \n", max_size=400), st.integers(0, 399))
def test_a_term_that_occurs_is_in_the_snippet(text, place):
    text = f"{text[:place]} needle {text[place:]}"
    assert "needle" in snippet(text, ["needle"], 60)


def test_the_densest_place_of_a_long_text_is_shown_with_both_ends_marked():
    text = f"limit {FILLER * 300} the rate limit is five {FILLER * 300} rate"
    shown = snippet(text, ["rate", "limit"])
    assert "the rate limit is five" in shown
    assert (shown[0], shown[-1]) == ("…", "…")
    assert len(shown) <= WIDTH
    assert snippet(f"{text} needle", ["needle"]).endswith("needle")
    assert snippet(text, ["absent"]).startswith("limit lorem")


def test_a_snippet_of_a_long_text_costs_no_more_for_a_longer_query(monkeypatch: pytest.MonkeyPatch):
    """Each term is a walk through the text: of 5,000 characters of query ten snippets took seconds."""
    looked_for: list[str] = []
    numbered = excerpt._numbered

    def count(terms: Sequence[str], spots: excerpt._Spots) -> list[tuple[int, int, int]]:
        looked_for.extend(terms)
        return numbered(terms, spots)

    monkeypatch.setattr(excerpt, "_numbered", count)
    query = " ".join(f"word{number}" for number in range(700))
    text = "filler " * 5000 + query + " filler" * 5000
    assert "word0 word1 word2" in snippet(text, [query, *query.split()], 200)
    assert set(looked_for) == {query[:198]}
    looked_for.clear()
    assert "word3" in snippet(text, query.split(), 200)
    assert len(set(looked_for)) == 32
