"""How answers look on a terminal: cleaned of control characters, in colour only where a person looks, in local time.

Everything that came out of a transcript goes through `plain`, `bold` or `dim` (docs/reliability.md, T2).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click

from daemon import display
from daemon.control.answers import to_json
from daemon.display import short_id, visible
from daemon.hints import for_commands, rendered

_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_PIECES = re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")
"""Spaces, words, and single characters of scripts without spaces."""


duration, size = display.duration, display.size


def is_colourful() -> bool:
    """Whether stdout is a terminal whose user has not asked for no colour (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(value: Any) -> str:
    """A value as text that is safe to print on one line or more."""
    return visible(str(value))


def bold(value: Any) -> str:
    """As `plain`, bold where there is colour."""
    return click.style(plain(value), bold=True) if is_colourful() else plain(value)


def dim(value: Any) -> str:
    """As `plain`, faint where there is colour."""
    return click.style(plain(value), dim=True) if is_colourful() else plain(value)


def tint(value: Any, colour: str) -> str:
    """As `plain`, in a colour that click knows where there is colour."""
    return click.style(plain(value), fg=colour) if is_colourful() else plain(value)


def line(value: Any) -> str:
    """As `plain`, in one line: a newline or tab, as a file name may hold, is shown as its escape."""
    return plain(str(value).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r"))


def identifier(value: Any) -> str:
    """An id: whole where a program may read it, short where a person does. Every command takes both."""
    return short_id(str(value)) if sys.stdout.isatty() else str(value)


def say(text: str = "") -> None:
    """Print one line of the answer on stdout."""
    click.echo(text, color=is_colourful())


def note(text: Any) -> None:
    """Print a note on stderr, because it is not part of the answer."""
    click.echo(f"reconstitute: {plain(for_commands(str(text)))}", err=True)


def notes(texts: Iterable[str]) -> None:
    """Print each note on stderr."""
    for text in texts:
        note(text)


def data(value: Any) -> None:
    """The answer as JSON. Everything but ASCII is escaped, so no terminal and no pipe can misread it."""
    click.echo(json.dumps(rendered(to_json(value), for_commands), indent=2, ensure_ascii=True))


def width() -> int:
    """Columns to fill: the terminal's, between 40 and 100; 80 where there is none."""
    return max(40, min(100, shutil.get_terminal_size((80, 24)).columns))


def fold(text: str, indent: str, hanging: str = "") -> str:
    """`text` filled to the width, every line after `indent`, those after the first after `hanging` too."""
    words, indent_width = " ".join(plain(text).splitlines()), columns(indent + hanging)
    first, *following = wrap(words, width() - columns(indent), width() - indent_width, breaks_words=False) or [""]
    return "\n".join([indent + first, *(indent + hanging + line for line in following)])


def columns(text: str) -> int:
    """How many columns of a terminal `text` takes: two for each wide character, none for what only marks another.

    >>> columns("a"), columns("日本"), columns("e\u0301")
    (1, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def wrap(text: str, limit: int, later: int | None = None, *, breaks_words: bool = True) -> list[str]:
    """`text` in lines of at most `limit` columns (`later` for all but the first), broken at spaces and wide characters.

    The indentation of the first line stays. A word that is too long for a line is broken, or stands out.
    """
    lines, line = list[str](), ""
    for piece in _PIECES.findall(text):
        max_columns = limit if not lines or later is None else later
        if piece.isspace():
            line += piece if line or not lines else ""
            continue
        if line.strip() and columns(line + piece) > max_columns:
            lines.append(line.rstrip())
            line, max_columns = "", limit if later is None else later
        line += piece
        while breaks_words and columns(line) > max_columns:
            head = _head(line, max_columns)
            lines.append(head)
            line, max_columns = line[len(head) :], limit if later is None else later
    return [*lines, line.rstrip()] if line.strip() else lines


def shorten(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` columns; where it is longer, it ends in an ellipsis, after a word."""
    words = " ".join(text.split())
    if columns(words) <= limit:
        return words
    head = _head(words, limit - 1)
    is_whole = words[len(head)].isspace() or _columns(head[-1]) > 1
    return (head if is_whole else head.rpartition(" ")[0] or head).rstrip() + "…"


def _head(text: str, limit: int) -> str:
    """The longest prefix of `text` that fits, at least one character."""
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > limit and place:
            return text[:place]
    return text


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def moment(ms: Any) -> str:
    """Epoch milliseconds as local time; a dash where there is none."""
    if not isinstance(ms, int | float) or isinstance(ms, bool) or not ms:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "-"


def count(number: Any, singular: str, plural: str = "") -> str:
    """A number and its noun, in the form that goes with it.

    >>> count(1, "file"), count(0, "file"), count(2, "entry", "entries")
    ('1 file', '0 files', '2 entries')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def mark(text: str, terms: Any) -> str:
    """`text`, cleaned, with every occurrence of `terms` bold."""
    text = plain(text)
    words = [re.escape(plain(t)) for t in terms if str(t).strip()] if isinstance(terms, list | tuple) else []
    if not words or not is_colourful():
        return text
    longest_first = "|".join(sorted(words, key=len, reverse=True))
    return re.sub(longest_first, lambda match: click.style(match[0], bold=True), text, flags=re.IGNORECASE)
