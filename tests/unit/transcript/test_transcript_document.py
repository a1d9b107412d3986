"""Searchable text: the right kind, readable, redacted, bounded, and never our own answers again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import Kind
from daemon.redact import redact
from daemon.transcript.document import RECALL_BEGIN, RECALL_END, _excerpt, capped, document, readable
from tests.conftest import Sample
from tests.support.stores.records import bash, edit, message, part, reasoning, session, text, tool, write
from tests.support.stores.sample_records import load


def _sections(*records: dict[str, Any], role: str = "assistant", kb: int = 64) -> list[tuple[Kind, str, str]]:
    return [(one.kind, one.tool, one.text) for one in document(message(*records, role=role), session(), kb).sections]


@pytest.mark.parametrize(
    ("role", "record", "expected"),
    [
        ("user", text("Build it"), [(Kind.PROMPT, "", "Build it")]),
        ("assistant", text("Done"), [(Kind.ANSWER, "", "Done")]),
        ("system", text("Be brief"), [(Kind.TASK, "", "Be brief")]),
        ("assistant", reasoning("Hm"), [(Kind.REASONING, "", "Hm")]),
        ("user", text("<path>/a</path>\nx", synthetic=True), [(Kind.TOOL_OUTPUT, "read", "<path>/a</path>\nx")]),
        ("user", text("Plan mode is on", synthetic=True), [(Kind.TOOL_OUTPUT, "", "Plan mode is on")]),
        ("assistant", bash("ls -l", "total 0"), [(Kind.TOOL_INPUT, "bash", "ls -l\ndescription: Run it"), (Kind.TOOL_OUTPUT, "bash", "total 0")]),
        ("assistant", tool("bash", {"command": "x"}, "boom", status="error"), [(Kind.TOOL_INPUT, "bash", "x"), (Kind.TOOL_OUTPUT, "bash", "boom")]),
        ("assistant", tool("task", {"description": "Review", "prompt": "Look at it"}, "fine"), [(Kind.TASK, "task", "description: Review\nLook at it"), (Kind.TOOL_OUTPUT, "task", "fine")]),
        ("user", {"type": "subtask", "prompt": "Count", "description": "Files", "agent": "general"}, [(Kind.TASK, "", "agent: general\ndescription: Files\nCount")]),
        ("user", {"type": "file", "filename": "a.md", "url": "file:///w/a.md"}, [(Kind.PROMPT, "", "a.md\nfile:///w/a.md")]),
        ("assistant", {"type": "step-finish", "reason": "stop"}, []),
        ("assistant", {"type": "compaction", "auto": True}, []),
        ("assistant", {"type": "hologram", "words": ["far", "away"]}, [(Kind.TOOL_OUTPUT, "", "far\naway")]),
        ("assistant", text(" \n "), []),
        ("assistant", tool("bash", {}, status="pending"), []),
    ],
)  # fmt: skip
def test_each_part_becomes_text_of_its_kind(
    role: str, record: dict[str, Any], expected: list[tuple[Kind, str, str]]
) -> None:
    assert _sections(record, role=role) == expected


def test_code_in_a_tools_input_is_readable_text_not_json() -> None:
    (given_input, _) = _sections(write("/w/a.py", 'print("é")\n\tx = "\\n"\n'))
    assert given_input[2] == 'filePath: /w/a.py\nprint("é")\n\tx = "\\n"\n'
    assert "old\nnew" in _sections(edit("/w/a.py", "old", "new"))[0][2]


def test_a_long_part_keeps_head_and_tail_and_says_what_is_missing() -> None:
    ((_, _, shown),) = _sections(text("H" * 2000 + "T" * 2000), kb=1)
    assert shown == "H" * 768 + "\n[… 2976 characters left out …]\n" + "T" * 256


@given(st.text(max_size=60), st.integers(4, 40))
def test_capping_cuts_nothing_that_fits_and_counts_what_it_cuts(words: str, limit: int) -> None:
    shown = capped(words, limit)
    if len(words) <= limit:
        assert shown == words
    else:
        assert f"[… {len(words) - limit} characters left out …]" in shown
        assert shown.startswith(words[: limit - limit // 4])
        assert shown.endswith(words[len(words) - limit // 4 :])


def test_secrets_are_redacted_wherever_they_stand() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    made = message(
        text(f"key {secret}"), reasoning(secret), bash(f"export TOKEN={secret}", f"TOKEN={secret}"), role="assistant"
    )
    found = document(made, session(), 64)
    assert len(found.sections) == 4
    assert secret not in str(found)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"name": "APIError", "data": {"message": "scripted: invalid request"}}, "APIError: scripted: invalid request"),
        ({"name": "MessageAbortedError", "data": {}}, "MessageAbortedError"),
        ({"name": "UnknownError", "message": "plain"}, "UnknownError: plain"),
        ("it broke", "it broke"),
        ({"name": "APIError", "data": {"message": "key ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}}, None),
    ],
)
def test_a_messages_own_error_is_found_by_its_words(error: Any, expected: str | None) -> None:
    made = document(message(text("Done"), role="assistant", error=error), session(), 64)
    answer, failure = made.sections
    assert answer.text == "Done"
    assert (failure.part_id, failure.kind, failure.tool) == ("error", Kind.TOOL_OUTPUT, "")
    assert "ghp_a1" not in failure.text
    assert expected is None or failure.text == expected


@pytest.mark.parametrize("error", [None, {}, [], 7, "", {"name": 3, "data": "x"}])
def test_an_error_without_words_adds_nothing(error: Any) -> None:
    assert document(message(text("Done"), role="assistant", error=error), session(), 64).sections[1:] == ()


QUOTED = f"{RECALL_BEGIN}\nold words\n{RECALL_END}"


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (text(f"before\n{QUOTED}\nafter"), "before\n\nafter"),
        (text(f"> {QUOTED}\n> {QUOTED} end"), "> \n>  end"),
        (text(f"a {RECALL_BEGIN} x {QUOTED} y {RECALL_END} b"), "a  b"),
        (text(f"it begins with {RECALL_BEGIN} and my own words"), "it begins with  and my own words"),
        (text(f"stray {RECALL_END} stays"), f"stray {RECALL_END} stays"),
    ],
)
def test_what_recall_answered_is_not_indexed_again(record: dict[str, Any], kept: str) -> None:
    assert [one[2] for one in _sections(record)] == [kept]


def test_a_tools_output_that_was_cut_inside_a_recall_block_ends_there() -> None:
    assert _sections(bash("x", f"head\n{RECALL_BEGIN}\nold words"))[-1][2] == "head\n"


def test_a_call_of_our_own_tools_is_dropped_with_its_question() -> None:
    """Else a name that nobody ever wrote is found the second time it is asked for."""
    found = _sections(
        tool("memory_recall_get", {"id": "msg_1"}, "old words"),
        tool("reconstitute_read_file", {"path": "/a"}, "old"),
        tool("bash", {"command": "ls"}, "a.txt"),
    )
    assert [(kind, name) for kind, name, _ in found] == [(Kind.TOOL_INPUT, "bash"), (Kind.TOOL_OUTPUT, "bash")]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3),
    )
)
def test_every_text_of_an_input_is_readable(value: Any) -> None:
    def leaves(one: Any) -> list[str]:
        if isinstance(one, dict | list):
            return [leaf for item in (one.values() if isinstance(one, dict) else one) for leaf in leaves(item)]
        return [one] if isinstance(one, str) else []

    assert all(leaf in readable(value) for leaf in leaves(value))


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.text(max_size=9)},
            optional={"text": st.none() | st.text(), "state": st.none() | st.lists(st.none())},
        ),
        max_size=3,
    )
)
def test_records_of_any_shape_give_a_document(records: list[dict[str, Any]]) -> None:
    made = replace(message(), parts=tuple(part(record) for record in records))
    found = document(made, None, 1)
    assert found == document(made, None, 1)


def test_the_samples_answers_and_prompts_are_found_word_for_word(any_sample: Sample, tmp_path: Path) -> None:
    loaded = load(any_sample, tmp_path)
    texts = [
        (one.kind, one.text)
        for m in loaded.messages
        for one in document(m, loaded.sessions.get(m.session_id), 1024).sections
    ]
    assert (
        Kind.PROMPT,
        "Please build a minimal Flask todo API with an in-memory store, and plan the work first.",
    ) in texts
    assert any(
        kind == Kind.TOOL_OUTPUT and "AttributeError: 'Store' object has no attribute 'remove'" in words
        for kind, words in texts
    )
    assert any(kind == Kind.TOOL_INPUT and "Die API verwaltet Aufgaben" in words for kind, words in texts)
    assert {kind for kind, _ in texts} == set(Kind) - {Kind.TITLE}


@pytest.mark.parametrize("shift", [0, 3, 17, 38])
@pytest.mark.parametrize("between", [10, 400, 30_000])
def test_an_excerpt_shows_what_redacting_the_whole_text_would(shift: int, between: int) -> None:
    """Only a window around what is shown is redacted: wherever it is cut, no part of a secret is seen."""
    secret = "ghp_" + "aB3dE5fG7hI9" * 3
    text = "x" * shift + (" " + secret + " lorem ipsum" + "z" * between) * (1 + 500_000 // (between + 50))
    shown, whole = _excerpt(text, 16 * 1024), capped(redact(text), 16 * 1024)
    note = re.compile(r"\n\[… \d+ characters left out …\]\n")
    assert note.split(shown) == note.split(whole)
    assert secret[:20] not in shown


def test_little_of_a_long_output_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counted(text: str) -> str:
        seen.append(len(text))
        return redact(text)

    monkeypatch.setattr("daemon.transcript.document.redact", counted)
    _excerpt("an ordinary line of output\n" * 60_000, 256 * 1024)
    assert sum(seen) < 450_000
