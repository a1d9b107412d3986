"""What a page says in our words and a model's, without what it quotes: to compare the page with that of a clean run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

_OURS = re.compile(r"(?:msg|ses)_\w+|reconstitute \w+")
_QUOTED = ((re.compile(r"(?:\. )?“.*”", re.DOTALL), ""), (re.compile(r" \+\d+(?: −\d+)?"), " +N"))
"""Quotations, and how many lines were written."""
_OF_CONTENT = (
    "Secrets in it were", "Of the diff", "Characters that cannot be seen", "It has no newline", "Only the first",
    "The whole text", "Its lines end", "Nothing:",
    "The content (",
)  # fmt: skip
"""Remarks that depend on the very text that was planted."""
_RECORDED_COLUMNS = {"Session", "File", "Prompt"}


def skeleton(page: str) -> list[str]:
    """A line for each paragraph, item, cell or fence of a page, quotations and recorded names taken out."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    return list(_lines(tokens))


def _lines(tokens: list[Token]) -> Iterator[str]:
    depth = 0
    columns: list[str] = []
    place = 0
    after_quote = False
    kind = ""
    for token in tokens:
        if token.type.startswith("blockquote"):
            depth += token.nesting
            after_quote = True
        elif depth:
            continue
        elif token.type == "fence":
            after_quote = True  # a quoted command; and what a file holds has nothing after it
            if token.info == "mermaid":
                yield "mermaid"
        elif token.type == "tr_open":
            place = 0
        elif token.type == "thead_open":
            columns = []
        elif token.type in {"heading_open", "th_open", "td_open"}:
            kind = token.type
        elif token.type == "inline":
            said = _said(token)
            if kind == "th_open":
                columns.append(said)
            elif kind == "td_open":
                said = "" if columns[place] in _RECORDED_COLUMNS else said
                place += 1
            elif kind == "heading_open" and token.map == [0, 1]:
                said = "title"
            is_quote = said.startswith("—") and after_quote
            after_quote = after_quote and is_quote
            if said and not is_quote and not said.startswith(_OF_CONTENT):
                yield f"{kind}{said}"
            kind = ""


def _said(token: Token) -> str:
    pieces, is_link = [], False
    for child in token.children or []:
        if child.type.startswith("link"):
            is_link = child.nesting > 0
            pieces.append("[]" if is_link else "")
        elif is_link:
            continue
        elif child.type == "code_inline":
            pieces.append(f"`{child.content}`" if _OURS.fullmatch(child.content) else "`…`")
        else:
            pieces.append(child.content)
    said = "".join(pieces)
    for pattern, instead in _QUOTED:
        said = pattern.sub(instead, said)
    return said.strip()
