"""How to run it: the commands that were really run, grouped, with when each last succeeded or failed.

An exit status is that of one command: of a list only the last one's, of a chain of ``&&`` everybody's where it is 0 and
the only one's where it is not, of a pipeline the last one's. Where it does not tell, nothing is said. What may not have
been run at all (behind a failure, in a condition) is left out. Nothing is taken from a turn that a revert took back as
long as the command was run in another one.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from daemon.files.trees import is_beneath
from daemon.reconstitute.facts import command_groups, spellings, telling
from daemon.reconstitute.facts.contents import cut
from daemon.reconstitute.facts.values import Call, CallStatus, Citation, Command, Script, SessionFacts, Turn
from daemon.redact import redact
from daemon.transcript.shell import words
from daemon.transcript.shell.heredocs import MARK, STRING_MARK, NotUnderstood
from daemon.transcript.shell.names import words as word_set
from daemon.transcript.shell.parse import Block, Chain, Pipeline, Simple, Statement, parse
from daemon.transcript.shell.parse import Sequence as Steps
from daemon.transcript.shell.wrappers import Program, unwrapped

_MOST = 300
_LONGEST = 20_000
_ALIKE = 0.85
"""Of two one-offs: from here on the second is the first one, mended."""
_LONGEST_ONE_OFF = 2000
_QUIET = word_set(
    "cd echo printf export set unset source . true : pwd sleep mkdir date which clear env umask ulimit ls cat touch "
    "pushd popd shopt alias trap wait type command"
)
"""They hardly ever fail, and nobody asks whether they did."""
_DROPPED = word_set("timeout time nohup nice ionice stdbuf setsid unbuffer caffeinate exec command builtin")
"""Wrappers that say how somebody watched a command, not how one runs it."""
_CUT_OFF = frozenset({124, 130, 137, 143})
"""Exit statuses of a command that a time limit or a signal ended."""
_LAST_STATUS = "$?"
_UNCAUGHT = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+[A-Za-z_][\w.]*(?::[ ].*)?\s*\Z", re.MULTILINE
)
"""What Python prints as its last words when an exception ends it."""
_PIPED = word_set("tail head cat tee grep less sed awk sort uniq wc cut tr more jq")


@dataclass(frozen=True, slots=True)
class Run:
    """One command of a call that surely was started: its raw words, the folder and how it ended, if that is known."""

    text: str
    group: str
    folder: str
    status: CallStatus
    exit: int | None = None


_Read: TypeAlias = dict[tuple[str, str, CallStatus, int | None, str], list[Run]]


@dataclass(slots=True)
class _Seen:
    """All runs of one command."""

    runs: list[tuple[Run, Call, Turn, SessionFacts]] = field(default_factory=list)


def find(target: str, sessions: Sequence[SessionFacts]) -> tuple[Command, ...]:
    """The commands worth knowing to whoever wants to run it, in the order of their groups, then the newest first."""
    seen: dict[tuple[str, str], _Seen] = {}
    read: _Read = {}
    for session in sessions:
        for turn in session.turns[session.copied :]:
            for call in turn.calls:
                for run in of_call(call, session, read):
                    if is_beneath(run.folder, target):
                        name = _check(seen, run, session) if run.group == "check" else (run.text, run.folder)
                        seen.setdefault(name, _Seen()).runs.append((run, call, turn, session))
    made = [(_command(target, one), max(run[1].started for run in one.runs)) for one in seen.values()]
    order = {group: number for number, group in enumerate(command_groups.GROUPS)}
    kept = [pair for pair in made if pair[0].group != "check" or (pair[0].succeeded and pair[0].failed)]
    kept.sort(key=lambda pair: (order[pair[0].group], -pair[1], pair[0].command, pair[0].folder))
    return tuple(command for command, _ in kept)


def marked(commands: Sequence[Command], readmes: str, scripts: Sequence[Script]) -> tuple[Command, ...]:
    """The commands, with those that the text of the READMEs or a script of the project names marked as such."""
    said = f" {' '.join(readmes.split())} "
    called = set(spellings.in_text(readmes))
    for script in scripts:
        spelled = spellings.of(script.invocation)
        called |= {spelled, spellings.of(script.runs, spelled[0] if spelled else "")}
        called |= {spelled[:-1]} if script.is_default else set()
    return tuple(replace(one, named=_is_named(one, called) or _is_said(one.command, said)) for one in commands)


def _is_named(one: Command, called: AbstractSet[spellings.Spelling]) -> bool:
    spelled = spellings.of(one.command, one.folder)
    return bool(spelled) and spelled in called


def _is_said(command: str, text: str) -> bool:
    """Whether a text has the command; one of a single word only as code, for it may be a word of the prose."""
    if " " not in command:
        return f"`{command}`" in text
    return re.search(rf"(?<![\w./-]){re.escape(command)}(?![\w/-]|\.\w)", text) is not None


def _check(seen: dict[tuple[str, str], _Seen], run: Run, session: SessionFacts) -> tuple[str, str]:
    """The key of a one-off: that of a nearly equal one of the same session, which it repeats in other words."""
    for (text, folder), known in seen.items():
        first, *_, owner = known.runs[0]
        is_other = folder != run.folder or first.group != "check" or owner.id != session.id
        if not is_other and repeats(text, run.text):
            return text, folder
    return run.text, run.folder


def repeats(one: str, other: str) -> bool:
    """Whether a one-off (``python3 -c …``) is another one of the same session, mended or in slightly other words."""
    if max(len(one), len(other)) > _LONGEST_ONE_OFF:
        return one == other
    likeness = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return likeness.quick_ratio() >= _ALIKE and likeness.ratio() >= _ALIKE


def of_call(call: Call, session: SessionFacts, read: _Read) -> list[Run]:
    """The commands of one shell call that were surely started and are worth telling, in order.

    `read` keeps what was read of each command, for the same one is run again and again.
    """
    if not call.command or len(call.command) > _LONGEST or call.status is CallStatus.REFUSED:
        return []
    if call.status is CallStatus.FAILED and call.exit is None:
        return []  # the tool itself failed: nothing may have been run
    folder = call.folder or session.session.directory
    is_telling = _LAST_STATUS in call.command
    asked = (call.command, folder, call.status, call.exit, call.output if is_telling else "")
    if asked not in read:
        read[asked] = _read(call, folder)
    runs = read[asked]
    if len(runs) == 1 and runs[0].status is CallStatus.UNKNOWN and _UNCAUGHT.search(call.output):
        return [replace(runs[0], status=CallStatus.FAILED)]
    tested = {one.citation.message_id: one for one in session.tests}
    test = tested.get(call.message_id)
    if test is None:
        return runs
    return [_as_tested(run, passed=test.passed) if run.group == "test" else run for run in runs]


def _read(call: Call, folder: str) -> list[Run]:
    try:
        script = parse(call.command)
    except (NotUnderstood, RecursionError):
        return []
    body, code = _with_printed_status(script.body, call)
    reader = _Reader(_end(call, code), folder)
    reader.steps(body, reader.end)
    return [replace(run, exit=code or None) if run.status is CallStatus.FAILED else run for run in reader.runs]


def _with_printed_status(body: Steps, call: Call) -> tuple[Steps, int | None]:
    """The steps whose exit status is known, and that: of ``run; echo exit $?`` the first and the number printed."""
    last = body.items[-1][0] if len(body.items) > 1 else None
    if isinstance(last, Simple) and call.status is CallStatus.OK and last.words[:1] == ("echo",) and not last.redirects:
        said = " ".join(word.strip('"') for word in last.words[1:])
        lines = call.output.rstrip().splitlines()
        found = (
            re.fullmatch(re.escape(said).replace(re.escape(_LAST_STATUS), r"(\d{1,3})", 1), lines[-1])
            if lines
            else None
        )
        if said.count("$") == 1 and found is not None and found.re.groups:
            return Steps(body.items[:-1]), int(found[1])
    return body, call.exit


def _as_tested(run: Run, *, passed: bool) -> Run:
    """A test run whose status the exit status does not tell, but what it printed does."""
    if run.status is not CallStatus.UNKNOWN:
        return run
    return replace(run, status=CallStatus.OK if passed else CallStatus.FAILED)


def _end(call: Call, code: int | None) -> CallStatus:
    if code in _CUT_OFF:
        return CallStatus.STOPPED
    if code is not None and call.status in (CallStatus.OK, CallStatus.FAILED):
        return CallStatus.OK if code == 0 else CallStatus.FAILED
    return CallStatus.STOPPED if call.status is CallStatus.STOPPED else CallStatus.UNKNOWN


@dataclass(slots=True)
class _Reader:
    """Walks a script in the order in which it is run; `folder` follows ``cd`` and is empty where it is not known."""

    end: CallStatus
    folder: str
    runs: list[Run] = field(default_factory=list)

    def steps(self, steps: Steps, end: CallStatus) -> None:
        """Statements one after another: the status is the last one's; a call that was cut off may be at any of them."""
        for number, (statement, is_background) in enumerate(steps.items):
            is_last = number == len(steps.items) - 1
            others = [s for s, _ in steps.items if s is not statement]
            is_alone = all(_is_quiet(other) for other in others)
            told = end if is_last or (end is CallStatus.STOPPED and is_alone) else CallStatus.UNKNOWN
            if end is CallStatus.STOPPED and not is_last and not is_alone:
                told = CallStatus.UNKNOWN
            if end is CallStatus.STOPPED and is_last and not is_alone:
                continue  # it may not have come to this one
            self.statement(statement, CallStatus.UNKNOWN if is_background else told)

    def statement(self, statement: Statement, end: CallStatus) -> None:
        if isinstance(statement, Simple):
            self.simple(statement, end)
        elif isinstance(statement, Chain):
            self.chain(statement, end)
        elif isinstance(statement, Pipeline):
            first, last = statement.parts[0], statement.parts[-1]
            if isinstance(last, Simple) and _name(last) in _PIPED:
                self.statement(first, end if end is CallStatus.STOPPED else CallStatus.UNKNOWN)
            else:
                self.statement(last, end)
        elif isinstance(statement, Block):
            folder = self.folder
            self.steps(statement.body, end)
            self.folder = folder if statement.is_subshell else self.folder

    def chain(self, chain: Chain, end: CallStatus) -> None:
        """``a && b``: with status 0 all of them succeeded; else only the first was surely started."""
        parts = [chain.first, *(right for _, right in chain.rest)]
        if any(operator != "&&" for operator, _ in chain.rest):
            self.statement(chain.first, CallStatus.UNKNOWN)
            return
        if end is CallStatus.OK:
            for part in parts:
                self.statement(part, end)
            return
        loud = [part for part in parts if not _is_quiet(part)]
        for part in parts:
            if part in loud:
                self.statement(part, end if len(loud) == 1 else CallStatus.UNKNOWN)
                return
            self.statement(part, CallStatus.UNKNOWN)

    def simple(self, one: Simple, end: CallStatus) -> None:
        scope = words.Scope(None, self.folder or None)
        fields = [words.fields(raw, scope) for raw in one.words]
        flat = [found for group in fields for found in group]
        program = unwrapped(flat)
        if program is None:
            return
        if program.name in ("cd", "pushd"):
            self.folder = _moved(self.folder, program)
            return
        if any(MARK in raw or STRING_MARK in raw for raw in one.words) or not self.folder or not program.name:
            return
        group = _group(program)
        if not group:
            return
        raws = _shown(one, fields)
        text = " ".join(redact(" ".join([*one.assigned, *raws])).split())
        self.runs.append(Run(text, group, self.folder, end))


def _group(program: Program) -> str:
    given = [one.text for one in program.arguments]
    path = program.field.text
    if path.startswith((".", "/")) or "/" in path:
        known = command_groups.group_of(program.name, given)
        return known or ("" if path.startswith("/") else command_groups.script(path, given))
    return command_groups.group_of(program.name, given)


def _shown(one: Simple, fields: Sequence[Sequence[words.Field]]) -> list[str]:
    """The words as written, without wrappers in front that only watch."""
    raws = list(one.words)
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


def _name(one: Simple) -> str:
    found = [field for raw in one.words for field in words.fields(raw, words.Scope(None, None))]
    program = unwrapped(found)
    return "" if program is None else program.name


def _is_quiet(statement: Statement) -> bool:
    if isinstance(statement, Simple):
        return not statement.words or _name(statement) in _QUIET
    if isinstance(statement, Pipeline):
        return all(_is_quiet(part) for part in statement.parts)
    return isinstance(statement, Chain) and all(
        _is_quiet(s) for s in (statement.first, *(r for _, r in statement.rest))
    )


def _moved(folder: str, program: Program) -> str:
    plain = [one for one in program.arguments if not one.text.startswith("-") or one.text == "-"]
    if len(plain) != 1 or not plain[0].exact or plain[0].homely or plain[0].text == "-":
        return ""
    path = posixpath.normpath(posixpath.join(folder, plain[0].text)) if folder or plain[0].text[:1] == "/" else ""
    return path if path.startswith("/") else ""


def _command(target: str, seen: _Seen) -> Command:
    """One command out of all its runs; those of turns that still stand count first."""
    standing = [one for one in seen.runs if not one[2].taken_back]
    runs = sorted(standing or seen.runs, key=lambda one: (one[1].started, one[1].part_id))
    run = runs[-1][0]
    passed = [one for one in runs if one[0].status is CallStatus.OK]
    failed = [one for one in runs if one[0].status is CallStatus.FAILED]
    folder = posixpath.relpath(run.folder, target)
    last = failed[-1][1] if failed else None
    return Command(
        group=run.group,
        command=cut(run.text, _MOST),
        folder="" if folder == "." else folder,
        times=len(runs),
        succeeded=_cited(passed[-1]) if passed else None,
        failed=_cited(failed[-1]) if failed else None,
        exit=failed[-1][0].exit if failed else None,
        error=cut(telling.of(last), _MOST) if last is not None else "",
        last=run.status,
        taken_back=not standing,
    )


def _cited(run: tuple[Run, Call, Turn, SessionFacts]) -> Citation:
    _, call, _, session = run
    return Citation(session.id, call.message_id, call.ended or call.started)


def groups_of(command: str) -> Iterator[str]:
    """What each command of a line is for: of a script's or a target's, that is not run here."""
    try:
        script = parse(command[:_LONGEST])
    except (NotUnderstood, RecursionError):
        return
    reader = _Reader(CallStatus.OK, "/")
    reader.steps(script.body, CallStatus.OK)
    yield from (run.group for run in reader.runs if run.group != "check")
