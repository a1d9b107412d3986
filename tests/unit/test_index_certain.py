"""The words that a literal requires: whatever text contains the literal is indexed with them, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index import tokens
from daemon.index.lexical.certain import Standing, certain


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("error", []),
        ("error file", [Standing((), "fil")]),
        ("error in the file", [Standing(("in", "the"), "fil")]),
        (" error ", [Standing(("error",))]),
        ("a src/app.py: x", [Standing(("src", "app", "py"))]),
        ("call foo_bar(limit", []),
        ("call foobar(limit", [Standing((), "fooba")]),
        ("one user's two three four", [Standing(("two", "three"), "fou")]),
        ("one größe two three", [Standing(("two",), "thre")]),
        ("one 限制 two", []),
        ("the 'quoted", []),
        ("\tx\r\ny\n", [Standing(("x", "y"))]),
        ("if a != b then", [Standing(("a", "b"), "the")]),
        ("", []),
    ],
)
def test_only_words_between_spaces_are_certain(needle: str, expected: list[Standing]) -> None:
    assert certain(needle) == expected


def test_a_long_literal_is_taken_in_rows() -> None:
    first, second = certain("x " + "word " * 30 + "ending")
    assert (len(first.tokens), first.beginning, len(second.tokens), second.beginning) == (24, "", 6, "endin")


PIECE = st.one_of(
    st.text(max_size=3),
    st.sampled_from(
        ["ß", "ﬁ", "ſ", "K", "İ", "ı", "'s", "'S", "’s", "_", "-", "/", "\\", ".", "\u0301", "限", "ab" * 40]
    ),
    st.sampled_from(["word", "Word", "fooBar", "HTTPServer", "2026-11", "Straße", "ﬁle"]),
    st.sampled_from([" ", "\n", "\t", "  "]),
)


def _stands(one: Standing, words: list[str]) -> bool:
    size = len(one.tokens)
    for start in range(len(words) - size + 1):
        follows = words[start + size] if start + size < len(words) else ""
        if tuple(words[start : start + size]) == one.tokens and follows.startswith(one.beginning):
            return True
    return False


@settings(max_examples=600, deadline=None)
@given(st.lists(PIECE, max_size=16).map("".join), st.integers(0, 20), st.integers(1, 60))
def test_whatever_contains_a_literal_is_indexed_with_its_words(text: str, start: int, length: int) -> None:
    needle = text.casefold()[start : start + length]
    words = tokens.fields(text).words.split()
    assert all(_stands(one, words) for one in certain(needle))
