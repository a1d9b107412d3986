"""The best results in full, within budgets."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from daemon.index import Match
from daemon.model import Json
from daemon.recall.answer import messages as shown
from daemon.recall.answer.expand import Expansion, expand
from daemon.recall.catalog import Catalog
from daemon.recall.query import Recall
from daemon.recall.ranking.grouping import Result
from tests.support.stores.recorded_sessions import Recorded, call, recorded

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses", "/work")
        made.say("ses", "user", "first question")
        made.say("ses", "assistant", "first answer")
        made.say("ses", "user", f"second question with {SECRET}")
        made.say("ses", "assistant", call("bash", output="line of output\n" * 2000, command="make"))
        made.say("ses", "assistant", "the end of the second answer")
        made.say("ses", "user", "third question")
        yield made


def _expand(house: Recorded, *messages: str, **asked) -> Expansion:
    finds = [Result(one, "ses", "prj", 0, Match(one, 1.0), "smart", 1.0) for one in messages]
    return expand(house.archive, Catalog(house.archive).rows(), Recall(query="x", **asked), finds)


def _ids(entry: Json) -> list[str]:
    return [item["message"]["id"] for item in entry["messages"]]


def _size(expansion: Expansion) -> int:
    items = [item for entry in expansion.expanded for item in entry.get("messages", [entry.get("message")])]
    return sum(
        len(str(part.get(name, "")))
        for item in items
        for part in item["parts"]
        for name in ("content", "input", "output", "error")
    )


def test_nothing_is_expanded_unless_it_is_asked_for(house: Recorded):
    assert _expand(house, "msg_0001").expanded == []


def test_as_many_results_as_asked_are_shown_in_full_and_redacted(house: Recorded):
    made = _expand(house, "msg_0003", "msg_0001", "msg_0002", expand="message", expandResults=2)
    assert [(entry["resultIndex"], entry["messageID"]) for entry in made.expanded] == [(0, "msg_0003"), (1, "msg_0001")]
    assert made.expanded[0]["message"]["center"] is True
    assert SECRET not in str(made.expanded)
    assert (made.warnings, made.is_short) == ([], False)


WINDOWS = {
    0: ["msg_0004"],
    1: ["msg_0003", "msg_0004", "msg_0005"],
    50: [f"msg_000{n}" for n in range(1, 7)],
    "auto": ["msg_0003", "msg_0004", "msg_0005"],
}


@pytest.mark.parametrize(("window", "expected"), WINDOWS.items())
def test_a_context_has_the_neighbours_and_says_whether_there_are_more(house: Recorded, window, expected):
    entry = _expand(house, "msg_0004", expand="context", window=window, expandBudgetChars=400_000).expanded[0]
    assert _ids(entry) == expected
    assert entry["hasMoreBefore"] is (expected[0] != "msg_0001")
    assert entry["hasMoreAfter"] is (expected[-1] != "msg_0006")


def test_too_few_messages_keep_the_nearest_and_say_so(house: Recorded):
    made = _expand(house, "msg_0002", expand="context", window=3, expandBudgetMessages=2)
    assert "msg_0002" in _ids(made.expanded[0])
    assert len(_ids(made.expanded[0])) == 2
    assert made.is_short
    assert "`expandBudgetMessages` 2" in made.warnings[0]


@pytest.mark.parametrize("budget", [500, 1000, 5000])
def test_texts_are_cut_to_the_budget_and_say_so(house: Recorded, budget: int):
    made = _expand(house, "msg_0004", expand="context", window=2, expandBudgetChars=budget)
    assert _size(made) <= budget
    center = next(item for item in made.expanded[0]["messages"] if item.get("center"))
    assert center["parts"][0]["output"].endswith(shown.TRUNCATED)
    assert center["parts"][0]["input"] == {"command": "make"}
    assert made.is_short
    assert "cut" in made.warnings[0] or "left out" in made.warnings[0]


def test_the_budget_is_one_for_all_results(house: Recorded):
    made = _expand(house, "msg_0004", "msg_0003", expand="context", expandResults=2, expandBudgetChars=600)
    assert _size(made) <= 600


def test_a_message_is_shown_in_one_expansion_and_named_in_the_others(house: Recorded):
    wide = {"expand": "context", "expandResults": 3, "expandBudgetChars": 400_000}
    made = _expand(house, "msg_0002", "msg_0003", "msg_0006", window=1, **wide)
    assert [_ids(entry) for entry in made.expanded] == [
        ["msg_0001", "msg_0002", "msg_0003"],
        ["msg_0004"],
        ["msg_0005", "msg_0006"],
    ]
    assert [entry.get("shownBefore") for entry in made.expanded] == [
        None,
        [{"messageID": "msg_0002", "resultIndex": 0}, {"messageID": "msg_0003", "resultIndex": 0}],
        None,
    ]
    assert [(entry["hasMoreBefore"], entry["hasMoreAfter"]) for entry in made.expanded] == [
        (False, True),
        (True, True),
        (True, False),
    ]
    again = _expand(house, "msg_0004", "msg_0003", window=50, **wide)
    assert [len(_ids(entry)) for entry in again.expanded] == [6, 0]
    assert {one["resultIndex"] for one in again.expanded[1]["shownBefore"]} == {0}


def test_the_budget_is_not_spent_on_copies(house: Recorded):
    made = _expand(
        house, "msg_0002", "msg_0001", "msg_0006", expand="context", window=1, expandResults=3, expandBudgetMessages=4
    )
    assert [_ids(entry) for entry in made.expanded] == [["msg_0001", "msg_0002", "msg_0003"], [], ["msg_0006"]]
    assert "1 message left out" in made.warnings[0]


def test_a_message_of_which_several_parts_were_found_is_shown_in_full_once(house: Recorded):
    made = _expand(house, "msg_0001", "msg_0001", "msg_0002", expand="message", expandResults=3)
    shown_ = [entry.get("message", {}).get("message", {}).get("id") for entry in made.expanded]
    assert shown_ == ["msg_0001", None, "msg_0002"]
    assert made.expanded[1]["shownBefore"] == [{"messageID": "msg_0001", "resultIndex": 0}]


def test_chat_messages_are_whole_and_within_their_budgets(house: Recorded):
    made = _expand(house, "msg_0004", expand="messages", window=1, expandBudgetChars=100_000)
    assert [entry["role"] for entry in made.expanded[0]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert made.expanded[0]["tokens"] > 0
    small = _expand(house, "msg_0002", expand="messages", window=1, expandBudgetTokens=100)
    assert 0 < small.expanded[0]["tokens"] <= 100


@pytest.mark.parametrize("more", [{"expandBudgetChars": 500}, {"expandBudgetTokens": 100}], ids=["chars", "tokens"])
def test_a_message_that_does_not_fit_whole_is_cut_with_a_warning(house: Recorded, more: dict[str, int]):
    made = _expand(house, "msg_0004", expand="messages", window=0, **more)
    [entry] = made.expanded
    assert "[truncated by recall expansion]" in json.dumps(entry["messages"])
    assert len("".join(map(json.dumps, entry["messages"]))) <= 500 or entry["tokens"] <= 100
    assert made.is_short
    assert "texts of the best result were cut" in made.warnings[0]


BUDGETS = {  # (message, budget in messages): roles of the chat messages; a call and its result are of one message
    ("msg_0001", 2): (["user", "assistant"], True),
    ("msg_0001", 3): (["user", "assistant", "user"], True),
    ("msg_0006", 2): (["assistant", "user"], True),
    ("msg_0003", 2): (["assistant", "user"], True),
    ("msg_0003", 6): (["user", "assistant", "user", "assistant", "tool", "assistant", "user"], False),
}


@pytest.mark.parametrize(("case", "expected"), BUDGETS.items(), ids=map(str, BUDGETS))
def test_a_chat_budget_is_used_up_by_whichever_side_has_messages(house: Recorded, case, expected):
    message, budget = case
    roles, is_short = expected
    made = _expand(house, message, expand="messages", window=3, expandBudgetMessages=budget, expandBudgetChars=400_000)
    assert [entry["role"] for entry in made.expanded[0]["messages"]] == roles
    assert made.is_short is is_short
    assert [f"`expandBudgetMessages` {budget}" in one for one in made.warnings] == [True] * is_short


def test_results_beyond_the_chat_budget_are_reported_as_left_out(house: Recorded):
    made = _expand(
        house, "msg_0006", "msg_0001", "msg_0002", expand="messages", window=0, expandResults=3, expandBudgetMessages=2
    )
    assert [entry["content"] for entry in made.expanded[0]["messages"]] == ["first question", "third question"]
    assert "1 message left out" in made.warnings[0]


def test_chat_messages_that_characters_left_out_are_said_to_be(house: Recorded):
    made = _expand(house, "msg_0005", expand="messages", window=1, expandBudgetChars=500)
    assert [entry["role"] for entry in made.expanded[0]["messages"]] == ["assistant", "user"]
    assert made.is_short
    assert "`expandBudgetChars` 500" in made.warnings[0]
