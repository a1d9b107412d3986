"""Messages in Ollama's form: exact, in order, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.replay import BOOKKEEPING, INTERRUPTED, KNOWN_TYPES, replay, unknown_types
from tests.conftest import Sample
from tests.support.chat_messages import ollama_problems
from tests.support.stores.records import message, part, reasoning, text, tool
from tests.support.stores.sample_records import load

DOT = "iVBORw0KGgo="


def _call(name: str, arguments: Any, index: int = 0) -> dict[str, Any]:
    return {"type": "function", "function": {"index": index, "name": name, "arguments": arguments}}


def test_a_prompt_is_a_user_message() -> None:
    assert replay(message(text("Build it."))) == [{"role": "user", "content": "Build it."}]


def test_a_step_is_one_assistant_message_with_its_tool_results() -> None:
    found = replay(
        message(
            {"type": "step-start", "snapshot": "abc"},
            reasoning("Let me look."),
            text("I look."),
            tool("read", {"filePath": "/a"}, "one"),
            tool("bash", {"command": "ls"}, "two"),
            {"type": "step-finish", "reason": "tool-calls"},
            role="assistant",
        )
    )
    assert found == [
        {
            "role": "assistant",
            "content": "I look.",
            "thinking": "Let me look.",
            "tool_calls": [_call("read", {"filePath": "/a"}), _call("bash", {"command": "ls"}, 1)],
        },
        {"role": "tool", "tool_name": "read", "content": "one"},
        {"role": "tool", "tool_name": "bash", "content": "two"},
    ]


def test_what_follows_a_call_begins_a_new_message_so_that_the_order_stays() -> None:
    found = replay(
        message(tool("a", {}, "1"), text("then"), tool("b", {}, "2"), reasoning("hm"), text("end"), role="assistant")
    )
    assert [(one["role"], one.get("thinking", one["content"])) for one in found] == [
        ("assistant", ""), ("tool", "1"), ("assistant", "then"), ("tool", "2"), ("assistant", "hm"),
    ]  # fmt: skip
    assert found[2]["tool_calls"] == [_call("b", {})]
    assert found[4]["content"] == "end"


def test_two_texts_stay_two() -> None:
    assert [one["content"] for one in replay(message(text("a"), text("b")))] == ["a", "b"]


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (tool("bash", {}, "out", start=1), "out"),
        (
            tool("bash", {}, "pruned from the prompt", time={"start": 1, "end": 2, "compacted": 3}),
            "pruned from the prompt",
        ),
        (tool("bash", {}, "Error: no such file", status="error"), "Error: no such file"),
        (tool("bash", {}, status="running"), INTERRUPTED),
        (tool("bash", {}, status="pending"), INTERRUPTED),
        ({"type": "tool", "tool": "x", "state": {"status": "odd", "output": "so far"}}, "so far"),
        ({"type": "tool", "tool": "x", "state": {}}, INTERRUPTED),
        (tool("bash", {}, {"a": [1]}), '{"a":[1]}'),
    ],
)
def test_a_result_is_what_the_model_was_shown(record: dict[str, Any], shown: str) -> None:
    assert replay(message(record, role="assistant"))[1]["content"] == shown


@pytest.mark.parametrize("given_input", ["raw text", None, [1, 2], 7])
def test_an_input_that_is_no_object_is_kept_under_a_name(given_input: Any) -> None:
    (called, _) = replay(message(tool("x", given_input), role="assistant"))
    assert called["tool_calls"] == [_call("x", {"_input": given_input})]


def test_images_travel_as_images_and_other_files_as_json() -> None:
    dot = {"type": "file", "mime": "image/png", "filename": "dot.png", "url": f"data:image/png;base64,{DOT}"}
    note = {"type": "file", "mime": "text/plain", "filename": "a.md", "url": "file:///w/a.md"}
    found = replay(message(text("see"), dot, note))
    assert found == [
        {"role": "user", "content": "see"},
        {"role": "user", "content": '[opencode_part:file] {"mime":"image/png","filename":"dot.png"}', "images": [DOT]},
        {
            "role": "user",
            "content": '[opencode_part:file] {"mime":"text/plain","filename":"a.md","url":"file:///w/a.md"}',
        },
    ]
    shot = tool(
        "read",
        {},
        "Image read",
        attachments=[
            {"mime": "image/png", "url": dot["url"]},
            {"mime": "application/pdf", "url": "data:application/pdf;base64,QQ=="},
        ],
    )
    result = replay(message(shot, role="assistant"))[1]
    assert result["images"] == [DOT]
    assert (
        result["content"]
        == 'Image read\n[opencode_part:file] {"mime":"application/pdf","url":"data:application/pdf;base64,QQ=="}'
    )


def test_a_data_url_that_is_no_base64_stays_in_the_json() -> None:
    (found,) = replay(message({"type": "file", "mime": "image/png", "url": "data:image/png;base64,%%%"}))
    assert "images" not in found
    assert "%%%" in found["content"]


def test_parts_without_a_place_in_ollamas_form_become_json() -> None:
    found = replay(
        message({"type": "subtask", "prompt": "Count", "agent": "general"}, {"type": "hologram", "beam": ["é"]})
    )
    assert [one["content"] for one in found] == [
        '[opencode_part:subtask] {"prompt":"Count","agent":"general"}',
        '[opencode_part:hologram] {"beam":["é"]}',
    ]


def test_bookkeeping_is_no_conversation() -> None:
    assert replay(message(*({"type": kind, "hash": "x"} for kind in sorted(BOOKKEEPING)), role="assistant")) == []


def test_a_failed_message_says_so() -> None:
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    (found,) = replay(message(role="assistant", error=error))
    assert found["content"] == f"[opencode_error:APIError] {json.dumps(error, separators=(',', ':'))}"


def test_roles() -> None:
    assert replay(message(text("x"), role="system")) == [{"role": "system", "content": "x"}]
    assert [one["role"] for one in replay(message(text("x"), system="Be brief."))] == ["system", "user"]
    assert replay(message(text("x"), role="oracle")) == [
        {"role": "user", "content": "[opencode_role:oracle]"},
        {"role": "user", "content": "x"},
    ]


def test_unknown_types_are_reported_one_by_one() -> None:
    made = message(text("x"), {"type": "hologram"}, {"type": "hologram"}, {"type": "retry"})
    assert unknown_types(made) == ["hologram", "hologram"]


def test_lone_surrogates_are_replaced() -> None:
    assert replay(message(text("a\ud800b")))[0]["content"] == "a\ufffdb"
    called, answer = replay(message(tool("x", {"k\udfff": "\ud800"}, "\udc00"), role="assistant"))
    assert called["tool_calls"] == [_call("x", {"k\ufffd": "\ufffd"})]
    assert answer["content"] == "\ufffd"


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "wizard", "content": "x"}],
        [{"role": "user"}],
        [{"role": "user", "content": "x", "thinking": "y"}],
        [{"role": "user", "content": "x", "images": ["%"]}],
        [
            {"role": "user", "content": "", "tool_calls": [_call("a", {})]},
            {"role": "tool", "tool_name": "a", "content": ""},
        ],
        [{"role": "assistant", "content": "", "tool_calls": [_call("a", {})]}],
        [{"role": "assistant", "content": "", "tool_calls": [_call("a", {})]}, {"role": "user", "content": "x"}],
        [
            {"role": "assistant", "content": "", "tool_calls": [_call("a", "x")]},
            {"role": "tool", "tool_name": "a", "content": ""},
        ],
        [
            {"role": "assistant", "content": "", "tool_calls": [_call("a", {})]},
            {"role": "tool", "tool_name": "b", "content": ""},
        ],
        [{"role": "tool", "tool_name": "a", "content": ""}],
        [{"role": "tool", "content": ""}],
        [{"role": "user", "content": "\ud800"}],
    ],
)
def test_validate_finds_what_ollama_would_not_take(messages: list[dict[str, Any]]) -> None:
    assert ollama_problems(messages) != []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_STATE = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["completed", "error", "running", "pending", "odd"]),
        "input": _JSON,
        "output": _JSON,
        "error": _JSON,
        "attachments": _JSON,
    },
)
_PART = st.fixed_dictionaries(
    {"type": st.sampled_from([*sorted(KNOWN_TYPES), "hologram"])},
    optional={
        "text": _JSON,
        "tool": st.text(max_size=4),
        "state": _STATE | _JSON,
        "url": _JSON,
        "prompt": _JSON,
        "files": _JSON,
    },
)


def _leaves(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value.replace("\ud800", "\ufffd")]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else []


@given(st.sampled_from(["user", "assistant", "system", "oracle"]), st.lists(_PART, max_size=4))
def test_any_record_gives_a_valid_replay_in_which_every_text_is_found(role: str, records: list[dict[str, Any]]) -> None:
    made = replace(message(role=role), parts=tuple(part(record) for record in records))
    found = replay(made)
    assert ollama_problems(found) == []
    shown = _leaves(found)
    whole = "\n".join(shown)
    for record in records:
        if record["type"] in BOOKKEEPING:
            continue
        state = record.get("state")
        if record["type"] == "tool" and isinstance(state, dict):
            field = {"completed": "output", "error": "error"}.get(str(state.get("status")))
            told = [state.get("input"), state.get(field) if field else ""]
        else:
            told = [record.get("text"), record.get("prompt")]
        for leaf in _leaves(told):
            assert leaf in whole or json.dumps(leaf, ensure_ascii=False)[1:-1] in whole


def test_every_message_of_the_samples_gives_a_valid_replay(any_sample: Sample, tmp_path: Path) -> None:
    messages = load(any_sample, tmp_path).messages
    assert len(messages) > 100
    for one in messages:
        found = replay(one)
        assert ollama_problems(found) == []
        assert unknown_types(one) == []
        calls = [called for entry in found for called in entry.get("tool_calls", [])]
        assert len(calls) == sum(1 for p in one.parts if p.type == "tool")
