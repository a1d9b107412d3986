"""The ways in which a text with a secret is written down by the tools that show it: escaped, coloured, cut, in a table.

A frame takes (before, secret, after), the text that tells of the secret around it, and gives what a transcript would
hold, with what must not be seen of it: the secret, or its pieces where the frame takes it apart.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from daemon.redact import redact

LEAST_SEEN = 9
"""Characters of a secret that may not be seen in one piece; shorter pieces are found in words by chance."""


@dataclass(frozen=True)
class Framed:
    """`value` is a text or a JSON value; `hidden` is what must not be in what comes out."""

    value: Any
    hidden: tuple[str, ...]


def _pieces(secret: str) -> tuple[str, ...]:
    lines = [line for line in secret.replace("\\n", "\n").split("\n") if "KEY" not in line]
    return tuple(line.strip() for line in lines if len(line.strip()) >= LEAST_SEEN) or (secret,)


def _whole(make: Callable[[str], Any]) -> Callable[[str, str, str], Framed]:
    def framed(before: str, secret: str, after: str) -> Framed:
        return Framed(make(before + secret + after), _pieces(secret))

    return framed


def _around(make: Callable[[str], str]) -> Callable[[str, str, str], Framed]:
    """The secret alone is written in another way, as where only it is coloured."""

    def framed(before: str, secret: str, after: str) -> Framed:
        return Framed(before + make(secret) + after, _pieces(secret))

    return framed


def _lines(form: str) -> Callable[[str], str]:
    return lambda text: "\n".join(form.format(number, line) for number, line in enumerate(text.split("\n"), 1))


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _cut_at_the_end(before: str, secret: str, after: str) -> Framed:
    """Three quarters of the secret, then the mark of the cut: what is left of it is still no text for anybody."""
    kept = secret[: max(len(secret) * 3 // 4, 1)]
    return Framed(f"{before}{kept}", tuple(piece for piece in _pieces(kept) if len(piece) >= 20))


def _cut_at_the_start(before: str, secret: str, after: str) -> Framed:
    if "PRIVATE KEY" in secret and "-----END" in secret:
        return Framed(f"{secret[len(secret) // 3 :]}{after}", _pieces(secret[len(secret) // 3 :]))
    is_told_by_itself = redact(secret) != secret
    return Framed(f"{'' if is_told_by_itself else before}{secret}{after}", _pieces(secret))


def _wrapped(before: str, secret: str, after: str) -> Framed:
    """As a terminal of forty columns breaks a long run."""
    if "\n" in secret or "\\n" in secret or len(secret) < 48:
        return Framed(before + secret + after, _pieces(secret))
    pieces = textwrap.wrap(secret, 40, break_on_hyphens=False)
    return Framed(before + "\n".join(pieces) + after, tuple(piece for piece in pieces if len(piece) >= LEAST_SEEN))


FRAMES: dict[str, Callable[[str, str, str], Framed]] = {
    "plain": _whole(lambda text: text),
    "JSON": _whole(lambda text: json.dumps({"output": f"first\n{text}\n\tlast"})),
    "JSON in JSON": _whole(lambda text: json.dumps({"body": json.dumps({"output": f"first\n{text}\nlast"})})),
    "repr": _whole(lambda text: repr(f"first\n{text}\nlast")),
    "repr of bytes": _whole(lambda text: repr(f"first\n{text}\nlast".encode())),
    "escaped newline": _whole(lambda text: f"first\\n{_escaped(text)}\\nlast"),
    "escaped tab": _whole(lambda text: f"first\\t{_escaped(text)}\\tlast"),
    "URL": _whole(lambda text: f"q=first%20{urllib.parse.quote(text, safe='')}%20last"),
    "form": _whole(lambda text: urllib.parse.urlencode({"a": "first", "q": text, "z": "last"})),
    "coloured": _whole(lambda text: f"\x1b[1m\x1b[31m{text}\x1b[0m"),
    "secret coloured": _around(lambda secret: f"\x1b[01;31m\x1b[K{secret}\x1b[m\x1b[K"),
    "colours escaped": _around(lambda secret: f"\\u001b[32m{secret}\\u001b[39m"),
    "colours without escape": _around(lambda secret: f"[32m{secret}[39m"),
    "HTML": _whole(lambda text: f"<pre><code>{html.escape(text)}</code></pre>"),
    "tag behind": _whole(lambda text: f"<task_result>\n{text}</task_result>"),
    "bold in HTML": _around(lambda secret: f"<b>{secret}</b>"),
    "Markdown": _whole(lambda text: f"# A title\n\n```sh\n{text}\n```\n"),
    "emphasis": _around(lambda secret: f"**{secret}**"),
    "quotation": _whole(_lines("> {1}")),
    "list": _whole(lambda text: f"- {text}"),
    "diff added": _whole(lambda text: "@@ -1,2 +1,3 @@\n context\n" + _lines("+{1}")(text)),
    "diff removed": _whole(lambda text: "@@ -1,3 +1,2 @@\n context\n" + _lines("-{1}")(text)),
    "numbered": _whole(lambda text: "<file>\n" + _lines("{0:05d}| {1}")(text) + "\n</file>"),
    "numbered by cat": _whole(_lines("{0:6d}\t{1}")),
    "numbered by grep": _whole(_lines("{0}:{1}")),
    "found by grep": _whole(
        lambda text: "\n".join(f"config/.env:{n}:{line}" for n, line in enumerate(text.split("\n"), 1))
    ),
    "beside what grep found": _whole(
        lambda text: "\n".join(f"config/.env-{n}-{line}" for n, line in enumerate(text.split("\n"), 1))
    ),
    "YAML block": _whole(lambda text: "data: |\n" + _lines("    {1}")(text) + "\nend: true\n"),
    "table cell": _whole(lambda text: f"| name | value |\n|---|---|\n| it | {text} |\n"),
    "box": _whole(_lines("│ {1} │")),
    "CSV": _whole(lambda text: 'a,b\n1,"{}"\n'.format(text.replace('"', '""'))),
    "comment": _whole(_lines("# {1}")),
    "invisible characters": _around(lambda secret: f"{secret[:5]}\u200b{secret[5:]}\u2060"),
    "cut at the end": _cut_at_the_end,
    "cut at the start": _cut_at_the_start,
    "split over lines": _wrapped,
    "structured": _whole(lambda text: {"input": {"lines": [text, {"deep": text}]}, text: 1}),
}


def texts(value: Any) -> list[str]:
    """Every string of a JSON value, keys too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (*texts(key), *texts(item))]
    return [text for item in value for text in texts(item)] if isinstance(value, list) else []


def plain(text: str) -> str:
    """As a reader gets it in the end: colours shown, invisible characters gone, lines put together."""
    return "".join(c for c in text if c.isprintable() and c not in "\u200b\u2060")


def decoded(text: str) -> tuple[str, ...]:
    """As it reads once its escapes are undone."""
    bare = re.sub(r"\\+[nrt]", "\n", re.sub(r"\\+([^nrt])", r"\1", text))
    return urllib.parse.unquote_plus(text), html.unescape(text), bare


def seen(framed: Framed, shown: Any) -> list[str]:
    """The secrets of `framed` that can be read in what came out."""
    out = [one for text in texts(shown) for one in (text, plain(text), *decoded(text))]
    return sorted({secret for secret in framed.hidden for text in out if secret in text})
