"""The newest version is current, unless it only lost something; nothing that was read is lost."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.archive import merge
from daemon.model import Message, Parts
from tests.support.stores.records import message, text


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
        ("a text is rewritten in few words", {"text": "entirely different, longer words"}, {"text": "few words"}, True, True),
        ("the end of a text is deleted", {"text": "the answer and much more"}, {"text": "the answer"}, True, True),
        ("the beginning of a text is deleted", {"text": "well, the answer"}, {"text": "the answer"}, True, True),
        ("a bracketed text is a text", {"text": "a long answer"}, {"text": "[a note]"}, True, True),
        ("a text is cut off while it is written anew", {"text": "all of it", "time": {"start": 1, "end": 2}}, {"text": "all", "time": {"start": 1}}, False, False),
        ("a text ends with nothing", {"text": "all of it", "time": {"start": 1}}, {"text": "", "time": {"start": 1, "end": 2}}, False, False),
        ("a field goes with a new text", {"text": "long and old", "note": "n"}, {"text": "new"}, True, True),
        ("an input is shortened", _tool("completed", input={"command": "make all test"}), _tool("completed", input={"command": "make"}), True, True),
        ("an option of an input goes", _tool("completed", input={"command": "ls", "workdir": "/p"}), _tool("completed", input={"command": "ls"}), True, True),
        ("a number of an input changes", _tool("completed", input={"offset": 100}), _tool("completed", input={"offset": 1}), True, True),
        ("an input is blanked", _tool("completed", input={"command": "ls"}, output="a"), _tool("completed", input={}, output="a"), False, False),
        ("a half-streamed call ends as an error", _tool("running", input={"content": "half"}), _tool("error", input={}, error="aborted"), True, True),
        ("a to-do is done", _tool("completed", input={"todos": [{"content": "a", "status": "pending"}]}), _tool("completed", input={"todos": [{"content": "a", "status": "completed"}]}), True, True),
        ("a to-do is taken off the list", _tool("completed", input={"todos": [{"content": "a"}, {"content": "b"}]}), _tool("completed", input={"todos": [{"content": "a"}]}), True, True),
        ("the list is emptied", _tool("completed", input={"todos": [{"content": "a"}]}), _tool("completed", input={"todos": []}), True, True),
        ("an output is another, shorter one", _tool("completed", output="1 failed, because\nof this"), _tool("completed", output="3 passed"), True, True),
        ("an output is cut to its head", _tool("completed", output="a\nb\nc\nd"), _tool("completed", output="a\nb"), False, False),
        ("an output is cut, with a notice", _tool("completed", output="a\nb\nc\nd\n" + "e" * 40), _tool("completed", output="a\n... 4 lines more ...\nd"), False, True),
        ("a compacted output gives way to whatever", _tool("completed", output="x" * 50), _tool("completed", output="gone", time={"start": 1, "compacted": 9}), False, True),
        ("a short output gives way to a long notice", _tool("completed", output="ok"), _tool("completed", output="[Old tool result content cleared]"), False, True),
        ("a line in brackets is added to an output", _tool("completed", output="a\nb"), _tool("completed", output="[warning: x]\na\nb"), True, True),
        ("an input gives way to a notice", _tool("completed", input={"filePath": "/a", "content": "x\ny"}), _tool("completed", input={"filePath": "/a", "content": "[content removed to save context]"}), False, True),
        ("an input gives way to a notice and more", _tool("completed", input={"filePath": "/a", "content": "x\ny"}), _tool("completed", input={"filePath": "/b", "content": "[content removed]"}), True, True),
        ("diff and texts give way to a patch", _tool("completed", metadata={"filediff": {"before": "a", "after": "b"}}), _tool("completed", metadata={"filediff": {"patch": "@@"}}), False, True),
        ("a finished call's facts are corrected", _tool("completed", metadata={"preview": "a long one"}), _tool("completed", metadata={"preview": "b"}), True, True),
        ("a list of files is shortened", {"type": "patch", "files": ["/a", "/b"]}, {"type": "patch", "files": ["/b"]}, True, True),
        ("a list of files is emptied", {"type": "patch", "files": ["/a", "/b"]}, {"type": "patch", "files": []}, False, False),
        ("a list of files is gone", {"type": "patch", "files": ["/a", "/b"]}, {"type": "patch"}, False, False),
        ("an entry of a list is blanked", {"files": ["/a", "/b"]}, {"files": ["/a", ""]}, False, False),
        ("a list becomes its first entry", {"files": ["/a", "/b"]}, {"files": "/a"}, True, True),
        ("a text becomes a list", {"content": "a"}, {"content": [{"text": "b"}]}, True, True),
        ("a text begins", {"text": ""}, {"text": "Hel"}, True, False),
        ("a text grows while another goes", {"text": "Hel", "note": "n"}, {"text": "Hello"}, True, True),
        ("a text is trimmed while another is blanked", {"text": "  code\n", "note": "n"}, {"text": "  code", "note": ""}, False, False),
        ("a text moves to another field and is trimmed", {"text": "Hi \n"}, {"content": "Hi"}, True, False),
        ("a record without times is final, as one that has ended", {"text": "one", "time": {"start": 1, "end": 2}}, {"text": "two"}, True, True),
        ("a record that has ended is final, as one without times", {"text": "two"}, {"text": "one", "time": {"start": 1, "end": 2}}, True, True),
        ("a message that was complete is read while it is written", {"error": "a", "time": {"created": 1, "completed": 2}}, {"error": "b", "time": {"created": 1}}, False, True),
        ("a call that runs is read as pending", _tool("running", input={"command": "ls"}), _tool("pending", input={"command": "ls -l"}), False, True),
        ("a call that runs is read as streaming", _tool("running", input={"command": "ls"}), _tool("streaming", input={"command": "ls -l"}), False, True),
        ("a pending call is streamed", _tool("pending", input={"command": "l"}), _tool("streaming", input={"command": "ls"}), True, False),
        ("a streamed call is pending again", _tool("streaming", input={"command": "l"}), _tool("pending", input={"command": "ls"}), True, False),
        ("a call that failed is completed", _tool("error", error="busy"), _tool("completed", output="a"), True, True),
        ("a completed call has failed", _tool("completed", output="a"), _tool("error", error="busy"), True, True),
        ("a status that we do not know is not a final one", _tool("completed", output="a"), _tool("paused", output="b"), False, True),
        ("a status that we do not know is more than pending", _tool("pending", input={"command": "ls"}), _tool("paused", input={}), True, True),
        ("a call ends without its preview", _tool("running", metadata={"output": "begin"}), _tool("completed", metadata={}), True, True),
        ("a running call's facts are replaced", _tool("running", metadata={"a": "x"}), _tool("running", metadata={"b": "y"}), True, True),
        ("a finished call's facts go and its output comes", _tool("completed", metadata={"a": "x"}, output=""), _tool("completed", metadata={}, output="y"), True, True),
        ("a fact grows while another is stripped", _tool("completed", metadata={"before": "b", "diff": "x"}), _tool("completed", metadata={"diff": "xy"}), False, True),
        ("an attachment is replaced by its name", _tool("completed", attachments=[{"url": "data:,x"}]), _tool("completed", attachments=[{"filename": "x.png"}]), False, True),
        ("facts beside the state take another form", {**_tool("completed"), "metadata": {"before": "b"}}, {**_tool("completed"), "metadata": {"patch": "@@"}}, False, True),
        ("an output among the facts is cut to its head", _tool("completed", metadata={"output": "a\nb\nc"}), _tool("completed", metadata={"output": "a"}), False, False),
        ("an output is cut, its lines are indented", _tool("completed", output="  a \nb\n" + "c" * 40), _tool("completed", output="  a\n[the rest is cut]"), False, True),
        ("an output is cut, the notice begins with an ellipsis", _tool("completed", output="a\nb\nc\n" + "d" * 40), _tool("completed", output="a\n… 3 lines more\nb"), False, True),
        ("an output is cut, the notice ends with an ellipsis", _tool("completed", output="a\nb\nc\n" + "d" * 40), _tool("completed", output="a\n3 lines more...\nb"), False, True),
        ("a line of an output becomes as long a one in brackets", _tool("completed", output="ab\ncdefg"), _tool("completed", output="ab\n[xyz]"), True, True),
        ("an output gives way to a notice in round brackets", _tool("completed", output="x" * 50), _tool("completed", output="(removed)"), False, True),
        ("an output gives way to one line with an ellipsis", _tool("completed", output="x" * 50), _tool("completed", output="Waiting..."), True, True),
        ("an output gives way to a line that begins with brackets", _tool("completed", output="x" * 50), _tool("completed", output="[ok] 3 passed"), True, True),
        ("an input becomes a text with an ellipsis", _tool("completed", input={"content": "x\ny"}), _tool("completed", input={"content": "Waiting..."}), True, True),
        ("an input becomes two lines in brackets", _tool("completed", input={"content": "x\ny"}), _tool("completed", input={"content": "[one\ntwo]"}), True, True),
    ],
)  # fmt: skip
def test_the_newest_version_is_current_unless_it_only_lost_something(
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
def test_every_text_ever_read_is_in_a_kept_version(
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
    prompt = {"id": "m", "role": "user", "agent": "build"}
    assert merge.choose_message(prompt, prompt | {"summary": {"diffs": []}}) == (True, False)


def test_leaves_are_the_texts_of_a_record_and_all_of_a_calls_input() -> None:
    call = _tool("completed", input={"offset": 1, "all": False, "note": None, "status": "s", "text": " "}, output="o")
    assert list(merge.leaves(call)) == ["bash", "1", "false", "s", "o"]
    names = ("id", "sessionID", "messageID", "parentID", "callID", "type", "status", "role", "raw")
    assert list(merge.leaves(dict.fromkeys(names, "x") | {"text": "t", "files": ["a", "b"], "size": 3})) == [
        "t",
        "a",
        "b",
    ]


def test_a_record_made_up_for_a_lost_message_never_replaces_the_real_one() -> None:
    real = {"id": "m", "role": "user", "time": {"created": 1}, "agent": "build"}
    made_up = {"id": "m", "role": "user", "time": {"created": 1, "completed": 1}, "title": "lost", "orphan": True}
    assert merge.choose_message(real, made_up) == (False, False)
    assert merge.choose_message(made_up, real) == (True, False)


_WORDS = st.text(alphabet="abcd", min_size=1, max_size=4)
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["text", "cut", "grow", "input", "output", "blank", "notice", "prune", "compact", "strip", "tear", "again"]),
        _WORDS,
    ),
    max_size=12,
)  # fmt: skip


def _after(step: str, word: str, was: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What the source says after a step, and whether that is a real new version and no loss."""
    new: dict[str, Any] = copy.deepcopy(was)
    state = new["state"]
    match step:
        case "text":
            new["text"] = f"t-{word}"
        case "cut":
            new["text"] = new["text"][:2]
        case "grow":
            new["text"] += word
        case "input":
            state["input"] = {"command": word, "other": f"{word}{word}"}
        case "output":
            state["output"] = f"o-{word}{word}\nend"
        case "blank":
            new |= {"text": ""}
            state |= {"output": " "}
        case "notice":
            state["output"] = f"[old output {word} cleared]"
        case "prune":
            state["input"] = dict.fromkeys(state["input"], f"[{word} removed]")
        case "compact":
            state["time"]["compacted"] = 5
            state["output"] = ""
        case "strip":
            state["metadata"] = {"patch": word}
        case "tear":
            state["status"] = "running"
            state["output"] = word
    return new, step in ("text", "cut", "grow", "input", "output", "again")


@given(_STEPS)
def test_what_is_current_follows_the_source_and_no_loss_of_it(steps: list[tuple[str, str]]) -> None:
    """The model: what the source last said, where that was no loss; every loss is tried on the current version."""
    first = _tool("completed", input={"command": "ls"}, output="o" * 60, metadata={"before": "b"}, time={"start": 1})
    current: dict[str, Any] = {**first, "text": "t-first"}
    everything, aside = [current], []
    for step, word in steps:
        new, is_real = _after(step, word, current)
        replaces, keeps_other = merge.choose(current, new)
        if keeps_other:
            aside.append(current if replaces else new)
        expected = new if is_real else current
        current = new if replaces else current
        assert current == expected, step
        everything.append(new)
    for version in everything:
        assert any(merge.contains(one, version) for one in [current, *aside])


# -- messages with their parts ---------------------------------------------------------------------------------------


def _message(*parts: dict[str, Any], large: bool = False, **fields: Any) -> Message:
    made = message(*parts, id="msg_1", created=1, **fields)
    return replace(made, parts=Parts([part.id for part in made.parts], made.parts.__getitem__)) if large else made


def _said(whole: Message) -> dict[str, str]:
    return {part.id: part.data["text"] for part in whole.parts}


ONE, TWO, THREE = (text(name, id=f"prt_{name}") for name in ("one", "two", "three"))
OTHER = text("another", id="prt_one")
BLANK = text("", id="prt_one")


@pytest.mark.parametrize(
    ("old", "new", "expected", "gone", "aside", "from_old"),
    [
        ([ONE], [ONE, TWO], {"prt_one": "one", "prt_two": "two"}, [], [], set()),
        ([ONE, TWO, THREE], [ONE, THREE], {"prt_one": "one", "prt_two": "two", "prt_three": "three"}, ["prt_two"], [], {"prt_two"}),
        ([ONE, TWO, THREE], [], {"prt_one": "one", "prt_two": "two", "prt_three": "three"}, ["prt_one", "prt_two", "prt_three"], [], {"prt_one", "prt_two", "prt_three"}),
        ([ONE, TWO], [THREE, TWO], {"prt_one": "one", "prt_three": "three", "prt_two": "two"}, ["prt_one"], [], {"prt_one"}),
        ([ONE, TWO], [OTHER, TWO], {"prt_one": "another", "prt_two": "two"}, [], [("prt_one", "one")], set()),
        ([ONE, TWO], [BLANK, TWO], {"prt_one": "one", "prt_two": "two"}, [], [], {"prt_one"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("large", [(False, False), (True, False), (False, True)])
def test_a_message_keeps_every_part_in_its_place(
    old: list[dict[str, Any]],
    new: list[dict[str, Any]],
    expected: dict[str, str],
    gone: list[str],
    aside: list[tuple[str, str]],
    from_old: set[str],
    large: tuple[bool, bool],
) -> None:
    before, now = _message(*old, large=large[0]), _message(*new, large=large[1])
    found = merge.merged(before, now)
    assert _said(found.message) == expected
    assert list(_said(found.message)) == list(expected)
    assert isinstance(found.message.parts, Parts) is any(large)
    assert found.gone == gone
    assert [(part_id, json.loads(raw)["text"]) for part_id, raw in found.versions] == aside
    assert found.from_old == from_old


def test_a_message_that_is_read_first_is_as_it_was_read() -> None:
    new = _message(ONE)
    assert merge.merged(None, new) == (new, [], [], frozenset())


@pytest.mark.parametrize(
    ("newer", "agent", "aside", "said", "from_old"),
    [
        ({"", "prt_one"}, "plan", [("prt_one", "one"), (None, "build")], "another", set()),
        ({"prt_one"}, "build", [("prt_one", "one"), (None, "plan")], "another", {""}),
        ({""}, "plan", [("prt_one", "another"), (None, "build")], "one", {"prt_one"}),
        (set(), "build", [("prt_one", "another"), (None, "plan")], "one", {"", "prt_one"}),
    ],
)
def test_of_two_readings_the_record_that_was_written_later_is_current(
    newer: set[str], agent: str, aside: list[tuple[str | None, str]], said: str, from_old: set[str]
) -> None:
    """`newer` are the records that the new reading has in a later version; the others come from an older source."""
    found = merge.merged(_message(ONE, agent="build"), _message(OTHER, agent="plan"), newer.__contains__)
    assert (found.message.data["agent"], _said(found.message)) == (agent, {"prt_one": said})
    kept = [(part_id, json.loads(raw).get("agent") or json.loads(raw)["text"]) for part_id, raw in found.versions]
    assert kept == aside
    assert found.from_old == from_old


def test_a_record_that_only_lost_something_does_not_replace_the_older_one() -> None:
    found = merge.merged(_message(ONE, agent="build"), _message(ONE))
    assert (found.message.data["agent"], found.versions, found.from_old) == ("build", [], frozenset({""}))


STEP = {"id": "prt_step", "type": "step-start", "snapshot": "tree"}


@pytest.mark.parametrize(
    ("older", "newer", "wins", "aside"),
    [
        ([ONE], [text("one", id="prt_0")], "older", []),
        ([ONE, TWO], [text("one", id="prt_0")], "older", []),
        ([ONE], [text("one ", id="prt_0")], "older", []),
        ([ONE], [text("one", id="prt_0"), {**STEP, "snapshot": "another"}], "older", ["prt_step"]),
        ([ONE], [text("one", id="prt_0"), text("two", id="prt_1")], "newer", []),
        ([ONE, TWO], [text("one", id="prt_0"), text("three", id="prt_1")], "newer", ["prt_two"]),
        ([ONE, STEP], [text("one", id="prt_0"), text("two", id="prt_1")], "newer", ["prt_step"]),
        ([text("on", id="prt_one")], [text("one", id="prt_0")], "newer", []),
        ([text("one ", id="prt_one")], [text("one", id="prt_0")], "older", []),
    ],
)
def test_of_two_generations_the_newer_wins_unless_the_older_says_more(
    older: list[dict[str, Any]], newer: list[dict[str, Any]], wins: str, aside: list[str]
) -> None:
    both = {"older": _message(*older), "newer": _message(*newer)}
    whole, versions = merge.superseded(both["older"], both["newer"])
    assert whole is both[wins]
    other = both["older" if wins == "newer" else "newer"]
    assert versions == [(part.id, part.raw) for part in other.parts if part.id in aside]
    assert merge.superseded(_message(ONE, agent="a"), _message(TWO, agent="b"))[1][-1][0] is None
