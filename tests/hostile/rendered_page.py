"""What a renderer made of a page: tags, attributes and links, its footnotes apart; and what is foreign in it."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise

from tests.hostile.renderers import WITH_FOOTNOTES
from tests.support.pages.markup import parse

STRUCTURE = {
    "html", "head", "body", "p", "h1", "h2", "h3", "h4", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
    "code", "pre", "blockquote", "br", "details", "summary", "strong", "a", "hr",
}  # fmt: skip
"""All that our own Markdown makes. No emphasis, image, task list or HTML: only a payload could bring those."""
STRUCK = {"del", "s"}
"""What strikes a text through: `del`, or `s` in markdown-it."""
COUNTED = {"h1", "h2", "h3", "h4", "h6", "table", "tr", "li", "pre", "blockquote", "hr", "details"}
_ATTRIBUTES = {"href", "class", "align", "style", "start", "lang"}
_OF_FOOTNOTES = {"id", "aria-describedby", "aria-label", "dir"}
_DEFINITION = re.compile(r"\[\^([\w-]+)\]: ")


class Page(HTMLParser):
    """The tags, attributes and links of a rendered page; what a renderer makes of footnotes is counted by itself.

    `footnotes` are the definitions in the section that it puts at the end, `references` what leads there.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.footnotes: list[str] = []
        self.references: list[str] = []
        self._in_footnotes = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "section" and "data-footnotes" in given:
            self._in_footnotes = True
        elif tag == "sup" or (self._in_footnotes and tag in {"ol", "h2"}):
            pass
        elif "data-footnote-ref" in given:
            self.references.append(given["href"].removeprefix("#"))
        elif self._in_footnotes and tag == "li":
            self.footnotes.append(given["id"])
        elif "data-footnote-backref" not in given:
            self.tags.append(tag)
            self.attributes |= given.keys()
            self.links += [value for name, value in given.items() if name in {"href", "src"}]

    def handle_endtag(self, tag: str) -> None:
        self._in_footnotes = self._in_footnotes and tag != "section"

    def handle_comment(self, data: str) -> None:
        self.tags.append("!--")

    def handle_decl(self, decl: str) -> None:
        self.tags.append("!")

    def handle_pi(self, data: str) -> None:
        self.tags.append("?")


def faults(page: Page, text: str, renderer: str, more: AbstractSet[str] = frozenset()) -> list[str]:
    """What stands on a rendered page that our own Markdown does not make, or `more`; `text` is its source."""
    found = sorted(set(page.tags) - STRUCTURE - more) + sorted(page.attributes - _ATTRIBUTES)
    defined = [match[1] for match in map(_DEFINITION.match, _paragraphs(text)) if match]
    expected = defined if renderer in WITH_FOOTNOTES else []
    if len(page.footnotes) != len(expected):
        found.append(f"{len(page.footnotes)} footnotes instead of {len(expected)}")
    return found + [f"no footnote {one}" for one in set(page.references) ^ set(page.footnotes)]


@cache
def _paragraphs(text: str) -> list[str]:
    """The paragraphs of a page that stand in nothing else."""
    tokens = parse(text)
    return [inline.content for token, inline in pairwise(tokens) if token.type == "paragraph_open" and not token.level]
