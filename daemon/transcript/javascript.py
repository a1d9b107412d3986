"""The text functions of JavaScript that OpenCode's tools are built on, where Python's own ones differ from them.

Blank means what JavaScript calls white space: U+FEFF belongs to it, the separators U+001C to U+001F and U+0085 do not.
A length is counted in UTF-16 code units. Nothing here knows of files or of OpenCode.
"""

from __future__ import annotations

import re

BLANKS = "".join(("\t\n\v\f\r \u00a0\u1680", *map(chr, range(0x2000, 0x200B)), "\u2028\u2029\u202f\u205f\u3000\ufeff"))
BLANK_RUN = f"[{BLANKS}]+"

_RUN = re.compile(BLANK_RUN)
_SPECIAL = re.compile(r"\$[$&`']")


def length(text: str) -> int:
    """``text.length``."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def collapsed(text: str) -> str:
    """`text` with every run of blanks as one space, and none at its ends."""
    return _RUN.sub(" ", text).strip(BLANKS)


def is_plain(text: str) -> bool:
    """Whether each character of `text` is one code unit."""
    return text.isascii() or max(text) <= "\uffff"


def replace_all(text: str, old: str, new: str) -> str:
    """``text.replaceAll(old, new)``: ``$$``, ``$&``, ``$` `` and ``$'`` in `new` are interpreted.

    An empty `old` stands before every character and at the end; for that `text` has to be plain (`is_plain`), since
    JavaScript would part the halves of a character that is not.
    """
    if not _SPECIAL.search(new):
        return text.replace(old, new)
    pieces = []
    done = 0
    for at in _places(text, old):
        pieces += [text[done:at], _expanded(text, old, new, at)]
        done = at + len(old)
    return "".join([*pieces, text[done:]])


def replace_first(text: str, old: str, new: str) -> str:
    """``text.replace(old, new)``, which interprets `new` as `replace_all` does."""
    at = text.find(old)
    return text if at < 0 else text[:at] + _expanded(text, old, new, at) + text[at + len(old) :]


def _places(text: str, old: str) -> list[int]:
    step = max(1, len(old))
    places = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + step)
    return places


def _expanded(text: str, old: str, new: str, at: int) -> str:
    """`new` as it stands in the place of the `old` at `at`."""

    def one(found: re.Match[str]) -> str:
        match found[0]:
            case "$$":
                return "$"
            case "$&":
                return old
            case "$`":
                return text[:at]
            case _:
                return text[at + len(old) :]

    return _SPECIAL.sub(one, new)
