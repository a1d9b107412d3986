"""Snapshot trees and changed files of the steps of an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daemon.model import FileEdit, Operation
from daemon.records import time_of
from daemon.transcript.evidence.edits import edits
from daemon.transcript.evidence.steps import last_finish
from tests.support.stores.records import BASE, message, session, write

TREE, LATER = "a" * 40, "b" * 40
CREATED = 1_795_230_486_655
MESSAGE = "msg_1fc13507f001gL2TNTlx7a0gIk"


def _id(ms: int) -> str:
    made = f"prt_{(ms * 4096) & ((1 << 48) - 1):012x}00000000000000"
    assert time_of(made, CREATED) == ms
    return made


def _step(kind: str, ms: int, tree: str | None = TREE) -> dict[str, Any]:
    return {"type": kind, "id": _id(ms), "snapshot": tree}


def _of(*parts: dict[str, Any], root: str = BASE, cwd: str = BASE, **fields: Any) -> list[FileEdit]:
    values = {"id": MESSAGE, "created": CREATED, "path": {"cwd": cwd, "root": root}} | fields
    made = message(*parts, role="assistant", **values)
    return [edit for edit in edits(made, session()) if edit.operation in (Operation.SNAPSHOT, Operation.STEP)]


def test_a_step_shows_the_tree_at_its_start_and_at_its_end() -> None:
    found = _of(_step("step-start", CREATED + 5), _step("step-finish", CREATED + 90, LATER), cwd=f"{BASE}/docs")
    assert [(one.operation, one.path, one.other, one.blob, one.note, one.time, one.tool) for one in found] == [
        (Operation.SNAPSHOT, f"{BASE}/docs", BASE, TREE, "start", CREATED + 5, "snapshot"),
        (Operation.SNAPSHOT, f"{BASE}/docs", BASE, LATER, "finish", CREATED + 90, "snapshot"),
    ]


def test_a_message_without_a_path_has_its_sessions_folder_and_the_root_that_is_known() -> None:
    made = message(_step("step-start", CREATED + 5), role="assistant", id=MESSAGE, created=CREATED, cwd="")
    (found,) = edits(made, session(version="1.18.33", directory=f"{BASE}/docs"), root=BASE)
    assert (found.path, found.other, found.version) == (f"{BASE}/docs", BASE, "1.18.33")


@pytest.mark.parametrize(
    ("following", "completed", "latest"),
    [
        ([("patch", 120)], 150, 120),
        ([], 150, 150),
        ([], 80, 90),  # the clock went back
        ([], None, 60_090),  # not ended: a minute at most
    ],
)
def test_the_tree_of_an_end_may_be_as_late_as_what_follows_it(
    following: list[tuple[str, int]], completed: int | None, latest: int
) -> None:
    parts = [_step("step-start", CREATED + 5), _step("step-finish", CREATED + 90, LATER)]
    parts += [{"type": kind, "id": _id(CREATED + ms), "hash": TREE, "files": []} for kind, ms in following]
    made = message(*parts, role="assistant", id=MESSAGE, created=CREATED)
    ended = replace(made, completed=None if completed is None else CREATED + completed)
    trees = [edit for edit in edits(ended, session()) if edit.operation is Operation.SNAPSHOT]
    assert [tree.until for tree in trees] == [None, CREATED + latest]


def test_an_end_is_not_before_the_calls_of_its_step() -> None:
    call = write(f"{BASE}/a", "x", start=CREATED + 10, end=CREATED + 400)
    found = _of(_step("step-start", CREATED - 3), call, _step("step-finish", CREATED + 90))
    assert [one.time for one in found] == [CREATED, CREATED + 400]


def test_ids_of_a_fork_tell_no_time() -> None:
    fork = "msg_" + _id(CREATED + 6000).removeprefix("prt_")
    call = write(f"{BASE}/a", "x", start=CREATED, end=CREATED + 1)
    parts = (_step("step-start", CREATED + 6001), call, _step("step-finish", CREATED + 6002))
    made = message(*parts, role="assistant", id=fork, created=CREATED)
    times = [edit.time for edit in edits(made, session()) if edit.operation is Operation.SNAPSHOT]
    assert times == [CREATED, made.completed]


def test_changed_files_are_told_with_the_tree_before_the_step() -> None:
    files = [f"{BASE}/a.py", f'{BASE}/"tab\\there"', f'{BASE}/"tab/there"', f'{BASE}/"two/tabs/too"', 7, "b.py"]
    part = {"type": "patch", "id": _id(CREATED + 95), "hash": TREE, "files": files}
    found = _of(_step("step-finish", CREATED + 99), part)[1:]
    # Two slashes that may have been backslashes: which of them was, nobody can tell.
    assert [one.path for one in found] == [f"{BASE}/a.py", f"{BASE}/tab\there", f"{BASE}/tab\there", f"{BASE}/b.py"]
    assert {(one.operation, one.blob, one.time) for one in found} == {(Operation.STEP, TREE, CREATED + 99)}
    assert [one.number for one in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("tree", [None, "", "x" * 40, "a" * 39, "a" * 41, 7])
def test_what_is_no_git_id_is_no_tree(tree: Any) -> None:
    patch = {"type": "patch", "hash": tree, "files": [f"{BASE}/a.py"]}
    assert _of(_step("step-start", CREATED, tree), _step("step-finish", CREATED, tree), patch) == []


def test_outside_git_there_is_no_tree() -> None:
    assert _of(_step("step-start", CREATED), root="/") == []


def test_the_last_tree_of_an_answer_is_that_of_its_last_finished_step() -> None:
    late = write(f"{BASE}/a", "x", start=CREATED + 300, end=CREATED + 400)
    parts = (_step("step-start", CREATED), _step("step-finish", CREATED + 90), _step("step-start", CREATED + 95), late)
    assert last_finish(message(*parts, role="assistant", id=MESSAGE, created=CREATED)) == CREATED + 90
    assert last_finish(message(*parts[2:], role="assistant", id=MESSAGE, created=CREATED)) is None
    assert last_finish(message(_step("step-finish", CREATED, None), role="assistant")) is None
