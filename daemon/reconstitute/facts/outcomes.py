"""The tests that were run in a session, with how they ended.

They are told by a shell command and what it printed. An exit status says how the last command ended, and with 0 every
one of a chain of ``&&``; where it does not tell, the output's own words must, or nothing is said.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from daemon.reconstitute.facts.values import Call, Citation, TestRun, Turn
from daemon.transcript.shell import words
from daemon.transcript.shell.heredocs import NotUnderstood
from daemon.transcript.shell.names import words as names
from daemon.transcript.shell.parse import Block, Chain, Pipeline, Simple, Statement, parse
from daemon.transcript.shell.parse import Sequence as Steps
from daemon.transcript.shell.wrappers import Program, unwrapped

_LONGEST = 300
"""Characters of a command, a summary or a subject."""
_LONGEST_COMMAND = 4000
"""Characters of a command that is parsed."""
_Ran: TypeAlias = tuple[str, Program, bool | None, tuple[str, ...]]
"""A program as written, whether it succeeded, and the folders that were changed to before it."""
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
_OF_MANY_GOALS = names("mvn mvnw gradle gradlew")
_INTERPRETERS = names("python python3 node deno bun ruby php perl bash sh")
_TEST_FILE = re.compile(r"(?:.*/)?(?:tests?[_-][\w.-]+|[\w-]+[._-](?:tests?|spec)(?:\.\w+)+|(?:run[_-]?)?tests?\.\w+)")
_MAY_TEST = re.compile(r"test|spec|check|verify|tox|nox|nose|mocha|ava|tap|jasmine|karma|pest|bats|busted")
"""What stands in every command that may run tests: few do, and only those are parsed."""
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
COULD_NOT_RUN = frozenset({126, 127})
"""The shell's statuses for a program that it could not start, or did not find."""
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def tests(session_id: str, turns: Iterable[Turn]) -> tuple[TestRun, ...]:
    """The last run of each test command in each folder, in the order in which they were last run."""
    found: dict[tuple[str, str], TestRun] = {}
    for turn in turns:
        for call in turn.calls:
            if not _MAY_TEST.search(call.command):
                continue
            lines = _summaries(call.output)
            bad = [line for line in lines if _BAD.search(line)]
            if call.exit in COULD_NOT_RUN and not lines:
                continue
            for command, program, is_good, folders in _of_call(call):
                passed = False if bad else True if lines and is_good is None else is_good
                if passed is not None and _is_test(program):
                    place = posixpath.normpath(posixpath.join(call.folder, *folders))
                    found.pop((command, place), None)
                    citation = Citation(session_id, call.message_id, call.ended)
                    found[command, place] = TestRun(command, passed, (bad or lines or [""])[-1], citation, place)
    return tuple(found.values())


def _summaries(output: str) -> list[str]:
    """The lines in which test runners count what they ran. A failure there counts more than any exit status."""
    lines = (" ".join(_COLOUR.sub("", line).strip(" =").split()) for line in output.splitlines())
    return [line[:_LONGEST] for line in lines if _SUMMARY.fullmatch(line)]


# -- commands ----------------------------------------------------------------------------------------------------


def programs(call: Call) -> tuple[tuple[str, Program, bool | None], ...]:
    """The programs that a shell call ran, each as written, and whether it succeeded; None where that is not known."""
    return tuple((text, program, is_good) for text, program, is_good, _ in _of_call(call))


def _of_call(call: Call) -> tuple[_Ran, ...]:
    if call.exit is None or len(call.command) > _LONGEST_COMMAND:
        return ()
    return _programs(call.command, is_good=call.exit == 0)


@lru_cache(maxsize=512)
def _programs(command: str, *, is_good: bool) -> tuple[_Ran, ...]:
    try:
        body = parse(command).body
    except (NotUnderstood, RecursionError):
        return ()
    found = []
    for one, is_known_good, folders in _steps(body, [], is_good=is_good):
        fields = [field for raw in one.words for field in words.fields(raw, words.Scope(None, None))]
        program = unwrapped(fields)
        if program is not None:
            found.append((" ".join(" ".join(one.words).split())[:_LONGEST], program, is_known_good, folders))
    return tuple(found)


_Step: TypeAlias = tuple[Simple, bool | None, tuple[str, ...]]


def _steps(body: Steps, folders: list[str], *, is_good: bool | None) -> Iterator[_Step]:
    """Each with the folders that were changed to before it, to which its own ``cd`` is added."""
    for number, (statement, is_background) in enumerate(body.items, start=1):
        is_last = number == len(body.items) and not is_background
        yield from _statement(statement, folders, is_good=is_good if is_last else None)


def _statement(statement: Statement, folders: list[str], *, is_good: bool | None) -> Iterator[_Step]:
    if isinstance(statement, Simple):
        yield statement, is_good, tuple(folders)
        if statement.words[:1] == ("cd",) and len(statement.words) == len(("cd", "folder")):
            folders.append(statement.words[1].strip("\"'"))
    elif isinstance(statement, Chain):
        is_and = all(operator == "&&" for operator, _ in statement.rest)
        for part in (statement.first, *(right for _, right in statement.rest)):
            yield from _statement(part, folders, is_good=True if is_and and is_good else None)
    elif isinstance(statement, Pipeline):
        for part in statement.parts:
            yield from _statement(part, list(folders), is_good=is_good if part is statement.parts[-1] else None)
    elif isinstance(statement, Block):
        yield from _steps(statement.body, list(folders) if statement.is_subshell else folders, is_good=is_good)


def _is_test(program: Program) -> bool:
    if program.name in _RUNNERS:
        return "--version" not in plain(program) and "--help" not in plain(program)
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
