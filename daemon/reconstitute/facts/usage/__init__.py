"""How to run the project: the commands that were really run, grouped, with when each last succeeded or failed.

A command that may not have been run at all (behind a failure, in a condition) is left out. So is one that can no longer
be run: of a script that is gone, or of a program that never existed; and a failed install that was not needed. A turn
that a revert took back counts only if the command ran in no other.
"""

from __future__ import annotations

import difflib
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from daemon.files.trees import is_beneath
from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.content import cut
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts, Turn
from daemon.reconstitute.facts.shell import failures, groups, runs, spellings
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.values import Command, Script
from daemon.reconstitute.recover import Recovered, State
from daemon.redact import redact
from daemon.transcript.shell.known_programs import Program

ScriptGroups: TypeAlias = Mapping[str, str]
"""What the project's own scripts are for, by their paths beneath the target."""

_MAX_COMMANDS = 300
_ALIKE = 0.85
"""From this likeness on, a one-off is an earlier one, mended."""
_LONGEST_ONE_OFF = 2000
_WORKS = frozenset({"build", "run", "test"})
"""Once a command of these groups succeeded, nothing more needs to be installed."""


class _RunInTurn(NamedTuple):
    run: Run
    call: Call
    turn: Turn
    session: SessionFacts

    @property
    def citation(self) -> Citation:
        return Citation(self.session.id, self.call.message_id, self.call.ended or self.call.started)


@dataclass(slots=True)
class _CommandRuns:
    """All runs of one command."""

    text: str
    group: str
    runs: list[_RunInTurn] = field(default_factory=list)
    is_least: bool = False


def find(
    target: str,
    sessions: Sequence[SessionFacts],
    scripts: Sequence[Script] = (),
    script_groups: ScriptGroups | None = None,
) -> tuple[Command, ...]:
    """The commands worth knowing to whoever wants to run the project, by group, then newest first.

    `scripts` tell what a target is for whose name does not say it.
    """
    script_groups_by_spelling = {spellings.of(script.invocation): script.group for script in scripts}
    commands: dict[tuple[str, str], _CommandRuns] = {}
    for session in sessions:
        for turn in session.own_turns:
            for call in turn.calls:
                for run, by_words in _of_call(call, session):
                    if is_beneath(run.folder, target):
                        group = _in_project(run, by_words, target, script_groups_by_spelling, script_groups or {})
                        text = _text(run)
                        key = _check_key(commands, text, run, session) if group == "check" else (text, run.folder)
                        command = commands.setdefault(key, _CommandRuns(text, group))
                        command.runs.append(_RunInTurn(run, call, turn, session))
    _mark_least(commands, sessions)
    dated = [
        (_command(target, candidate), max(candidate.call.started for candidate in candidate.runs))
        for candidate in commands.values()
    ]
    order = {group: number for number, group in enumerate(groups.GROUPS)}
    listed = [pair for pair in dated if pair[0].group != "check" or (pair[0].succeeded and pair[0].failed)]
    listed.sort(key=lambda pair: (order[pair[0].group], -pair[1], pair[0].command, pair[0].folder))
    return tuple(command for command, _ in listed)


def _mark_least(commands: Mapping[tuple[str, str], _CommandRuns], sessions: Sequence[SessionFacts]) -> None:
    """Mark the commands that may have been run more often than counted."""
    for session in sessions:
        calls = (call for turn in session.own_turns if not turn.taken_back for call in turn.calls)
        for call in calls:
            for run in shell.of_call(call, session.session.directory):
                if not run.is_started and (known := commands.get((_text(run), run.folder))) is not None:
                    known.is_least = True


def _text(run: Run) -> str:
    return " ".join(redact(" ".join([*run.assigned, run.text])).split())


def _command(target: str, command: _CommandRuns) -> Command:
    """One command out of all its runs; those of turns that were taken back count only if there are no others."""
    valid = [entry for entry in command.runs if not entry.turn.taken_back]
    ordered = sorted(valid or command.runs, key=lambda entry: (entry.call.started, entry.call.part_id))
    last = ordered[-1]
    passed_runs = [entry for entry in ordered if entry.run.status is CallStatus.OK]
    failed_runs = [entry for entry in ordered if entry.run.status is CallStatus.FAILED]
    folder = posixpath.relpath(last.run.folder, target)
    return Command(
        group=command.group,
        command=cut(command.text, _MAX_COMMANDS),
        folder="" if folder == "." else folder,
        times=len(ordered),
        succeeded=passed_runs[-1].citation if passed_runs else None,
        failed=failed_runs[-1].citation if failed_runs else None,
        exit=failed_runs[-1].run.exit if failed_runs else None,
        error=cut(failures.cause(failed_runs[-1].call), _MAX_COMMANDS) if failed_runs else "",
        last=last.run.status,
        taken_back=not valid,
        is_least=command.is_least,
        line_exit=last.call.exit if last.run.status is CallStatus.UNKNOWN else None,
    )


def _check_key(
    commands: Mapping[tuple[str, str], _CommandRuns], text: str, run: Run, session: SessionFacts
) -> tuple[str, str]:
    """The key of a one-off: that of a nearly equal one of the same session, which it repeats in other words."""
    for (candidate, folder), entry in commands.items():
        is_other = folder != run.folder or entry.group != "check" or entry.runs[0].session.id != session.id
        if not is_other and repeats(candidate, text):
            return candidate, folder
    return text, run.folder


def repeats(command: str, earlier: str) -> bool:
    """Whether a one-off (``python3 -c …``) is another one of the same session, mended or slightly reworded."""
    if max(len(command), len(earlier)) > _LONGEST_ONE_OFF:
        return command == earlier
    likeness = difflib.SequenceMatcher(None, command, earlier, autojunk=False)
    return likeness.quick_ratio() >= _ALIKE and likeness.ratio() >= _ALIKE


# -- what a command is for ---------------------------------------------------------------------------------------


def _of_call(call: Call, session: SessionFacts) -> Iterator[tuple[Run, str]]:
    """The commands of one shell call that surely started and are worth showing, in order, with their groups."""
    for run in shell.of_call(call, session.session.directory):
        if run.is_started and not run.is_inline and run.folder and (group := _group(run.program)):
            yield run, group


def _in_project(
    run: Run, group: str, target: str, groups_by_spelling: Mapping[spellings.Spelling, str], script_groups: ScriptGroups
) -> str:
    """What a command is for; if its words hardly say it, by the project's own scripts and targets."""
    args = [argument.text for argument in run.program.arguments]
    if group == "other" and not groups.is_dry_run(run.program.name, args):
        inside = (posixpath.relpath(run.key[0], target), *run.key[1:])
        return next((groups_by_spelling[key] for key in (inside, inside[:3]) if key in groups_by_spelling), group)
    return (_of_script(run.key, target, script_groups) or group) if group == "run" else group


def _group(program: Program) -> str:
    args = [argument.text for argument in program.arguments]
    path = program.field.text
    if not program.name:
        return ""
    if path.startswith((".", "/")) or "/" in path:
        group = groups.group_of(program.name, args)
        return group or ("" if path.startswith("/") else groups.script(path, args))
    return groups.group_of(program.name, args)


def groups_of(command: str, folder: str = "", script_groups: ScriptGroups | None = None) -> Iterator[str]:
    """What each command of a script's or target's line is for, as if it ran in `folder`."""
    for run in runs.of_text(command, posixpath.join("/", folder)):
        group = _of_script(run.key, "/", script_groups or {}) or _group(run.program)
        if run.is_started and not run.is_inline and group not in ("", "check"):
            yield group


def _of_script(key: runs.Key, target: str, script_groups: ScriptGroups) -> str:
    """What the project's script that is run is for; empty if it is none of `script_groups`."""
    path = posixpath.join(*key[:2]) if len(key) > 1 and key[0] else ""
    return script_groups.get(posixpath.relpath(path, target), "") if path else ""


# -- what the project names --------------------------------------------------------------------------------------


def marked(commands: Sequence[Command], readmes: str, scripts: Sequence[Script]) -> tuple[Command, ...]:
    """The commands, with those marked that the text of the READMEs or a script of the project names."""
    readme_line = f" {' '.join(readmes.split())} "
    named_spellings = set(spellings.in_text(readmes))
    for script in scripts:
        spelled = spellings.of(script.invocation)
        named_spellings |= {spelled, spellings.of(script.runs, spelled[0] if spelled else "")}
        named_spellings |= {spelled[:-1]} if script.is_default else set()
    return tuple(
        replace(command, named=_is_named(command, named_spellings) or _is_in_text(command.command, readme_line))
        for command in commands
    )


def _is_named(command: Command, named_spellings: AbstractSet[spellings.Spelling]) -> bool:
    spelled = spellings.of(command.command, command.folder)
    return bool(spelled) and spelled in named_spellings


def _is_in_text(command: str, text: str) -> bool:
    """Whether a text has the command; a single word only as code, because it may be a word of the prose."""
    if " " not in command:
        return f"`{command}`" in text
    return re.search(rf"(?<![\w./-]){re.escape(command)}(?![\w/-]|\.\w)", text) is not None


# -- what can still be run ---------------------------------------------------------------------------------------


def runnable(target: str, commands: Sequence[Command], files: Sequence[Recovered]) -> tuple[Command, ...]:
    """The commands that can still be run; of a script that was moved, with its new path."""
    moved = moved_paths(target, files)
    worked = max(
        (candidate.succeeded.time for candidate in commands if candidate.group in _WORKS and candidate.succeeded),
        default=0,
    )
    seen = {(candidate.command, candidate.folder) for candidate in commands}
    runnable_commands = []
    for command in commands:
        is_failed_install = command.group == "install" and command.last is CallStatus.FAILED
        if is_failed_install and command.failed is not None and command.failed.time < worked:
            continue
        if command.exit in shell.COULD_NOT_RUN and command.succeeded is None and not command.named:
            continue
        script = script_of(command.command, command.folder)
        now = moved.get(script)
        if now is None:
            runnable_commands.append(command)
        elif now:
            renamed = _renamed(command, script, now)
            runnable_commands += (
                [renamed] if renamed is not None and (renamed.command, command.folder) not in seen else []
            )
    return tuple(runnable_commands)


def moved_paths(target: str, files: Sequence[Recovered]) -> Mapping[str, str]:
    """The paths beneath the target that are gone, each with where the file is now; empty if it was deleted."""
    deleted = {file.path: file for file in files if file.state is State.DELETED}
    moved = {}
    for path, file in deleted.items():
        to, seen = file.moved_to, {path}
        while to in deleted and to not in seen:
            seen.add(to)
            to = deleted[to].moved_to
        exists = to and to not in deleted
        moved[posixpath.relpath(path, target)] = posixpath.relpath(to, target) if exists else ""
    return moved


def script_of(command: str, folder: str) -> str:
    """The path beneath the target of the file that a command may run: its program's, script's or module's."""
    spelled = spellings.of(command, folder)
    if len(spelled) < 2:
        return ""
    program = spelled[1]
    if program == "python" and spelled[2:3] == ("-m",) and len(spelled) > 3:
        program = spelled[3].replace(".", "/") + ".py"
    return posixpath.normpath(posixpath.join(spelled[0], program))


def _renamed(command: Command, script: str, now: str) -> Command | None:
    """The command with the script's new path; None if its words do not have the old one."""
    old, new = (posixpath.relpath(path, command.folder or ".") for path in (script, now))
    words = [(word, f"./{new}" if word.startswith("./") else new) for word in command.command.split()]
    text = " ".join(
        shlex.quote(to) if posixpath.normpath(word) == old and not word.startswith("-") else word for word, to in words
    )
    return None if text == command.command else replace(command, command=text, ran_as=command.command)
