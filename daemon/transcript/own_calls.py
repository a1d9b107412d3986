"""Recognises recorded calls of our own: recall's tools, and shell calls that ran one of our reading commands.

The output of such a call quotes sessions that are already archived. If we indexed it, a search would find itself
(docs/reliability.md, S13). The archive keeps it all. The output of a shell call is one text, so the output of other
commands in the same call is left out with ours. A command that we cannot read with certainty counts as ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from daemon import records
from daemon.model import Part
from daemon.transcript.shell import words
from daemon.transcript.shell.heredocs import MARK, STRING_MARK, NotUnderstood
from daemon.transcript.shell.known_programs import PYTHON, unwrapped
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Block, Chain, Pipeline, Script, Sequence, Simple, Statement, parse
from daemon.transcript.tool_calls import valid_text

READING = word_set(
    "recall recall-get recall-context recall-messages recall-sessions recall-timeline recall-files search files "
    "history show open export trajectory mcp"
)
"""Our commands whose output quotes the records, as that of `reconstitute PATH` may."""
DOING = word_set(
    "restore alias forget backup restore-archive pause status doctor models index run adapter web service config "
    "completion"
)
"""Our other commands, which print only what they did."""
_PROGRAM = "reconstitute"
_MODULE = "daemon.cli"
_SOCKET = "reconstitute/control.sock"
_OWN_TOOL = re.compile(
    r"(?:recall|reconstitute).*|.*reconstitute.*|.*[_.\-/]recall(?:_(?:get|context|messages|sessions|timeline|files))?"
)
_SHELL_TOOLS = frozenset({"bash", "shell"})
_CARRIERS = word_set(
    "bash sh zsh dash ksh fish eval ssh su xargs parallel find watch script docker podman kubectl tmux at batch"
)
"""They run a command from their arguments, as words or as one text."""
_FLAGS = word_set("-v --verbose")
_ASKING = word_set("-h --help --version")
_LOOKED_UP = re.compile(rf"[\"']?(?:\$\(|`)\s*(?:which|command -v|type -[pP])\s+{_PROGRAM}\s*[)`][\"']?")
_SPELT = re.compile(rf"(?:{_PROGRAM}|{re.escape(_MODULE)})['\"]?\s+(?:-\S+\s+)*(?:{'|'.join(sorted(READING))})\b")
_DEEPEST = 4


def is_own_tool(name: str) -> bool:
    """Whether a tool is our own recall, under whatever prefix an MCP client gives it."""
    return _OWN_TOOL.fullmatch(name.lower()) is not None


def is_own_call(part: Part) -> bool:
    """Whether a tool part is a call of our own tools, so that neither its input nor its output is new."""
    return part.type == "tool" and is_own_tool(valid_text(records.text(part.data.get("tool"))))


def shows_own_answer(part: Part) -> bool:
    """Whether the output of a tool part is an answer of ours, from a tool or a shell command."""
    if is_own_call(part):
        return True
    if part.type != "tool" or records.text(part.data.get("tool")).lower() not in _SHELL_TOOLS:
        return False
    call_input = records.table(records.table(part.data.get("state")).get("input"))
    return runs_us(valid_text(records.text(call_input.get("command"))))


def runs_us(command: str) -> bool:
    """Whether a shell command runs one of READING, anywhere in it."""
    return _runs_us(command, 0)


def _runs_us(command: str, depth: int) -> bool:
    if _PROGRAM not in command and _MODULE not in command:
        return False  # nearly all of them
    if depth > _DEEPEST:
        return True
    try:
        script = parse(command)
        scope = words.Scope(None, None)
        return any(_is_ours(simple, script, scope, depth) for simple in _simple(script.body))
    except (NotUnderstood, RecursionError):
        return _SPELT.search(command.replace("recall_", "recall-")) is not None


def _simple(statement: Statement | Sequence) -> Iterator[Simple]:
    """Every simple command of a script, in order, those in substitutions before their command."""
    if isinstance(statement, Simple):
        for inner in statement.inner:
            yield from _simple(inner)
        yield statement
        return
    parts: tuple[Statement | Sequence, ...]
    if isinstance(statement, Sequence):
        parts = tuple(item for item, _ in statement.items)
    elif isinstance(statement, Chain):
        parts = statement.statements
    elif isinstance(statement, Pipeline):
        parts = statement.parts
    else:
        parts = (statement.body,) if isinstance(statement, Block) else statement.inner
    for part in parts:
        yield from _simple(part)


def _is_ours(command: Simple, script: Script, scope: words.Scope, depth: int) -> bool:
    if not command.words or command.words[0] in ("export", "local", "declare", "readonly"):
        _assign((*command.assigned, *command.words[1:]), scope)
        return False
    fields = [field for raw in command.words for field in _fields(raw, scope)]
    program = unwrapped(fields)
    if program is None:
        return False
    name, arguments = program.field.text.rpartition("/")[2], [field.text for field in program.arguments]
    if name == _PROGRAM or (PYTHON.fullmatch(name) and arguments[:2] == ["-m", _MODULE]):
        return _reads(arguments if name == _PROGRAM else arguments[2:])
    if name == "curl":
        return any(text.endswith(_SOCKET) for text in arguments)
    return name in _CARRIERS and any(_runs_us(text, depth + 1) for text in _carried(command, script, arguments))


def _assign(assignments: tuple[str, ...], scope: words.Scope) -> None:
    for assignment in assignments:
        name, sign, raw = assignment.partition("=")
        value = words.value(raw, scope) if sign else None
        if value is not None:
            scope.variables[name] = words.Field(value)


def _fields(raw: str, scope: words.Scope) -> list[words.Field]:
    """A word's fields; of an unknown one, as ``$VENV/bin/reconstitute``, the part after the last slash."""
    fields = words.fields(raw, scope)
    if fields and all(field.exact for field in fields):
        return fields
    if _LOOKED_UP.fullmatch(raw):
        return [words.Field(_PROGRAM)]
    end = raw.rpartition("/")[2].strip("\"'{}")
    return [words.Field(end)] if re.fullmatch(r"[\w.-]+", end) else [words.Field("", exact=False)]


def _reads(arguments: list[str]) -> bool:
    """Whether our program, run with these words, answers from the records; an unknown word counts as yes."""
    first = _first(arguments)
    return first is not None and first not in DOING


def _first(arguments: list[str]) -> str | None:
    """The subcommand of our program; None if it only prints its help or version."""
    remaining = arguments[::-1]
    while remaining:
        word = remaining.pop()
        if word == "--config" and remaining:
            remaining.pop()
        elif word in _ASKING:
            return None
        elif word not in _FLAGS and not word.startswith("--config="):
            return word.replace("recall_", "recall-")
    return None


def _carried(command: Simple, script: Script, arguments: list[str]) -> Iterator[str]:
    """The commands that a carrier may run: each argument by itself, our name with what follows, and its input."""
    for at, text in enumerate(arguments):
        yield text
        if text.rpartition("/")[2] in (_PROGRAM, _MODULE) and _first(arguments[at + 1 :]) in READING:
            yield " ".join([_PROGRAM, *arguments[at + 1 :]])
    for redirect in command.redirects:
        if redirect.target.startswith(MARK):
            yield script.bodies[int(redirect.target.removeprefix(MARK))].text
        elif redirect.target.startswith(STRING_MARK):
            yield redirect.target.removeprefix(STRING_MARK).strip("\"'")
