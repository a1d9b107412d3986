"""Where the links of a written tree lead: the headings and footnotes of each page, as renderers number them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

_PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("text_join")
"""It keeps an escaped mark apart from the text around it."""
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\](:?)")


def broken(pages: Mapping[str, str], others: frozenset[str] = frozenset()) -> list[str]:
    """What is wrong with the links and footnotes of `pages` (text by path); `others` are files that are no pages."""
    anchors = {path: slugs(text) for path, text in pages.items()}
    found = []
    for page, text in pages.items():
        tokens = _PARSER.parse(text)
        hrefs = [str(one.attrs["href"]) for token in tokens for one in token.children or [] if one.type == "link_open"]
        found += [f"{page}: {href}: {why}" for href in hrefs if (why := _wrong(page, href, anchors, others))]
        found += [f"{page}: footnote {why}" for why in _footnotes(tokens)]
    return found


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings as GitHub makes them; equal ones get a number."""
    often: Counter[str] = Counter()
    made = set()
    tokens = _PARSER.parse(text)
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            words = "".join(one.content for one in tokens[number + 1].children or [])
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            made.add(f"{slug}-{often[slug]}" if often[slug] else slug)
            often[slug] += 1
    return made


def _wrong(page: str, href: str, anchors: Mapping[str, set[str]], others: frozenset[str]) -> str:
    path, _, anchor = href.partition("#")
    goal = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(path))) if path else page
    if goal not in anchors:
        return "" if goal in others and not anchor else "no such file"
    return "" if not anchor or unquote(anchor) in anchors[goal] else "no such heading"


def _footnotes(tokens: list[Token]) -> list[str]:
    """Footnotes that are used and not defined, defined and not used, or defined twice."""
    used, defined = set(), Counter[str]()
    for token in tokens:
        children = token.children or []
        for number, child in enumerate(children):
            for match in _FOOTNOTE.finditer(child.content if child.type == "text" else ""):
                begins = match.start() == 0 and (number == 0 or children[number - 1].type == "softbreak")
                if match[2] and begins:
                    defined[match[1]] += 1
                else:
                    used.add(match[1])
    wrong = [f"{name} is not defined" for name in sorted(used - defined.keys())]
    wrong += [f"{name} is not used" for name in sorted(defined.keys() - used)]
    return wrong + [f"{name} is defined {times} times" for name, times in sorted(defined.items()) if times > 1]
