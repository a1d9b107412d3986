"""Findings become the pages of an output tree (design section 8).

Guarantees: the same material gives the same bytes (no clock, everything sorted, UTC); text of others is inert; every
link leads to a page of the set or to a heading; secrets in file contents are replaced and the page says so. It writes
nothing: the pages are values.
"""

from __future__ import annotations

import posixpath

from daemon import markdown
from daemon.files.disk import Disk
from daemon.model import Page
from daemon.reconstitute.pages import content, file_page
from daemon.reconstitute.pages.environment import environment
from daemon.reconstitute.pages.folder import Folders, refs
from daemon.reconstitute.pages.index import Entry, entry
from daemon.reconstitute.pages.layout import between
from daemon.reconstitute.pages.material import Known, Material
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.pages.transcripts import Transcripts
from daemon.reconstitute.recover import MEANING, Recovered

__all__ = ["MOST_ROWS", "Material", "Renderer"]

MOST_ROWS = 500
"""Rows of the history of a file."""


class Renderer:
    """Renders one target's material; `most_pages` bounds the set, and a page says what it left out."""

    def __init__(self, material: Material, most_pages: int) -> None:
        self._known = Known(material)
        sizes = {file.relative: content.size_beside(file.shown) for file in material.files}
        self._plan = Plan(sizes, self._known.is_worked_on, most_pages)
        self._transcripts = Transcripts(material.facts.sessions)
        self._jinja = environment()

    @property
    def left_out(self) -> int:
        """How many files have no page of their own because of the limit."""
        return self._plan.left_out

    def pages(self) -> list[Page]:
        """Every page, sorted by path."""
        folders = Folders(self._known, self._plan, self._transcripts, self._jinja)
        pages = [folders.page(folder) for folder in self._plan.folders]
        for relative in self._plan.files:
            pages += self._file_pages(self._known.files[relative])
        return sorted(pages, key=lambda page: page.path)

    def entry(self, folder: str) -> Entry:
        """The target's line in the index over all targets; `folder` is where its tree was published."""
        return entry(self._known, self._transcripts, folder)

    def _file_pages(self, file: Recovered) -> list[Page]:
        """A file's page, and the whole text of a large one beside it."""
        page = self._plan.layout.file(file.relative)
        quotes, statements = self._known.quotes(file.relative), self._known.statements(file.relative)
        moment = self._known.material.moment
        is_there = file.disk is Disk.IDENTICAL
        shown = content.of_revision(file.shown)
        beside = self._plan.beside(file.relative) if shown.whole is not None else ""
        text = self._jinja.get_template("file.md.j2").render(
            file=file,
            name=posixpath.basename(file.path),
            up=between(page, self._plan.layout.folder(self._plan.folder_of(file.relative))),
            meaning=MEANING[file.state],
            on_disk=file_page.on_disk(file),
            moves=file_page.moves(file),
            outside=file_page.outside_changes(file),
            about=quotes,
            statements=statements,
            refs=lambda paths: refs(self._known, self._plan, page, (p for p in paths if p != file.path)),
            content=shown,
            beside=between(page, beside) if beside else "",
            command="" if is_there else file_page.restore_command(file, file.shown, moment),
            guess=content.of_revision(file.guess),
            guess_command=file_page.restore_command(file, file.guess, moment),
            fence_info=markdown.language(file.path),
            writers=file_page.writers(file),
            revisions=file.revisions[-MOST_ROWS:],
            more_revisions=max(0, len(file.revisions) - MOST_ROWS),
            titles=self._known.titles,
            moment=moment,
        )
        sources = {revision.message_id for revision in file.revisions} | {
            source.message_id for one in statements for source in one.sources
        }
        sources |= {passage.message_id for passage in quotes}
        made = [Page(page, text, tuple(sorted(sources - {""})))]
        if beside and shown.whole is not None and file.shown is not None:
            made.append(Page(beside, shown.whole, (file.shown.message_id,) if file.shown.message_id else ()))
        return made
