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
from daemon.reconstitute.pages.footnotes import Footnotes
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.pages.statements import sentence

_E = TypeVar("_E", Command, OpenPoint, Rule, Setback)
_MOST_TEXT = 300
_MOST_COMMAND = 160
_MOST_PATHS = 3
_MOST_MENDED = 3
"""Failures that were overcome and stand unfolded."""
_SETBACK = {SetbackKind.REVERTED: "taken back"}
_OPEN = {
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
    """The lists of one page; `struck` are the entries that a model struck out, by key. At most `most` in a list."""

    def __init__(self, links: Links, notes: Footnotes, struck: Mapping[str, Statement], most: int) -> None:
        self._links = links
        self._notes = notes
        self._struck = struck
        self._most = most

    def commands(self, commands: Sequence[Command]) -> markdown.Markdown:
        """The commands that were really run, by their groups."""
        shown = commands[: self._most]
        parts = [
            f"- **{markdown.inline(name[:1].upper() + name[1:])}**\n"
            + "\n".join(f"  - {self._entry(one, self.command)}" for one in group)
            for name, group in groupby(shown, lambda one: one.group)
        ]
        return markdown.Markdown("\n".join([*parts, *_left_out(len(commands) - len(shown), "command")]))

    def command(self, one: Command) -> str:
        """A command and how it last ended, with how it did before."""
        said = self.last_run(one)
        before = self._failed(one) if one.last is CallStatus.OK else self._succeeded(one)
        ended = [f"before that it {before}"] if before and one.last in (CallStatus.OK, CallStatus.FAILED) else []
        if one.last not in (CallStatus.OK, CallStatus.FAILED):
            ended = [*filter(None, [self._succeeded(one), self._failed(one)])]
        times = [f"run {'at least ' if one.is_least else ''}{one.times} times"] if one.times > 1 else []
        times = ["perhaps run more than once"] if one.is_least and one.times == 1 else times
        return "; ".join([said, *ended, *times])

    def last_run(self, one: Command) -> str:
        """A command and how it last ended."""
        where = f" in {markdown.code(markdown.cut(one.folder, 80))}" if one.folder not in {"", "."} else ""
        where += f" (ran as {_code(one.ran_as)}, which was moved)" if one.ran_as else ""
        where += " (only in turns that were **taken back**)" if one.taken_back else ""
        if one.last is CallStatus.FAILED:
            failed = self._failed(one).replace("failed", "failed**", 1)
            ended = f"**{failed}" if failed else "**failed**"
        elif one.last is CallStatus.OK:
            ended = self._succeeded(one) or "succeeded"
        else:
            last = {CallStatus.STOPPED: "its last run was stopped", CallStatus.REFUSED: "its last run was refused"}
            line = f"; the line it was in ended with exit status {one.line_exit}" if one.line_exit else ""
            ended = last.get(one.last, f"how its last run ended is not recorded{line}")
        return f"{_code(one.command)}{where}: {ended}"

    def _succeeded(self, one: Command) -> str:
        cited = one.succeeded
        return "" if cited is None else f"succeeded {markdown.moment(cited.time)}{self._mark(cited)}"

    def _failed(self, one: Command) -> str:
        if one.failed is None:
            return ""
        status = f" with exit status {one.exit}" if one.exit is not None else ""
        why = f" ({markdown.inside(one.error, 120)})" if one.error.strip() else ""
        return f"failed {markdown.moment(one.failed.time)}{status}{self._mark(one.failed)}{why}"

    def scripts(self, scripts: Sequence[Script]) -> markdown.Markdown:
        """What the files of the project name, a line for each file."""
        shown = scripts[: self._most]
        rows = [
            f"- In {self._links.file(path)}: " + "; ".join(map(self._script, group))
            for path, group in groupby(shown, lambda one: one.path)
        ]
        return markdown.Markdown("\n".join([*rows, *_left_out(len(scripts) - len(shown), "script")]))

    def _script(self, one: Script) -> str:
        struck = self.strike(one)
        if struck:
            return f"~~{markdown.prose(one.invocation, _MOST_COMMAND)}~~ {struck}"
        runs = f" ({_code(one.runs)})" if one.runs.strip() and one.runs != one.invocation else ""
        return f"{_code(one.invocation)}{runs}"

    def needs(self, needs: Sequence[Need]) -> markdown.Markdown:
        """What the files of the project say must be there, in a line for each file."""
        rows = [
            f"- {self._links.file(path)}: {', '.join(_code(one.text) for one in group)}"
            for path, group in groupby(needs[: self._most], lambda one: one.path)
        ]
        return markdown.Markdown("\n".join([*rows, *_left_out(len(needs) - self._most, "need")]))

    def setbacks(self, setbacks: Sequence[Setback]) -> markdown.Markdown:
        """What was taken back, failed, was refused or stopped, the newest first, and last what was overcome since."""
        newest = sorted(setbacks, key=lambda one: -one.time)
        mended = [one for one in newest if one.resolved is not None]
        lasting = self._list([one for one in newest if one.resolved is None], self._setback, "entry", "entries")
        overcome = self._list(mended, self._setback, "entry", "entries")
        if len(mended) > _MOST_MENDED:
            overcome = markdown.Markdown(
                f"<details><summary>Overcome since: {len(mended)} entries</summary>\n\n{overcome}\n\n</details>"
            )
            return markdown.Markdown("\n\n".join(filter(None, [lasting, overcome])))
        return markdown.Markdown("\n".join(filter(None, [lasting, overcome])))

    def _setback(self, one: Setback) -> str:
        kind = _bold(_SETBACK.get(one.kind, one.kind.value))
        is_command = one.kind is SetbackKind.COMMAND_FAILED and "`" not in one.text
        text = _code(one.text) if is_command else markdown.inside(one.text, _MOST_TEXT)
        said = f"{markdown.moment(one.time)}, {kind}: {text}"
        said += f" ({markdown.inside(one.detail, _MOST_TEXT)})" if one.detail.strip() else ""
        said += self._mark(one.citation, one.text + " " + one.detail)
        unsaid = [path for path in one.paths if self._links.label(path) not in one.text + one.detail]
        if unsaid:
            said += f"; files: {', '.join(self._links.file(path) for path in unsaid[:_MOST_PATHS])}"
            said += f" and {len(unsaid) - _MOST_PATHS} more" if len(unsaid) > _MOST_PATHS else ""
        if one.outcome.strip():
            said += f"; {markdown.prose(one.outcome, _MOST_TEXT)}"
        return said + (self._mark(one.resolved, one.outcome) if one.resolved else "")

    def open(self, points: Sequence[OpenPoint]) -> markdown.Markdown:
        """What nothing in the records settles."""
        return self._list(points, self.open_point, "point", "points")

    def open_point(self, one: OpenPoint, most: int = _MOST_TEXT) -> str:
        """One of them, its texts cut to `most` characters."""
        when = markdown.moment(one.time) if one.kind in _AS_OF else ""
        details = [part for part in (when, markdown.inside(one.detail, most) if one.detail.strip() else "") if part]
        detail = f" ({'; '.join(details)})" if details else ""
        is_command = one.kind is OpenKind.FAILING and "`" not in one.text
        text = _code(one.text) if is_command else markdown.inside(one.text, most)
        return f"{_bold(_OPEN[one.kind])}: {text}{detail}{self._mark(one.citation, one.text + ' ' + one.detail)}"

    def rules(self, rules: Sequence[Rule]) -> markdown.Markdown:
        """Rules and decisions, in the words of who stated them; what follows the first ones is folded."""
        first = self._list(rules[:_MOST_RULES], self._rule, "entry", "entries")
        rest = self._list(rules[_MOST_RULES:], self._rule, "entry", "entries")
        if not rest:
            return first
        summary = f"{len(rules) - _MOST_RULES} more"
        return markdown.Markdown(f"{first}\n\n<details><summary>{summary}</summary>\n\n{rest}\n\n</details>")

    def _rule(self, one: Rule) -> str:
        by = f"from {markdown.inline(one.origin)}" if one.origin else f"said by the {markdown.inline(one.who)}"
        who = "" if one.who == "user" else f", {by}"
        said = f"{markdown.quoted(one.text, _MOST_TEXT)} ({markdown.inline(one.kind)}{who}, {markdown.day(one.time)})"
        said += self._mark(one.citation, one.text)
        if one.reason.strip() and one.reason not in one.text:
            said += f"; because {markdown.prose(one.reason, _MOST_TEXT)}"
        if one.replaces.strip():
            said += f"; in place of {markdown.prose(one.replaces, _MOST_TEXT)}"
        if one.note.strip():
            said += f"; {markdown.prose(one.note, _MOST_TEXT)}"
        return said + (
            f". **No longer**: {markdown.prose(one.invalid_because, _MOST_TEXT)}" if one.invalid_because.strip() else ""
        )

    # -- what all of them share --------------------------------------------------------------------------------------

    def _list(self, entries: Sequence[_E], line: Callable[[_E], str], noun: str, nouns: str) -> markdown.Markdown:
        rows = [f"- {self._entry(one, line)}" for one in entries[: self._most]]
        more = len(entries) - len(rows)
        rows += [f"- Not listed: {more} more {noun if more == 1 else nouns}"] if more else []
        return markdown.Markdown("\n".join(rows))

    def _entry(self, one: _E, line: Callable[[_E], str]) -> str:
        struck = self.strike(one)
        if not struck:
            return line(one)
        said = one.command if isinstance(one, Command) else one.text
        return f"~~{markdown.prose(said, _MOST_TEXT)}~~ {struck}"

    def is_struck(self, one: Entry) -> bool:
        """Whether a model struck the entry out."""
        return key(one) in self._struck

    def strike(self, one: Entry) -> str:
        """Why a model struck the entry out; empty where none did."""
        reason = self._struck.get(key(one))
        if reason is None:
            return ""
        return f"Struck out by the model: {sentence(reason, self._notes, _MOST_TEXT)}"

    def _mark(self, cited: Citation | None, shown: str = "") -> str:
        return self._notes.mark(cited, shown=shown)


def _code(command: str) -> markdown.Markdown:
    return markdown.code(markdown.cut(command, _MOST_COMMAND))


def _bold(words: str) -> str:
    """Words of ours that begin an entry."""
    return f"**{words[:1].upper()}{words[1:]}**"


def _left_out(more: int, noun: str) -> list[str]:
    return [f"- Not listed: {counted(more, f'more {noun}')}"] if more > 0 else []
