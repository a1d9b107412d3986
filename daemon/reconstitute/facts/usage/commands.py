"""How to run it: the commands that were really run, grouped, with when each last succeeded or failed.

How a command ended `outcomes` tells. What may not have been run at all (behind a failure, in a condition) is left out.
Nothing is taken from a turn that a revert took back as long as the command was run in another one.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from daemon.files.trees import is_beneath
from daemon.reconstitute.facts.content.text import cut
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts, Turn
from daemon.reconstitute.facts.shell import error_line, groups, outcomes, runs, spellings
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.values import Command, Script
from daemon.redact import redact
from daemon.transcript.shell.known_programs.wrappers import Program

_MOST = 300
_ALIKE = 0.85
"""Of two one-offs: from here on the second is the first one, mended."""
_LONGEST_ONE_OFF = 2000


@dataclass(slots=True)
class _Seen:
    """All runs of one command, of this text and group."""

    text: str
    group: str
    runs: list[tuple[Run, Call, Turn, SessionFacts]] = field(default_factory=list)
    is_least: bool = False


def find(
    target: str, sessions: Sequence[SessionFacts], scripts: Sequence[Script] = (), told: Mapping[str, str] | None = None
) -> tuple[Command, ...]:
    """The commands worth knowing to whoever wants to run it, in the order of their groups, then the newest first.

    What a target is for whose name does not tell, `scripts` say by what it runs; `told` is what scripts of the project
    are for, by path.
    """
    named = {spellings.of(one.invocation): one.group for one in scripts}
    seen: dict[tuple[str, str], _Seen] = {}
    for session in sessions:
        for turn in session.turns[session.copied :]:
            for call in turn.calls:
                for run, by_words in of_call(call, session):
                    if is_beneath(run.folder, target):
                        group = _in_project(run, by_words, target, named, told or {})
                        text = _shown(run)
                        name = _check(seen, text, run, session) if group == "check" else (text, run.folder)
                        seen.setdefault(name, _Seen(text, group)).runs.append((run, call, turn, session))
    for facts in sessions:
        for one in (one for turn in facts.turns[facts.copied :] if not turn.taken_back for one in turn.calls):
            for run in outcomes.of_call(one, facts.session.directory):
                if not run.is_started and (known := seen.get((_shown(run), run.folder))) is not None:
                    known.is_least = True
    made = [(_command(target, one), max(run[1].started for run in one.runs)) for one in seen.values()]
    order = {group: number for number, group in enumerate(groups.GROUPS)}
    kept = [pair for pair in made if pair[0].group != "check" or (pair[0].succeeded and pair[0].failed)]
    kept.sort(key=lambda pair: (order[pair[0].group], -pair[1], pair[0].command, pair[0].folder))
    return tuple(command for command, _ in kept)


def _shown(run: Run) -> str:
    return " ".join(redact(" ".join([*run.assigned, run.text])).split())


def marked(commands: Sequence[Command], readmes: str, scripts: Sequence[Script]) -> tuple[Command, ...]:
    """The commands, with those that the text of the READMEs or a script of the project names marked as such."""
    said = f" {' '.join(readmes.split())} "
    called = set(spellings.in_text(readmes))
    for script in scripts:
        spelled = spellings.of(script.invocation)
        called |= {spelled, spellings.of(script.runs, spelled[0] if spelled else "")}
        called |= {spelled[:-1]} if script.is_default else set()
    return tuple(replace(one, named=_is_named(one, called) or _is_said(one.command, said)) for one in commands)


def _is_named(one: Command, called: AbstractSet[spellings.Spelling]) -> bool:
    spelled = spellings.of(one.command, one.folder)
    return bool(spelled) and spelled in called


def _is_said(command: str, text: str) -> bool:
    """Whether a text has the command; one of a single word only as code, for it may be a word of the prose."""
    if " " not in command:
        return f"`{command}`" in text
    return re.search(rf"(?<![\w./-]){re.escape(command)}(?![\w/-]|\.\w)", text) is not None


def _check(seen: dict[tuple[str, str], _Seen], said: str, run: Run, session: SessionFacts) -> tuple[str, str]:
    """The key of a one-off: that of a nearly equal one of the same session, which it repeats in other words."""
    for (text, folder), known in seen.items():
        is_other = folder != run.folder or known.group != "check" or known.runs[0][3].id != session.id
        if not is_other and repeats(text, said):
            return text, folder
    return said, run.folder


def repeats(one: str, other: str) -> bool:
    """Whether a one-off (``python3 -c …``) is another one of the same session, mended or in slightly other words."""
    if max(len(one), len(other)) > _LONGEST_ONE_OFF:
        return one == other
    likeness = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return likeness.quick_ratio() >= _ALIKE and likeness.ratio() >= _ALIKE


def of_call(call: Call, session: SessionFacts) -> Iterator[tuple[Run, str]]:
    """The commands of one shell call that were surely started and are worth telling, in order, with their groups."""
    for run in outcomes.of_call(call, session.session.directory):
        if run.is_started and not run.is_inline and run.folder and (group := _group(run.program)):
            yield run, group


def _in_project(
    run: Run, group: str, target: str, named: Mapping[spellings.Spelling, str], told: Mapping[str, str]
) -> str:
    """What a command is for, by the project's own scripts and targets where its words hardly tell."""
    given = [one.text for one in run.program.arguments]
    if group == "other" and not groups.is_dry_run(run.program.name, given):
        inside = (posixpath.relpath(run.key[0], target), *run.key[1:])
        return next((named[one] for one in (inside, inside[:3]) if one in named), group)
    return (_of_script(run.key, target, told) or group) if group == "run" else group


def _group(program: Program) -> str:
    given = [one.text for one in program.arguments]
    path = program.field.text
    if not program.name:
        return ""
    if path.startswith((".", "/")) or "/" in path:
        known = groups.group_of(program.name, given)
        return known or ("" if path.startswith("/") else groups.script(path, given))
    return groups.group_of(program.name, given)


def _command(target: str, seen: _Seen) -> Command:
    """One command out of all its runs; those of turns that still stand count first."""
    standing = [one for one in seen.runs if not one[2].taken_back]
    runs = sorted(standing or seen.runs, key=lambda one: (one[1].started, one[1].part_id))
    run, call = runs[-1][:2]
    passed = [one for one in runs if one[0].status is CallStatus.OK]
    failed = [one for one in runs if one[0].status is CallStatus.FAILED]
    folder = posixpath.relpath(run.folder, target)
    last = failed[-1][1] if failed else None
    return Command(
        group=seen.group,
        command=cut(seen.text, _MOST),
        folder="" if folder == "." else folder,
        times=len(runs),
        succeeded=_cited(passed[-1]) if passed else None,
        failed=_cited(failed[-1]) if failed else None,
        exit=failed[-1][0].exit if failed else None,
        error=cut(error_line.of(last), _MOST) if last is not None else "",
        last=run.status,
        taken_back=not standing,
        is_least=seen.is_least,
        line_exit=call.exit if run.status is CallStatus.UNKNOWN else None,
    )


def _cited(run: tuple[Run, Call, Turn, SessionFacts]) -> Citation:
    _, call, _, session = run
    return Citation(session.id, call.message_id, call.ended or call.started)


def groups_of(command: str, folder: str = "", told: Mapping[str, str] | None = None) -> Iterator[str]:
    """What each command of a line is for: of a script's or a target's, that is not run here but in `folder`.

    `told` is what the project's own scripts are for, by path.
    """
    for run in runs.of_text(command, posixpath.join("/", folder)):
        group = _of_script(run.key, "/", told or {}) or _group(run.program)
        if run.is_started and not run.is_inline and group not in ("", "check"):
            yield group


def _of_script(key: runs.Key, target: str, told: Mapping[str, str]) -> str:
    """What the project's script is for that is run; empty where it is none that is `told` of."""
    path = posixpath.join(*key[:2]) if len(key) > 1 and key[0] else ""
    return told.get(posixpath.relpath(path, target), "") if path else ""
