"""Clients' arguments: what is understood, what is ignored with a warning, what is refused, and never anything else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from daemon.errors import BadRequest
from daemon.exports import Export
from daemon.recall.query import CALLS, Recall, RecallContext, RecallTimeline
from daemon.recall.query.arguments import read
from tests.support.examples import examples

REQUIRED = {
    "recall": {"query": "x"},
    "recall_get": {"messageID": "msg_1"},
    "recall_context": {"messageID": "msg_1"},
    "recall_messages": {},
    "recall_sessions": {},
    "recall_timeline": {},
    "recall_files": {"path": "/x"},
}


@pytest.mark.parametrize("call", CALLS)
def test_with_nothing_but_what_is_required_the_defaults_are_ours(call: str) -> None:
    made, warnings = read(call, REQUIRED[call])
    assert made == CALLS[call](**REQUIRED[call])
    assert warnings == []


@pytest.mark.parametrize("call", CALLS)
def test_null_and_blank_say_nothing(call: str) -> None:
    optional = [f.encode_name for f in msgspec.structs.fields(CALLS[call]) if f.encode_name not in REQUIRED[call]]
    for blank in (None, "", "  \n"):
        assert read(call, dict.fromkeys(optional, blank) | REQUIRED[call]) == read(call, REQUIRED[call])


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"results": "7"}, "results", 7),
        ({"results": 7.0}, "results", 7),
        ({"results": " 7 "}, "results", 7),
        ({"results": "7.0"}, "results", 7),
        ({"match": "Fuzzy"}, "match", "fuzzy"),
        ({"match": " SMART "}, "match", "smart"),
        ({"window": "5", "expand": "context"}, "window", 5),
        ({"window": "AUTO", "expand": "context"}, "window", "auto"),
        ({"window": 2, "expand": "context"}, "window", 2),
        ({"explain": "true"}, "explain", True),
        ({"explain": 1}, "explain", True),
        ({"explain": "No"}, "explain", False),
        ({"kinds": "prompt, Answer"}, "kinds", ["prompt", "answer"]),
        ({"kinds": ["title", None, ""]}, "kinds", ["title"]),
        ({"session_id": "ses_1"}, "sessionID", "ses_1"),
        ({"sessionId": "ses_1"}, "sessionID", "ses_1"),
        ({"tool_name": "bash"}, "toolName", "bash"),
        ({"expand_budget_chars": "900", "expand": "message"}, "expandBudgetChars", 900),
        ({"from": "30d ago"}, "from_", "30d ago"),
        ({"before": 1_780_000_000_000}, "before", 1_780_000_000_000),
        ({"before": "2026-01-31"}, "before", "2026-01-31"),
        ({"before": -1}, "before", -1),
        ({"title": 404}, "title", "404"),
        ({"sessionID": "ses_1", "session_id": "ses_2"}, "sessionID", "ses_1"),
        ({"session_id": "ses_2", "sessionID": "ses_1"}, "sessionID", "ses_1"),
    ],
)
def test_other_spellings_of_the_same_thing_are_understood(given: dict[str, Any], field: str, value: Any) -> None:
    made, warnings = read("recall", {"query": "x", **given})
    assert getattr(made, field) == value
    assert type(getattr(made, field)) is type(value)
    assert warnings == []


def test_spaces_of_a_query_are_part_of_it() -> None:
    assert read("recall", {"query": " a  b "})[0].query == " a  b "  # type: ignore[attr-defined]


def test_a_call_may_be_written_as_the_command_is() -> None:
    assert isinstance(read("recall-context", {"message_id": "msg_1"})[0], RecallContext)
    assert read("recall_timeline", {"depthBefore": "3"})[0] == RecallTimeline(depth_before=3)


@pytest.mark.parametrize(
    ("given", "field", "value", "says"),
    [
        ({"results": 500}, "results", 50, "`results`: 500 was taken as 50; it is at most 50"),
        ({"results": "-4"}, "results", 1, "at least 1"),
        ({"window": 400, "expand": "context"}, "window", 50, "`window`: 400 was taken as 50; it is at most 50"),
        ({"window": "-1", "expand": "context"}, "window", 0, "at least 0"),
        ({"width": 10**400}, "width", 1000, "at most 1000"),
        ({"quarry": "x"}, "query", "x", "'quarry': there is no such argument, it was ignored; did you mean query?"),
        ({"mode": "fuzzy"}, "match", "hybrid", "did you mean match?"),
        ({"limit": 3}, "results", 10, "did you mean results?"),
        ({"xyzzy": 3}, "results", 10, "'xyzzy': there is no such argument, it was ignored"),
    ],
)
def test_what_is_harmless_is_put_right_with_a_warning(given: dict[str, Any], field: str, value: Any, says: str) -> None:
    made, [warning] = read("recall", {"query": "x", **given})
    assert getattr(made, field) == value
    assert says in warning


@pytest.mark.parametrize(
    ("call", "given", "says"),
    [
        ("recal", {}, "there is no such call; did you mean recall?"),
        ("xyzzy", {}, "use recall, recall_get"),
        ("", {}, "no such call"),
        (None, {}, "no such call"),
        ("recall", {}, "`query` is missing or blank"),
        ("recall", {"query": "  "}, "`query` is missing or blank"),
        ("recall", {"query": None}, "`query` is missing or blank"),
        ("recall_get", {"sessionID": "ses_1"}, "`messageID` is missing"),
        ("recall_files", {}, "`path` is missing"),
        (
            "recall_get",
            {"id": "msg_1"},
            "`messageID` is missing or blank; give it a value; 'id': did you mean `messageID`?",
        ),
        ("recall", {"text": "x"}, "'text': did you mean `query`?"),
        ("recall", {"xyzzy": 1, "querry": "x"}, "'querry': did you mean `query`?"),
        ("recall_files", {"file": "/x"}, "'file': did you mean `path`?"),
        ("recall", [], "send an object"),
        ("recall", {"query": ["x"]}, "`query`: ['x'] is not understood; use a text"),
        ("recall", {"query": "x", "match": "psychic"}, "use fuzzy, hybrid, literal, regex, semantic or smart"),
        ("recall", {"query": "x", "match": "hybird"}, "(did you mean hybrid?)"),
        ("recall", {"query": "x", "match": 3}, "`match`: 3 is not understood"),
        ("recall", {"query": "x", "results": "many"}, "`results`: 'many' is not understood; use a whole number"),
        ("recall", {"query": "x", "results": 3.5}, "use a whole number"),
        ("recall", {"query": "x", "results": True}, "use a whole number"),
        ("recall", {"query": "x", "results": float("nan")}, "use a whole number"),
        ("recall", {"query": "x", "window": {}}, "use a whole number or auto"),
        ("recall", {"query": "x", "explain": "maybe"}, "use true or false"),
        ("recall", {"query": "x", "kinds": ["prompts"]}, "prompt"),
        ("recall", {"query": "x", "kinds": 3}, "use a list of words"),
        ("recall", {"query": "x", "before": []}, "epoch ms, or a date"),
        ("recall", {"query": "x", "before": float("inf")}, "epoch ms, or a date"),
        ("recall", {"query": "x", "sessionID": {"a": 1}}, "`sessionID`: {'a': 1} is not understood; use a text"),
    ],
)
def test_what_would_be_another_question_is_refused_with_what_is_allowed(call: Any, given: Any, says: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(call, given)
    assert says in str(caught.value)


def test_a_refusal_is_short_however_large_the_value_is() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value in ({"a": "x" * 100_000}, deep, ["x" * 100_000] * 1000):
        with pytest.raises(BadRequest) as caught:
            read("recall", {"query": value})
        assert len(str(caught.value)) < 2000
    while deep:
        deep = deep[0]  # Python would free it by recursion


def test_a_number_that_python_does_not_write_out_is_no_fault() -> None:
    made, [warning] = read("recall", {"query": "x", "results": 10**5000})
    assert (made.results, "thousands of digits" in warning) == (50, True)  # type: ignore[attr-defined]
    with pytest.raises(BadRequest, match="thousands of digits"):
        read("recall", {"query": 10**5000})


NAMES = sorted({f.encode_name for schema in CALLS.values() for f in msgspec.structs.fields(schema)})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["auto", "10", "1e999"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(max_examples=examples(400))
@given(st.sampled_from(list(CALLS)), st.dictionaries(st.sampled_from(NAMES) | st.text(), VALUES, max_size=8))
def test_any_object_is_understood_within_bounds_or_is_a_bad_request(call: str, given_: dict[str, Any]) -> None:
    try:
        made, warnings = read(call, given_)
    except BadRequest as error:
        assert str(error)  # noqa: PT017 - either outcome is right
        return
    assert isinstance(made, CALLS[call])
    assert all(isinstance(warning, str) for warning in warnings)
    # What was made is what its own schema takes, strictly, and reads as itself.
    assert msgspec.convert(msgspec.to_builtins(made), CALLS[call]) == made
    assert within_bounds(made)
    assert read(call, said(made))[0] == made


def said(made: Struct) -> dict[str, Any]:
    return msgspec.to_builtins(made)


def within_bounds(made: Struct) -> bool:
    schema = msgspec.json.schema_components([type(made)])[1][type(made).__name__]["properties"]
    return all(
        bounds.get("minimum", value) <= value <= bounds.get("maximum", value)
        for name, bounds in schema.items()
        if isinstance(value := msgspec.to_builtins(made).get(name), int)
    )


def test_recall_is_what_a_client_says_it_is() -> None:
    assert read("recall", {"query": "x", "group": "session"})[0] == Recall(query="x", group="session")


IDLE: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "within": ("recall", {"within": "project"}, ["`within` is ignored: it needs `directory`"]),
    "fallback": ("recall", {"fallback": True}, ["`fallback` is ignored: it needs `directory`"]),
    "within beside fallback": ("recall", {"directory": "/w", "within": "exact", "fallback": True}, ["`within`"]),
    "scope": ("recall", {"scope": "project", "sessionID": "ses_1"}, ["`scope` is ignored: `sessionID` decides"]),
    "expandResults": ("recall", {"expandResults": 3}, ["`expandResults` is ignored: it needs `expand`"]),
    "a window of one message": ("recall", {"expand": "message", "window": 9}, ["`window`"]),
    "tokens of no chat": ("recall", {"expand": "context", "expandBudgetTokens": 500}, ["`expandBudgetTokens`"]),
    "all of no expansion": (
        "recall",
        {"window": 9, "expandBudgetMessages": 9, "expandBudgetChars": 900, "expandBudgetTokens": 9},
        ["`expandBudgetMessages`", "`expandBudgetChars`", "`expandBudgetTokens`", "`window`"],
    ),
    "budgetTokens": (
        "recall_context",
        {"budgetTokens": 500, "format": "parts"},
        ["`budgetTokens` is ignored: it needs"],
    ),
    "maxChars": ("recall_context", {"max_chars": 9, "format": "messages"}, ["`maxChars` is ignored"]),
    "a window with both its sides": ("recall_context", {"window": 9, "before": 0, "after": 1}, ["`window` is ignored"]),
    "within of sessions": ("recall_sessions", {"within": "exact", "directory": " "}, ["`within` is ignored"]),
    "nothing": ("recall", {"directory": "/w", "within": "exact", "expand": "context", "window": 9}, []),
    "one side of a window": ("recall_context", {"window": 9, "before": 0}, []),
    "tokens of a chat": ("recall_context", {"budgetTokens": 500, "format": "messages"}, []),
    "defaults, as clients send them": (
        "recall",
        {"within": "below", "fallback": "false", "scope": "global", "sessionID": "s", "expandResults": 1, "window": 3},
        [],
    ),
}


@pytest.mark.parametrize(("call", "given", "says"), IDLE.values(), ids=IDLE)
def test_an_argument_without_effect_is_told(call: str, given: dict[str, Any], says: list[str]) -> None:
    _, warnings = read(call, REQUIRED[call] | given)
    assert len(warnings) == len(says)
    assert [warning.startswith(begin) for warning, begin in zip(warnings, says, strict=True)] == [True] * len(says)


@pytest.mark.parametrize("given", ["prompt,answer", ["prompt,answer"], ["prompt", "answer"], [" prompt , ,answer"]])
def test_words_may_stand_in_one_text_with_commas(given: Any) -> None:
    made, warnings = read("recall", {"query": "x", "kinds": given})
    assert (made.kinds, warnings) == (["prompt", "answer"], [])  # type: ignore[attr-defined]


@pytest.mark.parametrize("blank", ["", "  "])
@pytest.mark.parametrize("name", ["session", "project", "path", "since"])
def test_a_blank_condition_of_an_export_is_not_everything_but_refused(name: str, blank: str) -> None:
    with pytest.raises(BadRequest, match=f"'{name}' is blank"):
        read("export", {"format": "jsonl", name: blank}, {"export": Export})
    assert read("export", {"format": "jsonl", name: None}, {"export": Export})[1] == []
