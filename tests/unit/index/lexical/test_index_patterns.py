"""What a regular expression requires: never more than it does, whatever is written in it."""

from __future__ import annotations

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.errors import BadRequest
from daemon.index import tokens
from daemon.index.lexical.patterns import ODD_I, class_trigrams, pattern, required
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Postgres", [{"postgres"}]),
        (r"foo\.bar", [{"foo.bar"}]),
        ("foobar?", [{"fooba"}]),
        ("foobar+baz", [{"foobar"}, {"rbaz"}]),
        ("foobar{2,}baz", [{"foobar"}, {"rbaz"}]),
        ("foobar{0,3}baz", [{"fooba"}, {"baz"}]),
        ("(?:foobar)?baz", [{"baz"}]),
        ("(foobar|quux)baz", [{"foobar", "quux"}, {"baz"}]),
        ("(foobar|x)baz", [{"baz"}]),
        ("one1|two2", [{"one1", "two2"}]),
        ("one1|.", []),
        (r"(?P<name>\w+) = longer", [{" = longer"}]),
        (r"[a-z]+ed\s+rareword", [{"rareword"}]),
        (r"error\s+in\s*file", [{"error"}, {"file"}]),
        (r"(error\sin|ok)then", [{"then"}]),
        (r"(error\sin|fails)then", [{"error", "fails"}, {"then"}]),
        ("a\u0130b there", []),  # finds aib
        ("a\u0131b there", []),  # finds AIB
        ("error\ue000file", []),  # our own sign for white space
        (r"a.b[cde]fgh\d+ijk$", [{"fgh"}, {"ijk"}]),
        ("[]abc]+def", [{"def"}]),
        ("[[:alpha:]]def", [{"def"}]),
        ("(?!never)there", [{"there"}]),
        ("(?<=before)there", [{"there"}]),
        ("(?i)there", [{"there"}]),
        ("(?#nothing)there", [{"there"}]),
        ("Straße", [{"strasse"}]),
        (r"tab\there", [{"tab\there"}]),
        ("if (a) {x", [{"if "}, {" {x"}]),
        ("(?:there){e<=1}", []),  # near matches
        ("(?x)th ere", []),
        (r"(there)\1", []),
        (r"\x74here", []),
        ("(?|there|where)", []),
        ("(a+)+$", []),
        ("there)", []),
        ("(there", []),
    ],
)
def test_the_literals_of_a_pattern_are_read(text: str, expected: list[set[str]]) -> None:
    assert [set(some) for some in required(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"[a-z]+ed\s+rareword", [{"ed rareword"}]),
        (r"error\s+in\sthe\s+file", [{"error in the file"}]),
        (r"error\s*file", []),
        (r"(error\s+one|two)\s+file", [{"error one", "two"}, {" file"}]),
        (r"(?:error\s+one)?file", []),
    ],
)
def test_texts_across_white_space_are_read(text: str, expected: list[set[str]]) -> None:
    assert [set(some) for some in pattern(text).spaced] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"[a-z]+ed\s+word", r"(?<=[a-z])ed\s+word"),
        (r"[A-Z]\w*word", r"word"),
        (r"[A-Z]\w{2,}?word", r"(?<=\w)word"),
        (r".\bword", r"(?<=.)\bword"),
        (r"\b\w{2,}.*?[^a]word\b", r"(?<=[^a])word\b"),
        (r"^\d+word", None),
        (r"\bword", None),
        ("word[a-z]+", None),
        (r"\w+one|two", None),
        (r"(\w+)word", None),
        (r"\w+", None),
    ],
)
def test_the_core_is_what_follows_the_first_classes(text: str, expected: str | None) -> None:
    core = pattern(text).core
    assert (core and core.pattern) == expected


ATOMS = st.one_of(
    st.text(alphabet="abcdef", min_size=1, max_size=4),
    st.sampled_from([".", r"\w", "[abc]", "[^a]", r"\.", "^", "$"]),
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: f"({'|'.join(some)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(st.text(alphabet="abcdef", min_size=1, max_size=4), st.sampled_from("*+?")).map("".join),
    )


@settings(max_examples=examples(300), deadline=None)
@given(st.recursive(ATOMS, _grown, max_leaves=8), st.text(alphabet="abcdefABC. ", max_size=30))
def test_whatever_matches_holds_one_of_each(expression: str, text: str) -> None:
    if regex.search(expression, text, regex.IGNORECASE, timeout=2):
        folded = text.casefold()
        assert all(any(literal in folded for literal in some) for some in required(expression))


@settings(max_examples=examples(300), deadline=None)
@given(st.recursive(ATOMS, _grown, max_leaves=8), st.text(alphabet="abcdefABC. ", max_size=30))
def test_what_is_tried_first_changes_no_answer(text: str, searched: str) -> None:
    whole = regex.search(text, searched, regex.IGNORECASE, timeout=2)
    assert (pattern(text).matched_texts(searched, 2.0) is not None) == (whole is not None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\bE[A-Z]{4,}_[a-z]", ["E[A-Z][A-Z]", "[A-Z][A-Z]_", "[A-Z]_[a-z]", "[A-Z][A-Z][A-Z]"]),
        (r"\b\d{4,5}\b", [r"\d\d\d"]),
        (r"\d{2}:\d\d", [r"\d\d:", r"\d:\d", r":\d\d"]),
        (r"[0-9a-f]{8}-x", ["[0-9a-f]-x", "[0-9a-f][0-9a-f]-", "[0-9a-f][0-9a-f][0-9a-f]"]),
        (r"a\.[bc]", [r"a\.[bc]"]),
        (r"x\d+y", []),
        (r"x\d\d+y", [r"x\d\d"]),
        (r"x\d{2,}y", [r"x\d\d", r"\d\dy"]),
        (r"x\d\d*y", []),
        (r"xz\d?y", []),
        (r"ab\wcd\d", [r"cd\d"]),
        (r"ab.cd\d", [r"cd\d"]),
        (r"ab[^x]cd\d$", [r"cd\d"]),
        (r"ab(cd)\d", []),
        (r"abc|\d\d\d", []),
        (r"ab\d{e<=1}", []),
        (r"\p{L}\d\d\d", []),
        (r"[[:digit:]]{4}", []),
        (r"(?i)\d\d\d", []),
        (r"é\d\d\d", []),
        (r"\d\d\1", []),
        (r"\ß\d\d", []),
        (r"\_\d\d", [r"\_\d\d"]),
    ],
)
def test_the_trigrams_of_a_pattern_of_classes_are_read(text: str, expected: list[str]) -> None:
    assert ["".join(window) for window in class_trigrams(text)] == expected


_ATOMS = st.sampled_from(
    ["[a-k]", r"\d", "_", "E", "-", "[aE_]", r"[\d_]", "i", "k", "s", ".", r"\w", r"\b", "[^a]", r"\-"]
)
_COUNTS = st.sampled_from(["", "", "", "+", "*", "?", "{2}", "{2,}", "{0,2}", "{4}", "+?", "{1,3}+"])
_LETTERS = "aiskE_4-x \u017f\u212a\u0130\u0131\u0663\xdf"


@given(
    st.lists(st.tuples(_ATOMS, _COUNTS), min_size=2, max_size=6).map(lambda some: "".join(a + b for a, b in some)),
    st.text(_LETTERS, min_size=3, max_size=24),
)
@settings(max_examples=examples(3000))
def test_every_match_of_a_class_pattern_has_a_trigram_of_each_window(text: str, given_text: str) -> None:
    try:
        found = regex.search(text, given_text, regex.IGNORECASE)
    except regex.error:
        return
    if found is None or any(letter in given_text for letter in ODD_I):
        return
    whole = tokens.caseless(given_text)
    grams = [whole[start : start + 3] for start in range(len(whole) - 2)]
    for window in class_trigrams(text):
        assert any(regex.fullmatch("".join(window), gram, regex.IGNORECASE) for gram in grams), (window, grams)


@given(
    st.lists(st.tuples(_ATOMS, _COUNTS), min_size=1, max_size=3).map(lambda some: "".join(a + b for a, b in some)),
    st.sampled_from(["ask", r"ask\b", "as+k"]),
    st.lists(st.one_of(st.text(_LETTERS, max_size=4), st.just("ask")), max_size=6).map("".join),
)
@settings(max_examples=examples(2000))
def test_the_core_matches_whatever_the_pattern_matches(classes: str, rest: str, given_text: str) -> None:
    try:
        made = pattern(classes + rest)
    except BadRequest:
        return
    if made.compiled.search(given_text) and made.core is not None:
        assert made.core.search(given_text)
