"""Recorded text in Markdown that does nothing: in a fence that nothing in it closes, in a code span, or escaped.

No parser makes a heading, a link, HTML or anything else of what is given to these functions, and characters that cannot
be seen, or that turn the direction of the text, are replaced by some that can.
"""

from __future__ import annotations

import re

_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
_TURNING = re.compile("[\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()&~|$@#!:])|(?<=www)(\.)", re.IGNORECASE)


def visible(text: str) -> str:
    """`text` with what cannot be seen made visible; CRLF becomes LF."""
    return _TURNING.sub("\ufffd", text.replace("\r\n", "\n").translate(_CONTROLS))


def fence(text: str, info: str = "") -> str:
    """`text` as a fenced block, ended by a newline."""
    body = visible(text)
    ticks = "`" * max(3, _longest_run(body) + 1)
    return f"{ticks}{info}\n{body}{'' if body.endswith(chr(10)) or not body else chr(10)}{ticks}\n"


def code(text: str) -> str:
    """`text` as a code span on one line; not for a table's cells."""
    body = " ".join(visible(text).split())
    ticks = "`" * (_longest_run(body) + 1)
    pad = " " if not body or "`" in (body[0], body[-1]) else ""
    return f"{ticks}{pad}{body}{pad}{ticks}"


def heading(text: str) -> str:
    """`text` on one line, escaped, for the inside of a heading."""
    escaped: str = _SPECIAL.sub(r"\\\g<0>", " ".join(visible(text).split()))
    return escaped


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
