"""A file's history as people tell it: the states that differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files.events.formatters import AS_WRITTEN
from daemon.files.history import BROUGHT_BACK, SET_BACK, Revision
from daemon.files.line_diffs import unified
from daemon.files.states import Change, Entry, file_history
from daemon.model import FileEdit, Operation
from daemon.transcript.evidence.recorded_diffs import AFTER_TURN
from tests.support.stores.replaying import (
    Objects,
    append,
    copy,
    delete,
    edit,
    event,
    history,
    lines,
    move,
    read,
    run,
    snapshot,
    state,
    unclear,
    write,
)  # fmt: skip

A, B = "/w/a", "/w/b"


def entries(edits: list[FileEdit], objects: Objects | None = None, path: str = A) -> tuple[Entry, ...]:
    return file_history(history(path, edits, objects).revisions)


def told(edits: list[FileEdit], objects: Objects | None = None, path: str = A) -> list[str]:
    """The changes, oldest first; what is not certain in brackets."""
    made = reversed(entries(edits, objects, path))
    return [one.change.value if one.is_certain else f"({one.change.value})" for one in made]


def trees(*contents: str | None) -> tuple[Objects, list[str]]:
    """Objects, and a tree of /w with file a for each content (None: without it)."""
    objects = Objects()
    names = [objects.put({} if c is None else {"a": c.encode()}, f"{n}:{c}") for n, c in enumerate(contents)]
    return objects, names


def revert(second: float, content: str | None, note: str) -> FileEdit:
    return state(second, A, content, tool="revert", note=note)


SAME, [TREE] = trees("1\n")
LATER, [FIRST, SECOND, THIRD] = trees("1\n", "2\n", "3\n")
MOVED = LATER.put({"b": b"1\n"}, "moved")
CASES: dict[str, tuple[list[FileEdit], Objects | None, list[str]]] = {
    "a doubt that was settled is no state": (
        [write(1, A, "1\n"), run(2, "/w"), snapshot(3, TREE, "/w"), run(4, "/w"), snapshot(5, TREE, "/w")],
        SAME,
        ["written"],
    ),
    "a doubt that was not settled is the newest": ([write(1, A, "1\n"), run(2, "/w")], None, ["written", "(may have changed)"]),
    "doubts are one": ([write(1, A, "1\n"), run(2, "/w"), unclear(3, A)], None, ["written", "(may have changed)"]),
    "what a command may have changed is found": (
        [write(1, A, "1\n"), snapshot(2, FIRST, "/w"), run(3, "/w"), snapshot(4, SECOND, "/w")],
        LATER,
        ["written", "found changed"],
    ),
    "outside": ([write(1, A, "1\n"), read(2, A, "2\n")], None, ["written", "changed outside OpenCode"]),
    "edits": ([write(1, A, "1\n"), edit(2, A, "1", "2"), append(3, A, "3\n")], None, ["written", "edited", "added to"]),
    "the same content again is no state": ([write(1, A, "1\n"), write(2, A, "1\n", existed=True)], None, ["written"]),
    "a read is no state": ([write(1, A, "1\n"), read(2, A, "1\n"), lines(3, A, 1, "1")], None, ["written"]),
    "deleted and written again": ([write(1, A, "1\n"), delete(2, A), write(3, A, "1\n")], None, ["written", "deleted", "written"]),
    "moved away": ([write(1, A, "1\n"), move(2, A, B, into=False)], None, ["written", "moved away"]),
    "taken back, and that undone": (
        [
            write(1, A, "1\n"), edit(2, A, "1", "2"), revert(3, "1\n", SET_BACK), revert(4, "2\n", BROUGHT_BACK),
            revert(5, None, SET_BACK),
        ],
        None,
        ["written", "edited", "taken back", "brought back, since a revert was undone", "taken back"],
    ),
    "a turn that was removed, told by its diff, and set back": (
        [snapshot(1, FIRST, "/w"), state(2, A, "2\n", note=AFTER_TURN), snapshot(3, FIRST, "/w")],
        LATER,
        ["first seen", "(found changed)", "taken back"],
    ),
    "a turn that was removed, and then something else": (
        [snapshot(1, FIRST, "/w"), state(2, A, "2\n", note=AFTER_TURN), snapshot(3, THIRD, "/w")],
        LATER,
        ["first seen", "(found changed)", "found changed"],
    ),
    "moved by something unseen": (
        [snapshot(1, FIRST, "/w"), unclear(2, A), unclear(2, B), snapshot(2, MOVED, "/w", part_id="prt_end")],
        LATER,
        ["first seen", "moved away"],
    ),
    "a partial read becomes whole by a snapshot": ([lines(1, A, 1, "1"), snapshot(2, TREE, "/w")], SAME, ["first seen"]),
    "an edit of an unknown text is what the snapshot shows": (
        [edit(1, A, "0", "1"), snapshot(2, TREE, "/w")], SAME, ["edited"],
    ),
    "an edit of an unknown text, then a doubt": ([edit(1, A, "0", "1"), run(2, "/w"), snapshot(3, TREE, "/w")], SAME, ["(edited)", "found changed"]),
    "an edit in doubt": ([write(1, A, "1\n"), run(2, "/w"), edit(3, A, "1", "2")], None, ["written", "(edited)"]),
    "nothing but a doubt": ([unclear(1, A)], None, ["(may have changed)"]),
    "nothing": ([], None, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_only_states_that_differ_are_told(case: str) -> None:
    edits, objects, expected = CASES[case]
    assert told(edits, objects) == expected


def test_a_copy_and_a_move_tell_where_it_came_from() -> None:
    edits = [write(1, A, "1\n"), copy(2, A, "/w/c", into=False), move(3, A, B, into=False)]
    assert told(edits, path=B) == ["moved here"]
    assert told(edits, path="/w/c") == ["copied here"]
    assert entries(edits, path=B)[0].source.moved_from == A
    assert entries(edits)[0].source.moved_to == B


def test_an_observed_move_names_its_other_end_and_possible_cause() -> None:
    events = [snapshot(1, FIRST, "/w"), unclear(2, A), unclear(2, B), snapshot(2, MOVED, "/w", part_id="prt_end")]
    (arrived,) = entries(events, LATER, B)
    gone = entries(events, LATER)[0]
    assert (arrived.change.value, arrived.source.moved_from) == ("moved here", A)
    assert (gone.change.value, gone.source.moved_to) == ("moved away", B)
    assert [one.operation for one in gone.perhaps] == [Operation.UNCLEAR]


def test_what_may_have_made_a_state_stands_with_it() -> None:
    edits = [write(1, A, "1\n"), snapshot(2, FIRST, "/w"), run(3, "/w"), unclear(4, A), snapshot(5, SECOND, "/w")]
    found = entries(edits, LATER)[0]
    assert [one.operation for one in found.perhaps] == [Operation.RUN, Operation.UNCLEAR]
    assert found.base is not None
    assert found.base.content == b"1\n"
    written = entries([write(1, A, "1\n"), run(2, "/w"), write(3, A, "2\n", existed=True)])[0]
    assert written.perhaps == ()


def test_a_formatter_is_told_of_and_compared_with_what_was_written() -> None:
    objects, [before, after] = trees("x\n", "x = 1\n")
    step = {"message_id": "msg_w"}
    edits = [
        snapshot(1, before, "/w"),
        write(2, A, "x=1\n", existed=True, version="1.1.0", **step),
        snapshot(3, after, "/w", **step),
    ]
    revisions = list(history(A, edits, objects).revisions)
    assert revisions[1].operation is Operation.WRITE
    revisions[1].note, revisions[1].grade = AS_WRITTEN, type(revisions[1].grade).STALE
    revisions[2].outside_change = False
    found = file_history(revisions)[0]
    assert found.change is Change.FORMATTED
    assert found.base is revisions[1]


def test_an_undone_rename_of_a_revert_is_not_a_deletion() -> None:
    assert told([write(1, A, "1\n"), revert(2, None, SET_BACK)]) == ["written", "taken back"]


# -- laws ------------------------------------------------------------------------------------------------------------

CONTENTS = st.sampled_from(["", "1\n", "2\n", "1\n2\n", "2\n1\n3", "1\r\n"])
STEPS = st.one_of(
    st.tuples(st.just("write"), CONTENTS),
    st.tuples(st.just("append"), CONTENTS),
    st.tuples(st.just("edit"), st.sampled_from("12")),
    st.tuples(st.sampled_from(["delete", "run", "unclear", "away", "here", "copied", "touch", "gone"]), st.just("")),
    st.tuples(st.just("read"), CONTENTS),
    st.tuples(st.just("lines"), st.sampled_from("12")),
    st.tuples(st.just("snapshot"), st.one_of(st.none(), CONTENTS)),
    st.tuples(st.just("revert"), st.one_of(st.none(), CONTENTS)),
)


def played(steps: Sequence[tuple[str, str | None]]) -> tuple[Revision, ...]:
    objects, edits = Objects(), []
    for second, (what, content) in enumerate(steps, start=1):
        edits.append(_event(objects, second, what, content))
    return history(A, edits, objects).revisions


def _event(objects: Objects, s: int, what: str, content: str | None) -> FileEdit:
    text = content or ""
    files = {} if content is None else {"a": text.encode()}
    make = {
        "write": lambda: write(s, A, text, existed=True),
        "append": lambda: append(s, A, text),
        "edit": lambda: edit(s, A, text, "x"),
        "delete": lambda: delete(s, A),
        "run": lambda: run(s, "/w"),
        "unclear": lambda: unclear(s, A),
        "away": lambda: move(s, A, B, into=False),
        "here": lambda: move(s, B, A, into=False),
        "copied": lambda: copy(s, B, A, into=False),
        "touch": lambda: event(s, Operation.TOUCH, A),
        "gone": lambda: state(s, A, None, tool="read", note="a read found no file"),
        "read": lambda: read(s, A, text),
        "lines": lambda: lines(s, A, 1, text),
        "snapshot": lambda: snapshot(s, objects.put(files, f"tree {s}"), "/w"),
        "revert": lambda: revert(s, content, SET_BACK),
    }[what]
    return make()


@given(st.lists(STEPS, max_size=12))
def test_every_certain_content_has_one_entry_and_no_record_is_lost(steps) -> None:
    revisions = played(steps)
    made = file_history(revisions)[::-1]
    assert {id(one) for entry in made for one in entry.records} == {id(one) for one in revisions}
    assert all(entry.source in entry.records and entry.best in entry.records for entry in made)
    assert [entry.source.time for entry in made] == sorted(entry.source.time for entry in made)
    told_of = [(one.best.deleted, one.best.content) for one in made if one.is_certain]
    assert _differing(told_of) == _differing([(one.deleted, one.content) for one in revisions if one.proven])
    for one, other in pairwise(made):
        arrived = other.source.operation in {Operation.MOVE, Operation.COPY} or other.source.moved_from
        if one.is_certain and other.is_certain and not arrived:
            assert (one.best.deleted, one.best.content) != (other.best.deleted, other.best.content)
    last = made[-1] if made else None
    assert last is None or last.is_certain == revisions[-1].proven


@given(st.lists(STEPS, max_size=12))
def test_the_diffs_lead_from_the_first_certain_state_to_the_last(steps) -> None:
    content, was_certain = b"", False
    for entry in reversed(file_history(played(steps))):
        if not entry.is_certain:
            continue
        base = b"" if entry.base is None else entry.base.content or b""
        assert entry.base is not None or not was_certain
        if entry.base is not None and entry.base.proven:
            assert base == content
        content, was_certain = entry.best.content or b"", True
        diff = unified(base.decode(), content.decode())
        assert patched(base.decode(), diff) == content.decode()


def _differing(values: list[tuple[bool, bytes | None]]) -> list[tuple[bool, bytes | None]]:
    return [value for n, value in enumerate(values) if n == 0 or values[n - 1] != value]


def patched(text: str, diff: str) -> str:
    """What `patch` makes of a text."""
    old, made, at = text.split("\n"), [], 0
    ended = not text or text.endswith("\n")
    old = old[:-1] if ended else old
    rows = diff.split("\n")[:-1]
    for number, row in enumerate(rows):
        if row.startswith("@@"):
            head = re.match(r"@@ -(\d+)(?:,(\d+))? ", row)
            assert head is not None
            start = int(head[1]) - (head[2] != "0")
            made += old[at:start]
            at = start
        elif row.startswith("\\"):
            ended = rows[number - 1].startswith("-")
        elif row.startswith("-"):
            assert old[at] == row[1:]
            at += 1
        else:
            ended = True if at >= len(old) - row.startswith(" ") else ended
            at += row.startswith(" ")
            made.append(row[1:])
    made += old[at:]
    return "\n".join(made) + ("\n" if made and ended else "")
