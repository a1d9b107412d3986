"""The words that a literal requires: whatever text contains the literal is indexed with them, in their order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index import tokens
from daemon.index.lexical.required_words import WordSequence, certain
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("error", []),
        ("error file", [WordSequence((), "fil", "error")]),
        ("error in the file", [WordSequence(("in", "the"), "fil", "error")]),
        (" error ", [WordSequence(("error",))]),
        ("a src/app.py: x", [WordSequence(("src", "app", "py"))]),
        ("call foo_bar(limit", []),
        ("call foobar(limit", [WordSequence((), "fooba", "call")]),
        ("one user's two three four", [WordSequence(("two", "three"), "fou")]),
        ("TypeError: no file".casefold(), [WordSequence(("no",), "fil", "typeerror")]),
        ("x2error._ file ", [WordSequence(("file",), "", "error")]),
        ("user's file ", [WordSequence(("file",))]),
        ("no file ", [WordSequence(("file",))]),
        ("größe file ", [WordSequence(("file",))]),
        ("error» file ", [WordSequence(("file",))]),
        ("error != file", [WordSequence((), "fil", "error")]),
        ("one größe two three", [WordSequence(("two",), "thre")]),
        ("one 限制 two", []),
        ("the 'quoted", []),
        ("\tx\r\ny\n", [WordSequence(("x", "y"))]),
        ("if a != b then", [WordSequence(("a", "b"), "the")]),
        ("", []),
    ],
)
def test_only_words_between_spaces_are_certain(needle: str, expected: list[WordSequence]) -> None:
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


def _stands(one: WordSequence, words: list[str]) -> bool:
    size = len(one.tokens)
    for start in range(len(words) - size + 1):
        follows = words[start + size] if start + size < len(words) else ""
        before = words[start - 1] if start else ""
        begins = before.endswith(one.ending) or tokens.may_be_capped(before)
        if tuple(words[start : start + size]) == one.tokens and follows.startswith(one.beginning) and begins:
            return True
    return False


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(PIECE, max_size=16).map("".join), st.integers(0, 20), st.integers(1, 60))
def test_whatever_contains_a_literal_is_indexed_with_its_words(text: str, start: int, length: int) -> None:
    needle = text.casefold()[start : start + length]
    words = tokens.fields(text).words.split()
    assert all(_stands(one, words) for one in certain(needle))


BEFORE = st.lists(
    st.one_of(
        st.text(max_size=2),
        st.sampled_from(["ß", "ﬁ", "ſ", "K", "İ", "'", "’", "'s", "'S", "_", "-", "/", "\\", ".", "\u0301", "限", "२"]),
        st.sampled_from(["fooBar", "HTTPServer", "2026-", "Stra", "ab" * 40, "word"]),
    ),
    max_size=5,
).map("".join)
LETTERS = st.sampled_from(
    ["error", "ERROR", "Error", "tErRor", "ſtraße", "o\ufb03ce", "\u212aelvin", "don't", "it's", "x2y"]
)
BEHIND = st.lists(st.sampled_from([":", "_", "-", "'", ".", "/", "\\", "(", ")", ",", "\x0b", "\x7f"]), max_size=3).map(
    "".join
)


@settings(max_examples=examples(600), deadline=None)
@given(BEFORE, LETTERS, BEHIND, st.sampled_from([" ", "\n", " \t"]), st.data())
def test_however_its_first_word_goes_on_to_the_left_its_end_stands_there(
    before: str, letters: str, behind: str, space: str, data: st.DataObject
) -> None:
    """The literal begins anywhere in a word that has a beginning of any kind."""
    text = f"{before}{letters}{behind}{space}the file"
    folded = text.casefold()
    start = data.draw(st.integers(0, folded.index(space + "the")))
    words = tokens.fields(text).words.split()
    assert all(_stands(one, words) for one in certain(folded[start:]))
