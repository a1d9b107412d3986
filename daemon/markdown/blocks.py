"""A whole text of others as inert Markdown that still looks like what it was: paragraphs, lists, quotations, code.

Guarantees (docs/reliability.md, T1): only paragraphs with hard line breaks, lists, block quotes, fences and bold words
are made, and only by this module; every piece of text in them is escaped by daemon.markdown. Links, images, HTML,
headings, tables, footnotes and what a renderer runs, such as Mermaid, are never made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from daemon.display import strip_invisible, visible
from daemon.markdown import Markdown, fence, prose
from daemon.redact import redact

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*([-*+•]|[0-9]{1,4}[.)])[ \t]+(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?=\S)")
_QUOTE = re.compile(r"(?:\s*>)+ ?")
_BOLD = re.compile(r"(?<!\S)\*\*(\w(?:[^*`\\<>\[\]~$@/\ue000\ue001]{0,200}?\w)?:?)\*\*(?![^\s.,;:!?)])")
"""Strong emphasis that every renderer takes for one, of words in which nothing else can begin."""
_MARKS = {"\ue000": "**", "\ue001": "**"}
_LANGUAGES = frozenset({
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "graphql", "html", "ini", "java", "javascript",
    "js", "json", "jsx", "kotlin", "lua", "make", "makefile", "markdown", "md", "php", "pl", "perl", "powershell", "py",
    "python", "rb", "ruby", "rs", "rust", "scala", "scss", "sh", "shell", "sql", "svelte", "swift", "text", "toml",
    "ts", "tsx", "txt", "typescript", "vue", "xml", "yaml", "yml", "zsh",
})  # fmt: skip
"""Languages of fences that are only ever coloured; some others, such as mermaid, are run."""
_DEEPEST = 6
_INDENTED = 4


def blocks(text: str) -> Markdown:
    """`text` as blocks, without a newline at the end; empty where it has no words."""
    safe = visible(text if strip_invisible(text) is text else redact(text))
    lines = safe.replace("\r\n", "\n").expandtabs(4).split("\n")
    output, at = _Blocks(), 0
    while at < len(lines):
        at = output.read(lines, at)
    output.end_paragraph()
    return Markdown(output.text)


def quote(inner: str) -> Markdown:
    """Blocks as a block quote."""
    return Markdown("\n".join(f"> {line}".rstrip(" ") for line in inner.split("\n")))


def language(info: str) -> str:
    """The info string of a fence, if nothing but colours comes of it; else none."""
    return info.lower() if info.lower() in _LANGUAGES else ""


@dataclass(slots=True)
class _Blocks:
    """The blocks so far. `stack` are the open list items, each (indentation in the text, width of the marker here)."""

    text: str = ""
    paragraph: list[str] = field(default_factory=list)
    marker: str = ""
    stack: list[tuple[int, int]] = field(default_factory=list)
    is_after_blank: bool = True
    is_tight: bool = False

    def read(self, lines: Sequence[str], at: int) -> int:
        """Take the block or the line that begins there; where the next one begins."""
        if not lines[at].strip():
            self.end_paragraph()
            self.is_after_blank = True
            return at + 1
        end = self._fence(lines, at) or self._quote(lines, at) or self._aligned(lines, at)
        if not end:
            self._line(lines[at])
            end = at + 1
        self.is_after_blank = False
        return end

    def end_paragraph(self) -> None:
        """Write the paragraph that is being gathered, each of its lines on a line of its own."""
        lines, marker = self.paragraph, self.marker
        self.paragraph, self.marker = [], ""
        if lines:
            self._append("\\\n".join(lines), marker)

    def _fence(self, lines: Sequence[str], at: int) -> int:
        opening = _FENCE.match(lines[at])
        info = lines[at][opening.end() :].split() if opening else []
        if opening is None or any("`" in word for word in info):
            return 0
        mark = opening[1]
        closing = re.compile(rf"\s*{mark[0]}{{{len(mark)},}}\s*")
        end = next((number for number in range(at + 1, len(lines)) if closing.fullmatch(lines[number])), len(lines))
        self._put_fence(lines[at + 1 : end], _indent(lines[at]), language(info[0]) if info else "")
        return end + 1

    def _quote(self, lines: Sequence[str], at: int) -> int:
        if not lines[at].lstrip().startswith(">"):
            return 0
        end = _run(lines, at, lambda line: line.lstrip().startswith(">"))
        self._leave(_indent(lines[at]))
        inner = blocks("\n".join(_QUOTE.sub("", line, count=1) for line in lines[at:end]))
        if inner:
            self._append(quote(inner))
        return end

    def _aligned(self, lines: Sequence[str], at: int) -> int:
        """Lines whose columns matter, a table or indented code, keep them in a fence."""
        indent = _indent(lines[at])
        if lines[at].lstrip().startswith("|"):
            end = _run(lines, at, lambda line: line.lstrip().startswith("|"))
        elif indent >= _INDENTED and self.is_after_blank and not self.stack:
            end = _run(lines, at, lambda line: _indent(line) >= _INDENTED and bool(line.strip()))
        else:
            return 0
        self._put_fence(lines[at:end], indent, "")
        return end

    def _line(self, line: str) -> None:
        item, heading = _ITEM.match(line), _HEADING.match(line)
        if item:
            self._begin_item(_indent(line), item[1])
            self.paragraph = [_inline(line[item.end() :])]
        elif heading:
            self._leave(0)
            title = line[heading.end() :].strip().rstrip("#").replace("**", "").strip()
            self._append(f"**{prose(title)}**" if title else "")
        else:
            if self.is_after_blank:
                self._leave(_indent(line))
            self.paragraph.append(_inline(line))

    def _begin_item(self, indent: int, marker: str) -> None:
        self.end_paragraph()
        had_items, sibling = bool(self.stack), 0
        while self.stack and (indent < self.stack[-1][0] + 2 or len(self.stack) >= _DEEPEST):
            sibling = self.stack.pop()[1]
        self.marker = "- " if marker in "-*+•" else f"{int(marker[:-1])}. "
        # Only an item with the number 1 may follow a line that is no item of its own list.
        may_follow = self.marker in {"- ", "1. "} or sibling > len("- ")
        self.is_tight = had_items and not self.is_after_blank and may_follow
        self.stack.append((indent, len(self.marker)))

    def _leave(self, indent: int) -> None:
        """End the paragraph, and the list items that a block with this indentation is not part of."""
        self.end_paragraph()
        while self.stack and indent <= self.stack[-1][0]:
            self.stack.pop()

    def _put_fence(self, lines: Sequence[str], indent: int, info: str) -> None:
        self._leave(indent)
        self._append(fence("\n".join(line[min(indent, _indent(line)) :] for line in lines), info))

    def _append(self, block: str, marker: str = "") -> None:
        if not block:
            return
        indent = " " * sum(width for _, width in self.stack)
        first, *following = block.split("\n")
        lead = indent[: len(indent) - len(marker)] + marker
        indented = "\n".join([lead + first, *(indent + line if line else "" for line in following)])
        between = "\n" if marker and self.is_tight else "\n\n"
        self.text += f"{between if self.text else ''}{indented}"


def _inline(line: str) -> str:
    """One line, escaped; words between two asterisks each stay bold."""
    markdown = prose(_BOLD.sub("\ue000\\1\ue001", line)) if not _MARKS.keys() & set(line) else prose(line)
    return "".join(_MARKS.get(c, c) for c in markdown) if "\ue000" in markdown and "\ue000" not in line else markdown


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _run(lines: Sequence[str], at: int, belongs: Callable[[str], bool]) -> int:
    return next((number for number in range(at, len(lines)) if not belongs(lines[number])), len(lines))
