"""Documents as headings and paragraphs: Markdown, reStructuredText, AsciiDoc, Org and plain text.

Everything that is no prose (front matter, code, tables, lists, comments, directives, badges) ends a paragraph and is
left out. Bounded by the length of the text; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from daemon.reconstitute.facts.content import is_sentence_end, without_markup

_FRONT = re.compile(r"\A\s*(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HTML_HEADING = re.compile(r"<(h[1-6])\b[^>]{0,300}>(.{0,400}?)</\1\s*>", re.DOTALL | re.IGNORECASE)
_HTML_BLOCKS = ("script", "style", "table", "picture", "svg", "video", "pre", "details", "nav", "ul", "ol")
_LONGEST = 4000
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"\s{0,3}(#{1,6})(?:[ \t]+|(?=[^\s#\d]))(.*?)[ \t]*#*\s*")
_UNDERLINE = re.compile(r"\s{0,3}(=+|-+)\s*")
_RST_LINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}\s*")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])(?:\s+|$)")
_DEFINITION = re.compile(r"\s{0,3}\[[^\]]{1,200}\]:\s")
_ADMONITION = re.compile(r"\[!\w+\]|(?:\*\*|__)[^*_]{1,40}:?(?:\*\*|__):?\s*|[\u2600-\u27bf\U0001f300-\U0001faff]")
_RST_ROLE = re.compile(r":[\w:+-]{1,40}:(?=`)")
_RST_LINK = re.compile(r"`([^`<>]{1,300}?)\s*<[^<>]{1,600}>`__?|`([^`<>]{1,300})`__?(?!\w)")
_RST_SUBSTITUTION = re.compile(r"\|[^|\s][^|]{0,80}\|_{0,2}")
_ADOC_LINK = re.compile(r"(?:link:|xref:|https?://)[^\s\[\]]{1,600}\[([^\[\]]{0,300})\]")
_ORG_LINK = re.compile(r"\[\[[^\[\]]{1,600}\]\[([^\[\]]{1,300})\]\]")
_ORG_CODE = re.compile(r"(?<!\w)[=~]([^=~\s](?:[^=~\n]{0,200}[^=~\s])?)[=~](?!\w)")


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (`level` from 1 on) or a paragraph (0): `raw` as it is written, `text` as a reader sees it."""

    level: int
    raw: str
    text: str


KINDS = {
    ".md": "md", ".markdown": "md", ".mdx": "md", ".mkd": "md", ".rmd": "md", ".qmd": "md", ".rst": "rst",
    ".adoc": "adoc", ".asciidoc": "adoc", ".asc": "adoc", ".org": "org", ".txt": "txt", ".text": "txt", "": "md",
}  # fmt: skip
"""The markup language of a document, by the ending of its name."""


_FRONT_TITLE = re.compile(
    r"^title[ \t]*[:=][ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s\"'>|{\[&*!][^\n]*))", re.MULTILINE
)


def front_title(text: str) -> str:
    """The title in the front matter of a Markdown document; empty if there is none on one line."""
    front = _FRONT.match(text)
    match = _FRONT_TITLE.search(front[0]) if front is not None else None
    if match is None:
        return ""
    return without_markup(match[1] or match[2] or re.sub(r"\s#.*", "", match[3]))


def blocks(text: str, kind: str) -> Iterator[Block]:
    """The headings and paragraphs of a document of one of the `KINDS`, in order."""
    if kind == "rst":
        return _rst(text)
    if kind in ("adoc", "org"):
        return _line_blocks(text, kind)
    return _markdown(text)


def _markdown(text: str) -> Iterator[Block]:
    text = _COMMENT.sub("", _FRONT.sub("", text, count=1))
    text = _HTML_HEADING.sub(lambda match: f"\n\n{'#' * int(match[1][1])} {' '.join(match[2].split())}\n\n", text)
    for name in _HTML_BLOCKS:
        text = _without(text, name)
    text = re.sub(r"<br\s*/?>|</?(?:p|div|center)\b[^<>]{0,300}>", "\n\n", text, flags=re.IGNORECASE)
    paragraph: list[str] = []
    fence, skips = "", False
    for line in [*text.split("\n"), ""]:
        opening = _FENCE.match(line)
        if fence:
            fence = "" if opening and opening[1].startswith(fence) else fence
            continue
        heading = _ATX.fullmatch(line)
        if opening or heading or not line.strip():
            yield from _ended(paragraph)
            fence, skips = (opening[1] if opening else ""), False
            if heading:
                yield Block(len(heading[1]), heading[2], without_markup(heading[2]))
        elif _UNDERLINE.fullmatch(line) and paragraph:
            title = " ".join(paragraph)
            paragraph.clear()
            yield Block(1 if "=" in line else 2, title, without_markup(title))
        elif skips or _is_no_prose(line, is_first=not paragraph):
            yield from _ended(paragraph)
            skips = True  # what follows an item, a table or a definition belongs to it
        else:
            sentence = line.strip().removeprefix(">").strip()
            if paragraph and is_sentence_end(paragraph[-1]) and sentence[:1].islower():
                yield from _ended(paragraph)  # no sentence begins like this: it is a separate line
            paragraph.append(sentence)


def _without(text: str, name: str) -> str:
    """`text` without the closed HTML elements of this name."""
    opening = re.compile(rf"<{name}\b", re.IGNORECASE)
    closing = re.compile(rf"</{name}\s{{0,9}}>", re.IGNORECASE)
    pieces, at = [], 0
    while (begun := opening.search(text, at)) and (ended := closing.search(text, begun.end())):
        pieces.append(text[at : begun.start()])
        at = ended.end()
    return "\n\n".join([*pieces, text[at:]])


def _is_no_prose(line: str, *, is_first: bool) -> bool:
    if line.startswith(("    ", "\t")) and is_first:
        return True
    bare = line.strip()
    if bare.startswith(">") and is_first and _ADMONITION.match(bare.lstrip("> ")):
        return True
    return bare.startswith(("|", ":::")) or bool(_ITEM.match(line) or _DEFINITION.match(line))


def _ended(paragraph: list[str]) -> Iterator[Block]:
    raw = " ".join(paragraph)[:_LONGEST].strip()
    paragraph.clear()
    if raw:
        yield Block(0, raw, without_markup(raw))


def _rst(text: str) -> Iterator[Block]:
    """The level of a section follows from the order in which underline characters first appear."""
    styles: list[str] = []
    skips_indented = False
    for chunk in re.split(r"\n[ \t]*\n", text):
        lines = [line.rstrip() for line in chunk.split("\n") if line.strip()]
        if not lines or (skips_indented and lines[0][0] in " \t"):
            continue
        skips_indented = False
        if len(lines) > 2 and _RST_LINE.fullmatch(lines[0]) and _RST_LINE.fullmatch(lines[2]):
            lines = lines[1:]
        if len(lines) > 1 and _RST_LINE.fullmatch(lines[1]) and not _RST_LINE.fullmatch(lines[0]):
            if lines[1][0] not in styles:
                styles.append(lines[1][0])
            yield Block(1 + styles.index(lines[1][0]), lines[0], _rst_plain(lines[0]))
            lines = lines[2:]
        if not lines:
            continue
        skips_indented = lines[0].startswith("..") or lines[-1].endswith("::")
        if lines[0].startswith(("..", ":", " ", "\t", "|", "+-", ">>>")) or _ITEM.match(lines[0]):
            bare = _RST_SUBSTITUTION.sub("", " ".join(lines)).strip()
            if not lines[0].startswith("|") or not bare or bare.startswith(".."):
                continue
        if _RST_LINE.fullmatch(lines[0]):
            continue
        raw = " ".join(lines)[:_LONGEST].removesuffix("::").strip()
        yield Block(0, raw, _rst_plain(raw))


def _rst_plain(text: str) -> str:
    text = _RST_SUBSTITUTION.sub("", _RST_ROLE.sub("", text))
    text = _RST_LINK.sub(lambda match: match[1] or match[2], text)
    return without_markup(text.replace("``", "`"))


_DELIMITERS = re.compile(r"(?:-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|\|={3,})\s*")


def _line_blocks(text: str, kind: str) -> Iterator[Block]:
    """AsciiDoc and Org: headings begin with marks, and so does everything else that is no prose."""
    is_org = kind == "org"
    text = _FRONT.sub("", text, count=1)
    paragraph: list[str] = []
    closing, in_header = "", False
    for line in [*text.split("\n"), ""]:
        bare = line.strip()
        if closing:
            closing = "" if bare.lower() == closing else closing
            continue
        heading = re.match(r"(\*+)\s+(.*)" if is_org else r"(={1,6}|#{1,6})\s+(\S.*)", line)
        title = re.match(r"#\+title:\s*(.*)", bare, re.IGNORECASE) if is_org else None
        begins = _opens(bare, is_org=is_org)
        if not bare or heading or title or begins or in_header or _is_mark(line, is_org=is_org):
            yield from (_of_markup(block, is_org=is_org) for block in _ended(paragraph))
            closing = begins
            in_header = bool(heading and not is_org and len(heading[1]) == 1) or (in_header and bool(bare))
            if heading or title:
                level, name = (1, title[1]) if title else (len(heading[1]), heading[2]) if heading else (1, "")
                yield _of_markup(Block(level, name, name), is_org=is_org)
        else:
            paragraph.append(bare)


def _opens(bare: str, *, is_org: bool) -> str:
    """What closes the block that a line opens; empty if it opens none."""
    if is_org:
        begun = re.match(r"#\+begin_(\w+)", bare, re.IGNORECASE)
        return f"#+end_{begun[1].lower()}" if begun else ":end:" if bare.lower() == ":properties:" else ""
    return bare.lower() if _DELIMITERS.fullmatch(bare) else ""


def _is_mark(line: str, *, is_org: bool) -> bool:
    if _ITEM.match(line) or (is_org and line.lstrip().startswith(("#", "|", ":"))):
        return True
    return not is_org and bool(re.match(r":[\w!-]+:|\[.*\]\s*$|//|\w+::|\.\S|\|", line))


def _of_markup(block: Block, *, is_org: bool) -> Block:
    if is_org:
        text = _ORG_CODE.sub(r"`\1`", _ORG_LINK.sub(r"\1", block.raw))
        text = re.sub(r"\[\[[^\[\]]{1,600}\]\]", "", text)
    else:
        text = re.sub(r"image:[^\s\[\]]{1,600}\[[^\[\]]{0,300}\]", "", block.raw)
        text = _ADOC_LINK.sub(r"\1", text)
    return Block(block.level, block.raw, without_markup(text))
