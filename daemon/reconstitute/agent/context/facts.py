"""The facts of a folder and the prompts of its sessions as text for a model, in one delimited block each.

A line has one fact, with its key and the messages it stands on, or one prompt, with its time and message id; recorded
text in it is cleaned and on one line. Where not all of them fit, lines are shortened first. Then the longest lists of
facts lose their ends, and the prompts in the middle are left out; the text says how many. What files say of themselves
comes last of the facts, in the space that is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from daemon.chat.tokens import of_text
from daemon.display import counted, one_line, shorten
from daemon.reconstitute.agent.context.blocks import clean, fenced, name, utc
from daemon.reconstitute.agent.context.ledger import VerifiedNotes
from daemon.reconstitute.facts.session_values import Citation, SessionFacts, Turn
from daemon.reconstitute.facts.values import (
    Aftermath,
    Command,
    Entry,
    Facts,
    Need,
    OpenPoint,
    Purpose,
    Rule,
    Script,
    Setback,
    key,
)

_WIDTHS = (600, 300, 140)
"""Characters of one text in a line, tried in this order."""
_SHARE_OF_PURPOSES = 0.25
"""Of the room for facts, the most that the files' own words may take."""
_MIN_LINES = 3
"""Lines that a list keeps as long as anything of it is shown."""
_FILES = "What files are for, in their own words or those of the prompt that made them"
_HEADING = "facts worked out by code, without a model: [key] entry (where it stands)"
_PROMPT_WIDTHS = (4000, 1500, 600, 250)
"""Characters of a prompt, tried in this order."""
_PROMPTS_HEADING = "every prompt, oldest first, under its session: message id | time | text on one line"


@dataclass(frozen=True, slots=True)
class Line:
    """One entry: `texts` of the messages or files cited as they stand in `text`."""

    text: str
    key: str = ""
    cited: tuple[tuple[Citation, str], ...] = ()


@dataclass(slots=True)
class _List:
    """Lines under a heading; `left_out` counts those that had no room."""

    heading: str
    lines: list[Line] = field(default_factory=list)
    left_out: int = 0

    @property
    def text(self) -> str:
        note = [f"- (and {self.left_out} more)"] if self.left_out else []
        return "\n".join([f"{self.heading}:", *(f"- {line.text}" for line in self.lines), *note])


def facts_block(facts: Facts, verified: VerifiedNotes, limit: int) -> tuple[str, dict[str, str]]:
    """(a block of at most `limit` tokens or nothing, the facts in it by key); the ledger gets what it shows."""
    lists: list[_List] = []
    for width in _WIDTHS:
        lists = _lists(facts, width)
        if _tokens(lists) <= limit:
            break
    else:
        _fit(lists, limit)
    lists += _file_purposes(facts, min(limit - _tokens(lists), int(limit * _SHARE_OF_PURPOSES)))
    if not any(list_.lines for list_ in lists):
        return "", {}
    for line in (line for list_ in lists for line in list_.lines):
        for citation, text in line.cited:
            verified.note(citation.message_id, [text], path=citation.path)
    entries = {line.key: line.text for list_ in lists for line in list_.lines if line.key}
    return fenced(_HEADING, _body(lists)), entries


def _fit(lists: Sequence[_List], limit: int) -> None:
    """Take lines from the ends of the longest lists; what they leave is measured line by line, which is never less."""
    sizes = [[_size(line.text) for line in list_.lines] for list_ in lists]
    remaining = limit - _tokens([]) - sum(_size(list_.heading) + _size("(and 99999 more)") for list_ in lists)
    totals = [sum(list_sizes) for list_sizes in sizes]
    while sum(totals) > remaining and any(sizes):
        place = max(range(len(lists)), key=lambda at: (len(sizes[at]) > _MIN_LINES, totals[at]))
        totals[place] -= sizes[place].pop()
        lists[place].lines.pop()
        lists[place].left_out += 1


def _file_purposes(facts: Facts, limit: int) -> list[_List]:
    """The list of what files are for in at most `limit` tokens, or none."""
    of = _FactLines(_WIDTHS[-1])
    often = Counter(key(entry) for entry in _entries(facts))
    lines = [of.purpose(purposes, path) for path, purposes in sorted(facts.file_purposes.items())]
    # The same words of several files, or of the folder too, have one key: struck out for one, they would be for all.
    lines = [
        line if often[line.key] == 1 else replace(line, key="", text=line.text.removeprefix(f"[{line.key}] "))
        for line in lines
    ]
    list_ = _List(_FILES, lines)
    if not list_.lines:
        return []
    remaining = limit - _size(list_.heading) - _size("(and 99999 more)")
    count = 0
    for line in list_.lines:
        remaining -= _size(line.text)
        if remaining < 0:
            break
        count += 1
    list_.left_out = len(list_.lines) - count
    del list_.lines[count:]
    return [list_] if count else []


def keys(facts: Facts) -> set[str]:
    """The keys of all entries that can be struck out."""
    return {key(entry) for entry in _entries(facts)}


def _entries(facts: Facts) -> Iterable[Entry]:
    purposes = facts.file_purposes.values()
    return (*facts.purpose, *facts.commands, *facts.scripts, *facts.setbacks, *facts.open, *facts.rules, *purposes)


def _tokens(lists: Sequence[_List]) -> int:
    return int(of_text(fenced(_HEADING, _body(lists))).most)


def _size(line: str) -> int:
    return int(of_text(line).most) + 3


def _body(lists: Sequence[_List]) -> str:
    return "\n".join(list_.text for list_ in lists)


def _lists(facts: Facts, width: int) -> list[_List]:
    of = _FactLines(width)
    lists = [
        _List("What it is", [of.purpose(fact) for fact in facts.purpose]),
        _List("Where it stands", of.standing(facts)),
        _List("Rules and decisions", [of.rule(fact) for fact in facts.rules]),
        _List("Left open", [of.open(fact) for fact in facts.open]),
        _List("Taken back, failed, refused, stopped", [of.setback(fact) for fact in facts.setbacks]),
        _List("Commands that were run", [of.command(fact) for fact in facts.commands]),
        _List("Scripts and targets that files name", [of.script(fact) for fact in facts.scripts]),
        _List("What must be there to run it", [of.need(fact) for fact in facts.needs]),
    ]
    return [list_ for list_ in lists if list_.lines]


@dataclass(frozen=True, slots=True)
class _FactLines:
    """Makes lines with texts of at most `width` characters."""

    width: int

    def cut(self, text: str) -> str:
        return shorten(one_line(clean(text)), self.width)

    def purpose(self, entry: Purpose, path: str = "") -> Line:
        """Of the folder, or of the file at `path`."""
        text = f"{name(path)}: {self.cut(entry.text)}" if path else self.cut(entry.text)
        return self._line(entry, text, entry.citation, before=f"by {name(entry.origin)}")

    def rule(self, entry: Rule) -> Line:
        text = f"{name(entry.kind)} of {name(entry.origin) or f'the {name(entry.who)}'}: {self.cut(entry.text)}"
        texts = {
            "reason": entry.reason,
            "replaces": entry.replaces,
            "no longer so": entry.invalid_because,
            "note": entry.note,
        }
        return self._line(entry, text + self._details(texts), entry.citation)

    def open(self, entry: OpenPoint) -> Line:
        return self._line(
            entry, f"{entry.kind}: {self.cut(entry.text)}{self._details({'': entry.detail})}", entry.citation
        )

    def setback(self, entry: Setback) -> Line:
        text = f"{entry.kind}: {self.cut(entry.text)}{self._details({'': entry.detail, 'then': entry.outcome})}"
        return self._line(entry, text, entry.citation, ("resolved", entry.resolved))

    def command(self, entry: Command) -> Line:
        folder = f" in {name(entry.folder)}" if entry.folder not in {"", "."} else ""
        failure = f"exit {entry.exit}" if entry.failed is not None and entry.exit is not None else ""
        often = f"run {entry.times} times, the last" if entry.times > 1 else "run once"
        folder += f" (ran as {self.cut(entry.ran_as)}, which was moved)" if entry.ran_as else ""
        text = f"{name(entry.group)}: {self.cut(entry.command)}{folder}; {often}: {entry.last}"
        text += self._details({"last failure": " ".join(filter(None, (failure, entry.error)))} if entry.failed else {})
        return self._line(entry, text, None, ("succeeded", entry.succeeded), ("failed", entry.failed))

    def script(self, entry: Script) -> Line:
        return self._line(
            entry, f"{self.cut(entry.invocation)} runs {self.cut(entry.runs)}", None, before=name(entry.path)
        )

    def standing(self, facts: Facts) -> list[Line]:
        """The disk is left out: a model is asked about the records."""
        standing = facts.standing
        if not standing.last_activity:
            return []
        counts = ", ".join(f"{number} {name(str(state))}" for state, number in standing.counts.items())
        certain = f"; known for certain as of {utc(standing.known_at)}" if standing.known_at else ""
        lines = [Line(f"last activity {utc(standing.last_activity)}{certain}{f'; files: {counts}' if counts else ''}")]
        return lines + [self._after(event) for event in standing.aftermath]

    def _after(self, event: Aftermath) -> Line:
        command = self._details({"": event.command}) if event.command not in event.text else ""
        return self._line(None, f"after that: {self.cut(event.text)}{command}", event.citation)

    def need(self, entry: Need) -> Line:
        return Line(f"{self.cut(entry.text)} ({name(entry.path)})")

    def _details(self, texts: dict[str, str]) -> str:
        return "".join(f"; {label}{': ' if label else ''}{self.cut(text)}" for label, text in texts.items() if text)

    def _line(
        self,
        entry: Entry | None,
        text: str,
        citation: Citation | None,
        *sources: tuple[str, Citation | None],
        before: str = "",
    ) -> Line:
        """`sources` are further citations, each with a label; quotes that are not in the line yet are added."""
        where, cited = [before] if before else [], []
        for label, quoted in (("", citation), *sources):
            if quoted is None:
                continue
            quote = self.cut(quoted.quote).rstrip("…")
            if quote and quote not in text:
                text += f" “{quote}”"
            where.append(f"{label} {_where(quoted)}".strip())
            cited.append((quoted, quote))
        fact_key = key(entry) if entry is not None else ""
        begin = f"[{fact_key}] " if fact_key else ""
        end = f" ({'; '.join(where)})" if where else ""
        return Line(f"{begin}{text}{end}", fact_key, tuple(cited))


def _where(citation: Citation) -> str:
    of = f"{name(citation.path)} as left by " if citation.path else ""
    return f"{of}message {name(citation.message_id)}, {utc(citation.time)}"


@dataclass(frozen=True, slots=True)
class _Prompt:
    session: str
    before: str
    text: str
    message_id: str

    @property
    def line(self) -> str:
        return f"{self.before}{self.text}"


def prompts_block(sessions: Sequence[SessionFacts], verified: VerifiedNotes, limit: int) -> str:
    """A block of at most `limit` tokens; empty where nothing fits. The ledger gets what it shows."""
    prompts: list[_Prompt] = []
    for width in _PROMPT_WIDTHS:
        prompts = [
            _prompt(session, turn, width) for session in sessions for turn in session.turns if turn.prompt.strip()
        ]
        if _prompt_tokens(_prompts_body(prompts, [])) <= limit:
            return _prompts_block(prompts, [], verified)
    first, last = _ends(prompts, limit)
    return _prompts_block(first, last, verified, len(prompts) - len(first) - len(last)) if first or last else ""


def _ends(prompts: Sequence[_Prompt], limit: int) -> tuple[list[_Prompt], list[_Prompt]]:
    """As many from both ends as fit, by turns, the newest first."""
    sizes = [int(of_text(f"{prompt.session}\n{prompt.line}").most) + 2 for prompt in prompts]
    remaining = limit - _prompt_tokens(_gap(len(prompts)))
    start, end = 0, len(prompts)
    while start < end:
        is_new = len(prompts) - end <= start
        size = sizes[end - 1] if is_new else sizes[start]
        if size > remaining:
            break
        remaining -= size
        start, end = (start, end - 1) if is_new else (start + 1, end)
    return list(prompts[:start]), list(prompts[end:])


def _prompts_block(first: Sequence[_Prompt], last: Sequence[_Prompt], verified: VerifiedNotes, omitted: int = 0) -> str:
    if not first and not last:
        return ""
    for prompt in (*first, *last):
        verified.note(prompt.message_id, [prompt.text.rstrip("…")])
    return fenced(_PROMPTS_HEADING, _prompts_body(first, last, omitted))


def _prompt_tokens(body: str) -> int:
    return int(of_text(fenced(_PROMPTS_HEADING, body)).most)


def _prompts_body(first: Sequence[_Prompt], last: Sequence[_Prompt], omitted: int = 0) -> str:
    lines = _under_sessions(first)
    if omitted:
        lines.append(_gap(omitted))
    return "\n".join([*lines, *_under_sessions(last)])


def _gap(omitted: int) -> str:
    return f"[… {counted(omitted, 'prompt')} left out here: list_sessions and read_session show them …]"


def _under_sessions(prompts: Sequence[_Prompt]) -> list[str]:
    lines, session = list[str](), ""
    for prompt in prompts:
        if prompt.session != session:
            session = prompt.session
            lines.append(session)
        lines.append(prompt.line)
    return lines


def _prompt(facts: SessionFacts, turn: Turn, width: int) -> _Prompt:
    text = shorten(one_line(clean(turn.prompt)), width)
    marks = ["taken back"] if turn.taken_back else []
    marks += ["by a command or another agent"] if turn.is_command else []
    mark = f" | {', '.join(marks)}" if marks else ""
    session = f'session {name(facts.id)} "{name(facts.title, 160)}"'
    return _Prompt(session, f"message {name(turn.prompt_id)} | {utc(turn.time)}{mark} | ", text, turn.prompt_id)
