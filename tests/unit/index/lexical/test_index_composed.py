"""Literal and regex find composed and decomposed spellings alike, and say the one that the text has."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.index import Entry, Filters, tokens
from daemon.index.lexical import Lexical
from daemon.model import Document, Kind, Section
from tests.support.examples import examples

ANY = Filters()
TEXTS = {
    "french": "The café of the Hôtel is closed.",
    "korean": "데이터베이스를 본다",
    "japanese": "データベースを直した",
    "vietnamese": "Tiếng Việt ở đây",
    "mixed": "café and cafe\u0301 in one text",
    "plain": "The cafe is open.",
}


def _entry(message_id: str, text: str) -> Entry:
    document = Document(message_id, "ses_1", (Section(f"prt_{message_id}", Kind.PROMPT, text),))
    return Entry(document, "user", 1, 0, "a title", "prj", "/home/ann/shop", window=text)


@pytest.fixture(params=["NFC", "NFD"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lexical]:
    made = Lexical(tmp_path / "lexical")
    made.replace(
        [
            _entry(name, text if name == "mixed" else unicodedata.normalize(request.param, text))
            for name, text in TEXTS.items()
        ]
    )
    yield made
    made.close()


# literal, pattern, what has it
ASKED = [
    ("Café", r"caf[é]\b", {"french", "mixed"}),
    ("hôtel is", r"h.tel\s+is", {"french"}),
    ("데이터베이스", "데이터.이스", {"korean"}),
    ("データベース", r"データ[ベペ]ース", {"japanese"}),
    ("tiếng việt", r"ti.ng\sVi.t", {"vietnamese"}),
    ("the cafe", r"the cafe\b", {"plain"}),
]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(("literal", "pattern", "names"), ASKED)
def test_either_form_finds_either(index: Lexical, literal: str, pattern: str, names: set[str], form: str):
    literal, pattern = unicodedata.normalize(form, literal), unicodedata.normalize(form, pattern)
    for matches in (index.literal(literal, ANY, 9), index.regex(pattern, ANY, 9, 5.0)[0]):
        assert {match.message_id for match in matches} == names
        for match in matches:  # so that the snippet shows the place
            assert match.terms[0].casefold() in match.text.casefold()


@settings(max_examples=examples(200), deadline=None)
@given(st.text(alphabet="aeéÉôňöıİßのがガば가각\u0301\u3099", max_size=12), st.sampled_from(["NFC", "NFD"]))
def test_what_is_compared_is_the_same_for_both_forms(text: str, form: str):
    assert tokens.caseless(unicodedata.normalize(form, text)) == tokens.caseless(text)
    assert tokens.caseless(text).isascii() or unicodedata.is_normalized("NFC", tokens.caseless(text))
