"""The call recall: what clients ask becomes the answer they are promised, by real indexes."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.archive import CONTENTS
from daemon.errors import BadRequest, IndexBroken, ModelUnavailable
from daemon.index import Filters, Match
from daemon.ingest.outbox import LexicalDrain
from daemon.model import Json, Session
from daemon.recall import candidates, weights
from daemon.recall.catalog import Catalog
from daemon.recall.query import Recall
from daemon.recall.ranking.plan import Budget
from tests.support.stores.recorded_sessions import (
    MINUTE,
    START,
    FailingLexical,
    FailingModel,
    Recorded,
    WordEmbedder,
    call,
    recorded,
)

SECRET = "ghp_" + "a1B2" * 9
PATIENT = 60.0
"""Seconds; where the time budget is not what is tested, a busy machine shall not spend it."""


def _session(house: Recorded, sid: str, directory: str, **fields: Any) -> str:
    house.clock += MINUTE
    told = {"project_id": "prj", "title": sid, "archived": None, "parent_id": None} | fields
    batch = house.archive.batch()
    batch.session(
        Session(id=sid, directory=directory, created=house.clock, updated=house.clock, raw=b"{}", **told), "test", 2
    )
    house.archive.commit(batch)
    return sid


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house"), {"car": "vehicle", "automobile": "vehicle"}) as made:
        _session(made, "shop", "/work/shop", project_id="shop", title="Rate limits of the shop")
        made.say("shop", "user", "Please add a rate limit to the checkout service.")
        pruned = call("bash", output="rateLimit=5 and much besides", command="env | sort")
        pruned["state"]["time"] = {"start": made.clock, "end": made.clock, "compacted": made.clock}
        made.say("shop", "assistant", {"type": "reasoning", "text": "A prefilter would be too slow."}, pruned)
        made.say("shop", "assistant", "I set rateLimit to 5.")
        _session(made, "web", "/work/shop/web", project_id="shop", title=f"Pages {SECRET}")
        made.say("web", "user", "My automobile needs a page, and so does the checkout.")
        made.say("web", "assistant", "The page for rateLimiter statistics is done.")
        _session(made, "tree", "/trees/shop", project_id="shop", title="A second tree")
        made.say("tree", "user", "The checkout of the second tree is broken.")
        _session(made, "other", "/elsewhere", project_id="other", title="Errors", archived=7)
        made.say(
            "other", "assistant", call("bash", status="error", error="ECONNREFUSED by the checkout", command="run")
        )
        made.say("other", "user", "Where is the kettle of the canteen?")
        made.delete("msg_0008")
        made.index()
        yield made


def _ask(house: Recorded, query: str, here: str = "", now: int | None = None, **asked: Any) -> Json:
    return house.recall(budget_s=PATIENT).answer(Recall(query=query, **asked), here, now)


def _ids(answer: Json) -> list[str]:
    return [one["messageID"] for one in answer["results"]]


def _said(answer: Json) -> str:
    return "\n".join(answer["warnings"])


def test_a_question_does_not_go_through_the_files_of_the_archive(house: Recorded):
    seen: list[str] = []
    is_asking = True

    def hear(event: str, told: tuple[Any, ...]) -> None:
        if is_asking and event in {"os.scandir", "os.listdir"}:
            seen.append(str(told[0]))

    sys.addaudithook(hear)  # for good: there is no way to take it away
    answer = _ask(house, "checkout", match="literal")
    is_asking = False
    assert answer["coverage"]["messages"] == house.archive.figures()["messages"]
    assert [path for path in seen if str(house.archive.directory) in path] == []


# -- modes -----------------------------------------------------------------------------------------------------------

MODES = {
    "literal": ("CHECKOUT service", ["msg_0001"]),
    "smart": ("services limiting", ["msg_0001"]),
    "fuzzy": ("prefiltr", ["msg_0002"]),
    "regex": (r"ECONN[A-Z]{7}\b", ["msg_0007"]),
    "semantic": ("car", ["msg_0004"]),
    "hybrid": ("rate limit checkout service", ["msg_0001"]),
}


@pytest.mark.parametrize(("match", "query", "first"), [(match, *case) for match, case in MODES.items()])
def test_each_mode_finds_what_it_is_for(house: Recorded, match: str, query: str, first: list[str]):
    answer = _ask(house, query, match=match)
    assert _ids(answer)[:1] == first
    assert answer["matchMode"] == match
    assert answer["degradeKind"] == "none"
    assert all(0 <= one["score"] <= 1 for one in answer["results"])


def test_scores_fall_along_the_list_in_every_mode_and_group(house: Recorded):
    for match in MODES:
        for group in ("part", "message", "session", "project"):
            scores = [one["score"] for one in _ask(house, "checkout", match=match, group=group)["results"]]
            assert scores == sorted(scores, reverse=True), (match, group)


def test_a_corrected_spelling_says_so_and_ranks_below_the_exact_word(house: Recorded):
    near = _ask(house, "ECONNREFUSD", match="fuzzy")
    assert near["results"][0]["near"][0][1].upper() == "ECONNREFUSED"
    assert near["results"][0]["why"]["confidence"] == "low"
    assert "'econnrefusd'" in _said(near).lower()
    exact = _ask(house, "checkout", match="fuzzy")
    kinds = ["near" in one for one in exact["results"]]
    assert kinds == sorted(kinds)


def test_what_was_said_stands_above_what_tools_printed_in_literal_too(house: Recorded):
    assert _ids(_ask(house, "ratelimit", match="literal")) == ["msg_0005", "msg_0003", "msg_0002"]
    assert _ids(_ask(house, "ratelimit", match="literal", type="tool")) == ["msg_0002"]


def test_a_bad_regular_expression_is_refused(house: Recorded):
    with pytest.raises(BadRequest):
        _ask(house, "(", match="regex")


@pytest.mark.parametrize("query", ["", "  \n", "x" * 10_001])
def test_what_is_no_query_is_refused(house: Recorded, query: str):
    with pytest.raises(BadRequest, match="query"):
        _ask(house, query)


# -- what is not there -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("match", ["hybrid", "smart"])
def test_an_absent_identifier_is_answered_by_its_nearest_spelling(house: Recorded, match: str):
    answer = _ask(house, "rateLimitr", match=match)
    other = answer["results"][0]["near"][0][1]
    assert other.lower() in {"ratelimit", "ratelimiter"}
    assert f"'rateLimitr'; these are results for {other!r}" in _said(answer)
    others = {suggestion["example"]["query"].lower() for suggestion in answer["suggestions"]}
    assert others <= {"ratelimit", "ratelimiter"} - {other.lower()}  # not what was searched for


@pytest.mark.parametrize("match", ["hybrid", "smart"])
def test_an_identifier_like_none_that_is_there_has_no_results(house: Recorded, match: str):
    answer = _ask(house, "quuxLimitr", match=match)
    assert answer["results"] == []
    assert "'quuxLimitr'" in _said(answer)


def test_absent_words_are_named_and_results_are_called_similar(house: Recorded):
    for match in ("hybrid", "smart"):
        answer = _ask(house, "car", match=match)
        assert _ids(answer)[:1] == ["msg_0004"], match
        assert {one["matchMode"] for one in answer["results"]} == {"semantic"}
        assert "'car'" in _said(answer)
        assert "similar in meaning" in _said(answer)
        assert answer["onlySimilar"] is True
    assert answer["degradeKind"] == "fallback"
    assert answer["matchMode"] == "semantic"


def test_smart_falls_back_to_near_spellings_before_meaning(house: Recorded):
    answer = _ask(house, "kettel cantene", match="smart")
    assert _ids(answer) == ["msg_0008"]
    assert (answer["matchMode"], answer["degradeKind"], answer["onlySimilar"]) == ("fuzzy", "fallback", True)
    assert "similar spellings" in _said(answer)
    assert {there for _, there in answer["results"][0]["near"]} == {"kettle", "canteen"}


def test_a_malformed_time_is_warned_of_and_ignored(house: Recorded):
    every = _ask(house, "checkout", match="literal", results=50)
    for name in ("before", "after", "from_", "to", "since", "until", "last"):
        answer = _ask(house, "checkout", match="literal", results=50, **{name: "yesteryear"})
        assert _ids(answer) == _ids(every), name
        assert "'yesteryear'" in answer["warnings"][0]
        assert "it was ignored" in answer["warnings"][0]


@pytest.mark.parametrize(
    "more", [{"role": "user", "kinds": ["answer"]}, {"role": "assistant", "kinds": ["prompt"]}], ids=str
)
def test_a_role_that_has_no_such_texts_is_said(house: Recorded, more: dict[str, Any]):
    answer = _ask(house, "checkout", **more)
    assert f"`role={more['role']}`: such messages hardly have any" in _said(answer)


@pytest.mark.parametrize(
    ("query", "more", "is_only_similar"),
    [
        ("checkout", {}, False),
        ("checkout", {"match": "literal"}, False),
        ("checkout", {"match": "semantic"}, False),
        ("ECONNREFUSD", {"match": "fuzzy"}, True),
        ("quuxLimitr", {}, False),
        ("why does quuxLimitr break the checkout", {}, False),
    ],
    ids=["by words", "literal", "by meaning, as asked", "near spelling", "nothing", "words beside a name"],
)
def test_an_answer_tells_whether_results_are_only_similar(
    house: Recorded, query: str, more: dict[str, str], is_only_similar: bool
) -> None:
    answer = _ask(house, query, **more)
    assert bool(answer["results"]) is (query != "quuxLimitr")
    assert answer["onlySimilar"] is is_only_similar
    assert ("contain other words of the query" in _said(answer)) is query.startswith("why does")


def test_what_its_neighbours_and_its_meaning_found_is_no_match_by_words(tmp_path: Path):
    with recorded(tmp_path, {"car": "vehicle", "automobile": "vehicle"}) as made:
        _session(made, "garage", "/w")
        made.say("garage", "user", "a car")
        made.say("garage", "assistant", "an automobile")
        made.index()
        found = {one["messageID"]: one for one in _ask(made, "car", explain=True)["results"]}
        assert found["msg_0001"]["matchMode"] == "hybrid"
        assert "neighbours" in "".join(found["msg_0002"]["matchReasons"])
        assert (found["msg_0002"]["matchMode"], found["msg_0002"]["matchedTerms"]) == ("semantic", [])
        assert "text" not in found["msg_0002"]["why"]["matchedFields"]
        assert "contains no word of the query" in "".join(found["msg_0002"]["matchReasons"])
        assert "only similar in meaning" in _said(_ask(made, "car"))
        assert _ask(made, "car", group="session")["results"][0]["hitCount"] == 1


def test_a_short_text_must_be_more_similar_also_below_results_by_words(tmp_path: Path):
    with recorded(tmp_path, {"car": "vehicle", "auto": "vehicle"}) as made:
        _session(made, "garage", "/w")
        by_words = made.say("garage", "user", "car horn lamp seat and much else besides")
        _session(made, "yard", "/w")
        made.say("yard", "user", "good morning")
        made.say("yard", "user", "auto")
        longer = made.say("yard", "user", "auto auto auto")
        made.index()
        answer = _ask(made, "car horn lamp seat")
        assert _ids(answer) == [by_words, longer]
        assert answer["total"] == 2
        assert len(_ids(_ask(made, "car horn lamp seat", match="semantic"))) == 4


def test_messages_found_by_their_date_alone_do_not_only_follow_others(house: Recorded):
    """The window of a message has its day, so a month without "in" finds the messages of that month."""
    answer = _ask(house, "November", match="smart", explain=True)
    assert answer["results"]
    assert "only the titles or dates of these messages, or messages before them" in _said(answer)
    assert "its title or date, or the messages before it" in "".join(answer["results"][0]["matchReasons"])


def test_an_absent_name_in_a_question_is_named(house: Recorded):
    answer = _ask(house, "what about getCheckout for my page")
    assert answer["results"]
    assert "'getCheckout'" in _said(answer)


def test_a_longer_name_stands_below_the_name_itself(house: Recorded):
    assert _ids(_ask(house, "rateLimit"))[-1:] != ["msg_0001"]
    found = _ids(_ask(house, "rateLimit"))
    assert set(found[:3]) == {"msg_0001", "msg_0002", "msg_0003"}
    assert found[3:] in ([], ["msg_0005"])


# -- filters ---------------------------------------------------------------------------------------------------------

FILTERS = {
    "session": ({"sessionID": "web"}, {"msg_0004"}),
    "project": ({"projectID": "shop"}, {"msg_0001", "msg_0004", "msg_0006"}),
    "directory": ({"directory": "/work/shop"}, {"msg_0001", "msg_0004"}),
    "exactly a directory": ({"directory": "/work/shop", "within": "exact"}, {"msg_0001"}),
    "the project of a directory": ({"directory": "/work", "within": "project"}, {"msg_0001", "msg_0004", "msg_0006"}),
    "role": ({"role": "assistant"}, {"msg_0007"}),
    "type": ({"type": "tool"}, {"msg_0007"}),
    "kinds": ({"kinds": ["prompt"]}, {"msg_0001", "msg_0004", "msg_0006"}),
    "tool": ({"toolName": "bash"}, {"msg_0007"}),
    "title": ({"title": "second"}, {"msg_0006"}),
    "archived": ({"archived": "only"}, {"msg_0007"}),
    "not archived": ({"archived": "exclude"}, {"msg_0001", "msg_0004", "msg_0006"}),
    "time": ({"before": START + 5 * MINUTE}, {"msg_0001"}),
    "sessions": ({"sessions": 2}, {"msg_0006", "msg_0007"}),
}


@pytest.mark.parametrize(("asked", "expected"), FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("match", ["smart", "literal", "fuzzy", "regex"])
def test_filters_hold_inside_the_query(house: Recorded, asked: Json, expected: set[str], match: str):
    assert set(_ids(_ask(house, "checkout", match=match, results=10, **asked))) == expected


@pytest.mark.parametrize(("asked", "expected"), FILTERS.values(), ids=FILTERS)
def test_filters_hold_for_meaning_as_well(house: Recorded, asked: Json, expected: set[str]):
    sessions = {one["sessionID"] for one in _ask(house, "checkout", **asked)["results"]}
    section_filter = {
        one["sessionID"] for one in _ask(house, "checkout", match="literal", results=50, **asked)["results"]
    }
    assert sessions >= section_filter
    if {"sessionID", "projectID", "directory", "title", "archived"} & set(asked):
        assert sessions == section_filter


def test_what_openCode_deleted_is_found_said_to_be_and_filtered_by(house: Recorded):
    found = _ask(house, "kettle canteen", match="smart")
    assert found["results"][0]["deleted"] is True
    assert "deleted in OpenCode" in _said(found)
    assert _ids(_ask(house, "kettle", match="literal", deleted="exclude")) == []
    assert _ids(_ask(house, "kettle canteen", match="smart", deleted="only")) == ["msg_0008"]


def test_a_filter_that_fits_no_session_is_named_with_a_hint_of_the_rest(house: Recorded):
    answer = _ask(house, "kettle", directory="/work/none")
    assert answer["results"] == []
    assert answer["coverage"]["eligible"] == 0
    assert answer["coverage"]["limitedBy"] == ["directory"]
    assert "`directory` '/work/none'" in _said(answer)
    assert answer["suggestions"][0]["example"] == {"query": "kettle"}
    assert answer["nearMisses"][0]["sessionID"] == "other"
    assert "directory" in answer["nearMisses"][0]["reason"]


def test_filters_that_leave_nothing_are_suggested_to_be_left_out(house: Recorded):
    answer = _ask(house, "kettle", match="smart", projectID="shop", role="user", type="text")
    assert answer["results"] == []
    suggestion = next(one for one in answer["suggestions"] if "limited by" in one["reason"])
    assert suggestion["example"] == {"query": "kettle", "match": "smart"}
    assert "no current text within the filters contains 'kettle'" in _said(answer)
    assert answer["nearMisses"][0]["sessionID"] == "other"


def test_scopes_are_taken_from_where_the_caller_stands(house: Recorded):
    project = _ask(house, "checkout", "/work/shop/web/src", match="smart", scope="project")
    assert set(_ids(project)) == {"msg_0001", "msg_0004", "msg_0006"}
    assert "taken to be project shop" in _said(project)
    session = _ask(house, "checkout", "/work/shop", match="smart", scope="session")
    assert _ids(session) == ["msg_0001"]
    with pytest.raises(BadRequest, match="`scope=session`"):
        _ask(house, "checkout", scope="session")


def test_a_fallback_fills_up_from_the_project_and_then_from_everywhere(house: Recorded):
    answer = _ask(house, "checkout", match="smart", directory="/work/shop/web", fallback=True)
    relevance = [(one["messageID"], one["directoryRelevance"]) for one in answer["results"]]
    assert relevance[0] == ("msg_0004", "exact")
    assert set(relevance[1:3]) == {("msg_0001", "project"), ("msg_0006", "project")}
    assert relevance[3] == ("msg_0007", "global")
    assert answer["degradeKind"] == "fallback"
    assert "beyond the directory" in _said(answer)
    enough = _ask(house, "checkout", match="smart", directory="/work/shop/web", fallback=True, results=1)
    assert [one["directoryRelevance"] for one in enough["results"]] == ["exact"]


# -- the answer ------------------------------------------------------------------------------------------------------


def test_a_result_says_where_it_is_from_and_why_it_was_found(house: Recorded):
    answer = _ask(house, "rate limit service", "/work/shop", now=START + 10 * 86_400_000, explain=True)
    one = answer["results"][0]
    assert one | {"matchReasons": [], "why": {}, "score": 1.0} == {
        "sessionID": "shop",
        "sessionTitle": "Rate limits of the shop",
        "directory": "/work/shop",
        "projectID": "shop",
        "messageID": "msg_0001",
        "role": "user",
        "time": START + 2 * MINUTE,
        "partID": "prt_0001_0",
        "partType": "text",
        "kind": "prompt",
        "pruned": False,
        "deleted": False,
        "archived": False,
        "snippet": "Please add a rate limit to the checkout service.",
        "score": 1.0,
        "matchMode": "hybrid",
        "matchedTerms": ["rate", "limit", "service"],
        "source": "message",
        "hitCount": 2,
        "titleMatch": {"title": "Rate limits of the shop", "matchedTerms": ["rate", "limit"]},
        "directoryRelevance": "exact",
        "matchReasons": [],
        "why": {},
    }
    assert one["why"]["confidence"] == "high"
    assert one["why"]["recency"] == "older"
    assert "words add" in one["matchReasons"][0]


def test_reasons_are_only_told_where_they_are_asked_for(house: Recorded):
    assert "matchReasons" not in _ask(house, "checkout")["results"][0]


def test_a_pruned_output_is_found_and_said_to_be_pruned(house: Recorded):
    one = _ask(house, "much besides", match="literal")["results"][0]
    assert (one["pruned"], one["toolName"], one["kind"], one["partType"]) == (True, "bash", "tool_output", "tool")
    assert (one["source"], one["why"]["matchedFields"]) == ("tool", ["stdout"])


def test_a_title_is_a_kind_of_its_own(house: Recorded):
    one = _ask(house, "second tree", match="smart", kinds=["title"])["results"][0]
    assert (one["source"], one["partType"], one["sessionID"]) == ("title", "title", "tree")


def test_groups_count_their_hits_and_show_the_best(house: Recorded):
    parts = _ask(house, "rateLimit", match="smart", group="part")
    assert len({(one["messageID"], one["partID"], one["kind"]) for one in parts["results"]}) == len(parts["results"])
    assert "hitCount" not in parts["results"][0]
    sessions = _ask(house, "checkout", match="smart", group="session")
    assert len({one["sessionID"] for one in sessions["results"]}) == len(sessions["results"]) == 4
    projects = _ask(house, "checkout", match="smart", group="project")
    assert {one["projectID"]: one["hitCount"] for one in projects["results"]} == {"shop": 3, "other": 1}
    assert projects["group"] == "project"


def test_a_page_says_whether_there_is_more(house: Recorded):
    page = _ask(house, "checkout", match="smart", results=1)
    assert (len(page["results"]), page["total"], page["truncated"]) == (1, 4, True)
    assert _ask(house, "checkout", match="smart")["truncated"] is False


def test_what_is_not_near_enough_is_not_said_to_be_more(tmp_path: Path):
    with recorded(tmp_path, {"car": "vehicle", "automobile": "vehicle"}) as made:
        _session(made, "garage", "/w")
        made.say("garage", "user", "an automobile")
        for number in range(60):
            made.say("garage", "assistant", f"lines of something{' else' * number}")
        made.index()
        found = _ask(made, "car", match="smart")
        assert (found["matchMode"], found["total"], found["truncated"]) == ("semantic", 1, False)
        nothing = _ask(made, "kettle", match="smart")
        assert (nothing["total"], nothing["truncated"]) == (0, False)
        assert _ask(made, "car", match="semantic")["truncated"] is True


class _Illiterate(WordEmbedder):
    """A model that gives a vector to any question and can read none."""

    def legible(self, text: str) -> float:
        return 0.49


@pytest.mark.parametrize(
    ("match", "query", "state", "has_results"),
    [
        ("hybrid", "checkout", "not legible", True),
        ("hybrid", "zeppelin", "not legible", False),
        ("semantic", "checkout", "used", True),
        ("smart", "zeppelin", "not asked", False),
    ],
)
def test_meaning_is_not_trusted_with_a_question_it_cannot_read(
    house: Recorded, match: Any, query: str, state: str, has_results: bool
):
    answer = house.recall(embedder=_Illiterate()).answer(Recall(query=query, match=match, explain=True))
    assert answer["coverage"]["semantic"] == state
    assert bool(answer["results"]) is has_results
    assert all("meaning" not in result["matchReasons"] for result in answer["results"] if match == "hybrid")
    assert answer["degradeKind"] == ("fallback" if state == "not legible" else "none")
    assert "cannot read this question" in _said(answer)
    assert "embedding.model" in _said(answer)


class _Foreigner(WordEmbedder):
    """A model that knows one word of ten."""

    def known_words(self, text: str) -> float:
        return 0.1


@pytest.mark.parametrize("match", ["hybrid", "semantic"])
def test_an_answer_says_that_the_model_knows_few_words_of_the_question(house: Recorded, match: Any):
    recall, question = house.recall(embedder=_Foreigner()), "where is the checkout of every new basket"
    said = [warning for warning in recall.answer(Recall(query=question, match=match))["warnings"] if "few" in warning]
    assert said == [said[0]]
    assert "(10%)" in said[0]
    assert "embedding.model_dir" in said[0]
    assert "few words" not in _said(recall.answer(Recall(query="checkout", match=match)))
    assert "few words" not in _said(_ask(house, question, match=match))


def test_texts_without_vectors_do_not_stand_below_others_that_have_the_words(house: Recorded):
    """The parts of scores by meaning, with all texts legible and with those that hold the word not."""
    query = Recall(query="checkout", match="hybrid", explain=True)
    reason = house.recall().answer(query)["results"][0]["matchReasons"]
    ids = [result["messageID"] for result in house.recall().answer(query)["results"]]
    house.archive.set_note(CONTENTS, "model-1")
    house.archive.put_unread("model-1", dict.fromkeys(ids, True))
    less = house.recall().answer(query)["results"][0]["matchReasons"]
    assert _by_meaning(less) < 0.1 * _by_meaning(reason)
    assert house.archive.unread_among([*ids, "msg_none"]) == set(ids)
    house.archive.put_unread("model-1", dict.fromkeys(ids, False))
    assert house.archive.unread_among(ids) == set()


def _by_meaning(reasons: list[str]) -> float:
    [value] = re.findall(r"meaning adds (\d+\.\d+)", " ".join(reasons))
    return float(value)


def test_an_answer_by_meaning_counts_the_messages_that_the_model_cannot_read(house: Recorded):
    house.archive.set_note(CONTENTS, "model-1")
    house.archive.put_unread("model-1", {"msg_0001": True, "msg_0002": True, "msg_0003": False})
    house.archive.put_unread("model-2", {"msg_0004": True})
    said = "word directions (test) cannot read 2 messages; search by words for them"
    answer = _ask(house, "checkout", match="semantic")
    assert answer["degraded"] == [f"75 % of the messages are indexed by meaning; {said}"]
    assert answer["degraded"][0] in answer["warnings"]
    assert (answer["degradeKind"], answer["coverage"]["unread"]) == ("indexing", 2)
    both = _ask(house, "checkout")
    assert said not in _said(both)
    assert (both["degradeKind"], both["coverage"]["unread"]) == ("none", 2)
    house.archive.put_unread("model-1", {"msg_0001": False, "msg_0002": False})
    assert "cannot read" not in _said(_ask(house, "checkout", match="semantic"))
    house.archive.put_unread("model-2", {"msg_0004": False})


def test_coverage_says_what_was_looked_at(house: Recorded):
    coverage = _ask(house, "checkout", projectID="shop")["coverage"]
    assert (coverage["sessions"], coverage["messages"], coverage["eligible"]) == (4, 8, 3)
    assert (coverage["lexical"], coverage["semantic"]) == ("used", "used")
    assert coverage["limitedBy"] == ["projectID"]
    assert coverage["waiting"] == {"lexical": 0, "semantic": 0, "tools": 0}


def test_nothing_that_is_shown_holds_a_secret(house: Recorded):
    for asked in ({}, {"match": "literal"}, {"title": "none"}, {"directory": f"/{SECRET}"}, {"expand": "context"}):
        assert SECRET not in str(_ask(house, f"automobile {SECRET} page", explain=True, **asked))
        assert SECRET not in str(_ask(house, SECRET, explain=True, **asked))
        assert SECRET not in str(_ask(house, "automobile", explain=True, **asked))


# -- expansion -------------------------------------------------------------------------------------------------------


def test_the_best_results_are_shown_in_full_with_their_context(house: Recorded):
    assert "expanded" not in _ask(house, "checkout")
    message = _ask(house, "rateLimit to 5", match="literal", expand="message")["expanded"]
    assert message[0]["message"]["parts"][0]["content"] == "I set rateLimit to 5."
    assert (message[0]["resultIndex"], message[0]["messageID"], message[0]["mode"]) == (0, "msg_0003", "message")
    context = _ask(house, "rateLimit to 5", match="literal", expand="context", window=1)["expanded"][0]
    assert [item["message"]["id"] for item in context["messages"]] == ["msg_0002", "msg_0003"]
    assert [item.get("center") for item in context["messages"]] == [None, True]
    assert (context["hasMoreBefore"], context["hasMoreAfter"]) == (True, False)
    chat = _ask(house, "rateLimit to 5", match="literal", expand="messages", window=5)["expanded"][0]
    assert [entry["role"] for entry in chat["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_an_automatic_window_is_the_turn(house: Recorded):
    entry = _ask(house, "rateLimit to 5", match="literal", expand="context", window="auto")["expanded"][0]
    assert [item["message"]["id"] for item in entry["messages"]] == ["msg_0001", "msg_0002", "msg_0003"]
    assert entry["hasMoreBefore"] is False


# -- what goes wrong -------------------------------------------------------------------------------------------------


def test_an_index_that_fails_is_told_and_the_other_answers(house: Recorded):
    recall = house.recall(semantic=None, budget_s=PATIENT)
    answer = recall.answer(Recall(query="checkout"))
    assert answer["results"]
    assert (answer["degradeKind"], answer["coverage"]["semantic"]) == ("index", "failed")
    assert any("meaning was not searched" in one for one in answer["degraded"])
    with pytest.raises(ModelUnavailable):
        recall.answer(Recall(query="checkout", match="semantic"))


def test_the_owner_of_an_index_is_told_of_its_failure(house: Recorded):
    told: list[str] = []
    torn = house.recall(
        lexical=FailingLexical(IndexBroken("the word index is torn")),
        on_failure=lambda index, _: told.append(index),
        budget_s=PATIENT,
    )
    answer = torn.answer(Recall(query="car"))
    assert _ids(answer)[:1] == ["msg_0004"]
    assert "the word index is torn" in _said(answer)
    assert "lexical" in told
    with pytest.raises(IndexBroken, match="torn"):
        torn.answer(Recall(query="car", match="literal"))


@contextmanager
def time_over_after(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """The time of a search is over as soon as the threads of this name have ended, however long they take."""

    def join_thread(_deadline: float) -> float:
        for thread in threading.enumerate():
            if thread.name == name:
                thread.join(PATIENT)
        return 0.0

    with monkeypatch.context() as patched:
        patched.setattr(candidates, "seconds_until", join_thread)
        yield


class _SlowModel(FailingModel):
    """Fault injection: a model that takes longer than anybody waits: until `gate` is open."""

    gate = threading.Event()

    def embed(self, texts: Any) -> list[Any]:
        self.gate.wait(60)
        return super().embed(texts)


def test_what_is_not_there_in_time_is_left_out_and_said(house: Recorded, monkeypatch: pytest.MonkeyPatch):
    slow = house.recall(embedder=_SlowModel(RuntimeError("too late")), budget_s=PATIENT)
    with time_over_after(monkeypatch, "recall lexical"):
        answer = slow.answer(Recall(query="checkout"))
    _SlowModel.gate.set()
    assert answer["results"]
    assert answer["degradeKind"] == "time"
    assert "meaning was not searched" in "".join(answer["degraded"])
    assert "timeBudget" in answer["coverage"]["limitedBy"]


class _Behind:
    """Fault injection: an index that has a message which the archive does not."""

    def __init__(self, lexical: Any) -> None:
        self._lexical = lexical

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lexical, name)

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        ghost = Match("msg_ghost", 99.0, "prt", "prompt", text=query, terms=(query,))
        return [ghost, *self._lexical.search(query, filters, limit, least_prose=least_prose)]


class _SlowLiteral(_Behind):
    """Fault injection: an index that takes longer for a literal than anybody waits; it notes what it was asked."""

    def __init__(self, lexical: Any) -> None:
        super().__init__(lexical)
        self.kinds: list[tuple[str, ...]] = []

    def literal(self, text: str, filters: Filters, limit: int) -> list[Match]:
        self.kinds.append(filters.kinds)
        time.sleep(0.6)
        return self._lexical.literal(text, filters, limit)


def test_what_nobody_waits_for_any_more_is_not_begun(house: Recorded):
    slow = _SlowLiteral(house.lexical)
    answer = house.recall(lexical=slow, budget_s=0.3).answer(Recall(query="checkout", match="literal"))
    for thread in threading.enumerate():
        if thread.name == "recall lexical":
            thread.join()
    assert not any("tool_output" in kinds for kinds in slow.kinds)
    assert answer["degradeKind"] == "time"


def test_an_answer_that_is_due_says_what_was_cut_for_time(house: Recorded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Budget, "end", property(lambda _: 0.0))
    answer = _ask(house, "checkout", match="literal", expand="message", expandResults=3, group="part")
    assert len(answer["results"]) > 2
    assert answer["degradeKind"] == "time"
    assert set(answer["degraded"]) == {"some snippets are the beginnings of their texts", "2 results not expanded"}
    assert "the answer was ended after 60 s: some snippets" in _said(answer)
    assert len(answer["expanded"]) == 1
    chat = _ask(house, "checkout", match="literal", expand="messages", expandResults=3)
    assert "2 results not expanded" in chat["degraded"]


def test_hints_that_no_time_is_left_for_are_said_to_be_missing(house: Recorded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Budget, "end", property(lambda _: 0.0))
    answer = _ask(house, "plumblossom", match="literal")
    assert (answer["results"], answer["suggestions"]) == ([], [])
    assert "not all that may help was tried" in answer["degraded"]


def test_a_candidate_the_archive_does_not_have_is_left_out_and_said(house: Recorded):
    answer = house.recall(lexical=_Behind(house.lexical), budget_s=PATIENT).answer(
        Recall(query="checkout", match="smart")
    )
    assert "msg_ghost" not in _ids(answer)
    assert "not in the archive: 1 indexed message" in _said(answer)


class _Listening(FailingModel):
    """A model that keeps what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__(RuntimeError("asked"))
        self.texts: list[str] = []

    def embed(self, texts: Any) -> list[Any]:
        self.texts += texts
        return super().embed(texts)


class _Counting(_Behind):
    """An index in which nearly every text has the name Anna."""

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        return self._lexical.search(query, filters, limit, least_prose=least_prose)

    def frequencies(self, query: str) -> tuple[int, dict[str, int]]:
        return 100, {word: 90 if word == "Anna" else 1 for word in query.split()}


def test_a_name_in_nearly_every_text_does_not_dominate_the_meaning(house: Recorded):
    model = _Listening()
    house.recall(lexical=_Counting(house.lexical), embedder=model, budget_s=PATIENT).answer(
        Recall(query="what did Anna say about the checkout page")
    )
    assert model.texts == ["what did I say about the checkout page"]


# -- currency --------------------------------------------------------------------------------------------------------


def test_a_session_is_searched_by_what_it_is_called_and_where_it_is_now(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "s", "/old", title="Old name")
        made.say("s", "user", "the kettle boils")
        made.index()
        catalog = Catalog(made.archive)
        recall = made.recall(catalog=catalog, budget_s=PATIENT)
        assert recall.answer(Recall(query="kettle", directory="/old"))["results"]
        _session(made, "s", "/new", title="New name")
        assert recall.answer(Recall(query="kettle", match="smart", directory="/new", title="new"))["results"]
        assert not recall.answer(Recall(query="kettle", match="smart", directory="/old"))["results"]


def test_a_share_of_the_messages_that_is_not_embedded_is_a_degraded_answer(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "s", "/w")
        made.say("s", "user", "the kettle boils")
        made.say("s", "user", "the kettle is cold")
        made.index()
        for number in range(3):
            made.say("s", "user", f"the kettle number {number} is not embedded")
        LexicalDrain(made.archive, made.lexical, 1024).step(100)
        for match in ("semantic", "hybrid"):
            answer = _ask(made, "kettle", match=match)
            [said] = answer["degraded"]
            assert said.startswith("3 messages are not searchable by meaning yet; ")
            assert said in answer["warnings"]
            assert (answer["degradeKind"], answer["coverage"]["waiting"]["semantic"]) == ("indexing", 3)
            served = made.recall(is_served=True, budget_s=PATIENT).answer(Recall(query="kettle", match=match))
            assert "keep the service running" in said
            assert "service running" not in served["degraded"][0]
        for match in ("smart", "literal", "regex", "fuzzy"):
            answer = _ask(made, "kettle", match=match)
            assert (answer["degraded"], answer["degradeKind"]) == ([], "none")


def test_messages_that_wait_for_the_words_are_a_degraded_answer(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "s", "/w")
        made.say("s", "user", "the kettle boils")
        made.index()
        made.say("s", "user", "not yet indexed")
        for match in ("literal", "smart", "fuzzy", "hybrid"):
            answer = _ask(made, "kettle", match=match)
            meaning = ", 1 message not by meaning" if match == "hybrid" else ""
            [said] = answer["degraded"]
            assert said.startswith(f"1 message is not searchable by words{meaning} yet; "), match
            assert answer["degradeKind"] == "indexing"
        absent = _ask(made, "plumblossom", match="smart")
        assert "no text that could be searched contains" in _said(absent)
        by_meaning = _ask(made, "kettle", match="semantic")["degraded"]
        assert by_meaning[0].startswith("1 message is not searchable by meaning yet; ")


def test_an_index_that_is_rebuilt_says_how_much_is_missing(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "s", "/w")
        for number in range(4):
            made.say("s", "user", f"the kettle number {number}")
        made.index()
        made.archive.enqueue_all("lexical")
        assert "4 messages are not searchable by words yet" in _said(_ask(made, "kettle", match="literal"))


def test_what_the_word_index_has_in_memory_is_not_missing(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "s", "/w")
        made.say("s", "user", "the kettle boils")
        answer = made.recall(budget_s=PATIENT, in_memory=8).answer(Recall(query="kettle", match="literal"))
        assert (answer["degraded"], answer["degradeKind"]) == ([], "none")


def test_a_number_after_a_short_month_is_no_day_and_a_day_adds_its_score(tmp_path: Path):
    """The match reasons tell what the day adds."""
    with recorded(tmp_path) as made:
        made.clock = 1_796_990_400_000 - 200 * 86_400_000
        _session(made, "prompt", "/w")
        made.say("prompt", "user", "convert dec 12 to hex")
        made.clock = 1_796_990_400_000  # 2026-12-11, noon
        _session(made, "day", "/w")
        made.clock += 86_400_000
        made.say("day", "user", "a hex editor for the release")
        made.index()
        asked = _ask(made, "dec 12 hex", explain=True)["results"]
        assert asked[0]["sessionID"] == "prompt"
        assert "day that the question names" not in str(asked)
        dated = _ask(made, "which hex editor did we take on Dec 12", explain=True)["results"]
        assert dated[0]["sessionID"] == "day"
        assert f"day that the question names adds {weights.DAY:.3f}" in str(dated[0]["matchReasons"])


def test_one_noisy_session_does_not_fill_the_page(tmp_path: Path):
    with recorded(tmp_path) as made:
        _session(made, "noisy", "/w")
        for number in range(12):
            made.say("noisy", "user", f"walrus tusk number {number}")
        for name in ("quiet", "calm"):
            _session(made, name, "/w")
            made.say(name, "user", f"the walrus tusk of the {name} zoo")
        made.index()
        page = _ask(made, "walrus tusk", match="smart", results=6)
        sessions = [one["sessionID"] for one in page["results"]]
        assert {"quiet", "calm"} < set(sessions)
        assert len(sessions) == 6
        alone = _ask(made, "walrus number", match="smart", results=6, sessionID="noisy")
        assert [one["sessionID"] for one in alone["results"]] == ["noisy"] * 6


def test_smart_without_words_or_a_semantic_index_is_empty_with_a_reason(house: Recorded):
    unready = house.recall(semantic=None, budget_s=PATIENT)
    answer = unready.answer(Recall(query="unheard words", match="smart"))
    assert answer["results"] == []
    assert answer["matchMode"] == "smart"
    assert "meaning was not searched" in _said(answer)


# -- many printed texts, near names, absent words --------------------------------------------------------------------

PRINTED = 70
"""More than a list of candidates has."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("workshop")) as made:
        _session(made, "old", "/work/old")
        made.say("old", "user", "We settled on the copper gasket because brass leaks.")
        made.say("old", "user", "Please fix parseConfigs in the loader, and look at foo-bar and --flag.")
        made.say("old", "assistant", "I changed parse_config2; ECONNREFUSED is raised by connectOnce.")
        made.say("old", "assistant", "The prefilter drops rows. I don't know why; see http://a.b/c for it.")
        made.say("old", "user", "zanzibar")
        _session(made, "new", "/work/new")
        for number in range(PRINTED):
            made.say("new", "assistant", call("bash", output=f"line {number}: copper gasket, 3 mm", command="make"))
        made.index()
        yield made


@pytest.mark.parametrize("query", ["copper gasket", '"copper gasket"', "the copper gasket", "gasket"])
@pytest.mark.parametrize("match", ["hybrid", "smart"])
def test_an_old_prompt_is_not_hidden_behind_newer_printed_texts(workshop: Recorded, match: str, query: str):
    assert _ids(_ask(workshop, query, match=match))[0] == "msg_0001"
    assert workshop.recall().search(query, limit=10).hits[0].message_id == "msg_0001"


NEAR_NAMES = {
    "parseConfig": "msg_0002",
    "parse_config": "msg_0003",
    "connectOnc": "msg_0003",
    '"drops row"': "msg_0004",
}


@pytest.mark.parametrize(("query", "first"), NEAR_NAMES.items())
@pytest.mark.parametrize("match", ["hybrid", "smart"])
def test_an_absent_name_is_never_answered_with_a_longer_one_unlabelled(
    workshop: Recorded, match: str, query: str, first: str
):
    answer = _ask(workshop, query, match=match)
    assert first in _ids(answer)
    assert {one["why"]["confidence"] for one in answer["results"]} == {"low"}
    assert all(one["score"] <= 0.5 for one in answer["results"])
    assert "occurs only inside longer names" in _said(answer)
    assert "no current text" not in _said(answer)


@pytest.mark.parametrize("query", ["foo-bar", "--flag", "don't", "http://a.b/c", "zanzibar", "the foo-bar"])
@pytest.mark.parametrize("match", ["hybrid", "smart", "literal"])
def test_what_holds_exactly_what_was_asked_is_sure(workshop: Recorded, match: str, query: str):
    if match == "literal" and query.startswith("the "):
        query = "at foo-bar"
    answer = _ask(workshop, query, match=match)
    assert answer["results"][0]["why"]["confidence"] == "high"
    assert "hold" not in _said(answer)
    assert answer["suggestions"] == []


def test_an_absent_word_among_others_is_named_with_what_is_spelt_like_it(workshop: Recorded):
    for match in ("smart", "hybrid"):
        answer = _ask(workshop, "gaskett zanzibar", match=match)
        assert _ids(answer)[0] == "msg_0005"
        assert "no current text contains 'gaskett'" in _said(answer)
        assert answer["suggestions"][0]["example"]["query"] == "gasket zanzibar"


def test_a_suggested_call_asks_for_the_right_word_and_keeps_the_filters(workshop: Recorded):
    answer = _ask(workshop, "ECONNREFUSD", match="smart", role="assistant")
    example = answer["suggestions"][0]["example"]
    assert example | {"query": example["query"].upper()} == {
        "query": "ECONNREFUSED",
        "match": "smart",
        "role": "assistant",
    }


def test_where_meaning_finds_nothing_either_nothing_is_said_to_follow(workshop: Recorded):
    answer = _ask(workshop, "unheardof wordlet", match="smart", kinds=["title"], directory="/work/old")
    assert answer["results"] == []
    assert (answer["matchMode"], answer["degradeKind"]) == ("smart", "none")
    assert "follows" not in _said(answer)


def test_words_that_could_not_be_searched_are_not_said_to_be_nowhere(workshop: Recorded):
    torn = workshop.recall(lexical=FailingLexical(IndexBroken("the word index is torn")), budget_s=PATIENT)
    for query in ("zanzibar", "parseConfigs", "look at parseConfigs in the loader"):
        assert "no current text" not in _said(torn.answer(Recall(query=query))), query
        assert not any("nothing recorded" in one for one in torn.search(query).warnings), query


def test_white_space_belongs_to_what_is_asked_for_literally(workshop: Recorded):
    assert _ids(_ask(workshop, "gasket ", match="literal")) == ["msg_0001"]
    assert len(_ids(_ask(workshop, "gasket", match="literal", results=50))) == 50
    assert _ids(_ask(workshop, " zanzibar", match="literal")) == []
    assert _ids(_ask(workshop, "gasket\\b ", match="regex")) == ["msg_0001"]
    assert [hit.message_id for hit in workshop.recall().search("gasket ", "literal").hits] == ["msg_0001"]
    assert "for" in _ask(workshop, " for it", match="literal", width=50)["results"][0]["snippet"]


def test_a_near_miss_is_looked_for_in_the_mode_that_was_asked(workshop: Recorded):
    assert _ask(workshop, "gasket copper", match="literal", role="user")["nearMisses"] == []
    regex = _ask(workshop, "gasket.*mm", match="regex", role="user")["nearMisses"]
    assert [one["sessionID"] for one in regex] == ["new"]
    assert regex[0]["reason"] == "contains it, but is outside the filters (`role`)"
    some = _ask(workshop, "gorilla zanzibar", match="smart", directory="/work/none")["nearMisses"]
    assert some[0]["reason"] == "contains some of the words, but is outside the filters (`directory`)"


@pytest.mark.parametrize("group", ["part", "message", "session", "project"])
def test_scores_fall_whatever_was_moved_or_gathered(workshop: Recorded, group: str):
    for match in MODES:
        for query in ("copper gasket", "why does the copper gasket of brass make zanzibar", "parseConfig", "line make"):
            answer = _ask(workshop, query, match=match, group=group, results=30)
            scores = [one["score"] for one in answer["results"]]
            assert scores == sorted(scores, reverse=True), (match, query)


class _SlowWords(_Behind):
    """Fault injection: an index that takes longer for words than anybody waits: until `gate` is open."""

    def __init__(self, lexical: Any) -> None:
        super().__init__(lexical)
        self.gate = threading.Event()

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        self.gate.wait(PATIENT)
        return self._lexical.search(query, filters, limit, least_prose=least_prose)


@pytest.mark.parametrize("query", ["connectOnce", "what is raised by connectOnce"])
def test_a_name_is_found_by_meaning_while_words_are_late(
    workshop: Recorded, query: str, monkeypatch: pytest.MonkeyPatch
):
    words = _SlowWords(workshop.lexical)
    with time_over_after(monkeypatch, "recall semantic"):
        answer = workshop.recall(lexical=words, budget_s=PATIENT).answer(Recall(query=query))
    words.gate.set()
    assert "connectOnce" in answer["results"][0]["snippet"]
    assert answer["degradeKind"] == "time"


class _Untold:
    """Fault injection: a semantic index that finds chunks, but cannot read their texts any more."""

    def __init__(self, semantic: Any) -> None:
        self._semantic = semantic
        self.similarities = semantic.similarities

    def query(self, *asked: Any, without_texts: bool = False) -> list[Match]:
        found: list[Match] = self._semantic.query(*asked, without_texts=True)
        return found if without_texts else self.with_texts(found)

    def with_texts(self, _matches: Any) -> list[Match]:
        raise IndexBroken("the texts are torn")


@pytest.mark.parametrize(("index", "asked"), [("lexical", "scores"), ("semantic", "similarities")])
def test_an_index_that_fails_for_candidates_of_the_other_is_no_timeout(
    workshop: Recorded, monkeypatch: pytest.MonkeyPatch, index: str, asked: str
):
    def fail(*_asked: Any) -> None:
        raise OSError("the disk says no")

    monkeypatch.setattr(type(workshop.lexical if index == "lexical" else workshop.vectors), asked, fail)
    told: list[str] = []
    recall = workshop.recall(on_failure=lambda failed, _error: told.append(failed), budget_s=PATIENT)
    answer = recall.answer(Recall(query="why does the copper gasket make such a noise"))
    assert answer["results"]
    assert (answer["degradeKind"], answer["coverage"][index]) == ("index", "failed")
    assert answer["degraded"] == ["not all candidates were scored: the disk says no"]
    assert set(told) == {index}
    assert "ended after" not in _said(answer)


@pytest.mark.parametrize("query", ["parseConfig", "copper gasket", "why does parseConfig make such a noise"])
def test_texts_that_decide_and_cannot_be_read_are_told(workshop: Recorded, query: str):
    torn = workshop.recall(semantic=_Untold(workshop.vectors), budget_s=PATIENT)
    answer = torn.answer(Recall(query=query))
    assert answer["results"]
    assert (answer["degradeKind"], answer["coverage"]["semantic"]) == ("index", "failed")
    assert "the texts are torn" in "".join(answer["degraded"])


class _SlowHints(_Behind):
    """Fault injection: an index that finds words at once; what is only a hint takes until `gate` is open."""

    gate = threading.Event()

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        return self._lexical.search(query, filters, limit, least_prose=least_prose)

    def fuzzy(self, query: str, filters: Filters, limit: int) -> list[Match]:
        self.gate.wait(60)
        return self._lexical.fuzzy(query, filters, limit)

    def spellings(self, word: str, limit: int) -> list[tuple[str, int]]:
        self.gate.wait(60)
        return self._lexical.spellings(word, limit)


def test_hints_take_no_longer_than_the_answer(workshop: Recorded):
    slow = workshop.recall(lexical=_SlowHints(workshop.lexical), budget_s=20.0)
    began = time.monotonic()
    answer = slow.answer(Recall(query="gorillaz nowhere", match="literal"))
    assert time.monotonic() - began < 30
    _SlowHints.gate.set()
    assert (answer["results"], answer["nearMisses"], answer["degradeKind"]) == ([], [], "none")
