"""Near words: exactly those that are as near as they have to be."""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index.lexical.fuzzy import Vocabulary, allowed
from tests.support.examples import examples

WORDS = st.text(alphabet="abcä", min_size=3, max_size=8)


def apart(one: str, other: str) -> int:
    """The distance as the textbook has it, with neighbours exchanged as one change."""
    table = {(i, -1): i + 1 for i in range(-1, len(one))} | {(-1, j): j + 1 for j in range(-1, len(other))}
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
            if i and j and a == other[j - 1] and one[i - 1] == b:
                table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(one) - 1, len(other) - 1]


@settings(max_examples=examples(200), deadline=None)
@given(st.sets(WORDS, max_size=40), st.sets(WORDS, max_size=5), WORDS, st.sampled_from([1, 2]))
def test_it_finds_all_near_words_and_no_other(words: set[str], later: set[str], asked: str, most: int) -> None:
    vocabulary = Vocabulary(words)
    vocabulary.similar(asked, most)
    vocabulary.add(later)
    expected = sorted((apart(asked, word), word) for word in words | later if word != asked)
    assert vocabulary.similar(asked, most) == [(far, word) for far, word in expected if far <= most]


def test_many_words_are_sorted_in_and_still_found_once() -> None:
    letters = "abcdefghij"
    words = [f"word{a}{b}{c}" for a in letters for b in letters for c in letters]
    vocabulary = Vocabulary(words)
    for _ in range(2):
        found = vocabulary.similar("wordabc", 1)
        assert len(found) == len(set(found)) == 9 * 3 + 2  # one letter other, or two exchanged
        vocabulary.add(words)
        vocabulary.add(["wordabcde"])


def _many(number: int) -> list[str]:
    made = random.Random(7)
    return ["".join(made.choices("abcdefghijklmnop", k=9)) for _ in range(number)]


def test_who_asks_for_the_same_word_again_waits_no_more() -> None:
    vocabulary = Vocabulary(_many(20_000))
    vocabulary.similar("ponmlkjih", 2)  # sorts the words in
    first, again = (_calls(lambda: vocabulary.similar("abcdefghi", 2)) for _ in range(2))
    assert again * 10 < first


def _calls(work: Callable[[], object]) -> int:
    """How many functions are called while `work` is done."""
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: calls.update([event]))
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls["call"] + calls["c_call"]


def test_an_answer_belongs_to_who_asked_for_it() -> None:
    vocabulary = Vocabulary(["lantern"])
    vocabulary.similar("lantren", 1).clear()
    assert vocabulary.similar("lantren", 1) == [(1, "lantern")]


def test_more_words_than_are_remembered_are_still_answered() -> None:
    vocabulary = Vocabulary(["lantern", "lanterns"])
    for word in (*_many(600), "lantren"):
        found = vocabulary.similar(word, 1)
    assert found == [(1, "lantern")]


def test_a_word_that_comes_in_while_somebody_looks_is_found_from_then_on() -> None:
    vocabulary = Vocabulary(_many(5_000))
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            vocabulary.similar("lantern", 1)

    looking = [threading.Thread(target=look) for _ in range(3)]
    for thread in looking:
        thread.start()
    try:
        for last in "abcdefghijklmopqrstuvwxyz":
            vocabulary.add([f"lanter{last}"])
            assert (1, f"lanter{last}") in vocabulary.similar("lantern", 1)
    finally:
        is_over.set()
        for thread in looking:
            thread.join()


@pytest.mark.parametrize(
    ("word", "expected"),
    [("cat", 0), ("four", 1), ("seventh", 1), ("eighteen", 2), ("sha256sum", 0), ("1234567", 0), ("grösser", 1)],
)
def test_a_longer_word_may_differ_in_more_places_and_a_number_in_none(word: str, expected: int) -> None:
    assert allowed(word) == expected
