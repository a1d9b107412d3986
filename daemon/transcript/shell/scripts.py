"""What a program did by its text, which is read like the command line that started it.

`read` returns effects, or None if anything in the text leaves a doubt; then the program may have written anything.
Effects that did not surely take place are UNCLEAR; files that are not named stayed as they were. Pure; texts are
bounded, and no text makes it raise.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon.model import Launch
from daemon.transcript.shell import effects, known_programs
from daemon.transcript.shell.heredocs import NotUnderstood
from daemon.transcript.shell.known_programs import makefile, packages, python
from daemon.transcript.shell.known_programs.wrappers import PYTHON
from daemon.transcript.shell.parse import parse
from daemon.transcript.shell.state import Effect, Status, start
from daemon.transcript.shell.words import OWN_FOLDER, SOURCE_FOLDER

_LONGEST = 100_000
_MOST_EFFECTS = 1000
_FIRST_LINE = re.compile(r"#![ \t]*(\S+)[ \t]*([^\n]*)")
_SHELLS = frozenset({"sh", "bash", "source"})
_BASHS_OWN = re.compile(
    r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|\$['\"]|&>|>&\s*[^\s\d-]|\+=|<<<|\|&|\bsource\b|\bfunction\b|(?<!\$)\(\(|\[\[[^\n]*[<>]"
)
"""What the shells that are called ``sh`` read in different ways, without an error that would show."""


@dataclass(frozen=True, slots=True)
class Program:
    """A text that was run. `path` is the file it stands in, None for one without; `folder` the working directory."""

    text: str
    launch: Launch
    folder: str
    path: str | None = None


@lru_cache(maxsize=128)
def read(program: Program) -> tuple[Effect, ...] | None:
    """What it did or may have done, in order; None where that is not surely understood."""
    if len(program.text) > _LONGEST or "\ufffd" in program.text or program.text.startswith("\ufeff"):
        return None
    named = _resolved(program)
    reader = _READERS.get(named.launch.language)
    effects = reader(named) if reader is not None else None
    return None if effects is None or len(effects) > _MOST_EFFECTS else tuple(effects)


def rereads_itself(program: Program) -> bool:
    """Whether it is read while it runs, so that a change of the file changes what is still to come."""
    return _resolved(program).launch.language in _SHELLS


def is_python(program: Program) -> bool:
    """Whether Python runs it."""
    return _resolved(program).launch.language == "python"


def _resolved(program: Program) -> Program:
    """The same with its language, for a file that was started by its name."""
    launch = program.launch
    if launch.language != "#!":
        return program
    first = _FIRST_LINE.match(program.text)
    if first is None:  # the shell that starts it also reads it, and which shell that is is not known
        return replace(program, launch=replace(launch, language="" if program.text.startswith("#!") else "sh"))
    words = [first[1].rpartition("/")[2], *first[2].split()]
    if words[0] == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    name, options = (words[0], words[1:]) if words else ("", [])
    is_python = PYTHON.fullmatch(name) is not None
    dialect = known_programs.PYTHON_DIALECT if is_python else known_programs.DIALECTS.get(name)
    if dialect is None or not all(dialect.plain.fullmatch(option) for option in options):
        return replace(program, launch=replace(launch, language=""))
    strict = not is_python and any(option[0] == "-" and "e" in option for option in options)
    return replace(program, launch=replace(launch, language=dialect.language, strict=strict))


def _shell(program: Program) -> list[Effect] | None:
    launch = program.launch
    if launch.language == "sh" and _BASHS_OWN.search(program.text):
        return None
    state = start(program.folder, launch.home)
    state.strict = launch.strict
    state.is_posix = launch.language == "sh"
    state.given = _given(program)
    # What stands on standard input, a command in it may have read instead of the shell.
    status = Status.MAYBE if launch.is_piped else Status(launch.status)
    try:
        script = parse(program.text)
        if script.has_functions:
            return None  # what they do depends on where they are called
        return effects.of_script(script, state, status, shows_errors=launch.shows_errors)
    except (NotUnderstood, RecursionError):
        return None


def _given(program: Program) -> dict[str, str]:
    given = {str(number): text for number, text in enumerate(program.launch.arguments) if text is not None}
    if "0" in given:
        given[OWN_FOLDER] = posixpath.dirname(given["0"]) or "."
    if program.path is not None:
        given[SOURCE_FOLDER] = posixpath.dirname(program.path)
    return given


def _python(program: Program) -> list[Effect] | None:
    return python.read(program.text, program.folder, program.path)


def _make(program: Program) -> list[Effect] | None:
    lines = makefile.read(program.text, program.launch.arguments, program.folder)
    return None if lines is None else _lines(program, lines)


def _package(program: Program) -> list[Effect] | None:
    lines = packages.read(program.text, program.launch.arguments)
    folder = posixpath.dirname(program.path or "/")
    return None if lines is None else _lines(program, [(folder, line) for line in lines])


def _lines(program: Program, lines: list[tuple[str, str]]) -> list[Effect] | None:
    """What command lines, each with its folder and for a shell of its own, may have done."""
    effects: list[Effect] = []
    for folder, line in lines:
        launch = replace(program.launch, language="sh", status=0, arguments=(), strict=False)
        line_effects = _shell(Program(line, launch, folder))
        if line_effects is None:
            return None
        effects += line_effects
    return effects


_READERS: dict[str, Callable[[Program], list[Effect] | None]] = {
    "sh": _shell, "bash": _shell, "source": _shell, "python": _python, "make": _make, "package": _package,
}  # fmt: skip
