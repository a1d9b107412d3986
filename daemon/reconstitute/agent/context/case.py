"""What is known of a target before a model is asked, and the part of it that every question begins with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from daemon.archive import Archive
from daemon.files import FileHistory, Files
from daemon.files.trees import is_beneath
from daemon.recall.search import Recall
from daemon.reconstitute.agent.context.blocks import name, utc
from daemon.reconstitute.agent.notes import Notes
from daemon.reconstitute.facts import Facts
from daemon.reconstitute.questions import Question
from daemon.reconstitute.recover import Recovered
from daemon.reconstitute.scope import Scope
from daemon.reconstitute.searches import Searches

_MOST_FILES = 60
_MOST_SESSIONS = 12


@dataclass(frozen=True, slots=True)
class Holdings:
    """What is searched and read, whatever the target."""

    archive: Archive
    recall: Recall
    files: Files
    notes: Notes | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A target at a moment (epoch ms, None: now); `suffix` tells the moments of a target apart in the archive."""

    path: str
    moment: int | None
    suffix: str
    scope: Scope
    histories: Sequence[FileHistory]
    files: Sequence[Recovered]
    questions: Sequence[Question]
    searches: Searches
    quoted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By question id: the messages whose passages answer a person's own question without a model, best first."""
    facts: Facts = field(default_factory=Facts)

    def outline(self, path: str) -> list[str]:
        """Lines about the files at or beneath `path` and the newest sessions; recorded names among them, cleaned."""
        inside = [file for file in self.files if is_beneath(file.path, path)]
        worked_on = [file for file in inside if file.was_touched or file.path in self.scope.touched]
        lines = [f"{len(inside)} files are recorded, sessions worked on {len(worked_on)} of them"]
        lines += [f"file {name(file.relative)}: {file.state}" for file in worked_on[:_MOST_FILES]]
        if len(worked_on) > _MOST_FILES:
            lines.append(f"and {len(worked_on) - _MOST_FILES} more files: list_files names them")
        sessions = self.scope.sessions
        if len(sessions) > _MOST_SESSIONS:
            lines.append(f"{len(sessions)} sessions had to do with it; the newest are:")
        for one in sessions[-_MOST_SESSIONS:]:
            lines.append(f'session of {utc(one.session.created)[:10]}: "{name(one.title) or "without title"}"')
        return lines
