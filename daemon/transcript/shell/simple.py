"""Runs one simple command: its words, its redirections, and its effects on the shell's state and on files."""

from __future__ import annotations

import posixpath
import re

from daemon.model import Launch, Operation
from daemon.transcript.shell import builtins, file_commands, known_programs, words
from daemon.transcript.shell.known_programs import is_plainly_wrapped, launched, possible_writes, unwrapped
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Simple, Statement
from daemon.transcript.shell.state import Effect, Execution, Place, Setting, Status, is_system, overlap
from daemon.transcript.shell.streams import Streams, redirected
from daemon.transcript.shell.words import Field

_WRAPPERS = word_set("command builtin time sudo env nohup exec coproc")
_LEAVING = word_set("exec coproc")
_OWN_DESCRIPTOR = re.compile(r"\{\w+\}(?:\[.*\])?")
_QUIET = word_set(": true")
_PRINTING = re.compile(r"[\x01\x7f\0]")


def run(runner: Execution, item: Simple, status: Status, setting: Setting) -> bool:
    """Runs one simple command; True where it surely succeeded."""
    fields = _fields(runner, item)
    verb, arguments = _verb(fields)
    flow = redirected(runner, item.redirects)
    leaves = verb not in _LEAVING and not _LEAVING.isdisjoint(
        word.text for word in fields[: len(fields) - len(arguments)]
    )
    if "coproc" in item.words:
        status = Status.MAYBE
    ok = status == 2 or (status == 1 and _is_seen(runner, verb, item, hidden=setting.hidden or flow.hides))
    is_sure = (
        ok
        and item.sound
        and all(builtins.ASSIGNMENT.match(word) and not builtins.decides(word) for word in item.assigned)
    )
    if not item.sound:
        runner.state.doubt = True
    if item.redirects and any(_OWN_DESCRIPTOR.fullmatch(word) for word in item.words):
        is_sure = False  # the shell gives the file a number, and the output may not go there
    stdin = flow.stdin if flow.has_stdin else setting.stdin
    hides = setting.hidden or flow.hides
    is_plain = item.sound and not any(builtins.decides(word) for word in item.assigned)
    program = _launch(runner, fields, launched.Input(stdin, flow.source), status if is_plain else None, hides=hides)
    if not item.words:
        builtins.assign(runner, item, sure=status > 0)
    builtins.doubt_folder(runner, verb, item)
    changed = builtins.change(runner, verb, arguments, ok=ok, status=status, setting=setting)
    if changed is None and (text := _shell_text(fields)) is not None:
        changed = runner.nested(text, Status.MAYBE, setting)
    runner.state.doubt = runner.state.doubt or leaves
    if changed is not None:
        runner.unclear(dict.fromkeys([*(path for path, _ in flow.written), *flow.unclear]))
        return changed
    if runner.is_script:
        _record_unknown_program(runner, fields, verb, arguments)
    effects = _effects(runner, verb, arguments, flow, stdin) if is_sure else None
    if effects is None:
        targets = [path for path, _ in flow.written] + flow.unclear
        doubted = _possible_writes(runner, verb, arguments, flow)
        runner.unclear(path for path in doubted if path in targets)
        runner.unclear((path for path in doubted if path not in targets), program)
    else:
        _record(runner, effects)
    return ok


def _shell_text(fields: list[Field]) -> str | None:
    """The literal command for a shell after ``timeout 5`` and the like."""
    program = unwrapped(fields)
    if program is None or program.name not in known_programs.SHELLS or not program.arguments:
        return None
    return program.arguments[1].text if launched.is_read_through(list(program.arguments)) else None


def _launch(
    runner: Execution, fields: list[Field], stdin: launched.Input, status: Status | None, *, hides: bool
) -> str | None:
    """Record the program that the command runs; its path only if the folder is known.

    Returns the program's file, if its text can be read. `status` is None if variables before the command may change
    its meaning; `hides`: errors do not reach the output.
    """
    state, place = runner.state, runner.state.place
    is_plain = status is not None and not state.doubt and is_plainly_wrapped(fields)
    for folder in place.folders:
        program = launched.launched(fields, Place((folder,)), stdin)
        if program is None:
            return None
        if not (place.known or place.is_one_of_them):
            program = launched.Launched()
        launch = None
        if program.language and is_plain:
            launch = Launch(
                "sh" if program.language == "source" and state.is_zsh else program.language,
                arguments=program.arguments,
                status=_status_of(fields, program, status or 0) if place.known else 0,
                shows_errors=not hides
                and not any(runner.output.shows_failure(verb) for verb in ("", *file_commands.VOCAL)),
                strict=program.strict,
                is_piped=program.is_piped,
                home=state.home,
            )
        is_read = launch is not None
        if launch is None and (program.path or program.content is not None or None in program.arguments):
            launch = Launch("", arguments=program.arguments)  # not read as a program; only where it may have gone
        runner.effects.append(Effect(Operation.RUN, folder, content=program.content, other=program.path, launch=launch))
        if place.known and is_read:
            return program.path
    return None


def _status_of(fields: list[Field], program_run: launched.Launched, status: int) -> int:
    """How certain it is that all of a program ran.

    A program that need not have succeeded may have ended early without a message, by ``timeout`` or the like or by an
    option of its shell.
    """
    program = unwrapped(fields)
    is_alone = program is not None and program.field is fields[0] and program_run.language != "source"
    return int(status) if is_alone or status != 1 else 0


def _record_unknown_program(runner: Execution, fields: list[Field], verb: str, arguments: list[Field]) -> None:
    """In a script, an unknown program may have written anything."""
    program, _ = _program(verb, arguments)
    place = runner.state.place
    if fields and not launched.is_known(program) and launched.launched(fields, place, launched.Input()) is None:
        runner.effects += [Effect(Operation.RUN, folder) for folder in place.folders]


def _fields(runner: Execution, item: Simple) -> list[Field]:
    scope = runner.state.scope
    expanded = []
    for raw in item.words:
        fields = words.fields(raw, scope)
        expanded += fields
        if any(not field.exact for field in fields) and ("((" in raw or "=" in raw):
            runner.state.variables.clear()  # an expansion that may set variables
    return expanded


def _verb(fields: list[Field]) -> tuple[str, list[Field]]:
    """The name of the program and its arguments; the name is empty if there is none or it is unknown."""
    at = 0
    while at < len(fields) - 1 and fields[at].exact and fields[at].text in _WRAPPERS:
        after = fields[at + 1]
        if not after.exact or after.text.startswith("-") or "=" in after.text:
            return "env", fields[at + 1 :]
        at += 1
    if at >= len(fields) or not fields[at].exact:
        return "", fields[at:]
    name = fields[at].text
    if at and fields[at - 1].text not in ("command", "builtin", "time") and name in ("echo", "printf"):
        return f"/bin/{name}", fields[at + 1 :]  # the program, which is not the builtin
    if name.startswith(("/bin/", "/usr/bin/")) and name.rpartition("/")[2] not in ("echo", "printf"):
        name = name.rpartition("/")[2]
    arguments = fields[at + 1 :]
    if name == "git" and arguments and arguments[0].exact and arguments[0].text in ("mv", "rm"):
        return f"git {arguments[0].text}", arguments[1:]
    return name, arguments


def _is_seen(runner: Execution, verb: str, item: Simple, *, hidden: bool) -> bool:
    """Whether the output would show a failure, and shows none."""
    if not item.words:
        return bool(item.assigned) or not (hidden or runner.output.shows_failure("sh"))
    known = verb.split(maxsplit=1)[0] if verb else ""
    return known in file_commands.VOCAL and not hidden and not runner.output.shows_failure(known)


# -- effects on files ------------------------------------------------------------------------------------------------


def printed(runner: Execution, item: Statement, setting: Setting) -> str | None:
    """The output of a part of a pipeline, if it is literal text and the part does nothing else."""
    if not isinstance(item, Simple) or item.inner or item.assigned or not item.sound or runner.state.doubt:
        return None
    flow = redirected(runner, item.redirects)
    verb, arguments = _verb(_fields(runner, item))
    if flow.takes_output or flow.written or flow.unclear:
        return None
    return _text(runner, verb, arguments, flow.stdin if flow.has_stdin else setting.stdin)


def _text(runner: Execution, verb: str, arguments: list[Field], stdin: str | None) -> str | None:
    """The standard output of a command, if its words alone determine it."""
    if any(not field.exact or field.has_home for field in arguments):
        return None
    texts = [field.text for field in arguments]
    text: str | None = None
    if verb == "echo":
        is_ambiguous = runner.state.is_zsh and any("\\" in field or field == "-" for field in texts)
        is_ambiguous = is_ambiguous or (runner.state.is_posix and builtins.is_echo_ambiguous(texts))
        text = None if is_ambiguous else builtins.echo(texts)
    elif verb == "printf":
        text = None if runner.state.is_posix and builtins.is_printf_ambiguous(texts) else builtins.printf(texts)
    elif verb == "cat" and texts in ([], ["-"]):
        text = stdin
    elif verb in _QUIET:
        text = ""
    return None if text is None or _PRINTING.search(text) else text


def _effects(
    runner: Execution, verb: str, arguments: list[Field], flow: Streams, stdin: str | None
) -> list[Effect] | None:
    """The certain effects of a command that succeeded; None if one of them is in doubt."""
    own = _own_effects(runner, verb, arguments, stdin)
    if own is None or flow.unclear:
        return None
    out: list[Effect] = []
    for path, appends in flow.written:
        effect = _written(runner, verb, arguments, path, stdin, appends=appends)
        if effect is None:
            return None
        out.append(effect)
    paths = [path for effect in own for path in (effect.path, effect.other) if path]
    if any(overlap(effect.path, path) for effect in out for path in paths):
        return None
    return [*out, *own]


def _own_effects(runner: Execution, verb: str, arguments: list[Field], stdin: str | None) -> list[Effect] | None:
    if verb == "tee":
        return _tee(runner, arguments, stdin)
    if verb in ("echo", "printf", "cat", "") or verb in _QUIET:
        return [] if verb or not arguments else None
    effects = file_commands.certain(verb, arguments, runner.state.place, runner.state.new_folders)
    if effects is None and not possible_writes.names(*_program(verb, arguments), runner.state.place):
        return []
    return effects


def _tee(runner: Execution, arguments: list[Field], stdin: str | None) -> list[Effect] | None:
    options = [field.text for field in arguments if field.text.startswith("-")]
    fields = [field for field in arguments if not field.text.startswith("-")]
    paths = [runner.state.place.exact(field) for field in fields]
    if stdin is None or _PRINTING.search(stdin) or None in paths or set(options) - {"-a", "--append"}:
        return None
    known = [path for path in paths if path is not None and not is_system(path)]
    if len(set(known)) < len(known):
        return None
    operation = Operation.APPEND if options else Operation.WRITE
    return [Effect(operation, path, content=stdin) for path in known]


def _written(
    runner: Execution, verb: str, arguments: list[Field], path: str, stdin: str | None, *, appends: bool
) -> Effect | None:
    """The effect of a command's output on the file it is redirected to."""
    source = runner.state.place.exact(arguments[0]) if verb == "cat" and len(arguments) == 1 else None
    if source is not None and not appends and not arguments[0].text.startswith("-"):
        return None if overlap(source, path) or is_system(source) else Effect(Operation.COPY, source, other=path)
    if verb == "tee":
        text = stdin if all(field.exact for field in arguments) else None
    else:
        text = _text(runner, verb, arguments, stdin) if verb or arguments else ""
    if text is None or _PRINTING.search(text):
        return None
    return Effect(Operation.APPEND if appends else Operation.WRITE, path, content=text)


def _program(verb: str, arguments: list[Field]) -> tuple[str, list[Field]]:
    """The name and the arguments by which `possible_writes` looks a command up."""
    if verb.startswith("git "):
        return "git", [Field(verb[4:]), *arguments]
    program = unwrapped([Field(verb), *arguments]) if verb else None
    if program is not None and program.name:
        return program.name, list(program.arguments)
    return verb.rpartition("/")[2], arguments


def _possible_writes(runner: Execution, verb: str, arguments: list[Field], flow: Streams) -> list[str]:
    """Everything that a command may have changed."""
    place = runner.state.place
    paths = [path for path, _ in flow.written] + flow.unclear
    name, words = _program(verb, arguments)
    if name == "env" and words:  # an option that may change what is run, or where
        paths += [
            *place.reachable,
            *(path for field in words for path in place.around(field) if field.text[:1] != "-"),
        ]
    else:
        paths += possible_writes.names(name, words, place)
    if name == "ln" or (name == "cp" and any(_LINKS.fullmatch(field.text) for field in words)):
        paths += _linked_to(words, place)
        runner.state.linked = (*runner.state.linked, *paths)
    return list(dict.fromkeys(path for path in paths if path != "/" and not is_system(path)))


_LINKS = re.compile(r"-(?=[^ls]*[ls])[A-Za-z]+|--l.*|--sy.*")
"""Options of cp that make it link."""


def _linked_to(arguments: list[Field], place: Place) -> list[str]:
    """Where relative symbolic links may lead: from the folder that holds the link, not from the working directory."""
    names = [field for field in arguments if not field.text.startswith("-")]
    if len(names) < 2:
        return []
    folders = [folder for where in place.around(names[-1]) for folder in (where, posixpath.dirname(where))]
    return [posixpath.normpath(posixpath.join(folder, name.text)) for folder in folders for name in names[:-1]]


def _record(runner: Execution, effects: list[Effect]) -> None:
    """Record certain effects, except on paths that have two names since this command made a link."""
    linked = runner.state.linked
    for effect in effects:
        paths = [path for path in (effect.path, effect.other) if path]
        if any(overlap(path, link) for path in paths for link in linked):
            runner.unclear(dict.fromkeys([*paths, *linked]))
            continue
        runner.effects.append(effect)
        if effect.operation is Operation.FOLDER:
            runner.state.new_folders |= {effect.path}
        elif runner.state.new_folders and effect.operation in (Operation.DELETE, Operation.MOVE):
            runner.state.new_folders = frozenset(
                p for p in runner.state.new_folders if not any(overlap(p, q) for q in paths)
            )
