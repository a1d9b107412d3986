"""A page of ours, which is Markdown, as HTML: what `reconstitute PATH` writes, shown in the browser.

The pages hold text of others, which `daemon.markdown` has made inert. Here it stays so: of Markdown only what our pages
use is read, HTML is never passed through, links lead to addresses that the caller gives, and all else is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup, escape

from daemon.display import visible

_RULES = [
    "backticks", "blockquote", "emphasis", "entity", "escape", "fence", "heading", "link", "list", "newline",
    "strikethrough", "table",
]  # fmt: skip
_LABEL = re.compile(r"\[\^([a-z0-9][a-z0-9-]*)\]")
_DEFINITION = re.compile(r"\[\^([a-z0-9][a-z0-9-]*)\]: (.*)")
_SUMMARY = re.compile(r"<details><summary>([^<>]*)</summary>")
_END = "</details>"


def html(text: str, links: Mapping[str, str]) -> Markup:
    """The page; `links` has the address of each link's target. A link without one is shown as its words."""
    body_text, notes = _parted(text)
    numbers = {label: number for number, label in enumerate(notes, start=1)}
    body = _rendered(_parser().parse(body_text, {}), links, numbers)
    if notes:
        rows = [
            f'<li id="note-{label}">{_rendered(_parser().parseInline(words, {}), links, numbers)}</li>'
            for label, words in notes.items()
        ]
        body += f'<section class="notes" aria-label="Sources"><h2>Sources</h2><ol>{"".join(rows)}</ol></section>'
    return Markup(body)  # noqa: S704 - made by the renderer below, which escapes all text


def _parted(text: str) -> tuple[str, dict[str, str]]:
    """The page without the definitions of its notes, which are its last lines, and these by label."""
    lines, notes = text.rstrip().split("\n"), []
    while lines and (not lines[-1] or _DEFINITION.fullmatch(lines[-1])):
        if (match := _DEFINITION.fullmatch(lines.pop())) is not None:
            notes.append((match[1], match[2]))
    return "\n".join(lines), dict(reversed(notes))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("zero").enable(_RULES)
    parser.inline.ruler.before("link", "note", _note)
    parser.block.ruler.before("paragraph", "details", _details, {"alt": ["paragraph", "list", "blockquote"]})
    return parser


def _note(state: StateInline, silent: bool) -> bool:
    """``[^4-12]``."""
    match = _LABEL.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("note", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _details(state: StateBlock, line: int, _end: int, silent: bool) -> bool:
    """A line that opens or closes a fold, which only we write: text of others has its ``<`` escaped."""
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
    opened = _SUMMARY.fullmatch(text)
    if opened is None and text != _END:
        return False
    if not silent:
        token = state.push("fold" if opened else "unfold", "", 0)
        token.content = opened[1] if opened else ""
        state.line = line + 1
    return True


def _rendered(tokens: Sequence[Token], links: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    renderer = _Renderer()
    renderer.numbers = numbers
    return renderer.render(list(_linked(tokens, links)), _parser().options, {})


def _linked(tokens: Sequence[Token], links: Mapping[str, str]) -> Iterator[Token]:
    """The tokens with our addresses in the links; a link that leads nowhere becomes a span."""
    is_known: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            address = links.get(str(token.attrGet("href")), "")
            is_known.append(bool(address))
            token.tag = "a" if address else "span"
            token.attrs = {"href": address} if address else {}
        elif token.type == "link_close":
            token.tag = "a" if is_known.pop() else "span"
        elif token.children:
            token.children = list(_linked(token.children, links))
        yield token


class _Renderer(RendererHTML):
    """Markdown-it's own, which escapes text, code and attributes, with our folds and notes."""

    numbers: Mapping[str, int]

    def text(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Text, its invisible characters by name."""
        return str(escape(visible(tokens[idx].content)))

    def note(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The mark of a source."""
        label = tokens[idx].content
        number = self.numbers.get(label)
        if number is None:
            return str(escape(f"[^{label}]"))
        return f'<sup><a href="#note-{label}" aria-label="Source {number}">{number}</a></sup>'

    def fold(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The beginning of what is folded."""
        return f"<details><summary>{escape(visible(tokens[idx].content))}</summary>\n"

    def unfold(self, *_: Any) -> str:
        """Its end."""
        return "</details>\n"

    def table_open(self, *_: Any) -> str:
        """A table that scrolls by itself where it is too wide."""
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'

    def table_close(self, *_: Any) -> str:
        """Its end."""
        return "</table></div>\n"
