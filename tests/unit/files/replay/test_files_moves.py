"""Moves that no call tells of: what was gone in a step, and what was new in it with the same content."""

from __future__ import annotations

import pytest

from daemon.files.history import FileHistory
from daemon.model import FileEdit, Operation
from tests.support.stores.replaying import Objects, delete, edit, event, snapshot, state, unclear, world, write

W = "/w"
STEP = {"message_id": "msg_step"}


def seen(before: dict[str, str], after: dict[str, str], *between: FileEdit) -> dict[str, tuple[str, str]]:
    """Where each file of /w came from and went to, by a tree of before and one of after the step."""
    objects = Objects()
    for name, files in (("before", before), ("after", after)):
        objects.put({path: text.encode() for path, text in files.items()}, name)
    trees = [snapshot(1, "before", W), snapshot(9, "after", W, **STEP)]
    return _told(world([*trees, *between], objects).history, {*before, *after})


def _told(history: object, names: set[str]) -> dict[str, tuple[str, str]]:
    found = {}
    for name in sorted(names):
        past: FileHistory = history(f"{W}/{name}")
        last = past.latest
        if last is not None and (last.moved_from or last.moved_to):
            found[name] = (last.moved_from.removeprefix(f"{W}/"), last.moved_to.removeprefix(f"{W}/"))
    return found


MOVED = {"a": ("", "b"), "b": ("a", "")}
DOUBTS = (unclear(8, f"{W}/a", **STEP), unclear(8, f"{W}/b", **STEP))
TREES = {
    "one file": ({"a": "1", "c": "2"}, {"b": "1", "c": "2"}, MOVED),
    "a copy is left": ({"a": "1"}, {"a": "1", "b": "1"}, {}),
    "other content": ({"a": "1"}, {"b": "2"}, {}),
    "nothing in it": ({"a": "", "c": "2"}, {"b": "", "c": "2"}, {}),
    "it was there before": ({"a": "1", "b": "2"}, {"b": "1"}, {}),
    "one of two": ({"a": "1", "b": "1"}, {"c": "1"}, {}),
    "into one of two": ({"a": "1"}, {"b": "1", "c": "1"}, {}),
    "a folder with equal files": (
        {"x/a": "1", "x/b": "1"},
        {"y/a": "1", "y/b": "1"},
        {"x/a": ("", "y/a"), "x/b": ("", "y/b"), "y/a": ("x/a", ""), "y/b": ("x/b", "")},
    ),
}


@pytest.mark.parametrize("doubts", [(), DOUBTS], ids=["unseen", "by a command that names both"])
@pytest.mark.parametrize("name", TREES)
def test_a_new_path_with_the_content_of_one_that_is_gone_is_a_move(name: str, doubts: tuple[FileEdit, ...]) -> None:
    before, after, expected = TREES[name]
    assert seen(before, after, *doubts) == expected


CALLS: dict[str, tuple[list[FileEdit], dict[str, tuple[str, str]]]] = {
    "written anew and removed": ([write(2, f"{W}/b", "1", **STEP), delete(3, f"{W}/a", **STEP)], MOVED),
    "removed in another step": ([write(2, f"{W}/b", "1", **STEP), delete(3, f"{W}/a")], {}),
    "overwritten": ([write(2, f"{W}/b", "1", **STEP | {"existed": True}), delete(3, f"{W}/a", **STEP)], {}),
    "changed before it was removed": (
        [edit(2, f"{W}/a", "1", "2", **STEP), write(3, f"{W}/b", "1", **STEP), delete(4, f"{W}/a", **STEP)],
        {},
    ),
    "in doubt before the step": (
        [unclear(2, f"{W}/a"), write(3, f"{W}/b", "1", **STEP), delete(4, f"{W}/a", **STEP)],
        {},
    ),
    "by a revert": (
        [state(2, f"{W}/a", None, tool="revert", **STEP), state(2, f"{W}/b", "1", tool="revert", **STEP)],
        {},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_one_step_may_prove_a_move_without_any_tree(name: str) -> None:
    calls, expected = CALLS[name]
    assert _told(world([write(1, f"{W}/a", "1"), *calls]).history, {"a", "b"}) == expected


def test_what_a_call_surely_did_stays_a_change_where_it_may_have_done_more() -> None:
    """`git mv a b && make`: the move is certain at its time, whatever came after it in the call."""
    call = {"part_id": "prt_call", "message_id": "msg_call"}
    moved = event(2, Operation.MOVE, f"{W}/a", other=f"{W}/b", **call)
    past = world([write(1, f"{W}/a", "1"), moved, unclear(2, f"{W}/b", number=1, **call)]).history(f"{W}/b")
    assert [(one.moved_from, one.proven) for one in past.revisions] == [(f"{W}/a", True), ("", False)]
    assert past.last_change is past.revisions[0]
    assert past.at(moved.time) is past.revisions[1]
