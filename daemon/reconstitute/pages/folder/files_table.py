"""The files of a folder as a table that a person scans: name, what it is for, how much is known, last change.

Guarantees: a folder of many files has a row for each inner folder; what was moved away is not called deleted; the table
is bounded and says what it leaves out. It makes Markdown from values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daemon import markdown
from daemon.display import counted
from daemon.files import Revision
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts.content import is_build_output
from daemon.reconstitute.facts.values import Purpose, key
from daemon.reconstitute.pages.folder.overview import unknown_folders
from daemon.reconstitute.pages.folder.timeline import Superseded
from daemon.reconstitute.pages.material import MaterialIndex
from daemon.reconstitute.pages.plan import Links, Plan
from daemon.reconstitute.pages.statements import Footnotes, sentence
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact

MOST_ROWS = 200
"""Rows of a table of files, above which they are counted."""
_MOST_FLAT = 60
"""Files up to which those of inner folders stand in the same table."""
_MOST_QUIET = 20
"""Rows of one table that only snapshots tell of, above which they come after all others."""
_MOST_FOR = 90
_MOST_TITLE = 24
_MOST_GONE = 30
_STATE_TEXTS = {
    State.VERIFIED: "exactly",
    State.PROVEN: "exactly",
    State.DELETED: "deleted",
    State.STALE: "an older state",
    State.PARTIAL: "in part",
    State.LOST: "only that it existed",
    State.WITHHELD: "withheld",
}
_LOST_FOLDER = "a folder, its files unknown"
_EXACTLY = "“exactly”: every byte follows from the records"
_LEGEND = "“an older state”: it may have changed since; “in part”: some lines are known."


@dataclass(frozen=True, slots=True)
class _Row:
    name: markdown.Markdown
    purpose: str
    known: str
    change: Revision | None
    is_quiet: bool = False


class FilesTable:
    """The files beneath one folder; `titles` are the sessions' by id, at most `limit` rows."""

    def __init__(
        self,
        index: MaterialIndex,
        plan: Plan,
        links: Links,
        notes: Footnotes,
        *,
        purposes: Mapping[str, Purpose],
        titles: Mapping[str, str],
        superseded: Superseded,
        limit: int = MOST_ROWS,
    ) -> None:
        self._index = index
        self._plan = plan
        self._links = links
        self._notes = notes
        self._purposes = purposes
        self._titles = titles
        self._superseded = superseded
        self._limit = limit

    def text(self, folder: str) -> markdown.Markdown:
        """The table, what is gone, and what is left out; empty where the folder has no file."""
        files = [self._index.files[relative] for relative in self._plan.beneath(folder)]
        existing = [file for file in files if file.state is not State.DELETED]
        folders = self._folded(folder)
        with_pages = [inner for inner in folders if self._is_written(inner)]
        rows = [row for inner in folders if inner not in with_pages and (row := self._folder(inner))]
        inside = tuple(f"{inner}/" for inner in folders)
        rows += [self._file(file) for file in existing if not file.relative.startswith(inside)]
        rows += [row for inner in with_pages if (row := self._folder(inner))]
        if sum(row.is_quiet for row in rows) > _MOST_QUIET:
            rows.sort(key=lambda row: row.is_quiet)  # a snapshot must not drown what sessions worked on
        parts = self._table(rows[: self._limit])
        if len(rows) > self._limit:
            parts.append(f"Not listed: {counted(len(rows) - self._limit, 'more file')}.")
        parts += self._inner([inner for inner in self._plan.folders_in(folder) if inner not in folders])
        parts += self._deleted_files([file for file in files if file.state is State.DELETED])
        return markdown.Markdown("\n\n".join(parts))

    def _folded(self, folder: str) -> list[str]:
        """The inner folders with a row of their own: what a build wrote, and those too large for a short table."""
        folders = self._plan.folders_in(folder)
        rows = len(folders) + self._direct(folder)
        while open_ := [inner for inner in folders if not self._is_written(inner)]:
            inner = min(open_, key=lambda path: (self._direct(path) + len(self._plan.folders_in(path)), path))
            rows += self._direct(inner) + len(self._plan.folders_in(inner)) - 1
            if rows > _MOST_FLAT:
                break
            folders = [path for path in folders if path != inner] + self._plan.folders_in(inner)
        return sorted(folders)

    def _is_written(self, folder: str) -> bool:
        return is_build_output([self._index.files[relative] for relative in self._plan.beneath(folder)])

    def _direct(self, folder: str) -> int:
        """How many files beneath a folder are in none of the folders with a page beneath it."""
        inner = sum(len(self._plan.beneath(path)) for path in self._plan.folders_in(folder))
        return len(self._plan.beneath(folder)) - inner

    def _table(self, rows: Sequence[_Row]) -> list[str]:
        """The table with its legend."""
        if not rows:
            return []
        has_purpose = any(row.purpose for row in rows)
        columns = ["File", *(["What it is for"] if has_purpose else []), "Known", "Last change"]
        lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        for row in rows:
            cells = [row.name, *([row.purpose] if has_purpose else []), row.known, self._change(row)]
            lines.append(f"| {' | '.join(cells)} |")
        is_exact = all(row.known == _STATE_TEXTS[State.PROVEN] for row in rows)
        return ["\n".join(lines), f"{_EXACTLY}." if is_exact else f"{_EXACTLY}; {_LEGEND}"]

    def _change(self, row: _Row) -> str:
        """When and in which session it was changed; what a session only found changed was not changed in it."""
        change = row.change
        if change is None or not change.time:
            return "seen only"
        title = self._titles.get(change.session_id, "")
        where = f" {self._links.session(change.session_id, title, _MOST_TITLE)}" if title else ""
        return f"{markdown.day(change.time)}{' outside OpenCode' if change.is_from_outside else where}"

    def _file(self, file: Recovered) -> _Row:
        is_quiet = not self._index.is_worked_on(file.relative)
        state_text = _LOST_FOLDER if file.is_folder else _STATE_TEXTS[file.state]
        return _Row(self._name(file.path), self._for(file), state_text, file.changed, is_quiet)

    def _folder(self, folder: str) -> _Row | None:
        files = [self._index.files[relative] for relative in self._plan.beneath(folder)]
        existing = [file for file in files if file.state is not State.DELETED and not file.is_folder]
        unknown = unknown_folders(files)
        if all(file.state is State.DELETED for file in files):
            return None
        changes = [change for file in files if (change := file.changed) is not None]
        newest = max(changes, key=lambda change: (change.time, change.session_id), default=None)
        exact = sum(_STATE_TEXTS[file.state] == _STATE_TEXTS[State.PROVEN] for file in existing)
        state_text = _STATE_TEXTS[State.PROVEN] if exact == len(existing) else f"{exact} of {len(existing)} exactly"
        state_text = state_text if existing else "unknown"
        statements = self._index.statements(folder)
        about = "; ".join(filter(None, (counted(len(existing), "file") if existing else "", unknown)))
        about += f": {self._cell(statements[0])}" if statements else ""
        name = self._links.label(f"{self._index.target}/{folder}") + "/"
        label = markdown.link(name, self._plan.href(self._links.page, folder))
        is_quiet = not any(self._index.is_worked_on(file.relative) for file in files)
        return _Row(label, about, state_text, newest, is_quiet)

    def _inner(self, folders: Sequence[str]) -> list[str]:
        """The folders whose files stand in the same table, in a line."""
        names = []
        for inner in folders:
            name = self._links.label(f"{self._index.target}/{inner}") + "/"
            statements = self._index.statements(inner)
            about = f" ({self._cell(statements[0])})" if statements else ""
            names.append(f"{markdown.link(name, self._plan.href(self._links.page, inner))}{about}")
        return [f"Folders: {', '.join(names)}."] if names else []

    def _name(self, path: str) -> markdown.Markdown:
        href = self._links.href(path)
        return markdown.link(self._links.label(path), href) if href else markdown.inline(self._links.label(path))

    def _for(self, file: Recovered) -> str:
        """What a model says of the file; else its own words, or the prompt under which it was written."""
        statements = self._index.statements(file.relative)
        if statements:
            return self._cell(statements[0])
        purpose = self._purposes.get(file.path)
        if purpose is None:
            return ""
        text = markdown.inline(purpose.text, _MOST_FOR)
        struck = self._index.material.record.struck.get(key(purpose))
        if struck is not None:
            return f"~~{text}~~ Struck out by the model: {sentence(struck, self._notes, _MOST_FOR)}"
        if not purpose.origin.endswith("prompt"):
            return text
        prompt_id = purpose.citation.message_id if purpose.citation is not None else ""
        return f"“{text}”{self._superseded.mark(prompt_id, purpose.text, markdown.cut(purpose.text, _MOST_FOR))}"

    def _cell(self, statement: Statement) -> str:
        mark = self._notes.mark(*statement.sources, beside=statement.text)
        return f"{markdown.inline(redact(statement.text).replace('`', ''), _MOST_FOR)}{mark}"

    def _deleted_files(self, files: Sequence[Recovered]) -> list[str]:
        """What was deleted, and what was moved and where to, each in a line."""
        rows = []
        deleted = [self._links.file(file.path) for file in files if not file.moved_to]
        moved = [
            f"{self._links.file(file.path)} → {self._links.file(file.moved_to)}" for file in files if file.moved_to
        ]
        for word, names in (("Deleted", deleted), ("Moved away", moved)):
            note = f" and {len(names) - _MOST_GONE} more" if len(names) > _MOST_GONE else ""
            if names:
                rows.append(f"{word}: {', '.join(names[:_MOST_GONE])}{note}.")
        return rows
