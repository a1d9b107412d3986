"""How the commands of a call ended, and the tests that were run in a session.

They are told by a shell command and what it printed. Where its exit status does not tell how one of its commands ended
(`runs`), the output's own words must, or nothing is said.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from daemon.reconstitute.facts.session_values import Call, CallStatus, Citation, TestRun, Turn
from daemon.reconstitute.facts.shell import runs
from daemon.reconstitute.facts.shell.runs import Run
from daemon.reconstitute.facts.values import Script
from daemon.transcript.shell.known_programs.wrappers import Program
from daemon.transcript.shell.names import words as names

_LONGEST = 300
"""Characters of a command, a summary or a subject."""
_RUNNERS = names(
    "pytest py.test unittest nose2 tox nox jest vitest mocha ava tap jasmine karma phpunit pest rspec ctest bats busted"
)
_TASKS = {
    name: names(verbs)
    for verbs, tools in (
        ("test", "go npm yarn pnpm bun deno swift mix dotnet flutter dart zig sbt lein bazel composer stack cabal"),
        ("test", "just task rake rails gradle gradlew"),
        ("test nextest", "cargo"),
        ("test check", "make gmake"),
        ("test verify", "mvn mvnw"),
    )
    for name in tools.split()
}
"""Programs with the words that make them run tests."""
_ONLY_LISTS = names("--version --help --collect-only --co --list --listTests --list-tests --no-run --dry-run -list")
"""With these no test is run."""
_OF_MANY_GOALS = names("mvn mvnw gradle gradlew")
_INTERPRETERS = names("python python3 node deno bun ruby php perl bash sh")
_TEST_FILE = re.compile(r"(?:.*/)?(?:tests?[_-][\w.-]+|[\w-]+[._-](?:tests?|spec)(?:\.\w+)+|(?:run[_-]?)?tests?\.\w+)")
_TAP = re.compile(r"[#ℹ] (pass|fail) (\d+)")
_UNCAUGHT = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+[A-Za-z_][\w.]*(?::[ ].*)?\s*\Z", re.MULTILINE
)
"""What Python prints as its last words when an exception ends it."""
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
"""What a compiler counts as well."""
_ALL_BUILT = re.compile(r"^\[100%\] Built target ", re.MULTILINE)
_ANY_ERROR = re.compile(r"\*\*\*|\berror\b(?!s? ?[=:] ?0)", re.IGNORECASE)
COULD_NOT_RUN = frozenset({126, 127})
"""The shell's statuses for a program that it could not start, or did not find."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def of_call(call: Call, base: str = "") -> tuple[Run, ...]:
    """The commands of a shell call, each with how it ended as its status or what it printed tells."""
    ran = runs.of(call, base)
    asked = [run for run in ran if _is_test(run.program)]
    lines = _summaries(call.output) if asked else []
    is_bad = any(_BAD.search(line) for line in lines)
    if lines and call.exit not in COULD_NOT_RUN | {None}:
        told = CallStatus.FAILED if is_bad else CallStatus.OK
        ran = tuple(replace(run, status=told) if run in asked and _may_be(run, told) else run for run in ran)
    ran = _by_own_words(ran, call.output)
    own = [run for run in ran if _says_error(run, call.output) or _is_built(run, call.output)]
    is_tested = len(asked) == 1 and any(not _ONLY_ERRORS.fullmatch(line) for line in lines)
    ran = _with_begun(ran, [*own, *(run for run in ran if is_tested and _is_test(run.program))])
    loud = [run for run in ran if not run.is_quiet]
    if len(loud) == 1 and loud[0].status is CallStatus.UNKNOWN and _UNCAUGHT.search(call.output):
        return tuple(replace(run, status=CallStatus.FAILED) if run in loud else run for run in ran)
    return ran


def _by_own_words(ran: tuple[Run, ...], output: str) -> tuple[Run, ...]:
    """With how those ended that say it themselves, where the exit status does not tell and nothing else may have."""
    told = []
    for run in ran:
        is_open = run.status is CallStatus.UNKNOWN and not run.is_quiet
        is_one = [one.program.name for one in ran].count(run.program.name) == 1
        status = CallStatus.FAILED if is_open and is_one and _says_error(run, output) else run.status
        status = CallStatus.OK if is_open and _is_built(run, output) and _is_only_build(run, ran) else status
        told.append(replace(run, status=status))
    return tuple(told)


def _says_error(run: Run, output: str) -> bool:
    """Whether a program says an error under its own name, as ``CMake Error at …`` or ``make: *** …``."""
    if not run.program.name or run.program.name.casefold() not in output.casefold():
        return False
    own = rf"^{re.escape(run.program.name)}(?:\[\d+\])?:? (?:(?:fatal )?error\b|err!|\*\*\* )"
    return re.search(own, output, re.MULTILINE | re.IGNORECASE) is not None


def _is_built(run: Run, output: str) -> bool:
    """Whether ``cmake --build`` says that it built all, and nothing in the output speaks of an error."""
    is_build = run.program.name == "cmake" and "--build" in plain(run.program)
    return is_build and _ALL_BUILT.search(output) is not None and _ANY_ERROR.search(output) is None


def _is_only_build(run: Run, ran: Sequence[Run]) -> bool:
    return all(one is run or "--build" not in plain(one.program) for one in ran)


def _with_begun(ran: tuple[Run, ...], spoke: Sequence[Run]) -> tuple[Run, ...]:
    """With what surely began in a chain of ``&&``, for it spoke itself or one behind it did: those before succeeded."""
    last: dict[int, int] = {}
    for run in spoke:
        if run.link and run.status in (CallStatus.OK, CallStatus.FAILED):
            last[run.link[0]] = max(run.link[1], last.get(run.link[0], 0))
    begun = []
    for run in ran:
        number, place, is_alone = run.link or (-1, 0, 0)
        before = number in last and place < last[number]
        came_through = before and is_alone and run.status is CallStatus.UNKNOWN
        is_started = run.is_started or before or (number in last and place == last[number])
        begun.append(replace(run, is_started=is_started, status=CallStatus.OK if came_through else run.status))
    return tuple(begun)


def _may_be(run: Run, told: CallStatus) -> bool:
    """Whether what was printed tells more than the exit status: a failure there counts more than any."""
    return told is CallStatus.FAILED or run.status is CallStatus.UNKNOWN


def failed(call: Call) -> tuple[Run, ...]:
    """Of a call that failed, was refused or stopped, the commands that did, or where that is not known may have."""
    return runs.culprits(call, of_call(call))


def passed(call: Call) -> tuple[Run, ...]:
    """The commands of a call that surely succeeded."""
    return tuple(run for run in of_call(call) if run.status is CallStatus.OK)


def recipes(scripts: Sequence[Script]) -> dict[runs.Key, frozenset[runs.Key]]:
    """What the project's targets run, by the same keys as what ran."""
    found = {}
    for one in scripts:
        folder = posixpath.dirname(one.path)
        called = runs.of_text(one.invocation, folder)
        inner = (run for run in runs.of_text(one.runs, folder) if run.is_started and not run.is_quiet)
        if called and (recipe := frozenset(run.key for run in inner)):
            found[folder, *called[-1].key[1:]] = recipe
    return found


def tests(session_id: str, turns: Iterable[Turn]) -> tuple[TestRun, ...]:
    """The last run of each test command in each folder, in the order in which they were last run."""
    found: dict[runs.Key, TestRun] = {}
    for turn in turns:
        for call in turn.calls:
            lines = _summaries(call.output)
            if call.exit is None or (call.exit in COULD_NOT_RUN and not lines):
                continue
            for run in of_call(call):
                if run.status in (CallStatus.OK, CallStatus.FAILED) and _is_test(run.program):
                    key = (run.folder, run.text)
                    found.pop(key, None)
                    citation = Citation(session_id, call.message_id, call.ended)
                    is_good = run.status is CallStatus.OK
                    found[key] = TestRun(run.text[:_LONGEST], is_good, _summary(lines), citation, run.folder)
    return tuple(found.values())


def where(run: TestRun, directory: str) -> str:
    """The folder in which tests ran, relative to the `directory` of their session; empty where they ran there."""
    is_elsewhere = run.place and directory and run.place != directory
    return posixpath.relpath(run.place, directory) if is_elsewhere else ""


def _summary(lines: Sequence[str]) -> str:
    """The last line that counts failures, else the last one; what TAP counts line by line becomes one."""
    counted = {found[1]: int(found[2]) for line in lines if (found := _TAP.fullmatch(line))}
    if "pass" in counted and "fail" in counted:
        return (
            f"{counted['fail']} of {counted['pass'] + counted['fail']} failed"
            if counted["fail"]
            else (f"{counted['pass']} passed")
        )
    return next((line for line in reversed(lines) if _BAD.search(line)), lines[-1] if lines else "")


def _summaries(output: str) -> list[str]:
    """The lines in which test runners count what they ran. A failure there counts more than any exit status."""
    lines = (" ".join(_COLOUR.sub("", line).strip(" =").split()) for line in output.splitlines())
    return [line[:_LONGEST] for line in lines if _SUMMARY.fullmatch(line)]


def _is_test(program: Program) -> bool:
    if _ONLY_LISTS & set(plain(program)):
        return False
    if program.name in _RUNNERS:
        return True
    operands = [text for text in plain(program) if not text.startswith("-")]
    if program.name in _TASKS:
        goals = operands[1:] if operands[:1] == ["run"] else operands
        goals = goals if program.name in _OF_MANY_GOALS else goals[:1]
        return any(goal.partition(":")[0] in _TASKS[program.name] for goal in goals)
    script = operands[0] if program.name in _INTERPRETERS and operands else program.field.text
    return _TEST_FILE.fullmatch(script) is not None and "-c" not in plain(program)


def is_runner(name: str) -> bool:
    """Whether a program only runs what it is given: an interpreter, or a runner of tasks."""
    return name in _INTERPRETERS or name in _TASKS


def plain(program: Program) -> list[str]:
    """The words given to a program."""
    return [field.text for field in program.arguments]
