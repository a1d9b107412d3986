"""A folder's page: what it was for, what is in it, what was decided, and what cannot be told (design section 8).

Guarantees: lists and tables are bounded and say what they leave out; every link leads to a page of the set. It makes
values for the template, and the page from them.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2

from daemon import markdown
from daemon.model import Page
from daemon.recall.snippet import counted
from daemon.reconstitute.answer import Source, Statement
from daemon.reconstitute.pages import said, timeline
from daemon.reconstitute.pages.layout import between
from daemon.reconstitute.pages.material import Known
from daemon.reconstitute.pages.plan import Plan
from daemon.reconstitute.questions import PURPOSE
from daemon.reconstitute.recover import CERTAIN, MEANING, Recovered, State
from daemon.redact import redact

MOST_ROWS = 500
"""Rows of a table or list of a page."""
MOST_QUIET = 20
"""Files of one folder that only snapshots tell of, above which its map counts them instead of naming each."""
MOST_PROGRAMS = 5
"""Programs named that may have written files which no record names."""
_MOST_ABOUT = 160
_MOST_NAME = 60
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Child:
    """One line of a folder's map; `about` is what a model says of it, or a quotation."""

    name: str
    href: str
    summary: str
    about: markdown.Markdown


@dataclass(frozen=True, slots=True)
class Row:
    """One file in a folder's table; `name` is relative to the folder, `href` empty where the file has no page."""

    name: str
    href: str
    file: Recovered


@dataclass(frozen=True, slots=True)
class Named:
    """A path that messages speak of, of which no revision is known, and what a model says of it."""

    name: str
    source: Source | None
    statements: tuple[Statement, ...]


class Folders:
    """Makes the pages of a target's folders; "" is the target itself."""

    def __init__(self, known: Known, plan: Plan, environment: jinja2.Environment) -> None:
        self._known = known
        self._plan = plan
        self._template = environment.get_template("folder.md.j2")

    def page(self, folder: str) -> Page:
        """The page of one folder."""
        known, material = self._known, self._known.material
        page = self._plan.layout.folder(folder)
        files = [known.files[relative] for relative in self._plan.beneath(folder)]
        sessions = known.sessions(files) if folder else list(material.scope.sessions)
        made = [self._purpose(folder)] if folder else said.sections(known)
        asked = [one for one in made if one.question.id != PURPOSE.id and not said.is_own(one.question)]
        target = known.target
        text = self._template.render(
            title=posixpath.join(target, folder) if folder else target,
            is_top=not folder,
            up=between(page, self._plan.layout.folder(self._plan.parent(folder))) if folder else "",
            moment=material.moment,
            counts=counts(files),
            who_answered="" if folder else said.who_answered(made),
            purpose=next((one for one in made if one.question.id == PURPOSE.id), None),
            sections=[one for one in asked if not one.is_empty],
            unanswered=said.unanswered(asked),
            own=[one for one in made if said.is_own(one.question)],
            sessions=sessions,
            warnings=() if folder else material.warnings,
            left_out=0 if folder else self._plan.left_out,
            meanings={state: MEANING[state] for state in State if any(file.state is state for file in files)},
            refs=lambda paths: refs(known, self._plan, page, paths),
            programs=(ran := known.programs(folder))[:MOST_PROGRAMS],
            more_programs=max(0, len(ran) - MOST_PROGRAMS),
            named=() if folder else self._named(),
            notes=() if folder else [one for one in material.record.notes if one.text.strip() and one.sources],
            diagram=None if folder else timeline.diagram(sessions),
            **self._timeline(page, folder, sessions),
            **self._map(folder, page),
            **self._tables(page, folder, files),
        )
        sources = {message for one in made for message in one.sources} | {file.last.message_id for file in files}
        sources |= set() if folder else said.cited(material.record.notes)
        return Page(page, text.rstrip("\n") + "\n", tuple(sorted(sources - {""})))

    def _purpose(self, folder: str) -> said.Section:
        answer = self._known.answer(PURPOSE.id, folder)
        statements = () if answer else self._known.statements(folder)
        waits = self._known.waits(PURPOSE.id, folder)
        return said.section(PURPOSE, answer, self._known.quotes(folder), statements=statements, waits=waits)

    def _named(self) -> list[Named]:
        """The paths that a model took up and of which no revision is known."""
        made = []
        for path, source in sorted(self._known.material.record.recorded, key=lambda pair: pair[0]):
            relative = self._known.relative(path)
            if relative not in self._known.files:
                made.append(Named(relative or path, source, self._known.statements(relative) if relative else ()))
        return made

    # -- tables ------------------------------------------------------------------------------------------------------

    def _tables(self, page: str, folder: str, files: Sequence[Recovered]) -> dict[str, Any]:
        """The rows of a folder's tables, what sessions worked on first, and how many each leaves out."""
        worked_on = [file for file in files if self._known.is_worked_on(file.relative)]
        quiet = [file for file in files if not self._known.is_worked_on(file.relative)]
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
        return Row(name, self._plan.href(page, file.relative), file)

    def _timeline(self, page: str, folder: str, sessions: Sequence[Any]) -> dict[str, Any]:
        """The newest sessions, each with the files of this folder that it touched."""

        def refer(relative: str) -> markdown.Markdown:
            name, href = redact(relative[len(folder) + 1 :] if folder else relative), self._plan.href(page, relative)
            return markdown.link(name, href) if href else markdown.code(name)

        inside = set(self._plan.beneath(folder))
        touched = {i: [name for name in names if name in inside] for i, names in self._known.touched.items()}
        return {
            "entries": timeline.entries(sessions[-MOST_ROWS:], touched, refer),
            "more_sessions": max(0, len(sessions) - MOST_ROWS),
        }

    # -- map ---------------------------------------------------------------------------------------------------------

    def _map(self, folder: str, page: str) -> dict[str, Any]:
        """Direct folders and files, one line each; a folder that only leads to another is named together with it.

        Many files that only snapshots tell of are counted, not named.
        """
        direct, plan = self._plan.direct(folder), self._plan
        quiet = sum(not self._known.is_worked_on(relative) for relative in direct)
        is_crowded = quiet > MOST_QUIET
        children = []
        for inner in plan.folders_in(folder):
            name = (inner[len(folder) + 1 :] if folder else inner) + "/"
            files = [self._known.files[relative] for relative in plan.beneath(inner)]
            about = self._about(inner)
            summary = counts(files) if about else f"{counts(files)} ({self._first_names(inner)})"
            children.append(Child(name, plan.href(page, inner), summary, about))
        for relative in direct:
            if self._known.is_worked_on(relative) or not is_crowded:
                file, name = self._known.files[relative], posixpath.basename(relative)
                summary = f"{file.state}; on disk: {file.disk}"
                children.append(Child(name, plan.href(page, relative), summary, self._about(relative)))
        children.sort(key=lambda child: (not child.name.endswith("/"), child.name))
        return {
            "children": children[:MOST_ROWS],
            "more_children": max(0, len(children) - MOST_ROWS),
            "quiet": quiet if is_crowded else 0,
        }

    def _about(self, relative: str) -> markdown.Markdown:
        """What a model says of a child; else what was said of it, in quotation marks."""
        answered, described = self._known.answered(relative), self._known.description(relative)
        if answered:
            return markdown.prose(redact(answered[0].text), _MOST_ABOUT)
        if described is not None:
            text, reason = (markdown.prose(redact(each), _MOST_ABOUT) for each in (described.text, described.reason))
            return markdown.Markdown(f"{text} ({reason})" if reason else text)
        quotes = self._known.quotes(relative)
        return markdown.quoted(markdown.bare(quotes[0].text), _MOST_ABOUT) if quotes else markdown.Markdown("")

    def _first_names(self, folder: str) -> str:
        """The first files beneath a folder of which nothing is told, those first that sessions worked on."""
        beneath = self._plan.beneath(folder)
        ordered = sorted(beneath, key=lambda name: (not self._known.is_worked_on(name), name.count("/"), name))
        names = [markdown.cut(redact(name[len(folder) + 1 :]), _MOST_NAME) for name in ordered[:_MOST_NAMES]]
        more = len(ordered) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")


def counts(files: Sequence[Recovered]) -> str:
    """``3 files: 2 proven, 1 stale``."""
    often = Counter(file.state for file in files)
    states = [(state, often[state]) for state in State]
    parts = ", ".join(f"{number} {state}" for state, number in states if number)
    return counted(len(files), "file") + (f": {parts}" if parts else "")


def refs(known: Known, plan: Plan, page: str, paths: Iterable[str]) -> list[markdown.Markdown]:
    """Paths a statement speaks of: a link where the set has a page of it, else the name."""
    made = []
    for path in dict.fromkeys(paths):
        relative = known.relative(path)
        href = plan.href(page, relative) if relative else ""
        name = redact(relative or path)
        made.append(markdown.link(name, href) if href else markdown.code(name))
    return made
