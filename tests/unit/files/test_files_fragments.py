"""What is known of a file of which not everything is known: never a line that was not seen, never in a wrong place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files.content import Fragments, Run
from daemon.files.history import Grade
from daemon.model import FileEdit, Operation
from tests.support.examples import examples
from tests.support.stores.replaying import append, edit, event, grade_and_content, last, lines, read, unclear, write


def runs(*given: tuple[int | None, str], whole: bool = False) -> Fragments:
    return Fragments(tuple(Run(first, tuple(text.split("|"))) for first, text in given), is_all=whole)


@pytest.mark.parametrize(
    ("known", "first", "shown", "expected"),
    [
        (runs(), 5, "a|b", runs((5, "a|b"))),
        (runs((5, "a|b")), 7, "c", runs((5, "a|b|c"))),  # they meet
        (runs((5, "a|b")), 3, "x|y", runs((3, "x|y|a|b"))),
        (runs((5, "a|b")), 8, "d", runs((5, "a|b"), (8, "d"))),  # a gap of one line
        (runs((5, "a|b")), 3, "x", runs((3, "x"), (5, "a|b"))),
        (runs((5, "a|b|c")), 6, "b|c|d", runs((5, "a|b|c|d"))),
        (runs((5, "a|b|c")), 4, "z|a|b", runs((4, "z|a|b|c"))),
        (runs((5, "a|b|c")), 6, "b", runs((5, "a|b|c"))),  # inside
        (runs((6, "b")), 5, "a|b|c", runs((5, "a|b|c"))),  # around
        (runs((1, "a"), (5, "e")), 2, "b|c|d", runs((1, "a|b|c|d|e"))),  # fills a gap
        (runs((5, "a|b")), 6, "x", runs((6, "x"))),  # contradicts: the older goes
        (runs((1, "k"), (5, "a|b")), 6, "x", runs((1, "k"), (6, "x"))),
        (runs((None, "p"), (5, "a")), 6, "b", runs((5, "a|b"), (None, "p"))),
        (runs((5, "a|b"), whole=True), 5, "a", runs((5, "a|b"))),
    ],
)
def test_lines_seen_join_what_was_known(known: Fragments, first: int, shown: str, expected: Fragments) -> None:
    assert known.with_lines(first, tuple(shown.split("|"))) == expected


_RANGES = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 6)), max_size=8)


@settings(max_examples=examples(150), deadline=None)
@given(_RANGES)
def test_reads_of_one_text_in_any_order_know_exactly_what_they_showed(ranges: list[tuple[int, int]]) -> None:
    text = [f"line {n}" for n in range(1, 20)]
    known = Fragments()
    for first, count in ranges:
        known = known.with_lines(first, tuple(text[first - 1 : first - 1 + count]))
    shown = {n for first, count in ranges for n in range(first, first + count)}
    assert [(run.first_line + n, line) for run in known.runs for n, line in enumerate(run.lines)] == [
        (n, f"line {n}") for n in sorted(shown)
    ]
    for one, other in zip(known.runs, known.runs[1:], strict=False):
        assert one.end < other.first_line  # apart from one another
    assert known.count == len(shown)


@pytest.mark.parametrize(
    ("known", "old", "new", "everywhere", "expected"),
    [
        (runs((5, "a|b|c")), "b", "x", False, runs((5, "a|x|c"))),
        (runs((5, "a|b"), (9, "z")), "b", "x\ny", False, runs((5, "a|x|y"), (10, "z"))),
        (runs((5, "a|b"), (9, "z")), "a\nb", "x", False, runs((5, "x"), (8, "z"))),
        (runs((2, "p"), (5, "a"), (9, "z")), "a", "a\na", False, runs((2, "p"), (5, "a|a"), (10, "z"))),
        # outside of what is known, with as many lines as before: nothing moves, and what it wrote is known
        (runs((5, "a")), "q", "r", False, runs((5, "a"), (None, "r"))),
        # outside, with another number of lines: it may be in front of everything
        (runs((5, "a")), "q", "r\ns", False, runs((None, "a"), (None, "r|s"))),
        (runs((5, "a")), "q\nr", "", False, runs((None, "a"))),
        # without a place of its own an edit moves nobody knows what
        (runs((5, "a"), (None, "m")), "m", "m\nn", False, runs((None, "a"), (None, "m|n"))),
        (runs((5, "a|a"), (9, "a")), "a", "x", True, runs((5, "x|x"), (9, "x"))),
        (runs((5, "a"), (9, "z")), "a", "x\ny", True, runs((None, "x|y"), (None, "z"))),
        (runs((1, "a|b"), whole=True), "b", "c", False, runs((1, "a|c"), whole=True)),
        # whether the file ended in a newline is not known: so neither is whether an empty line follows
        (runs((1, "a"), whole=True), "a", "x\n", False, runs((1, "x"))),
        (runs((5, "a|b"), (9, "z")), "b", "x\n", False, runs((5, "a|x"), (10, "z"))),
        (runs(), "a", "b", False, runs((None, "b"))),
        (runs(), "a", "", False, runs()),
    ],
)  # fmt: skip
def test_an_edit_changes_what_it_surely_changed(
    known: Fragments, old: str, new: str, everywhere: bool, expected: Fragments
) -> None:
    assert known.edited(old, new, everywhere=everywhere) == expected


_TEXT = st.lists(st.sampled_from("abcde"), min_size=3, max_size=14)


@settings(max_examples=examples(200), deadline=None)
@given(
    _TEXT, _RANGES, st.integers(0, 13), st.integers(1, 3), st.sampled_from(["x", "x\ny", "", "x\ny\nz"]), st.booleans()
)
def test_after_an_edit_every_known_line_with_a_place_stands_there(
    text: list[str], ranges: list[tuple[int, int]], start: int, count: int, new: str, everywhere: bool
) -> None:
    whole, old = "\n".join(text), "\n".join(text[start : start + count])
    if not old or (whole.find(old) != whole.rfind(old) and not everywhere):
        return
    known = Fragments()
    for first, length in ranges:
        if first <= len(text):
            known = known.with_lines(first, tuple(text[first - 1 : first - 1 + length]))
    after = whole.replace(old, new).split("\n")
    for run in known.edited(old, new, everywhere=everywhere).runs:
        shown = list(run.lines)
        if run.first is not None:
            assert after[run.first - 1 : run.first - 1 + len(shown)] == shown
        else:
            assert "\n".join(shown) in "\n".join(after)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (runs(), "<<< whether anything follows is not known >>>\n"),
        (runs((1, "a|b")), "a\nb\n<<< whether anything follows line 2 is not known >>>\n"),
        (
            runs((3, "a"), (7, "b"), (None, "c|d")),
            (
                "<<< lines 1 to 2 are not known >>>\na\n<<< lines 4 to 6 are not known >>>\nb\n"
                "<<< 2 known lines, their place is not known; the outer ones may be parts >>>\nc\nd\n<<< whether anything follows line 7 is not known >>>\n"
            ),
        ),
        (
            runs((1, "a"), whole=True),
            "a\n",
        ),
    ],
)
def test_for_people_the_gaps_are_marked(known: Fragments, expected: str) -> None:
    assert known.marked() == expected
    assert known.has_gaps == ("<<<" in expected)


@pytest.mark.parametrize(
    ("old", "new"), [("b\n", "x\n"), ("b\n", "x\ny\n"), ("a\nb\n", "z\n"), ("b\r\n", "x\r\n"), ("b", "x")]
)
def test_an_edit_of_a_last_line_without_newline_leaves_nothing_wrong(old: str, new: str) -> None:
    note = "final newline and line ends do not show in it"
    found = last("/w/a", [read(1, "/w/a", "a\nb", note=note), edit(2, "/w/a", old, new)])
    assert found.fragments is not None
    assert not any("b" in run.lines for run in found.fragments.runs)


def test_reads_and_edits_of_a_file_that_was_never_seen_whole_are_partial() -> None:
    found = last(
        "/w/a", [lines(1, "/w/a", 3, "c", "d"), lines(2, "/w/a", 8, "h"), edit(3, "/w/a", "d", "D\nE")]
    )  # fmt: skip
    assert (found.grade, found.content) == (Grade.PARTIAL, None)
    assert found.fragments == runs((3, "c|D|E"), (9, "h"))


def test_a_whole_read_after_that_is_whole_but_for_a_byte_order_mark() -> None:
    assert grade_and_content(last("/w/a", [lines(1, "/w/a", 3, "c"), read(2, "/w/a", "a\nb\nc\n")])) == (
        "proven",
        b"a\nb\nc\n",
    )


@pytest.mark.parametrize("where", ["/w/a", "/w"])
@pytest.mark.parametrize("is_whole", [False, True])
def test_what_is_known_in_part_is_stale_once_something_may_have_changed_it(where: str, is_whole: bool) -> None:
    seen = read(1, "/w/a", "b\nc", note=COMPLETE) if is_whole else lines(1, "/w/a", 3, "c")
    found = last("/w/a", [seen, lines(2, "/w/b", 1, "x"), unclear(3, where)])
    known = runs((1, "b|c"), whole=True) if is_whole else runs((3, "c"))
    assert (found.grade, found.fragments) == (Grade.STALE, replace(known, is_stale=True))
    assert found.note
    assert found.fragments is not None
    assert ("any of these lines may have changed" in found.fragments.marked()) == (not is_whole)


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        (lines(3, "/w/a", 4, "d"), runs((4, "d"))),
        (append(3, "/w/a", "x\n"), runs((None, "x"))),
        (edit(3, "/w/a", "q", "r"), runs((None, "r"))),
    ],
)
def test_lines_that_may_have_changed_are_none_of_those_known_later(then: FileEdit, expected: Fragments) -> None:
    found = last("/w/a", [lines(1, "/w/a", 3, "c"), unclear(2, "/w/a"), then])
    assert (found.grade, found.fragments) == (Grade.PARTIAL, expected)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (lines(1, "/w/a", 2, "b", "c"), runs((2, "b"), (None, "x|y"))),  # the last may have had no end
        (read(1, "/w/a", "}\n3", note="final newline and line ends do not show in it"), runs((1, "}"), (None, "x|y"))),
    ],
)
def test_an_addition_to_a_last_line_without_a_known_end_has_no_place(known: FileEdit, expected: Fragments) -> None:
    found = last("/w/a", [known, append(2, "/w/a", "x\ny\n")])
    assert (found.grade, found.fragments) == (Grade.PARTIAL, expected)


@pytest.mark.parametrize(("newline", "expected"), [(True, ("a", "x")), (False, ("ax",))])
def test_an_addition_where_the_end_is_known_is_in_its_place(newline: bool, expected: tuple[str, ...]) -> None:
    known = Fragments((Run(1, ("a",)),), is_all=True, newline=newline)
    assert known.added("x\n") == Fragments((Run(1, expected),), is_all=True, newline=True)


def test_a_write_ends_what_was_partial() -> None:
    found = last("/w/a", [lines(1, "/w/a", 3, "c"), write(2, "/w/a", "x\n")])
    assert (grade_and_content(found), found.fragments) == (("proven", b"x\n"), None)


COMPLETE = "final newline and line ends do not show in it"  # how a complete read of 1.2 and later is noted


@pytest.mark.parametrize("seen", ["whole", "lines"])
@pytest.mark.parametrize(
    ("after", "newline"), [(("a", "b"), True), (("a", "b", "\\ No newline at end of file"), False)]
)
def test_one_line_read_and_a_diff_that_adds_one_give_both_in_order(
    seen: str, after: tuple[str, ...], newline: bool
) -> None:
    first = read(1, "/w/a", "a", note=COMPLETE) if seen == "whole" else lines(1, "/w/a", 1, "a")
    hunk = ("@@ -1,1 +1,2 @@", ("a",), after, False)
    new = "a\nb\n" if newline else "a\nb"
    found = last("/w/a", [first, edit(2, "/w/a", "a\n", new, hunks=(hunk,))])
    assert found.grade is Grade.PARTIAL
    assert found.fragments == Fragments((Run(1, ("a", "b")),), is_all=True, newline=newline)
    assert found.fragments.marked() == new


def test_a_complete_read_and_a_patch_over_the_whole_file_give_every_line() -> None:
    hunk = ("", ("a", "b", "c", "d", "e"), ("a", "B", "c", "D", "e"), False)
    found = last(
        "/w/a", [read(1, "/w/a", "a\nb\nc\nd\ne", note=COMPLETE), event(2, Operation.PATCH, "/w/a", hunks=(hunk,))]
    )
    assert found.fragments == Fragments((Run(1, ("a", "B", "c", "D", "e")),), is_all=True, newline=True)


def test_a_diff_moves_the_known_lines_behind_it() -> None:
    hunk = ("@@ -4,6 +4,7 @@", ("d", "e", "f", "g", "h", "i"), ("d", "E", "e2", "f", "g", "h", "i"), False)
    found = last("/w/a", [lines(1, "/w/a", 3, "c", "d"), lines(2, "/w/a", 20, "t"),
                          edit(3, "/w/a", "e", "E\ne2", hunks=(hunk,))])  # fmt: skip
    assert found.fragments is not None
    assert found.fragments.runs == (Run(3, ("c", "d", "E", "e2", "f", "g", "h", "i")), Run(21, ("t",)))


def test_an_edit_that_the_lines_read_do_not_allow_is_an_outside_change() -> None:
    found = last("/w/a", [read(1, "/w/a", "a\nb", note=COMPLETE), edit(2, "/w/a", "something else here", "x")])
    assert (found.outside_change, found.fragments) == (True, runs((None, "x")))


def test_an_edit_of_unseen_text_invents_no_empty_line() -> None:
    found = last("/w/a", [lines(1, "/w/a", 3, "c"), edit(2, "/w/a", "q\n", "r\n")])
    assert found.fragments == runs((3, "c"), (None, "r"))
