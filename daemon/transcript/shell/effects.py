"""Computes the effects of a parsed command, in command order; uncertain ones are UNCLEAR.

A statement is PROVEN if the exit status shows that it succeeded, SEEN if it surely ran and the output would show a
failure, and MAYBE otherwise. Only the first two have certain effects, and SEEN only for commands that report their
failures (file_commands.VOCAL) and whose errors are not hidden. Conditions, loops, the right side of ``||`` and
background commands are MAYBE; after such a statement, the folder and variables that it may change are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from daemon.model import Operation
from daemon.transcript.shell import simple, words
from daemon.transcript.shell.builtins import decides
from daemon.transcript.shell.heredocs import NotUnderstood
from daemon.transcript.shell.parse import Block, Chain, Compound, Pipeline, Script, Sequence, Simple, Statement, parse
from daemon.transcript.shell.state import Effect, Execution, Output, Setting, State, Status, overlap
from daemon.transcript.shell.streams import redirected
from daemon.transcript.shell.words import Field

_DEEPEST_SCRIPT = 4
_DEEPEST_LOOP = 2
_MOST_ROUNDS = 8
_NEAR = re.compile(r"[^/\s][^\s]*")
_LOOPS = frozenset({"for_statement", "c_style_for_statement", "while_statement"})


def effects(script: Script, state: State, output: Output, *, is_proven: bool) -> list[Effect]:
    """The effects of the command, run from `state`. `is_proven`: its exit status was 0; otherwise it is unknown."""
    if script.has_functions:
        state.doubt = True
    runner = Runner(script, state, output, exit_is_zero=is_proven)
    runner.sequence(script.body, Status.PROVEN if is_proven else Status.SEEN, Setting())
    return _in_full(runner)


def of_script(script: Script, state: State, status: Status, *, shows_errors: bool) -> list[Effect]:
    """The effects of a script, started in `state`; `shows_errors`: its errors are in the output."""
    runner = Runner(script, state, Output("", is_whole=shows_errors), exit_is_zero=status == Status.PROVEN)
    runner.is_script = True
    runner.sequence(script.body, status, Setting(hidden=not shows_errors))
    return _in_full(runner)


def doubtful(script: Script, state: State) -> list[Effect]:
    """The possible effects of the command, if we do not know how it ended."""
    runner = Runner(script, state, Output("", is_whole=False), exit_is_zero=False)
    runner.sequence(script.body, Status.MAYBE, Setting())
    return _in_full(runner)


def _in_full(runner: Runner) -> list[Effect]:
    """All effects; background effects may also have come last."""
    if runner.late:
        runner.effects, runner.late = _raced(runner.effects), _raced(runner.late, beside=runner.effects)
    in_order, late = runner.effects, runner.late
    return in_order if late and in_order[-len(late) :] == late else [*in_order, *late]


def _raced(ran: list[Effect], *, beside: Iterable[Effect] = ()) -> list[Effect]:
    """Effects with something else running beside them, which may have replaced the file of a program that ran."""
    paths = [p for e in (*ran, *beside) if e.operation is not Operation.RUN for p in (e.path, e.other) if p]
    return [
        Effect(Operation.RUN, e.path) if e.operation is Operation.RUN and e.other and _meets(e.other, paths) else e
        for e in ran
    ]


def _meets(path: str, paths: Iterable[str]) -> bool:
    return any(overlap(path, candidate) for candidate in paths)


class Runner(Execution):
    """Goes through the statements of one script."""

    def sequence(self, body: Sequence, status: Status, setting: Setting) -> bool:
        """Runs statements one after another; True where the last one surely succeeded."""
        succeeded = status == Status.PROVEN
        for number, (item, in_background) in enumerate(body.items):
            if in_background:
                self.late += self._in_background(item, setting)
                succeeded = status != Status.MAYBE
                continue
            own = status
            if number < len(body.items) - 1 and status == Status.PROVEN:
                is_strict = self.state.strict and not setting.exempt and not isinstance(item, Chain | Compound)
                own = Status.PROVEN if is_strict else Status.SEEN
            succeeded = self.statement(item, own, setting)
            if self.state.strict and status == Status.SEEN and not succeeded:
                status = Status.MAYBE  # it may have ended there
        return succeeded

    def statement(self, item: Statement, status: Status, setting: Setting) -> bool:
        """Runs one statement; True where it surely succeeded."""
        if isinstance(item, Simple):
            return self._simple(item, status, setting)
        if isinstance(item, Chain):
            return self._chain(item, status, setting)
        if isinstance(item, Pipeline):
            return self._pipeline(item, status, setting)
        if isinstance(item, Block):
            return self._block(item, status, setting)
        self._compound(item, setting)
        return status == Status.PROVEN

    def _compound(self, item: Compound, setting: Setting) -> None:
        """Every inner statement may run, in a loop also with the folder and variables of an earlier round."""
        before = self.state.copy()
        rounds = self._rounds(item)
        was_in_rounds, self.is_in_rounds = self.is_in_rounds, self.is_in_rounds or len(rounds) > 1
        for value in rounds:
            self.state.variables.pop(item.variable, None)
            if value is not None:
                self.state.variables[item.variable] = value
            for inner in item.inner:
                self._maybe(inner, setting)
        self.is_in_rounds = was_in_rounds
        names = before.variables.keys() | {"PWD"}
        has_changed = self.state.place != before.place or any(
            self.state.variables.get(name) != before.variables.get(name) for name in names
        )
        self.state.variables.clear()
        if item.kind not in _LOOPS or not has_changed:
            return
        if self.loops >= _DEEPEST_LOOP:
            self.unclear(self.state.place.reachable)
            return
        self.loops += 1
        for inner in item.inner:
            self._maybe(inner, setting)
        self.loops -= 1
        self.state.variables.clear()

    def _rounds(self, item: Compound) -> list[Field | None]:
        """What a ``for`` sets its variable to, one after the other; None for what is not known."""
        fields = [field for word in item.words for field in words.fields(word, self.state.scope)]
        if not fields or decides(item.variable) or any(field.has_home for field in fields):
            return [None]
        if all(field.exact for field in fields) and len(fields) <= _MOST_ROUNDS and not self.is_in_rounds:
            return list(fields)
        is_near = all(_NEAR.fullmatch(field.text) and ".." not in field.text.split("/") for field in fields)
        return [Field("./", exact=False) if is_near else None]

    def _maybe(self, item: Statement, setting: Setting) -> None:
        """A statement that may or may not run, here and now."""
        before = self.state.copy()
        self.statement(item, Status.MAYBE, setting)
        self.state.merge(before)

    def _in_background(self, item: Statement, setting: Setting) -> list[Effect]:
        """Run a statement with a folder and variables of its own; returns its possible effects."""
        before, start = self.state.copy(), len(self.effects)
        self.statement(item, Status.MAYBE, replace(setting, inner=True))
        self.state.restore(before)
        return self.effects[start:]

    def _chain(self, item: Chain, status: Status, setting: Setting) -> bool:
        """``&&`` and ``||``, which bind alike, from the left."""
        # What is known of each prefix of the chain, from the whole chain's status backwards.
        known = [status] * (len(item.links) + 1)
        for at in range(len(item.links) - 1, -1, -1):
            operator, right = item.links[at]
            known[at] = known[at + 1]
            if operator == "||" and known[at]:
                ends = self._contradicts_exit(right, setting) or (known[at] == Status.PROVEN and self._is_false(right))
                known[at] = Status.PROVEN if ends else Status.SEEN
        inside = replace(setting, exempt=True)
        before = self._entered(item, known[0], inside)
        succeeded = before is None and self.statement(item.first, known[0], inside)
        for at, (operator, right) in enumerate(item.links):
            own = setting if at == len(item.links) - 1 else inside
            if operator == "||":
                if before is not None:
                    self.state.merge(before)
                if known[at] != Status.PROVEN:
                    self._maybe(right, own)
            elif known[at + 1] == Status.PROVEN or (known[at + 1] == Status.SEEN and succeeded):
                succeeded = self.statement(right, known[at + 1], own)
            else:
                self._maybe(right, own)
                succeeded = False
            succeeded = succeeded or known[at + 1] == Status.PROVEN
        if before is not None:
            self.state.merge(before)
        return succeeded

    def _entered(self, item: Chain, status: Status, setting: Setting) -> State | None:
        """Enter the folder of ``cd folder && ...`` even if it may have failed, because then nothing after it has run.

        Returns the state before it; None if the chain does not begin like that.
        """
        first = item.first
        if status or not (isinstance(first, Simple) and first.words[:1] == ("cd",) and item.links[0][0] == "&&"):
            return None
        before = self.state.copy()
        if self.state.doubt:
            return None
        self.statement(first, Status.PROVEN, setting)
        return before

    def _is_false(self, item: Statement) -> bool:
        return isinstance(item, Simple) and item.words == ("false",) and not item.redirects

    def _contradicts_exit(self, item: Statement, setting: Setting) -> bool:
        """Whether it did not run, because it would have caused another exit status than the recorded one."""
        if isinstance(item, Block) and not item.is_subshell and not item.redirects and item.body.items:
            harmless = all(
                isinstance(statement, Simple) and statement.words[:1] == ("echo",) and not statement.inner and not aside
                and all(r.operator == ">&" for r in statement.redirects)
                for statement, aside in item.body.items[:-1]
            )  # fmt: skip
            return harmless and self._contradicts_exit(item.body.items[-1][0], setting)
        if not isinstance(item, Simple) or item.redirects or item.assigned or setting.inner or not self.exit_is_zero:
            return False
        return item.words[:1] == ("exit",) and len(item.words) == 2 and bool(re.fullmatch(r"[1-9]\d?", item.words[1]))

    def _pipeline(self, item: Pipeline, status: Status, setting: Setting) -> bool:
        """A pipeline: only its last part is certain, and only if nothing runs beside it."""
        before = self.state.copy()
        start = len(self.effects)
        text: str | None = None
        for number, part in enumerate(item.parts[:-1]):
            piped = replace(setting, inner=True, stdin=text if number else setting.stdin)
            text = simple.printed(self, part, piped)
            if text is None:
                self.statement(part, Status.MAYBE, replace(piped, stdin=None))
            self.state.restore(before)
        raced = len(self.effects) > start
        last = replace(setting, inner=True, stdin=text, hidden=setting.hidden)
        succeeded = self.statement(item.parts[-1], Status.MAYBE if raced else status, last)
        if raced:
            self._make_unclear(start, [])
        self.state.restore(before)
        return status == Status.PROVEN or (succeeded and not raced)

    def _block(self, item: Block, status: Status, setting: Setting) -> bool:
        before = self.state.copy()
        streams = redirected(self, item.redirects)
        own = replace(
            setting,
            hidden=setting.hidden or streams.hides,
            inner=setting.inner or item.is_subshell,
            stdin=streams.stdin if streams.has_stdin else setting.stdin,
        )
        start = len(self.effects)
        succeeded = self.sequence(item.body, status, own)
        targets = [path for path, _ in streams.written] + streams.unclear
        if targets:
            self._make_unclear(start, targets)
        if item.is_subshell:
            self.state.restore(before)
        return succeeded

    def _make_unclear(self, start: int, more: Iterable[str]) -> None:
        """The effects from `start` on, and these paths, are UNCLEAR where they may meet."""
        self.unclear(more)
        marked = [e.path for e in self.effects[start:] if e.operation is Operation.UNCLEAR]
        touched = [
            p
            for e in self.effects[start:]
            if e.operation not in (Operation.UNCLEAR, Operation.RUN)
            for p in (e.path, e.other)
            if p
        ]
        self.unclear(dict.fromkeys(p for p in touched if _meets(p, marked)))
        self.effects[start:] = _raced(self.effects[start:])

    def _simple(self, item: Simple, status: Status, setting: Setting) -> bool:
        for inner in item.inner:
            before = self.state.copy()
            self.sequence(inner, Status.MAYBE, replace(setting, inner=True))
            self.state.restore(before)
        if self.state.doubt:
            status = Status.MAYBE
        return simple.run(self, item, status, setting)

    def nested(self, command: str, status: Status, setting: Setting) -> bool:
        """A literal command that another shell runs."""
        if self.depth >= _DEEPEST_SCRIPT:
            self.unclear_anywhere()
            return False
        try:
            script = parse(command)
        except (NotUnderstood, RecursionError):
            self.unclear_anywhere()
            return status == Status.PROVEN
        state = self.state.copy()
        state.variables, state.strict, state.doubt = {}, False, state.doubt or script.has_functions
        inner = Runner(script, state, self.output, exit_is_zero=False, depth=self.depth + 1)
        inner.is_script = self.is_script
        succeeded = inner.sequence(script.body, Status.MAYBE if state.doubt else status, replace(setting, inner=True))
        self.effects += [*inner.effects, *inner.late]
        return succeeded
