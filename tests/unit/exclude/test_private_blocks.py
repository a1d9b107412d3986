"""Of a text with private blocks nothing inside remains, and everything outside stays as it is."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import private
from daemon.private import MARK, without_blocks
from tests.support.examples import examples

INSIDE, OUTSIDE = "¶§¤µ", "abc xyz.\n{}[]()=-"
"""Characters that stand only inside of blocks, and only outside."""

_case = st.sampled_from(["private", "PRIVATE", "Private", "pRiVaTe"])
_space = st.sampled_from(["", " ", "\n", "\t "])
_attributes = st.sampled_from(["", " ", " why", ' why="¶ > ¶"', " a='¶</private>¶' b=¶", ' x="<private>"', " /"])


@st.composite
def opening(draw: st.DrawFn) -> str:
    return f"<{draw(_space)}{draw(_case)}{draw(_attributes)}>"


@st.composite
def closing(draw: st.DrawFn) -> str:
    return f"<{draw(_space)}/{draw(_space)}{draw(_case)}{draw(_space)}>"


_inside = st.text(INSIDE, min_size=1, max_size=6)


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    contents = st.lists(st.one_of(_inside, inner), max_size=3).map("".join)
    return st.tuples(opening(), contents, closing()).map("".join)


blocks = _nested(st.recursive(_inside, _nested, max_leaves=4))
pieces = st.lists(
    st.one_of(
        st.text(OUTSIDE, max_size=12).map(lambda text: (text, text)),
        st.tuples(blocks, st.just(MARK)),
    ),
    max_size=6,
)
ESCAPES: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON twice": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "JSON for HTML": lambda text: json.dumps(text)[1:-1].replace("<", "\\u003c").replace(">", "\\u003E"),
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
}


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
@settings(max_examples=examples(150))
@given(pieces=pieces)
def test_only_what_is_outside_remains(escape: Callable[[str], str], pieces: list[tuple[str, str]]) -> None:
    text = escape("".join(text for text, _ in pieces))
    assert without_blocks(text) == escape("".join(kept for _, kept in pieces))


@settings(max_examples=examples(150))
@given(pieces=pieces, rest=st.lists(st.one_of(_inside, blocks), max_size=3).map("".join), open_=opening())
def test_a_block_that_is_not_closed_hides_the_rest(pieces: list[tuple[str, str]], rest: str, open_: str) -> None:
    text = "".join(text for text, _ in pieces) + open_ + rest
    assert without_blocks(text) == "".join(kept for _, kept in pieces) + MARK


@settings(max_examples=examples(150))
@given(pieces=pieces, cut=st.integers(0, 400))
def test_no_prefix_of_a_text_that_streams_in_shows_more(pieces: list[tuple[str, str]], cut: int) -> None:
    text = "".join(text for text, _ in pieces)
    assert not set(without_blocks(text[:cut])) & set(INSIDE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "private",
        "<privateer>x</privateer>",
        "a < private_b > c",
        "class A { private int b; }",
        "an end </private>",
        "<private-x>",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert without_blocks(text) == text


def test_a_window_that_begins_inside_of_a_block_hides_its_beginning() -> None:
    assert without_blocks("¶¶</private> b <private>¶</private> c", is_window=True) == f"{MARK} b {MARK} c"


def test_values_are_cleaned_wherever_a_text_stands() -> None:
    secret: Any = {"a": [{"<private>¶</private>": 1}], "b": "x <private>¶", "c": 3, "d": None}
    assert private.cleaned(secret) == {"a": [{MARK: 1}], "b": f"x {MARK}", "c": 3, "d": None}
    harmless = {"a": ["private", 1.5, True]}
    assert private.cleaned(harmless) is harmless


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
def test_a_data_url_with_a_block_is_left_out_whole(encoding: str) -> None:
    body = base64.b64encode("hi <Private>¶".encode(encoding)).decode()
    assert private.cleaned({"url": f"data:text/plain;base64,{body}"}) == {"url": MARK}
    assert private.cleaned("data:text/plain,%3Cprivate%3Ex") == MARK
