"""Text of others becomes inert Markdown: escaped on one line, in a code span, or in a fence nothing in it can close.

Others are transcripts and models alike. Guarantees (docs/reliability.md, T1): from text given to `inline`, `prose`,
`code` or `fence` no parser makes a link, an image, HTML, emphasis, a heading, a list, a table cell or front matter, and
no control character reaches the page. Only `Markdown` values pass a template unescaped.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import PurePosixPath
from urllib.parse import quote

import tzlocal

from daemon.display import strip_invisible, visible
from daemon.redact import redact

_ANYWHERE = re.compile(
    r"((?<=[^\[\]!^\\])\[[A-Za-z0-9]+(?:[ .,+-][A-Za-z0-9]+)*\](?=[^\[\](]))|"
    r"([`*{\[\]<~|$]|\\(?=[!-/:-@\[-`{-~]|$)|&(?=[#\w]|$)|(?<=\])\(|!(?![\s\w.,;:)\"'”])|(?<![^\W_])_|_(?![^\W_])|%(?=%)|"
    r"(?<=%)%|#(?=[^\W\d]))"
)
"""Marks that can begin something. An exclamation mark before a bracket, or at the end, before a link of ours, makes an
image; an underscore inside a word makes nothing; #tag and %%hidden%% are Obsidian's. Left as they are: one word in
brackets in the middle of a line, a backslash before a letter, and an & that begins no entity.
"""
_ADDRESS = re.compile(
    r"(?:(?:[a-z][\w+.-]{0,30}://|www\.)[^\s`|]*|(?:[a-z]{1,9}:)?[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+(?:/[^\s`|]*)?)"
    r"(?<![.,;:!?)\]\"'”])",
    re.IGNORECASE,
)
"""What renderers make links of by themselves. Some do so after they have read the escapes, so only code is safe."""
_TICK = "\\`"
_AT_START = re.compile(r"^[-+=:%#>]")
_SPAN = re.compile(r"`([^`]+)`")
_MAX_TITLE = 120
_QUOTES = " \t\n\"'“”"
_MARKER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_LATEST = 253_402_300_799_000  # the last millisecond of year 9999 that datetime takes
_UNKNOWN = "unknown time"
_LANGUAGES = {
    ".c": "c", ".cpp": "cpp", ".cs": "csharp", ".css": "css", ".diff": "diff", ".go": "go", ".h": "c", ".html": "html",
    ".java": "java", ".js": "js", ".json": "json", ".jsx": "jsx", ".kt": "kotlin", ".lua": "lua", ".md": "markdown",
    ".php": "php", ".pl": "perl", ".py": "python", ".rb": "ruby", ".rs": "rust", ".sh": "sh", ".sql": "sql",
    ".swift": "swift", ".toml": "toml", ".ts": "ts", ".tsx": "tsx", ".xml": "xml", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip


class Markdown(str):
    """Text that is Markdown of our own making, or made inert by this module."""

    __slots__ = ()


class Href(str):
    """A link's target that is encoded already."""

    __slots__ = ()

    @classmethod
    def to(cls, path: str, anchor: str = "") -> Href:
        """To a page by its relative path, and to the heading on it with that slug; without a path, on the same page."""
        return cls(quote(path, safe="/", errors="replace") + (f"#{anchor}" if anchor else ""))


def inline(text: object, limit: int = 0) -> Markdown:
    """`text` on one line, escaped; with `limit`, cut to that many characters and marked with an ellipsis.

    Addresses become code: nothing else keeps every renderer from making a link of one.
    """
    return _begun(_joined(_parted(_line(text, limit))))


def prose(text: object, limit: int = 0) -> Markdown:
    """As `inline`, but what stands between backticks becomes code; not for table cells."""
    return _begun(inside(text, limit))


def inside(text: object, limit: int = 0) -> Markdown:
    """As `prose`, where other words stand before it on its line: nothing can begin a list or a heading there."""
    pieces = enumerate(_SPAN.split(_line(text, limit)))
    return Markdown(
        _joined(part for number, piece in pieces for part in ([(piece, True)] if number % 2 else _parted(piece)))
    )


def quoted(text: object, limit: int = 0) -> Markdown:
    """`text` as `prose` in quotation marks; those it stood in before are left out."""
    return Markdown(f"“{inside(str(text).strip(_QUOTES), limit)}”")


def title(text: object) -> Markdown:
    """A session's title, redacted, at most 120 characters; a model's source and a quotation show it the same way."""
    return inline(bare(text).strip() or "without title", _MAX_TITLE)


def bare(text: object) -> str:
    """`text` redacted, without invisible characters: as a model is shown it, and so as it quotes it."""
    return strip_invisible(redact(str(text)))


def cut(text: object, limit: int) -> str:
    """`text` on one line, at most that many characters; it is not escaped."""
    return _line(text, limit)


def _line(text: object, limit: int) -> str:
    """`text` on one line, cut, and between words where one ends in the second half of what fits."""
    line = " ".join(_safe(str(text)).split())
    if not limit or len(line) <= limit:
        return line
    blank = line.rfind(" ", limit // 2, limit)
    return line[: blank if blank > 0 else limit - 1].rstrip(" ,;:") + "…"


def _safe(text: str) -> str:
    """`text` with invisible characters named; where there are any, they may have hidden a secret."""
    return visible(text if strip_invisible(text) is text else redact(text))


def _parted(line: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a line, each with whether it is an address."""
    place = 0
    for match in _ADDRESS.finditer(line):
        yield line[place : match.start()], False
        yield match[0], True
        place = match.end()
    yield line[place:], False


def _joined(pieces: Iterable[tuple[str, bool]]) -> str:
    """Pieces of one line, those that are marked as code in a span, the others escaped."""
    joined = ""
    for is_code, group in groupby((piece for piece in pieces if piece[0]), key=itemgetter(1)):
        text = "".join(piece for piece, _ in group)
        if is_code:
            # A backtick beside a span's own ones would be taken for one of them, though it is escaped.
            joined = f"{joined.removesuffix(_TICK)}&#96;`{text}`" if joined.endswith(_TICK) else f"{joined}`{text}`"
        else:
            escaped = _ANYWHERE.sub(_escaped, text)
            joined += f"&#96;{escaped.removeprefix(_TICK)}" if joined and escaped.startswith(_TICK) else escaped
    return joined


def _escaped(match: re.Match[str]) -> str:
    return match[1] or f"\\{match[2]}"


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
    line = " ".join(_safe(str(text)).split())
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return Markdown(f"{ticks}{pad}{line}{pad}{ticks}")


def fence(text: str, info: str = "") -> Markdown:
    """`text` as a fenced block, its lines unchanged but for invisible characters, which are named; CRLF becomes LF."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    body = _safe(text.replace("\r\n", "\n"))
    end = "" if body.endswith("\n") or not body else "\n"
    return Markdown(f"{ticks}{info}\n{body}{end}{ticks}")


def link(label: object, href: str) -> Markdown:
    """A link to a page of the set; `href` is a relative path, not yet encoded, or an Href."""
    return Markdown(f"[{inline(label)}]({href if isinstance(href, Href) else Href.to(href)})")


def language(path: str) -> str:
    """The info string for a file's fence; empty for an ending we do not know."""
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), "")


def iso(milliseconds: int) -> Markdown:
    """Epoch ms as UTC ISO time to the second."""
    if not 0 < milliseconds <= _LATEST:
        return Markdown(_UNKNOWN)
    moment = dt.datetime.fromtimestamp(milliseconds / 1000, tz=dt.UTC)
    return Markdown(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def moment(milliseconds: int) -> Markdown:
    """Epoch ms as local time to the minute, ``2026-11-21 03:41``; the zone is `zone`."""
    if not 0 < milliseconds <= _LATEST:
        return Markdown(_UNKNOWN)
    try:
        local = dt.datetime.fromtimestamp(milliseconds / 1000, tz=dt.UTC).astimezone()
    except OverflowError:  # the last hours of year 9999, east of Greenwich
        return Markdown(_UNKNOWN)
    return Markdown(local.strftime("%Y-%m-%d %H:%M"))


def day(milliseconds: int) -> Markdown:
    """Epoch ms as a local day."""
    local = moment(milliseconds)
    return local if local == _UNKNOWN else Markdown(local.partition(" ")[0])


def zone() -> Markdown:
    """The name of the machine's time zone, such as ``Europe/Berlin``, else its abbreviations, such as ``CET/CEST``."""
    try:
        name = tzlocal.get_localzone_name()
    except (LookupError, ValueError, OSError):
        name = None
    return inline((name or "/".join(dict.fromkeys(time.tzname))).removeprefix("Etc/"))


def finalize(value: object) -> str:
    """What Jinja does to every expression: only Markdown passes as it is."""
    return value if isinstance(value, Markdown) else inline("" if value is None else value)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
