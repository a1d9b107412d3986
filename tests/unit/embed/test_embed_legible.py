"""How much of a text a model can read: by its tokenizer, whatever the language."""

from __future__ import annotations

import string

import pytest

from daemon.embed import learned_scripts, legible_share, reads
from daemon.embed.builtin import Builtin

MANY = [f"{first}{second}{third}" for first in "авекмнор" for second in "авекмнор" for third in "авекмнор"]
HAN = [chr(0x4E00 + number) for number in range(1_200)]


@pytest.fixture(scope="module")
def model() -> Builtin:
    return Builtin()


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("Why do we use PostgreSQL?", 1),
        ("Die Größe der Tür, déjà vu", 1),
        ("rateLimitMiddleware(app, 5)", 1),
        ("", 1),
        ("2026-11-23 17:04 -> 99.5 %", 1),
        ("🎉 → ✓", 1),
        ("为什么用PostgreSQL", 0.5),
        ("订单/支付", 0),
        ("日本語の設定ファイル", 0),
        ("안녕하세요 설정", 0),
        ("Почему мы выбрали эту базу", 0),
        ("ภาษาไทย", 0),
        ("γειά σου", 0),
        ("lone \ud800 surrogate", 1),
    ],
)
def test_the_built_in_model_reads_what_is_written_in_latin_letters(model: Builtin, text: str, share: float) -> None:
    assert model.legible(text) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("def total(order):\n    # 合計\n    return sum(line.price for line in order.lines)", True),
        ("この関数は注文の合計を計算します。 total(order)", False),
        ("x" * 400, True),  # the tokenizer takes words of 100 characters at most
        ("token " + "0a1b2c3d" * 32, True),
        ("и" * 400, False),
        ("为什么用PostgreSQL", False),  # as much of it is missing as is there
        ("see " + "word " * 50 + "x" * 120, True),
    ],
)
def test_more_than_half_of_a_text_must_be_legible(model: Builtin, text: str, is_read: bool) -> None:
    assert reads(model, text) is is_read


def test_a_script_is_learned_by_pieces_of_words_or_by_many_letters() -> None:
    latin = [first + second for first in string.ascii_lowercase for second in string.ascii_lowercase]
    english = [*latin, *HAN[:246], *"авекмнорс", "##ов"]
    assert learned_scripts(english) == {"LATIN"}
    assert learned_scripts([*english, *MANY]) == {"LATIN", "CYRILLIC"}
    assert learned_scripts([*english, *HAN]) == {"LATIN", "CJK"}
    assert learned_scripts(["ab", "cd", "а"]) == {"LATIN"}  # a small vocabulary has at least its own script


def test_a_vocabulary_of_bytes_is_read_as_the_characters_they_make() -> None:
    plain = {byte: chr(byte) for byte in [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]}
    others = [byte for byte in range(256) if byte not in plain]
    written = plain | {byte: chr(256 + place) for place, byte in enumerate(others)}
    pieces = ["".join(written[byte] for byte in piece.encode()) for piece in (" ", "ab", *MANY)]
    assert learned_scripts(pieces) == {"CYRILLIC"}


def test_letters_without_a_piece_of_their_own_are_not_legible() -> None:
    assert legible_share("abcde fghij", {"LATIN"}, [(0, 5)]) == 0.5
    assert legible_share("abcde", {"CYRILLIC"}) == 0
