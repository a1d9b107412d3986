"""Text of others becomes inert Markdown: escaped on one line, in a code span, or in a fence nothing in it can close.

Others are transcripts and models alike. Guarantees (docs/reliability.md, T1): from text given to `inline`, `prose`,
`code` or `fence` no parser makes a link, an image, HTML, emphasis, a heading, a list, a table cell or front matter, and
no control character reaches the page. Only `Markdown` values pass a template unescaped.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import PurePosixPath
from urllib.parse import quote

from daemon.redact import for_terminal, redact

_ANYWHERE = re.compile(r"([\\`*{\[\]<&~|$]|(?<=[\w.+-])@|(?<![^\W_])_|_(?![^\W_])|%(?=%)|(?<=%)%|#(?=[^\W\d]))")
"""Marks that can begin something. An underscore inside a word cannot; #tag and %%hidden%% are Obsidian's."""
_AUTOLINK = re.compile(r"(:)(?=/)|(?<=www)(\.)|(?<=mailto)(:)", re.IGNORECASE)
_AT_START = re.compile(r"^([-+=:%#>]|\d{1,9}(?=[.)]))")
_SPAN = re.compile(r"`([^`]+)`")
_MOST_TITLE = 120
_QUOTES = " \t\n\"'“”"
_MARKER = re.compile(r"^(\d{1,9})([.)])")
_TURNING = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e01ef]"
)
"""What turns the direction of text, ends a line unseen, or is not seen at all: tags can spell hidden instructions."""
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
_LATEST = 253_402_300_799_000  # the last millisecond of year 9999 that datetime takes
_LANGUAGES = {
    ".c": "c", ".cpp": "cpp", ".cs": "csharp", ".css": "css", ".diff": "diff", ".go": "go", ".h": "c", ".html": "html",
    ".java": "java", ".js": "js", ".json": "json", ".jsx": "jsx", ".kt": "kotlin", ".lua": "lua", ".md": "markdown",
    ".php": "php", ".pl": "perl", ".py": "python", ".rb": "ruby", ".rs": "rust", ".sh": "sh", ".sql": "sql",
    ".swift": "swift", ".toml": "toml", ".ts": "ts", ".tsx": "tsx", ".xml": "xml", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip


class Markdown(str):
    """Text that is Markdown of our own making, or made inert by this module."""

    __slots__ = ()


def inline(text: object, most: int = 0) -> Markdown:
    """`text` on one line, escaped; with `most`, cut to that many characters and marked with an ellipsis."""
    return _begun(_escaped(_line(text, most)))


def prose(text: object, most: int = 0) -> Markdown:
    """As `inline`, but what stands between backticks becomes code; not for table cells."""
    pieces = _SPAN.split(_line(text, most))
    return _begun("".join(f"`{piece}`" if number % 2 else _escaped(piece) for number, piece in enumerate(pieces)))


def quoted(text: object, most: int = 0) -> Markdown:
    """`text` as `prose` in quotation marks; those it stood in before are left out."""
    return Markdown(f"“{prose(str(text).strip(_QUOTES), most)}”")


def title(text: object) -> Markdown:
    """A session's title, redacted, at most 120 characters; a model's source and a quotation show it the same way."""
    return inline(bare(text).strip() or "without title", _MOST_TITLE)


def bare(text: object) -> str:
    """`text` redacted, without the characters that are not seen: as a model is shown it, and so as it quotes it."""
    return redact(_TURNING.sub("", for_terminal(str(text))))


def cut(text: object, most: int) -> str:
    """`text` on one line, at most that many characters; it is not escaped."""
    return _line(text, most)


def _line(text: object, most: int) -> str:
    """`text` on one line, cut."""
    line = " ".join(visible(str(text)).split())
    return line[: most - 1].rstrip() + "…" if most and len(line) > most else line


def _escaped(line: str) -> str:
    return _AUTOLINK.sub(lambda match: "\\" + match[0], _ANYWHERE.sub(r"\\\1", line))


def _begun(escaped: str) -> Markdown:
    """What would make the line a list item, a heading or a quote is escaped too."""
    marker = _MARKER.match(escaped)
    if marker:
        escaped = f"{marker[1]}\\{escaped[marker.end() - 1 :]}"
    elif _AT_START.match(escaped):
        escaped = "\\" + escaped
    return Markdown(escaped)


def code(text: object) -> Markdown:
    """`text` as a code span on one line; not for table cells, where a bar would still end the cell."""
    line = " ".join(visible(str(text)).split())
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return Markdown(f"{ticks}{pad}{line}{pad}{ticks}")


def fence(text: str, info: str = "") -> Markdown:
    """`text` as a fenced block, its lines unchanged but for control characters, which are shown as symbols."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    body = visible(text.replace("\r\n", "\n"))
    end = "" if body.endswith("\n") or not body else "\n"
    return Markdown(f"{ticks}{info}\n{body}{end}{ticks}")


def visible(text: str) -> str:
    """`text` with control, direction-changing and unpaired characters replaced by something that can be seen.

    Where such characters kept a secret from being known as one, they are left out, and it is redacted.
    """
    return _TURNING.sub("\ufffd", uncovered(text).translate(_CONTROLS))


def uncovered(text: str) -> str:
    """`text`, or where characters that are not shown hide a secret in it, the text without them, redacted."""
    bare = _TURNING.sub("", for_terminal(text))
    if len(bare) == len(text):
        return text
    safe = redact(bare)
    return text if safe == bare else safe


def link(label: object, href: str) -> Markdown:
    """A link to a page of the set; `href` is a relative path, not yet encoded."""
    return Markdown(f"[{inline(label)}]({quote(href, safe='/', errors='replace')})")


def language(path: str) -> str:
    """The info string for a file's fence; empty for an ending we do not know."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def iso(milliseconds: int) -> Markdown:
    """Epoch ms as UTC ISO time to the second."""
    if not 0 < milliseconds <= _LATEST:
        return Markdown("unknown time")
    moment = dt.datetime.fromtimestamp(milliseconds / 1000, tz=dt.UTC)
    return Markdown(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def day(milliseconds: int) -> Markdown:
    """Epoch ms as a UTC day."""
    return Markdown(iso(milliseconds).partition("T")[0])


def finalize(value: object) -> str:
    """What Jinja does to every expression: only Markdown passes as it is."""
    return value if isinstance(value, Markdown) else inline("" if value is None else value)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
