"""Which commands failed when they last ran, and whether that still matters.

Only commands that build, test, run or deploy the project. Left out is what the user went on without: a program that
does not exist, an installation that was not needed in the end, a command that a later prompt names, and a failure whose
files are back at the state with which the command passed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.files import Revision
from daemon.files.history import OBSERVATIONS
from daemon.reconstitute.facts.content.text import cut
from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.session.calls import LONGEST_TITLE
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts
from daemon.reconstitute.facts.setbacks import is_unsettled, own_turns
from daemon.reconstitute.facts.shell import error_line, outcomes
from daemon.reconstitute.facts.shell.read_only import fails_on_purpose, is_tool, parts
from daemon.reconstitute.facts.usage import commands
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback, SetbackKind
from daemon.reconstitute.recover import Recovered

CHANGED_SINCE = "files were changed since"
_GROUPS = frozenset({"install", "build", "run", "test", "lint", "migrate", "deploy", "other"})
_WORKS = frozenset({"build", "run", "test"})
_FOLDERS = re.compile(r"(?:^|[;&]\s*)cd\s+(\S+)")
_NO_PROGRAM = 127
"""The shell's status for a program that does not exist."""
_NAME = re.compile(r"[^\W_]{4,}")
"""What a prompt may call a command by: a part of its name."""
_ORDERS = frozenset("make just task start build test check install serve watch lint format clean update".split())  # noqa: SIM905
"""Words of commands with which a sentence may begin that has nothing to do with them."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A command in its turn that stands; `is_last`: the user wrote nothing more in its session."""

    call: Call
    is_last: bool

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(commands.groups_of(self.call.command)) & _GROUPS


def find(
    sessions: Sequence[SessionFacts], setbacks: Sequence[Setback], files: Sequence[Recovered] = ()
) -> Iterator[tuple[OpenPoint, bool]]:
    """Each with whether it is a test, of which only another run of the same tests tells more."""
    runs = sorted((run for facts in sessions for run in _runs(facts)), key=lambda run: run.call.started)
    prompts = [
        (turn.time, turn.prompt)
        for facts in sessions
        for turn in own_turns(facts)
        if not facts.session.parent_id and not turn.taken_back
    ]
    changed = max(map(_last_change, sessions), default=0)
    for text, citation, detail, is_test in _failed(sessions, setbacks):
        run = next((run for run in runs if run.call.message_id == citation.message_id and _has(run.call, text)), None)
        if run is not None and _is_dropped(run, runs, files):
            continue
        is_of_tests = is_test or "test" in commands.groups_of(text)
        if not is_of_tests and any(time > citation.time and _names(prompt, text) for time, prompt in prompts):
            continue
        since = CHANGED_SINCE if changed > citation.time else ""
        yield (
            OpenPoint(OpenKind.FAILING, text, citation.time, citation, "; ".join(filter(None, (detail, since)))),
            is_test,
        )


def _has(call: Call, text: str) -> bool:
    """Whether a setback of this text may be of this call."""
    return text in (call.command, call.title) or any(
        cut(run.text, LONGEST_TITLE) == text for run in outcomes.of_call(call)
    )


def _names(prompt: str, command: str) -> bool:
    """Whether a prompt names a command by its program, or by what a mere runner was to run."""
    called = (
        next((word for word in words if not (word.startswith("-") or outcomes.is_runner(word) or word == "run")), "")
        for _, words in parts(command)
        if not is_tool(words[0])
    )
    names = {name for word in called for name in _NAME.findall(word.rsplit("/", 1)[-1].casefold())}
    return any(
        re.search(rf"(?<![a-z0-9]){re.escape(name)}", said) is not None
        and not (name in _ORDERS and said.startswith(name))
        for said in (sentence.text.casefold() for sentence in sentences.split(prompt))
        for name in names
    )


def place(call: Call) -> tuple[str, ...]:
    """Where a command ran: its folder, and those that it changed to itself."""
    return (call.folder, *_FOLDERS.findall(call.command))


def _failed(sessions: Sequence[SessionFacts], setbacks: Sequence[Setback]) -> Iterator[tuple[str, Citation, str, bool]]:
    """Of each test command the last run, if it failed, and the other commands that failed and never succeeded since.

    An edit that failed leaves the file as it was: a setback, and nothing to be done.
    """
    tests = sorted(((run, facts) for facts in sessions for run in facts.tests), key=lambda pair: pair[0].citation.time)
    latest = {(run.command, run.place): (run, facts) for run, facts in tests}
    failures = (call for facts in sessions for turn in facts.turns for call in turn.calls if call.command)
    causes = {call.message_id: sentences.shorten(error_line.of(call)) for call in failures if call.exit}
    places = defaultdict[str, set[str]](set)
    for command, where in latest:
        places[command].add(where)
    for run, facts in latest.values():
        if not run.passed:
            place = outcomes.where(run, facts.session.directory)
            where = f"in {place or 'the main folder'}" if place or len(places[run.command]) > 1 else ""
            why = run.summary or causes.get(run.citation.message_id, "")
            yield run.command, run.citation, "; ".join(filter(None, (where, why))), True
    commands_of_tests = {run.command for run, _ in tests}
    for setback in setbacks:
        is_failure = setback.kind is SetbackKind.COMMAND_FAILED and not fails_on_purpose(setback.text)
        if is_failure and is_unsettled(setback) and setback.text not in commands_of_tests and _is_worth(setback.text):
            yield setback.text, setback.citation, setback.detail, False


def _is_worth(command: str) -> bool:
    return not _GROUPS.isdisjoint(commands.groups_of(command))


def _runs(facts: SessionFacts) -> Iterator[_Run]:
    turns = [turn for turn in own_turns(facts) if not turn.is_compaction]
    for turn in turns:
        if not turn.taken_back:
            yield from (_Run(call, turn is turns[-1]) for call in turn.calls if call.command)


def _last_change(facts: SessionFacts) -> int:
    """When its calls last changed a file, or a revert did."""
    calls = (call.started for turn in own_turns(facts) for call in turn.calls if call.changed)
    reverts = (revert.undone or revert.time for revert in facts.reverts)
    return max((*calls, *reverts), default=0)


def _is_dropped(failed: _Run, runs: Sequence[_Run], files: Sequence[Recovered]) -> bool:
    """Whether the user went on without it, or what made it fail is gone."""
    groups = failed.groups
    later = [run for run in runs if run.call.started > failed.call.started and run.call.status is CallStatus.OK]
    if failed.call.exit == _NO_PROGRAM and (not failed.is_last or any(groups & run.groups for run in later)):
        return True
    if groups == {"install"} and (not failed.is_last or any(_WORKS & run.groups for run in later)):
        return True
    return _is_back(failed, runs, files)


# -- whether its files are back at the state with which it passed ----------------------------------------------------


def _is_back(failed: _Run, runs: Sequence[_Run], files: Sequence[Recovered]) -> bool:
    """Whether all files that were changed between its last success and its failure have the contents they had then."""
    blamed = outcomes.failed(failed.call) if files else ()
    if not blamed:
        return False
    keys, names = {one.key for one in blamed}, [one.program.name for one in blamed]
    before = (run.call for run in reversed(runs) if run.call.started < failed.call.started)
    may_be = (call for call in before if all(name in call.command for name in names))
    passed = next((call.ended for call in may_be if keys <= {one.key for one in outcomes.passed(call)}), None)
    if passed is None:
        return False
    changed = [file for file in files if _was_changed(file, passed, failed.call.started)]
    return bool(changed) and all(_is_as_before(file, passed) for file in changed)


def _was_changed(file: Recovered, after: int, before: int) -> bool:
    return any(after < one.time < before and one.operation not in OBSERVATIONS for one in file.revisions)


def _is_as_before(file: Recovered, time: int) -> bool:
    before = _content([one for one in file.revisions if one.time <= time])
    return before is not None and before == _content(file.revisions)


def _content(revisions: Sequence[Revision]) -> tuple[bool, bytes] | None:
    """Whether the file is there and what it has, None where that is not known."""
    for revision in reversed(revisions):
        if revision.deleted:
            return False, b""
        if (content := revision.content) is not None:
            return True, content
        if revision.operation not in OBSERVATIONS:
            return None
    return None
