"""What is suggested where there is little or nothing: every next call that is offered finds something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from daemon.model import Json
from daemon.recall.query import Recall
from daemon.recall.query.arguments import read
from tests.support.stores.recorded_sessions import Recorded, call, recorded


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("shop", "/work/shop")
        made.say("shop", "user", "the cart is empty, and the cat sleeps on the catalogue")
        made.say("shop", "assistant", call("bash", output="cart total 5", command="python -m ledger"))
        made.say("shop", "assistant", 'the trace says: File "/srv/app/billing/ledger.py", line 217, in post_entry')
        made.session("farm", "/work/farm")
        made.say("farm", "user", "the gorilla escaped")
        made.say("farm", "assistant", "max_shard_count is 5 in the gorilla house")
        made.index()
        yield made


def _ask(house: Recorded, budget_s: float = 60.0, **asked: Any) -> Json:
    return house.recall(budget_s=budget_s).answer(Recall(**asked))


LITTLE: dict[str, Json] = {
    "a word that only the filters leave out": {"query": "cart", "match": "smart", "kinds": ["task"]},
    "the same by its substring": {"query": "cart", "match": "literal", "role": "user", "directory": "/work/farm"},
    "a tool in another case": {"query": "cart", "match": "smart", "toolName": "Bash"},
    "a name of which the pieces are there": {"query": "ledger.py:217", "match": "smart"},
    "a part of a longer name": {"query": "shard_coun", "match": "smart"},
    "a typing error": {"query": "gorila", "match": "smart"},
    "a typing error within filters that leave it out": {"query": "gorila", "match": "smart", "directory": "/work/shop"},
    "a typing error within filters": {"query": "gorila", "match": "literal", "directory": "/work/farm", "role": "user"},
    "words that do not stand together": {"query": "cat cart", "match": "literal"},
    "an expression": {"query": "cat +cart", "match": "regex"},
    "what is nowhere": {"query": "zyzzyva_quux9", "match": "literal"},
    "what is nowhere, within filters": {"query": "zyzzyva", "match": "literal", "directory": "/work/farm"},
    "a directory without sessions": {"query": "cart", "match": "smart", "directory": "/work/none"},
    "a name that is nowhere": {"query": "zyzzyva_quux9", "match": "fuzzy"},
}


@pytest.mark.parametrize("asked", LITTLE.values(), ids=LITTLE)
def test_every_suggested_call_finds_something(house: Recorded, asked: Json):
    answer = _ask(house, **asked)
    for suggestion in answer["suggestions"]:
        again, warnings = read("recall", suggestion["example"])
        assert warnings == []
        assert house.recall(budget_s=60.0).answer(again)["results"], suggestion


def _examples(answer: Json) -> list[Json]:
    return [one["example"] for one in answer["suggestions"]]


def test_a_word_that_the_filters_leave_out_is_no_typing_error(house: Recorded):
    for match in ("smart", "hybrid", "literal", "fuzzy"):
        answer = _ask(house, query="cart", match=match, kinds=["task"])
        assert answer["results"] == []
        assert "'cat'" not in str(answer["suggestions"]), match
        assert {"query": "cart"}.items() <= _examples(answer)[0].items()
        assert "kinds" not in _examples(answer)[0]


def test_a_tool_in_another_case_is_named_as_it_is(house: Recorded):
    answer = _ask(house, query="cart", match="smart", toolName="Bash")
    assert {"query": "cart", "match": "smart", "toolName": "bash"} in _examples(answer)
    assert "`toolName` must be a tool's exact name" in str(answer["suggestions"])
    assert not any("toolName" in example for example in _examples(_ask(house, query="cart", toolName="Grep")))


def test_an_absent_bare_name_suggests_the_mode_that_has_results(house: Recorded):
    traced = _ask(house, query="ledger.py:217", match="smart")
    if not traced["results"]:
        assert {"query": "ledger.py:217", "match": "fuzzy"} in _examples(traced)
        assert "literal" not in str(_examples(traced))
    assert _ask(house, query="zyzzyva_quux9", match="smart")["suggestions"] == []


def test_a_typing_error_is_corrected_only_if_the_filters_allow_the_result(house: Recorded):
    inside = _ask(house, query="gorila", match="smart", directory="/work/farm")
    assert {"query": "gorilla", "match": "smart", "directory": "/work/farm"} in _examples(inside)
    for match in ("smart", "literal"):
        outside = _ask(house, query="gorila", match=match, directory="/work/shop")
        assert {"query": "gorilla", "match": match} in _examples(outside)
        assert "only messages outside the filters (`directory`) contain it" in str(outside["suggestions"])


def test_dropping_filters_is_suggested_only_if_something_lies_outside(house: Recorded):
    assert "without these filters" in str(_ask(house, query="gorilla", match="literal", role="user", type="tool"))
    assert _ask(house, query="zyzzyva", match="literal", role="user")["suggestions"] == []


def test_what_could_not_be_tried_in_time_is_not_offered(house: Recorded):
    answer = _ask(house, budget_s=1e-6, query="cat cart", match="literal")
    assert answer["degradeKind"] == "time"
    assert not any("hybrid" in one["action"] for one in answer["suggestions"])
