"""Findings become the pages of an output tree (design section 8).

Guarantees: the same findings give the same bytes (no clock, everything sorted, UTC); recorded text is inert; every link
leads to a page of the set or to a heading; secrets in file contents are replaced and the page says so. It writes
nothing: the pages are values.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from daemon.model import Page
from daemon.recall.snippet import counted
from daemon.reconstitute import markdown
from daemon.reconstitute.extract import Extractor, Findings, Passage
from daemon.reconstitute.layout import Layout, ancestors, between
from daemon.reconstitute.questions import DEFAULT, PURPOSE
from daemon.reconstitute.recover import Recovered, State, evidence
from daemon.reconstitute.scope import Involved, Scope, is_beneath
from daemon.redact import redact

MOST_SHOWN = 256 * 1024
"""Characters of a file's content on its page."""
MOST_ROWS = 500
_UNPRINTED = 0.02
OPEN_STATES = frozenset({State.UNPROVEN, State.EARLIER})


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
class Content:
    """A file's content as a page shows it; `text` is None where it is not shown, `notes` say what was changed."""

    text: str | None
    notes: tuple[markdown.Markdown, ...]


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
        self._paged = sorted(self._files)[: max(0, most_pages - len(self._folders))]
        self._pages = dict.fromkeys(self._paged)
        self._session_of = {m: one.session.id for one in material.scope.sessions for m in one.messages}
        self._directories = {
            one.session.id: one.session.directory
            for one in material.scope.sessions
            if one.session.directory not in {"", "/"}  # what holds everything tells nothing apart
        }
        self._described: dict[str, tuple[Passage, ...]] = {}
        self._jinja = _environment()

    @property
    def left_out(self) -> int:
        """How many files have no page of their own because of the limit."""
        return len(self._files) - len(self._paged)

    def pages(self) -> list[Page]:
        """Every page, sorted by path."""
        pages = [self._folder_page(folder) for folder in self._folders]
        pages += [self._file_page(self._files[relative]) for relative in self._paged]
        return sorted(pages, key=lambda page: page.path)

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
        text = self._jinja.get_template("folder.md.j2").render(
            title=posixpath.join(self._material.scope.target, folder) if folder else self._material.scope.target,
            is_top=not folder,
            up=between(page, self._layout.folder(self._parent(folder))) if folder else "",
            moment=self._material.moment,
            rows=[self._row(page, folder, file) for file in files[:MOST_ROWS]],
            more_files=max(0, len(files) - MOST_ROWS),
            counts=_counts(files),
            children=self._children(folder, page),
            findings=findings,
            others=others,
            about=about,
            sessions=sessions[-MOST_ROWS:],
            more_sessions=max(0, len(sessions) - MOST_ROWS),
            unproven=[self._row(page, folder, file) for file in files if file.state in OPEN_STATES][:MOST_ROWS],
            warnings=self._material.warnings if not folder else (),
            left_out=self.left_out if not folder else 0,
        )
        quotes = [passage for found in findings.values() for passage in found.quotes] + list(about)
        sources = {passage.message_id for passage in quotes} | {file.last.message_id for file in files}
        return Page(page, text, tuple(sorted(sources - {""})))

    def _row(self, page: str, folder: str, file: Recovered) -> Row:
        name = file.relative[len(folder) + 1 :] if folder else file.relative
        return Row(name, self._href(page, file.relative), file)

    def _parent(self, folder: str) -> str:
        """The nearest folder above that has a page."""
        for above in reversed(ancestors(folder)):
            if above in self._folders:
                return above
        return ""

    def _children(self, folder: str, page: str) -> list[Child]:
        """Direct files and folders; a folder that only leads to another is named together with it."""
        children = []
        for relative in self._beneath(folder):
            if posixpath.dirname(relative) == folder:
                file = self._files[relative]
                about = self._describe(relative)
                said = about[0].text if about else ""
                children.append(Child(posixpath.basename(relative), self._href(page, relative), _summary(file), said))
        for inner in self._folders:
            if inner and self._parent(inner) == folder:
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
        return [one for one in self._material.scope.sessions if touching & set(one.messages)]

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
        content = shown(file.shown.content, proven=file.shown.proven) if file.shown is not None else Content(None, ())
        titles = {one.session.id: one.title for one in self._material.scope.sessions}
        folder = posixpath.dirname(file.relative)
        text = self._jinja.get_template("file.md.j2").render(
            file=file,
            name=posixpath.basename(file.path),
            up=between(page, self._layout.folder(folder if folder in self._folders else self._parent(folder))),
            about=about,
            content=content,
            guess=shown(file.guess.content, proven=file.guess.proven) if file.guess is not None else Content(None, ()),
            fence_info=markdown.language(file.path),
            revisions=file.revisions[-MOST_ROWS:],
            more_revisions=max(0, len(file.revisions) - MOST_ROWS),
            titles=titles,
            moment=self._material.moment,
        )
        sources = {revision.message_id for revision in file.revisions} | {passage.message_id for passage in about}
        return Page(page, text, tuple(sorted(sources - {""})))


def shown(content: bytes | None, *, proven: bool = True) -> Content:
    """`content` as a page shows it: text, redacted, cut at 256 kB, with a note for everything that is not as it was.

    How a text ends is only said where it is `proven`: a read of OpenCode does not record a last newline.
    """
    if content is None:
        return Content(None, ())
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return _hidden(f"The content ({len(content)} bytes) is not UTF-8 text and is not shown.")
    unprinted = sum(1 for character in text if character < " " and character not in "\t\n\r\f")
    if "\0" in text or unprinted > _UNPRINTED * len(text):
        return _hidden(f"The content ({len(content)} bytes) is binary and is not shown.")
    safe = redact(text)
    part = safe if len(safe) <= MOST_SHOWN else safe[:MOST_SHOWN].rpartition("\n")[0] + "\n"
    lines = part.replace("\r\n", "\n")
    notes = (
        (safe != text, "Secrets in it were replaced by markers."),
        (part != safe, f"Only the first {len(part)} of {len(safe)} characters are shown."),
        (part != lines, "Its lines end in CRLF."),
        (lines != markdown.visible(lines), "Control characters are shown as symbols."),
        (proven and text and not text.endswith(("\n", "\r")), "It has no newline at its end."),
        (not text, "The file is empty."),
    )
    return Content(part, tuple(markdown.Markdown(note) for applies, note in notes if applies))


def _hidden(note: str) -> Content:
    return Content(None, (markdown.Markdown(note),))


def _summary(file: Recovered) -> str:
    return f"{file.state}; on disk: {file.disk}"


def _counts(files: Sequence[Recovered]) -> str:
    """``3 files: 2 proven, 1 not proven``."""
    states = [(state, sum(file.state is state for file in files)) for state in State]
    parts = ", ".join(f"{number} {state}" for state, number in states if number)
    return counted(len(files), "file") + (f": {parts}" if parts else "")


def _environment() -> jinja2.Environment:
    """Templates whose every expression is escaped by `markdown.finalize` unless it is Markdown already."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,  # noqa: S701 - pages are Markdown: finalize escapes for it, HTML escaping would not
        finalize=markdown.finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "code": markdown.code,
        "cut": markdown.inline,
        "evidence": lambda revision: redact(evidence(revision)),
        "fence": markdown.fence,
        "iso": markdown.iso,
        "redacted": lambda text: redact(str(text)),
    }
    environment.globals["counted"] = counted
    environment.globals["link"] = markdown.link
    return environment
