"""Both sides of a diff come out exactly, or not at all."""

from __future__ import annotations

import difflib
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.transcript.evidence.unified_diffs import Sides, full_diff

HEAD = "Index: a.py\n" + "=" * 67 + "\n--- a.py\t\n+++ a.py\t\n"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _diff(before: str, after: str) -> str:
    """As OpenCode 1.15 and later record it: one hunk with every line."""
    old, new = _lines(before), _lines(after)
    body = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            body += [" " + line for line in old[a:b]]
        else:
            body += ["-" + line for line in old[a:b]] + ["+" + line for line in new[c:d]]
    shown = "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in body)
    return f"{HEAD}@@ -{min(1, len(old))},{len(old)} +{min(1, len(new))},{len(new)} @@\n{shown}"


_TEXTS = st.lists(st.sampled_from(["a", "b", "\r", "", "é\r", "\\ No newline at end of file", "@@ -1 +1 @@"])).map(
    "\n".join
)


@given(_TEXTS, _TEXTS)
def test_a_complete_diff_gives_both_texts_back(before: str, after: str) -> None:
    if before != after:
        assert full_diff(_diff(before, after), complete=True) == Sides(before, after)


@given(_TEXTS, _TEXTS, st.integers(0, 400))
def test_a_diff_that_was_cut_short_is_refused(before: str, after: str, at: int) -> None:
    text = _diff(before, after)
    found = full_diff(text[:at], complete=True)
    # That only the mark of a missing newline was cut off does not show.
    assert found is None or found == Sides(before, after) or text[at:].startswith("\\ No newline")


@given(st.text(), st.booleans())
def test_any_text_is_taken_without_an_error(text: str, complete: bool) -> None:
    for diff in (text, HEAD + text, HEAD + "@@ -1,2 +1 @@\n" + text):
        # Not raising is the claim: a record may hold anything, and an error here would cost the whole message.
        full_diff(diff, complete=complete)


def _git(folder: Path, before: bytes | None, after: bytes | None, context: int) -> str:
    for name, content in (("a", before), ("b", after)):
        if content is not None:
            (folder / name).write_bytes(content)
    names = ["/dev/null" if content is None else name for name, content in (("a", before), ("b", after))]
    command = ["git", "diff", "--no-index", f"-U{context}", "--no-renames", "--", *names]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()


SIDES = {
    "changed": (b"a\nb\nc\n", b"a\nB\nc\n"),
    "carriage returns": (b"a\r\nb\r\n", b"a\r\nB\n"),
    "no newline before": (b"a\nb", b"a\nb\n"),
    "no newline after": (b"a\nb\n", b"a\nb"),
    "no newline at all": (b"a\nb\nc", b"x\nb\nc"),
    "made": (None, b"a\nb\n"),
    "removed": (b"a\nb", None),
    "made empty": (None, b""),
    "emptied": (b"a\n", b""),
    "filled": (b"", b"a"),
}


@pytest.mark.parametrize("name", SIDES)
def test_a_diff_of_git_gives_both_files_back(name: str, tmp_path: Path) -> None:
    before, after = SIDES[name]
    told = full_diff(_git(tmp_path, before, after, 3))
    assert told == Sides(*(None if side is None else side.decode() for side in (before, after)))


def _numbered(count: int) -> list[str]:
    return [f"{number}\n" for number in range(count)]


@pytest.mark.parametrize(
    ("lines", "changed", "context", "whole"),
    [
        (10, (5,), 10, True),  # more lines shown before the change than behind it
        (4, (1,), 3, True),  # fewer behind it than git ever cuts to
        (5, (1,), 3, False),  # three behind it: it may go on
        (12, (1, 8), 3, False),
        (16, (1, 12), 10, True),  # ten lines between two changes: shown with five at least, and only three behind
        (40, (1,), 3, False),
        (40, (20,), 3, False),  # begins later
        (40, (2, 30), 3, False),  # two hunks
    ],
)
def test_without_a_word_of_its_maker_a_diff_must_show_its_own_end(
    lines: int, changed: tuple[int, ...], context: int, whole: bool, tmp_path: Path
) -> None:
    before = _numbered(lines)
    after = [f"x{line}" if number in changed else line for number, line in enumerate(before)]
    diff = _git(tmp_path, "".join(before).encode(), "".join(after).encode(), context)
    assert full_diff(diff) == (Sides("".join(before), "".join(after)) if whole else None)


@pytest.mark.parametrize(
    "diff",
    [
        "",
        HEAD,
        "diff --git a/x b/x\nBinary files a/x and b/x differ\n",
        "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n",
        "diff --git a/x b/x\nindex 111..222 160000\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
        "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n",
        "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n",
        HEAD + "@@ -1 +1 @@\n-a\n+b\n" + HEAD + "@@ -1 +1 @@\n-a\n+b\n",
        HEAD + "@@ -1,2 +1,2 @@\n-a\n+b\n",
        HEAD + "@@ -1,2 +1,2 @@\n a\n\\ No newline at end of file\n-b\n+c\n",
        HEAD + "@@ -2 +2 @@\n-a\n+b\n",
        HEAD + f"@@ -1,{'9' * 5000} +1 @@\n-a\n+b\n",
    ],
)  # fmt: skip
def test_what_shows_no_whole_file_is_refused(diff: str) -> None:
    assert full_diff(diff, complete=True) is None
