"""Words by their ends: all that end so are named, once, and those whose end nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index import tokens
from daemon.index.lexical.required_words import Endings
from tests.support.examples import examples

WORDS = st.text(alphabet="abcä1", max_size=8)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sets(WORDS, max_size=30), max_size=4), st.text(alphabet="abc", min_size=3, max_size=6))
def test_it_names_all_words_that_end_so_and_no_other(added: list[set[str]], letters: str) -> None:
    endings = Endings()
    for words in added:
        endings.add(words)
    found = endings.of(letters, 1000)
    assert found is not None
    assert sorted(found) == sorted(word for word in set().union(*added) if word.endswith(letters))


def test_a_word_whose_end_is_not_known_is_always_named() -> None:
    [term] = tokens.terms("x" * 70)
    endings = Endings()
    endings.add([*term.sequence, "error", "typeerror", "file"])
    assert sorted(endings.of("error", 3) or []) == sorted(["error", "typeerror", *term.sequence])
    assert endings.of("orr", 3) == [*term.sequence]


@pytest.mark.parametrize(("most", "expected"), [(1, None), (2, 2), (3, 2)])
def test_more_than_are_asked_for_are_none(most: int, expected: int | None) -> None:
    endings = Endings()
    endings.add(["error", "typeerror"])
    found = endings.of("error", most)
    assert (found if found is None else len(found)) == expected
