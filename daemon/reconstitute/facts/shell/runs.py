"""What a shell call ran: its simple commands in the order in which they run, each with how it ended.

The exit status belongs to one command: in a list to the last one, in a pipeline to the last one or to the one that the
script asks for (``${PIPESTATUS[0]}``). Status 0 of a chain of ``&&`` belongs to all its commands. Another status
belongs to the last one if those before it only prepare (``cd x``, ``sed -i``, ``mv``) and the output reports no failure
of theirs. Any other command's end is unknown. Pure, never raises.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from daemon.reconstitute.facts.session_values import Call, CallStatus
from daemon.reconstitute.facts.shell import spellings
from daemon.transcript.shell import words
from daemon.transcript.shell.heredocs import MARK, STRING_MARK, NotUnderstood
from daemon.transcript.shell.known_programs import Program, unwrapped
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Block, Chain, Pipeline, Simple, Statement, parse
from daemon.transcript.shell.parse import Sequence as Steps

_LONGEST = 20_000
_QUIET = word_set(
    "cd echo printf export set unset source . true : pwd sleep mkdir date which clear env umask ulimit ls cat touch "
    "pushd popd shopt alias trap wait type command exit"
)
"""They hardly ever fail, and nobody asks whether they did."""
_PREPARES = word_set("sed cp mv rm ln chmod chown tee perl awk install patch rmdir unzip tar git")
_GIT_PREPARES = word_set("add mv rm")
"""They prepare for the command behind them; if one fails, it says so under its own name."""
_DROPPED = word_set("timeout time nohup nice ionice stdbuf setsid unbuffer caffeinate exec command builtin")
"""Wrappers that only watch a command."""
_PIPED = word_set("tail head cat tee grep less sed awk sort uniq wc cut tr more jq")
"""Behind a pipe they only show or filter what came before."""
_SHELLS = word_set("sh bash zsh dash ksh")
_CUT_OFF = frozenset({124, 130, 137, 143})
"""Exit statuses of a command that a time limit or a signal ended."""
_STATUS = re.compile(r"\$\?|\$\{PIPESTATUS\[(\d)\]\}|\$PIPESTATUS")
_ERROR_PREFIX = re.compile(r"^(?:[\w/.-]+: line \d+: )?([\w.+-]+|fatal): ", re.MULTILINE)
"""A program that reports an error under its own name; git writes ``fatal``."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One simple command of a call. `text` is as written, without assignments and wrappers that only watch it.

    `folder` is absolute, and empty if it is not known. `key` is the same for the same command, whatever its options and
    wrappers; `words` are those of the key as written. `is_started`: it surely ran. `link` is its chain of ``&&``, its
    place in it, and 1 if it is a link by itself; empty outside of a chain.
    """

    text: str
    assigned: tuple[str, ...]
    program: Program
    folder: str
    status: CallStatus
    key: Key
    words: Key
    exit: int | None = None
    is_started: bool = True
    is_inline: bool = False
    link: tuple[int, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether nobody asks how it ended: it hardly ever fails, or only shows what another one prints."""
        return self.program.name in _QUIET | _PIPED


def of(call: Call, base: str = "") -> tuple[Run, ...]:
    """The commands of a shell call; none if it did not run or cannot be parsed. `base` is the default folder."""
    was_run = call.status is not CallStatus.REFUSED and not (call.status is CallStatus.FAILED and call.exit is None)
    return _read(call, base, call.exit, call.status) if was_run else ()


def of_text(command: str, folder: str = "/") -> tuple[Run, ...]:
    """The commands of a line as if it had run and succeeded."""
    return _read(Call("bash", "", CallStatus.OK, "", "", 0, 0, command, folder, 0), "", 0, CallStatus.OK)


def names(command: str) -> frozenset[str]:
    """The programs that a script names anywhere, also in conditions and loops; empty if it cannot be parsed."""
    try:
        body = parse(command[:_LONGEST]).body
    except (NotUnderstood, RecursionError):
        return frozenset()
    statements: list[Statement] = [statement for statement, _ in body.items]
    programs = set()
    while statements:
        statement = statements.pop()
        if isinstance(statement, Simple):
            programs.add(_name(statement))
        elif isinstance(statement, Chain):
            statements += statement.statements
        elif isinstance(statement, Pipeline):
            statements += statement.parts
        else:
            statements += (
                [inner for inner, _ in statement.body.items] if isinstance(statement, Block) else statement.inner
            )
    return frozenset(programs)


def culprits(call: Call, commands: Sequence[Run]) -> tuple[Run, ...]:
    """The `commands` of a call that failed; if that is not known, those that may have."""
    candidates = commands or _read(call, "", None, CallStatus.UNKNOWN)
    failed = tuple(run for run in candidates if run.status is CallStatus.FAILED)
    loud = tuple(run for run in candidates if not run.is_quiet and run.status is not CallStatus.OK)
    return failed or loud or tuple(candidates)


def _read(call: Call, base: str, code: int | None, status: CallStatus) -> tuple[Run, ...]:
    if not call.command or len(call.command) > _LONGEST:
        return ()
    is_telling = _STATUS.search(call.command) is not None
    last = next(reversed(call.output.rstrip().splitlines()), "") if is_telling else ""
    reporting = frozenset("git" if name == "fatal" else name for name in _ERROR_PREFIX.findall(call.output)) & (
        _PREPARES | _QUIET
    )
    return _walked(call.command, call.folder or base, _Ended(status, code, last, reporting))


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a call ended: `last` is the last line of its output.

    `reporting` are the programs that reported an error in it, of those that hardly ever fail.
    """

    status: CallStatus
    code: int | None
    last: str
    reporting: frozenset[str]


@lru_cache(maxsize=8192)
def _walked(command: str, folder: str, ended: _Ended) -> tuple[Run, ...]:
    try:
        body = parse(command).body
    except (NotUnderstood, RecursionError):
        return ()
    body, code, part = _with_reported_status(body, ended)
    reader = _Reader(folder, ended.reporting, part)
    reader.steps(body, _end(ended.status, code))
    return tuple(replace(run, exit=code or None) if run.status is CallStatus.FAILED else run for run in reader.runs)


def _with_reported_status(body: Steps, ended: _Ended) -> tuple[Steps, int | None, int | None]:
    """The steps whose exit status is known, the status, and the part of a pipeline at their end that it belongs to.

    In ``run; echo exit $?`` the first step and the number printed, in ``run | tail; exit ${PIPESTATUS[0]}`` the first.
    """
    last = body.items[-1][0] if len(body.items) > 1 else None
    if not isinstance(last, Simple) or last.redirects or not last.words:
        return body, ended.code, None
    argument = " ".join(word.strip('"') for word in last.words[1:])
    match = _STATUS.search(argument)
    if match is None:
        return body, ended.code, None
    before = Steps(body.items[:-1])
    part = None if match[0] == "$?" else int(match[1] or 0)
    is_exit = last.words[0] == "exit" and match[0] == argument
    pattern = re.escape(argument).replace(re.escape(match[0]), r"(\d{1,3})", 1)
    is_printed = last.words[0] == "echo" and argument.count("$") == 1 and ended.status is CallStatus.OK
    printed = re.fullmatch(pattern, ended.last) if is_printed else None
    if not is_exit and printed is None:
        return body, ended.code, None
    if part is not None and not _is_one_pipeline(before.items[-1][0]):
        return before, None, None
    return before, int(printed[1]) if printed else ended.code, part


def _is_one_pipeline(statement: Statement) -> bool:
    """Whether it is a pipeline, or a chain of ``&&`` whose only pipeline is its last link."""
    links = statement.statements if isinstance(statement, Chain) else (statement,)
    is_and = not isinstance(statement, Chain) or all(operator == "&&" for operator, _ in statement.links)
    return is_and and [link for link in links if isinstance(link, Pipeline)] == [*links[-1:]]


def _end(status: CallStatus, code: int | None) -> CallStatus:
    if code in _CUT_OFF or status is CallStatus.STOPPED:
        return CallStatus.STOPPED
    if code is None:
        return CallStatus.UNKNOWN
    return CallStatus.FAILED if code else CallStatus.OK


@dataclass(slots=True)
class _Reader:
    """Walks a script in the order in which it runs; `folder` follows ``cd`` and is empty if it is not known.

    `reporting` are the programs that report an error. `status_part` is the part of the last pipeline whose status is
    known, if it is not the last part.
    """

    folder: str
    reporting: frozenset[str]
    status_part: int | None = None
    fails_in_pipes: bool = False
    is_started: bool = True
    runs: list[Run] = field(default_factory=list)

    def steps(self, steps: Steps, end: CallStatus) -> None:
        """Statements one after another: the status is the last one's. A call that was cut off may have been at any."""
        for number, (statement, is_background) in enumerate(steps.items):
            is_last = number == len(steps.items) - 1
            siblings = [s for s, _ in steps.items if s is not statement]
            is_alone = all(_is_quiet(sibling) for sibling in siblings)
            status = end if is_last or end is CallStatus.STOPPED else CallStatus.UNKNOWN
            if end is CallStatus.STOPPED and not is_alone:
                status = CallStatus.UNKNOWN
                self.is_started = self.is_started and not is_last  # it may not have been reached
            self.statement(statement, CallStatus.UNKNOWN if is_background else status)

    def statement(self, statement: Statement, end: CallStatus) -> None:
        if isinstance(statement, Simple):
            self.simple(statement, end)
        elif isinstance(statement, Chain):
            self.chain(statement, end)
        elif isinstance(statement, Pipeline):
            self.pipeline(statement, end)
        elif isinstance(statement, Block):
            folder = self.folder
            self.steps(statement.body, end)
            self.folder = folder if statement.is_subshell else self.folder

    def pipeline(self, pipeline: Pipeline, end: CallStatus) -> None:
        """Its status is the last one's, or with ``pipefail`` that of whatever failed; a signal ends all of them."""
        parts = pipeline.parts
        shows = all(isinstance(part, Simple) and _name(part) in _PIPED for part in parts[1:])
        at = len(parts) - 1 if self.status_part is None else self.status_part
        if self.fails_in_pipes and shows and end is CallStatus.FAILED:
            at = 0
        for number, part in enumerate(parts):
            is_known = number == at or (end is CallStatus.OK and self.fails_in_pipes)
            is_cut = end is CallStatus.STOPPED and number == 0 and shows
            self.inside(part, end if is_known or is_cut else CallStatus.UNKNOWN)

    def inside(self, part: Statement, end: CallStatus) -> None:
        """A part of a pipeline: it runs in a shell of its own."""
        folder = self.folder
        self.statement(part, end)
        self.folder = folder

    def chain(self, chain: Chain, end: CallStatus) -> None:
        """``a && b``: with status 0 all succeeded; else only those up to the first important one surely began."""
        parts = chain.statements
        is_and = all(operator == "&&" for operator, _ in chain.links)
        is_good = is_and and end is CallStatus.OK
        loud = [part for part in parts if not _is_quiet(part) or self.reports_error(part)] if is_and else []
        important = [part for part in loud if self.is_important(part)]
        is_prepared = end is CallStatus.FAILED and important == loud[-1:]
        to_blame = important if is_prepared else loud
        was_started = self.is_started
        number = len(self.runs)
        for place, part in enumerate(parts):
            first = len(self.runs)
            came_through = is_good or (is_prepared and part in loud and part not in important)
            status = CallStatus.OK if came_through else end if to_blame == [part] else CallStatus.UNKNOWN
            self.statement(part, status)
            is_alone = isinstance(part, Simple) and len(self.runs) == first + 1
            link = (number, place, int(is_alone)) if is_and else ()
            self.runs[first:] = [replace(run, link=link or run.link) for run in self.runs[first:]]
            self.is_started = self.is_started and is_and and (came_through or part not in loud)
        self.is_started = was_started

    def is_important(self, part: Statement) -> bool:
        """Whether it is more than a preparation, or a preparation that reports an error."""
        if not isinstance(part, Simple):
            return True
        is_other_git = part.words[:1] == ("git",) and not _GIT_PREPARES & set(part.words[1:2])
        return is_other_git or _name(part) not in _PREPARES or self.reports_error(part)

    def reports_error(self, part: Statement) -> bool:
        """Whether it reports an error although it hardly ever fails."""
        return isinstance(part, Simple) and _name(part) in self.reporting

    def simple(self, command: Simple, end: CallStatus) -> None:
        scope = words.Scope(None, self.folder or None)
        fields = [words.fields(raw, scope) for raw in command.words]
        program = unwrapped([field for group in fields for field in group])
        if program is None:
            return
        if program.name in _SHELLS and (inner := _inline_code(program)) is not None:
            self.inside(Block(inner, is_subshell=True, redirects=()), end)
            return
        if program.name in ("cd", "pushd"):
            self.folder = _moved(self.folder, program)
        if program.name == "set" and "pipefail" in command.words:
            self.fails_in_pipes = True
        is_inline = any(MARK in raw or STRING_MARK in raw for raw in command.words)
        text = " ".join(" ".join(_source_words(command, fields)).split())
        is_exact = all(field.exact for group in fields for field in group)
        args = (program.field.text, *(command.text for command in program.arguments)) if is_exact else command.words
        key = spellings.of_words(args, self.folder) or (self.folder, *args)
        self.runs.append(
            Run(text, command.assigned, program, self.folder, end, _plain(key), _plain(args),
                is_started=self.is_started, is_inline=is_inline)
        )  # fmt: skip


ASKS = word_set("--version -V --help -h version --dry-run")
"""Words that ask a program about itself, or what it would do: it does not do its work."""


def _inline_code(program: Program) -> Steps | None:
    """The commands in ``bash -c '...'``."""
    args = program.arguments
    at = next((number for number, argument in enumerate(args) if re.fullmatch(r"-[a-z]*c", argument.text)), len(args))
    if at + 1 >= len(args) or not args[at + 1].exact:
        return None
    try:
        return parse(args[at + 1].text).body
    except (NotUnderstood, RecursionError):
        return None


def _plain(args: Sequence[str]) -> Key:
    """Without options: ``pytest -x`` and ``pytest -q`` are the same."""
    return tuple(word for word in args if not word.startswith("-") or word in ASKS)


def _source_words(command: Simple, fields: Sequence[Sequence[words.Field]]) -> list[str]:
    """The words of a command as written, without wrappers that only watch it."""
    raws = list(command.words)
    if any(len(group) != 1 for group in fields):
        return raws
    flat = [group[0] for group in fields]
    while flat and flat[0].exact and flat[0].text in _DROPPED:
        inner = unwrapped(flat[:1] + flat[1:])
        if inner is None or not inner.field.exact:
            break
        at = 1
        values = flat[0].text == "timeout"
        while at < len(flat) and (flat[at].text.startswith("-") or values):
            values = values and flat[at].text.startswith("-")
            at += 1
        if at >= len(flat):
            break
        flat, raws = flat[at:], raws[at:]
    return raws


def _name(command: Simple) -> str:
    fields = [field for raw in command.words for field in words.fields(raw, words.Scope(None, None))]
    program = unwrapped(fields)
    return "" if program is None else program.name


def _is_quiet(statement: Statement) -> bool:
    if isinstance(statement, Simple):
        return not statement.words or _name(statement) in _QUIET
    if isinstance(statement, Pipeline):
        return all(_is_quiet(part) for part in statement.parts)
    return isinstance(statement, Chain) and all(_is_quiet(part) for part in statement.statements)


def _moved(folder: str, program: Program) -> str:
    operands = [argument for argument in program.arguments if not argument.text.startswith("-") or argument.text == "-"]
    if len(operands) != 1 or not operands[0].exact or operands[0].has_home or operands[0].text == "-":
        return ""
    path = posixpath.normpath(posixpath.join(folder, operands[0].text)) if folder or operands[0].text[:1] == "/" else ""
    return path if path.startswith("/") else ""
