"""What a regular expression requires: never more than it does, whatever is written in it."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index.lexical.patterns import required


@pytest.mark.parametrize(
    ("pattern", "expected"),
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
def test_the_literals_of_a_pattern_are_read(pattern: str, expected: list[set[str]]) -> None:
    assert [set(some) for some in required(pattern)] == expected


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
def test_whatever_matches_holds_one_of_each(pattern: str, text: str) -> None:
    if regex.search(pattern, text, regex.IGNORECASE, timeout=2):
        folded = text.casefold()
        assert all(any(literal in folded for literal in some) for some in required(pattern))
