"""Findings become the pages of an output tree (design section 8).

Guarantees: the same findings give the same bytes (no clock, everything sorted, UTC); recorded text is inert; every link
leads to a page of the set or to a heading; secrets in file contents are replaced and the page says so. It writes
nothing: the pages are values.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.files.disk import Disk
from daemon.files.trees import is_beneath
from daemon.model import Page
from daemon.recall.snippet import counted
from daemon.reconstitute import content, file_page, markdown
from daemon.reconstitute.extract import Extractor, Findings, Passage
from daemon.reconstitute.layout import Layout, ancestors, between
from daemon.reconstitute.pages import environment
from daemon.reconstitute.questions import DEFAULT, PURPOSE
from daemon.reconstitute.recover import CERTAIN, MEANING, Recovered, State
from daemon.reconstitute.scope import Involved, Scope

MOST_ROWS = 500
"""Rows of a table or list of a page."""
MOST_QUIET = 20
"""Files of one folder that only snapshots tell of, above which its map counts them instead of naming each."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a tree is rendered from."""

    scope: Scope
    files: tuple[Recovered, ...]
    findings: tuple[Findings, ...]
    extractor: Extractor
    moment: int | None = None
    warnings: tuple[str, ...] = ()
    shared_names: frozenset[str] = frozenset()  # names that several recorded files have, wherever they are


@dataclass(frozen=True, slots=True)
class Child:
    """One line of a folder's map."""

    name: str
    href: str
    summary: str
    about: str


@dataclass(frozen=True, slots=True)
class Row:
    """One file in a folder's table; `name` is relative to the folder, `href` empty where the file has no page."""

    name: str
    href: str
    file: Recovered


class Renderer:
    """Renders one target's material; `most_pages` bounds the set, and a page says what it left out."""

    def __init__(self, material: Material, most_pages: int) -> None:
        self._material = material
        self._files = {file.relative: file for file in material.files}
        self._layout = Layout(self._files)
        self._inside: dict[str, list[str]] = {}
        for relative in sorted(self._files):
            for folder in ("", *ancestors(relative)):
                self._inside.setdefault(folder, []).append(relative)
        speaking = [folder for folder in self._layout.folders if folder == "" or self._says_something(folder)]
        self._folders = dict.fromkeys(speaking[:most_pages])
        self._folders_in: dict[str, list[str]] = {}
        for folder in self._folders:
            if folder:
                self._folders_in.setdefault(self._parent(folder), []).append(folder)
        # Where not every file can have a page, those that sessions worked on go first.
        worked_on = sorted(self._files, key=lambda relative: (not self._is_worked_on(self._files[relative]), relative))
        self._paged = sorted(worked_on[: max(0, most_pages - len(self._folders))])
        self._pages = dict.fromkeys(self._paged)
        self._session_of = {m: one.session.id for one in material.scope.sessions for m in one.messages}
        self._directories = {
            one.session.id: one.session.directory
            for one in material.scope.sessions
            if one.session.directory not in {"", "/"}  # what holds everything tells nothing apart
        }
        self._titles = {one.session.id: one.title for one in material.scope.sessions}
        self._described: dict[str, tuple[Passage, ...]] = {}
        self._jinja = environment()

    @property
    def left_out(self) -> int:
        """How many files have no page of their own because of the limit."""
        return len(self._files) - len(self._paged)

    def pages(self) -> list[Page]:
        """Every page, sorted by path."""
        pages = [self._folder_page(folder) for folder in self._folders]
        pages += [self._file_page(self._files[relative]) for relative in self._paged]
        return sorted(pages, key=lambda page: page.path)

    def _is_worked_on(self, file: Recovered) -> bool:
        """Whether a session changed or read it; of the others only snapshots of a whole project tell."""
        return file.was_touched or file.path in self._material.scope.touched

    # -- folders -------------------------------------------------------------------------------------------------

    def _says_something(self, folder: str) -> bool:
        """A folder that holds files itself or parts into several; one that only leads to another is passed over."""
        children = {relative[len(folder) + 1 :].split("/")[0] for relative in self._beneath(folder)}
        return len(children) > 1 or any(posixpath.dirname(relative) == folder for relative in self._beneath(folder))

    def _beneath(self, folder: str) -> list[str]:
        return self._inside.get(folder, [])

    def _folder_page(self, folder: str) -> Page:
        page = self._layout.folder(folder)
        files = [self._files[relative] for relative in self._beneath(folder)]
        sessions = self._sessions(files) if folder else self._material.scope.sessions
        about = self._describe(folder) if folder else ()
        findings = {found.question.id: found for found in self._material.findings} if not folder else {}
        others = [found for name, found in findings.items() if name not in {q.id for q in DEFAULT}]
        children = self._children(folder, page)
        text = self._jinja.get_template("folder.md.j2").render(
            title=posixpath.join(self._material.scope.target, folder) if folder else self._material.scope.target,
            is_top=not folder,
            up=between(page, self._layout.folder(self._parent(folder))) if folder else "",
            moment=self._material.moment,
            counts=_counts(files),
            children=children[:MOST_ROWS],
            more_children=max(0, len(children) - MOST_ROWS),
            quiet=self._quiet(folder),
            findings=findings,
            others=others,
            about=about,
            sessions=sessions[-MOST_ROWS:],
            more_sessions=max(0, len(sessions) - MOST_ROWS),
            warnings=self._material.warnings if not folder else (),
            left_out=self.left_out if not folder else 0,
            meanings={state: MEANING[state] for state in State if any(file.state is state for file in files)},
            **self._tables(page, folder, files),
        )
        quotes = [passage for found in findings.values() for passage in found.quotes] + list(about)
        sources = {passage.message_id for passage in quotes} | {file.last.message_id for file in files}
        return Page(page, text, tuple(sorted(sources - {""})))

    def _tables(self, page: str, folder: str, files: Sequence[Recovered]) -> dict[str, Any]:
        """The rows of a folder's tables, what sessions worked on first, and how many each leaves out."""
        worked_on = [file for file in files if self._is_worked_on(file)]
        quiet = [file for file in files if not self._is_worked_on(file)]
        room = MOST_ROWS - min(MOST_ROWS, len(worked_on))
        unproven = [file for file in [*worked_on, *quiet] if file.state not in CERTAIN]
        shown = {"rows": worked_on[:MOST_ROWS], "quiet_rows": quiet[:room], "unproven": unproven[:MOST_ROWS]}
        return {name: [self._row(page, folder, file) for file in some] for name, some in shown.items()} | {
            "more_files": max(0, len(worked_on) - MOST_ROWS),
            "more_quiet": max(0, len(quiet) - room),
            "more_unproven": max(0, len(unproven) - MOST_ROWS),
        }

    def _row(self, page: str, folder: str, file: Recovered) -> Row:
        name = file.relative[len(folder) + 1 :] if folder else file.relative
        return Row(name, self._href(page, file.relative), file)

    def _parent(self, folder: str) -> str:
        """The nearest folder above that has a page."""
        for above in reversed(ancestors(folder)):
            if above in self._folders:
                return above
        return ""

    def _direct(self, folder: str) -> list[str]:
        """The files that lie in the folder itself."""
        return [relative for relative in self._beneath(folder) if posixpath.dirname(relative) == folder]

    def _quiet(self, folder: str) -> int:
        """How many direct files its map does not name, since only snapshots tell of them and they are many."""
        quiet = sum(not self._is_worked_on(self._files[relative]) for relative in self._direct(folder))
        return quiet if quiet > MOST_QUIET else 0

    def _children(self, folder: str, page: str) -> list[Child]:
        """Direct files and folders; a folder that only leads to another is named together with it."""
        children = []
        is_crowded = self._quiet(folder) > 0
        for relative in self._direct(folder):
            file = self._files[relative]
            if self._is_worked_on(file) or not is_crowded:
                about = self._describe(relative)
                said = about[0].text if about else ""
                children.append(Child(posixpath.basename(relative), self._href(page, relative), _summary(file), said))
        for inner in self._folders_in.get(folder, ()):
            files = [self._files[relative] for relative in self._beneath(inner)]
            name = (inner[len(folder) + 1 :] if folder else inner) + "/"
            about = self._describe(inner)
            href = between(page, self._layout.folder(inner))
            children.append(Child(name, href, _counts(files), about[0].text if about else ""))
        return sorted(children, key=lambda child: (not child.name.endswith("/"), child.name))

    def _href(self, page: str, relative: str) -> str:
        """The link to a file's page; empty where the limit left it without one."""
        return between(page, self._layout.file(relative)) if relative in self._pages else ""

    def _sessions(self, files: Iterable[Recovered]) -> list[Involved]:
        touching = {message for file in files for message in self._material.scope.touched.get(file.path, ())}
        ids = {self._session_of[message] for message in touching if message in self._session_of}
        return [one for one in self._material.scope.sessions if one.session.id in ids]

    def _describe(self, relative: str) -> tuple[Passage, ...]:
        """What was said of a file or folder beneath the target."""
        if relative in self._described:
            return self._described[relative]
        absolute = posixpath.join(self._material.scope.target, relative)
        is_file, name = relative in self._files, posixpath.basename(relative)
        short = {relative, name} if is_file else {relative + "/"}
        touching = self._material.scope.touched.get(absolute, frozenset())
        sessions = None
        if not is_file or name in self._material.shared_names:
            sessions = {self._session_of[message] for message in touching if message in self._session_of}
            sessions |= {i for i, folder in self._directories.items() if is_beneath(absolute, folder)}
        self._described[relative] = self._material.extractor.describe(
            {absolute}, PURPOSE, touching, short=short, sessions=sessions
        )
        return self._described[relative]

    # -- files ---------------------------------------------------------------------------------------------------

    def _file_page(self, file: Recovered) -> Page:
        page = self._layout.file(file.relative)
        about = self._describe(file.relative)
        folder = posixpath.dirname(file.relative)
        moment = self._material.moment
        is_there = file.disk is Disk.IDENTICAL
        text = self._jinja.get_template("file.md.j2").render(
            file=file,
            name=posixpath.basename(file.path),
            up=between(page, self._layout.folder(folder if folder in self._folders else self._parent(folder))),
            meaning=MEANING[file.state],
            on_disk=file_page.on_disk(file),
            moves=file_page.moves(file),
            outside=file_page.outside_changes(file),
            about=about,
            content=content.of_revision(file.shown),
            command="" if is_there else file_page.restore_command(file, file.shown, moment),
            guess=content.of_revision(file.guess),
            guess_command=file_page.restore_command(file, file.guess, moment),
            fence_info=markdown.language(file.path),
            writers=file_page.writers(file),
            revisions=file.revisions[-MOST_ROWS:],
            more_revisions=max(0, len(file.revisions) - MOST_ROWS),
            titles=self._titles,
            moment=moment,
        )
        sources = {revision.message_id for revision in file.revisions} | {passage.message_id for passage in about}
        return Page(page, text, tuple(sorted(sources - {""})))


def _summary(file: Recovered) -> str:
    return f"{file.state}; on disk: {file.disk}"


def _counts(files: Sequence[Recovered]) -> str:
    """``3 files: 2 proven, 1 stale``."""
    often = Counter(file.state for file in files)
    states = [(state, often[state]) for state in State]
    parts = ", ".join(f"{number} {state}" for state, number in states if number)
    return counted(len(files), "file") + (f": {parts}" if parts else "")
