"""What the Markdown tests share: the hostile corpus, and what a parser makes of a page."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

FOLD = re.compile(r"(?:<details><summary>[\w ,]+</summary>|</details>)\n*")
"""The only HTML of our own on a file's page."""
PAYLOADS: list[str] = tomllib.loads((Path(__file__).parents[2] / "hostile" / "markup.toml").read_text())["payload"]


def parse(text: str) -> list[Token]:
    """Every token of a page as GitHub would read it (tables, strikethrough), HTML included."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return list(_flat(parser.parse(text)))


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or [])


def kinds(text: str) -> set[str]:
    return {token.type for token in parse(text)}


def foreign_html(text: str) -> list[str]:
    """Blocks of HTML other than our own folds."""
    blocks = (token.content for token in parse(text) if token.type == "html_block")
    return [block for block in blocks if not FOLD.fullmatch(block)]


def links(text: str) -> list[str]:
    return [str(token.attrs["href"]) for token in parse(text) if token.type == "link_open"]


def words(text: str) -> str:
    """The text a reader sees, without code blocks."""
    return "".join(token.content for token in parse(text) if token.type in {"text", "text_special", "code_inline"})
