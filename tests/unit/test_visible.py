"""No text looks like something else than it is (docs/reliability.md, T2)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.display import strip_invisible, visible
from daemon.redact import redact

SECRET = "ghp_" + "a1B2" * 9
VISIBLE_FORMATS = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""Signs that Unicode calls formats although they have a shape: numbers of Arabic, Syriac and Kaithi."""
JOINERS = {0x200C, 0x200D}


def test_every_format_and_control_character_is_named_or_has_a_picture() -> None:
    for code in range(0x110000):
        kind = unicodedata.category(chr(code))
        is_kept = chr(code) in "\n\t" or code in VISIBLE_FORMATS | JOINERS or 0x13430 <= code <= 0x1345F
        if kind in {"Cc", "Cf", "Zl", "Zp", "Cs"} and not is_kept and not 0x1BCA0 <= code <= 0x1BCA3:
            assert chr(code) not in visible(chr(code)), hex(code)
        elif kind[0] in "LNPS" and code not in {0x115F, 0x1160, 0x3164, 0xFFA0}:
            assert visible(chr(code)) == chr(code), hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202egpj.exe", "a⟨U+202E⟩gpj.exe"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("10 %\r20 %\r\nend", "10 %␍20 %\r\nend"),
        ("a\u061cb\U000e0041\U000e007f", "a⟨U+061C⟩b⟨U+E0041⟩⟨U+E007F⟩"),
        ("\x7f\x9b31m\udc80", "␡⟨U+009B⟩31m\ufffd"),
        ("x\ufe0f\ufe01\ufe02", "x\ufe0f⟨U+FE01⟩⟨U+FE02⟩"),
        ("葛\U000e0100\U000e0101", "葛\U000e0100⟨U+E0101⟩"),
        ("x\U000e0154", "x⟨U+E0154⟩"),
    ],
)
def test_what_cannot_be_seen_is_named(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["plain", "é 购物车 می\u200cخواهم", "👨\u200d👩\u200d👧 ❤\ufe0f", "a\n\tb\r\n"])
def test_what_people_write_stays_the_same_object(text: str) -> None:
    assert visible(text) is text


@given(st.text())
def test_naming_twice_changes_nothing(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    visible(text).encode()
    strip_invisible(text).encode()


@pytest.mark.parametrize("hidden", ["\u200b", "\u200d", "\ufe0f", "\u00ad", "\U000e0061", "\x1b", "\u2060", "\x00"])
def test_a_secret_with_an_invisible_character_in_it_is_redacted(hidden: str) -> None:
    text = f"key {SECRET[:11]}{hidden}{SECRET[11:]} end"
    assert SECRET[:11] not in redact(text)
    assert redact(f"no secret{hidden} here") == f"no secret{hidden} here"
