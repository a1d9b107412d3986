"""Which recorded calls asked us: recall's own tools, and shell calls that ran one of our reading commands.

What such a call answered is quoted from sessions that are archived already: indexed again, a search would find itself
(docs/reliability.md, S13). The archive keeps it all. A shell call's outputs are one text, so that what another command
of the same call printed goes with ours. Where a command cannot be read with certainty it counts as ours.
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
    "history show export trajectory mcp"
)
"""Our commands whose answer is quoted from the records, as that of `reconstitute PATH` may be."""
DOING = word_set("restore alias status models index run adapter service config")
"""The others: what they print is what they did."""
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
"""They run a command that stands among their arguments, as words or as one text."""
_FLAGS = word_set("-v --verbose")
_ASKING = word_set("-h --help --version")
_LOOKED_UP = re.compile(rf"[\"']?(?:\$\(|`)\s*(?:which|command -v|type -[pP])\s+{_PROGRAM}\s*[)`][\"']?")
_SPELT = re.compile(rf"(?:{_PROGRAM}|{re.escape(_MODULE)})['\"]?\s+(?:-\S+\s+)*(?:{'|'.join(sorted(READING))})\b")
_DEEPEST = 4


def is_own_tool(name: str) -> bool:
    """Whether a tool is our own recall, under whatever prefix an MCP client gives it."""
    return _OWN_TOOL.fullmatch(name.lower()) is not None


def is_own_call(part: Part) -> bool:
    """Whether a tool part is a call of our own tools: neither what was asked nor what was answered is news."""
    return part.type == "tool" and is_own_tool(valid_text(records.text(part.data.get("tool"))))


def shows_own_answer(part: Part) -> bool:
    """Whether the output of a tool part is an answer of ours, by whichever door."""
    if is_own_call(part):
        return True
    if part.type != "tool" or records.text(part.data.get("tool")).lower() not in _SHELL_TOOLS:
        return False
    given = records.table(records.table(part.data.get("state")).get("input"))
    return runs_us(valid_text(records.text(given.get("command"))))


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
    """Every simple command of a script, in its order, those of substitutions before the one they stand in."""
    if isinstance(statement, Simple):
        for inner in statement.inner:
            yield from _simple(inner)
        yield statement
        return
    parts: tuple[Statement | Sequence, ...]
    if isinstance(statement, Sequence):
        parts = tuple(item for item, _ in statement.items)
    elif isinstance(statement, Chain):
        parts = (statement.first, *(right for _, right in statement.rest))
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
    name, given = program.field.text.rpartition("/")[2], [field.text for field in program.arguments]
    if name == _PROGRAM or (PYTHON.fullmatch(name) and given[:2] == ["-m", _MODULE]):
        return _reads(given if name == _PROGRAM else given[2:])
    if name == "curl":
        return any(text.endswith(_SOCKET) for text in given)
    return name in _CARRIERS and any(_runs_us(text, depth + 1) for text in _carried(command, script, given))


def _assign(assignments: tuple[str, ...], scope: words.Scope) -> None:
    for assignment in assignments:
        name, sign, raw = assignment.partition("=")
        value = words.value(raw, scope) if sign else None
        if value is not None:
            scope.variables[name] = value


def _fields(raw: str, scope: words.Scope) -> list[words.Field]:
    """A word's fields; of one that is not known, as ``$VENV/bin/reconstitute``, what stands behind the last slash."""
    fields = words.fields(raw, scope)
    if fields and all(field.exact for field in fields):
        return fields
    if _LOOKED_UP.fullmatch(raw):
        return [words.Field(_PROGRAM)]
    end = raw.rpartition("/")[2].strip("\"'{}")
    return [words.Field(end)] if re.fullmatch(r"[\w.-]+", end) else [words.Field("", exact=False)]


def _reads(given: list[str]) -> bool:
    """Whether our program, given these words, answers from the records; a word that is not known may ask for it."""
    first = _first(given)
    return first is not None and first not in DOING


def _first(given: list[str]) -> str | None:
    """The word that says what our program does; None where it only tells of itself."""
    left = given[::-1]
    while left:
        word = left.pop()
        if word == "--config" and left:
            left.pop()
        elif word in _ASKING:
            return None
        elif word not in _FLAGS and not word.startswith("--config="):
            return word.replace("recall_", "recall-")
    return None


def _carried(command: Simple, script: Script, given: list[str]) -> Iterator[str]:
    """The commands that a carrier may run: each argument by itself, our name with what follows, and its input."""
    for at, text in enumerate(given):
        yield text
        if text.rpartition("/")[2] in (_PROGRAM, _MODULE) and _first(given[at + 1 :]) in READING:
            yield " ".join([_PROGRAM, *given[at + 1 :]])
    for redirect in command.redirects:
        if redirect.target.startswith(MARK):
            yield script.bodies[int(redirect.target.removeprefix(MARK))].text
        elif redirect.target.startswith(STRING_MARK):
            yield redirect.target.removeprefix(STRING_MARK).strip("\"'")
