"""Events over a small file system: what each kind of them makes of files and folders, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from daemon.files.history import REVERTED, Grade
from daemon.files.replay.changes import CONCURRENT
from daemon.model import FileEdit, Operation
from tests.support.stores.replaying import (
    Objects,
    append,
    at,
    copy,
    delete,
    edit,
    event,
    grade_and_content,
    history,
    last,
    lines,
    move,
    read,
    run,
    snapshot,
    unclear,
    world,
    write,
)

A, B, D = "/w/a", "/w/b", "/w/d"
GONE = ("gone", None)


def one(second: float, content: str = "one\n", path: str = A) -> FileEdit:
    return write(second, path, content)


def ends(edits: Sequence[FileEdit], objects: Objects | None = None) -> dict[str, tuple[str, bytes | None]]:
    """The end of every path that has a history."""
    made = world(edits, objects)
    return {path: grade_and_content(made.history(path).latest) for path in made.paths()}


def touch(second: float, path: str) -> FileEdit:
    return event(second, Operation.TOUCH, path)


def mkdir(second: float, path: str) -> FileEdit:
    return event(second, Operation.FOLDER, path)


def refused(second: float, path: str, old: str, new: str, **fields: object) -> FileEdit:
    return event(second, Operation.REFUSED, path, "edit", old=old, new=new, **fields)


# -- deletion --------------------------------------------------------------------------------------------------------

_TREE = [write(1, "/w/d/x", "x"), write(2, "/w/d/e/y", "y"), write(3, "/w/dd/z", "z")]


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([one(1), delete(2, A)], {A: GONE}),
        ([delete(2, A)], {A: GONE}),
        ([one(1), delete(2, A, recursive=True)], {A: GONE}),
        ([one(1), delete(2, A), one(3, "two\n")], {A: ("proven", b"two\n")}),
        (
            [*_TREE, delete(4, D, recursive=True)],
            {"/w/d/x": GONE, "/w/d/e/y": GONE, "/w/dd/z": ("proven", b"z")},
        ),
        (
            [*_TREE, delete(4, D)],
            {"/w/d/x": ("proven", b"x"), "/w/d/e/y": ("proven", b"y"), "/w/dd/z": ("proven", b"z")},
        ),
        (
            [*_TREE, delete(4, D, recursive=True), write(5, "/w/d/x", "again")],
            {"/w/d/x": ("proven", b"again"), "/w/d/e/y": GONE, "/w/dd/z": ("proven", b"z")},
        ),
        # what may have been there is gone as well
        ([one(1), unclear(2, A), delete(3, A)], {A: GONE}),
        ([lines(1, "/w/d/x", 2, "b"), delete(2, D, recursive=True)], {"/w/d/x": GONE}),
        # a folder of which nothing is known leaves a mark of its own, and takes nothing with it
        ([one(1), delete(2, "/w/q", recursive=True)], {A: ("proven", b"one\n"), "/w/q": GONE}),
        ([mkdir(1, D), delete(2, D, recursive=True)], {}),
    ],
)
def test_deletion_takes_what_it_names(edits: list[FileEdit], expected: dict[str, tuple[str, bytes | None]]) -> None:
    assert ends(edits) == expected


def test_a_deleted_file_keeps_its_last_content_in_its_history() -> None:
    found = history("/w/d/x", [*_TREE, delete(4, D, recursive=True)])
    assert found.deleted
    assert found.last_content is not None
    assert found.last_content.content == b"x"
    assert [grade_and_content(found.at(at(second))) for second in (3, 4, 9)] == [("proven", b"x"), GONE, GONE]


def test_what_is_gone_already_is_not_deleted_again_with_its_folder() -> None:
    found = history("/w/d/x", [write(1, "/w/d/x", "x"), delete(2, "/w/d/x"), delete(3, D, recursive=True)])
    assert [revision.time for revision in found.revisions] == [at(1), at(2)]


def test_a_read_of_what_was_deleted_is_an_outside_change() -> None:
    found = last("/w/d/x", [*_TREE, delete(4, D, recursive=True), read(5, "/w/d/x", "back\n")])
    assert grade_and_content(found) == ("proven", b"back\n")
    assert found.outside_change


# -- moves and copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([one(1), move(2, A, B)], {A: GONE, B: ("proven", b"one\n")}),
        ([one(1), move(2, A, A)], {A: ("proven", b"one\n")}),
        ([one(1), one(2, "two\n", B), move(3, A, B)], {A: GONE, B: ("proven", b"one\n")}),
        ([one(1), copy(2, A, B)], {A: ("proven", b"one\n"), B: ("proven", b"one\n")}),
        ([one(1), copy(2, A, A)], {A: ("proven", b"one\n")}),
        ([one(1), copy(2, A, B), edit(3, A, "one", "two")], {A: ("proven", b"two\n"), B: ("proven", b"one\n")}),
        ([one(1), move(2, A, B), move(3, B, "/w/c")], {A: GONE, B: GONE, "/w/c": ("proven", b"one\n")}),
        ([one(1), move(2, A, B), move(3, B, A)], {A: ("proven", b"one\n"), B: GONE}),
        ([one(1), move(2, A, B), one(3, "two\n")], {A: ("proven", b"two\n"), B: ("proven", b"one\n")}),
        # into a folder: said, known, or not known
        ([one(1), move(2, A, D, into=True)], {A: GONE, "/w/d/a": ("proven", b"one\n")}),
        ([one(1), copy(2, A, D, into=True)], {A: ("proven", b"one\n"), "/w/d/a": ("proven", b"one\n")}),
        ([one(1), mkdir(2, D), move(3, A, D, into=None)], {A: GONE, "/w/d/a": ("proven", b"one\n")}),
        (
            [one(1), write(2, "/w/d/x", "x"), move(3, A, D, into=None)],
            {A: GONE, "/w/d/a": ("proven", b"one\n"), "/w/d/x": ("proven", b"x")},
        ),
        ([one(1), one(2, "two\n", B), move(3, A, B, into=None)], {A: GONE, B: ("proven", b"one\n")}),
        ([one(1), one(2, "two\n", B), delete(3, B), move(4, A, B, into=None)], {A: GONE, B: ("proven", b"one\n")}),
        ([one(1), move(2, A, D, into=None)], {A: GONE, D: ("stale", b"one\n")}),
        ([one(1), move(2, A, D, into=None), read(3, "/w/d/a", "one\n")], {A: GONE, "/w/d/a": ("verified", b"one\n")}),
        ([one(1), copy(2, A, D, into=None), edit(3, D, "one", "two")], {A: ("proven", b"one\n"), D: ("proven", b"two\n")}),
        # what is not known, and what is known in part, arrives as such
        ([move(1, A, B)], {A: GONE, B: ("lost", None)}),
        ([copy(1, A, B)], {B: ("lost", None)}),
        ([one(1, "two\n", B), copy(2, A, B)], {B: ("lost", None)}),
        ([one(1), delete(2, A), move(3, A, B)], {A: GONE, B: ("lost", None)}),
        ([one(1), unclear(2, A), move(3, A, B)], {A: GONE, B: ("stale", b"one\n")}),
        ([lines(1, A, 2, "b"), copy(2, A, B)], {A: ("partial", None), B: ("partial", None)}),
        # whole folders
        (
            [*_TREE, move(4, D, "/w/n")],
            {
                "/w/d/x": GONE, "/w/d/e/y": GONE, "/w/dd/z": ("proven", b"z"),
                "/w/n/x": ("proven", b"x"), "/w/n/e/y": ("proven", b"y"),
            },
        ),
        (
            [*_TREE[:2], delete(3, "/w/d/x"), move(4, D, "/w/n")],
            {"/w/d/x": GONE, "/w/d/e/y": GONE, "/w/n/e/y": ("proven", b"y")},
        ),
        (
            [*_TREE, move(4, "/w/d", "/w/dd", into=None)],
            {
                "/w/d/x": GONE, "/w/d/e/y": GONE, "/w/dd/z": ("proven", b"z"),
                "/w/dd/d/x": ("proven", b"x"), "/w/dd/d/e/y": ("proven", b"y"),
            },
        ),
        (
            [*_TREE, copy(4, D, "/w/n", recursive=True), edit(5, "/w/d/x", "x", "new")],
            {
                "/w/d/x": ("proven", b"new"), "/w/d/e/y": ("proven", b"y"), "/w/dd/z": ("proven", b"z"),
                "/w/n/x": ("proven", b"x"), "/w/n/e/y": ("proven", b"y"),
            },
        ),
        ([mkdir(1, D), move(2, D, "/w/n"), one(3), move(4, A, "/w/n", into=None)], {A: GONE, "/w/n/a": ("proven", b"one\n")}),
        ([write(1, "/w/d/x", "x"), move(2, D, "/w/n"), one(3), move(4, A, D, into=None)],
         {"/w/d/x": GONE, "/w/n/x": ("proven", b"x"), A: GONE, D: ("stale", b"one\n")}),
    ],
)  # fmt: skip
def test_moves_and_copies_take_what_is_known_along(
    edits: list[FileEdit], expected: dict[str, tuple[str, bytes | None]]
) -> None:
    assert ends(edits) == expected


def test_a_file_at_a_name_that_was_a_folder_once_is_moved_as_a_file() -> None:
    edits = [write(1, "/w/d/x", "x"), delete(2, D, recursive=True), write(3, D, "file\n"), move(4, D, B)]
    assert ends(edits) == {"/w/d/x": GONE, D: GONE, B: ("proven", b"file\n")}


def test_a_folder_emptied_file_by_file_may_still_be_there() -> None:
    for name in ("/w/d", "/w/v1.0"):
        edits = [write(1, f"{name}/x", "x"), delete(2, f"{name}/x"), one(3), move(4, A, name, into=None)]
        assert ends(edits).get(name, ("", b""))[0] not in ("proven", "verified"), name


def test_a_name_with_a_dot_may_be_a_folder_of_which_nothing_is_known() -> None:
    """`mv notes build-1.2`: nothing says that the folder is not there."""
    found = ends([one(1), move(2, A, "/w/build-1.2", into=None)])
    assert found["/w/build-1.2"][0] == "stale"


def test_a_moved_folder_shows_where_each_file_was_before() -> None:
    found = last("/w/n/e/y", [*_TREE, move(4, D, "/w/n")])
    assert (found.moved_from, found.kinds) == ("/w/d/e/y", frozenset({"shell"}))
    assert last("/w/n/x", [*_TREE, copy(4, D, "/w/n", recursive=True)]).moved_from == ""


def test_what_later_calls_find_tells_where_a_folder_went() -> None:
    edits = [*_TREE[:2], move(4, D, "/w/n", into=None)]
    assert last("/w/n/x", edits).grade is Grade.STALE
    assert grade_and_content(last("/w/n/d/x", [*edits, edit(5, "/w/n/d/e/y", "y", "Y")])) == ("proven", b"x")
    assert grade_and_content(last("/w/n/x", [*edits, edit(5, "/w/n/e/y", "y", "Y")])) == ("proven", b"x")
    both = [*edits, edit(5, "/w/n/e/y", "y", "Y"), read(6, "/w/n/d/x", "other\n")]
    assert last("/w/n/x", both).grade is Grade.STALE


# -- touch and folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([touch(1, A)], {A: ("stale", b"")}),
        ([one(1), touch(2, A)], {A: ("proven", b"one\n")}),
        ([one(1), delete(2, A), touch(3, A)], {A: ("proven", b"")}),
        ([lines(1, A, 2, "b"), touch(2, A)], {A: ("partial", None)}),
        ([mkdir(1, D), touch(2, D)], {}),
        ([write(1, "/w/d/x", "x"), touch(2, D)], {"/w/d/x": ("proven", b"x")}),
        ([touch(1, A), append(2, A, "x\n")], {A: ("stale", b"x\n")}),
    ],
)
def test_touch_makes_an_empty_file_only_where_there_was_none(
    edits: list[FileEdit], expected: dict[str, tuple[str, bytes | None]]
) -> None:
    assert ends(edits) == expected


def test_touch_after_a_tree_that_lacks_the_path_makes_it_empty() -> None:
    objects = Objects()
    tree = objects.put({"b": b"b"}, "one")
    assert grade_and_content(last(A, [snapshot(1, tree, "/w"), touch(2, A)], objects)) == ("proven", b"")


@pytest.mark.parametrize(
    "between",
    [
        [run(2, "/w")],
        [unclear(2, "/w")],
        [one(2), delete(3, A), unclear(4, A)],
    ],
)
def test_touch_heeds_what_may_have_made_the_file_since_the_tree(between: list[FileEdit]) -> None:
    objects = Objects()
    tree = objects.put({"b": b"b"}, "one")
    found = last(A, [snapshot(1, tree, "/w"), *between, touch(5, A)], objects)
    assert not found.proven


def test_a_move_heeds_what_may_have_made_a_folder_since_the_tree() -> None:
    objects = Objects()
    tree = objects.put({"a": b"one\n"}, "one")
    found = last(
        D, [snapshot(1, tree, "/w"), run(2, "/elsewhere"), run(3, "/w"), one(4), move(5, A, D, into=None)], objects
    )
    assert not found.proven


def test_an_ignored_folder_is_in_no_tree_and_may_be_what_a_move_went_into() -> None:
    objects = Objects()
    tree = objects.put({"a": b"one\n", ".gitignore": b"build\n"}, "one")
    assert not last("/w/build", [snapshot(1, tree, "/w"), move(2, A, "/w/build", into=None)], objects).proven


# -- doubt -----------------------------------------------------------------------------------------------------------


def test_doubt_on_a_folder_reaches_what_is_beneath_and_nothing_beside() -> None:
    found = ends([*_TREE, delete(4, "/w/d/x"), unclear(5, D)])
    assert found == {"/w/d/x": ("stale", None), "/w/d/e/y": ("stale", b"y"), "/w/dd/z": ("proven", b"z")}
    assert last("/w/d/e/y", [*_TREE, unclear(5, D)]).note == "it may have changed"


def test_doubt_on_an_unknown_path_is_recorded_and_on_a_folder_is_not() -> None:
    assert ends([unclear(1, A)]) == {A: ("lost", None)}
    assert ends([mkdir(1, D), unclear(2, D)]) == {}


def test_a_folder_that_is_doubted_twice_says_so_once() -> None:
    assert len(history("/w/d/x", [_TREE[0], unclear(5, D), unclear(6, D)]).revisions) == 2


def test_a_whole_read_or_write_ends_the_doubt() -> None:
    for after in (read(6, "/w/d/x", "now\n"), write(6, "/w/d/x", "now\n", existed=True)):
        assert grade_and_content(last("/w/d/x", [_TREE[0], unclear(5, D), after])) == ("proven", b"now\n")


def test_until_its_end_a_revert_makes_what_is_proven_fleeting() -> None:
    edits = [one(1), unclear(2, A, until=at(10), note=REVERTED), one(5, "two\n"), one(12, "three\n")]
    found = history(A, edits)
    assert [revision.is_fleeting for revision in found.revisions] == [False, True, True, False]
    assert [grade_and_content(found.at(at(second)))[0] for second in (5, 6, 12, 13)] == [
        "proven",
        "stale",
        "proven",
        "proven",
    ]


def test_a_write_beside_a_call_without_an_end_is_not_certain() -> None:
    edits = [one(1), unclear(2, A, until=at(10)), one(5, "two\n")]
    assert grade_and_content(last(A, edits)) == ("stale", b"two\n")
    assert grade_and_content(last(A, [*edits, one(12, "three\n")])) == ("proven", b"three\n")


# -- calls -----------------------------------------------------------------------------------------------------------


def _same_call(*edits: FileEdit) -> list[FileEdit]:
    named = {"time": at(5), "message_id": "msg_5", "part_id": "prt_5"}
    return [event(5, e.operation, e.path, e.tool, **{
        name: getattr(e, name) for name in ("content", "old", "new", "other", "recursive", "note", "existed")
    } | {k: v for k, v in named.items() if k != "time"}, number=n) for n, e in enumerate(edits)]  # fmt: skip


def test_one_call_in_several_steps_is_one_revision() -> None:
    steps = _same_call(move(5, A, B), edit(5, B, "one", "two", tool="apply_patch"))
    found = history(B, [one(1), *steps])
    assert [grade_and_content(revision) for revision in found.revisions] == [("proven", b"two\n")]
    assert found.revisions[0].moved_from == A
    shell = _same_call(write(5, A, "x\n", tool="bash"), delete(5, A), write(5, A, "y\n", tool="bash"))
    assert [grade_and_content(revision) for revision in history(A, [one(1), *shell]).revisions] == [
        ("proven", b"one\n"), ("proven", b"y\n"),
    ]  # fmt: skip


def test_a_file_that_one_call_makes_and_takes_away_is_gone() -> None:
    assert ends(_same_call(write(5, A, "x\n", tool="bash"), delete(5, A))) == {A: GONE}


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (one(2, "two\n", A), ("proven", b"two\n")),
        (write(6, A, "two\n", started=at(4)), ("stale", b"two\n")),
        (write(6, A, "two\n", started=at(5)), ("proven", b"two\n")),
        (delete(6, A, started=at(4)), ("stale", b"one\n")),
        (append(6, A, "two\n", started=at(4)), ("stale", b"one\ntwo\n")),
        (edit(6, A, "one", "two", started=at(4)), ("stale", b"two\n")),
        (move(6, B, A, started=at(4)), ("stale", b"b\n")),
        (copy(6, B, A, started=at(4)), ("stale", b"b\n")),
    ],
)
def test_calls_that_overlap_are_in_no_order(second: FileEdit, expected: tuple[str, bytes]) -> None:
    first = write(5, A, "one\n", started=at(3)) if second.time > at(5) else write(1, A, "one\n")
    found = last(A, [write(0, B, "b\n"), first, second])
    assert grade_and_content(found) == expected
    assert (found.note == CONCURRENT) == (expected[0] == "stale")


def test_what_overlaps_at_the_source_of_a_move_arrives_in_doubt() -> None:
    edits = [write(5, A, "one\n", started=at(3)), move(6, A, B, started=at(4))]
    assert grade_and_content(last(B, edits)) == ("stale", b"one\n")
    assert last(A, edits).grade is Grade.STALE


def test_a_read_that_overlaps_a_change_says_nothing() -> None:
    edits = [write(1, A, "one\n"), edit(5, A, "one", "two", started=at(3)), read(6, A, "one\n", started=at(4))]
    assert grade_and_content(last(A, edits)) == ("proven", b"two\n")


def test_edits_of_one_message_are_put_in_order_by_their_lock() -> None:
    calls = [
        edit(6, A, "one", "two", started=at(3), message_id="msg_m", part_id="prt_1"),
        edit(7, A, "two", "three", started=at(3), message_id="msg_m", part_id="prt_2"),
    ]
    assert grade_and_content(last(A, [one(1), *calls])) == ("proven", b"three\n")


def test_a_write_that_replaced_a_file_which_should_have_been_gone_is_news() -> None:
    found = last(A, [one(1), delete(2, A), write(3, A, "two\n", existed=True)])
    assert grade_and_content(found) == ("proven", b"two\n")
    assert found.outside_change


# -- programs --------------------------------------------------------------------------------------------------------

_KNOWN = [write(1, "/w/data", "1\n"), write(2, "/o/other", "2\n")]
_QUIET, _LOUD = "print(1)\n", "open('data', 'w')\n"


@pytest.mark.parametrize(
    ("edits", "is_doubted"),
    [
        ([run(9, "/w", _QUIET)], False),
        ([run(9, "/w", _LOUD)], True),
        ([run(9, "/w")], True),
        ([run(9, "/o")], False),
        ([run(9, "/")], True),
        ([write(3, "/w/s.py", _QUIET), run(9, "/w", other="/w/s.py")], False),
        ([write(3, "/w/s.py", _LOUD), run(9, "/w", other="/w/s.py")], True),
        ([run(9, "/w", other="/w/s.py")], True),
        ([write(3, "/w/s.py", _QUIET), delete(4, "/w/s.py"), run(9, "/w", other="/w/s.py")], True),
        ([lines(3, "/w/s.py", 1, "print(1)"), run(9, "/w", other="/w/s.py")], True),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/m.py", _QUIET), run(9, "/w", other="/w/s.py")], False),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/m.py", _LOUD), run(9, "/w", other="/w/s.py")], True),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/n.py", _LOUD), run(9, "/w", other="/w/s.py")], False),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/l/m.py", _LOUD), run(9, "/w", other="/w/s.py")], True),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/m.py", _LOUD), delete(5, "/w/m.py"),
          run(9, "/w", other="/w/s.py")], False),
        # what may have changed since it was known may write by now
        ([write(3, "/w/s.py", _QUIET), unclear(4, "/w/s.py"), run(9, "/w", other="/w/s.py")], True),
        ([write(3, "/w/s.py", "import m\n"), write(4, "/w/m.py", _QUIET), unclear(5, "/w/m.py"),
          run(9, "/w", other="/w/s.py")], True),
        # a script draws in what lies beside it, wherever it is run from
        ([write(3, "/t/s.py", "import m\n"), write(4, "/t/m.py", _LOUD), run(9, "/w", other="/t/s.py")], True),
    ],
)  # fmt: skip
def test_a_program_that_may_write_casts_doubt_on_its_folder(edits: list[FileEdit], is_doubted: bool) -> None:
    found = ends([*_KNOWN, *edits])
    assert found["/w/data"] == (("stale" if is_doubted else "proven"), b"1\n")


def test_what_lies_elsewhere_is_not_doubted_by_a_program() -> None:
    assert ends([*_KNOWN, run(9, "/w")])["/o/other"] == ("proven", b"2\n")


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "expected", "outside"),
    [
        ([one(1), refused(2, A, "one", "two")], ("stale", b"one\n"), True),
        ([one(1), refused(2, A, "none", "two")], ("proven", b"one\n"), False),
        ([one(1), refused(2, A, "", "two")], ("proven", b"one\n"), False),
        ([one(1), delete(2, A), refused(3, A, "one", "two")], GONE, False),
        ([one(1), unclear(2, A), refused(3, A, "one", "two")], ("stale", b"one\n"), False),
        (
            [write(5, A, "one\n", started=at(3)), refused(6, A, "one", "two", started=at(4))],
            ("proven", b"one\n"),
            False,
        ),
        ([one(1, "one\none\n"), refused(2, A, "one", "two")], ("proven", b"one\none\n"), False),  # it stands twice
        ([one(1), refused(2, A, "one", "two"), read(3, A, "one\n")], ("proven", b"one\n"), False),
    ],
)
def test_a_refused_edit_whose_text_is_known_shows_an_outside_change(
    edits: list[FileEdit], expected: tuple[str, bytes | None], outside: bool
) -> None:
    found = last(A, edits)
    assert grade_and_content(found) == expected
    assert found.outside_change is outside


def test_a_refusal_invents_no_file() -> None:
    assert ends([refused(1, A, "one", "two")]) == {}


# -- links -----------------------------------------------------------------------------------------------------------


def _linked(target: bytes = b"d", **files: bytes) -> tuple[Objects, str]:
    objects = Objects()
    return objects, objects.put({"l": (0o120000, target), "d/x": b"x\n", **files}, "linked")


def test_both_names_of_a_linked_folder_lead_to_one_file() -> None:
    objects, tree = _linked()
    edits = [snapshot(1, tree, "/w"), edit(2, "/w/l/x", "x", "y"), edit(3, "/w/d/x", "y", "z")]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"z\n")
    assert grade_and_content(last("/w/l/x", edits, objects)) == ("proven", b"z\n")
    assert world(edits, objects).paths() == ["/w/d/x"]


def test_a_link_to_a_file_is_followed_too() -> None:
    objects, tree = _linked(b"d/x")
    edits = [snapshot(1, tree, "/w"), edit(2, "/w/l", "x", "y")]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"y\n")


@pytest.mark.parametrize("fields", [{}, {"recursive": True}])
def test_removing_a_link_leaves_what_it_leads_to(fields: dict[str, bool]) -> None:
    objects, tree = _linked()
    edits = [snapshot(1, tree, "/w"), delete(2, "/w/l", **fields)]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"x\n")
    later = [*edits, write(3, "/w/l/x", "own\n")]
    assert grade_and_content(last("/w/d/x", later, objects)) == ("proven", b"x\n")
    assert grade_and_content(last("/w/l/x", later, objects)) == ("proven", b"own\n")


def test_moving_a_link_moves_the_name_only() -> None:
    objects, tree = _linked()
    edits = [snapshot(1, tree, "/w"), move(2, "/w/l", "/w/m")]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"x\n")


def test_a_tree_in_which_the_link_has_become_a_folder_ends_it() -> None:
    objects, tree = _linked()
    own = objects.put({"l/x": b"own\n", "d/x": b"x\n"}, "own")
    edits = [snapshot(1, tree, "/w"), snapshot(2, own, "/w")]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"x\n")
    assert grade_and_content(last("/w/l/x", edits, objects)) == ("proven", b"own\n")
    later = [*edits, write(3, "/w/l/x", "new\n", existed=True)]
    assert grade_and_content(last("/w/d/x", later, objects)) == ("proven", b"x\n")
    assert grade_and_content(last("/w/l/x", later, objects)) == ("proven", b"new\n")


def test_a_tree_in_which_the_link_is_gone_ends_it() -> None:
    objects, tree = _linked()
    edits = [
        snapshot(1, tree, "/w"),
        snapshot(2, objects.put({"d/x": b"x\n"}, "none"), "/w"),
        write(3, "/w/l/x", "own\n"),
    ]
    assert grade_and_content(last("/w/d/x", edits, objects)) == ("proven", b"x\n")
