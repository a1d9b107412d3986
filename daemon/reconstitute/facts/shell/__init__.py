"""The commands of a shell call, each with how it ended, and the tests that a session ran.

Where the exit status does not tell how a command ended (`runs`), the words that it printed must; otherwise its status
stays unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, TestRun, Turn
from daemon.reconstitute.facts.shell import runs
from daemon.reconstitute.facts.shell.groups import arguments, is_test
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.values import Script

COULD_NOT_RUN = frozenset({126, 127})
"""The shell's statuses for a program that it could not start, or did not find."""
_LONGEST = 300
"""Characters of a command or a summary."""
_TAP = re.compile(r"[#ℹ] (pass|fail) (\d+)")
_UNCAUGHT = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+[A-Za-z_][\w.]*(?::[ ].*)?\s*\Z", re.MULTILINE
)
"""What Python prints last when an exception ends it."""
_COUNTED = r"\d+ (?:tests? )?(?:passed|failed|errors?|passing|failing|pass|fail|failures?)\b"
_SUMMARY = re.compile(
    rf"{_COUNTED}.* in [\d.]+ ?m?s.*|Tests?:? {_COUNTED}.*|{_COUNTED}(?: \(.*\))?|test result: .*|"
    r"\d+ (?:tests?|examples?|runs?), .*\d+ (?:failures?|errors?).*|OK \(\d+ tests?.*\)|Tests run: \d+, .*|"
    r"Tests: \d+, Assertions: .*|FAILED \((?:failures|errors).*\)|Ran \d+ tests? in .*|Executed \d+ tests?, .*|"
    r"\d+% tests passed, .*|(?:ok|FAILED) \| .*|[#ℹ] (?:pass|fail) \d+|ok \S+ (?:[\d.]+m?s|\(cached\)).*|"
    r"FAIL \S+ [\d.]+m?s"
)
_BAD = re.compile(
    r"\b[1-9]\d* (?:tests? )?(?:failed|errors?|failing|fail|failures?)\b|\b(?:failures|errors|failed)[=:] ?[1-9]|"
    r"^FAIL|test result: FAILED|[#ℹ] fail [1-9]",
    re.IGNORECASE,
)
_ONLY_ERRORS = re.compile(r"\d+ errors?(?: \(.*\))?")
"""A count that a compiler prints as well."""
_ALL_BUILT = re.compile(r"^\[100%\] Built target ", re.MULTILINE)
_ANY_ERROR = re.compile(r"\*\*\*|\berror\b(?!s? ?[=:] ?0)", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def of_call(call: Call, base: str = "") -> tuple[Run, ...]:
    """The commands of a shell call, each with how it ended according to its exit status and output.

    `base` is the folder of a call that has none.
    """
    commands = runs.of(call, base)
    tests = [run for run in commands if is_test(run.program)]
    lines = _summaries(call.output) if tests else []
    is_bad = any(_BAD.search(line) for line in lines)
    if lines and call.exit not in COULD_NOT_RUN | {None}:
        status = CallStatus.FAILED if is_bad else CallStatus.OK
        # A failure in the summary counts more than any exit status.
        commands = tuple(
            replace(run, status=status) if run in tests and (is_bad or run.status is CallStatus.UNKNOWN) else run
            for run in commands
        )
    commands = _with_own_words(commands, call.output)
    spoke = [run for run in commands if _reports_error(run, call.output) or _reports_built(run, call.output)]
    is_tested = len(tests) == 1 and any(not _ONLY_ERRORS.fullmatch(line) for line in lines)
    commands = _with_started(commands, [*spoke, *(run for run in commands if is_tested and is_test(run.program))])
    loud = [run for run in commands if not run.is_quiet]
    if len(loud) == 1 and loud[0].status is CallStatus.UNKNOWN and _UNCAUGHT.search(call.output):
        return tuple(replace(run, status=CallStatus.FAILED) if run in loud else run for run in commands)
    return commands


def failed(call: Call) -> tuple[Run, ...]:
    """The commands of a call that failed, was refused or stopped, which failed; if unknown, those that may have."""
    return runs.culprits(call, of_call(call))


def passed(call: Call) -> tuple[Run, ...]:
    """The commands of a call that surely succeeded."""
    return tuple(run for run in of_call(call) if run.status is CallStatus.OK)


def recipes(scripts: Sequence[Script]) -> dict[runs.Key, frozenset[runs.Key]]:
    """What the project's targets run, by the keys of the commands that call them."""
    by_target = {}
    for script in scripts:
        folder = posixpath.dirname(script.path)
        invoked = runs.of_text(script.invocation, folder)
        inner = (run for run in runs.of_text(script.runs, folder) if run.is_started and not run.is_quiet)
        if invoked and (recipe := frozenset(run.key for run in inner)):
            by_target[folder, *invoked[-1].key[1:]] = recipe
    return by_target


# -- what the output says ----------------------------------------------------------------------------------------


def _with_own_words(commands: tuple[Run, ...], output: str) -> tuple[Run, ...]:
    """The same, with the status of a command that reports it itself, where nothing else may have printed that."""
    judged = []
    for run in commands:
        is_open = run.status is CallStatus.UNKNOWN and not run.is_quiet
        is_only = [command_.program.name for command_ in commands].count(run.program.name) == 1
        status = CallStatus.FAILED if is_open and is_only and _reports_error(run, output) else run.status
        is_built = is_open and _reports_built(run, output) and _is_only_build(run, commands)
        judged.append(replace(run, status=CallStatus.OK if is_built else status))
    return tuple(judged)


def _reports_error(run: Run, output: str) -> bool:
    """Whether a program reports an error under its own name, as ``CMake Error at …`` or ``make: *** …``."""
    if not run.program.name or run.program.name.casefold() not in output.casefold():
        return False
    report = rf"^{re.escape(run.program.name)}(?:\[\d+\])?:? (?:(?:fatal )?error\b|err!|\*\*\* )"
    return re.search(report, output, re.MULTILINE | re.IGNORECASE) is not None


def _reports_built(run: Run, output: str) -> bool:
    """Whether ``cmake --build`` says that it built everything, and nothing in the output mentions an error."""
    is_build = run.program.name == "cmake" and "--build" in arguments(run.program)
    return is_build and _ALL_BUILT.search(output) is not None and _ANY_ERROR.search(output) is None


def _is_only_build(run: Run, commands: Sequence[Run]) -> bool:
    return all(candidate is run or "--build" not in arguments(candidate.program) for candidate in commands)


def _with_started(commands: tuple[Run, ...], spoke: Sequence[Run]) -> tuple[Run, ...]:
    """The same, with the commands of a chain of ``&&`` that must have started.

    If a command printed something, or one behind it did, it started, and all those before it succeeded.
    """
    last: dict[int, int] = {}
    for run in spoke:
        if run.link and run.status in (CallStatus.OK, CallStatus.FAILED):
            last[run.link[0]] = max(run.link[1], last.get(run.link[0], 0))
    judged = []
    for run in commands:
        number, place, is_alone = run.link or (-1, 0, 0)
        is_before = number in last and place < last[number]
        came_through = is_before and is_alone and run.status is CallStatus.UNKNOWN
        is_started = run.is_started or is_before or (number in last and place == last[number])
        judged.append(replace(run, is_started=is_started, status=CallStatus.OK if came_through else run.status))
    return tuple(judged)


# -- tests -------------------------------------------------------------------------------------------------------


def tests(session_id: str, turns: Iterable[Turn]) -> tuple[TestRun, ...]:
    """The last run of each test command in each folder, in the order in which they were last run."""
    latest: dict[runs.Key, TestRun] = {}
    for turn in turns:
        for call in turn.calls:
            lines = _summaries(call.output)
            if call.exit is None or (call.exit in COULD_NOT_RUN and not lines):
                continue
            for run in of_call(call):
                if run.status in (CallStatus.OK, CallStatus.FAILED) and is_test(run.program):
                    key = (run.folder, run.text)
                    latest.pop(key, None)
                    citation = Citation(session_id, call.message_id, call.ended)
                    is_good = run.status is CallStatus.OK
                    latest[key] = TestRun(run.text[:_LONGEST], is_good, _summary(lines), citation, run.folder)
    return tuple(latest.values())


def where(run: TestRun, directory: str) -> str:
    """The folder in which tests ran, relative to the `directory` of their session; empty if they ran there."""
    is_elsewhere = run.place and directory and run.place != directory
    return posixpath.relpath(run.place, directory) if is_elsewhere else ""


def _summary(lines: Sequence[str]) -> str:
    """The last line that counts failures, else the last one; TAP's separate counts become one line."""
    counts = {match[1]: int(match[2]) for line in lines if (match := _TAP.fullmatch(line))}
    if "pass" in counts and "fail" in counts:
        total = counts["pass"] + counts["fail"]
        return f"{counts['fail']} of {total} failed" if counts["fail"] else f"{counts['pass']} passed"
    return next((line for line in reversed(lines) if _BAD.search(line)), lines[-1] if lines else "")


def _summaries(output: str) -> list[str]:
    """The lines in which test runners count what they ran."""
    lines = (" ".join(_COLOUR.sub("", line).strip(" =").split()) for line in output.splitlines())
    return [line[:_LONGEST] for line in lines if _SUMMARY.fullmatch(line)]
