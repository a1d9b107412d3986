"""What redaction does not look at holds no secret: the same is found without any prefilter."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.redact import assignments, detection, known, redact, views
from daemon.redact.views import View

_WORDS = detection._WORDS
_OLD_LEAD = re.compile(
    r"(?m)[ \t]{0,80}[│┃][ \t]{0,8}$"
    r"|^(?:[\w./-]{1,100}[:-]\d{1,6}[:-])?"
    r"(?:[ \t]{0,12}(?:\d{1,6}[ \t]{0,2}[|:\t→│)-]|[>#*│┃║|]|//|--(?!-)|;)[ \t]?)?"
    r"(?:[ \t]{0,40}(?:\+|[<>](?= )|-(?!-)|\|)[ \t]?)?"
)
"""The prefixes of lines as one expression, which tries every character."""
_OLD_BREAK = re.compile(
    r"(?<=[A-Za-z0-9_+/=.-]{28})"
    r"[ \t]{0,8}(?:[|│┃║\\]|\",?|',?|\"[ \t]?\+|'[ \t]?\+)?[ \t]{0,8}\r?\n[ \t\"']{0,16}"
    r"(?=(?P<next>[A-Za-z0-9_+/.-]{4,400}(?:={1,2}|=[0-9A-Fa-f]{8})?)(?P<rest>[;<]|)"
    r"(?:(?<=[;<])|[\"'`);,}\]│|\\ \t]{0,80}(?:\r?\n|\Z)))"
)

_KEYS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_-.=", min_size=1, max_size=70)
_SIGNS = st.sampled_from(
    ["\n", "\r\n", " ", ": ", "=", '"', "'", " │\n", "│ ", "+ ", "- ", "12| ", "a/b.py:3:", " \\\n", '" +\n"', "\ud800",
     "İ", "\\u0070", "%70", "&quot;", "**", "__", "…", "[truncated]", "$2b$12$", "-----BEGIN PRIVATE KEY-----\n"]
)  # fmt: skip
_PIECES = st.one_of(_KEYS, _SIGNS, st.sampled_from(_WORDS), st.sampled_from([word.upper() for word in _WORDS]))
_FRAMES: list[Callable[[str], str]] = [
    lambda text: text,
    lambda text: "".join(f"+ {line}\n" for line in text.split("\n")),
    lambda text: "".join(f"│ {line} │\n" for line in text.split("\n")),
    lambda text: "\n".join(text[at : at + 37] for at in range(0, len(text), 37)),
    lambda text: '"' + '"+\n"'.join(text[at : at + 32] for at in range(0, len(text), 32)) + '"',
    json.dumps,
    lambda text: b64encode(text.encode("utf-8", "surrogatepass")).decode(),
]
TEXTS = st.builds(
    lambda pieces, frame: frame("".join(pieces)), st.lists(_PIECES, max_size=16), st.sampled_from(_FRAMES)
)


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    with known.only({}):
        yield


@given(TEXTS)
def test_the_prefilter_changes_no_result(text: str) -> None:
    redacted = redact(text)
    with (
        patch.object(detection, "_words_in", _every_word),
        patch.object(detection, "_places", lambda _, offsets: offsets),
        patch.object(known, "has_patterns", lambda: True),
        patch.object(views, "_leads", lambda text: [(*m.span(), "") for m in _OLD_LEAD.finditer(text) if m[0]]),
        patch.object(views, "_breaks", _old_breaks),
    ):
        assert redact(text) == redacted


@given(TEXTS)
def test_lines_are_joined_as_by_one_expression(text: str) -> None:
    assert list(views._leads(text)) == [(*m.span(), "") for m in _OLD_LEAD.finditer(text) if m[0]]
    assert list(views._breaks(text)) == _old_breaks(text)


@given(st.text("aä\ud800𝄞", max_size=30), st.data())
def test_places_count_characters_where_offsets_count_bytes(text: str, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(text)), unique=True).map(sorted))
    offsets = [len(views.raw(text[:place])) for place in places]
    assert detection._places(text, offsets) == places


def _every_word(text: str) -> list[tuple[int, int, int]]:
    """As if every word was in the text, and the name of a secret began at each of its characters."""
    names = _WORDS.index(assignments.STARTS[0])
    return [(number, 0, 0) for number in range(len(_WORDS))] + [(names, at, at) for at in range(len(text))]


def _old_breaks(text: str) -> list[tuple[int, int, str]]:
    return [(m.start(), m.end(), "") for m in _OLD_BREAK.finditer(text) if views._goes_on(m)]


def test_a_view_traces_back_to_its_text() -> None:
    view = views.unwrapped("+ first\n+ second")
    assert isinstance(view, View)
    assert view.text == "first\nsecond"
    assert view.origin(6, 12) == (10, 16)
