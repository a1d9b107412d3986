"""The facts of a page as lists: commands, what did not last, what is open, rules; each with its footnotes.

Guarantees: an entry that a model struck out stays, struck through and with the reason; a list is bounded and says what
it leaves out. It makes lines of Markdown from facts and reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from daemon import markdown
from daemon.display import counted
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts.session_values import CallStatus, Citation
from daemon.reconstitute.facts.values import (
    Command,
    Entry,
    Need,
    OpenKind,
    OpenPoint,
    Rule,
    Script,
    Setback,
    SetbackKind,
    key,
)
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.pages.statements import Footnotes, sentence

_E = TypeVar("_E", Command, OpenPoint, Rule, Setback)
_MOST_TEXT = 300
_MOST_COMMAND = 160
_MOST_PATHS = 3
_MOST_MENDED = 3
"""Failures that were overcome and stand unfolded."""
_SETBACK = {SetbackKind.REVERTED: "taken back"}
OPEN_WORDS = {
    OpenKind.TODO: "todo",
    OpenKind.QUESTION: "question not answered in its session",
    OpenKind.NOT_DONE: "not done",
    OpenKind.FAILING: "failed when it last ran",
    OpenKind.UNANSWERED: "request without an answer",
    OpenKind.REVERT: "pending revert",
}


_AS_OF = {OpenKind.FAILING, OpenKind.TODO}
"""Points that say how something stood at a time, which no record may tell to have changed since."""

_MOST_RULES = 12
"""Rules and decisions that stand unfolded: those that hold come first."""


class FactLists:
    """The lists of one page; `struck` are the entries that a model struck out, by key. At most `limit` in a list."""

    def __init__(self, links: Links, notes: Footnotes, struck: Mapping[str, Statement], limit: int) -> None:
        self._links = links
        self._notes = notes
        self._struck = struck
        self._limit = limit

    def commands(self, commands: Sequence[Command]) -> markdown.Markdown:
        """The commands that were really run, by their groups."""
        listed = commands[: self._limit]
        parts = [
            f"- **{markdown.inline(name[:1].upper() + name[1:])}**\n"
            + "\n".join(f"  - {self._entry(command, self.command)}" for command in group)
            for name, group in groupby(listed, lambda command: command.group)
        ]
        return markdown.Markdown("\n".join([*parts, *_left_out(len(commands) - len(listed), "command")]))

    def command(self, command: Command) -> str:
        """A command and how it last ended, with how it did before."""
        last_run = self.last_run(command)
        before = self._failed(command) if command.last is CallStatus.OK else self._succeeded(command)
        ended = [f"before that it {before}"] if before and command.last in (CallStatus.OK, CallStatus.FAILED) else []
        if command.last not in (CallStatus.OK, CallStatus.FAILED):
            ended = [*filter(None, [self._succeeded(command), self._failed(command)])]
        times = [f"run {'at least ' if command.is_least else ''}{command.times} times"] if command.times > 1 else []
        times = ["perhaps run more than once"] if command.is_least and command.times == 1 else times
        return "; ".join([last_run, *ended, *times])

    def last_run(self, command: Command) -> str:
        """A command and how it last ended."""
        where = f" in {markdown.code(markdown.cut(command.folder, 80))}" if command.folder not in {"", "."} else ""
        where += f" (ran as {_code(command.ran_as)}, which was moved)" if command.ran_as else ""
        where += " (only in turns that were **taken back**)" if command.taken_back else ""
        if command.last is CallStatus.FAILED:
            failed = self._failed(command).replace("failed", "failed**", 1)
            ended = f"**{failed}" if failed else "**failed**"
        elif command.last is CallStatus.OK:
            ended = self._succeeded(command) or "succeeded"
        else:
            last = {CallStatus.STOPPED: "its last run was stopped", CallStatus.REFUSED: "its last run was refused"}
            line = f"; the line it was in ended with exit status {command.line_exit}" if command.line_exit else ""
            ended = last.get(command.last, f"how its last run ended is not recorded{line}")
        return f"{_code(command.command)}{where}: {ended}"

    def _succeeded(self, command: Command) -> str:
        cited = command.succeeded
        return "" if cited is None else f"succeeded {markdown.moment(cited.time)}{self._mark(cited)}"

    def _failed(self, command: Command) -> str:
        if command.failed is None:
            return ""
        status = f" with exit status {command.exit}" if command.exit is not None else ""
        why = f" ({markdown.inside(command.error, 120)})" if command.error.strip() else ""
        return f"failed {markdown.moment(command.failed.time)}{status}{self._mark(command.failed)}{why}"

    def scripts(self, scripts: Sequence[Script]) -> markdown.Markdown:
        """What the files of the project name, a line for each file."""
        listed = scripts[: self._limit]
        rows = [
            f"- In {self._links.file(path)}: " + "; ".join(map(self._script, group))
            for path, group in groupby(listed, lambda script: script.path)
        ]
        return markdown.Markdown("\n".join([*rows, *_left_out(len(scripts) - len(listed), "script")]))

    def _script(self, script: Script) -> str:
        struck = self.strike(script)
        if struck:
            return f"~~{markdown.prose(script.invocation, _MOST_COMMAND)}~~ {struck}"
        runs = f" ({_code(script.runs)})" if script.runs.strip() and script.runs != script.invocation else ""
        return f"{_code(script.invocation)}{runs}"

    def needs(self, needs: Sequence[Need]) -> markdown.Markdown:
        """What the files of the project say must be there, in a line for each file."""
        rows = [
            f"- {self._links.file(path)}: {', '.join(_code(need.text) for need in group)}"
            for path, group in groupby(needs[: self._limit], lambda need: need.path)
        ]
        return markdown.Markdown("\n".join([*rows, *_left_out(len(needs) - self._limit, "need")]))

    def setbacks(self, setbacks: Sequence[Setback]) -> markdown.Markdown:
        """What was taken back, failed, was refused or stopped, the newest first, and last what was overcome since."""
        newest = sorted(setbacks, key=lambda setback: -setback.time)
        mended = [setback for setback in newest if setback.resolved is not None]
        lasting = self._list(
            [setback for setback in newest if setback.resolved is None], self._setback, "entry", "entries"
        )
        overcome = self._list(mended, self._setback, "entry", "entries")
        if len(mended) > _MOST_MENDED:
            overcome = markdown.Markdown(
                f"<details><summary>Overcome since: {len(mended)} entries</summary>\n\n{overcome}\n\n</details>"
            )
            return markdown.Markdown("\n\n".join(filter(None, [lasting, overcome])))
        return markdown.Markdown("\n".join(filter(None, [lasting, overcome])))

    def _setback(self, setback: Setback) -> str:
        kind = _bold(_SETBACK.get(setback.kind, setback.kind.value))
        is_command = setback.kind is SetbackKind.COMMAND_FAILED and "`" not in setback.text
        text = _code(setback.text) if is_command else markdown.inside(setback.text, _MOST_TEXT)
        line = f"{markdown.moment(setback.time)}, {kind}: {text}"
        line += f" ({markdown.inside(setback.detail, _MOST_TEXT)})" if setback.detail.strip() else ""
        line += self._mark(setback.citation, setback.text + " " + setback.detail)
        unsaid = [path for path in setback.paths if self._links.label(path) not in setback.text + setback.detail]
        if unsaid:
            line += f"; files: {', '.join(self._links.file(path) for path in unsaid[:_MOST_PATHS])}"
            line += f" and {len(unsaid) - _MOST_PATHS} more" if len(unsaid) > _MOST_PATHS else ""
        if setback.outcome.strip():
            line += f"; {markdown.prose(setback.outcome, _MOST_TEXT)}"
        return line + (self._mark(setback.resolved, setback.outcome) if setback.resolved else "")

    def open(self, points: Sequence[OpenPoint]) -> markdown.Markdown:
        """What nothing in the records settles."""
        return self._list(points, self.open_point, "point", "points")

    def open_point(self, point: OpenPoint, limit: int = _MOST_TEXT) -> str:
        """One of them, its texts cut to `limit` characters."""
        when = markdown.moment(point.time) if point.kind in _AS_OF else ""
        details = [
            part for part in (when, markdown.inside(point.detail, limit) if point.detail.strip() else "") if part
        ]
        detail = f" ({'; '.join(details)})" if details else ""
        is_command = point.kind is OpenKind.FAILING and "`" not in point.text
        text = _code(point.text) if is_command else markdown.inside(point.text, limit)
        mark = self._mark(point.citation, point.text + " " + point.detail)
        return f"{_bold(OPEN_WORDS[point.kind])}: {text}{detail}{mark}"

    def rules(self, rules: Sequence[Rule]) -> markdown.Markdown:
        """Rules and decisions, in the words of who stated them; what follows the first ones is folded."""
        first = self._list(rules[:_MOST_RULES], self._rule, "entry", "entries")
        other_rules = self._list(rules[_MOST_RULES:], self._rule, "entry", "entries")
        if not other_rules:
            return first
        summary = f"{len(rules) - _MOST_RULES} more"
        return markdown.Markdown(f"{first}\n\n<details><summary>{summary}</summary>\n\n{other_rules}\n\n</details>")

    def _rule(self, rule: Rule) -> str:
        by = f"from {markdown.inline(rule.origin)}" if rule.origin else f"said by the {markdown.inline(rule.who)}"
        author = "" if rule.who == "user" else f", {by}"
        origin = f"({markdown.inline(rule.kind)}{author}, {markdown.day(rule.time)})"
        line = f"{markdown.quoted(rule.text, _MOST_TEXT)} {origin}"
        line += self._mark(rule.citation, rule.text)
        if rule.reason.strip() and rule.reason not in rule.text:
            line += f"; because {markdown.prose(rule.reason, _MOST_TEXT)}"
        if rule.replaces.strip():
            line += f"; in place of {markdown.prose(rule.replaces, _MOST_TEXT)}"
        if rule.note.strip():
            line += f"; {markdown.prose(rule.note, _MOST_TEXT)}"
        if rule.invalid_because.strip():
            line += f". **No longer**: {markdown.prose(rule.invalid_because, _MOST_TEXT)}"
        return line

    # -- what all of them share --------------------------------------------------------------------------------------

    def _list(self, entries: Sequence[_E], line: Callable[[_E], str], noun: str, nouns: str) -> markdown.Markdown:
        rows = [f"- {self._entry(entry, line)}" for entry in entries[: self._limit]]
        omitted = len(entries) - len(rows)
        rows += [f"- Not listed: {omitted} more {noun if omitted == 1 else nouns}"] if omitted else []
        return markdown.Markdown("\n".join(rows))

    def _entry(self, entry: _E, line: Callable[[_E], str]) -> str:
        struck = self.strike(entry)
        if not struck:
            return line(entry)
        text = entry.command if isinstance(entry, Command) else entry.text
        return f"~~{markdown.prose(text, _MOST_TEXT)}~~ {struck}"

    def is_struck(self, entry: Entry) -> bool:
        """Whether a model struck the entry out."""
        return key(entry) in self._struck

    def strike(self, entry: Entry) -> str:
        """Why a model struck the entry out; empty where none did."""
        reason = self._struck.get(key(entry))
        if reason is None:
            return ""
        return f"Struck out by the model: {sentence(reason, self._notes, _MOST_TEXT)}"

    def _mark(self, cited: Citation | None, beside: str = "") -> str:
        return self._notes.mark(cited, beside=beside)


def _code(command: str) -> markdown.Markdown:
    return markdown.code(markdown.cut(command, _MOST_COMMAND))


def _bold(words: str) -> str:
    """Words of ours that begin an entry."""
    return f"**{words[:1].upper()}{words[1:]}**"


def _left_out(omitted: int, noun: str) -> list[str]:
    return [f"- Not listed: {counted(omitted, f'more {noun}')}"] if omitted > 0 else []
