"""What happened each day over all folders, newest first: a line for each session, linked to its page.

Guarantees: the same sessions give the same bytes; the page is bounded, and says what it leaves out. Texts are kept
redacted and unescaped; the page makes them inert.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from urllib.parse import quote

from daemon import markdown
from daemon.display import counted
from daemon.files.trees import is_beneath
from daemon.model import Json, Page
from daemon.reconstitute.answer import Statement
from daemon.reconstitute.facts.session.file_changes import ChangedFolder, in_few_entries
from daemon.reconstitute.facts.session.reverts import kept_words
from daemon.reconstitute.facts.session_values import Ending, FileChange, SessionFacts, TestRun, Turn
from daemon.reconstitute.pages.folder.timeline import begun, own_turns, parent_of
from daemon.reconstitute.pages.layout import README, Transcripts
from daemon.reconstitute.pages.statements import letters, unused
from daemon.redact import redact

CHANGES = "CHANGES.md"
MOST_LOGGED = 300
"""Sessions of one target that are kept for the page."""
_MOST_LISTED = 1000
_MOST_TEXT = 120
_MOST_SUMMARY = 300
_MOST_FILES = 3
_ENDINGS = {Ending.STOPPED: "stopped", Ending.REFUSED: "refused", Ending.FAILED: "failed", Ending.OPEN: "still open"}


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model says came of a session, and its source: when (epoch ms), where (as `Logged.href`), its words."""

    text: str
    time: int
    href: str
    quote: str


@dataclass(frozen=True, slots=True)
class Logged:
    """One session: when it began (epoch ms), its title, where its page is (encoded, relative to the tree; or empty).

    `asked` is its first prompt, with how many `more` there were; `came` what came of it, in words; `summary` says it in
    their place where a model was asked. `session` is its id and `directory` the folder it was in, absolute; both are
    empty in what was kept before they were.
    """

    time: int
    title: str
    href: str
    asked: str
    more: int
    came: str
    summary: Summary | None = None
    session: str = ""
    directory: str = ""

    @classmethod
    def from_json(cls, stored: Json) -> Logged:
        """The inverse of asdict; also of what was kept before there were summaries."""
        summary = stored.get("summary")
        return cls(**stored | {"summary": Summary(**summary) if summary else None})


_Logs = Sequence[tuple[str, str, Sequence[Logged]]]
"""Of each target the folder of its tree, its path, and its sessions."""


def log(
    sessions: Sequence[SessionFacts],
    titles: Mapping[str, str],
    transcripts: Transcripts,
    summaries: Mapping[str, Statement],
    target: str,
) -> tuple[Logged, ...]:
    """The newest sessions in which something was asked, oldest first, each once for every day on which it was.

    Sub-agents belong to those that started them.
    """
    parents = {session.id: session.session.parent_id or "" for session in sessions}
    tops = [session for session in sessions if own_turns(session) and not parent_of(session.id, parents)]
    tops.sort(key=lambda session: (begun(session), session.id))
    days = [
        day
        for session in tops[-MOST_LOGGED:]
        for day in _logged(
            session, titles.get(session.id, session.title), transcripts, summaries.get(session.id), target
        )
    ]
    return tuple(sorted(days, key=lambda day: day.time)[-MOST_LOGGED:])


def _logged(
    session: SessionFacts, title: str, transcripts: Transcripts, statement: Statement | None, target: str
) -> Iterator[Logged]:
    """Its days; what came of all of it stands at the last."""
    turns = sorted(own_turns(session), key=lambda turn: turn.time)
    first = next((turn.prompt for turn in turns if turn.prompt.strip()), "")
    name = markdown.cut(markdown.bare(title), _MOST_TEXT).strip() or markdown.cut(redact(first), _MOST_TEXT)
    href, last = str(transcripts.href(README, session.id)), markdown.day(turns[-1].time)
    for day, group in groupby(turns, key=lambda turn: markdown.day(turn.time)):
        of_day = list(group)
        prompts = [turn.prompt for turn in of_day if turn.prompt.strip()]
        prompt = markdown.cut(redact(prompts[0]), _MOST_TEXT) if prompts else ""
        prompts_left = max(0, len(prompts) - 1)
        logged = Logged(
            of_day[0].time,
            name or "without title",
            href,
            prompt,
            prompts_left,
            "",
            None,
            session.id,
            session.session.directory,
        )
        summary = _summary(statement, transcripts) if statement else None
        yield replace(logged, came=_came(session, target), summary=summary) if day == last else logged


def _summary(statement: Statement, transcripts: Transcripts) -> Summary | None:
    source = next(iter(statement.sources), None)
    if source is None or statement.is_outdated:
        return None
    href = str(transcripts.href(README, source.session_id, source.message_id))
    quote = "" if source.quote in statement.text else markdown.cut(redact(source.quote), _MOST_TEXT)
    return Summary(markdown.cut(redact(statement.text), _MOST_SUMMARY), source.created, href, quote)


def _came(session: SessionFacts, target: str) -> str:
    changes = [change for change in session.changes if not change.undone]
    entries, omitted = in_few_entries(changes, target, _MOST_FILES)
    names = [_file(change) for change in entries]
    note = f" and {omitted} more" if omitted else ""
    turns = own_turns(session)
    parts = [
        ", ".join(names) + note,
        _tests(session.tests),
        counted(len(session.commits), "commit") if session.commits else "",
        f"{counted(len(session.undone_commits), 'commit')} undone again" if session.undone_commits else "",
        _reverted_text(turns),
        _ENDINGS.get(turns[-1].ending, "") if turns else "",
    ]
    return "; ".join(filter(None, parts))


def _reverted_text(turns: Sequence[Turn]) -> str:
    if not any(turn.taken_back for turn in turns):
        return ""
    is_all = all(turn.taken_back and not turn.in_part for turn in turns)
    kept_text = kept_words(turns)
    return redact(f"{'' if is_all else 'in part '}taken back{f' ({kept_text})' if kept_text else ''}")


def _file(change: FileChange | ChangedFolder) -> str:
    name = markdown.cut(redact(posixpath.basename(change.path)), 60)
    if isinstance(change, ChangedFolder):
        return f"{name}/ ({counted(change.count, 'file')})"
    if change.kind == "written":
        return f"{name}/ ({counted(change.files, 'file')})"
    return f"{name} ({change.kind})" if change.kind in {"deleted", "moved"} else name


def _tests(runs: Sequence[TestRun]) -> str:
    """How the last of them ended: an earlier failure of another command may be what it mended."""
    if not runs:
        return ""
    is_mixed = len({run.passed for run in runs}) > 1
    return f"{'the last ' if is_mixed else ''}tests {'passed' if runs[-1].passed else 'failed'}"


def page(logs: _Logs) -> Page:
    """The page; `logs` are (tree, target, its sessions), in the order in which the trees are named on a day."""
    logs = _once(logs)
    entries = [(logged, place) for place, (_, _, sessions) in enumerate(logs) for logged in sessions]
    entries.sort(key=lambda pair: (-pair[0].time, pair[1], pair[0].title))
    listed = entries[:_MOST_LISTED]
    notes: dict[str, str] = {}
    parts = ["# What happened", f"Newest first; times in {markdown.zone()}."]
    if any(logged.summary for logged, _ in listed):
        parts[1] += " A sentence with a footnote is a model's."
    if not listed:
        parts.append("Nothing is recorded yet.")
    newest = _month(listed[0][0]) if listed else ""
    for month, group in groupby(listed, lambda pair: _month(pair[0])):
        days = "\n\n".join(
            _day(day, list(logged_), logs, notes) for day, logged_ in groupby(group, lambda p: markdown.day(p[0].time))
        )
        folded = f"<details><summary>{month}</summary>\n\n{days}\n\n</details>"
        parts.append(days if month == newest else folded)
    if len(entries) > len(listed):
        parts.append(f"Not listed: {counted(len(entries) - len(listed), 'older session')}.")
    return Page(CHANGES, "\n\n".join([*parts, *notes.values()]) + "\n")


def _once(logs: _Logs) -> _Logs:
    """The same, where targets lie in one another with each session under one of these only: the innermost that holds
    its directory, else the first.
    """
    targets = [target for _, target, _ in logs]
    outermost = [min((target_ for target_ in targets if is_beneath(target, target_)), key=len) for target in targets]
    holders: dict[tuple[str, str], tuple[int, int]] = {}
    for place, (_, target, sessions) in enumerate(logs):
        for logged in sessions:
            key = outermost[place], logged.session
            depth = len(target) if is_beneath(logged.directory, target) else 0
            holders[key] = max(holders.get(key, (depth, -place)), (depth, -place))
    return [
        (tree, target, [x for x in log_ if not x.session or -holders[outermost[place], x.session][1] == place])
        for place, (tree, target, log_) in enumerate(logs)
    ]


def _day(day: str, listed: list[tuple[Logged, int]], logs: _Logs, notes: dict[str, str]) -> str:
    """One day: for each folder its sessions, newest first. `notes` are the footnotes so far by label."""
    parts = [f"## {day}"]
    for place in sorted({place for _, place in listed}):
        tree, title, _ = logs[place]
        lines = [_line(logged, tree, notes) for logged, owner in listed if owner == place]
        head = f"**{markdown.link(redact(title), posixpath.join(tree, README))}**"
        parts.append("\n".join([head, "", *lines]))
    return "\n\n".join(parts)


def _line(logged: Logged, tree: str, notes: dict[str, str]) -> str:
    time = markdown.moment(logged.time).partition(" ")[2] or markdown.moment(logged.time)
    title = _link(logged.title, tree, logged.href)
    came = f" → {markdown.inline(logged.came)}" if logged.came else ""
    if logged.summary is not None:
        words = f": {markdown.quoted(logged.summary.quote)}" if logged.summary.quote else ""
        source = f"{markdown.moment(logged.summary.time)}, {_link(logged.title, tree, logged.summary.href)}"
        day, key = markdown.day(logged.time).replace(" ", "-"), f"{tree}\0{logged.session or logged.href}"
        label = unused([day, letters(key, 3)], key, notes)
        notes[label] = f"[^{label}]: {source}{words}"
        return f"- {time} {title}: {markdown.prose(logged.summary.text)}[^{label}]{came}"
    prompt = f": {markdown.quoted(logged.asked)}" if logged.asked and logged.asked != logged.title else ""
    note = f" and {counted(logged.more, 'more prompt')}" if logged.more else ""
    return f"- {time} {title}{prompt}{note}{came}"


def _link(title: str, tree: str, href: str) -> markdown.Markdown:
    """A session's title; `href` is encoded and relative to the tree."""
    if not href:
        return markdown.inline(title)
    return markdown.Markdown(
        f"[{markdown.inline(title)}]({posixpath.join(quote(tree, safe='/', errors='replace'), href)})"
    )


def _month(logged: Logged) -> str:
    day = markdown.day(logged.time)
    return day[:7] if day[:1].isdigit() else day
