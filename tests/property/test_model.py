"""The small OpenCode agrees with itself, with git, and with the rules that the archive replays edits by."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files import apply as matching
from tests.property import model_rules as rules
from tests.property.model_rules import BOM, NEW, OLD, ToolError
from tests.property.model_sessions import Model
from tests.support.examples import examples

_LINES = st.lists(st.sampled_from(["one", "  one", "two", "", "one two", "$&", "é"]), max_size=6)
_TEXTS = st.builds(
    lambda lines, end, mark, last: mark + end.join(lines) + last,
    _LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", BOM]), st.sampled_from(["", "\n"]),
)  # fmt: skip
_VERSIONS = st.sampled_from([OLD, NEW])


@settings(max_examples=examples(300), deadline=None)
@given(_TEXTS, _TEXTS, _TEXTS, st.booleans(), _VERSIONS)
def test_an_edit_that_the_model_makes_is_the_one_the_replay_computes(
    text: str, old: str, new: str, everywhere: bool, version: str
) -> None:
    """Both were written from the observed rules, apart from one another; None says only that it is not certain."""
    computed = matching.edited(text, old, new, everywhere, version)
    try:
        made = rules.edited(text.encode(), old, new, everywhere, version)[2]
    except ToolError:
        return  # such a call is never recorded as completed
    assert computed is None or computed.encode() == made


@pytest.mark.parametrize(
    ("version", "raw", "old", "new", "everywhere", "after"),
    [
        (OLD, "a\r\nb\r\n", "a\r\nb", "c\nd", False, "c\nd\r\n"),
        (NEW, "a\r\nb\r\n", "a\nb", "c\nd", False, "c\r\nd\r\n"),
        (OLD, BOM + "a\n", "a", "b", False, "b\n"),
        (NEW, BOM + "a\n", "a", "b", False, BOM + "b\n"),
        (NEW, "aXa", "a", "[$&]", True, "[a]X[a]"),
        (NEW, "aX", "a", "[$&]", False, "[$&]X"),
        (NEW, "\t  a b\nc\n", "a b", "d", False, "\t  d\nc\n"),
        (NEW, "\t  a\nb\n", " a \n b\n", "d", False, "d\n"),
        (OLD, "a", "", "b", False, "b"),
    ],
)
def test_an_edit_follows_the_rules_of_its_version(
    version: str, raw: str, old: str, new: str, everywhere: bool, after: str
) -> None:
    assert rules.edited(raw.encode(), old, new, everywhere, version)[2] == after.encode()


@settings(max_examples=examples(100), deadline=None)
@given(_TEXTS, _TEXTS)
def test_a_patch_with_full_context_holds_both_texts(before: str, after: str) -> None:
    sides = {"-": "", "+": ""}
    lines = rules.diff("f", before, after).split("\n")[:-1]
    for number, line in enumerate(lines[5:], 5):
        ends = "" if lines[number + 1 : number + 2] == ["\\ No newline at end of file"] else "\n"
        for side in sides:
            sides[side] += line[1:] + ends if line[:1] in (side, " ") else ""
    assert before == after or [sides["-"], sides["+"]] == [before, after]


def test_what_was_not_told_is_blind_until_it_is_seen_whole(tmp_path: Path) -> None:
    model = Model(tmp_path / "w", tmp_path / "trees", OLD, git=False)
    path = str(model.project / "a.txt")
    session = model.session()
    model.begin_step(session)
    model.call(session, model.write(path, "one\n"))
    assert not model.truth[-1].blind
    model.outside(lambda: Path(path).write_text("two\n"))
    assert model.truth[-1].blind == {path}
    model.call(session, model.read(path, 1, 1))
    assert model.truth[-1].blind == {path}
    model.call(session, model.read(path))
    assert not model.truth[-1].blind


def test_a_revert_sets_back_its_patch_parts_and_a_prompt_drops_messages(tmp_path: Path) -> None:
    model = Model(tmp_path / "w", tmp_path / "trees", NEW, git=True)
    path = str(model.project / "a.txt")
    session = model.session()
    for content in ("one\n", "two\n"):
        model.prompt(session)
        model.begin_step(session)
        model.call(session, model.write(path, content))
        model.end_step(session)
    user = model.talks[session].user
    model.revert(session, user)
    assert model.truth[-1].files[path] == b"one\n"
    model.unrevert(session)
    assert model.truth[-1].files[path] == b"two\n"
    model.revert(session, user)
    model.prompt(session)
    assert next(entry.data["id"] for entry in model.journal if entry.kind == "removed") == user
    assert model.truth[-1].files[path] == b"one\n"
