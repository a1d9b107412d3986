"""What a regular expression requires: never more than it does, whatever is written in it."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index.lexical.patterns import pattern, required


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
        (r"[a-z]+ed\s+word", r"ed\s+word"),
        (r"\b\w{2,}.*?[^a]word\b", r"word\b"),
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


@settings(max_examples=300, deadline=None)
@given(st.recursive(ATOMS, _grown, max_leaves=8), st.text(alphabet="abcdefABC. ", max_size=30))
def test_whatever_matches_holds_one_of_each(expression: str, text: str) -> None:
    if regex.search(expression, text, regex.IGNORECASE, timeout=2):
        folded = text.casefold()
        assert all(any(literal in folded for literal in some) for some in required(expression))


@settings(max_examples=300, deadline=None)
@given(st.recursive(ATOMS, _grown, max_leaves=8), st.text(alphabet="abcdefABC. ", max_size=30))
def test_what_is_tried_first_changes_no_answer(text: str, searched: str) -> None:
    whole = regex.search(text, searched, regex.IGNORECASE, timeout=2)
    assert (pattern(text).found_in(searched, 2.0) is not None) == (whole is not None)
