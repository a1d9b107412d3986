"""The citations of one page as footnotes, each once, in the order in which what they cite was said.

Guarantees: a label depends on what is cited alone, so that a fact more or less on a page changes no other lines; a
definition begins with plain words, so that no renderer takes it for a link definition; ids of sessions and messages
stand in link targets only; quotes are inert. It makes Markdown and reads nothing.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import count
from string import ascii_lowercase
from typing import TypeAlias

from daemon import markdown
from daemon.reconstitute.answer import Source
from daemon.reconstitute.facts.session_values import Citation
from daemon.reconstitute.pages.layout import Transcripts
from daemon.redact import redact

_MOST_QUOTE = 200
_MOST_TITLE = 60
_MOST_NAME = 24
_Place: TypeAlias = tuple[int, int, int, str]


class Footnotes:
    """Collects what a page cites. `titles` are the sessions' by id; `file_href` leads from the page to a file's page.

    A quote is cut to `most` characters.
    """

    def __init__(
        self,
        page: str,
        transcripts: Transcripts,
        titles: Mapping[str, str],
        file_href: Callable[[str], str] = lambda _: "",
        *,
        most: int = _MOST_QUOTE,
    ) -> None:
        self._page = page
        self._transcripts = transcripts
        self._titles = titles
        self._file_href = file_href
        self._most = most
        self._labels: dict[tuple[str, str, str, str], str] = {}
        self._definitions: list[tuple[_Place, markdown.Markdown]] = []

    def mark(self, *citations: Citation | Source | None, beside: str = "") -> markdown.Markdown:
        """``[^4-12][^5-1]``, the marks of the citations; a quote that the text `beside` them has is not repeated."""
        labels = dict.fromkeys(self._label(citation, beside) for citation in citations if citation is not None)
        return markdown.Markdown("".join(f"[^{label}]" for label in labels))

    @property
    def definitions(self) -> tuple[markdown.Markdown, ...]:
        """The footnotes so far, oldest sessions first: ``[^4-12]: 2026-11-21 03:41, [Build the API](…): “…”``."""
        return tuple(text for _, text in sorted(self._definitions))

    @property
    def sources(self) -> set[str]:
        """The ids of the messages cited so far."""
        return {message_id for _, message_id, _, _ in self._labels}

    def _label(self, cited: Citation | Source, beside: str) -> str:
        quote = "" if _words(cited.quote) in _words(beside) else cited.quote
        key = (cited.session_id, cited.message_id, cited.path, quote)
        if key not in self._labels:
            time = cited.created if isinstance(cited, Source) else cited.time
            given = cited.title if isinstance(cited, Source) else ""
            session, message = self._transcripts.place(cited.session_id, cited.message_id)
            label = unused(_stem(session, message, key), "\0".join(key), set(self._labels.values()))
            self._labels[key] = label
            defined = self._definition(label, cited, time, given, quote)
            self._definitions.append(((session, message, time, label), defined))
        return self._labels[key]

    def _definition(self, named: str, cited: Citation | Source, time: int, title: str, quote: str) -> markdown.Markdown:
        """One footnote: when, in which file, in which session, and the words."""
        label = markdown.cut(markdown.bare(self._titles.get(cited.session_id) or title or "a session"), _MOST_TITLE)
        href = self._transcripts.href(self._page, cited.session_id, cited.message_id)
        where = markdown.link(label, href) if href else markdown.inline(label)
        if cited.path:
            name, page = redact(posixpath.basename(cited.path)), self._file_href(cited.path)
            where = markdown.Markdown(f"{markdown.link(name, page) if page else markdown.inline(name)} after {where}")
        words = f": {markdown.quoted(markdown.bare(quote), self._most)}" if quote.strip() else ""
        return markdown.Markdown(f"[^{named}]: {markdown.moment(time)}, {where}{words}")


def _stem(session: int, message: int, cited: tuple[str, str, str, str]) -> Iterator[str]:
    """The pieces of a label: which session and message by number, the name of a file, and letters for a quote."""
    session_id, message_id, path, quote = cited
    yield f"{session}-{message}" if session and message else f"s{letters(session_id + message_id, 4)}"
    name = re.sub(r"[^a-z0-9]+", "-", posixpath.basename(redact(path)).lower()).strip("-")
    if path:
        yield name[:_MOST_NAME].strip("-") or "file"
    if quote:
        yield letters(f"{path}\0{quote}", 2)


def unused(stem: Iterable[str], key: str, taken: Collection[str]) -> str:
    """A label of these pieces; if it is `taken`, with letters after it that depend on `key`."""
    pieces = [*stem]
    labels = ("-".join([*pieces, *([letters(key, more)] if more else [])]) for more in count())
    return next(label for label in labels if label not in taken)


def letters(text: str, most: int) -> str:
    """That many letters which depend on `text` alone."""
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return "".join(ascii_lowercase[number // 26**place % 26] for place in range(most))


def _words(text: str) -> str:
    return " ".join(text.split())
