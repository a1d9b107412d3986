"""Whole states of files out of recorded diffs: exact, at the right path, or left out."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.model import FileEdit, Operation
from daemon.transcript.evidence import recorded_diffs
from daemon.transcript.evidence.edits import edits
from daemon.transcript.evidence.recorded_diffs import (
    AFTER_SESSION,
    AFTER_TURN,
    BEFORE_REVERT,
    BEFORE_TURN,
    NO_MARK,
    session_diff_edits,
)
from tests.conftest import Sample
from tests.support.stores.records import BASE, START, message, session
from tests.support.stores.sample_records import load

ABSENT = "absent"
HEAD = "Index: a.py\n" + "=" * 67 + "\n--- a.py\t\n+++ a.py\t\n"
CHANGED = HEAD + "@@ -1,2 +1,2 @@\n-x\r\n+y\r\n z\n\\ No newline at end of file\n"


def _diff(**fields: Any) -> dict[str, Any]:
    return {"file": "a.py", "additions": 1, "deletions": 1, "status": "modified"} | fields


def _of(*diffs: Any, version: str = "1.18.33", root: str = "", **fields: Any) -> list[FileEdit]:
    asked = message(role="user", created=START, summary={"diffs": list(diffs)})
    return edits(asked, session(version=version, **({"path": ""} | fields)), root=root)


def _told(found: list[FileEdit]) -> dict[str, str | None]:
    """Text by moment; None of content is a file that is not there."""
    assert {edit.operation for edit in found} <= {Operation.STATE}
    return {edit.note.split()[0]: ABSENT if edit.content is None else edit.content for edit in found}


SHAPES = {
    "texts up to 1.2.1": (_diff(before="x\n", after="y\n"), {"before": "x\n", "after": "y\n"}),
    "a byte order mark up to 1.2.1": (_diff(before="\ufeffx\n", after="\ufeffy\n"), {"before": "\ufeffx\n", "after": "\ufeffy\n"}),
    "a patch since 1.15": (_diff(patch=CHANGED), {"before": "x\r\nz", "after": "y\r\nz"}),
    "added": (_diff(before="", after="y\n", status="added", deletions=0), {"before": ABSENT, "after": "y\n"}),
    "deleted": (_diff(before="x\n", after="", status="deleted", additions=0), {"before": "x\n", "after": ABSENT}),
    "emptied": (_diff(before="x\n", after="", additions=0), {"before": "x\n", "after": ""}),
    "added, in a patch": (_diff(patch=HEAD + "@@ -0,0 +1 @@\n+y\n", status="added", deletions=0), {"before": ABSENT, "after": "y\n"}),
    "added empty, in a patch": (_diff(patch=HEAD, status="added", additions=0, deletions=0), {"before": ABSENT, "after": ""}),
    "added empty, or binary": (_diff(before="", after="", status="added", additions=0, deletions=0), {"before": ABSENT}),
    "added binary, in a patch": (_diff(patch="", status="added", additions=0, deletions=0), {"before": ABSENT}),
    "binary": (_diff(before="", after="", additions=0, deletions=0), {}),
    "binary in a patch": (_diff(patch="", additions=0, deletions=0), {}),
    "only its mode changed": (_diff(patch=HEAD, additions=0, deletions=0), {}),
    "not read, though it has lines": (_diff(before="", after=""), {}),
    "not read on one side": (_diff(before="", after="x\ny\n"), {}),
    "not read, in a patch": (_diff(patch=HEAD, status="added", additions=3, deletions=0), {"before": ABSENT}),
    "other bytes than UTF-8": (_diff(before="x\n", after="y\ufffd\n"), {"before": "x\n"}),
    "perhaps a link": (_diff(before="x\n", after="target"), {"before": "x\n"}),
    "a stand-in for a large file": (_diff(before="x\n", after="version https://git-lfs.github.com/spec/v1\n"), {"before": "x\n"}),
    "no status, and made or filled": (_diff(before="", after="y\n", status=None, deletions=0), {"after": "y\n"}),
    "no counts": ({"file": "a.py", "before": "x\n", "after": "y\n", "status": "modified"}, {"before": "x\n", "after": "y\n"}),
    "no counts, and not read on one side": ({"file": "a.py", "before": "", "after": "y\n", "status": "modified"}, {}),
    "no shape that is known": (_diff(before=1, after=[], patch={}), {}),
    "no file": (_diff(file=None, before="x\n", after="y\n"), {}),
    "no diff": (7, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_diff_of_this_shape_proves_no_more_than_it_tells(name: str) -> None:
    diff, expected = SHAPES[name]
    assert _told(_of(diff)) == expected


def test_what_a_state_says_of_its_origin() -> None:
    before, after = _of(_diff(patch=CHANGED))
    assert [one.note for one in (before, after)] == [BEFORE_TURN + NO_MARK, AFTER_TURN + NO_MARK]
    assert [(one.path, one.time, one.tool, one.number) for one in (before, after)] == [
        (f"{BASE}/a.py", START, "summary", 0),
        (f"{BASE}/a.py", START, "summary", 1),
    ]
    assert before.part_id == after.part_id == f"{before.message_id}.diff"


def test_a_quoted_name_is_the_file_that_git_meant() -> None:
    found = _of(_diff(file='"tab\\there \\303\\251"', before="x\n", after="y\n"))
    assert {one.path for one in found} == {f"{BASE}/tab\there é"}


@pytest.mark.parametrize(
    ("fields", "root", "name", "path"),
    [
        ({"path": ""}, "", "a.py", f"{BASE}/a.py"),
        ({"path": "app"}, "", "app/a.py", f"{BASE}/a.py"),
        ({"path": "projects/app"}, "", "projects/app/a.py", f"{BASE}/a.py"),
        ({"path": "elsewhere"}, "", "elsewhere/a.py", None),
        ({"path": BASE.strip("/")}, "", "a.py", None),  # outside git
        ({"path": None}, "", "a.py", f"{BASE}/a.py"),  # the session's folder can only be the work tree
        ({"path": None}, "", "app/a.py", None),  # or the folder above is
        ({"path": None}, "/home/dev/projects", "app/a.py", f"{BASE}/a.py"),
        ({"path": None}, "/", "a.py", None),
        ({"path": None, "directory": "/"}, "", "a.py", None),
    ],
)
def test_names_start_at_the_work_tree_or_nowhere(
    fields: dict[str, Any], root: str, name: str, path: str | None
) -> None:
    found = _of(_diff(file=name, before="x\n", after="y\n"), root=root, **fields)
    assert {one.path for one in found} == ({path} if path else set())


def test_a_patch_of_a_version_that_was_not_seen_must_prove_itself() -> None:
    cut = HEAD + "@@ -1,4 +1,4 @@\n-x\n+y\n 1\n 2\n 3\n"
    assert _told(_of(_diff(patch=cut), version="1.4.0")) == {}
    assert _told(_of(_diff(patch=cut), version="1.15.13")) == {"before": "x\n1\n2\n3\n", "after": "y\n1\n2\n3\n"}
    assert _told(_of(_diff(patch=CHANGED), version="1.4.0")) == {"before": "x\r\nz", "after": "y\r\nz"}


def test_of_too_many_diffs_the_rest_is_unclear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_diffs, "MOST_DIFFS", 2)
    found = _of(*(_diff(file=f"{number}.py", before="x\n", after="y\n") for number in range(3)))
    assert [one.operation for one in found] == [Operation.STATE] * 4 + [Operation.UNCLEAR]
    assert (found[-1].path, found[-1].note.startswith(AFTER_TURN)) == (BASE, True)


def test_an_answer_has_no_summary_of_files() -> None:
    made = message(role="assistant", summary={"diffs": [_diff(before="x\n", after="y\n")]})
    assert edits(made, session(path="")) == []


_JSON = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a.py", "x\n", "added", HEAD, CHANGED, "\ud800"]) | st.lists(st.none(), max_size=1)  # fmt: skip
_NAMES = ["file", "before", "after", "patch", "additions", "deletions", "status", "mode", "binary"]


@given(
    st.lists(st.dictionaries(st.sampled_from(_NAMES), _JSON) | _JSON, max_size=3) | _JSON,
    st.sampled_from([None, "", 3]),
)
def test_diffs_of_any_shape_are_taken_without_an_error(diffs: Any, path: Any) -> None:
    asked = message(role="user", summary={"diffs": diffs})
    for one in edits(asked, session(path=path)):
        assert one.path.startswith(f"{BASE}/")


# -- session_diff ------------------------------------------------------------------------------------------------


def test_a_sessions_diff_tells_the_files_at_its_end() -> None:
    told = session(version="1.1.65", updated=START + 500)
    (found,) = session_diff_edits(told, [_diff(before="x\n", after="y\n")], START + 499)
    assert (found.operation, found.content, found.note, found.time) == (
        Operation.STATE,
        "y\n",
        AFTER_SESSION,
        START + 499,
    )
    assert (found.part_id, found.message_id) == ("ses_1.diff", "")


def test_a_copied_file_is_not_newer_than_its_session() -> None:
    told = session(version="1.1.65", updated=START + 500)
    (found,) = session_diff_edits(told, [_diff(before="x\n", after="y\n")], START + 10_000_000)
    assert found.time == START + 500


def test_a_revert_tells_what_it_took_back() -> None:
    told = session(updated=START + 500, path="")
    found = session_diff_edits(told, [_diff(patch=CHANGED)], START + 400)
    assert [(one.operation, one.content, one.time) for one in found] == [
        (Operation.STATE, "y\r\nz", START + 399),
        (Operation.UNCLEAR, None, START + 400),
    ]
    assert found[0].note == BEFORE_REVERT + NO_MARK


def test_while_a_revert_is_pending_the_messages_tell_it() -> None:
    told = session(path="", revert={"messageID": "msg_1"})
    assert session_diff_edits(told, [_diff(patch=CHANGED)], START) == []


# -- the samples -------------------------------------------------------------------------------------------------


def test_every_state_in_the_samples_was_the_files(any_sample: Sample, tmp_path: Path) -> None:
    found = load(any_sample, tmp_path)
    known = defaultdict(set)
    for line in any_sample.timeline():
        known[line["path"]].add(line["sha256"])
    states = [
        edit
        for asked in found.messages
        for edit in edits(asked, found.sessions.get(asked.session_id))
        if edit.operation is Operation.STATE and edit.tool == "summary" and edit.content is not None
    ]
    unknown = [
        edit.path.rsplit("/", 1)[1]
        for edit in states
        if hashlib.sha256((edit.content or "").encode()).hexdigest() not in known[edit.path]
    ]
    assert len(states) > 40
    # Two states lie between two looks at the disk; the snapshot trees hold both.
    assert set(unknown) <= {"filters.py", "poem.txt"}
