r"""Blocks that somebody marked ``<private>…</private>`` are taken out of texts; MARK remains in their place.

A tag counts in any case but ``<Private>``, an element of .NET's project files; with white space or attributes in it;
and as JSON escapes it (``\u003cprivate\u003e``, also several times). Blocks nest, and one that is not closed hides the
rest of its text. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import unquote_to_bytes

MARK = "[private]"
"""Stands in place of a private block."""
EXCLUDED = "[excluded]"
"""Stands in place of what the settings exclude."""
FORGOTTEN = "[forgotten]"
"""Stands in place of what the user has forgotten of a path."""
FLAG = "leftOut"
"""The field of a record from which something was taken out: ``{"private": true}``, or another reason."""

_LT, _GT, _SLASH = r"(?:<|\\+u003[cC])", r"(?:>|\\+u003[eE])", r"(?:\\*/|\\+u002[fF])"
_SPACE = r"(?:\s|\\+[nrt])*"
_TAG = re.compile(rf"{_LT}{_SPACE}(?P<closing>{_SLASH}{_SPACE})?(?!Private)(?ai:private)(?![\w-])")
_QUOTED = r"\\*\"[^\"]*\"|'[^']*'"
_ATTRIBUTES = re.compile(
    rf"(?:(?:\s|\\+[nrt])+[\w:.-]+(?:{_SPACE}={_SPACE}(?:{_QUOTED}|(?:(?!{_GT})[^\s\"'])+))?)*{_SPACE}{_SLASH}?{_GT}"
)
_END = re.compile(rf"(?:(?!{_LT}|{_GT}).){{0,256}}{_GT}", re.DOTALL)
_WORD = b"private"
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_DATA_URL = re.compile(r"data:[^,]{0,256},", re.ASCII)


def without_blocks(text: str, *, is_window: bool = False) -> str:
    """`text` with MARK in place of each private block.

    `is_window`: it may be a piece of another text, so a closing tag without an opening one hides all that comes before.
    """
    if "private" not in text.lower():
        return text
    pieces: list[str] = []
    depth = visible = place = 0
    for tag in _TAG.finditer(text):
        if tag.start() < place:
            continue  # in an attribute of the tag before
        if not tag["closing"]:
            if not depth:
                pieces += text[visible : tag.start()], MARK
            depth += 1
            attributes = _ATTRIBUTES.match(text, tag.end())
            place = attributes.end() if attributes else tag.end()
            continue
        end = _END.match(text, tag.end())
        if end is None:
            continue
        if depth == 1 or (is_window and not depth):
            pieces = pieces if depth else [MARK]
            visible = place = end.end()
        depth = max(0, depth - 1)
    return "".join(pieces if depth else (*pieces, text[visible:]))


def cleaned(value: Any, *, is_window: bool = False) -> Any:
    """A JSON value with every text and key `without_blocks`; the same object if there was none.

    A data URL whose content has a tag is taken out as a whole.
    """
    if isinstance(value, str):
        if value.startswith("data:") and _holds_tag_in_data(value):
            return MARK
        return without_blocks(value, is_window=is_window)
    if isinstance(value, dict):
        table = {
            cleaned(key, is_window=is_window): cleaned(item, is_window=is_window or key in _WINDOWS)
            for key, item in value.items()
        }
        return value if _is_same(value.values(), table.values()) and table.keys() == value.keys() else table
    if isinstance(value, list):
        items = [cleaned(item, is_window=is_window) for item in value]
        return value if _is_same(value, items) else items
    return value


_WINDOWS = frozenset({
    "output", "metadata", "diff", "diffs", "patch", "oldString", "newString", "patchText", "old_string", "new_string",
})  # fmt: skip
"""Fields whose text may show only a part of a file."""


def _is_same(first: Any, second: Any) -> bool:
    return all(a is b or (isinstance(a, str) and a == b) for a, b in zip(first, second, strict=False))


def may_hold_block(raw: bytes) -> bool:
    """Whether a JSON record may have a tag in one of its texts: false for nearly all, and cheap."""
    return _WORD in raw.lower() or b"data:" in raw or _ESCAPED_LETTER.search(raw) is not None


def holds_tag(content: bytes) -> bool:
    """Whether the content of a file, in any of the usual encodings, has the opening tag of a private block."""
    for data in (content, content.replace(b"\0", b"")) if b"\0" in content else (content,):
        if _WORD in data.lower() and _opens(data.decode("latin-1")):
            return True
    return False


def _opens(text: str) -> bool:
    return any(not tag["closing"] for tag in _TAG.finditer(text))


def _holds_tag_in_data(url: str) -> bool:
    head = _DATA_URL.match(url)
    if head is None:
        return False
    content = unquote_to_bytes(url[head.end() :])
    if holds_tag(content):
        return True
    if "base64" not in head[0].lower():
        return False
    try:
        return holds_tag(base64.b64decode(content + b"=="))
    except (binascii.Error, ValueError):
        return False
