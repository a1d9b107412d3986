"""The commands that can be run as they were: none of scripts that are gone, of programs that never were there, and no
failed install that was not needed.

Guarantees: what is left out or renamed is so by the certain state of the project's files. Pure.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from daemon.reconstitute.facts.session_values import CallStatus
from daemon.reconstitute.facts.shell import outcomes, spellings
from daemon.reconstitute.facts.values import Command
from daemon.reconstitute.recover import Recovered, State

WORKS = frozenset({"build", "run", "test"})
"""What a command is for that shows that the project needs no more to be installed."""


def find(target: str, commands: Sequence[Command], files: Sequence[Recovered]) -> tuple[Command, ...]:
    """Those of the `commands` that can still be run; of a script that was moved in the words of its new path."""
    gone = places(target, files)
    worked = max((one.succeeded.time for one in commands if one.group in WORKS and one.succeeded), default=0)
    known = {(one.command, one.folder) for one in commands}
    found = []
    for one in commands:
        is_unneeded = one.group == "install" and one.last is CallStatus.FAILED and one.failed is not None
        if is_unneeded and one.failed is not None and one.failed.time < worked:
            continue
        if one.exit in outcomes.COULD_NOT_RUN and one.succeeded is None and not one.named:
            continue  # what is not there was never run
        script = script_of(one.command, one.folder)
        now = gone.get(script)
        if now is None:
            found.append(one)
        elif now:
            renamed = _renamed(one, script, now)
            found += [renamed] if renamed is not None and (renamed.command, one.folder) not in known else []
    return tuple(found)


def places(target: str, files: Sequence[Recovered]) -> Mapping[str, str]:
    """The paths beneath the target that are gone, each with where the file is now; empty where it was deleted."""
    deleted = {file.path: file for file in files if file.state is State.DELETED}
    found = {}
    for path, file in deleted.items():
        to, seen = file.moved_to, {path}
        while to in deleted and to not in seen:
            seen.add(to)
            to = deleted[to].moved_to
        is_there = to and to not in deleted
        found[posixpath.relpath(path, target)] = posixpath.relpath(to, target) if is_there else ""
    return found


def script_of(command: str, folder: str) -> str:
    """The path beneath the target of the file that a command may run: its program's, script's or module's."""
    spelled = spellings.of(command, folder)
    if len(spelled) < 2:
        return ""
    program = spelled[1]
    if program == "python" and spelled[2:3] == ("-m",) and len(spelled) > 3:
        program = spelled[3].replace(".", "/") + ".py"
    return posixpath.normpath(posixpath.join(spelled[0], program))


def _renamed(one: Command, script: str, now: str) -> Command | None:
    """The command with the script's new path; None where its words do not have the old one."""
    old, new = (posixpath.relpath(path, one.folder or ".") for path in (script, now))
    words = [(word, f"./{new}" if word.startswith("./") else new) for word in one.command.split()]
    made = " ".join(
        shlex.quote(to) if posixpath.normpath(word) == old and not word.startswith("-") else word for word, to in words
    )
    return None if made == one.command else replace(one, command=made, ran_as=one.command)
