"""OpenCode's own way from text to text, version by version: what its real code answered is replayed here."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files import apply
from daemon.files.apply import Outcome
from daemon.transcript import patch_text

OLD, NEW, UNKNOWN = "1.1.65", "1.18.33", ""
FIXTURES = Path(__file__).parents[3] / "fixtures"


def _recorded(version: str) -> Any:
    return json.loads(gzip.decompress((FIXTURES / f"matching-{version}.json.gz").read_bytes()))


@pytest.mark.parametrize("version", ["1.1.65", "1.2.20", "1.3.2", "1.15.13", "1.18.33"])
def test_every_recorded_edit_ends_as_it_did_in_that_version(version: str) -> None:
    edits = _recorded(version)["edits"]
    wrong = [
        (base, old, new, everywhere, expected)
        for base, old, new, everywhere, expected in edits
        if apply.edited_by(base, old, new, everywhere, version)
        != Outcome(expected, apply.edited_by(base, old, new, everywhere, version).rule, refused=expected is None)
    ]
    assert len(edits) >= 80
    assert wrong == []


@pytest.mark.parametrize("version", ["1.0.0", "1.1.65", "1.18.33"])
def test_every_recorded_patch_ends_as_it_did_in_that_version(version: str) -> None:
    patches = _recorded(version)["patches"]
    outcomes = [
        apply.patched_by(base, [(at, tuple(old), tuple(new), end) for at, old, new, end in hunks], version)
        for base, hunks, _ in patches
    ]
    assert len(patches) >= 60
    assert [(outcome.text, outcome.refused) for outcome in outcomes] == [
        (expected, expected is None) for *_, expected in patches
    ]


def test_an_unknown_version_gives_only_results_of_known_ones() -> None:
    edits = [edit for version in ("1.1.65", "1.18.33") for edit in _recorded(version)["edits"]]
    for base, old, new, everywhere, _ in edits:
        given_by = {
            apply.edited_by(base, old, new, everywhere, version).text
            for version in ("1.1.65", "1.2.20", "1.3.2", "1.15.13", "1.18.33")
        }
        assert apply.edited(base, old, new, everywhere, UNKNOWN) in {*(given_by if len(given_by) == 1 else ()), None}


@pytest.mark.parametrize(
    ("base", "old", "new", "everywhere", "version", "expected"),
    [
        ("abc", "b", "x", False, NEW, "axc"),
        ("abcb", "b", "x", False, NEW, None),
        ("abcb", "b", "x", True, NEW, "axcx"),
        ("aaa", "aa", "x", False, NEW, None),
        ("abc", "z", "x", True, NEW, None),
        ("abc", "b", "b", False, NEW, None),
        ("a b", "b", "$&", False, NEW, "a $&"),
        ("a b", "b", "[$&]", True, NEW, "a [b]"),
        ("a b c", "b", "$`|$'", True, NEW, "a a | c c"),
        ("x", "x", "$1$$", True, NEW, "$1$"),
        ("a b", "b", "$&", False, "2.0.0", None),
        ("a\r\nb", "a\nb", "c\nd", False, NEW, "c\r\nd"),
        ("a\r\nb", "b", "c\nd", False, OLD, "a\r\nc\nd"),
        ("a\r\nb", "b", "c\nd", False, UNKNOWN, None),
        ("a\r\nb", "b", "c\nd", False, "1.2.24", None),
        ("a\r\nb", "b", "c\nd", False, "1.3.1", "a\r\nc\r\nd"),
        ("a\nb", "a\nb", "c", False, UNKNOWN, "c"),
        ("\ufeffa", "a", "b", False, OLD, "b"),
        ("\ufeffa", "a", "b", False, NEW, "\ufeffb"),
        ("\ufeffa", "a", "b", False, "1.2.10", None),
        ("\ufeffa", "a", "b", False, "1.2.20", "\ufeffb"),
        ("\ufeff\ufeffa", "a", "b", False, NEW, None),
        ("abc", "", "new", False, NEW, "new"),
        ("\ufeffabc", "", "new", False, "1.15.0", "\ufeffnew"),
        ("\ufeffabc", "", "new", False, "1.16.0", None),
    ],
)
def test_edited(base: str, old: str, new: str, everywhere: bool, version: str, expected: str | None) -> None:
    assert apply.edited(base, old, new, everywhere, version) == expected


def test_an_outcome_tells_a_refusal_from_what_is_not_certain() -> None:
    assert apply.edited_by("a\n", "z", "x", False, NEW) == Outcome(refused=True)
    assert apply.edited_by("a\n", "z", "x", False, UNKNOWN) == Outcome(refused=True)
    loose = ("f\n1\n2\ng\n", "f\nzzzz\nyyyy\ng", "x", False)
    assert apply.edited_by(*loose, NEW) == Outcome(refused=True)
    assert apply.edited_by(*loose, OLD) == Outcome("x\n", "first and last line of a block")
    assert apply.edited_by(*loose, "1.16.0") == Outcome()


def test_a_newer_version_that_leaves_no_trace_must_not_find_another_place() -> None:
    change = (" \n1 1 1\n", "\n\n1 1 1\n ", "x", False)
    texts = [apply.edited_by(*change, version).text for version in ("1.3.2", "1.18.33")]
    assert texts == ["x", " \nx\n"]
    assert apply.edited_by(*change, "1.15.13") == Outcome()


def test_an_outcome_names_the_rule_for_the_evidence() -> None:
    text = "if x:\n    y = 1\n"
    assert apply.edited_by(text, "y = 1", "z", False, NEW).rule == "as it stands"
    assert apply.edited_by(text, "if x:\ny = 1", "z", False, NEW).rule == "lines without their outer blanks"
    assert apply.edited_by("aa", "a", "z", True, NEW).rule == "as it stands, everywhere"


def test_an_old_text_that_stands_twice_may_still_name_one_line() -> None:
    assert apply.edited("return x\n  return\n", "return", "stop", False, NEW) == "return x\nstop\n"


def test_replacing_an_empty_text_is_certain_only_for_plain_characters() -> None:
    assert apply.edited("ab", " ", "-", True, NEW) == "-a-b-"
    assert apply.edited_by("a\U0001f600", " ", "-", True, NEW) == Outcome()


def test_ten_megabytes_and_thousands_of_edits_are_quick() -> None:
    big = "".join(f"line {number} of a large file\n" for number in range(350_000))
    begun = time.process_time()
    assert apply.edited(big, "line 200000 of", "X", False, NEW) == big.replace("line 200000 of", "X")
    assert apply.patched(big, [("", ("line 7 of a large file",), ("X",), False)], NEW) is not None
    text = big[:100_000]
    for number in range(1000):
        text = apply.edited(text, f"line {number} of", f"line {number} in", False, NEW) or ""
    assert text == big[:100_000].replace(" of", " in", 1000)
    assert time.process_time() - begun < 60


@pytest.mark.parametrize(
    ("content", "base", "version", "expected"),
    [
        ("a", None, NEW, "a"),
        ("a", "b", NEW, "a"),
        ("a", "\ufeffb", NEW, "\ufeffa"),
        ("\ufeffa", "\ufeffb", NEW, "\ufeffa"),
        ("a", "\ufeffb", OLD, "a"),
        ("a", "\ufeffb", "1.3.2", "a"),
        ("a", "\ufeffb", "1.15.0", "\ufeffa"),
        ("a", "\ufeffb", "2.1.0", "\ufeffa"),
        ("a", "\ufeffb", UNKNOWN, None),
    ],
)
def test_written(content: str, base: str | None, version: str, expected: str | None) -> None:
    assert apply.written(content, base, version) == expected


def _patched(base: str, body: str, version: str = NEW) -> str | None:
    (file,) = patch_text.parse(f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
    return apply.patched(base, file.hunks, version)


@pytest.mark.parametrize(
    ("base", "body", "expected"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+x", "a\nx\nc\n"),
        ("a\nb", "@@\n-b\n+x", "a\nx\n"),
        ("a\nb\na\nb\n", "@@\n-b\n+1\n@@\n-b\n+2", "a\n1\na\n2\n"),
        ("f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n"),
        ("f\nx\n", "@@ nowhere\n-x\n+y", None),
        ("a\n", "@@\n+b", "a\nb\n"),
        ("a\n\n", "@@\n+b", "a\nb\n"),
        ("a\n\n", "@@\n-a\n+b", "b\n"),
        ("  a\n", "@@\n-a\n+b", "b\n"),
        ("a\r\nb\r\n", "@@\n-a\n+x", "x\nb\r\n"),
        ("say \u201chi\u201d\u2026\n", '@@\n-say "hi"...\n+x', "x\n"),
        ("x\ny\nx\n", "@@\n-x\n+z\n*** End of File", "z\ny\nx\n"),
        ("a\n", "@@\n-a", ""),
        ("", "@@\n+a", "a\n"),
    ],
)
def test_patched(base: str, body: str, expected: str | None) -> None:
    assert _patched(base, body) == expected


def test_a_result_of_opencode_2_counts_only_where_1_agrees() -> None:
    ending = "@@\n-x\n+z\n*** End of File"
    assert _patched("y\nx\n", ending, "2.0.0") == "y\nz\n"
    assert _patched("x\ny\nx\n", ending, "2.0.0") is None


def test_a_patch_before_1_1_wants_exact_lines() -> None:
    assert _patched("  a\n", "@@\n-a\n+b", "1.0.0") is None
    assert _patched("  a\n", "@@\n-a\n+b", "1.0.200") is None
    assert _patched("a\n", "@@\n-a\n+b", "1.0.200") == "b\n"


def test_a_patch_of_a_text_with_a_byte_order_mark_keeps_it_since_1_14_only() -> None:
    assert _patched("\ufeffa\nc\n", "@@\n-a\n+b") == "\ufeffb\nc\n"
    assert _patched("\ufeffa\nc\n", "@@\n-a\n+b", OLD) == "b\nc\n"
    assert _patched("\ufeffa\nc\n", "@@\n-c\n+b", OLD) == "\ufeffa\nb\n"
    assert _patched("\ufeffa\n", "@@\n-a\n+b", UNKNOWN) is None


def test_a_file_name_with_a_colon_was_cut_up_to_1_2_6() -> None:
    text = "*** Begin Patch\n*** Update File: a:b.py\n*** Move to: c:d.py\n@@\n-x\n+y\n*** End Patch"
    assert [(file.path, file.move_to) for file in patch_text.parse(text, OLD)] == [("a", "c")]
    assert [(file.path, file.move_to) for file in patch_text.parse(text, NEW)] == [("a:b.py", "c:d.py")]
    assert [(file.path, file.move_to) for file in patch_text.parse(text)] == [("a:b.py", "c:d.py")]


def test_what_1_x_passes_over_is_certain_where_the_version_is_known() -> None:
    text = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End of File\n@@\n-z\n*** End Patch"
    for version, is_complete in ((OLD, True), (NEW, True), ("2.0.0", False), (UNKNOWN, False)):
        (file,) = patch_text.parse(text, version)
        assert (file.is_complete, len(file.hunks)) == (is_complete, 1)


@given(st.text("ab\n\r\u2028", max_size=20))
def test_what_a_read_shows_has_lost_only_ends(text: str) -> None:
    shown = apply.as_read(text)
    assert apply.as_read(shown + "\n") == shown
    assert [c for c in shown if c in "ab"] == [c for c in text if c in "ab"]
    assert apply.as_read(text.replace("\n", "\r\n").replace("\r\r\n", "\r\n")) == shown or "\r" in text
