"""Copies of a message are one result; what differs in anything stays apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.model import Json
from daemon.recall.query import Recall
from tests.support.stores.recorded_sessions import MINUTE, Recorded, call, recorded

MODES = ("hybrid", "smart", "literal", "fuzzy", "regex", "semantic")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path) as made:
        for sid in ("one", "two", "three"):
            made.session(sid, f"/work/{sid}", f"Session {sid}")
        yield made


def _ask(house: Recorded, query: str, **asked: Any) -> Json:
    house.index()
    return house.recall(budget_s=60.0).answer(Recall(query=query, **asked), "", None)


def _fork(house: Recorded, *parts: Any, role: str = "user") -> list[str]:
    """The same message in all three sessions, made in the same millisecond, as a fork copies it."""
    began, ids = house.clock, []
    for sid in ("one", "two", "three"):
        house.clock = began
        ids.append(house.say(sid, role, *parts))
    return ids


@pytest.mark.parametrize("match", MODES)
def test_a_message_and_its_copies_in_forks_are_one_result(house: Recorded, match: str) -> None:
    ids = _fork(house, "the kettle of the canteen whistles")
    other = house.say("one", "assistant", "the kettle of the garden whistles")
    answer = _ask(house, "kettle", match=match)
    results = {one["messageID"]: one for one in answer["results"]}
    assert len(results) == answer["total"] == 2
    [original] = set(results) - {other}
    copies = results[original]["copies"]
    assert copies["count"] == 2
    assert {each["messageID"] for each in copies["first"]} == set(ids) - {original}
    assert {each["sessionID"] for each in copies["first"]} <= {"one", "two", "three"}
    assert "copies" not in results[other]


@pytest.mark.parametrize("match", MODES)
def test_the_same_prompt_at_other_times_is_one_result(house: Recorded, match: str) -> None:
    house.say("one", "user", "good morning")  # the first message is embedded with the session's title
    for _ in range(5):
        house.say("one", "user", "the kettle of the canteen whistles")
        house.clock += MINUTE
    [result] = [one for one in _ask(house, "kettle", match=match)["results"] if "kettle" in one["snippet"]]
    assert result["copies"]["count"] == 4


@pytest.mark.parametrize("group", ["message", "part"])
def test_identical_tool_outputs_are_one_result(house: Recorded, group: str) -> None:
    for sid in ("one", "two", "three"):
        house.say(sid, "assistant", call("bash", output="kettle: 12 passed", command="make test"))
        house.clock += MINUTE
    answer = _ask(house, "kettle: 12 passed", match="literal", group=group)
    assert [one["copies"]["count"] for one in answer["results"]] == [2]


def test_identical_parts_of_one_message_are_one_result(house: Recorded) -> None:
    again = [call("bash", output="kettle: 12 passed", command="make test") for _ in range(3)]
    house.say("one", "assistant", *again, call("bash", output="kettle: 12 passed", command="make all"))
    answer = _ask(house, "kettle: 12 passed", match="literal", group="part")
    assert [one.get("copies", {}).get("count", 0) for one in answer["results"]] == [2, 0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the kettle boils", "the kettle  boils"),
        ("the kettle boils", "The kettle boils"),
        (call("bash", output="kettle", command="a"), call("bash", output="kettle", command="b")),
        (call("bash", output="kettle"), call("shell", output="kettle")),
    ],
    ids=["spaces", "case", "input", "tool"],
)
def test_what_differs_in_anything_is_never_folded(house: Recorded, one: Any, other: Any) -> None:
    began = house.clock
    house.say("one", "assistant", one)
    house.clock = began
    house.say("two", "assistant", other)
    answer = _ask(house, "kettle", match="literal")
    assert len(answer["results"]) == 2
    assert not any("copies" in each for each in answer["results"])


def test_a_prompt_and_an_answer_of_the_same_words_stay_apart(house: Recorded) -> None:
    house.say("one", "user", "kettle")
    house.say("two", "assistant", "kettle")
    assert len(_ask(house, "kettle")["results"]) == 2


def test_many_copies_do_not_take_the_place_of_other_results(house: Recorded) -> None:
    others = [house.say("two", "user", f"a kettle of another kind, number {number}") for number in range(5)]
    for _ in range(80):
        house.say("one", "user", "kettle")
    answer = _ask(house, "kettle", match="literal", results=6)
    assert [one.get("copies", {}).get("count", 0) for one in answer["results"]] == [79, 0, 0, 0, 0, 0]
    assert {one["messageID"] for one in answer["results"][1:]} == set(others)
    assert len(answer["results"][0]["copies"]["first"]) == 5


def test_copies_in_farther_directories_are_the_same_result(house: Recorded) -> None:
    _fork(house, "the kettle whistles")
    answer = _ask(house, "kettle", directory="/work/two", fallback=True)
    assert [(one["sessionID"], one["copies"]["count"]) for one in answer["results"]] == [("two", 2)]


def test_callers_in_this_process_get_every_copy(house: Recorded) -> None:
    ids = _fork(house, "the kettle whistles")
    house.index()
    assert {hit.message_id for hit in house.recall(budget_s=60.0).search("kettle").hits} == set(ids)
