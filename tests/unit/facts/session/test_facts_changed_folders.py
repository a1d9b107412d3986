"""Which entries stand for the files that a session changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.reconstitute.facts.session.file_changes import ChangedFolder, in_few_entries
from daemon.reconstitute.facts.session_values import FileChange

ROOT = "/p"


def made(*names: str, what: str = "changed") -> list[FileChange]:
    return [FileChange(f"{ROOT}/{name}", what) for name in names]


def test_few_files_stand_by_themselves():
    given_ = made(*(f"dist/{number}" for number in range(6)))
    assert in_few_entries(given_, ROOT, 6) == (given_, 0)


def test_of_many_files_those_of_one_folder_are_one_entry_and_come_last():
    source, built = (
        made("README.md", "src/a", "src/b", "z"),
        made("dist/x/y", *(f"dist/{number}" for number in range(8))),
    )
    gone = made("dist/old", what="deleted")
    assert in_few_entries([*built, *source, *gone], ROOT, 6) == ([*source, *gone, ChangedFolder(f"{ROOT}/dist", 9)], 0)


def test_files_of_the_target_itself_are_ungrouped_and_moved_ones_never_cut():
    plain, gone = made(*"abcdefgh"), made("x", what="moved")
    assert in_few_entries([*plain, *gone], ROOT, 6) == ([*gone, *plain[:5]], 3)


def test_where_all_lies_in_one_folder_files_are_named():
    plain = made(*(f"src/{number}" for number in range(9)))
    assert in_few_entries(plain, ROOT, 6) == (plain[:6], 3)


@given(
    st.lists(
        st.builds(
            FileChange,
            st.sampled_from([f"{ROOT}/{folder}{name}" for folder in ("", "a/", "a/b/", "c/") for name in "123456789"]),
            st.sampled_from(["changed", "added", "deleted", "moved"]),
            undone=st.booleans(),
        ),
        unique_by=lambda one: one.path,
    ),
    st.integers(1, 12),
)
def test_every_file_is_counted_once(changes: list[FileChange], most: int):
    entries, more = in_few_entries(changes, ROOT, most)
    alone = [one for one in entries if isinstance(one, FileChange)]
    folders = [one for one in entries if isinstance(one, ChangedFolder)]
    assert len(alone) + sum(one.count for one in folders) + more == len(changes)
    gone = {one.path for one in changes if one.undone or one.kind in {"deleted", "moved"}}
    assert gone <= {one.path for one in alone} or len(alone) == most
    assert ROOT not in {one.path for one in folders}
    assert not folders or len(changes) > most
