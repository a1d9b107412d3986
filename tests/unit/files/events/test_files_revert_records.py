"""A session_diff file compared with the trees that are left of its session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.files.events.revert_records import SessionDiffCheck, check_session_diff
from daemon.model import FileEdit, Json
from tests.support.stores.replaying import keep, keep_tree, remove, snapshot

BINARY: Json = {"file": "b", "patch": "", "additions": 0, "deletions": 0, "status": "added"}
MATCHED = SessionDiffCheck(is_matched=True, is_kept=True)
UNMATCHED = SessionDiffCheck(is_kept=True)


def diff(before: str, after: str, **fields: object) -> Json:
    lines = [f"{sign}{line}" for sign, text in (("-", before), ("+", after)) for line in text.splitlines(keepends=True)]
    old, new = before.count("\n"), after.count("\n")
    patch = f"--- a\t\n+++ a\t\n@@ -{min(1, old)},{old} +{min(1, new)},{new} @@\n" + "".join(lines)
    return {"file": "a", "patch": patch, "additions": new, "deletions": old, "status": "modified"} | fields


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as opened:
        yield opened


def worked(archive: Archive, *diffs: Json, missing: bool = False) -> list[FileEdit]:
    """Two messages that made a of nothing, 1 of that, and then 2; and the session's diffs."""
    none, one, two = (keep_tree(archive, files) for files in ({"x": b"x"}, {"a": b"1\n"}, {"a": b"2\n", "b": b"\0"}))
    two = "5ca1ab1e" * 5 if missing else two
    trees = [
        snapshot(second, tree, "/w", note=note, message_id=f"msg_{second // 4}")
        for second, tree, note in ((1, none, "start"), (2, one, "finish"), (5, one, "start"), (6, two, "finish"))
    ]
    keep(archive, trees)
    batch = archive.batch()
    batch.session_extra("ses_1", {"reverts": {}, "diffs": list(diffs), "diff_time": 0}, [])
    archive.commit(batch)
    return trees


@pytest.mark.parametrize(
    ("diffs", "expected"),
    [
        pytest.param([diff("", "2\n", status="added")], MATCHED, id="of the session"),
        pytest.param([diff("", "2\n", status="added"), BINARY], MATCHED, id="and a binary"),
        pytest.param([diff("1\n", "2\n")], MATCHED, id="of its last turn, by a revert that was undone"),
        pytest.param([diff("", "1\n", status="added")], MATCHED, id="of its first turn"),
        pytest.param([diff("2\n", "3\n")], UNMATCHED, id="of a turn that is gone"),
        pytest.param([diff("9\n", "2\n")], UNMATCHED, id="from what no tree shows"),
        pytest.param([diff("2\n", "1\n")], UNMATCHED, id="from what only the end of a step shows"),
        pytest.param([diff("1\n", "", status="deleted")], UNMATCHED, id="of a deletion that is gone"),
        pytest.param([BINARY], UNMATCHED, id="of nothing that can be compared"),
        pytest.param([diff("1\n", "2\n"), diff("", "y\n", file="y", status="added")], UNMATCHED, id="only in part"),
    ],
)
def test_trees_match_a_file_whose_both_sides_they_show(
    archive: Archive, diffs: list[Json], expected: SessionDiffCheck
) -> None:
    trees = worked(archive, *diffs)
    assert check_session_diff(archive, "ses_1", trees) == expected


def test_a_pruned_tree_matches_nothing(archive: Archive) -> None:
    trees = worked(archive, diff("", "1\n", status="added"), missing=True)
    assert check_session_diff(archive, "ses_1", trees) == SessionDiffCheck()


def test_the_trees_of_a_message_that_is_gone_do_not_count(archive: Archive) -> None:
    trees = worked(archive, diff("1\n", "2\n"))
    remove(archive, "msg_1", now=10)
    assert check_session_diff(archive, "ses_1", trees) == UNMATCHED


def test_where_no_tree_is_left_a_prompt_may_have_removed_it(archive: Archive) -> None:
    trees = worked(archive, diff("1\n", "2\n"))
    remove(archive, "msg_0", "msg_1", now=10)
    assert check_session_diff(archive, "ses_1", trees) == SessionDiffCheck(is_prompted=True)


def test_a_deleted_session_matches_nothing(archive: Archive) -> None:
    trees = worked(archive, diff("1\n", "2\n"))
    batch = archive.batch()
    batch.forget_session_source("ses_1", "s", 10)
    archive.commit(batch)
    assert check_session_diff(archive, "ses_1", trees) == SessionDiffCheck()
