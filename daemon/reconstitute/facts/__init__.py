"""The facts of a folder: what its records surely say, worked out by code, each with where it stands.

No model and no search is asked. Nothing depends on the language of the sessions but `rules` and `open`, which name the
languages they know. `sessions` reads records; all else is a pure function of its values: same records, same facts.
"""

from __future__ import annotations

from collections.abc import Sequence

from daemon.model import FileEdit
from daemon.reconstitute.facts import setbacks, standing, undone
from daemon.reconstitute.facts.content.text import last_text
from daemon.reconstitute.facts.decisions import rules
from daemon.reconstitute.facts.open_points import points as open_points
from daemon.reconstitute.facts.purposes import files as file_purposes
from daemon.reconstitute.facts.purposes import folder
from daemon.reconstitute.facts.session_values import SessionFacts
from daemon.reconstitute.facts.shell import spellings
from daemon.reconstitute.facts.usage import commands, runnable, scripts
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
    made = tuple(sessions)
    own = file_purposes.find(files, made)
    named = scripts.find(target, files)
    failures = setbacks.find(made, undone.find(made, files), named)
    ran = commands.find(target, made, named, scripts.kinds(files))
    known = [spellings.of(one.invocation) for one in named] + [spellings.of(one.command, one.folder) for one in ran]
    named += scripts.starts(target, files, folder.readmes(files), known)
    return Facts(
        sessions=made,
        purpose=(own[target],) if target in own else folder.find(target, made, files),
        standing=standing.find(target, made, files, programs, moment),
        commands=runnable.find(target, commands.marked(ran, _readmes(files), named), files),
        scripts=named,
        needs=scripts.needs(target, files),
        setbacks=failures,
        open=open_points.find(made, failures, files),
        rules=rules.find(made, files),
        file_purposes=own,
    )


def _readmes(files: Sequence[Recovered]) -> str:
    return "\n\n".join(read.text for file in folder.readmes(files) if (read := last_text(file)) is not None)
