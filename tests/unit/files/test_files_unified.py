"""What changed from one text to another."""

from __future__ import annotations

import time

import pytest

from daemon.files.line_diffs import MOST_COMPARED, unified


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        ("", "", ""),
        ("a\n", "a\n", ""),
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
        ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
        ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\r\n", "a\n", "@@ -1 +1 @@\n-a\r\n+a\n"),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\nx\n9\n", "@@ -5,5 +5,5 @@\n 5\n 6\n 7\n-8\n+x\n 9\n"),
        ("1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n", "@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+6\n"),
    ],
)
def test_a_diff_is_a_unified_one(old: str, new: str, diff: str) -> None:
    assert unified(old, new) == diff


def test_a_file_that_is_wholly_other_is_shown_as_replaced_in_linear_time() -> None:
    many = 20 * MOST_COMPARED
    old = "top\n" + "".join(f"a{n}\n" for n in range(many)) + "end\n"
    new = "top\n" + "".join(f"b{n}\n" for n in range(many)) + "end\n"
    begun = time.process_time()
    diff = unified(old, new)
    assert time.process_time() - begun < 30
    assert diff.startswith(f"@@ -2,{many} +2,{many} @@\n-a0\n")
    assert diff.count("\n") == 2 * many + 1
