"""The builtins of a shell: what they do to the shell itself, and what ``echo`` and ``printf`` print.

What changes how later commands work, and is not followed here, ends all certainty (`State.doubt`).
"""

from __future__ import annotations

import re

from daemon.transcript.shell import words
from daemon.transcript.shell.known_programs import launched
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Simple
from daemon.transcript.shell.state import Execution, Place, Setting, Status
from daemon.transcript.shell.words import SIMPLE_ESCAPES, Field, escaped

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
_ECHO_OPTION = re.compile(r"-[neE]+")
_ECHO_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0([0-7]{0,3})|(.)|$)", re.DOTALL
)
_FORMAT = re.compile(
    r"%(.?)|\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.)|$)", re.DOTALL
)
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LONGEST = 1 << 24
_BASHS_OWN = re.compile(r"\\[^\\abfnrtv0-7]|^--")


def decides(assignment: str) -> bool:
    return _DECIDING.fullmatch(re.split(r"[+=\[]", assignment, maxsplit=1)[0]) is not None


def doubt_folder(runner: Execution, verb: str, item: Simple) -> None:
    """Doubt everything after a variable is set that decides where ``cd`` goes."""
    named = [*item.assigned, *(item.words if verb in _SETTERS or verb == "export" else ())]
    moves = any(_LEADING.match(assignment) for assignment in named)
    if moves or (verb in _MOVING and any(decides(assignment) for assignment in item.assigned)):
        runner.unclear(runner.state.place.reachable)
        runner.state.doubt = True


def assign(runner: Execution, item: Simple, *, sure: bool) -> None:
    for raw in item.assigned:
        match = ASSIGNMENT.fullmatch(raw)
        if match is None or decides(raw):
            runner.state.doubt = True
            continue
        name, operator, value = match.groups()
        known = words.value(value, runner.state.scope) if operator == "=" and not value.startswith("(") else None
        if known is None and _TEMPORARY.fullmatch(value):
            known = "/dev/unknown"  # a file that did not exist before, outside of everything
        runner.state.variables.pop(name, None)
        if known is not None and sure:
            runner.state.variables[name] = Field(known)


def change(
    runner: Execution, verb: str, arguments: list[Field], *, ok: bool, status: Status, setting: Setting
) -> bool | None:
    """Apply a builtin's effect on the shell; returns whether it surely succeeded, None if `verb` is not one."""
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
            runner.unclear(state.place.reachable)
        is_activation = verb in ("source", ".") and arguments and arguments[0].text.endswith("/activate")
        state.doubt = state.doubt or not is_activation
        if state.doubt:
            state.variables.clear()
            state.parameters = {}
    elif verb in _SHELLS and arguments and launched.is_read_through(arguments):
        plain = arguments[0].text == "-c"  # any other option may change how it goes on
        return runner.nested(arguments[1].text, status if plain else Status.MAYBE, setting)
    else:
        return None
    return ok


def _change_folder(runner: Execution, verb: str, arguments: list[Field], *, ok: bool) -> None:
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
        state.place = Place((path,), elsewhere=state.place.outermost())
        return
    entered = state.place.entered(target) if target and verb == "cd" and target.text else None
    if entered is not None:
        state.place = entered
        return
    folders = dict.fromkeys([*state.place.reachable, *([path] if path else [])])
    state.place = Place(tuple(folders), known=False)
    state.variables.pop("PWD", None)


def _set(runner: Execution, arguments: list[Field], *, ok: bool) -> None:
    names = [field.text for field in arguments if field.exact]
    if len(names) != len(arguments):
        runner.state.doubt, runner.state.parameters = True, {}
        return
    remaining = names[::-1]
    while remaining:
        name = remaining.pop()
        if name in ("-o", "+o") or re.fullmatch(r"[-+][euxv]*o", name):
            option = remaining.pop() if remaining else ""
            letters = {"errexit": "e"}.get(option, "")
            if option not in ("errexit", "pipefail", "nounset", "xtrace"):
                runner.state.doubt = True
            name = name[:-1] + letters
        if not re.fullmatch(r"[-+][euxv]*", name):
            runner.state.doubt, runner.state.parameters = True, {}
            return
        if "e" in name:
            runner.state.strict = name[0] == "-" and ok


def _declare(runner: Execution, verb: str, arguments: list[Field], *, sure: bool) -> None:
    state = runner.state
    for field in arguments:
        match = ASSIGNMENT.fullmatch(field.text)
        if decides(field.text):
            state.doubt = True
        elif match is None:
            state.variables.pop(field.text, None)
        elif verb == "export" and match[2] == "=" and field.exact and sure and "~" not in match[3]:
            state.variables[match[1]] = Field(match[3])
        else:
            state.variables.pop(match[1], None)
    if verb == "shift":
        state.parameters = {}
    if verb in ("read", "mapfile", "readarray", "getopts", "let", "printf"):
        state.variables.clear()
    if any(field.text.startswith(("-", "+")) for field in arguments) or any(not field.exact for field in arguments):
        state.variables.clear()


# -- what echo and printf print --------------------------------------------------------------------------------------


def is_echo_ambiguous(words: list[str]) -> bool:
    """Whether ``echo`` prints this in different ways in the shells that are called ``sh``."""
    return any("\\" in word for word in words) or (bool(words) and words[0].startswith("-"))


def is_printf_ambiguous(words: list[str]) -> bool:
    """Whether ``printf`` prints this in different ways in the shells that are called ``sh``."""
    return bool(words) and _BASHS_OWN.search(words[0]) is not None


def echo(words: list[str]) -> str | None:
    """The output of ``echo`` with these arguments, without ``xpg_echo``."""
    is_escaped, ends = False, "\n"
    at = 0
    while at < len(words) and _ECHO_OPTION.fullmatch(words[at]):
        ends = "" if "n" in words[at] else ends
        for char in words[at]:
            is_escaped = {"e": True, "E": False}.get(char, is_escaped)
        at += 1
    text = " ".join(words[at:])
    if not is_escaped or "\\" not in text:
        return text + ends
    return _interpreted(text, ends)


def _interpreted(text: str, ends: str) -> str | None:
    pieces: list[str] = []
    done = 0
    for match in _ECHO_ESCAPE.finditer(text):
        pieces.append(text[done : match.start()])
        done = match.end()
        if match[5] == "c":
            return "".join(pieces)
        if match[5] is not None or match.lastindex is None:
            pieces.append(SIMPLE_ESCAPES.get(match[5] or "", match[0]))
            if match[5] in ("x", "u", "U"):
                return None
            continue
        char = escaped(match.groups(), "") if match[4] != "" else None
        if char is None:
            return None
        pieces.append(char)
    return "".join([*pieces, text[done:], ends])


def printf(words: list[str]) -> str | None:
    """The output of ``printf`` with these arguments: literal text, escapes, ``%s``, ``%d`` and ``%%``."""
    if words[:1] == ["--"]:
        words = words[1:]
    if not words or words[0].startswith("-"):
        return None
    steps = _steps(words[0])
    if steps is None:
        return None
    remaining = words[1:][::-1]
    takes = any(kind != "" for kind, _ in steps)
    pieces: list[str] = []
    size = 0
    while True:
        for kind, text in steps:
            piece = _argument(kind, remaining) if kind else text
            if piece is None:
                return None
            pieces.append(piece)
            size += len(piece)
        if not remaining or not takes:
            return "".join(pieces)
        if size > _LONGEST:
            return None


def _steps(text: str) -> list[tuple[str, str]] | None:
    """A format as (conversion, "") and ("", literal text) in turn."""
    steps: list[tuple[str, str]] = []
    done = 0
    for match in _FORMAT.finditer(text):
        steps.append(("", text[done : match.start()]))
        done = match.end()
        conversion = match[1]
        if conversion is None:
            if match.lastindex is None:
                return None
            char = escaped(match.groups()[1:], "\"'?")
            if char is None:
                return None
            steps.append(("", char))
        elif conversion == "%":
            steps.append(("", "%"))
        elif conversion in ("s", "d", "i"):
            steps.append((conversion, ""))
        else:
            return None
    return [*steps, ("", text[done:])]


def _argument(kind: str, remaining: list[str]) -> str | None:
    if not remaining:
        return "" if kind == "s" else "0"
    word = remaining.pop()
    if kind == "s":
        return word
    return word if _NUMBER.fullmatch(word) else None
