r"""What the main document of a folder says it is: the title of a LaTeX document or book, a web site's description.

Only a document that is surely the folder's own counts: the one at the top, of which there is no second, in a folder
that is no program's. What a title page leaves to be filled in says nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence

from daemon.reconstitute.facts.content import comments, generated, manifests
from daemon.reconstitute.facts.content.text import Text, is_sentence_end, key, last_text, weight
from daemon.reconstitute.recover import Recovered, State

_MOST = 32 << 10
_FEWEST_WORDS = 3
_TEX_COMMENT = re.compile(r"(?<!\\)%.*")
_TEX_CLASS = re.compile(r"^[ \t]*\\documentclass[ \t]*(?:\[[^\]]{0,600}\])?\s{0,9}\{([^{}]{0,80})\}", re.MULTILINE)
_NO_MAIN_CLASS = frozenset({"standalone", "subfiles", "letter", "scrlttr2", "minimal"})
_TEX_TITLE = re.compile(r"\\title[ \t]*(?:\[[^\[\]]{0,400}\])?\s{0,9}\{")
_TEX_NOTE = re.compile(
    r"\\(?:thanks|footnote|footnotemark|vspace|hspace|includegraphics|label)\*?(?:\[[^\]]*\])?\{[^{}]*\}"
)
_TEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+\*?|[\\,;! /])(?:\[[^\[\]]*\])?")
_ADOC = re.compile(r"^:doctype:[ \t]*(?:book|article)\b", re.MULTILINE)
_ADOC_TITLE = re.compile(r"^= (\S.*)$", re.MULTILINE)
_HTML_META = re.compile(r"<meta\b[^<>]{0,1500}>", re.IGNORECASE)
_HTML_NAME = re.compile(r"\bname\s*=\s*[\"']?description\b", re.IGNORECASE)
_HTML_CONTENT = re.compile(r"\bcontent\s*=\s*(?:\"([^\"]{1,1000})\"|'([^']{1,1000})')", re.IGNORECASE)
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def find(name: str, files: Sequence[Recovered]) -> Iterator[tuple[str, Text]]:
    """What the main document of the folder `name` says, with where it stands; at most one of each kind."""
    top = [file for file in files if "/" not in file.relative and file.state is not State.DELETED]
    is_program = any(manifests.is_manifest(file.relative) for file in top)
    for ending, read in ((".tex", _of_tex), (".adoc", _of_adoc)):
        found = [] if is_program else [one for file in top if (one := _read(file, ending, read)) is not None]
        if len(found) == 1:
            yield from _if_said(name, *found[0])
    for file in top:
        if file.relative.lower() in ("index.html", "index.htm") and (one := _read(file, "", _of_html)) is not None:
            yield from _if_said(name, *one)


def _read(file: Recovered, ending: str, read: Callable[[Text], str | None]) -> tuple[str, Text] | None:
    """What a file says that may be the main one; None where it is none of these."""
    text = last_text(file, _MOST) if file.relative.lower().endswith(ending) else None
    said = read(text) if text is not None else None
    return None if text is None or said is None else (said, text)


def _if_said(name: str, said: str, read: Text) -> Iterator[tuple[str, Text]]:
    is_own = weight(said) >= _FEWEST_WORDS and key(said) != key(name) and not generated.is_template(said)
    if is_own and not re.search(r"[\\{}<>]", said):
        yield said, read


def _of_tex(read: Text) -> str | None:
    """Its title, else a sentence in the comment at its top; None where it is only a part of a document."""
    text = _TEX_COMMENT.sub("", read.text)
    kind = _TEX_CLASS.search(text)
    if kind is None or kind[1].strip() in _NO_MAIN_CLASS:
        return None
    begun = _TEX_TITLE.search(text)
    if begun is None:
        said, _ = comments.about(read.relative, read.text)
        return said if is_sentence_end(said) else ""
    inner = _until_closed(text, begun.end())
    for _ in range(3):
        inner = _TEX_NOTE.sub("", inner)
    plain = _TEX_COMMAND.sub(" ", inner.replace(r"\&", "&").replace(r"\%", "%").replace(r"\_", "_"))
    return " ".join(re.sub(r"[{}]|~", " ", plain).replace("---", "—").replace("--", "\u2013").split())


def _until_closed(text: str, at: int) -> str:
    """The text up to the brace that closes what was opened before `at`; empty where none does."""
    depth = 1
    for number, char in enumerate(text[at : at + 2000], at):
        depth += (char == "{") - (char == "}") if text[number - 1] != "\\" else 0
        if not depth:
            return text[at:number]
    return ""


def _of_adoc(read: Text) -> str | None:
    """The title of a book or an article; None of what does not call itself one."""
    title = _ADOC_TITLE.search(read.text) if _ADOC.search(read.text) else None
    return None if title is None else title[1].strip()


def _of_html(read: Text) -> str | None:
    for found in _HTML_META.finditer(_HTML_COMMENT.sub("", read.text)):
        content = _HTML_CONTENT.search(found[0])
        if content is not None and _HTML_NAME.search(found[0]):
            return " ".join(html.unescape(content[1] or content[2]).split())
    return None
