"""Questions that name days as seen from now, asked of a real archive."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from daemon.days import in_zone
from daemon.model import Json
from daemon.recall.query import Recall
from tests.support.stores.recorded_sessions import START, Recorded, call, recorded

DAY = 86_400_000
WEEK = 7 * DAY
NOW = START + 3 * WEEK  # START is a Wednesday


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house")) as made:
        made.session("ses_a", "/work/shop", "Shop")
        made.say("ses_a", "user", "Traceback, most recent call last: the checkout failed.")
        made.say("ses_a", "assistant", "The checkout failed because of the lamp.")
        made.clock = NOW - WEEK
        made.say("ses_a", "user", "Please mend the checkout once more.")
        made.say("ses_a", "assistant", "I changed the refund of the checkout.")
        made.clock = NOW - DAY
        made.say("ses_a", "user", "Add a page for the lamp.")
        made.say("ses_a", "assistant", "The page stands.", call("write", filePath="/work/shop/lamp.html"))
        made.index()
        yield made


def _ask(house: Recorded, query: str, **more) -> Json:
    return house.recall().answer(Recall(query=query, **more), now=NOW)


def _ids(answer: Json) -> list[str]:
    return [one["messageID"] for one in answer["results"]]


# question, its results
ALONE = {
    "what did I do yesterday": ["msg_0005"],
    "yesterday": ["msg_0005"],
    "what happened last week?": ["msg_0003"],
    "what did I ask in the last 8 days": ["msg_0005", "msg_0003"],
    "what did we do since last week": ["msg_0005", "msg_0003"],
}


@pytest.mark.parametrize(
    ("zone", "ids"),
    [
        ("UTC", ["msg_0003"]),
        ("Etc/GMT+12", ["msg_0003", "msg_0004", "msg_0005"]),
        ("Pacific/Kiritimati", ["msg_0003", "msg_0004"]),
    ],
)
def test_yesterday_is_the_callers(tmp_path, zone: str, ids: list[str]):
    """It is 12:00 UTC: midnight 12 hours to the west, and two in the morning of the next day 14 hours to the east."""
    noon = 1_795_435_200_000
    with recorded(tmp_path) as made:
        made.session("ses_a", "/work/shop", "Shop")
        for hours in (60, 40, 20, 6, 1):
            made.clock = noon - hours * 3_600_000
            made.say("ses_a", "user", f"the checkout {hours} hours before")
        made.index()
        with in_zone(zone):
            answer = made.recall().answer(Recall(query="what did I do yesterday", match="smart"), now=noon)
    assert sorted(_ids(answer)) == ids


SINCE = {
    "what did I do since November": ["msg_0005", "msg_0003", "msg_0001"],
    "what did I do after the 24th of November": ["msg_0005", "msg_0003"],
    "what did I do until 24 November 2026": ["msg_0001"],
}


@pytest.mark.parametrize(("question", "ids"), SINCE.items())
def test_since_a_month_or_day_is_until_now(house: Recorded, question: str, ids: list[str]):
    assert _ids(_ask(house, question, match="smart")) == ids


@pytest.mark.parametrize("match", ["hybrid", "smart"])
@pytest.mark.parametrize(("question", "ids"), ALONE.items())
def test_a_question_of_days_alone_lists_the_prompts_of_then(house: Recorded, question: str, ids: list[str], match: str):
    answer = _ask(house, question, match=match)
    assert _ids(answer) == ids
    assert "these are the prompts from" in answer["warnings"][0]


@pytest.mark.parametrize(
    ("question", "limits", "ids"),
    [
        ("what happened yesterday", {"role": "assistant"}, ["msg_0006"]),
        ("what did I do last week", {"where": {"role": "assistant"}}, ["msg_0004"]),
        ("what happened yesterday", {"toolName": "write"}, ["msg_0006"]),
        ("what happened yesterday", {"type": "tool"}, ["msg_0006"]),
    ],
)
def test_with_filters_days_alone_list_what_passes_them(house: Recorded, question: str, limits: Json, ids: list[str]):
    answer = _ask(house, question, **limits)
    assert _ids(answer) == ids
    assert "these are the messages within the filters from" in answer["warnings"][0]


def test_days_alone_say_where_their_newest_messages_pass_no_filter(house: Recorded):
    where = {"$or": [{"role": "assistant"}, {"kind": "tool_output"}]}
    answer = _ask(house, "what happened last week", where=where)
    assert not answer["results"]
    assert any(said.startswith("none of the newest messages from 20") for said in answer["warnings"])


def test_words_of_days_are_no_words_where_there_are_messages_of_then(house: Recorded):
    answer = _ask(house, "the checkout last week", match="smart")
    assert set(_ids(answer)[:2]) == {"msg_0003", "msg_0004"}
    assert all("last" not in one["matchedTerms"] for one in answer["results"])
    answer = _ask(house, "checkout call last year", match="smart")
    assert _ids(answer)[0] == "msg_0001"
    assert "last" in answer["results"][0]["matchedTerms"]


def test_days_without_a_message_are_named(house: Recorded):
    warnings = _ask(house, "what did I do 3 days ago", match="smart")["warnings"]
    assert any(said.startswith("no message is from '3 days ago' (20") for said in warnings)
    assert not any("no message is" in said for said in _ask(house, "checkout yesterday", match="smart")["warnings"])
    warnings = _ask(house, "checkout yesterday", match="smart", role="assistant", before="last week")["warnings"]
    assert any(said.startswith("no message within the filters is from 'yesterday'") for said in warnings)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Traceback yesterday", r"none of these results is from 'yesterday' \(\S+\); `after` and `before`"),
        ("the checkout last week", r"2 of 4 results are not from 'last week' \(\S+ to \S+\); `after` and `before`"),
    ],
)
def test_results_that_are_not_of_the_days_are_counted(house: Recorded, question: str, said: str):
    answer = _ask(house, question, match="smart")
    assert any(re.match(said, warning) for warning in answer["warnings"]), answer["warnings"]


def test_results_of_the_days_need_no_word(house: Recorded):
    warnings = _ask(house, "lamp yesterday", match="smart", after="yesterday")["warnings"]
    assert not any("results" in said for said in warnings)


@pytest.mark.parametrize("question", ["what was decreed in November", "May I veto the lamp on 2 Dec 2026"])
def test_what_was_read_as_a_day_is_no_missing_word(house: Recorded, question: str):
    warnings = _ask(house, question)["warnings"]
    missing = [said for said in warnings if "no current text" in said]
    assert missing
    assert not any(re.search("nov|dec\\b", said, re.IGNORECASE) for said in missing), missing


def test_what_is_quoted_is_no_day(house: Recorded):
    assert _ids(_ask(house, '"call last"', match="smart")) == ["msg_0001"]


@pytest.mark.parametrize(
    ("limits", "ids"),
    [
        ({"after": "last week", "before": "this week"}, {"msg_0003"}),
        ({"after": "yesterday"}, {"msg_0005"}),
        ({"before": "last week"}, {"msg_0001"}),
        ({"since": "8 days ago", "until": "yesterday"}, {"msg_0003", "msg_0005"}),
    ],
)
def test_days_limit_a_search(house: Recorded, limits: Json, ids: set[str]):
    answer = _ask(house, "checkout lamp call", match="smart", role="user", **limits)
    assert set(_ids(answer)) == ids


def test_a_day_that_is_not_understood_is_warned_of_with_examples(house: Recorded):
    [warning] = [said for said in _ask(house, "checkout", after="next weak")["warnings"] if "`after`" in said]
    assert re.search(r"`after` 'next weak'.*'last week'.*it was ignored", warning)
