"""The effects of a shell call on files: certain ones as operations, possible ones as UNCLEAR.

Only a command that succeeded, or whose output shows no failure, has certain effects (opencode-formats.md, Records:
a call with another exit status is "completed" too). We read the command as it was run; only the note is redacted.

A command passes `heredocs` (removes here-documents), `parse` (builds the tree; the only import of tree-sitter), `words`
(expands words as bash does), `simple` (one command, with `streams`, `builtins` and `file_commands`) and `effects`
(lists, pipelines, conditions). `known_programs` knows what other programs run and write, and `names` is the fallback
for commands that cannot be parsed.

`read_program` reads the text of a program like the command line that started it. It returns effects, or None if
anything in the text is in doubt: then the program may have written anything. Uncertain effects are UNCLEAR; files that
are not named did not change. Pure; texts are bounded, and no text makes it raise.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from daemon import records
from daemon.model import FileEdit, Launch, Operation
from daemon.redact import redact
from daemon.transcript.shell import effects as shell_effects
from daemon.transcript.shell import known_programs, names, parse
from daemon.transcript.shell.heredocs import NotUnderstood
from daemon.transcript.shell.known_programs import PYTHON, launched, makefile, packages, python
from daemon.transcript.shell.state import Effect, Output, State, Status, is_system, start
from daemon.transcript.shell.words import OWN_FOLDER, SOURCE_FOLDER
from daemon.transcript.tool_calls import Call, absolute, file_edit, unclear, valid_text

_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root(?=/|$)")
_ENDED_EARLY = re.compile(r"\baborted\b|\bterminated\b|\btimed? ?out\b|truncated", re.IGNORECASE)
_PROMPT = re.compile(r"\b(?:rm|mv|cp): [^\n]*\?")
_NOTE = 120
_LONGEST_OUTPUT = 29_000  # characters; OpenCode 1.0 cut outputs at 30,000 and said so only in the text
_MOST_OUTPUT = 1 << 20  # characters
_MOST_UNCLEAR = 256
_MOST_RUNS = 256
NOTE_PREFIX = "shell: "
"""Begins the note of what a command may have done; the command's first line follows."""
_NOT_FOUND = 127
"""The exit status of a shell that did not find a program; one that ran may end with it, too."""


def edits(tool_call: Call, version: str) -> list[FileEdit]:
    """The file edits of one call of the shell, in command order; `number` is left to the caller."""
    command = valid_text(records.text(tool_call.input.get("command")))
    if (
        tool_call.status == "pending"
        or not command.strip()
        or (tool_call.status == "error" and not tool_call.is_aborted)
    ):
        return []
    redacted = redact(command)
    note = f"{NOTE_PREFIX}{redacted.strip().splitlines()[0][:_NOTE]}" if redacted.strip() else "shell"
    base = absolute(records.text(tool_call.input.get("workdir")), tool_call.base) or tool_call.base
    state = _start(tool_call, base)
    scope = next(reversed(state.place.reachable), base)  # the session's folder, if it holds the working directory
    try:
        script = parse.parse(command)
        effects = _effects(script, state, tool_call)
    except (NotUnderstood, RecursionError):
        places = state.place.reachable if base != "/" and names.may_write(command) else []
        named = [*names.named_files(command, base), *places]
        ran = launched.may_run(command) and base.startswith("/")
        runs = [file_edit(tool_call, version, base, Operation.RUN, note=note)] if ran else []
        return [*unclear(tool_call, version, _without_secrets(named, command, redacted), note), *runs]
    scoped = [in_scope(effect, scope) if effect.launch else effect for effect in _bounded(effects, base)]
    return list(_as_edits(tool_call, version, scoped, (command, redacted), note))


def _start(tool_call: Call, base: str) -> State:
    home = _HOME.match(base)
    state = start(base if base.startswith("/") else "", home[0] if home else None, tool_call.base)
    state.is_zsh = base.startswith("/Users/") or "zsh:" in records.text(tool_call.state.get("output"))[:_MOST_OUTPUT]
    return state


def _effects(script: parse.Script, state: State, tool_call: Call) -> list[Effect]:
    texts = records.text(tool_call.state.get("output")), records.text(tool_call.metadata.get("output"))
    if sum(map(len, texts)) > _MOST_OUTPUT:  # no version keeps as much; what it shows is not looked for
        return shell_effects.doubtful(script, state)
    text = "\n".join(texts)
    is_cut = tool_call.metadata.get("truncated") is True or bool(tool_call.metadata.get("outputPath"))
    is_cut = is_cut or ("truncated" not in tool_call.metadata and len(text) > _LONGEST_OUTPUT)
    if tool_call.status != "completed" or _PROMPT.search(text):
        return shell_effects.doubtful(script, state)
    if "exit" in tool_call.metadata:
        code = tool_call.metadata["exit"]
        if code != 0 or isinstance(code, bool):
            was_absent = code == _NOT_FOUND and _was_not_found(script, text)
            return [] if was_absent else shell_effects.doubtful(script, state)
        return shell_effects.effects(script, state, Output(text, is_whole=not is_cut), is_proven=True)
    if is_cut or _ENDED_EARLY.search(text):
        return shell_effects.doubtful(script, state)
    return shell_effects.effects(script, state, Output(text, is_whole=True), is_proven=False)


def _was_not_found(script: parse.Script, output: str) -> bool:
    """Whether the shell says that the only program of a command does not exist: then nothing was changed."""
    items = script.body.items
    statement = items[0][0] if len(items) == 1 and not items[0][1] else None
    if not isinstance(statement, parse.Simple) or statement.redirects or statement.inner or not statement.words:
        return False
    name = re.escape(statement.words[0])
    return (
        re.search(rf"(?:^|: ){name}: (?:command )?not found$|command not found: {name}$", output, re.MULTILINE)
        is not None
    )


def _bounded(effects: list[Effect], base: str) -> list[Effect]:
    """`effects`, with one UNCLEAR folder in place of very many UNCLEAR paths, and one RUN of anything for very many."""
    runs = [effect for effect in effects if effect.operation is Operation.RUN]
    if len(runs) > _MOST_RUNS:
        effects = [e for e in effects if e.operation is not Operation.RUN]
        effects += [Effect(Operation.RUN, folder) for folder in dict.fromkeys(effect.path for effect in runs)]
    count = sum(effect.operation is Operation.UNCLEAR for effect in effects)
    if count <= _MOST_UNCLEAR or not base.startswith("/") or base == "/":
        return effects
    outside = [e for e in effects if e.operation is not Operation.UNCLEAR or not f"{e.path}/".startswith(f"{base}/")]
    return [*outside, Effect(Operation.UNCLEAR, base)]


def in_scope(run: Effect, scope: str) -> Effect:
    """A RUN at the folder beneath which its effects count: `scope`, if its own folder lies in that."""
    if run.launch is None or len(scope) < 2 or not f"{run.path}/".startswith(f"{scope}/"):
        return run
    folder = run.path[len(scope) :].lstrip("/")
    return replace(run, path=scope, launch=replace(run.launch, folder=folder))


def _as_edits(
    tool_call: Call, version: str, effects: Iterable[Effect], texts: tuple[str, str], note: str
) -> Iterator[FileEdit]:
    last: tuple[Operation, str] | None = None
    scopes: dict[str | None, str] = {}
    for effect in effects:
        if effect.operation is Operation.RUN:
            scopes[effect.other] = effect.path
        if is_system(effect.path) or (effect.path == "/" and effect.operation is not Operation.RUN):
            continue
        if effect.operation is Operation.UNCLEAR:
            if last != (effect.operation, effect.path):
                for edit in unclear(tool_call, version, _without_secrets([effect.path], *texts), note):
                    is_near = effect.other is not None and f"{edit.path}/".startswith(f"{scopes.get(effect.other)}/")
                    yield replace(edit, other=effect.other) if is_near else edit
        else:
            into = effect.into if effect.other else False
            second = effect.other
            if effect.operation is Operation.RUN and second:
                second = next(iter(_without_secrets([second], *texts)), None)
            yield file_edit(
                tool_call, version, effect.path, effect.operation, content=effect.content, other=second, into=into,
                recursive=effect.recursive, note=note, launch=effect.launch, existed=effect.existed,
            )  # fmt: skip
        last = (effect.operation, effect.path)


def _without_secrets(paths: Iterable[str], command: str, redacted: str) -> list[str]:
    """The paths without those that contain a secret, by themselves or in the command."""
    harmless = []
    for path in paths:
        if redact(path) != path:
            continue
        pieces = [piece for piece in path.split("/") if piece]
        if command is redacted or command == redacted or all(p not in command or p in redacted for p in pieces):
            harmless.append(path)
    return harmless


_LONGEST = 100_000
_MOST_EFFECTS = 1000
_FIRST_LINE = re.compile(r"#![ \t]*(\S+)[ \t]*([^\n]*)")
_SHELLS = frozenset({"sh", "bash", "source"})
_BASHS_OWN = re.compile(
    r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|\$['\"]|&>|>&\s*[^\s\d-]|\+=|<<<|\|&|\bsource\b|\bfunction\b|(?<!\$)\(\(|\[\[[^\n]*[<>]"
)
"""Syntax that different ``sh`` read differently, without an error in the output."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program text that was run. `path` is its file, if it has one; `folder` the working directory.

    `scope`: the folder that its session works in, where that is another.
    """

    text: str
    launch: Launch
    folder: str
    path: str | None = None
    scope: str = ""


@lru_cache(maxsize=128)
def read_program(program: Program) -> tuple[Effect, ...] | None:
    """Its certain and possible effects, in order; None if the text is not understood."""
    if len(program.text) > _LONGEST or "\ufffd" in program.text or program.text.startswith("\ufeff"):
        return None
    named = _resolved(program)
    reader = _READERS.get(named.launch.language)
    effects = reader(named) if reader is not None else None
    return None if effects is None or len(effects) > _MOST_EFFECTS else tuple(effects)


def rereads_itself(program: Program) -> bool:
    """Whether its file is read while it runs, so that a change of the file changes the commands to come."""
    return _resolved(program).launch.language in _SHELLS


def is_python(program: Program) -> bool:
    """Whether Python runs it."""
    return _resolved(program).launch.language == "python"


def _resolved(program: Program) -> Program:
    """The program with its language, for a file that was started by its name."""
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
    state = start(program.folder, launch.home, program.scope)
    state.strict = launch.strict
    state.is_posix = launch.language == "sh"
    state.parameters = _parameters(program)
    # A command in the script may have read standard input in place of the shell.
    status = Status.MAYBE if launch.is_piped else Status(launch.status)
    try:
        script = parse.parse(program.text)
        if script.has_functions:
            return None  # what they do depends on where they are called
        return shell_effects.of_script(script, state, status, shows_errors=launch.shows_errors)
    except (NotUnderstood, RecursionError):
        return None


def _parameters(program: Program) -> dict[str, str]:
    parameters = {str(number): text for number, text in enumerate(program.launch.arguments) if text is not None}
    if "0" in parameters:
        parameters[OWN_FOLDER] = posixpath.dirname(parameters["0"]) or "."
    if program.path is not None:
        parameters[SOURCE_FOLDER] = posixpath.dirname(program.path)
    return parameters


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
    """The possible effects of command lines, each with its folder and a shell of its own."""
    effects: list[Effect] = []
    for folder, line in lines:
        launch = replace(program.launch, language="sh", status=0, arguments=(), strict=False)
        line_effects = _shell(Program(line, launch, folder, scope=program.scope))
        if line_effects is None:
            return None
        effects += line_effects
    return effects


_READERS: dict[str, Callable[[Program], list[Effect] | None]] = {
    "sh": _shell, "bash": _shell, "source": _shell, "python": _python, "make": _make, "package": _package,
}  # fmt: skip
