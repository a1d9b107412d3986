"""What a recorded change makes of a file: whole writes, additions, edits and patches, certain or not."""

from __future__ import annotations

import pytest

from daemon.files.history import CALL, RESULT, SHELL, Grade
from daemon.files.replay import changes
from daemon.model import FileEdit, Operation
from tests.support.stores.replaying import (
    Objects,
    append,
    at,
    delete,
    edit,
    event,
    grade_and_content,
    last,
    snapshot,
    unclear,
    write,
)

A = "/w/a"
ONE = write(1, A, "one\n")
OLD = {"version": "1.1.65"}


def recorded(second: float, before: str, after: str, **fields: object) -> FileEdit:
    old, new = fields.pop("old", before), fields.pop("new", after)
    return edit(second, A, str(old), str(new), before=before, after=after, **{**OLD, **fields})


def patch(second: float, *hunks: tuple[str, list[str], list[str]], **fields: object) -> FileEdit:
    made = tuple((context, tuple(old), tuple(new), False) for context, old, new in hunks)
    return event(second, Operation.PATCH, A, "apply_patch", hunks=made, **fields)


@pytest.mark.parametrize(
    ("edits", "expected", "outside"),
    [
        ([ONE], ("proven", b"one\n"), False),
        ([write(1, A, "")], ("proven", b""), False),
        ([ONE, edit(2, A, "one", "two")], ("proven", b"two\n"), False),
        ([ONE, edit(2, A, "none", "two")], ("stale", b"one\n"), True),
        ([write(1, A, "x x\n"), edit(2, A, "x", "y")], ("stale", b"x x\n"), True),
        ([write(1, A, "x x\n"), edit(2, A, "x", "y", replace_all=True)], ("proven", b"y y\n"), False),
        ([ONE, unclear(2, A), edit(3, A, "one", "two")], ("stale", b"two\n"), False),
        ([ONE, unclear(2, A), edit(3, A, "none", "two")], ("stale", b"one\n"), False),
        ([ONE, delete(2, A), edit(3, A, "one", "two")], ("partial", None), True),
        ([edit(1, A, "one", "two")], ("partial", None), False),
        ([edit(1, A, "one", "")], ("lost", None), False),
        ([edit(1, A, "", "new\n")], ("proven", b"new\n"), False),
        ([ONE, append(2, A, "two\n")], ("proven", b"one\ntwo\n"), False),
        ([ONE, unclear(2, A), append(3, A, "two\n")], ("stale", b"one\ntwo\n"), False),
        ([ONE, delete(2, A), append(3, A, "two\n")], ("proven", b"two\n"), False),
        ([append(1, A, "two\n")], ("partial", None), False),
        ([ONE, patch(2, ("", ["one"], ["two"]))], ("proven", b"two\n"), False),
        ([ONE, patch(2, ("", ["none"], ["two"]))], ("stale", b"one\n"), True),
        ([patch(1, ("", ["one"], ["two"]))], ("partial", None), False),
        # a text that OpenCode recorded needs no history, and tells when the history is not the whole of it
        ([recorded(1, "one\n", "two\n")], ("proven", b"two\n"), False),
        ([ONE, recorded(2, "one\n", "two\n")], ("verified", b"two\n"), False),
        ([ONE, recorded(2, "other\n", "two\n")], ("proven", b"two\n"), True),
        ([ONE, unclear(2, A), recorded(3, "other\n", "two\n")], ("proven", b"two\n"), False),
        ([ONE, recorded(2, "one\n", "formatted\n", new="two\n")], ("proven", b"formatted\n"), False),
        ([ONE, delete(2, A), recorded(3, "one\n", "two\n")], ("proven", b"two\n"), True),
        ([ONE, recorded(2, "", "two\n", old="")], ("proven", b"two\n"), False),  # an empty old text overwrites
        ([write(1, A, "\ufeffone\n", **OLD), recorded(2, "one\n", "two\n")], ("verified", b"two\n"), False),
        # whether a later version kept the mark is not told by a text that shows none
        ([write(1, A, "\ufeffone\n"), recorded(2, "one\n", "two\n", version="1.18.33")], ("proven", b"two\n"), False),
    ],
)  # fmt: skip
def test_a_change_is_certain_where_rules_lead_from_a_certain_text(
    edits: list[FileEdit], expected: tuple[str, bytes | None], outside: bool
) -> None:
    found = last(A, edits)
    assert grade_and_content(found) == expected
    assert found.outside_change is outside


@pytest.mark.parametrize(
    ("edits", "kinds"),
    [
        ([ONE], {CALL}),
        ([write(1, A, "x", tool="bash")], {SHELL}),
        ([write(1, A, "x", tool="shell")], {SHELL}),
        ([ONE, append(2, A, "x")], {SHELL}),
        ([ONE, edit(2, A, "one", "two")], {CALL}),
        ([recorded(1, "one\n", "two\n")], {RESULT}),
        ([ONE, recorded(2, "one\n", "two\n")], {RESULT, CALL}),
    ],
)
def test_each_change_names_its_kind_of_evidence(edits: list[FileEdit], kinds: set[str]) -> None:
    found = last(A, edits)
    assert found.kinds == kinds
    assert found.evidence


@pytest.mark.parametrize(
    ("edits", "note"),
    [
        ([ONE, edit(2, A, "none", "two")], changes.NO_MATCH),
        ([ONE, unclear(2, A), edit(3, A, "one", "two")], changes.NO_BASE),
        ([ONE, edit(2, A, "one", "two", version="")], ""),
        ([write(5, A, "one\n", started=at(3)), write(6, A, "two\n", started=at(4))], changes.CONCURRENT),
    ],
)
def test_what_is_not_certain_says_why(edits: list[FileEdit], note: str) -> None:
    assert last(A, edits).note == note


def test_a_mark_that_the_write_tool_may_have_kept_is_not_vouched_for() -> None:
    """BOM files are common among these; 1.18 keeps the mark of what it overwrites."""
    path = "/w/a.csv"
    assert last(path, [write(1, path, "x", existed=True)]).mark_unknown
    assert last(path, [write(1, path, "x", existed=True)]).grade is Grade.PARTIAL
    for certain in (
        [write(1, path, "x", existed=True, **OLD)],
        [write(1, path, "x", existed=False)],
        [write(1, path, "x", existed=True, tool="bash")],
        [delete(1, path), write(2, path, "x", existed=None)],
        [write(1, path, "y"), write(2, path, "x", existed=True)],
    ):
        assert (last(path, certain).grade, last(path, certain).mark_unknown) == (Grade.PROVEN, False)


def test_an_addition_to_bytes_that_are_not_text_is_not_guessed() -> None:
    objects = Objects()
    tree = objects.put({"a": b"caf\xe9\n"}, "t")
    found = last(A, [snapshot(1, tree, "/w"), append(2, A, "x\n")], objects)
    assert (found.grade, found.content) == (Grade.STALE, b"caf\xe9\n")


def test_a_recorded_text_before_an_edit_orders_overlapping_calls() -> None:
    first = write(5, A, "one\n", started=at(3))
    assert grade_and_content(last(A, [first, recorded(6, "one\n", "two\n", started=at(4))])) == ("verified", b"two\n")
    assert grade_and_content(last(A, [first, recorded(6, "none\n", "two\n", started=at(4))])) == ("stale", b"two\n")


def test_outcome_is_what_each_kind_of_change_makes_of_a_text() -> None:
    assert changes.outcome("one\n", write(1, A, "x")) == "x"
    assert changes.outcome("one\n", append(1, A, "x")) == "one\nx"
    assert changes.outcome("one\n", edit(1, A, "one", "two")) == "two\n"
    assert changes.outcome("one\n", edit(1, A, "none", "two")) is None
    assert changes.outcome("one\n", recorded(1, "q", "after")) == "after"
    assert changes.outcome("one\n", patch(1, ("", ["one"], ["two"]))) == "two\n"
