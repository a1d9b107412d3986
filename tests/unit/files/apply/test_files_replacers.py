"""The looser ways in which OpenCode finds an edit's old text, each for itself, and what they cost."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.files import apply
from daemon.files.apply import replacers
from daemon.transcript import javascript
from daemon.transcript.javascript import Costs, TooCostlyError, distance

NEW, OLD = "1.18.33", "1.1.65"


def _named(text: str, old: str, *, strict: bool = True) -> list[tuple[str, str]]:
    return list(replacers.candidates(text, old, strict, Costs(100_000)))


@pytest.mark.parametrize(
    ("text", "old", "way", "place"),
    [
        ("a {\n\tb;\n}\n", "a {\nb;\n}\n", "lines without their outer blanks", "a {\n\tb;\n}"),
        ("\u00a0a\ufeff\nb", "a", "lines without their outer blanks", "\u00a0a\ufeff"),
        ("f\n one two\ng\n", "f\none twa\ng", "first and last line of a block", "f\n one two\ng"),
        ("x = f( 1,\t2 )\n", "f( 1, 2 )", "any run of blanks alike", "f( 1,\t2 )"),
        ("a  b\nc", "a\nb\nc", "any run of blanks alike", None),
        ("a  b\nc\nd", "a b\nc", "any run of blanks alike", "a  b\nc"),
        ('say "hi"\n', 'say \\"hi\\"', "escapes resolved", 'say "hi"'),
        ("one\ntwo\n", "one\\ntwo", "escapes resolved", "one\ntwo"),
        ("a\\\nb\n", "a\\\nb", "escapes resolved", "a\\\nb"),
        ("pre foo(1) post", "\n foo(1)\n", "old text without its outer blanks", "foo(1)"),
        ("\nfoo\n\nxfoo", "foo\n\n", "old text without its outer blanks", "\nfoo\n"),
        ("f\n1\n2\n3\n4\ng\n", "f\n1\n2\nQQQQ\nRRRR\ng", "half of a block's lines", "f\n1\n2\n3\n4\ng"),
    ],
)
def test_a_way_names_its_place(text: str, old: str, way: str, place: str | None) -> None:
    found = [named for name, named in _named(text, old) if name == way]
    assert (place in found) if place is not None else found == []


def test_a_block_between_its_anchors_has_to_be_alike_since_1_17_only() -> None:
    text, old = "start\nfirst thing\nsecond thing\nend\n", "start\nnothing\nlike it\nend"
    assert apply.edited(text, old, "x", False, OLD) == "x\n"
    assert apply.edited_by(text, old, "x", False, NEW).refused


def test_of_several_blocks_the_most_alike_is_taken() -> None:
    text = "{\n alpha\n}\n{\n gamma\n}\n"
    assert apply.edited(text, "{\n gammb\n}", "x", False, NEW) == "{\n alpha\n}\nx\n"


def test_a_place_much_larger_than_the_old_text_is_refused_since_1_17() -> None:
    text = "a\n" + "longer than it should be by far " * 40 + "\nb"
    assert replacers.is_oversized(text, "a\nb")
    assert not replacers.is_oversized(text, "a")
    assert replacers.is_oversized("1\n2\n3\n4", "1")
    assert not replacers.is_oversized("1\n2\n3\n4", "1\n2")


def test_2000_unlike_lines_are_compared_and_more_given_up() -> None:
    letters = random.Random(3)
    block = ["".join(letters.choices("abcdefgh", k=80)) for _ in range(2000)]
    other = ["".join(letters.choices("abcdefgh", k=80)) for _ in range(2000)]
    text, old = ("\n".join(["begin", *lines, "end", ""]) for lines in (block, other))
    assert apply.edited_by(text, old, "x", False, NEW).refused
    assert apply.edited_by(text * 200, old, "x", False, NEW) == apply.Outcome()
    assert apply.edited_by("}\n" * 20_001, " }\n" * 20_001, "x", False, NEW) == apply.Outcome()


def test_a_budget_ends() -> None:
    with pytest.raises(TooCostlyError):
        distance("ab" * 500, "ba" * 500, Costs(10))


def _plain_distance(first: str, second: str) -> int:
    one, other = (text.encode("utf-16-le") for text in (first, second))
    a, b = ([text[at : at + 2] for at in range(0, len(text), 2)] for text in (one, other))
    row = list(range(len(b) + 1))
    for number, unit in enumerate(a, 1):
        above, row = row, [number]
        for at, against in enumerate(b, 1):
            row.append(min(above[at] + 1, row[-1] + 1, above[at - 1] + (unit != against)))
    return row[-1]


@given(st.text("abc\U0001f600\U0001f601", max_size=12), st.text("abc\U0001f600\U0001f601", max_size=12))
def test_a_distance_is_that_of_the_textbook_in_utf_16(first: str, second: str) -> None:
    assert distance(first, second, Costs(10**6)) == _plain_distance(first, second)


def test_blanks_are_those_of_javascript() -> None:
    assert "\x1c\x85".strip(javascript.BLANKS) == "\x1c\x85"
    assert "\ufeff\u2028\u3000".strip(javascript.BLANKS) == ""
    assert javascript.length("a\U0001f600") == 3


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("b", "$$", "a$c$"),
        ("b", "<$`>", "a<a>c<abc>"),
        ("b", "<$'>", "a<cb>c<>"),
        ("", "-", "-a-b-c-b-"),
        ("", "$'|", "abcb|abcb|bcb|cb|b|"),
        ("q", "$&", "abcb"),
    ],
)
def test_patterns_in_a_new_text_are_interpreted(old: str, new: str, expected: str) -> None:
    assert javascript.replace_all("abcb", old, new) == expected


def test_only_the_first_is_replaced_where_only_one_is_meant() -> None:
    assert javascript.replace_first("abcb", "b", "[$&]") == "a[b]cb"
    assert javascript.replace_first("abcb", "z", "x") == "abcb"
