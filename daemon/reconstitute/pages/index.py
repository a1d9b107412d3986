"""The page over all targets of an output directory: one line for each tree, with what it was for and what is known.

Guarantees: the same entries give the same bytes (no generation time, sorted by path); it is published as a tree of its
own, of one page, so that a README.md that is not ours is never touched and no target's tree becomes a part of it.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from daemon.disk_space import is_full
from daemon.errors import OutputRefused
from daemon.model import Json, Page
from daemon.publish import publish
from daemon.reconstitute.pages.environment import environment
from daemon.reconstitute.pages.layout import README
from daemon.reconstitute.pages.material import Known
from daemon.reconstitute.pages.said import sections
from daemon.reconstitute.questions import PURPOSE
from daemon.reconstitute.recover import CERTAIN, State

_MOST_SUMMARY = 300


@dataclass(frozen=True, slots=True)
class Entry:
    """One target. `folder` is its tree's, relative to the output directory; `files` counts files by grade.

    `summary` is the first statement of its purpose, or with `is_quoted` what a session said; `newest` the time of the
    newest evidence, `moment` that of an earlier state (both epoch ms, UTC).
    """

    folder: str
    title: str
    summary: str
    is_quoted: bool
    sessions: int
    files: dict[str, int]
    newest: int
    moment: int | None = None

    @property
    def counts(self) -> str:
        """``3 files: 2 proven, 1 stale``; how many is said first."""
        states = [(state, self.files.get(state.value, 0)) for state in State]
        parts = ", ".join(f"{number} {state}" for state, number in states if number)
        total = sum(self.files.values())
        return f"{total} file{'' if total == 1 else 's'}" + (f": {parts}" if parts else "")

    @property
    def unproven(self) -> int:
        """How many files are not certain."""
        return sum(self.files.get(state.value, 0) for state in State if state not in CERTAIN)


def to_json(one: Entry) -> Json:
    """As it is kept."""
    return asdict(one)


def from_json(stored: Json) -> Entry:
    """The inverse of to_json."""
    return Entry(**stored)


def entry(known: Known, folder: str) -> Entry:
    """A target's line, from what its pages are made of; `folder` is where its tree was published."""
    purpose = next((one for one in sections(known) if one.question.id == PURPOSE.id), None)
    summary, is_quoted = "", False
    if purpose is not None and purpose.statements:
        summary = purpose.statements[0].text
    elif purpose is not None and purpose.passages:
        summary, is_quoted = purpose.passages[0].text, True
    times = [revision.time for file in known.files.values() for revision in file.revisions]
    times += [turn.ended for one in known.material.scope.facts for turn in one.turns]
    times += [one.session.created for one in known.material.scope.sessions]
    files = Counter(file.state.value for file in known.files.values())
    return Entry(
        folder,
        known.target,
        summary,
        is_quoted,
        len(known.material.scope.sessions),
        {state.value: files[state.value] for state in State if files[state.value]},
        max(times, default=0),
        known.material.moment,
    )


def index(entries: Iterable[Entry]) -> Page:
    """The page; of two entries with the same folder the last counts."""
    by_folder = {one.folder: one for one in entries}
    ordered = sorted(by_folder.values(), key=lambda one: (one.title, one.moment or 0, one.folder))
    lines = [(one, posixpath.join(one.folder, README)) for one in ordered]
    text = environment().get_template("index.md.j2").render(lines=lines, most=_MOST_SUMMARY)
    return Page(README, text)


def publish_index(output_root: Path, entries: Iterable[Entry], spare_bytes: int) -> list[str]:
    """Put the page at the root of the output directory; warnings where something of a person's stands in its way."""
    try:
        published = publish(output_root, "", [index(entries)], spare_bytes=spare_bytes)
    except OutputRefused as error:  # the targets' own trees are published; that is what was asked for
        if is_full(error):
            raise
        return [f"no index over all targets was written: {error}"]
    if published.taken:
        return [f"no index over all targets was written: {output_root / README} is not ours and is left"]
    return [f"{output_root / README} was edited by hand and is kept as it is"] if published.kept else []
