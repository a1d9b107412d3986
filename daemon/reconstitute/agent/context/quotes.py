"""Whether a quote stands in a text.

Allowed to differ are only: white space (any run of it is one space), the shape of quotation marks and apostrophes,
``…`` for ``...``, and Unicode composition (NFC). Case, words and every other sign must be the same. An ellipsis within
a quote stands for anything: what is before and after it must stand in the text in this order, each part long enough.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

LEAST_WORDS = 3
"""A quote has so many words (a Chinese, Japanese or Korean character counts as one), or is a whole line of the text."""

_STRAIGHT = str.maketrans({**dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‘’‚‛", "'"), "…": "..."})
_GAP = re.compile(r"\s*(?:\[\.{3,}\]|\(\.{3,}\)|\.{3,})\s*")
_WIDE = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]+")
_ENDS = " \"'"


def folded(text: str) -> str:
    """`text` in the form that quotes are compared in, on one line."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def find(quote: str, pieces: Iterable[str]) -> str:
    """The folded quote as it stands in one of the texts, gaps shown as `` … ``; empty where it stands in none."""
    whole = folded(quote)
    for piece in pieces:
        text = folded(piece)
        for wanted in _readings(whole):
            if _stand_in_order(wanted, text) and all(is_enough(part, piece) for part in wanted):
                return " … ".join(wanted)
    return ""


def is_enough(quote: str, piece: str = "") -> bool:
    """Whether a quote is long enough to say something, or is a whole line of `piece`."""
    part = folded(quote)
    if len(_WORD.findall(part)) >= LEAST_WORDS:
        return True
    return bool(part) and any(part == folded(line) for line in piece.split("\n"))


def _readings(whole: str) -> Iterable[list[str]]:
    """The parts of a quote that must stand in a text: as written, without its own quotation marks, around its gaps."""
    bare = whole.strip(_ENDS)
    seen: list[list[str]] = [[]]
    for reading in ([whole], [bare], [part for part in _GAP.split(bare) if part]):
        if reading not in seen and all(reading):
            seen.append(reading)
            yield reading


def _stand_in_order(parts: list[str], text: str) -> bool:
    place = 0
    for part in parts:
        start = _find_words(part, text, place)
        if start < 0:
            return False
        place = start + len(part)
    return True


def _find_words(part: str, text: str, place: int) -> int:
    """Where `part` stands in `text`, not beginning or ending within a word; -1: nowhere."""
    start = text.find(part, place)
    while start >= 0:
        if not _is_within_word(text, start) and not _is_within_word(text, start + len(part)):
            return start
        start = text.find(part, start + 1)
    return -1


def _is_within_word(text: str, place: int) -> bool:
    """Whether a word of a script that has spaces goes on across this place."""
    if not 0 < place < len(text):
        return False
    match = _WORD.match(text[place - 1 : place + 1])
    return match is not None and match.end() == 2
