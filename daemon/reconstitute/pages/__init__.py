"""Findings become the pages of an output tree (docs/pages.md).

Guarantees: the same material gives the same bytes (no clock, everything sorted, UTC); text of others is inert; every
link leads to a page of the set or to a heading; secrets in file contents are replaced and the page says so. It writes
nothing: the pages are values.
"""

from __future__ import annotations

from daemon.model import Page
from daemon.reconstitute.pages.destinations import LinkedPage, linked
from daemon.reconstitute.pages.file import FilePages, size_beside
from daemon.reconstitute.pages.folder import Folders
from daemon.reconstitute.pages.index import Entry, environment, index_entry
from daemon.reconstitute.pages.layout import cited_sessions
from daemon.reconstitute.pages.material import Material, MaterialIndex
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.pages.session import SessionPages

__all__ = ["LinkedPage", "Material", "Renderer"]


class Renderer:
    """Renders one target's material; `most_pages` bounds the set, and a page says what it left out."""

    def __init__(self, material: Material, most_pages: int) -> None:
        self._index = MaterialIndex(material)
        sizes = {file.relative: size_beside(file.certain) for file in material.files}
        facts, self._conversation = material.facts, material.conversation
        with_pages = facts.sessions if self._conversation is not None else ()
        self._plan = Plan(
            sizes, self._index.is_worked_on, most_pages, with_pages, cited_sessions(facts, material.record)
        )
        self._jinja = environment()

    @property
    def left_out(self) -> int:
        """How many files have no page of their own because of the limit."""
        return self._plan.left_out

    def pages(self) -> list[Page]:
        """Every page, sorted by path."""
        folders = Folders(self._index, self._plan, self._plan.transcripts, self._jinja)
        pages = [folders.page(folder) for folder in self._plan.folders]
        files = FilePages(self._index, self._plan, self._jinja)
        for relative in self._plan.files:
            pages += files.pages(self._index.files[relative])
        if self._conversation is not None:
            pages += SessionPages(self._index, self._plan, self._conversation).pages()
        return sorted(pages, key=lambda page: page.path)

    def front(self) -> LinkedPage:
        """The page of the target alone."""
        page = Folders(self._index, self._plan, self._plan.transcripts, self._jinja).page("")
        return linked(page, str(page.content), self._index, self._plan)

    def entry(self, folder: str) -> Entry:
        """The target's line in the index over all targets; `folder` is where its tree was published."""
        return index_entry(self._index, self._plan.transcripts, folder)
