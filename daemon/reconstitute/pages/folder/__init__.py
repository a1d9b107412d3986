"""A folder's page: the front page of a target, made from its facts, and the shorter pages of the folders beneath it.

Guarantees: lists and tables are bounded and say what they leave out; a front page stays below `MOST_BYTES` by telling
less of everything, not by leaving out a section. It puts the parts together; each part makes its own Markdown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2

from daemon import markdown
from daemon.display import counted
from daemon.model import Page
from daemon.reconstitute.answer import Source
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback, SetbackKind
from daemon.reconstitute.pages.folder.fact_lists import FactLists
from daemon.reconstitute.pages.folder.files_table import MOST_ROWS, FilesTable
from daemon.reconstitute.pages.folder.overview import Overview, known, unlisted
from daemon.reconstitute.pages.folder.timeline import Bounds, Superseded, Timeline
from daemon.reconstitute.pages.layout import Transcripts, between
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Links, Plan
from daemon.reconstitute.pages.statements import Footnotes, ModelAnswers
from daemon.reconstitute.questions import DEAD_ENDS, DECISIONS, OPEN, PURPOSE, RUN

MOST_BYTES = 56_000
"""Bytes of a front page, the Notes section apart."""
_SHARES = 64
"""Steps in which a front page tells less, until it fits."""
_UNANSWERED = frozenset({SetbackKind.STOPPED, SetbackKind.FAILED})
_MOST_SESSIONS = 100
"""Sessions named on the page of an inner folder."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the parts of a page share."""

    links: Links
    notes: Footnotes
    entries: FactLists
    files: FilesTable
    bounds: Bounds
    superseded: Superseded


class Folders:
    """Makes the pages of a target's folders; "" is the target itself."""

    def __init__(
        self, index: MaterialIndex, plan: Plan, transcripts: Transcripts, environment: jinja2.Environment
    ) -> None:
        self._index = index
        self._plan = plan
        self._transcripts = transcripts
        self._environment = environment
        facts = index.material.facts
        self._titles = index.titles | {session.id: session.title for session in facts.sessions}

    def page(self, folder: str) -> Page:
        """The page of one folder."""
        page = self._plan.layout.folder(folder)
        text, notes = self._inner(page, folder) if folder else self._front(page)
        files = [self._index.files[relative] for relative in self._plan.beneath(folder)]
        sources = notes.sources | {file.last.message_id for file in files}
        return Page(page, text.rstrip("\n") + "\n", tuple(sorted(sources - {""})))

    def _parts(self, page: str, folder: str, share: int = _SHARES) -> Parts:
        """The parts of a page, which tell `share` of `_SHARES` of all they could tell."""

        def part(full: int, minimum: int) -> int:
            return max(minimum, full * share // _SHARES)

        links = Links(page, folder, self._index, self._plan, self._transcripts)
        notes = Footnotes(page, self._transcripts, self._titles, links.href, limit=part(200, 80))
        entries = FactLists(links, notes, self._index.material.record.struck, part(80, 5))
        purposes = self._index.material.facts.file_purposes
        rows = part(MOST_ROWS, 20)
        over = Superseded(rule for rule in self._index.material.facts.rules if not entries.is_struck(rule))
        files = FilesTable(
            self._index, self._plan, links, notes, purposes=purposes, titles=self._titles, limit=rows, superseded=over
        )
        bounds = Bounds(part(40, 5), min(300, part(900, 60)), part(8, 2), part(160, 80))
        return Parts(links, notes, entries, files, bounds, over)

    # -- the target --------------------------------------------------------------------------------------------------

    def _front(self, page: str) -> tuple[str, Footnotes]:
        """The front page that tells as much as fits."""
        front, low, high = self._try(page, _SHARES), 0, _SHARES
        if len(front[0].encode()) <= MOST_BYTES:
            return front
        front = self._try(page, 0)
        while high - low > 1:
            share = (low + high) // 2
            tried = self._try(page, share)
            if len(tried[0].encode()) <= MOST_BYTES:
                front, low = tried, share
            else:
                high = share
        return front

    def _try(self, page: str, share: int) -> tuple[str, Footnotes]:
        parts = self._parts(page, "", share)
        return self._render_front(parts), parts.notes

    def _render_front(self, parts: Parts) -> str:
        material = self._index.material
        facts = material.facts
        answers = ModelAnswers(self._index, parts.links, parts.notes)
        return self._environment.get_template("folder.md.j2").render(
            title=posixpath.basename(self._index.target) or self._index.target,
            path=self._index.target,
            moment=material.moment,
            warnings=material.warnings,
            facts=facts,
            files=material.files,
            unlisted=lambda: self._unlisted(parts),
            overview=Overview(facts, self._titles, parts.links, parts.notes, parts.entries),
            timeline=Timeline(
                facts.sessions,
                self._titles,
                parts.links,
                parts.notes,
                bounds=parts.bounds,
                summaries=material.record.summaries,
                superseded=parts.superseded,
                quoted_elsewhere=[*(point.text for point in facts.open), *(point.text for point in facts.rules)],
            ),
            entries=parts.entries,
            setbacks=_not_open([point for point in facts.open if not parts.entries.is_struck(point)], facts.setbacks),
            answers=answers,
            question_ids={"run": RUN.id, "dead_ends": DEAD_ENDS.id, "open": OPEN.id, "decisions": DECISIONS.id},
            purpose=answers.sound(PURPOSE.id),
            model=answers.model(PURPOSE.id),
            files_table=parts.files,
            left_out=self._plan.left_out,
            named=lambda: self._with_titles(parts, answers),
            remarks=[note for note in material.record.notes if note.text.strip() and note.sources],
            notes=parts.notes,
        )

    def _unlisted(self, parts: Parts) -> list[markdown.Markdown]:
        """That programs may have left files which are in no list; what came after what is known is told elsewhere."""
        facts = self._index.material.facts
        programs = [program for program in self._index.programs("") if program.time < facts.standing.known_at]
        return unlisted(programs, facts.sessions, parts.notes)

    def _with_titles(self, parts: Parts, answers: ModelAnswers) -> list[markdown.Markdown]:
        """The paths that a model took up and of which no revision is known."""
        sections = []
        for path, source in sorted(self._index.material.record.recorded, key=lambda pair: pair[0]):
            relative = self._index.relative(path)
            if relative not in self._index.files:
                quote = f": {markdown.quoted(markdown.bare(source.quote), 300)}" if source else ""
                line = f"- {parts.links.name(path)}{quote}{parts.notes.mark(*_cited(source), beside=_quote(source))}"
                statements = answers.statements(self._index.statements(relative) if relative else ())
                sections.append(markdown.Markdown("\n  ".join([line, *statements.splitlines()])))
        return sections

    # -- folders beneath it ------------------------------------------------------------------------------------------

    def _inner(self, page: str, folder: str) -> tuple[str, Footnotes]:
        parts = self._parts(page, folder)
        files = [self._index.files[relative] for relative in self._plan.beneath(folder)]
        programs = self._index.programs(folder)
        sessions = self._index.sessions(files)
        newest = list(reversed(sessions))[:_MOST_SESSIONS]
        text = self._environment.get_template("inner.md.j2").render(
            title=folder,
            up=between(page, self._plan.layout.folder(self._plan.parent(folder))),
            moment=self._index.material.moment,
            known=markdown.Markdown(
                " ".join([f"{known(files)}.", *unlisted(programs, self._index.material.facts.sessions, parts.notes)])
            ),
            purpose=ModelAnswers(self._index, parts.links, parts.notes).statements(self._index.statements(folder)),
            files_table=parts.files.text(folder),
            sessions=[(session, parts.links.session(session.session.id, session.title)) for session in newest],
            more=_omission(sessions, newest),
            notes=parts.notes,
        )
        return text, parts.notes


def _not_open(points: Sequence[OpenPoint], setbacks: Sequence[Setback]) -> list[Setback]:
    """The setbacks without those that are told as open: a request that was stopped, a command that last failed."""
    unanswered = {(point.citation.session_id, point.text) for point in points if point.kind is OpenKind.UNANSWERED}
    failing = {(point.citation.message_id, point.text) for point in points if point.kind is OpenKind.FAILING}
    return [
        setback
        for setback in setbacks
        if not (setback.kind in _UNANSWERED and (setback.citation.session_id, setback.text) in unanswered)
        and not (setback.kind is SetbackKind.COMMAND_FAILED and (setback.citation.message_id, setback.text) in failing)
    ]


def _cited(source: Source | None) -> tuple[Source, ...]:
    return (source,) if source is not None else ()


def _quote(source: Source | None) -> str:
    return source.quote if source is not None else ""


def _omission(all_of: Sequence[object], listed: Sequence[object]) -> str:
    omitted = len(all_of) - len(listed)
    return counted(omitted, "older session") if omitted else ""
