"""Text as people see it: invisible characters by name, one line, counted nouns.

Invisible are control characters, marks that turn the direction of writing, characters without width, fillers, and the
tags and variation selectors in which a whole hidden text can be spelt (docs/reliability.md, T2). Joiners stay, and so
does one variation selector behind a character that may have one: Persian, Hindi, Japanese and emoji need them.
"""

from __future__ import annotations

import re

_SELECTORS, _MORE_SELECTORS = "\ufe00-\ufe0f", "\U000e0100-\U000e01ef"
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The only characters that the second block of selectors is meant for."""
_UNSEEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\ud800-\udfff"
)
_DISPLAYED = re.compile(
    f"[{_UNSEEN}]|\r(?!\n)|(?<=[{_SELECTORS}{_MORE_SELECTORS}])[{_SELECTORS}]|(?<![{_IDEOGRAPHS}])[{_MORE_SELECTORS}]"
)
INVISIBLE = f"{_UNSEEN}{_SELECTORS}{_MORE_SELECTORS}\u200c\u200d"
"""All of them, joiners and selectors too, for the inside of a regular expression's brackets."""
_ANY = re.compile(f"[{INVISIBLE}]|\r(?!\n)")
# C0 and C1 but white space, terminal colour sequences, and what turns the reading direction.
_UNPRINTED = re.compile(
    "\x1b\\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    """`text` with each invisible character replaced by its name, as ``⟨U+202E⟩``, or its picture, as ``␛``.

    Line ends (LF, CRLF) and tabs stay, an unpaired surrogate becomes U+FFFD. The same object where all can be seen.
    """
    return _DISPLAYED.sub(lambda match: _name(ord(match[0])), text)


def strip_invisible(text: str) -> str:
    """`text` without invisible characters, joiners and selectors among them: the letters that a reader sees.

    Line ends (LF, CRLF) and tabs stay. The same object where there is nothing to leave out.
    """
    return _ANY.sub("", text)


def one_line(text: str) -> str:
    """`text` on one line, without control characters, colours and marks that turn the direction of writing."""
    return " ".join(_UNPRINTED.sub("", text).split())


def shorten(text: str, most: int) -> str:
    """`text` with at most so many characters; an ellipsis marks the cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


ID_GAP = ".."
"""Between the beginning and the end of an id in short."""
_ID = re.compile(r"(ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}")
"""An id as OpenCode makes it: 36 bits of milliseconds, 12 bits that count, 14 random characters."""


def short_id(text: str) -> str:
    """An id of OpenCode's in short, as archive.ids reads it; any other text unchanged.

    The first four characters are the time to 17 minutes. Among so few, five random ones tell an id from all others.

    >>> short_id("msg_005714f7b1aaFlqGv3foIa4v80"), short_id("msg_1")
    ('msg_0057..a4v80', 'msg_1')
    """
    return f"{text[:8]}{ID_GAP}{text[-5:]}" if _ID.fullmatch(text) else text


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them.

    >>> duration(0.4), duration(90), duration(7000), duration(200_000)
    ('1 s', '90 s', '117 min', '56 h')
    """
    for unit, size, limit in (("s", 1, 120), ("min", 60, 120)):
        if seconds / size < limit:
            return f"{max(1, round(seconds / size))} {unit}"
    return f"{round(seconds / 3600)} h"


def size(count: object) -> str:
    """Bytes in a unit that suits them; a dash for what is no number.

    >>> size(999), size(1_234_567), size(None)
    ('999 B', '1.2 MB', '-')
    """
    if not isinstance(count, int | float):
        return "-"
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if abs(amount) < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _name(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"⟨U+{code:04X}⟩"
