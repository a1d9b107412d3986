"""How much of a text a model can read: by its tokenizer, whatever the language."""

from __future__ import annotations

import string

import pytest

from daemon.embed import known_share, learned_scripts, legible_share, reads
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


@pytest.mark.parametrize(
    "text",
    [
        "Why do we use a message queue between the two services?",
        "how to read a file line by line in python",
        "What did Caroline research last summer?",
        "find all files that were changed within the last seven days and delete them",
        "convert a timestamp string to a datetime with its time zone",
        "Why does rateLimitMiddleware in server/limits.py answer with 429?",
    ],
)
def test_a_vocabulary_has_most_words_of_the_language_it_was_made_for(model: Builtin, text: str) -> None:
    assert model.known_words(text) > 0.5  # from there on meaning counts in full


@pytest.mark.parametrize(
    "text",
    [
        "Warum verwenden wir eine Warteschlange zwischen den beiden Diensten?",
        "¿Por qué guardamos los precios en céntimos y no en números decimales?",
        "Pourquoi avons-nous abandonné les nombres flottants pour les prix ?",
        "Perché abbiamo scelto di salvare le impostazioni nella cartella principale?",
        "Por que guardamos as configurações na pasta principal do usuário?",
        "Dlaczego zapisujemy ustawienia w katalogu domowym użytkownika?",
        "Ayarları neden kullanıcının ana dizinine kaydediyoruz?",
        "Miksi tallennamme asetukset käyttäjän kotihakemistoon?",
        "Почему мы выбрали эту базу данных",
    ],
)
def test_a_vocabulary_spells_other_languages_out_of_pieces(model: Builtin, text: str) -> None:
    assert model.known_words(text) < 0.5


def test_words_count_by_their_letters_as_far_as_the_model_sees() -> None:
    assert known_share("abcd efgh", [(0, 4), (4, 6), (6, 9)]) == 0.5
    assert known_share("a bcd", [(0, 1), (1, 5)]) == 1  # a token that begins with the space
    assert known_share("abcd efgh beyond", [(0, 0), (0, 4), (5, 9), (0, 0)]) == 1
    assert known_share("12 + 3", [(0, 2), (3, 4)]) == known_share("", []) == 1


def test_scripts_without_spaces_have_no_words_to_be_known() -> None:
    assert known_share("設定ファイル", [(0, 1), (1, 2), (2, 6)]) == 1
    assert known_share("abcd 設定", [(0, 2), (2, 4), (5, 6), (6, 7)]) == pytest.approx(1 / 3)
