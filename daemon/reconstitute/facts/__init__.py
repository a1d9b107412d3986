"""The facts of a folder: what its records certainly say, worked out by code, each with its source.

No model and no search is asked. The walk: `session` reads records into the values of `session_values`; `shell` tells
what their commands did, `content` what files hold, `language` what sentences say. From these `usage`, `purposes`,
`decisions`, `setbacks`, `open_points` and `standing` make the facts in `values`. All but `session` are pure functions:
the same records give the same facts. Only `language` depends on the languages it knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon.model import FileEdit
from daemon.reconstitute.facts import decisions, open_points, purposes, setbacks, standing, usage
from daemon.reconstitute.facts.content import last_text
from daemon.reconstitute.facts.purposes import files as file_purposes
from daemon.reconstitute.facts.purposes.documents import readmes
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.shell import spellings
from daemon.reconstitute.facts.usage import scripts as project_scripts
from daemon.reconstitute.facts.values import Facts
from daemon.reconstitute.recover import Recovered

__all__ = ["Facts", "gather"]


def gather(
    target: str,
    sessions: Sequence[SessionFacts],
    files: Sequence[Recovered],
    programs: Sequence[FileEdit],
    moment: int | None,
) -> Facts:
    """The facts of `target`; `sessions` oldest first, `programs` what may have written files that no record names."""
    sessions = tuple(sessions)
    purpose_of = file_purposes.find(files, sessions)
    scripts = project_scripts.find(files)
    failures = setbacks.find(sessions, files, scripts)
    commands = usage.find(target, sessions, scripts, project_scripts.groups_by_content(files))
    known = [spellings.of(script.invocation) for script in scripts]
    known += [spellings.of(command.command, command.folder) for command in commands]
    scripts += project_scripts.starts(target, files, readmes(files), known)
    return Facts(
        sessions=sessions,
        purpose=(purpose_of[target],) if target in purpose_of else purposes.find(target, sessions, files),
        standing=standing.find(target, sessions, files, programs, moment),
        commands=usage.runnable(target, usage.marked(commands, _text(readmes(files)), scripts), files),
        scripts=scripts,
        needs=project_scripts.needs(files),
        setbacks=failures,
        open=open_points.find(sessions, failures, files),
        rules=decisions.find(sessions, files),
        file_purposes=purpose_of,
    )


def _text(files: Sequence[Recovered]) -> str:
    return "\n\n".join(read.text for file in files if (read := last_text(file)) is not None)
