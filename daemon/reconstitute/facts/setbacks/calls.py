"""Calls that failed, were refused or stopped, and what overcame them.

The same thing is one entry, however often it failed: a command, or the edits of a file in a session. What failed after
the last success is another entry. A search without a match is no failure.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import NamedTuple

from daemon.reconstitute.facts import shell, usage
from daemon.reconstitute.facts.content import cut
from daemon.reconstitute.facts.language.sentences import shorten
from daemon.reconstitute.facts.session.calls import LONGEST_TITLE
from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, Ending, SessionFacts, Turn
from daemon.reconstitute.facts.shell import failures, runs
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.values import Script, Setback, SetbackKind
from daemon.transcript.shell.names import words
from daemon.transcript.tool_calls import absolute

TURN_TAKEN_BACK = "its turn was taken back"
END_UNKNOWN = "was run again later; how that ended is not recorded"
LOOKING_TOOLS = words("read glob grep list ls lsp todoread todowrite invalid batch codesearch websearch")
_EDITS = frozenset({"write", "edit", "multiedit", "apply_patch", "patch"})
_INLINE = re.compile(r"\s-[ce]\s")
_FEWEST_WORDS = 4
_WORDS_OF_A_TARGET = 2
"""A single word with more words behind it is another command, as ``make`` and ``make clean``."""
_ONLY_EXIT = frozenset({"exit", "return", "false"})
"""They only pass on that something before them failed."""
_OF_AGENT = re.compile(r" \(@\S+ subagent\)$")
"""What OpenCode appends to the title of a sub-agent's session."""
_ENDED = frozenset({CallStatus.OK, CallStatus.FAILED})
_BAD = frozenset({CallStatus.FAILED, CallStatus.REFUSED, CallStatus.STOPPED})


@dataclass(frozen=True, slots=True)
class _CallInTurn:
    """A call in its turn; `key` is the same for the same command or edit.

    Of a shell call `blamed` are the commands that failed; if none did, all commands. `commands` are all of them.
    """

    facts: SessionFacts
    turn: Turn
    call: Call
    key: tuple[str, ...]
    blamed: tuple[Run, ...] = ()
    commands: tuple[Run, ...] = ()

    @property
    def place(self) -> tuple[int, str]:
        return self.call.started, self.call.part_id

    @property
    def text(self) -> str:
        """The command that failed, if it is known which one; else the title of the call."""
        failed = [run for run in self.blamed if not run.is_inline and run.program.name not in _ONLY_EXIT]
        return cut(failed[0].text, LONGEST_TITLE) if failed and len(self.blamed) == 1 else self.call.title


class _Success(NamedTuple):
    """What overcame a failure, in the words of a command or of an edit."""

    by: _CallInTurn
    text: str


def find(sessions: Sequence[SessionFacts], scripts: Sequence[Script]) -> Iterator[Setback]:
    """The calls that failed, those that were overcome apart from those that were not; `scripts` are the targets."""
    calls = sorted(
        (_in_turn(facts, turn, call) for facts in sessions for turn in facts.own_turns for call in turn.calls),
        key=lambda candidate: candidate.place,
    )
    failed: defaultdict[tuple[str, ...], list[_CallInTurn]] = defaultdict(list)
    for candidate in calls:
        if candidate.call.status in _BAD and not _is_noise(candidate):
            failed[candidate.key].append(candidate)
    same_commands: defaultdict[tuple[str, ...], list[_CallInTurn]] = defaultdict(list)
    edits: defaultdict[str, list[_CallInTurn]] = defaultdict(list)
    for candidate in calls:
        if candidate.call.status is CallStatus.OK and not candidate.turn.taken_back:
            same_commands[candidate.key].append(candidate)
            for path in candidate.call.changed:
                edits[path].append(candidate)
    ended = [candidate for candidate in calls if candidate.call.status in _ENDED and not candidate.turn.taken_back]
    passed_commands = _PassedCommands(ended, shell.recipes(scripts))
    for group in failed.values():
        overcome: list[tuple[_CallInTurn, _Success | None]] = []
        remaining: list[tuple[_CallInTurn, _Success | None]] = []
        for candidate in group:
            paths = _paths(candidate.facts, candidate.call) if candidate.call.tool in _EDITS else ()
            attempts = [*same_commands[candidate.key], *(edit for path in paths for edit in edits[path])]
            success = passed_commands.overcame(candidate) if candidate.blamed else _first_after(candidate, attempts)
            (remaining if success is None else overcome).append((candidate, success))
        yield from (_setback(pairs, passed_commands) for pairs in (overcome, remaining) if pairs)


def _in_turn(facts: SessionFacts, turn: Turn, call: Call) -> _CallInTurn:
    if call.command:
        commands = shell.of_call(call)
        blamed = commands if call.status is CallStatus.OK else runs.culprits(call, commands)
        is_read = blamed and not any(run.is_inline for run in blamed)
        key = tuple(word for run in blamed for word in run.key) if is_read else (" ".join(call.command.split()),)
        return _CallInTurn(facts, turn, call, ("command", call.folder, *key), blamed if is_read else (), commands)
    if call.tool in _EDITS:
        return _CallInTurn(facts, turn, call, ("edit", facts.id, *_paths(facts, call)))
    return _CallInTurn(facts, turn, call, ("call", call.tool, call.title))


def _first_after(failed: _CallInTurn, attempts: Sequence[_CallInTurn]) -> _Success | None:
    later = (attempt for attempt in attempts if attempt.place > failed.place)
    return next(
        (_Success(attempt, attempt.text) for attempt in sorted(later, key=lambda attempt_: attempt_.place)), None
    )


def _paths(facts: SessionFacts, call: Call) -> tuple[str, ...]:
    """The files of an edit; of one that failed, those that its title names."""
    if call.changed:
        return call.changed
    names = call.title.removeprefix(call.tool).strip().split(", ")
    return tuple(path for name in names if name and (path := absolute(name, facts.session.directory)))


def _is_noise(failed: _CallInTurn) -> bool:
    """Whether the failure means nothing: a call that names no file, a mere look, or the end of a stopped answer."""
    call = failed.call
    if call.tool in _EDITS and call.title == call.tool:
        return True
    if call.status is CallStatus.FAILED:
        is_look = call.tool in LOOKING_TOOLS and not _is_all_of_a_sub_agent(failed)
        return is_look or (bool(call.command) and failures.only_looks(call.command, call.exit))
    if call.status is CallStatus.REFUSED:
        return False
    is_last = call == failed.turn.calls[-1]
    return call.tool in LOOKING_TOOLS or (is_last and failed.turn.ending is not Ending.ANSWERED)


def _is_all_of_a_sub_agent(failed: _CallInTurn) -> bool:
    """Whether every look of a sub-agent with this tool failed: its answer may rest on nothing."""
    calls = (call for turn in failed.facts.own_turns for call in turn.calls)
    return bool(failed.facts.session.parent_id) and not any(
        call.tool == failed.call.tool and call.status is CallStatus.OK for call in calls
    )


# -- what overcame a command -------------------------------------------------------------------------------------


class _PassedCommands:
    """All commands that surely succeeded, indexed by what may be the same command; `recipes` are what targets run."""

    def __init__(self, calls: Sequence[_CallInTurn], recipes: Mapping[runs.Key, frozenset[runs.Key]]) -> None:
        self._recipes = recipes
        self._by_key = defaultdict[runs.Key, list[tuple[_CallInTurn, Run]]](list)
        self._by_program = defaultdict[tuple[str, str], list[tuple[_CallInTurn, Run]]](list)
        self._unknown = defaultdict[runs.Key, list[_CallInTurn]](list)
        for candidate in calls:
            for run in candidate.commands:
                if run.status is CallStatus.OK:
                    self._by_key[run.key].append((candidate, run))
                    self._by_program[run.folder, run.program.name].append((candidate, run))
                elif run.status is CallStatus.UNKNOWN:
                    self._unknown[run.key].append(candidate)

    def overcame(self, failed: _CallInTurn) -> _Success | None:
        """The success after which each command that may have failed has succeeded, by itself or in a target."""
        remaining, done_keys, keys = list(failed.blamed), set[runs.Key](), [run.key for run in failed.blamed]
        for later, run in self._later(failed):
            done_keys |= {run.key, *self._recipes.get(run.key, ())}
            remaining = [
                failed_run
                for failed_run in remaining
                if not (self._is_done(failed_run, done_keys) or _does_more(later, run, failed, failed_run))
            ]
            if not remaining:
                is_part = any(run.key in self._recipes.get(failed_run.key, ()) for failed_run in failed.blamed)
                is_line = len(failed.blamed) > 1 and all(
                    key in [failed_run.key for failed_run in later.commands] for key in keys
                )
                return _Success(later, later.call.title if is_part or is_line else cut(run.text, LONGEST_TITLE))
        return None

    def _later(self, failed: _CallInTurn) -> Iterator[tuple[_CallInTurn, Run]]:
        """The successes after a failure that may be of the same commands, in order."""
        keys = {run.key for run in failed.blamed}
        keys |= {key for run in failed.blamed for key in self._recipes.get(run.key, ())}
        keys |= {target for target, recipe in self._recipes.items() if recipe & keys}
        successes = [self._by_program[run.folder, run.program.name] for run in failed.blamed]
        successes += [self._by_key[key] for key in sorted(keys)]
        return merge(*(_after(pairs, failed) for pairs in successes), key=lambda pair: pair[0].place)

    def _is_done(self, run: Run, done_keys: AbstractSet[runs.Key]) -> bool:
        recipe = self._recipes.get(run.key)
        return run.key in done_keys or (recipe is not None and recipe <= done_keys)

    def was_run_again(self, failed: _CallInTurn) -> bool:
        """Whether its command ran again later with an unknown end, and did not print the same cause."""
        cause = failures.cause(failed.call)
        repeated = (
            candidate for run in failed.blamed for candidate in self._unknown[run.key] if candidate.place > failed.place
        )
        return any(not (cause and cause in candidate.call.output) for candidate in repeated)


def _after(pairs: Sequence[tuple[_CallInTurn, Run]], failed: _CallInTurn) -> Iterator[tuple[_CallInTurn, Run]]:
    first = bisect_right(pairs, failed.place, key=lambda pair: pair[0].place)
    return islice(pairs, first, None)


def _does_more(later: _CallInTurn, run: Run, failed: _CallInTurn, failed_run: Run) -> bool:
    """Whether a later command does all that a failed one did, and more: more files, or more code in its line."""
    if (run.folder, run.program.name) != (failed_run.folder, failed_run.program.name):
        return False
    if _INLINE.search(failed.call.command):
        failed_words, run_words = set(re.findall(r"\w+", failed_run.text)), set(re.findall(r"\w+", run.text))
        is_again = failed.facts.id == later.facts.id and usage.repeats(failed_run.text, run.text)
        return is_again or (len(failed_words) >= _FEWEST_WORDS and failed_words <= run_words)
    is_more = len(failed_run.words) >= _WORDS_OF_A_TARGET and set(failed_run.words) <= set(run.words)
    return is_more and runs.ASKS.isdisjoint(run.words)


# -- one setback -------------------------------------------------------------------------------------------------


def _setback(pairs: Sequence[tuple[_CallInTurn, _Success | None]], passed_commands: _PassedCommands) -> Setback:
    """The last of several failures of one thing, all or none of which were overcome, and how many there were."""
    last, success = pairs[-1]
    call, kind = last.call, _kind(last)
    resolved = None
    outcome = TURN_TAKEN_BACK if last.turn.taken_back else _not_overcome(kind)
    if success is not None:
        by = success.by
        resolved = Citation(by.facts.id, by.call.message_id, by.call.started)
        outcome = _overcome(kind, success, is_same=success.text == last.text)
    elif not last.turn.taken_back and passed_commands.was_run_again(last):
        outcome = END_UNKNOWN
    causes = {failures.cause(failed_call.call) for failed_call, _ in pairs}
    times = f"{len(pairs)} times" + (", the last one:" if len(causes) > 1 else "") if len(pairs) > 1 else ""
    parent = last.facts.session.parent_id
    agent = f"by the sub-agent “{_OF_AGENT.sub('', last.facts.title)}”" if parent else ""
    detail = "; ".join(filter(None, (times, _end(call), _where(last), agent))).replace(":;", ":")
    citation = Citation(last.facts.id, call.message_id, call.started)
    paths = _paths(last.facts, call) if call.tool in _EDITS else ()
    return Setback(kind, last.text, call.started, citation, detail, outcome, resolved, paths)


def _where(failed: _CallInTurn) -> str:
    """The folder that the command changed to, if it did."""
    folders = {run.folder for run in failed.blamed}
    folder = folders.pop() if len(folders) == 1 else ""
    return (
        f"in {posixpath.relpath(folder, failed.call.folder)}" if folder and folder != failed.call.folder != "" else ""
    )


def _kind(failed: _CallInTurn) -> SetbackKind:
    if failed.call.status is CallStatus.REFUSED:
        return SetbackKind.REFUSED
    if failed.call.status is CallStatus.STOPPED:
        return SetbackKind.STOPPED
    if failed.call.command:
        return SetbackKind.COMMAND_FAILED
    return SetbackKind.EDIT_FAILED if failed.call.tool in _EDITS else SetbackKind.CALL_FAILED


def _end(call: Call) -> str:
    """How it ended, and the line that says what went wrong."""
    seconds = round((call.ended - call.started) / 1000)
    if call.status is CallStatus.STOPPED:
        return f"stopped after {seconds} s" if call.ended > call.started else "stopped"
    status = f"exit {call.exit}" if call.exit is not None else ""
    if program := failures.missing_program(call):
        return f"{status}; could not run: `{program}` is not {'there' if '/' in program else 'installed'}"
    return "; ".join(filter(None, (status, shorten(failures.cause(call)))))


def _overcome(kind: SetbackKind, success: _Success, *, is_same: bool) -> str:
    if kind is SetbackKind.REFUSED:
        return "was allowed later"
    if kind is SetbackKind.EDIT_FAILED:
        return f"a later {success.by.call.tool} of the file succeeded"
    return "succeeded later" if is_same else f"succeeded later as `{shorten(success.text, 80)}`"


def _not_overcome(kind: SetbackKind) -> str:
    return {
        SetbackKind.EDIT_FAILED: "no later edit of the file succeeded",
        SetbackKind.COMMAND_FAILED: "did not succeed later",
        SetbackKind.CALL_FAILED: "did not succeed later",
    }.get(kind, "")
