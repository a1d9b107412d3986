"""Which commands failed when they last ran, and whether that still matters.

Only commands that build, test, run or deploy the project count. A failure is left out if the user went on without the
command: a program that does not exist, an installation that was not needed in the end, a command that a later prompt
names. It is also left out if the files are back at the state with which the command passed.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.files import Revision
from daemon.files.history import OBSERVATIONS
from daemon.reconstitute.facts import shell, usage
from daemon.reconstitute.facts.content import cut
from daemon.reconstitute.facts.language import sentences
from daemon.reconstitute.facts.session.calls import LONGEST_TITLE
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, SessionFacts
from daemon.reconstitute.facts.setbacks import is_unsettled
from daemon.reconstitute.facts.shell import failures, groups
from daemon.reconstitute.facts.values import OpenKind, OpenPoint, Setback, SetbackKind
from daemon.reconstitute.recover import Recovered
from daemon.transcript.shell.names import words

CHANGED_SINCE = "files were changed since"
_GROUPS = frozenset({"install", "build", "run", "test", "lint", "migrate", "deploy", "other"})
_WORKS = frozenset({"build", "run", "test"})
_FOLDERS = re.compile(r"(?:^|[;&]\s*)cd\s+(\S+)")
_NO_PROGRAM = 127
"""The shell's status for a program that does not exist."""
_NAME = re.compile(r"[^\W_]{4,}")
"""A part of a command's name, by which a prompt may call it."""
_ORDERS = words("make just task start build test check install serve watch lint format clean update")
"""Words of commands that may also begin a sentence about something else."""


@dataclass(frozen=True, slots=True)
class _CommandCall:
    """A shell call in a turn that was not taken back; `is_last`: the user wrote nothing more in its session."""

    call: Call
    is_last: bool

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(usage.groups_of(self.call.command)) & _GROUPS


def find(
    sessions: Sequence[SessionFacts], setbacks: Sequence[Setback], files: Sequence[Recovered] = ()
) -> Iterator[tuple[OpenPoint, bool]]:
    """Each failure, and whether it is a test: then only another run of the same tests can settle it."""
    calls = sorted(
        (call for facts in sessions for call in _command_calls(facts)), key=lambda candidate: candidate.call.started
    )
    prompts = [
        (turn.time, turn.prompt)
        for facts in sessions
        for turn in facts.own_turns
        if not facts.session.parent_id and not turn.taken_back
    ]
    last_change = max(map(_last_change, sessions), default=0)
    for text, citation, detail, is_test in _failed(sessions, setbacks):
        same_message = (candidate for candidate in calls if candidate.call.message_id == citation.message_id)
        failed = next((candidate for candidate in same_message if _has(candidate.call, text)), None)
        if failed is not None and _is_dropped(failed, calls, files):
            continue
        runs_tests = is_test or "test" in usage.groups_of(text)
        if not runs_tests and any(time > citation.time and _names(prompt, text) for time, prompt in prompts):
            continue
        since = CHANGED_SINCE if last_change > citation.time else ""
        details = "; ".join(filter(None, (detail, since)))
        yield OpenPoint(OpenKind.FAILING, text, citation.time, citation, details), is_test


def _has(call: Call, text: str) -> bool:
    """Whether a setback with this text may be of this call."""
    commands = (cut(run.text, LONGEST_TITLE) for run in shell.of_call(call))
    return text in (call.command, call.title) or text in commands


def _names(prompt: str, command: str) -> bool:
    """Whether a prompt names a command by its program, or by what a mere runner was to run."""
    programs = (
        next((word for word in words if not (word.startswith("-") or groups.is_runner(word) or word == "run")), "")
        for _, words in failures.parts(command)
        if not failures.is_tool(words[0])
    )
    names = {name for word in programs for name in _NAME.findall(word.rsplit("/", 1)[-1].casefold())}
    return any(
        re.search(rf"(?<![a-z0-9]){re.escape(name)}", text) is not None
        and not (name in _ORDERS and text.startswith(name))
        for text in (sentence.text.casefold() for sentence in sentences.split(prompt))
        for name in names
    )


def place(call: Call) -> tuple[str, ...]:
    """Where a command ran: its folder, and the folders that it changed to."""
    return (call.folder, *_FOLDERS.findall(call.command))


def _failed(sessions: Sequence[SessionFacts], setbacks: Sequence[Setback]) -> Iterator[tuple[str, Citation, str, bool]]:
    """The last run of each test command if it failed, and the other commands that failed and never succeeded since.

    A failed edit left the file as it was: it is a setback, but nothing is to be done.
    """
    tests = sorted(((run, facts) for facts in sessions for run in facts.tests), key=lambda pair: pair[0].citation.time)
    latest = {(run.command, run.place): (run, facts) for run, facts in tests}
    calls = (call for facts in sessions for turn in facts.turns for call in turn.calls if call.command)
    causes = {call.message_id: sentences.shorten(failures.cause(call)) for call in calls if call.exit}
    places = defaultdict[str, set[str]](set)
    for command, folder in latest:
        places[command].add(folder)
    for run, facts in latest.values():
        if not run.passed:
            relative = shell.where(run, facts.session.directory)
            where = f"in {relative or 'the main folder'}" if relative or len(places[run.command]) > 1 else ""
            why = run.summary or causes.get(run.citation.message_id, "")
            yield run.command, run.citation, "; ".join(filter(None, (where, why))), True
    test_commands = {run.command for run, _ in tests}
    for setback in setbacks:
        is_failure = setback.kind is SetbackKind.COMMAND_FAILED and not failures.fails_on_purpose(setback.text)
        if is_failure and is_unsettled(setback) and setback.text not in test_commands and _is_worth(setback.text):
            yield setback.text, setback.citation, setback.detail, False


def _is_worth(command: str) -> bool:
    return not _GROUPS.isdisjoint(usage.groups_of(command))


def _command_calls(facts: SessionFacts) -> Iterator[_CommandCall]:
    turns = facts.exchanges
    for turn in turns:
        if not turn.taken_back:
            yield from (_CommandCall(call, turn is turns[-1]) for call in turn.calls if call.command)


def _last_change(facts: SessionFacts) -> int:
    """When its calls last changed a file, or a revert did."""
    calls = (call.started for turn in facts.own_turns for call in turn.calls if call.changed)
    reverts = (revert.undone or revert.time for revert in facts.reverts)
    return max((*calls, *reverts), default=0)


def _is_dropped(failed: _CommandCall, calls: Sequence[_CommandCall], files: Sequence[Recovered]) -> bool:
    """Whether the user went on without it, or the cause of the failure is gone."""
    later = [
        candidate
        for candidate in calls
        if candidate.call.started > failed.call.started and candidate.call.status is CallStatus.OK
    ]
    if failed.call.exit == _NO_PROGRAM and (
        not failed.is_last or any(failed.groups & candidate.groups for candidate in later)
    ):
        return True
    if failed.groups == {"install"} and (not failed.is_last or any(_WORKS & candidate.groups for candidate in later)):
        return True
    return _is_back(failed, calls, files)


# -- whether the files are back at the state with which it passed ------------------------------------------------


def _is_back(failed: _CommandCall, calls: Sequence[_CommandCall], files: Sequence[Recovered]) -> bool:
    """Whether all files that changed between the last success and the failure have their contents of then again."""
    blamed = shell.failed(failed.call) if files else ()
    if not blamed:
        return False
    keys, names = {run.key for run in blamed}, [run.program.name for run in blamed]
    before = (candidate.call for candidate in reversed(calls) if candidate.call.started < failed.call.started)
    attempts = (call for call in before if all(name in call.command for name in names))
    passed_at = next((call.ended for call in attempts if keys <= {run.key for run in shell.passed(call)}), None)
    if passed_at is None:
        return False
    changed_files = [file for file in files if _was_changed(file, passed_at, failed.call.started)]
    return bool(changed_files) and all(_is_as_before(file, passed_at) for file in changed_files)


def _was_changed(file: Recovered, after: int, before: int) -> bool:
    return any(after < revision.time < before and revision.operation not in OBSERVATIONS for revision in file.revisions)


def _is_as_before(file: Recovered, time: int) -> bool:
    before = _content([revision for revision in file.revisions if revision.time <= time])
    return before is not None and before == _content(file.revisions)


def _content(revisions: Sequence[Revision]) -> tuple[bool, bytes] | None:
    """Whether the file exists, and its content; None if that is not known."""
    for revision in reversed(revisions):
        if revision.deleted:
            return False, b""
        if (content := revision.content) is not None:
            return True, content
        if revision.operation not in OBSERVATIONS:
            return None
    return None
