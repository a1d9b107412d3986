"""`where` and `threshold`: what passes, what contradicts itself, and what is no condition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import BadRequest
from daemon.model import Json
from daemon.recall.query import Recall
from daemon.recall.query.arguments import read
from tests.support.stores.recorded_sessions import START, Recorded, call, recorded

MODES = ("hybrid", "smart", "literal", "fuzzy", "regex", "semantic")
DAY = 86_400_000


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("where")) as made:
        for number, sid in enumerate(("one", "two")):
            made.clock = START + number * DAY
            made.session(sid, f"/work/{sid}", f"Session {sid}")
            made.say(sid, "user", f"the kettle boils in {sid}")
            made.say(sid, "assistant", f"the kettle is off in {sid}")
            made.say(sid, "assistant", call(("bash", "grep")[number], output=f"kettle: 1 match, {sid}", command="x"))
        made.index()
        yield made


def _ask(house: Recorded, query: str = "kettle", **asked: Any) -> Json:
    request, _ = read("recall", {"query": query, **asked})
    assert isinstance(request, Recall)
    return house.recall(budget_s=60.0).answer(request, "", START + 2 * DAY)


def _ids(answer: Json) -> set[int]:
    return {int(one["messageID"][-1]) for one in answer["results"]}


CONDITIONS: list[tuple[Any, set[int]]] = [
    ({"role": "user"}, {1, 4}),
    ({"role": {"$ne": "user"}}, {2, 3, 5, 6}),
    ({"session": "one"}, {1, 2, 3}),
    ({"sessionID": {"$in": ["two", "three"]}}, {4, 5, 6}),
    ({"directory": "/work/two/"}, {4, 5, 6}),
    ({"project": {"$ne": "prj"}}, set()),
    ({"project": "prj", "kind": "prompt"}, {1, 4}),
    ({"kind": {"$in": ["answer", "prompt"]}}, {1, 2, 4, 5}),
    ({"kind": {"$nin": ["answer", "prompt", "title"]}}, {3, 6}),
    ({"tool": "bash"}, {3}),
    ({"toolName": {"$ne": "bash"}}, {1, 2, 4, 5, 6}),
    ({"time": {"$lt": START + DAY}}, {1, 2, 3}),
    ({"time": {"$gte": START + DAY, "$lte": START + 2 * DAY}}, {4, 5, 6}),
    ({"time": {"$gt": "36h"}}, {4, 5, 6}),
    ({"$or": [{"role": "user"}, {"tool": "grep"}]}, {1, 4, 6}),
    ({"$and": [{"session": "one"}, {"$or": [{"kind": "answer"}, {"tool": "bash"}]}]}, {2, 3}),
    ({"$or": [{"session": "one", "role": "user"}, {"session": "two", "role": "assistant"}]}, {1, 5, 6}),
    ({"$or": [{"time": {"$lt": START + DAY}, "kind": "prompt"}, {"time": {"$gt": START + DAY}, "tool": "grep"}]}, {1, 6}),
    ('{"role": "user"}', {1, 4}),
]  # fmt: skip


@pytest.mark.parametrize(("where", "passing"), CONDITIONS, ids=[str(each[0])[:60] for each in CONDITIONS])
def test_a_condition_lets_through_what_fulfils_it(house: Recorded, where: Any, passing: set[int]) -> None:
    for match in ("hybrid", "literal", "semantic"):
        assert _ids(_ask(house, where=where, match=match, results=50)) == passing, match


@pytest.mark.parametrize("match", MODES)
def test_a_condition_holds_in_every_mode_and_is_named_as_a_limit(house: Recorded, match: str) -> None:
    answer = _ask(house, where={"$or": [{"role": "user"}, {"tool": "grep"}]}, match=match)
    assert _ids(answer) == {1, 4, 6}
    assert "where" in answer["coverage"]["limitedBy"]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"colour": "red"}, "'colour' is no field; use role"),
        ({"role": {"$like": "u"}}, "is no operator"),
        ({"role": {"$gt": "user"}}, "compares times"),
        ({"role": "robot"}, "'robot' is no role; use user, assistant"),
        ({"kind": 3}, "is no kind"),
        ({"role": {}}, "has no condition"),
        ({"role": {"$in": []}}, "takes a list of values"),
        ({"$or": []}, "takes a list of conditions"),
        ({"$or": [3]}, "is no condition"),
        ({"time": {"$gt": True}}, "is no time"),
        ({"time": {"$gt": "yesteryear"}}, "yesteryear"),
        ("[1]", "a JSON object"),
        ("{", "a JSON object"),
        (3, "a JSON object"),
    ],
)
def test_what_is_no_condition_is_refused(house: Recorded, where: Any, says: str) -> None:
    with pytest.raises(BadRequest) as refused:
        _ask(house, where=where)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "asked",
    [
        {"where": {"$and": [{"role": "user"}, {"role": "assistant"}]}},
        {"where": {"role": "user"}, "role": "assistant"},
        {"where": {"kind": "prompt"}, "kinds": ["answer"]},
        {"where": {"tool": "grep"}, "toolName": "bash"},
        {"where": {"time": {"$gt": START, "$lt": START}}},
        {"where": {"time": {"$lt": START}}, "after": START + DAY},
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused(house: Recorded, asked: dict[str, Any]) -> None:
    with pytest.raises(BadRequest, match="`where` contradicts itself or another filter"):
        _ask(house, **asked)


def test_a_condition_that_no_session_fulfils_is_named(house: Recorded) -> None:
    answer = _ask(house, where={"session": "nowhere"})
    assert answer["results"] == []
    assert "`where`" in answer["warnings"][0]


def test_nothing_below_the_threshold_is_shown_and_that_is_said(house: Recorded) -> None:
    scores = sorted({one["score"] for one in _ask(house, "kettle boils", match="semantic")["results"]})
    answer = _ask(house, "kettle boils", match="semantic", threshold=str(scores[-1]))
    assert {one["score"] for one in answer["results"]} == {scores[-1]}
    assert f"`threshold` {scores[-1]:g} left out" in "".join(answer["warnings"])
    assert answer["truncated"] is False
    nothing = _ask(house, "kettle whistle bells", match="semantic", threshold=1)
    assert (nothing["results"], nothing["suggestions"]) == ([], [])
    assert "the best of score" in "".join(nothing["warnings"])


@pytest.mark.parametrize("group", ["part", "message", "session", "project"])
@pytest.mark.parametrize("match", MODES)
def test_the_threshold_holds_in_every_mode_and_group(house: Recorded, match: str, group: str) -> None:
    for sort in ("relevance", "newest"):
        answer = _ask(house, match=match, group=group, threshold=0.6, sort=sort)
        assert all(one["score"] >= 0.6 for one in answer["results"])


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "nan", "much", True, [0.5]])
def test_a_threshold_outside_its_range_is_refused(threshold: Any) -> None:
    with pytest.raises(BadRequest, match="a number from 0 to 1"):
        read("recall", {"query": "x", "threshold": threshold})


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Two old outputs of tools and a title hold the word; so do more prompts than are ever looked at one by one."""
    with recorded(tmp_path_factory.mktemp("crowded")) as made:
        made.session("old", "/work/old", "Session old")
        for tool in ("foo", "bar"):
            made.say("old", "assistant", call(tool, output=f"kettle of {tool}", command="x"))
        made.session("new", "/work/new", "Session new")
        for number in range(1100):
            made.say("new", "user", f"the kettle {number}")
        made.index()
        yield made


@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
@pytest.mark.parametrize("match", ["smart", "hybrid", "literal", "regex"])
def test_several_tools_are_found_however_much_else_matches(crowded: Recorded, match: str, sort: str) -> None:
    conditions: list[Json] = [
        {"tool": {"$in": ["foo", "bar"]}},
        {"$or": [{"tool": "foo"}, {"tool": "bar", "role": "assistant"}]},
    ]
    for where in conditions:
        assert _ids(_ask(crowded, where=where, match=match, sort=sort)) == {1, 2}


@pytest.mark.parametrize("sort", ["relevance", "newest"])
@pytest.mark.parametrize("match", ["smart", "hybrid", "literal", "regex"])
def test_what_was_not_looked_at_is_not_said_to_be_absent(crowded: Recorded, match: str, sort: str) -> None:
    answer = _ask(crowded, where={"$or": [{"tool": "foo"}, {"kind": "answer"}]}, match=match, sort=sort)
    said = "; ".join(answer["warnings"])
    assert _ids(answer) == {1} or (
        "`where` was checked only for the best or newest" in said
        and "no current text" not in said
        and answer["truncated"]
        and answer["degradeKind"] == "budget"
        and any("`where`" in each for each in answer["degraded"])
    )


def test_a_condition_on_titles_lets_no_other_message_through(house: Recorded) -> None:
    for match in MODES:
        answer = _ask(house, where={"$or": [{"session": "two"}, {"kind": "title"}]}, match=match)
        assert all(one["sessionID"] == "two" or one["kind"] == "title" for one in answer["results"]), match


@pytest.mark.parametrize(
    ("condition", "passing"),
    [
        ("{}", {4, 5, 6}),
        ({"$eq": "{}"}, {4, 5, 6}),
        ({"$ne": "{}"}, {1, 2, 3}),
        ({"$in": ["{}"]}, {4, 5, 6}),
        ({"$nin": ["{}"]}, {1, 2, 3}),
        ({"$gt": "{}"}, set()),
        ({"$gte": "{}"}, {4, 5, 6}),
        ({"$lt": "{}"}, {1, 2, 3}),
        ({"$lte": "{}"}, {1, 2, 3, 4, 5, 6}),
    ],
    ids=str,
)
def test_a_day_in_a_condition_is_the_whole_day(house: Recorded, condition: Any, passing: set[int]) -> None:
    second = datetime.fromtimestamp((START + DAY) / 1000)
    for day in (f"{second:%Y-%m-%d}", "yesterday"):
        where = json.loads(json.dumps({"time": condition}).replace("{}", day))
        for match in ("hybrid", "literal"):
            assert _ids(_ask(house, where=where, match=match, results=50)) == passing


@pytest.fixture(scope="module")
def thinking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Three old prompts with the name; many newer thoughts, which score less, stand before them in a list by date."""
    with recorded(tmp_path_factory.mktemp("thinking")) as made:
        made.session("old", "/work/old", "Session old")
        for number in range(3):
            made.say("old", "user", f"the kettleBoiler {number}")
        made.session("new", "/work/new", "Session new")
        for number in range(300):
            made.say("new", "assistant", {"type": "reasoning", "text": f"perhaps the kettleBoiler {number}"})
        made.index()
        yield made


@pytest.mark.parametrize("sort", ["relevance", "oldest"])
def test_near_spellings_below_the_threshold_are_said_to_be(thinking: Recorded, sort: str) -> None:
    plain = _ask(thinking, "kettleBoilr", match="smart", sort=sort)
    best = max(one["score"] for one in plain["results"])
    assert _ask(thinking, "kettleBoilr", match="smart", sort=sort, threshold=best)["results"]
    nothing = _ask(thinking, "kettleBoilr", match="smart", sort=sort, threshold=best + 0.01)
    said = "; ".join(nothing["warnings"])
    assert (nothing["results"], "these are results" in said) == ([], False)
    assert "left out" in said
    assert f"the best of score {best:g}" in said


@pytest.mark.parametrize("match", ["literal", "regex"])
def test_results_behind_newer_reasoning_reach_a_high_threshold(thinking: Recorded, match: str) -> None:
    """The newest 300 score less, and stand before the three prompts."""
    answer = _ask(thinking, "kettleBoiler", match=match, threshold=0.95)
    assert _ids(answer) == {1, 2, 3}
    assert {one["score"] for one in answer["results"]} == {1.0}
    assert "`threshold` 0.95 left out 300 results, the best of score 0.9" in answer["warnings"]


def test_a_threshold_is_looked_behind_within_one_session(tmp_path: Path) -> None:
    with recorded(tmp_path) as made:
        made.session("only", "/work/only", "Session only")
        made.say("only", "user", "the kettleBoiler")
        for number in range(120):
            made.say("only", "assistant", {"type": "reasoning", "text": f"perhaps the kettleBoiler {number}"})
        made.index()
        answer = _ask(made, "kettleBoiler", match="literal", threshold=0.95, sessionID="only")
    assert [one["messageID"] for one in answer["results"]] == ["msg_0001"]
    assert "`threshold` 0.95 left out 120 results, the best of score 0.9" in answer["warnings"]


def test_what_a_threshold_left_out_of_a_cut_list_is_at_least_so_much(thinking: Recorded) -> None:
    """By meaning a list ends with the nearest: more below the threshold may follow."""
    answer = _ask(thinking, "kettleBoiler", match="semantic", threshold=1)
    [said] = [warning for warning in answer["warnings"] if "left out" in warning]
    assert re.match(r"`threshold` 1 left out at least \d+ results, the best of score 0\.", said)
    assert answer["results"] == []


def test_a_sorted_near_spelling_is_not_said_to_hold_the_words(thinking: Recorded) -> None:
    said = "; ".join(_ask(thinking, "kettleBoilr", match="smart", sort="oldest")["warnings"])
    assert "that contain what was searched for instead" in said
    assert "contain all of the words" not in said
