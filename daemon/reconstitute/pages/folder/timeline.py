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
from daemon.reconstitute.facts import shell
from daemon.reconstitute.facts.session import turns
from daemon.reconstitute.facts.session.file_changes import ChangedFolder, in_few_entries
from daemon.reconstitute.facts.session.reverts import kept_words
from daemon.reconstitute.facts.session_values import Ending, FileChange, SessionFacts, Turn
from daemon.reconstitute.facts.values import Rule
from daemon.reconstitute.pages.plan import Links
from daemon.reconstitute.pages.statements import Footnotes, sentence

_TASK_FACTOR = 3
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

    def mark(self, message_id: str, text: str, quote: str) -> str:
        """`` (**replaced later**)``, what became of the statements of a prompt as far as `quote` shows them."""
        over = [rule for rule in self._rules.get(message_id, ()) if rule.text in quote]
        heads = dict.fromkeys(rule.invalid_because.partition(":")[0].strip() for rule in over)
        is_all = sum(len(rule.text) for rule in over) >= len(text) - len(over)
        marks = "; ".join(markdown.inline(head) for head in heads)
        return f" (**{marks}{'' if is_all else ', in part'}**)" if marks else ""


class PromptQuotes:
    """At most `prompts` of a session are quoted, with `limit` characters of each on average."""

    def __init__(self, superseded: Superseded, prompts: int, limit: int) -> None:
        self._superseded = superseded
        self._prompts = prompts
        self._limit = limit

    def text(self, turns: Sequence[Turn], *, is_task: bool = False) -> str:
        """The prompts of the turns; empty where there are none. The `is_task` of a sub-agent gets no more room."""
        prompts = [(turn, markdown.cut(turn.prompt, 0)) for turn in turns if turn.prompt.strip()]
        quoted_turns = prompts[: self._prompts]
        limit = (1 if is_task else _TASK_FACTOR) * self._limit
        lengths = _shares([len(text) for _, text in quoted_turns], max(limit, len(quoted_turns) * self._limit), limit)
        quotes = [self._quote(turn, text, length) for (turn, text), length in zip(quoted_turns, lengths, strict=True)]
        omitted = len(prompts) - len(quoted_turns)
        return "; ".join(quotes) + (f" and {omitted} more" if omitted else "")

    def _quote(self, turn: Turn, text: str, limit: int) -> str:
        quote = clipped(text, limit)
        mark = _reverted_text(turn) if turn.taken_back else self._superseded.mark(turn.prompt_id, text, quote)
        return f"{markdown.quoted(quote)}{mark}"


def clipped(text: str, limit: int) -> str:
    """A text on one line, cut to about `limit` characters after a sentence, else between words."""
    if len(text) <= limit:
        return text
    ends = [end.end() for end in _END.finditer(text, 0, limit - 1) if end.end() >= limit // 2]
    return f"{text[: ends[-1]]} …" if ends else markdown.cut(text, limit)


def _shares(lengths: Sequence[int], available: int, limit: int) -> list[int]:
    """How many characters each may have: what short ones leave goes to long ones, which get at most `limit`."""
    shares = [0] * len(lengths)
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__)
    for remaining, place in zip(range(len(lengths), 0, -1), ordered, strict=True):
        shares[place] = min(lengths[place], available // remaining, limit)
        available -= shares[place]
    return shares


def _reverted_text(turn: Turn) -> str:
    kept_text = kept_words([turn])
    note = f"; {markdown.inline(kept_text)}" if kept_text else ""
    return f" (**taken back{' in part' if turn.in_part else ''}**{note})"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is told: `full` sessions with all they did, `listed` in all, `prompts` of each, `text` characters."""

    full: int = 40
    listed: int = 300
    prompts: int = 8
    text: int = 160


def own_turns(session: SessionFacts) -> list[Turn]:
    """The turns in which something was asked: without those copied from the session that it was forked from."""
    return [turn for turn in session.own_turns if not turn.is_compaction]


def begun(session: SessionFacts) -> int:
    """When its own first turn was asked, epoch ms."""
    return next((turn.time for turn in session.own_turns if turn.time), session.session.created)


def ending(session: SessionFacts) -> str:
    """How it ended, in words that are Markdown of ours; empty where nothing was asked in it."""
    turns = own_turns(session)
    if not turns:
        return ""
    words = [_ENDINGS[turns[-1].ending]]
    if all(turn.taken_back and not turn.in_part for turn in turns):
        words.append("**taken back**")
    elif any(turn.taken_back for turn in turns):
        words.append("**in part taken back**")
    if any(revert.pending and revert.undone is None for revert in session.reverts):
        words.append("the revert can still be undone")
    return ", ".join(words)


def change(entry: FileChange | ChangedFolder, links: Links) -> markdown.Markdown:
    """``[app.py](app.py.md) +12 −3``, with what became of the file where it is no mere change."""
    if isinstance(entry, ChangedFolder):
        return markdown.Markdown(f"{links.file(entry.path)} ({counted(entry.count, 'file')})")
    text = f"{links.file(entry.path)}{lines(entry.added, entry.removed)}"
    if entry.kind == "moved" and entry.moved_from:
        text += f" (moved from {links.name(entry.moved_from)})"
    elif entry.kind == "written":
        text = f"{links.file(entry.path)}{written(entry)}"
    elif entry.kind in {"deleted", "moved"}:
        text += f" ({entry.kind})"
    return markdown.Markdown(f"{text} (taken back)" if entry.undone else text)


def written(folder: FileChange) -> str:
    """``/ (8 files, by `npm run build`)``: what a command wrote in a folder, after its name."""
    by = f", by {markdown.code(markdown.cut(folder.command, _MOST_COMMAND))}" if folder.command else ""
    return f"/ ({counted(folder.files, 'file')}{by})"


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
        quoted_elsewhere: Collection[str] = (),
    ) -> None:
        """`titles` and `summaries`, what a model says came of it, are by session id.

        `quoted_elsewhere` are the sentences that other sections quote.
        """
        self._titles = titles
        self._links = links
        self._notes = notes
        self._bounds = bounds
        self._summaries = summaries
        self._prompt_quotes = PromptQuotes(superseded, bounds.prompts, bounds.text)
        self._quoted_elsewhere = quoted_elsewhere
        parents = {session.id: session.session.parent_id or "" for session in sessions}
        self._children: dict[str, list[SessionFacts]] = {}
        for session in sorted(sessions, key=lambda session: (begun(session), session.id)):
            self._children.setdefault(parent_of(session.id, parents), []).append(session)
        self._tops = sorted(
            self._children.get("", []), key=lambda session: (_last_prompt_time(session), session.id), reverse=True
        )

    def text(self) -> markdown.Markdown:
        """All of it: a picture where the history is long, the newest month, and older months folded."""
        listed_sessions = self._tops[: self._bounds.listed]
        omitted = len(self._tops) - len(listed_sessions)
        parts: list[str] = [drawn] if (drawn := picture(self._tops)) else []
        for month, group in groupby(enumerate(listed_sessions), lambda pair: _month(pair[1])):
            ranked = list(group)
            listed = "\n".join(line for place, session in ranked for line in self._lines(session, place))
            if len(self._tops) > _FEWEST_FOLDED and ranked[0][0]:
                summary = f"{month}: {counted(len(ranked), 'session')}"
                listed = f"<details><summary>{summary}</summary>\n\n{listed}\n\n</details>"
            parts.append(listed)
        if omitted:
            parts.append(f"Not listed: {counted(omitted, 'older session')}.")
        return markdown.Markdown("\n\n".join(parts))

    def _lines(self, session: SessionFacts, place: int) -> Iterator[str]:
        if place < self._bounds.full:
            yield from self._full(session, "")
            return
        helpers = len(self._children.get(session.id, ()))
        prompts = [turn.prompt for turn in own_turns(session) if turn.prompt.strip()]
        did = [
            markdown.quoted(prompts[0], self._bounds.text // 2) if prompts else "",
            counted(len(prompts) - 1, "more prompt") if len(prompts) > 1 else "",
            counted(sum(change.files for change in session.changes), "file") + " changed" if session.changes else "",
            counted(helpers, "sub-agent") if helpers else "",
        ]
        yield ": ".join(filter(None, [f"- {self._head(session)}", ", ".join(filter(None, did))]))

    def _full(self, session: SessionFacts, indent: str) -> Iterator[str]:
        yield f"{indent}- {'Sub-agent: ' if indent else ''}{self._head(session)}"
        if (summary := self._summaries.get(session.id)) is not None:
            yield f"{indent}  - By the model: {sentence(summary, self._notes, 2 * self._bounds.text)}"
        if prompts := self._prompt_quotes.text(own_turns(session), is_task=bool(indent)):
            yield f"{indent}  - Asked: {prompts}"
        came = "; ".join(self._outcome(session))
        if came:
            yield f"{indent}  - Result: {came}"
        if answer := self._answer(session):
            yield f"{indent}  - Answer: {answer}"
        for child in self._children.get(session.id, ()):
            yield from self._full(child, indent + "  ")

    def _head(self, session: SessionFacts) -> str:
        marks = [ending(session)]
        if session.forked_from:
            title = self._titles.get(session.forked_from, "")
            marks.append(f"forked from {self._links.session(session.forked_from, title)}")
        marks += ["only in part about this folder"] if not session.is_whole else []
        marks += ["deleted in OpenCode"] if session.deleted else []
        error = own_turns(session)[-1].error if own_turns(session) else ""
        head = f"{_span(session)}, {self._links.session(session.id, self._titles.get(session.id, session.title))}"
        head_line = ", ".join([head, *filter(None, marks)])
        return f"{head_line}: {markdown.quoted(error, self._bounds.text)}" if error else head_line

    def _answer(self, session: SessionFacts) -> str:
        """How its last answer ended, where no model says what came of it."""
        result = (
            turns.closing_words(session, self._bounds.text * 3 // 2, self._quoted_elsewhere)
            if session.id not in self._summaries
            else None
        )
        return (
            "" if result is None else f"{markdown.quoted(result.quote)}{self._notes.mark(result, beside=result.quote)}"
        )

    def _outcome(self, session: SessionFacts) -> Iterator[str]:
        """Files, commits and tests."""
        if session.changes:
            entries, omitted = in_few_entries(session.changes, self._links.target, _MOST_FILES)
            texts = [change(entry, self._links) for entry in entries]
            yield ", ".join(texts) + (f" and {omitted} more" if omitted else "")
        if session.outside:
            texts = [markdown.code(markdown.cut(path, 80)) for path in session.outside[:_MOST_OUTSIDE]]
            omitted = len(session.outside) - len(texts)
            yield f"outside of this folder: {', '.join(texts)}" + (f" and {omitted} more" if omitted else "")
        for run in session.tests:
            how = "passed" if run.passed else "**failed**"
            summary = f" ({markdown.inside(run.summary, 60)})" if run.summary.strip() else ""
            command = markdown.code(markdown.cut(run.command, 80))
            where = shell.where(run, session.session.directory)
            where = f" in {markdown.code(markdown.cut(where, 80))}" if where else ""
            yield f"tests {how}: {command}{where}{summary}{self._notes.mark(run.citation)}"
        for how, subjects in (
            ("committed", session.commits),
            ("committed, and undone again by git:", session.undone_commits),
        ):
            texts = [markdown.quoted(subject, 80) for subject in subjects[:_MOST_COMMITS]]
            omitted = len(subjects) - len(texts)
            if texts:
                yield f"{how} {', '.join(texts)}" + (f" and {omitted} more" if omitted else "")


def parent_of(session_id: str, parents: Mapping[str, str]) -> str:
    """The session that started it, if that is among `parents` too; empty where the records lead in a circle."""
    seen: set[str] = set()
    above = parents[session_id]
    while above in parents and above != session_id and above not in seen:
        seen.add(above)
        above = parents[above]
    return parents[session_id] if above != session_id and parents[session_id] in parents else ""


def _last_prompt_time(session: SessionFacts) -> int:
    """When its last own turn was asked, epoch ms."""
    return max((turn.time for turn in own_turns(session)), default=begun(session))


def _span(session: SessionFacts) -> str:
    """When it began, with the day of its last turn where that is another one."""
    first, last = markdown.moment(begun(session)), markdown.day(_last_prompt_time(session))
    return first if first.startswith(last) else f"{first} to {last}"


def _month(session: SessionFacts) -> str:
    day = markdown.day(_last_prompt_time(session))
    return day[:7] if day[:1].isdigit() else day


def picture(sessions: Sequence[SessionFacts]) -> markdown.Markdown | None:
    """Sessions by month as bars of text, newest first; None where the list alone says as much."""
    often = Counter(month for session in sessions if (month := _month(session))[:1].isdigit())
    if len(sessions) <= _FEWEST_FOLDED or len(often) < _FEWEST_DRAWN:
        return None
    newest, oldest = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (max(often), min(often)))
    months = [f"{at // 12}-{at % 12 + 1:02}" for at in range(newest, max(oldest, newest - _MOST_DRAWN + 1) - 1, -1)]
    maximum = max(often.values())
    rows = [f"{month} {'█' * -(-often[month] * _BAR // maximum)} {often[month] or '·'}" for month in months]
    return markdown.fence("\n".join(rows), "text")
