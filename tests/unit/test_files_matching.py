"""OpenCode's own way from text to text, rule by rule (docs: formats section 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files import matching
from daemon.transcript import patch_text

OLD, NEW, UNKNOWN = "1.1.65", "1.18.33", ""


@pytest.mark.parametrize(
    ("base", "old", "new", "everywhere", "version", "expected"),
    [
        ("abc", "b", "x", False, NEW, "axc"),
        ("abcb", "b", "x", False, NEW, None),
        ("abcb", "b", "x", True, NEW, "axcx"),
        ("aaa", "aa", "x", False, NEW, None),
        ("abc", "z", "x", True, NEW, None),
        ("abc", "", "new", False, NEW, "new"),
        ("a b", "b", "$&", False, NEW, "a $&"),
        ("a b", "b", "[$&]", True, NEW, "a [b]"),
        ("a b c", "b", "$`|$'", True, NEW, "a a | c c"),
        ("x", "x", "$1$$", True, NEW, "$1$"),
        ("a\r\nb", "a\nb", "c\nd", False, NEW, "c\r\nd"),
        ("a\r\nb", "a\nb", "c\nd", False, OLD, None),
        ("a\r\nb", "b", "c\nd", False, OLD, "a\r\nc\nd"),
        ("a\r\nb", "b", "c\nd", False, UNKNOWN, None),
        ("a\nb", "a\nb", "c", False, UNKNOWN, "c"),
        ("\ufeffa", "a", "b", False, OLD, "b"),
        ("\ufeffa", "a", "b", False, NEW, "\ufeffb"),
        ("\ufeffa", "a", "b", False, "1.5.0", None),
    ],
)
def test_edited(base: str, old: str, new: str, everywhere: bool, version: str, expected: str | None) -> None:
    assert matching.edited(base, old, new, everywhere, version) == expected


@pytest.mark.parametrize(
    ("content", "base", "version", "expected"),
    [
        ("a", None, NEW, "a"),
        ("a", "b", NEW, "a"),
        ("a", "\ufeffb", NEW, "\ufeffa"),
        ("\ufeffa", "\ufeffb", NEW, "\ufeffa"),
        ("a", "\ufeffb", OLD, "a"),
        ("a", "\ufeffb", UNKNOWN, None),
    ],
)
def test_written(content: str, base: str | None, version: str, expected: str | None) -> None:
    assert matching.written(content, base, version) == expected


def _patched(base: str, body: str, version: str = NEW) -> str | None:
    (file,) = patch_text.parse(f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
    return matching.patched(base, file.hunks, version)


@pytest.mark.parametrize(
    ("base", "body", "expected"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+x", "a\nx\nc\n"),
        ("a\nb", "@@\n-b\n+x", "a\nx\n"),
        ("a\nb\na\nb\n", "@@\n-b\n+1\n@@\n-b\n+2", "a\n1\na\n2\n"),
        ("f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n"),
        ("f\nx\n", "@@ nowhere\n-x\n+y", None),
        ("a\n", "@@\n+b", "a\nb\n"),
        ("a\n\n", "@@\n+b", None),
        ("a\n\n", "@@\n-a\n+b", None),
        ("  a\n", "@@\n-a\n+b", None),
        ("a\r\nb\r\n", "@@\n-a\n+x", None),
        ("x\ny\n", "@@\n-x\n+z\n*** End of File", "z\ny\n"),
        ("x\ny\nx\n", "@@\n-x\n+z\n*** End of File", None),
        ("a\n", "@@\n-a", ""),
    ],
)
def test_patched(base: str, body: str, expected: str | None) -> None:
    assert _patched(base, body) == expected


def test_a_patch_of_a_text_with_a_byte_order_mark_keeps_it_since_1_18_only() -> None:
    assert _patched("\ufeffa\n", "@@\n-a\n+b") == "\ufeffb\n"
    assert _patched("\ufeffa\n", "@@\n-a\n+b", OLD) is None


@given(st.text("ab\n\r\u2028", max_size=20))
def test_what_a_read_shows_has_lost_only_ends(text: str) -> None:
    shown = matching.shown(text)
    assert matching.shown(shown + "\n") == shown
    assert [c for c in shown if c in "ab"] == [c for c in text if c in "ab"]
    assert matching.shown(text.replace("\n", "\r\n").replace("\r\r\n", "\r\n")) == shown or "\r" in text
