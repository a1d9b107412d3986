"""The lines that an edit's recorded diff shows can contradict the text we take the file to have had."""

from __future__ import annotations

import pytest

from daemon.files.apply.edit_diffs import NO_NEWLINE, fits
from daemon.transcript.patch_text import Hunk
from tests.support.stores.replaying import edit, grade_and_content, last, write


def hunk(at: int, before: list[str], after: list[str], new_at: int | None = None) -> Hunk:
    to = at if new_at is None else new_at
    return f"@@ -{at},{len(before)} +{to},{len(after)} @@", tuple(before), tuple(after), False


@pytest.mark.parametrize(
    ("before", "after", "hunks", "fit"),
    [
        ("a\nb\n", "a\nc\n", [], True),
        ("a\nb\n", "a\nc\n", [hunk(1, ["a", "b"], ["a", "c"])], True),
        ("a\nb\n", "a\nc\n", [hunk(2, ["b"], ["c"])], True),
        ("a\nb\n", "a\nc\n", [hunk(1, ["b"], ["c"])], False),  # it stands elsewhere
        ("x\na\nb\n", "x\na\nc\n", [hunk(1, ["a", "b"], ["a", "c"])], False),
        ("a\nb\n", "a\nc\n", [hunk(1, ["A", "b"], ["A", "c"])], False),
        ("a\nb\n", "a\nc\n", [hunk(1, ["a", "b"], ["a", "d"])], False),
        ("a\nb\n", "a\nc\n", [hunk(1, ["a", "b", "z"], ["a", "c", "z"])], False),  # more lines than there are
        # the common indentation is cut off, and only the common one
        ("    a\n    b\n", "    a\n    c\n", [hunk(1, ["a", "b"], ["a", "c"])], True),
        ("    a\n      b\n", "    a\n      c\n", [hunk(1, ["a", "  b"], ["a", "  c"])], True),
        ("    a\n      b\n", "    a\n      c\n", [hunk(1, ["a", "b"], ["a", "c"])], False),
        ("xa\n", "xb\n", [hunk(1, ["a"], ["b"])], False),  # what was cut must be indentation
        ("    a\n\n    b\n", "    a\n\n    c\n", [hunk(1, ["a", "", "b"], ["a", "", "c"])], True),
        ("    a\n    \n    b\n", "    a\n    \n    c\n", [hunk(1, ["a", "", "b"], ["a", "", "c"])], True),
        ("a\r\nb\r\n", "a\r\nc\r\n", [hunk(1, ["a", "b"], ["a", "c"])], True),
        ("\ufeffa\n", "\ufeffb\n", [hunk(1, ["a"], ["b"])], True),
        ("a", "b", [hunk(1, ["a", NO_NEWLINE], ["b", NO_NEWLINE])], True),
        ("a\n", "b\n", [hunk(1, ["a", NO_NEWLINE], ["b", NO_NEWLINE])], False),
        ("a", "b", [hunk(1, ["a"], ["b"])], False),  # the file's last line has no newline, and the diff says it has
        ("a\nb", "a\nc", [hunk(1, ["a", NO_NEWLINE], ["a", NO_NEWLINE])], False),
        ("a\nb\nc\n", "a\nc\n", [hunk(1, ["a", "b", "c"], ["a", "c"])], True),
        ("", "a\n", [hunk(0, [], ["a"], 1)], True),
        ("a\n", "b\n", [("a note of another form", ("q",), ("r",), False)], True),
    ],
)  # fmt: skip
def test_a_diff_fits_or_contradicts(before: str, after: str, hunks: list[Hunk], fit: bool) -> None:
    assert fits(before, after, tuple(hunks)) is fit


def test_an_edit_whose_diff_shows_other_lines_reports_an_outside_change() -> None:
    made = edit(2, "/w/a", "b", "c", hunks=(hunk(1, ["# new", "b"], ["# new", "c"]),))
    found = last("/w/a", [write(1, "/w/a", "# old\nb\n"), made])
    assert grade_and_content(found) == ("stale", b"# old\nc\n")
    assert found.outside_change


def test_an_edit_whose_diff_fits_is_proven() -> None:
    made = edit(2, "/w/a", "b", "c", hunks=(hunk(1, ["# old", "b"], ["# old", "c"]),))
    assert grade_and_content(last("/w/a", [write(1, "/w/a", "# old\nb\n"), made])) == ("proven", b"# old\nc\n")
