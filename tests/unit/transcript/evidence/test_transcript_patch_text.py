"""The text of a patch is read as OpenCode reads it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.patch_text import parse


def _wrapped(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch"


def test_every_kind_of_file_in_one_patch() -> None:
    added, updated, deleted = parse(
        _wrapped(
            "*** Add File: new dir/é.txt\n+one\n+\n+two\n"
            "*** Update File: a.py\n*** Move to: b.py\n@@ class A:\n keep\n-old\n+new\n@@\n-x\n*** End of File\n"
            "*** Delete File: gone.md"
        )
    )
    assert (added.kind, added.path, added.contents) == ("add", "new dir/é.txt", "one\n\ntwo\n")
    assert (updated.kind, updated.path, updated.move_to, updated.is_complete) == ("update", "a.py", "b.py", True)
    assert updated.hunks == [("class A:", ("keep", "old"), ("keep", "new"), False), ("", ("x",), (), True)]
    assert (deleted.kind, deleted.path) == ("delete", "gone.md")


def test_a_heredoc_around_the_patch_is_taken_off() -> None:
    assert [file.path for file in parse("cat <<'EOF'\n" + _wrapped("*** Delete File: a") + "\nEOF\n")] == ["a"]


def test_an_added_file_ends_with_one_newline_and_an_empty_one_stays_empty() -> None:
    bodies = ["*** Add File: a", "*** Add File: a\n+", "*** Add File: a\n+x", "*** Add File: a\n+x\n+"]
    assert [parse(_wrapped(body))[0].contents for body in bodies] == ["", "", "x\n", "x\n"]


def test_lines_that_are_passed_over_make_a_patch_incomplete() -> None:
    (late,) = parse(_wrapped("*** Update File: a\n@@\n-x\n*** End of File\n@@\n-y\n+z"))
    assert not late.is_complete
    (loose,) = parse(_wrapped("*** Update File: a\n-x\n+y"))
    assert not loose.is_complete


def test_no_markers_no_files() -> None:
    assert parse("*** Add File: a\n+x") == []
    assert parse("") == []


@given(
    st.lists(
        st.sampled_from(
            [
                "*** Begin Patch",
                "*** End Patch",
                "*** Add File: a",
                "*** Update File: b",
                "*** Move to: c",
                "@@",
                "+x",
                "-y",
                " z",
                "",
                "*** End of File",
                "junk",
            ]
        )
    )
)
def test_it_reads_any_text(lines: list[str]) -> None:
    for file in parse("\n".join(lines)):
        assert file.path in "abc"
