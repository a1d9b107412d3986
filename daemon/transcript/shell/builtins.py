"""What builtins do to the shell itself: its folder, its variables, its options; and where that ends all certainty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from daemon.transcript.shell import words
from daemon.transcript.shell.known_programs import launched
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Simple
from daemon.transcript.shell.places import Place
from daemon.transcript.shell.words import Field

if TYPE_CHECKING:
    from daemon.transcript.shell.effects import Runner, Setting, Status

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=)(.*)", re.DOTALL | re.ASCII)
_DECIDING = re.compile(
    r"IFS|HOME|CDPATH|PWD|OLDPWD|POSIXLY_CORRECT|BASH\w*|SHELLOPTS|ENV|GLOB\w*|TMPDIR|LC_\w+|LANG|\w+_CONTROL|\w+_SUFFIX|(?:GNU)?MAKE\w*|GIT_\w+|npm_config_\w+|NPM_CONFIG_\w+"
)
"""Variables that change what commands do; such a change is not followed."""
_SETTERS = word_set("read mapfile readarray getopts let declare typeset local readonly unset shift")
_DOUBTFUL = word_set("source . eval exec return alias unalias trap shopt enable hash coproc break continue logout")
_SHELLS = word_set("bash sh zsh dash ksh")
_MOVING = word_set("cd pushd popd")
_LEADING = re.compile(r"CDPATH\+?=")
_TEMPORARY = re.compile(r"\"?\$\(mktemp\b[^()]*\)\"?")


def decides(assignment: str) -> bool:
    return _DECIDING.fullmatch(re.split(r"[+=\[]", assignment, maxsplit=1)[0]) is not None


def mislead(runner: Runner, verb: str, item: Simple) -> None:
    """Where a variable is set that decides which folder ``cd`` goes to, what comes may be in any."""
    named = [*item.assigned, *(item.words if verb in _SETTERS or verb == "export" else ())]
    moves = any(_LEADING.match(one) for one in named)
    if moves or (verb in _MOVING and any(decides(one) for one in item.assigned)):
        runner.unclear(runner.state.place.folders)
        runner.state.doubt = True


def assign(runner: Runner, item: Simple, *, sure: bool) -> None:
    for raw in item.assigned:
        found = ASSIGNMENT.fullmatch(raw)
        if found is None or decides(raw):
            runner.state.doubt = True
            continue
        name, operator, value = found.groups()
        known = words.value(value, runner.state.scope) if operator == "=" and not value.startswith("(") else None
        if known is None and _TEMPORARY.fullmatch(value):
            known = "/dev/unknown"  # a file that did not exist before, outside of everything
        runner.state.variables.pop(name, None)
        if known is not None and sure:
            runner.state.variables[name] = known


def change(
    runner: Runner, verb: str, arguments: list[Field], *, ok: bool, status: Status, setting: Setting
) -> bool | None:
    """What a builtin does to the shell; None where `verb` is no such command."""
    state = runner.state
    if verb in _MOVING:
        _change_folder(runner, verb, arguments, ok=ok)
    elif verb == "set":
        _set(runner, arguments, ok=status > 0)
    elif verb == "exit":
        known = len(arguments) == 1 and re.fullmatch(r"[1-9]\d?", arguments[0].text) and arguments[0].exact
        state.doubt = state.doubt or not (known and runner.exit_is_zero and not setting.inner)
    elif verb == "export" or verb in _SETTERS or (verb == "printf" and arguments[:1] == [Field("-v")]):
        _declare(runner, verb, arguments, sure=status > 0)
    elif verb in _DOUBTFUL:
        if verb in ("eval", "trap"):
            runner.unclear(state.place.folders)
        is_activation = verb in ("source", ".") and arguments and arguments[0].text.endswith("/activate")
        state.doubt = state.doubt or not is_activation
        if state.doubt:
            state.variables.clear()
            state.given = {}
    elif verb in _SHELLS and arguments and launched.is_read_through(arguments):
        plain = arguments[0].text == "-c"  # any other option may change how it goes on
        return runner.nested(arguments[1].text, status if plain else type(status)(0), setting)
    else:
        return None
    return ok


def _change_folder(runner: Runner, verb: str, arguments: list[Field], *, ok: bool) -> None:
    state = runner.state
    if arguments[:1] == [Field("--")]:
        arguments = arguments[1:]
    target: Field | None = None
    if not arguments and verb == "cd":
        target = Field(state.home) if state.home else None
    elif len(arguments) == 1 and arguments[0].exact and not arguments[0].text.startswith("-"):
        target = arguments[0]
    path = state.place.exact(target) if target and verb == "cd" and target.text else None
    if path is not None and ok:
        state.visited = tuple(dict.fromkeys((*state.visited, *state.place.folders)))
        state.place = Place((path,))
        return
    entered = state.place.entered(target) if target and verb == "cd" and target.text else None
    if entered is not None:
        state.place = entered
        return
    folders = dict.fromkeys([*state.place.folders, *state.visited, *([path] if path else [])])
    state.place = Place(tuple(folders), known=False)
    state.variables.pop("PWD", None)


def _set(runner: Runner, arguments: list[Field], *, ok: bool) -> None:
    names = [one.text for one in arguments if one.exact]
    if len(names) != len(arguments):
        runner.state.doubt, runner.state.given = True, {}
        return
    left = names[::-1]
    while left:
        name = left.pop()
        if name in ("-o", "+o") or re.fullmatch(r"[-+][euxv]*o", name):
            option = left.pop() if left else ""
            letters = {"errexit": "e"}.get(option, "")
            if option not in ("errexit", "pipefail", "nounset", "xtrace"):
                runner.state.doubt = True
            name = name[:-1] + letters
        if not re.fullmatch(r"[-+][euxv]*", name):
            runner.state.doubt, runner.state.given = True, {}
            return
        if "e" in name:
            runner.state.strict = name[0] == "-" and ok


def _declare(runner: Runner, verb: str, arguments: list[Field], *, sure: bool) -> None:
    state = runner.state
    for one in arguments:
        found = ASSIGNMENT.fullmatch(one.text)
        if decides(one.text):
            state.doubt = True
        elif found is None:
            state.variables.pop(one.text, None)
        elif verb == "export" and found[2] == "=" and one.exact and sure and "~" not in found[3]:
            state.variables[found[1]] = found[3]
        else:
            state.variables.pop(found[1], None)
    if verb == "shift":
        state.given = {}
    if verb in ("read", "mapfile", "readarray", "getopts", "let", "printf"):
        state.variables.clear()
    if any(one.text.startswith(("-", "+")) for one in arguments) or any(not one.exact for one in arguments):
        state.variables.clear()
