"""What ``echo`` and ``printf`` print, as bash's builtins do; None where the text alone does not tell."""

from __future__ import annotations

import re

from daemon.transcript.shell.words import SIMPLE_ESCAPES, escaped

_ECHO_OPTION = re.compile(r"-[neE]+")
_ECHO_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0([0-7]{0,3})|(.)|$)", re.DOTALL
)
_FORMAT = re.compile(
    r"%(.?)|\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.)|$)", re.DOTALL
)
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LONGEST = 1 << 24
_BASHS_OWN = re.compile(r"\\[^\\abfnrtv0-7]|^--")


def is_echo_bashs_own(words: list[str]) -> bool:
    """Whether the shells that are called ``sh`` print this in different ways."""
    return any("\\" in word for word in words) or (bool(words) and words[0].startswith("-"))


def is_printf_bashs_own(words: list[str]) -> bool:
    """The same of ``printf``."""
    return bool(words) and _BASHS_OWN.search(words[0]) is not None


def echo(words: list[str]) -> str | None:
    """The output of ``echo`` with these arguments, without ``xpg_echo``."""
    is_escaped, ends = False, "\n"
    at = 0
    while at < len(words) and _ECHO_OPTION.fullmatch(words[at]):
        ends = "" if "n" in words[at] else ends
        for char in words[at]:
            is_escaped = {"e": True, "E": False}.get(char, is_escaped)
        at += 1
    text = " ".join(words[at:])
    if not is_escaped or "\\" not in text:
        return text + ends
    return _interpreted(text, ends)


def _interpreted(text: str, ends: str) -> str | None:
    pieces: list[str] = []
    done = 0
    for found in _ECHO_ESCAPE.finditer(text):
        pieces.append(text[done : found.start()])
        done = found.end()
        if found[5] == "c":
            return "".join(pieces)
        if found[5] is not None or found.lastindex is None:
            pieces.append(SIMPLE_ESCAPES.get(found[5] or "", found[0]))
            if found[5] in ("x", "u", "U"):
                return None
            continue
        char = escaped(found.groups(), "") if found[4] != "" else None
        if char is None:
            return None
        pieces.append(char)
    return "".join([*pieces, text[done:], ends])


def printf(words: list[str]) -> str | None:
    """The output of ``printf`` with these arguments: literal text, escapes, ``%s``, ``%d`` and ``%%``."""
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0].startswith("-"):
        return None
    steps = _steps(words[0])
    if steps is None:
        return None
    left = words[1:][::-1]
    takes = any(kind != "" for kind, _ in steps)
    pieces: list[str] = []
    size = 0
    while True:
        for kind, text in steps:
            piece = _argument(kind, left) if kind else text
            if piece is None:
                return None
            pieces.append(piece)
            size += len(piece)
        if not left or not takes:
            return "".join(pieces)
        if size > _LONGEST:
            return None


def _steps(text: str) -> list[tuple[str, str]] | None:
    """A format as (conversion, "") and ("", literal text) in turn."""
    steps: list[tuple[str, str]] = []
    done = 0
    for found in _FORMAT.finditer(text):
        steps.append(("", text[done : found.start()]))
        done = found.end()
        conversion = found[1]
        if conversion is None:
            if found.lastindex is None:
                return None
            char = escaped(found.groups()[1:], "\"'?")
            if char is None:
                return None
            steps.append(("", char))
        elif conversion == "%":
            steps.append(("", "%"))
        elif conversion in ("s", "d", "i"):
            steps.append((conversion, ""))
        else:
            return None
    return [*steps, ("", text[done:])]


def _argument(kind: str, left: list[str]) -> str | None:
    if not left:
        return "" if kind == "s" else "0"
    word = left.pop()
    if kind == "s":
        return word
    return word if _NUMBER.fullmatch(word) else None
