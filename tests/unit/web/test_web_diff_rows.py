"""Diffs as rows: what is coloured as removed and kept is the old text, what is coloured as added and kept the new one."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files.line_diffs import unified
from daemon.web.diff_rows import Row, rows
from tests.unit.web.markup import Markup

LINES = st.sampled_from(
    ["", "a", "b", "-- x", "++ x", "- x", "+ x", "@@ -1 +1 @@", "\\ No newline", "--- a", "+++ b", "\r", "\u2028", " "]
) | st.text(st.characters(blacklist_characters="\n"), max_size=5)
TEXTS = st.lists(LINES, max_size=12).map("\n".join) | st.lists(LINES, max_size=12).map(
    lambda lines: "\n".join([*lines, ""])
)
PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def side(changes: list[Row], kind: str) -> list[str]:
    """The lines of one side, each with its end."""
    lines = list[str]()
    for row, after in pairwise([*changes, Row("hunk", "")]):
        if row.kind in (kind, "same"):
            lines.append(row.text[1:] + ("" if after.kind == "note" else "\n"))
    return lines


def applied(old: str, changes: list[Row]) -> str:
    """`old` with the hunks of a diff applied, each at its place and only if what it removes is there."""
    before = old.split("\n")
    lines = [f"{line}\n" for line in before[:-1]] + ([before[-1]] if before[-1] else [])
    heads = [number for number, row in enumerate(changes) if row.kind == "hunk"]
    done, result = 0, list[str]()
    for start, end in pairwise([*heads, len(changes)]):
        place = PLACE.match(changes[start].text)
        assert place is not None
        body = changes[start + 1 : end]
        removed = side(body, "del")
        at = int(place[1]) - (int(place[2] or "1") > 0)
        assert lines[at : at + len(removed)] == removed
        result += [*lines[done:at], *side(body, "add")]
        done = at + len(removed)
    return "".join([*result, *lines[done:]])


@given(TEXTS, TEXTS)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str) -> None:
    assert applied(old, rows(unified(old, new))) == new


@given(TEXTS)
def test_two_equal_texts_have_no_diff(text: str) -> None:
    assert rows(unified(text, text)) == []


@given(st.text(alphabet="+-@ \\\nab1,", max_size=60) | TEXTS)
def test_no_character_of_any_diff_is_lost(diff: str) -> None:
    assert "\n".join(row.text for row in rows(diff)) == diff.removesuffix("\n")


@pytest.mark.parametrize(
    ("diff", "kinds"),
    [
        ("--- a\n+++ b\n@@ -1,2 +1,1 @@\n--- x\n same\n", ["hunk", "hunk", "hunk", "del", "same"]),
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", ["hunk", "del", "note", "add"]),
        ("-old\n+new\n", ["del", "add"]),
        ("*** Update File: a\n@@ def f\n-x\n+y\n", ["hunk", "hunk", "del", "add"]),
        ("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", ["hunk", "same", "same", "del", "add"]),
        ("", []),
    ],
)
def test_lines_are_told_by_what_their_hunk_counts(diff: str, kinds: list[str]) -> None:
    assert [row.kind for row in rows(diff)] == kinds


# -- the tests' own reader of pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        "<script>1</script>", "<script src=//evil.example/x.js></script>", "<p onclick=x>", "<a href=javascript:x>a</a>",
        "<a href=//evil.example>a</a>", "<a href=https://evil.example>a</a>", "<img src=/x>", "<p style=x>",
        "<style></style>", "<base href=/>", "<!-- x -->", "<div hx-get='https://evil.example'>", "<div hx-on:click=x>",
        "<a href='/\\evil.example'>a</a>", "<form action=https://evil.example>",
    ],
)  # fmt: skip
def test_the_reader_of_pages_sees_what_could_act(html: str) -> None:
    assert len(Markup(html).dangers()) >= 1
    assert Markup("<p>1 &lt;script&gt; <a href='/x?y=javascript:'>a</a></p>").dangers() == []
