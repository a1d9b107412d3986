"""Richer content is never replaced by poorer, and nothing that was read is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.archive import merge


def _tool(status: str, **state: Any) -> dict[str, Any]:
    return {"id": "p", "type": "tool", "tool": "bash", "state": {"status": status, **state}}


@pytest.mark.parametrize(
    ("case", "old", "new", "replaces", "aside"),
    [
        ("a text grows", {"text": "Hel", "time": {"start": 1}}, {"text": "Hello", "time": {"start": 1}}, True, False),
        ("the end is trimmed", {"text": "Hi \n", "time": {"start": 1}}, {"text": "Hi", "time": {"start": 1, "end": 2}}, True, False),
        ("a text is blanked", {"text": "all of it"}, {"text": ""}, False, False),
        ("an output is cleared", _tool("completed", output="x" * 50), _tool("completed", output=""), False, False),
        ("an output gives way to a notice", _tool("completed", output="x" * 50), _tool("completed", output="[cleared]"), False, True),
        ("a call completes", _tool("running", input={"command": "ls"}), _tool("completed", input={"command": "ls"}, output="a"), True, False),
        ("a stale copy of a running call", _tool("completed", input={"command": "ls"}, output="a"), _tool("running", input={"command": "ls"}), False, False),
        ("a running call is aborted", _tool("running", metadata={"output": "begin"}), _tool("error", error="aborted"), True, True),
        ("compaction only marks", _tool("completed", output="o", time={"start": 1}), _tool("completed", output="o", time={"start": 1, "compacted": 9}), True, False),
        ("before and after are stripped", {"state": {"metadata": {"filediff": {"before": "a", "after": "b"}}}}, {"state": {"metadata": {}}}, False, False),
        ("a text is rewritten at length", {"text": "old words"}, {"text": "entirely different, longer words"}, True, True),
    ],
)  # fmt: skip
def test_the_fuller_version_stays(
    case: str, old: dict[str, Any], new: dict[str, Any], replaces: bool, aside: bool
) -> None:
    assert merge.choose(old, new) == (replaces, aside), case


_TEXTS = st.text(alphabet=st.sampled_from("ab \n"), max_size=6)
_RECORDS = st.fixed_dictionaries(
    {"text": _TEXTS},
    optional={
        "state": st.fixed_dictionaries(
            {"status": st.sampled_from(["pending", "running", "completed", "error"])},
            optional={"output": _TEXTS, "error": _TEXTS, "input": st.fixed_dictionaries({"command": _TEXTS})},
        ),
        "time": st.fixed_dictionaries({"start": st.just(1)}, optional={"end": st.just(2)}),
    },
)


@given(st.lists(_RECORDS, min_size=1, max_size=8))
def test_after_any_sequence_of_versions_every_text_ever_read_stands_in_a_kept_one(
    versions: list[dict[str, Any]],
) -> None:
    current, kept = versions[0], []
    for new in versions[1:]:
        replaces, aside = merge.choose(current, new)
        if aside:
            kept.append(current if replaces else new)
        current = new if replaces else current
    stored = "\0".join(leaf for record in [current, *kept] for leaf in merge.leaves(record))
    for version in versions:
        for leaf in merge.leaves(version):
            assert leaf.rstrip() in stored


@given(_RECORDS, _RECORDS)
def test_reading_the_same_version_twice_changes_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    replaces, _ = merge.choose(old, new)
    current = new if replaces else old
    assert merge.choose(current, current) == (True, False)


def test_the_newest_diffs_of_a_turn_win_however_little_they_say() -> None:
    old = {"id": "m", "role": "user", "summary": {"diffs": [{"file": "a", "before": "x", "after": "much longer text"}]}}
    assert merge.choose_message(old, {"id": "m", "role": "user", "summary": {"diffs": []}}) == (True, True)
    assert merge.choose_message(old, {"id": "m", "role": "user"}) == (False, False)
    assert merge.choose_message({"id": "m", "role": "user"}, old) == (True, False)
