"""Results by date: of all that hold what was asked for, in every mode and group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.model import Json
from daemon.recall.query import Recall
from daemon.recall.ranking import tiers
from tests.support.stores.recorded_sessions import Recorded, recorded

MODES = ("hybrid", "smart", "literal", "fuzzy", "regex", "semantic")
NUMBER = 40


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Forty messages with the word, the older the better they fit; the newest of all hold other words."""
    with recorded(tmp_path_factory.mktemp("dated")) as made:
        for sid in ("one", "two"):
            made.session(sid, f"/work/{sid}", f"Session {sid}")
        for number in range(NUMBER):
            made.say(("one", "two")[number % 2], "user", f"kettle {'filler ' * number} number {number}")
        made.say("one", "assistant", "nothing of the sort is said here")
        made.index()
        yield made


def _ask(house: Recorded, query: str, **asked: Any) -> Json:
    return house.recall(budget_s=60.0).answer(Recall(query=query, **asked), "", None)


@pytest.mark.parametrize("match", MODES)
@pytest.mark.parametrize("group", ["part", "message"])
def test_the_newest_or_oldest_of_all_come_first(house: Recorded, match: str, group: str) -> None:
    newest = _ask(house, "kettle", match=match, sort="newest", group=group, results=5)
    oldest = _ask(house, "kettle", match=match, sort="oldest", group=group, results=5)
    times = [one["time"] for one in newest["results"]]
    assert times == sorted(times, reverse=True)
    assert [one["time"] for one in oldest["results"]] == sorted(one["time"] for one in oldest["results"])
    assert oldest["results"][0]["messageID"] == "msg_0001"
    if match != "semantic":  # which has but those that are near enough
        assert [one["messageID"] for one in newest["results"]] == [f"msg_{NUMBER - n:04d}" for n in range(5)]
        assert (newest["total"], newest["truncated"], newest["sort"]) == (NUMBER, True, "newest")
    [said] = [warning for warning in newest["warnings"] if "sorted by date" in warning]
    assert f"newest first: {newest['total']} results that" in said


@pytest.mark.parametrize("group", ["session", "project"])
@pytest.mark.parametrize("match", ["hybrid", "literal"])
def test_a_group_stands_at_the_date_of_its_newest_match(house: Recorded, match: str, group: str) -> None:
    first = _ask(house, "kettle", match=match, sort="newest", group=group)["results"][0]
    assert (first["messageID"], first["sessionID"]) == (f"msg_{NUMBER:04d}", "two")


def test_what_is_only_similar_does_not_come_first_for_being_newer(house: Recorded) -> None:
    answer = _ask(house, "kettle number 3", sort="newest")
    assert "contains all of the words" in "".join(answer["warnings"])
    assert [one["messageID"] for one in answer["results"]] == ["msg_0004"]


@pytest.mark.parametrize("match", ["hybrid", "smart"])
def test_a_short_text_must_be_more_similar_also_by_date(tmp_path: Path, match: str) -> None:
    with recorded(tmp_path, {"urn": "pot"}) as made:
        made.session("one", "/work/one", "Session one")
        made.say("one", "user", "good morning")
        longer = made.say("one", "user", "pot pot pot")
        made.say("one", "user", "pot")
        made.index()
        answer = _ask(made, "urn quay jib gate", match=match, sort="newest")
    assert [one["messageID"] for one in answer["results"]] == [longer]
    assert "sorted by date, newest first: 1 result that is similar in meaning" in answer["warnings"]


def test_farther_directories_are_sorted_with_the_near_ones(house: Recorded) -> None:
    answer = _ask(house, "kettle", sort="newest", directory="/work/one", fallback=True, results=50)
    times = [one["time"] for one in answer["results"]]
    assert (len(times), times) == (NUMBER, sorted(times, reverse=True))


@pytest.mark.parametrize("match", ["literal", "smart"])
def test_a_limit_of_what_was_sorted_is_said(house: Recorded, monkeypatch: pytest.MonkeyPatch, match: str) -> None:
    monkeypatch.setattr("daemon.recall.ranking.DEPTH", 10)
    answer = _ask(house, "kettle", match=match, sort="newest", results=50)
    assert 10 <= len(answer["results"]) < NUMBER
    assert answer["truncated"] is True
    assert f"only the {tiers.DEPTH} best" in "".join(answer["warnings"])


@pytest.mark.parametrize("match", ["literal", "regex"])
def test_the_oldest_that_hold_a_text_are_found_however_many_are_newer(
    house: Recorded, monkeypatch: pytest.MonkeyPatch, match: str
) -> None:
    monkeypatch.setattr("daemon.recall.ranking.DEPTH", 10)
    answer = _ask(house, "kettle", match=match, sort="oldest", results=50)
    assert [one["messageID"] for one in answer["results"]] == [f"msg_{n + 1:04d}" for n in range(NUMBER)]
    assert answer["truncated"] is False


def test_nothing_is_sorted_where_nothing_is_found(house: Recorded) -> None:
    answer = _ask(house, "xyzzyplugh", match="literal", sort="oldest")
    assert (answer["results"], "sorted by date" in "".join(answer["warnings"])) == ([], False)


def test_a_single_result_is_spoken_of_as_one(house: Recorded) -> None:
    [said] = [each for each in _ask(house, "kettle number 3", sort="newest")["warnings"] if "sorted by date" in each]
    assert "1 result that contains all of the words" in said
