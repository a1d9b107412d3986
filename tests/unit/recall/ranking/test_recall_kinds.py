"""Filters of kind and tool hold for what is shown of a result found by meaning: chunks span several parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.errors import BadRequest
from daemon.index import Filters
from daemon.model import Json
from daemon.recall.query import Recall
from tests.support.stores.recorded_sessions import Recorded, call, recorded

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with recorded(tmp_path_factory.mktemp("house"), {"car": "vehicle", "automobile": "vehicle"}) as made:
        made.session("shop", "/work/shop", "Vehicles of the shop")
        made.say("shop", "user", "Please mend the automobile.")
        made.say(
            "shop",
            "assistant",
            {"type": "reasoning", "text": "The automobile is perhaps in the garage."},
            call("grep", pattern="automobile garage", output="garage.py: the automobile stands here"),
            call("bash", command="paint --automobile", output=f"painted with {SECRET}"),
            "I have painted the automobile.",
        )
        made.say("shop", "assistant", {"type": "reasoning", "text": "An automobile is no answer by itself."})
        made.say("shop", "assistant", "Nothing but the automobile.")
        made.index()
        yield made


def _ask(house: Recorded, query: str = "car", **asked: Any) -> Json:
    return house.recall(budget_s=60.0).answer(Recall(query=query, **asked))


KINDS: dict[str, tuple[Json, set[tuple[str, str, str]]]] = {
    "answer": ({"kinds": ["answer"]}, {("msg_0002", "answer", ""), ("msg_0004", "answer", "")}),
    "reasoning": ({"kinds": ["reasoning"]}, {("msg_0002", "reasoning", ""), ("msg_0003", "reasoning", "")}),
    "of type reasoning": ({"type": "reasoning"}, {("msg_0002", "reasoning", ""), ("msg_0003", "reasoning", "")}),
    "prompt, behind a title": ({"kinds": ["prompt"]}, {("msg_0001", "prompt", "")}),
    "title": ({"kinds": ["title"]}, {("msg_0001", "title", "")}),
    "tool input": ({"kinds": ["tool_input"], "toolName": "bash"}, {("msg_0002", "tool_input", "bash")}),
    "tool output": ({"kinds": ["tool_output"], "toolName": "grep"}, {("msg_0002", "tool_output", "grep")}),
    "of a tool": ({"toolName": "bash"}, {("msg_0002", "tool_output", "bash")}),
    "of a tool, with a kind that no tool has": (
        {"toolName": "grep", "kinds": ["answer", "tool_output"]},
        {("msg_0002", "tool_output", "grep")},
    ),
}


@pytest.mark.parametrize("match", ["semantic", "hybrid"])
@pytest.mark.parametrize(("asked", "expected"), KINDS.values(), ids=KINDS)
def test_a_result_by_meaning_is_shown_by_a_part_of_the_kind_asked_for(
    house: Recorded, asked: Json, expected: set[tuple[str, str, str]], match: str
):
    results = _ask(house, match=match, **asked)["results"]
    assert {(one["messageID"], one["kind"], one.get("toolName", "")) for one in results} == expected


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"kinds": ["answer"]}, "I have painted the automobile."),
        ({"kinds": ["reasoning"]}, "The automobile is perhaps in the garage."),
        ({"toolName": "grep", "kinds": ["tool_output"]}, "garage.py: the automobile stands here"),
        ({"type": "tool", "toolName": "bash", "kinds": ["tool_output"]}, "painted with [REDACTED:github-token:0dd2]"),
    ],
)
def test_the_snippet_is_that_parts_own_text_without_its_secrets(house: Recorded, asked: Json, shown: str):
    found = [one for one in _ask(house, match="semantic", **asked)["results"] if one["messageID"] == "msg_0002"]
    snippet = found[0]["snippet"]
    assert SECRET not in snippet
    assert snippet.partition("[")[0] == shown.partition("[")[0]
    assert found[0]["partID"].startswith("prt_0002_")


def test_which_part_is_shown_is_the_one_with_the_words_of_the_question(house: Recorded):
    found = _ask(house, "garage automobile", match="semantic", type="tool")["results"]
    assert (found[0]["toolName"], "garage" in found[0]["snippet"]) == ("grep", True)


@pytest.mark.parametrize("match", ["literal", "smart", "hybrid", "semantic"])
@pytest.mark.parametrize("kinds", [["answer"], ["prompt", "reasoning"], ["title"]])
def test_a_tool_beside_kinds_that_no_tool_has_is_refused(house: Recorded, kinds: list[str], match: str):
    with pytest.raises(BadRequest, match=r"`toolName` 'grep' with `kinds` .* finds nothing"):
        _ask(house, match=match, kinds=kinds, toolName="grep")


def test_a_part_too_long_for_a_shared_chunk_shows_the_matching_chunk(tmp_path: Path):
    with recorded(tmp_path, {"car": "vehicle", "automobile": "vehicle"}) as made:
        made.session("long", "/work")
        told = " ".join(f"word{number} in the middle of things." for number in range(200))
        made.say("long", "assistant", "Short.", f"{told}\n\nautomobile automobile automobile\n\n{told}")
        made.index()
        found = _ask(made, match="semantic", kinds=["answer"])["results"]
        assert found[0]["kind"] == "answer"
        assert found[0]["snippet"].startswith("word1")  # not the part's beginning


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_hits_of_a_search_are_labelled_by_a_part_of_the_kind_asked_for_too(house: Recorded, mode: str):
    hits = house.recall().search("car", mode, filters=Filters(kinds=("answer",))).hits
    assert {(hit.message_id, hit.kind, hit.snippet) for hit in hits} == {
        ("msg_0002", "answer", "I have painted the automobile."),
        ("msg_0004", "answer", "Nothing but the automobile."),
    }


def test_kind_and_tool_filters_must_match_in_the_same_part(tmp_path: Path):
    with recorded(tmp_path, {"car": "vehicle", "automobile": "vehicle"}) as made:
        made.session("one", "/work")
        made.say(
            "one", "assistant", call("grep", pattern="automobile"), call("bash", command="", output="an automobile")
        )
        made.index()
        assert _ask(made, match="semantic", kinds=["tool_output"], toolName="grep")["results"] == []
        assert (
            made.recall().search("car", "semantic", filters=Filters(kinds=("tool_output",), tools=("grep",))).hits == ()
        )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Thirty turns in five sessions; each kind is there thirty times, and each says the word `order` once."""
    with recorded(tmp_path_factory.mktemp("many")) as made:
        for number in range(30):
            sid = f"ses_{number // 6}"
            if number % 6 == 0:
                made.session(sid, "/work/orders", f"Orders {number}")
            pasted = f"line{number} " * (900 if number % 6 == 0 else 3)  # a pasted text has many chunks
            made.say(sid, "user", f"Change order {number}. {pasted}")
            made.say(
                sid,
                "assistant",
                {"type": "reasoning", "text": f"The order {number} comes first."},
                {"type": "subtask", "prompt": f"Look after order {number}.", "agent": "general"},
                call("grep", pattern=f"order {number}", output=f"order {number} stands here " * 40),
                f"Order {number} is done.",
            )
        made.index()
        yield made


@pytest.mark.parametrize("kind", ["prompt", "answer", "reasoning", "task", "tool_input", "tool_output"])
@pytest.mark.parametrize("query", ["order", "what did the user want", "Bestellung", "*", "no_such_name()"])
def test_a_search_for_a_kind_is_filled_up_with_the_newest(many: Recorded, kind: str, query: str) -> None:
    recall, filters = many.recall(), Filters(kinds=(kind,))
    hits = recall.search(query, limit=20, filters=filters).hits
    others = recall.newest(filters, 20 - len(hits), {hit.message_id for hit in hits})
    assert len({hit.message_id for hit in (*hits, *others)}) == 20
    assert {hit.kind for hit in (*hits, *others)} == {kind}
    assert {hit.mode for hit in others} <= {"kind"}
    assert (query == "order") <= (not others)


@pytest.mark.parametrize("kind", ["prompt", "answer", "reasoning", "task", "tool_input", "tool_output"])
def test_clients_get_as_many_results_of_a_kind_as_hold_the_word(many: Recorded, kind: str) -> None:
    body = _ask(many, "order", kinds=[kind], results=20)
    assert len({result["messageID"] for result in body["results"]}) == 20


def test_the_newest_messages_of_a_kind_pass_all_filters(many: Recorded) -> None:
    filters = Filters(kinds=("prompt",), sessions=frozenset({"ses_1", "ses_2"}))
    assert many.recall().search("zebra_crossing()", limit=20, filters=filters).hits == ()
    assert [hit.message_id for hit in many.recall().newest(filters, 20)] == [
        f"msg_{number:04d}" for number in range(35, 12, -2)
    ]
