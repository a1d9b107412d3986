"""How values look in an export: a time in ISO 8601, a value as one line of JSON that every reader takes, no secrets."""

from __future__ import annotations

import datetime as dt
import json
import re
from typing import Any

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LATEST = 253_402_300_799_999
_BINARY = re.compile(r"data:[\w.+/-]*(?:;[\w=.+-]+)*;base64,", re.ASCII)
_DELICATE = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What some readers take for the end of a line, what a terminal obeys, and what UTF-8 cannot hold."""


def iso(ms: int | None) -> str | None:
    """Epoch ms as UTC in ISO 8601 with milliseconds and Z, as JavaScript writes it; None where there is no time.

    >>> iso(1795230486655), iso(0)
    ('2026-11-21T03:08:06.655Z', None)
    """
    if not ms or not 0 < ms <= _LATEST:
        return None
    moment = _EPOCH + dt.timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(value: Any) -> str:
    """`value` as JSON on one line, fields in their own order; always valid JSON and valid UTF-8.

    Characters stay as they are, but for those that end a line or steer a terminal somewhere: those are escaped. A lone
    surrogate becomes U+FFFD, and NaN and Infinity, which Python reads and JSON does not know, become null.
    """
    try:
        text = _dumps(value)
    except ValueError:
        loose = json.dumps(value, ensure_ascii=True)
        text = _dumps(json.loads(loose, parse_constant=lambda _: None))
    if text.isascii() and "\x7f" not in text:
        return text
    return _DELICATE.sub(_escaped, text)


def shortened(value: Any) -> Any:
    """A JSON value in which the payload of each base64 data URL is replaced by its length.

    One that is nested too deep to be walked stays as it is.
    """
    try:
        return _shortened(value)
    except RecursionError:
        return value


def cut(text: str, most: int) -> str:
    """`text` on one line of at most `most` characters."""
    text = " ".join(text[: 8 * most].split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def pretty(value: Any) -> str:
    """`value` as JSON over several lines, to be read."""
    text = line(value)
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except RecursionError:  # what is nested that deep is no easier to read over several lines
        return text


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        head = _BINARY.match(value)
        return value if head is None else f"{head[0]}[{len(value) - head.end()} characters]"
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"
