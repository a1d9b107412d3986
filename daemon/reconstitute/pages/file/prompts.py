"""Which prompt a revision of a file goes back to, with a link to where it was asked.

Guarantees: a prompt is only named for what happened in its turn; titles and prompts are redacted, cut and inert. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daemon import markdown
from daemon.files import FileHistory, Revision
from daemon.files.line_diffs import Line, blame
from daemon.reconstitute.facts.session_values import Call, SessionFacts, Turn
from daemon.reconstitute.pages.layout import Transcripts
from daemon.reconstitute.recover import Recovered
from daemon.redact import redact

MOST_PROMPT = 100
"""Characters of a prompt where it stands beside what it led to."""
_MOST_TITLE = 60
MOST_ROWS = 30
MOST_RANGES = 8
"""Ranges of lines named in one row."""
_MOST_TEXT = 256 * 1024 * 1024
"""Bytes of all revisions of a file together, above which it is not worked out who wrote which lines."""
_MOST_PROMPT = 60
_OBSERVATION_TEXTS = {
    "read": "first seen by a read",
    "snapshot": "first seen in a snapshot",
    "summary": "first seen in a recorded diff",
    "attachment": "first seen in an attachment",
    "revert": "brought back by a revert",
}
"""What showed lines that no recorded call had written, by the name of the tool."""


class Prompts:
    """The turns and calls of a target's sessions by what a revision has in hand; `titles` are by session id."""

    def __init__(self, sessions: Sequence[SessionFacts], titles: Mapping[str, str], transcripts: Transcripts) -> None:
        self._titles = titles
        self._transcripts = transcripts
        self._turns = {
            (session.id, message): turn
            for session in sessions
            for turn in session.turns
            for message in turn.message_ids
        }
        self._calls = {call.part_id: call for session in sessions for turn in session.turns for call in turn.calls}

    def turn(self, session_id: str, message_id: str) -> Turn | None:
        """The turn that a message belongs to."""
        return self._turns.get((session_id, message_id))

    def call(self, revision: Revision) -> Call | None:
        """The call that made a revision."""
        return self._calls.get(revision.part_id) if revision.part_id else None

    def link(self, page: str, session_id: str, message_id: str, limit: int = MOST_PROMPT) -> markdown.Markdown:
        """The prompt in quotation marks, linked; empty where none is known."""
        turn = self.turn(session_id, message_id)
        if turn is None or not turn.prompt.strip():
            return markdown.Markdown("")
        label = f"“{markdown.cut(markdown.bare(turn.prompt).strip(), limit)}”"
        return self._linked(label, page, session_id, turn.prompt_id)

    def session(self, page: str, session_id: str, message_id: str = "") -> markdown.Markdown:
        """The session's title, linked to the message; empty where no session is known."""
        if not session_id:
            return markdown.Markdown("")
        title = markdown.bare(self._titles.get(session_id, "") or session_id).strip() or session_id
        return self._linked(markdown.cut(title, _MOST_TITLE), page, session_id, message_id)

    def basis(self, page: str, revision: Revision) -> tuple[object, ...]:
        """All that `page` may say of where a revision comes from, without rendering it."""
        turn, call = self.turn(revision.session_id, revision.message_id), self.call(revision)
        prompt = () if turn is None else (turn.prompt, self._href(page, revision.session_id, turn.prompt_id))
        ended = () if call is None else (call.status, call.started, call.ended)
        session_id = revision.session_id
        return (prompt, ended, self._titles.get(session_id, ""), self._href(page, session_id, revision.message_id))

    def _href(self, page: str, session_id: str, message_id: str) -> str:
        return self._transcripts.href(page, session_id, message_id)

    def _linked(self, label: str, page: str, session_id: str, message_id: str) -> markdown.Markdown:
        href = self._href(page, session_id, message_id)
        return markdown.link(label, href) if href else markdown.inline(label)


@dataclass(frozen=True, slots=True)
class Row:
    """All lines that one prompt wrote, such as ``1-3, 7``; `time` (epoch ms) is when it last wrote some of them."""

    lines: str
    prompt: markdown.Markdown
    time: int


@dataclass(frozen=True, slots=True)
class Writers:
    """The first of the rows, how many `more` there are; `is_too_long` to work it out.

    `is_shifted`: the text on the page has other lines than the file, since a secret of several lines stands in it.
    """

    rows: tuple[Row, ...] = ()
    more: int = 0
    is_too_long: bool = False
    is_shifted: bool = False


def writers(file: Recovered, prompts: Prompts, page: str) -> Writers:
    """Who last wrote which lines of the content that the page shows first; empty where one prompt wrote all of them."""
    best = file.best
    if best is None or best.whole is None:
        return Writers()
    complete = [revision for revision in file.revisions if revision.whole is not None]
    complete = complete[: next(n for n, revision in enumerate(complete, start=1) if revision is best)]
    if len({revision.message_id for revision in complete}) < 2:
        return Writers()
    if (best.size or 0) * len(complete) > _MOST_TEXT:
        return Writers(is_too_long=True)
    lines = blame(FileHistory(file.path, tuple(complete)))
    owned: dict[tuple[str, str, str], list[int]] = {}
    for number, line in enumerate(lines):
        owned.setdefault(_owner(line, prompts), []).append(number)
    if len(owned) < 2:
        return Writers()
    rows = [_row([lines[n] for n in numbers], numbers, prompts, page) for numbers in owned.values()]
    text = (best.content or b"").decode("utf-8", "replace")
    is_shifted = text.count("\n") != redact(text).count("\n")
    return Writers(tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS), is_shifted=is_shifted)


def _owner(line: Line, prompts: Prompts) -> tuple[str, str, str]:
    """What lines are joined by: the prompt, where a call wrote them; else what showed them first."""
    if line.tool in _OBSERVATION_TEXTS:
        return line.session_id, line.message_id, line.tool
    turn = prompts.turn(line.session_id, line.message_id)
    return line.session_id, line.message_id if turn is None else turn.prompt_id, ""


def _row(lines: Sequence[Line], numbers: Sequence[int], prompts: Prompts, page: str) -> Row:
    newest = max(lines, key=lambda line: line.time)
    session = prompts.session(page, newest.session_id, newest.message_id)
    if newest.tool in _OBSERVATION_TEXTS:
        prompt = markdown.Markdown(", ".join(filter(None, [_OBSERVATION_TEXTS[newest.tool], session])))
    else:
        prompt = prompts.link(page, newest.session_id, newest.message_id, _MOST_PROMPT) or session
    return Row(_ranges(numbers), prompt or markdown.Markdown("not recorded"), newest.time)


def _ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7 and 2 more``, counted from 1."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] = number + 1
        else:
            ranges.append([number + 1, number + 1])
    ranges_ = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MOST_RANGES])
    return ranges_ if len(ranges) <= MOST_RANGES else f"{ranges_} and {len(ranges) - MOST_RANGES} more"
