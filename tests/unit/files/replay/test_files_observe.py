"""What reads, recorded diffs and attachments say of a file, alone and against what is known."""

from __future__ import annotations

import pytest

from daemon.files.content import Fragments, Run
from daemon.files.history import Grade
from daemon.files.replay.reads import NOT_UTF8
from daemon.model import FileEdit
from tests.support.stores.replaying import (
    Objects,
    append,
    at,
    delete,
    edit,
    grade_and_content,
    history,
    last,
    lines,
    read,
    snapshot,
    state,
    unclear,
    write,
)

A = "/w/a"
GONE = ("gone", None)
ONE = write(2, A, "one\n")
BEFORE, AFTER = "before the turn", "after the turn"


# -- recorded diffs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([state(1, A, "one\n")], ("proven", b"one\n")),
        ([state(1, A, None)], None),
        ([ONE, state(3, A, "one\n", note=AFTER)], ("verified", b"one\n")),
        ([ONE, state(3, A, "two\n", note=AFTER)], ("proven", b"two\n")),
        # that a diff begins without the file is no news of a deletion
        ([ONE, state(3, A, None, note=BEFORE)], ("proven", b"one\n")),
        ([state(1, A, "old\n", note=BEFORE), ONE, state(3, A, "old\n", note=AFTER)], ("proven", b"one\n")),
        ([state(1, A, "old\n", note=BEFORE), ONE, state(3, A, None, note=AFTER)], GONE),
        ([state(1, A, "old\n", note=BEFORE), delete(2, A), state(3, A, None, note=AFTER)], GONE),
        ([ONE, unclear(3, A), state(4, A, "two\n", note=AFTER)], ("proven", b"two\n")),
        ([ONE, unclear(3, A), state(4, A, "one\n", note=AFTER)], ("verified", b"one\n")),
        # told at the end of the turn, but taken before what came since
        ([ONE, write(4, A, "two\n", existed=True), state(5, A, "one\n", note=AFTER, started=at(3))], ("proven", b"two\n")),
        ([state(1, A, "x"), snapshot(2, "t", "/w")], ("proven", b"x")),
    ],
)  # fmt: skip
def test_a_recorded_diff_votes(edits: list[FileEdit], expected: tuple[str, bytes | None] | None) -> None:
    found = history(A, edits).latest
    assert (None if found is None else grade_and_content(found)) == expected


@pytest.mark.parametrize(
    ("before", "shows", "begun", "expected"),
    [
        ("0 1 2 3", "1", 1.5, ("proven", b"3")),  # the turn began with it, so it is no news
        ("0 1 2 3", "2", 1.5, ("proven", b"3")),
        ("0 1 2 3", "0", 1.5, ("proven", b"0")),  # it had passed before the turn
        ("0 1 2", "0", 0.5, ("proven", b"2")),
        ("0 1 2", "0", 1.5, ("proven", b"0")),
        ("0 1 2", "1", 2, ("proven", b"1")),
        ("0 1 2 3", "0", 2, ("proven", b"0")),
        ("0 1 2 3", "0", 1, ("proven", b"0")),
        ("0 1 0", "0", 0.5, ("verified", b"0")),  # the state now agrees, whatever has passed
    ],
)
def test_a_late_diff_may_show_any_state_of_its_turn(
    before: str, shows: str, begun: float, expected: tuple[str, bytes]
) -> None:
    """State n was written at second n; the diff tells at the end of a turn that began at `begun`."""
    writes = [write(second, A, text, existed=second > 0) for second, text in enumerate(before.split())]
    assert grade_and_content(last(A, [*writes, state(9, A, shows, note=AFTER, started=at(begun))])) == expected


def test_a_late_diff_may_show_that_the_file_was_gone_then() -> None:
    edits = [state(1, A, "one\n", note=BEFORE), delete(2, A), write(4, A, "two\n")]
    assert grade_and_content(last(A, [*edits, state(5, A, None, note=AFTER, started=at(3))])) == ("proven", b"two\n")
    assert grade_and_content(last(A, [*edits, state(5, A, None, note=AFTER, started=at(4))])) == GONE


def test_a_diff_and_the_tree_it_was_made_from_are_one_witness() -> None:
    objects = Objects()
    tree = objects.put({"a": b"one\n"}, "t")
    found = last(A, [snapshot(1, tree, "/w"), state(2, A, "one\n", note=AFTER)], objects)
    assert (found.grade, found.kinds) == (Grade.PROVEN, frozenset({"snapshot", "diff"}))


def test_a_diff_does_not_show_a_byte_order_mark_and_does_not_take_it_away() -> None:
    found = last(A, [write(1, A, "\ufeffone\n"), state(2, A, "one\n", note=AFTER)])
    assert grade_and_content(found) == ("verified", "\ufeffone\n".encode())


def test_a_state_by_a_blob_that_is_not_kept_says_nothing() -> None:
    assert history(A, [state(1, A, None, blob="0" * 40)]).latest is None
    objects = Objects()
    blob = objects.put_blob(b"\xff\x00")
    assert grade_and_content(last(A, [ONE, state(3, A, None, blob=blob, note=AFTER)], objects)) == (
        "proven",
        b"\xff\x00",
    )


# -- reverts, attachments, reads that found nothing ------------------------------------------------------------------


def test_what_a_revert_made_stands_whatever_was_known() -> None:
    for before in ([], [ONE], [ONE, unclear(3, A)], [ONE, delete(3, A)]):
        found = last(A, [*before, state(5, A, "set back\n", tool="revert", note="set back")])
        assert grade_and_content(found) == ("proven", b"set back\n")
        assert not found.outside_change
        assert grade_and_content(last(A, [*before, state(5, A, None, tool="revert", note="set back")])) == GONE


def test_an_attachment_is_news_and_agrees_with_reads_as_one_witness() -> None:
    found = last(A, [state(1, A, "one\n", tool="attachment"), read(2, A, "one\n")])
    assert found.grade is Grade.PROVEN
    assert grade_and_content(last(A, [ONE, state(3, A, "one\n", tool="attachment")])) == ("verified", b"one\n")
    other = last(A, [ONE, state(3, A, "two\n", tool="attachment")])
    assert (grade_and_content(other), other.outside_change) == (("proven", b"two\n"), True)


def test_a_read_that_found_no_file_tells_that_it_is_gone() -> None:
    none = state(3, A, None, tool="read", note="a read found no file")
    assert history(A, [none]).latest is None
    found = last(A, [ONE, none])
    assert (grade_and_content(found), found.outside_change) == (GONE, True)
    assert grade_and_content(last(A, [ONE, unclear(2.5, A), none])) == GONE
    assert last(A, [ONE, delete(2.5, A), none]).grade is Grade.VERIFIED
    beside = [write(5, A, "one\n", started=at(1)), state(6, A, None, tool="read", started=at(2))]
    assert grade_and_content(last(A, beside)) == ("proven", b"one\n")


# -- reads -----------------------------------------------------------------------------------------------------------

_INEXACT = "final newline and line ends do not show in it"


@pytest.mark.parametrize(
    ("edits", "expected", "outside"),
    [
        ([read(1, A, "one\n")], ("proven", b"one\n"), False),
        ([ONE, read(3, A, "one\n")], ("verified", b"one\n"), False),
        ([ONE, read(3, A, "two\n")], ("proven", b"two\n"), True),
        ([ONE, read(3, A, "one")], ("proven", b"one"), True),  # an exact one shows the final newline
        ([ONE, read(3, A, "one", note=_INEXACT)], ("proven", b"one\n"), False),
        ([write(1, A, "a\r\nb\r\n"), read(3, A, "a\nb", note=_INEXACT)], ("proven", b"a\r\nb\r\n"), False),
        ([write(1, A, "\ufeffa\n"), read(3, A, "a\n")], ("verified", "\ufeffa\n".encode()), False),
        ([ONE, read(3, A, "two", note=_INEXACT)], ("partial", None), True),
        ([ONE, unclear(2.5, A), read(3, A, "one\n")], ("proven", b"one\n"), False),
        ([ONE, unclear(2.5, A), read(3, A, "one", note=_INEXACT)], ("stale", b"one\n"), False),
        ([ONE, unclear(2.5, A), read(3, A, "two", note=_INEXACT)], ("partial", None), False),
        ([ONE, read(3, A, "caf\ufffd\n")], ("stale", "caf\ufffd\n".encode()), True),
    ],
)
def test_whole_reads(edits: list[FileEdit], expected: tuple[str, bytes | None], outside: bool) -> None:
    found = last(A, edits)
    assert grade_and_content(found) == expected
    assert found.outside_change is outside


def test_a_replacement_character_in_a_read_proves_nothing() -> None:
    assert last(A, [read(1, A, "caf\ufffd\n")]).note == NOT_UTF8


def test_a_read_confirms_a_known_file_that_is_not_utf8() -> None:
    objects = Objects()
    tree = objects.put({"a": b"caf\xe9\n"}, "t")
    found = last(A, [snapshot(1, tree, "/w"), read(2, A, "caf\ufffd\n")], objects)
    assert found.content == b"caf\xe9\n"
    assert found.proven


@pytest.mark.parametrize(
    ("edits", "expected", "outside"),
    [
        ([write(1, A, "a\nb\nc\n"), lines(2, A, 2, "b")], ("proven", b"a\nb\nc\n"), False),
        ([write(1, A, "a\nb\nc\n"), lines(2, A, 2, "b", "x")], ("stale", b"a\nb\nc\n"), True),
        ([write(1, A, "a\nb\nc\n"), lines(2, A, 2, "x")], ("stale", b"a\nb\nc\n"), True),
        ([write(1, A, "a\nbb\nc\n"), lines(2, A, 2, "b")], ("stale", b"a\nbb\nc\n"), True),
        ([write(1, A, "a\n"), unclear(2, A), lines(3, A, 1, "x")], ("stale", b"a\n"), False),
        ([write(1, A, "a\n"), delete(2, A), lines(3, A, 1, "x")], ("partial", None), True),
        ([lines(1, A, 1, "x")], ("partial", None), False),
    ],
)
def test_reads_of_some_lines(edits: list[FileEdit], expected: tuple[str, bytes | None], outside: bool) -> None:
    found = last(A, edits)
    assert grade_and_content(found) == expected
    assert found.outside_change is outside


def test_a_read_of_lines_at_another_place_contradicts() -> None:
    found = last(A, [write(1, A, "a\nb\nc\n"), lines(2, A, 3, "b")])
    assert not found.proven


def test_lines_without_a_known_place_are_kept_without_one() -> None:
    found = last(A, [lines(1, A, 4, "x", note="some lines")])
    assert found.fragments == Fragments((Run(None, ("x",)),))


def test_a_file_seen_but_for_its_last_newline_stays_partial() -> None:
    found = last(A, [read(1, A, "a\nb", note=_INEXACT), edit(2, A, "a", "A")])
    assert found.fragments == Fragments((Run(1, ("A", "b")),), is_all=True)
    assert last(A, [read(1, A, "a\nb", note=_INEXACT), append(2, A, "c\n")]).grade is Grade.PARTIAL


def test_a_moment_before_an_outside_change_is_not_certain() -> None:
    found = history(A, [ONE, state(9, A, "x\n", tool="attachment")])
    assert [grade_and_content(found.at(at(second)))[0] for second in (2, 3, 9)] == ["proven", "stale", "proven"]
    assert [grade_and_content(revision)[0] for revision in found.until(at(5)).revisions] == ["proven", "stale"]
    assert found.until(at(1)).latest is None
    assert found.until(None) is found
