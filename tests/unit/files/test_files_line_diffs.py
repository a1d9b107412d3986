"""Which message last wrote each line."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files.line_diffs import blame
from daemon.model import FileEdit
from tests.support.examples import examples
from tests.support.stores.replaying import (
    Objects,
    at,
    delete,
    edit,
    history,
    lines,
    move,
    read,
    snapshot,
    state,
    unclear,
    write,
)

A = "/w/a"


def owners(edits: list[FileEdit], path: str = A, objects: Objects | None = None) -> list[tuple[str, int]]:
    return [(line.text, (line.time - at(0)) // 1000) for line in blame(history(path, edits, objects))]


def test_a_line_belongs_to_who_wrote_it_last() -> None:
    edits = [write(1, A, "a\nb\nc\n"), edit(2, A, "b", "B"), edit(3, A, "c\n", "c\nd\n"), edit(4, A, "a\n", "")]
    assert owners(edits) == [("B", 2), ("c", 1), ("d", 3)]


def test_lines_put_in_front_and_in_between_leave_the_others_alone() -> None:
    edits = [write(1, A, "a\nb\n"), write(2, A, "x\na\ny\nb\nz\n", existed=True)]
    assert owners(edits) == [("x", 2), ("a", 1), ("y", 2), ("b", 1), ("z", 2)]


def test_a_repeated_line_stays_with_its_owner() -> None:
    assert owners([write(1, A, "a\n"), write(2, A, "a\na\n", existed=True)]) == [("a", 1), ("a", 2)]


def test_a_newline_at_the_end_is_a_change_of_the_last_line() -> None:
    assert owners([write(1, A, "a\nb"), write(2, A, "a\nb\n", existed=True)]) == [("a", 1), ("b", 2)]
    assert owners([write(1, A, "a\r\nb\r\n"), write(2, A, "a\nb\r\n", existed=True)]) == [("a", 2), ("b", 1)]


def test_an_observation_owns_the_lines_it_is_the_first_to_show() -> None:
    assert owners([write(1, A, "a\nb\n"), read(2, A, "a\nx\n")]) == [("a", 1), ("x", 2)]
    assert owners([write(1, A, "a\n"), unclear(2, A), read(3, A, "a\n")]) == [("a", 1)]


def test_blame_of_a_deleted_file_shows_its_last_content() -> None:
    assert owners([write(1, A, "a\n"), delete(2, A)]) == [("a", 1)]
    assert owners([write(1, A, "a\n"), delete(2, A), write(3, A, "a\nb\n")])[1] == ("b", 3)


def test_without_whole_text_there_are_no_lines() -> None:
    assert owners([lines(1, A, 3, "c")]) == []
    assert owners([]) == []
    objects = Objects()
    tree = objects.put({"a": b"\xff\xfe\n"}, "t")
    assert owners([write(1, A, "a\n"), snapshot(2, tree, "/w")], A, objects) == []
    assert owners([write(1, A, "a\n"), snapshot(2, tree, "/w"), write(3, A, "a\n", existed=True)], A, objects) == [
        ("a", 3)
    ]


def test_each_line_names_message_tool_and_grade() -> None:
    [line] = blame(history(A, [write(1, A, "a\n", session_id="ses_x")]))
    assert (line.session_id, line.tool, line.grade) == ("ses_x", "write", "proven")
    assert line.message_id.startswith("msg_")


def test_a_middle_too_large_to_compare_counts_as_rewritten() -> None:
    many = [f"line {n}" for n in range(3000)]
    other = [f"other {n}" if n % 2 else line for n, line in enumerate(many)]
    edits = [
        write(1, A, "\n".join(["top", *many, "end"])),
        write(2, A, "\n".join(["top", *other, "end"]), existed=True),
    ]
    found = owners(edits)
    assert (found[0], found[1], found[-1]) == (("top", 1), ("line 0", 1), ("end", 1))
    assert {second for _, second in found[2:-2]} == {2}


def test_a_moved_file_brings_no_owners_of_before() -> None:
    """The history of the new name begins with the move; its lines are at least told with a time and a message."""
    assert owners([write(1, A, "a\nb\n"), move(2, A, "/w/b"), edit(3, "/w/b", "b", "B")], "/w/b") == [
        ("a", 2),
        ("B", 3),
    ]


_LINES = st.lists(st.sampled_from("abc"), max_size=8)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(_LINES, min_size=1, max_size=6))
def test_each_blamed_line_stood_in_its_owners_text(versions: list[list[str]]) -> None:
    texts = ["".join(f"{line}\n" for line in version) for version in versions]
    edits = [write(n, A, text, existed=n > 1) for n, text in enumerate(texts, 1)]
    found = owners(edits)
    assert [text for text, _ in found] == versions[-1]
    for text, second in found:
        assert text in versions[second - 1]
        for later in versions[second:]:
            assert text in later


def test_what_a_revert_brings_back_belongs_to_who_wrote_it() -> None:
    back = state(3, A, "a\nb\n", tool="revert", note="set back by a revert")
    edits = [write(1, A, "a\nb\n"), edit(2, A, "b", "B"), back, edit(4, A, "a", "x")]
    assert owners(edits) == [("x", 4), ("b", 1)]
