"""The citations of one page as footnotes: numbered in the order in which they are first cited, each once.

Guarantees: a definition begins with plain words, so that no renderer takes it for a link definition; ids of sessions
and messages stand in link targets only; quotes are inert. It makes Markdown and reads nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from daemon import markdown
from daemon.reconstitute.answer import Source
from daemon.reconstitute.facts.values import Citation
from daemon.reconstitute.pages.transcripts import Transcripts
from daemon.redact import redact

_MOST_QUOTE = 200
_MOST_TITLE = 60


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
        self._numbers: dict[tuple[str, str, str, str], int] = {}
        self._definitions: list[markdown.Markdown] = []

    def mark(self, *citations: Citation | Source | None, shown: str = "") -> markdown.Markdown:
        """``[^1][^2]``, the marks of the citations; a quote that is part of the text `shown` is not repeated."""
        numbers = dict.fromkeys(self._number(one, shown) for one in citations if one is not None)
        return markdown.Markdown("".join(f"[^{number}]" for number in numbers))

    @property
    def definitions(self) -> tuple[markdown.Markdown, ...]:
        """The footnotes so far, in order: ``[^1]: 2026-11-21 03:41, [Build the API](…): “quote”``."""
        return tuple(self._definitions)

    @property
    def sources(self) -> set[str]:
        """The ids of the messages cited so far."""
        return {message_id for _, message_id, _, _ in self._numbers}

    def _number(self, cited: Citation | Source, shown: str) -> int:
        quote = "" if _words(cited.quote) in _words(shown) else cited.quote
        key = (cited.session_id, cited.message_id, cited.path, quote)
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            time = cited.created if isinstance(cited, Source) else cited.time
            given = cited.title if isinstance(cited, Source) else ""
            self._definitions.append(self._definition(self._numbers[key], cited, time, given, quote))
        return self._numbers[key]

    def _definition(
        self, number: int, cited: Citation | Source, time: int, title: str, quote: str
    ) -> markdown.Markdown:
        """One footnote: when, in which file, in which session, and the words."""
        label = markdown.cut(markdown.bare(self._titles.get(cited.session_id) or title or "a session"), _MOST_TITLE)
        href = self._transcripts.href(self._page, cited.session_id, cited.message_id)
        where = markdown.link(label, href) if href else markdown.inline(label)
        if cited.path:
            name, page = redact(posixpath.basename(cited.path)), self._file_href(cited.path)
            where = markdown.Markdown(f"{markdown.link(name, page) if page else markdown.inline(name)} after {where}")
        said = f": {markdown.quoted(markdown.bare(quote), self._most)}" if quote.strip() else ""
        return markdown.Markdown(f"[^{number}]: {markdown.moment(time)}, {where}{said}")


def _words(text: str) -> str:
    return " ".join(text.split())
