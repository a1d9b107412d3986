"""A name that no text has is searched for as what it may have meant, and the answer says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from daemon.model import Json
from daemon.recall.query import Recall, names
from tests.support.stores.recorded_sessions import Recorded, call, recorded


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses_a", "/work/shop", "Limits")
        made.say("ses_a", "user", "Add rateLimitMiddleware in front of the checkout.")
        made.say("ses_a", "assistant", "The total is wrong in src/cart.py, see lamp.py:20.", call("bash", command="ls"))
        made.say("ses_a", "user", "Why does the checkout answer slowly?")
        made.session("ses_b", "/work/lamp", "Lamps")
        made.say("ses_b", "user", "The snake_case_helper is red; so is parseConfig.")
        made.index()
        yield made


def _ask(house: Recorded, query: str, **more) -> Json:
    return house.recall().answer(Recall(query=query, **more))


# query, what is searched instead, the message
INSTEAD = [
    ("rateLimtMiddleware", "rateLimitMiddleware", "msg_0001"),
    ("rate_limt_middleware", "rateLimitMiddleware", "msg_0001"),
    ("snake_csae_helper", "snake_case_helper", "msg_0004"),
    ("`parseConfg`", "parseConfig", "msg_0004"),
    ("src/crat.py", "src/cart.py", "msg_0002"),
    ("source/cart.py", "", ""),
    ("cart.py:88", "cart.py", "msg_0002"),
    ("cart.py:88:5", "cart.py", "msg_0002"),
    ("src/cart.py#L88-L90", "src/cart.py", "msg_0002"),
    ("why is cart.py:88 wrong", "cart.py", "msg_0002"),
    ("lamp.py:21", "lamp.py", "msg_0002"),
    ("quux.py:88", "", ""),
    ("quuxFlowMiddle", "", ""),
]


@pytest.mark.parametrize("match", ["hybrid", "smart"])
@pytest.mark.parametrize(("query", "other", "first"), INSTEAD)
def test_what_was_searched_instead_is_said(house: Recorded, query: str, other: str, first: str, match: str):
    answer = _ask(house, query, match=match)
    said = "\n".join(answer["warnings"])
    assert ("these are results for" in said) == bool(other)
    if other:
        best = answer["results"][0]
        assert f"no current text contains {best['near'][0][0]!r}; these are results for {other!r}" in said
        assert (best["messageID"], best["near"][0][1]) == (first, other)
        assert best["why"]["confidence"] != "high"
        assert answer["degradeKind"] == "fallback"
        assert other in best["snippet"]
        assert f"'{other.lower()}'" not in json.dumps(answer["suggestions"]).lower()  # it was searched for
    elif "." not in query or " " not in query:
        assert answer["results"] == []


@pytest.mark.parametrize("match", ["literal", "fuzzy", "regex", "semantic"])
def test_other_modes_search_what_was_asked_for(house: Recorded, match: str):
    for query in ("rateLimtMiddleware", "cart.py:88"):
        assert "these are results for" not in str(_ask(house, query, match=match)["warnings"])


@pytest.mark.parametrize("query", ["rateLimitMiddleware", "lamp.py:20", "why is lamp.py:20 wrong"])
def test_what_stands_as_it_is_asked_for_is_not_replaced(house: Recorded, query: str):
    answer = _ask(house, query)
    assert "these are results for" not in str(answer["warnings"])
    assert "near" not in answer["results"][0]


def test_filters_hold_for_what_is_searched_instead(house: Recorded):
    assert _ask(house, "cart.py:88", sessionID="ses_b")["results"] == []


LINES = {
    "cart.py:88": "cart.py",
    "a/Makefile:3": "a/Makefile",
    "src/cart.py#L88": "src/cart.py",
    "cart.py:88-92": "cart.py",
    "localhost:8080": "",
    "10.0.0.1:8080": "",
    "12:30": "",
    "std::vector": "",
    "cart.py": "",
}


WRITTEN = {
    ("ratelimit", "the rate_limit of it"): "rate_limit",
    ("ratelimit", "rateLimiter"): "",
    ("postgresql", "为什么用PostgreSQL保存"): "PostgreSQL",
}


@pytest.mark.parametrize(("case", "written"), WRITTEN.items())
def test_a_word_of_the_index_is_shown_as_a_text_writes_it(case: tuple[str, str], written: str):
    assert names.as_written(*case) == written


@pytest.mark.parametrize(("name", "path"), LINES.items())
def test_a_line_is_told_from_the_path_before_it(name: str, path: str):
    assert names.without_line(name) == path
