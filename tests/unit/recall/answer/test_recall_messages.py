"""A message as callers of recall see it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.recall.answer.messages import TRUNCATED, item
from tests.support.stores.records import bash, message, reasoning, text, tool

SECRET = "ghp_" + "a1B2" * 9


def _parts(*parts: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return item(message(*parts), **more)["parts"]


def test_head_names_who_said_it_when_and_with_which_model():
    one = message(text("hi"), role="assistant", id="msg_1", created=7, agent="build", modelID="m1")
    assert item(one)["message"] == {"id": "msg_1", "role": "assistant", "time": 7, "agent": "build", "model": "m1"}
    asked = message(text("hi"), model={"providerID": "p", "modelID": "m2"})
    assert item(asked)["message"]["model"] == "m2"


def test_marks_of_requested_and_deleted_messages_appear_only_where_true():
    plain, marked = item(message(text("x"))), item(message(text("x")), center=True, deleted=True)
    assert "center" not in plain
    assert "deleted" not in plain["message"]
    assert marked["center"] is True
    assert marked["message"]["deleted"] is True


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (text("Hello\nworld"), "Hello\nworld"),
        (reasoning("because"), "because"),
        ({"type": "file", "filename": "a.png", "mime": "image/png", "url": "data:image/png;base64,AAAA"},
         "[file] a.png image/png 26 characters, not shown"),
        ({"type": "file", "filename": "a.py", "mime": "text/plain", "url": "file:///w/a.py"},
         "[file] a.py text/plain file:///w/a.py"),
        ({"type": "subtask", "agent": "explore", "description": "find it", "prompt": "Look\nhere"},
         "[subtask] explore find it\nLook\nhere"),
        ({"type": "agent", "name": "plan"}, "[agent] plan"),
        ({"type": "patch", "hash": "abc", "files": ["/w/a.py", "/w/b.py"]}, "[patch] /w/a.py, /w/b.py"),
        ({"type": "snapshot", "snapshot": "abc"}, "[snapshot] abc"),
        ({"type": "step-start"}, "[step-start]"),
        ({"type": "step-finish", "reason": "stop"}, "[step-finish] stop"),
        ({"type": "compaction", "auto": True}, "[compaction boundary] auto"),
        ({"type": "hologram", "beam": "blue"}, "[hologram] beam: blue"),
    ],
)  # fmt: skip
def test_every_kind_of_part_says_what_it_is(part: dict[str, Any], content: str):
    (shown,) = _parts(part)
    assert (shown["type"], shown["content"], shown["pruned"]) == (part["type"], content, False)


def test_a_retry_says_why():
    (shown,) = _parts({"type": "retry", "attempt": 2, "error": {"name": "APIError", "data": {"message": "overloaded"}}})
    assert (shown["content"], shown["error"]) == ("[retry] attempt 2", "APIError: overloaded")


def test_a_call_has_name_title_status_input_and_output():
    (shown,) = _parts(bash("ls", "a\nb", title="List files"))
    assert {key: shown[key] for key in shown if key != "id"} == {
        "type": "tool", "pruned": False, "toolName": "bash", "title": "List files", "status": "completed",
        "input": {"command": "ls", "description": "Run it"}, "output": "a\nb",
    }  # fmt: skip


def test_an_output_that_opencode_pruned_is_given_as_it_was_and_marked():
    (shown,) = _parts(bash("ls", "the whole listing", time={"start": 1, "end": 2, "compacted": 3}))
    assert (shown["pruned"], shown["output"]) == (True, "the whole listing")


def test_a_call_that_failed_says_the_error_and_what_it_had_printed():
    (shown,) = _parts(tool("bash", {"command": "x"}, "boom", status="error", metadata={"output": "half"}))
    assert (shown["status"], shown["error"], shown["output"]) == ("error", "boom", "half")


def test_the_message_s_own_error_is_shown():
    failed = message(role="assistant", error={"name": "MessageAbortedError", "data": {"message": "Aborted"}})
    assert item(failed)["message"]["error"] == "MessageAbortedError: Aborted"


@pytest.mark.parametrize(
    "part",
    [
        text(f"token {SECRET}"),
        reasoning(SECRET),
        bash(f"echo {SECRET}", f"{SECRET}\n", title=SECRET),
        tool("login", {"password": "Tr0ub4dor-and-3"}, f"bad {SECRET}", status="error"),
        {"type": "hologram", "beam": [SECRET]},
        {"type": "subtask", "prompt": SECRET},
        {"type": "file", "filename": SECRET},
        {"type": "retry", "attempt": 1, "error": {"name": SECRET}},
    ],
)
def test_no_secret_leaves_in_any_kind_of_part(part: dict[str, Any]):
    shown = json.dumps([_parts(part), _parts(part, max_chars=30)])
    assert SECRET[:20] not in shown
    assert "Tr0ub4dor" not in shown
    assert "REDACTED" in shown


def test_a_long_text_ends_in_the_mark_of_the_cut():
    (shown,) = _parts(text("x" * 100), max_chars=10)
    assert shown["content"] == "x" * 10 + TRUNCATED
    assert TRUNCATED == "[truncated by recall expansion]"


def test_a_path_beside_a_long_content_is_shown_whole():
    (shown,) = _parts(tool("write", {"content": "y" * 1000, "filePath": "/w/a.py"}, "ok"), max_chars=100)
    assert list(shown["input"]) == ["content", "filePath"]
    assert shown["input"]["filePath"] == "/w/a.py"
    assert shown["input"]["content"].endswith(TRUNCATED)
    assert shown["output"] == "ok"


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=30), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=12),
    st.text(max_size=300),
    st.integers(1, 200),
)  # fmt: skip
def test_a_part_never_has_many_more_characters_than_were_asked_for(given_: Any, output: str, room: int):
    (shown,) = _parts(tool("t", given_, output), max_chars=room)
    texts = list(_texts([shown.get("input"), shown.get("output"), shown.get("content")]))
    assert sum(len(one.removesuffix(TRUNCATED)) for one in texts) <= room + 60


@given(
    st.sampled_from(["text", "tool", "file", "subtask", "agent", "patch", "retry", "compaction", "step-finish", "odd"]),
    st.dictionaries(
        st.sampled_from(["text", "state", "tool", "files", "url", "filename", "error", "attempt", "name", "auto", "reason"]),
        st.none() | st.integers() | st.text(max_size=9) | st.lists(st.integers() | st.text(max_size=3), max_size=3) | st.dictionaries(st.sampled_from(["input", "output", "error", "time", "metadata", "attachments", "title", "data"]), st.integers() | st.text(max_size=5) | st.lists(st.none(), max_size=2), max_size=4),
        max_size=6,
    ),
)  # fmt: skip
def test_fields_of_other_types_than_opencode_writes_raise_nothing(kind: str, fields: dict[str, Any]):
    one = message(
        {**fields, "type": kind}, error=fields.get("error"), model=fields.get("state"), agent=fields.get("files")
    )
    shown = item(one, max_chars=20)
    assert json.loads(json.dumps(shown)) == shown
    assert shown["parts"][0]["type"] == kind


def _texts(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
