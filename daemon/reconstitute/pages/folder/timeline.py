"""What happened in a folder: its sessions, newest first, each with what was asked, what came of it and how it ended.

Guarantees: sub-agents stand under the session that started them, a fork tells only its own turns, and what is left out
is counted. It makes lines of Markdown from facts and reads nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from daemon import markdown
from daemon.display import counted
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts import session_result, shell
from daemon.reconstitute.facts.session.file_changes import ChangedFolder, in_few_entries
from daemon.reconstitute.facts.session.reverts import kept_words
from daemon.reconstitute.facts.session_values import Ending, FileChange, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule
from daemon.reconstitute.pages.footnotes import Footnotes
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.pages.statements import sentence

_ROOM = 3
"""A session with few prompts, and each long one among short ones, may use this many times the characters of one."""
_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][」』”）]*")
_FEWEST_FOLDED = 12
"""Sessions up to which a history is not folded by month."""
_FEWEST_DRAWN = 3
"""Months from which on a picture of the activity says more than the list."""
_MOST_DRAWN = 24
_BAR = 20
_MOST_COMMITS = 3
_MOST_FILES = 6
_MOST_COMMAND = 60
_MOST_OUTSIDE = 3
_ENDINGS = {
    Ending.ANSWERED: "answered",
    Ending.STOPPED: "**stopped**",
    Ending.REFUSED: "**refused**",
    Ending.FAILED: "**failed**",
    Ending.OPEN: "**still open**",
}


class Superseded:
    """Which sentences of prompts state a rule or a decision that no longer holds; `rules` are those of all sessions."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.invalid_because and rule.who == "user":
                self._rules.setdefault(rule.citation.message_id, []).append(rule)

    def mark(self, message_id: str, text: str, shown: str) -> str:
        """`` (**replaced later**)``, what became of the statements of a prompt as far as they are `shown` of `text`."""
        over = [rule for rule in self._rules.get(message_id, ()) if rule.text in shown]
        heads = dict.fromkeys(rule.invalid_because.partition(":")[0].strip() for rule in over)
        is_all = sum(len(rule.text) for rule in over) >= len(text) - len(over)
        said = "; ".join(markdown.inline(head) for head in heads)
        return f" (**{said}{'' if is_all else ', in part'}**)" if said else ""


class PromptQuotes:
    """At most `prompts` of a session are quoted, with `most` characters of each on average."""

    def __init__(self, superseded: Superseded, prompts: int, most: int) -> None:
        self._superseded = superseded
        self._prompts = prompts
        self._most = most

    def text(self, turns: Sequence[Turn], *, is_task: bool = False) -> str:
        """The prompts of the turns; empty where there are none. The `is_task` of a sub-agent gets no more room."""
        prompts = [(turn, markdown.cut(turn.prompt, 0)) for turn in turns if turn.prompt.strip()]
        shown = prompts[: self._prompts]
        most = (1 if is_task else _ROOM) * self._most
        lengths = _shares([len(text) for _, text in shown], max(most, len(shown) * self._most), most)
        said = [self._quoted(turn, text, length) for (turn, text), length in zip(shown, lengths, strict=True)]
        more = len(prompts) - len(shown)
        return "; ".join(said) + (f" and {more} more" if more else "")

    def _quoted(self, turn: Turn, text: str, most: int) -> str:
        shown = clipped(text, most)
        mark = _taken_back(turn) if turn.taken_back else self._superseded.mark(turn.prompt_id, text, shown)
        return f"{markdown.quoted(shown)}{mark}"


def clipped(text: str, most: int) -> str:
    """A text on one line, cut to about `most` characters after a sentence, else between words."""
    if len(text) <= most:
        return text
    ends = [end.end() for end in _END.finditer(text, 0, most - 1) if end.end() >= most // 2]
    return f"{text[: ends[-1]]} …" if ends else markdown.cut(text, most)


def _shares(lengths: Sequence[int], room: int, most: int) -> list[int]:
    """How many characters each may have: what short ones leave goes to long ones, which get at most `most`."""
    made = [0] * len(lengths)
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__)
    for left, place in zip(range(len(lengths), 0, -1), ordered, strict=True):
        made[place] = min(lengths[place], room // left, most)
        room -= made[place]
    return made


def _taken_back(turn: Turn) -> str:
    kept = kept_words([turn])
    return f" (**taken back{' in part' if turn.in_part else ''}**{f'; {markdown.inline(kept)}' if kept else ''})"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is told: `full` sessions with all they did, `listed` in all, `prompts` of each, `text` characters."""

    full: int = 40
    listed: int = 300
    prompts: int = 8
    text: int = 160


def own_turns(one: SessionFacts) -> list[Turn]:
    """The turns in which something was asked: without those copied from the session that it was forked from."""
    return [turn for turn in one.own_turns if not turn.is_compaction]


def begun(one: SessionFacts) -> int:
    """When its own first turn was asked, epoch ms."""
    return next((turn.time for turn in one.own_turns if turn.time), one.session.created)


def ending(one: SessionFacts) -> str:
    """How it ended, in words that are Markdown of ours; empty where nothing was asked in it."""
    turns = own_turns(one)
    if not turns:
        return ""
    words = [_ENDINGS[turns[-1].ending]]
    if all(turn.taken_back and not turn.in_part for turn in turns):
        words.append("**taken back**")
    elif any(turn.taken_back for turn in turns):
        words.append("**in part taken back**")
    if any(revert.pending and revert.undone is None for revert in one.reverts):
        words.append("the revert can still be undone")
    return ", ".join(words)


def change(one: FileChange | ChangedFolder, links: Links) -> markdown.Markdown:
    """``[app.py](app.py.md) +12 −3``, with what became of the file where it is no mere change."""
    if isinstance(one, ChangedFolder):
        return markdown.Markdown(f"{links.file(one.path)} ({counted(one.count, 'file')})")
    text = f"{links.file(one.path)}{lines(one.added, one.removed)}"
    if one.kind == "moved" and one.moved_from:
        text += f" (moved from {links.name(one.moved_from)})"
    elif one.kind == "written":
        text = f"{links.file(one.path)}{written(one)}"
    elif one.kind in {"deleted", "moved"}:
        text += f" ({one.kind})"
    return markdown.Markdown(f"{text} (taken back)" if one.undone else text)


def written(one: FileChange) -> str:
    """``/ (8 files, by `npm run build`)``: what a command wrote in a folder, after its name."""
    by = f", by {markdown.code(markdown.cut(one.command, _MOST_COMMAND))}" if one.command else ""
    return f"/ ({counted(one.files, 'file')}{by})"


def lines(added: int | None, removed: int | None) -> str:
    """`` +12 −3``; empty where it is not known."""
    parts = [f"+{added}" if added else "", f"−{removed}" if removed else ""]
    return "".join(f" {part}" for part in parts if part)


class Timeline:
    """The sessions of a page as lines of Markdown."""

    def __init__(
        self,
        sessions: Sequence[SessionFacts],
        titles: Mapping[str, str],
        links: Links,
        notes: Footnotes,
        *,
        bounds: Bounds,
        summaries: Mapping[str, Statement],
        superseded: Superseded,
        told: Collection[str] = (),
    ) -> None:
        """`titles` and `summaries`, what a model says came of it, are by session id.

        `told` are the sentences that other sections quote.
        """
        self._titles = titles
        self._links = links
        self._notes = notes
        self._bounds = bounds
        self._summaries = summaries
        self._asked = PromptQuotes(superseded, bounds.prompts, bounds.text)
        self._told = told
        parents = {one.id: one.session.parent_id or "" for one in sessions}
        self._children: dict[str, list[SessionFacts]] = {}
        for one in sorted(sessions, key=lambda one: (begun(one), one.id)):
            self._children.setdefault(parent_of(one.id, parents), []).append(one)
        self._tops = sorted(self._children.get("", []), key=lambda one: (_asked_last(one), one.id), reverse=True)

    def text(self) -> markdown.Markdown:
        """All of it: a picture where the history is long, the newest month, and older months folded."""
        shown = self._tops[: self._bounds.listed]
        more = len(self._tops) - len(shown)
        parts: list[str] = [drawn] if (drawn := picture(self._tops)) else []
        for month, group in groupby(enumerate(shown), lambda pair: _month(pair[1])):
            ranked = list(group)
            listed = "\n".join(line for place, one in ranked for line in self._lines(one, place))
            if len(self._tops) > _FEWEST_FOLDED and ranked[0][0]:
                summary = f"{month}: {counted(len(ranked), 'session')}"
                listed = f"<details><summary>{summary}</summary>\n\n{listed}\n\n</details>"
            parts.append(listed)
        if more:
            parts.append(f"Not listed: {counted(more, 'older session')}.")
        return markdown.Markdown("\n\n".join(parts))

    def _lines(self, one: SessionFacts, place: int) -> Iterator[str]:
        if place < self._bounds.full:
            yield from self._full(one, "")
            return
        helpers = len(self._children.get(one.id, ()))
        prompts = [turn.prompt for turn in own_turns(one) if turn.prompt.strip()]
        did = [
            markdown.quoted(prompts[0], self._bounds.text // 2) if prompts else "",
            counted(len(prompts) - 1, "more prompt") if len(prompts) > 1 else "",
            counted(sum(each.files for each in one.changes), "file") + " changed" if one.changes else "",
            counted(helpers, "sub-agent") if helpers else "",
        ]
        yield ": ".join(filter(None, [f"- {self._head(one)}", ", ".join(filter(None, did))]))

    def _full(self, one: SessionFacts, indent: str) -> Iterator[str]:
        yield f"{indent}- {'Sub-agent: ' if indent else ''}{self._head(one)}"
        if (summary := self._summaries.get(one.id)) is not None:
            yield f"{indent}  - By the model: {sentence(summary, self._notes, 2 * self._bounds.text)}"
        if asked := self._asked.text(own_turns(one), is_task=bool(indent)):
            yield f"{indent}  - Asked: {asked}"
        came = "; ".join(self._outcome(one))
        if came:
            yield f"{indent}  - Result: {came}"
        if answer := self._answer(one):
            yield f"{indent}  - Answer: {answer}"
        for child in self._children.get(one.id, ()):
            yield from self._full(child, indent + "  ")

    def _head(self, one: SessionFacts) -> str:
        marks = [ending(one)]
        if one.forked_from:
            title = self._titles.get(one.forked_from, "")
            marks.append(f"forked from {self._links.session(one.forked_from, title)}")
        marks += ["only in part about this folder"] if not one.is_whole else []
        marks += ["deleted in OpenCode"] if one.deleted else []
        error = own_turns(one)[-1].error if own_turns(one) else ""
        head = f"{_span(one)}, {self._links.session(one.id, self._titles.get(one.id, one.title))}"
        said = ", ".join([head, *filter(None, marks)])
        return f"{said}: {markdown.quoted(error, self._bounds.text)}" if error else said

    def _answer(self, one: SessionFacts) -> str:
        """How its last answer ended, where no model says what came of it."""
        said = (
            session_result.last(one, self._bounds.text * 3 // 2, self._told) if one.id not in self._summaries else None
        )
        return "" if said is None else f"{markdown.quoted(said.quote)}{self._notes.mark(said, shown=said.quote)}"

    def _outcome(self, one: SessionFacts) -> Iterator[str]:
        """Files, commits and tests."""
        if one.changes:
            entries, more = in_few_entries(one.changes, self._links.target, _MOST_FILES)
            named = [change(each, self._links) for each in entries]
            yield ", ".join(named) + (f" and {more} more" if more else "")
        if one.outside:
            named = [markdown.code(markdown.cut(path, 80)) for path in one.outside[:_MOST_OUTSIDE]]
            more = len(one.outside) - len(named)
            yield f"outside of this folder: {', '.join(named)}" + (f" and {more} more" if more else "")
        for run in one.tests:
            how = "passed" if run.passed else "**failed**"
            summary = f" ({markdown.inside(run.summary, 60)})" if run.summary.strip() else ""
            command = markdown.code(markdown.cut(run.command, 80))
            where = shell.where(run, one.session.directory)
            where = f" in {markdown.code(markdown.cut(where, 80))}" if where else ""
            yield f"tests {how}: {command}{where}{summary}{self._notes.mark(run.citation)}"
        for how, subjects in (("committed", one.commits), ("committed, and undone again by git:", one.undone_commits)):
            named = [markdown.quoted(subject, 80) for subject in subjects[:_MOST_COMMITS]]
            more = len(subjects) - len(named)
            if named:
                yield f"{how} {', '.join(named)}" + (f" and {more} more" if more else "")


def parent_of(session_id: str, parents: Mapping[str, str]) -> str:
    """The session that started it, if that is among `parents` too; empty where the records lead in a circle."""
    seen: set[str] = set()
    above = parents[session_id]
    while above in parents and above != session_id and above not in seen:
        seen.add(above)
        above = parents[above]
    return parents[session_id] if above != session_id and parents[session_id] in parents else ""


def _asked_last(one: SessionFacts) -> int:
    """When its last own turn was asked, epoch ms."""
    return max((turn.time for turn in own_turns(one)), default=begun(one))


def _span(one: SessionFacts) -> str:
    """When it began, with the day of its last turn where that is another one."""
    first, last = markdown.moment(begun(one)), markdown.day(_asked_last(one))
    return first if first.startswith(last) else f"{first} to {last}"


def _month(one: SessionFacts) -> str:
    known = markdown.day(_asked_last(one))
    return known[:7] if known[:1].isdigit() else known


def picture(sessions: Sequence[SessionFacts]) -> markdown.Markdown | None:
    """Sessions by month as bars of text, newest first; None where the list alone says as much."""
    often = Counter(month for one in sessions if (month := _month(one))[:1].isdigit())
    if len(sessions) <= _FEWEST_FOLDED or len(often) < _FEWEST_DRAWN:
        return None
    newest, oldest = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (max(often), min(often)))
    months = [f"{at // 12}-{at % 12 + 1:02}" for at in range(newest, max(oldest, newest - _MOST_DRAWN + 1) - 1, -1)]
    most = max(often.values())
    rows = [f"{month} {'█' * -(-often[month] * _BAR // most)} {often[month] or '·'}" for month in months]
    return markdown.fence("\n".join(rows), "text")
