"""The pages over all targets of an output directory: README.md has each tree in a few lines, CHANGES.md each day.

Guarantees: the same entries give the same bytes (no generation time, sorted by path); they are published as a tree of
their own, so that a README.md that is not ours is never touched and no target's tree becomes a part of it.

`environment` has the templates of all pages, set up so that text of others cannot become markup. Guarantees: every
expression is escaped unless it is Markdown of our own making; a name that is not given is an error; what a filter shows
of a revision is redacted. It renders nothing by itself.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import jinja2

from daemon import markdown
from daemon.display import counted
from daemon.errors import OutputRefused
from daemon.filesystem.disk_space import is_full
from daemon.model import Json, Page
from daemon.publish import publish
from daemon.reconstitute.facts.values import key
from daemon.reconstitute.pages import changes
from daemon.reconstitute.pages.changes import Logged
from daemon.reconstitute.pages.file import history
from daemon.reconstitute.pages.folder import overview
from daemon.reconstitute.pages.layout import README, Transcripts
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.questions import PURPOSE
from daemon.reconstitute.recover import CERTAIN, State, evidence
from daemon.redact import redact

_MOST_SUMMARY = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """One target. `folder` is its tree's, relative to the output directory; `files` counts files by grade.

    `summary` is the first sentence of its purpose, or with `is_quoted` what a session said; `newest` the time of the
    last activity, `moment` that of an earlier state (both epoch ms); `known` tells how much is known, in words; `open`
    counts what is left open; `edited` are pages that a person edited, `retired` former pages kept for
    what a person wrote in them; `log` are its newest sessions, oldest first.
    """

    folder: str
    title: str
    summary: str
    is_quoted: bool
    sessions: int
    files: dict[str, int]
    newest: int
    moment: int | None = None
    known: str = ""
    open: int | None = None
    edited: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    log: tuple[Logged, ...] = ()

    @property
    def counts(self) -> str:
        """How much is known of its files, in words; version 0.1 kept only the numbers."""
        if self.known:
            return self.known
        states = [(state, self.files.get(state.value, 0)) for state in State]
        parts = ", ".join(f"{number} {state}" for state, number in states if number)
        return counted(sum(self.files.values()), "file") + (f": {parts}" if parts else "")

    @property
    def unproven(self) -> int:
        """How many files are not certain."""
        return sum(self.files.get(state.value, 0) for state in State if state not in CERTAIN)


def to_json(entry: Entry) -> Json:
    """As it is kept."""
    return asdict(entry)


def from_json(stored: Json) -> Entry:
    """The inverse of to_json; also of what version 0.1 kept."""
    log = tuple(map(Logged.from_json, stored.get("log", ())))
    lists = {name: tuple(stored.get(name, ())) for name in ("edited", "retired")}
    return Entry(**stored | lists | {"log": log})


def index_entry(index: MaterialIndex, transcripts: Transcripts, folder: str) -> Entry:
    """A target's line, from what its pages are made of; `folder` is where its tree was published."""
    facts, material = index.material.facts, index.material
    answer = index.answer(PURPOSE.id)
    sentence = (
        next((statement.text for statement in answer.statements if statement.text.strip() and statement.sources), "")
        if answer
        else ""
    )
    struck = material.record.struck
    first = next((purpose for purpose in facts.purpose if key(purpose) not in struck), None)
    times = [revision.time for file in index.files.values() for revision in file.revisions]
    times += [session.last for session in facts.sessions] + [
        session.session.created for session in material.scope.sessions
    ]
    files = Counter(file.state.value for file in index.files.values())
    return Entry(
        folder,
        index.target,
        sentence or (first.text if first else ""),
        not sentence and first is not None and first.origin.endswith("prompt"),
        len(material.scope.sessions),
        {state.value: files[state.value] for state in State if files[state.value]},
        max(times, default=0),
        material.moment,
        overview.known(material.files) if material.files else "",
        sum(key(point) not in material.record.struck for point in facts.open),
        log=changes.log(facts.sessions, index.titles, transcripts, material.record.summaries, index.target),
    )


def index(entries: Iterable[Entry], edited: Iterable[str] = ()) -> Page:
    """The page; of two entries with the same folder the last counts. `edited` of these pages a person edited."""
    ordered = _ordered(entries)
    lines = [(entry, partial(posixpath.join, entry.folder)) for entry in ordered]
    text = environment().get_template("index.md.j2").render(lines=lines, most=_MOST_SUMMARY, edited=sorted(edited))
    return Page(README, text)


def _ordered(entries: Iterable[Entry]) -> list[Entry]:
    by_folder = {entry.folder: entry for entry in entries}
    return sorted(by_folder.values(), key=lambda entry: (entry.title, entry.moment or 0, entry.folder))


def publish_index(output_root: Path, entries: Iterable[Entry], spare_bytes: int) -> list[str]:
    """Put the pages at the root of the output directory; warnings where something of a person's stands in its way."""
    all_entries = list(entries)
    logs = [(entry.folder, entry.title, entry.log) for entry in _ordered(all_entries) if entry.moment is None]
    days = changes.page(logs)
    present = {name for name in (README, changes.CHANGES) if _current(output_root, name).is_file()}
    try:
        published = publish(output_root, "", [index(all_entries, present), days], spare_bytes=spare_bytes)
        if present != published.current.keys():  # a page was edited, or is as it was, for the first time
            published = publish(output_root, "", [index(all_entries, published.current), days], spare_bytes=spare_bytes)
    except OutputRefused as error:  # the targets' own trees are published; that is what was asked for
        if is_full(error):
            raise
        return [f"no index over all targets was written: {error}"]
    warnings = [f"no index was written: {output_root / page} is not ours and is left" for page in published.taken]
    return warnings + [f"{output_root}: {message}" for message in published.notices]


def _current(output_root: Path, name: str) -> Path:
    """Where the current page stands beside an edited one."""
    stem, suffix = posixpath.splitext(name)
    return output_root / f"{stem}.current{suffix}"


@cache
def environment() -> jinja2.Environment:
    """Templates whose every expression is escaped by `markdown.finalize` unless it is Markdown; compiled once."""
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
        "bare": markdown.bare,
        "cut": markdown.inline,
        "day": markdown.day,
        "moment": markdown.moment,
        "evidence": lambda revision: redact(evidence(revision)),
        "fence": markdown.fence,
        "iso": markdown.iso,
        "prose": markdown.prose,
        "quoted": markdown.quoted,
        "title": markdown.title,
        "tool": history.tool,
        "redacted": lambda text: redact(str(text)),
    }
    environment.globals["counted"] = counted
    environment.globals["link"] = markdown.link
    environment.globals["zone"] = markdown.zone
    return environment
