"""Which prompt wrote which lines of a file, as a narrow table: a row for each prompt, with all of its lines.

Guarantees: only numbers of lines stand there, no text of the file; bounded in work and rows. Values for the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daemon import markdown
from daemon.files import FileHistory
from daemon.files.line_diffs import Line, blame
from daemon.reconstitute.pages.file.prompts import Prompts
from daemon.reconstitute.recover import Recovered
from daemon.redact import redact

MOST_ROWS = 30
MOST_RANGES = 8
"""Ranges of lines named in one row."""
_MOST_TEXT = 256 * 1024 * 1024
"""Bytes of all revisions of a file together, above which it is not worked out who wrote which lines."""
_MOST_PROMPT = 60

_SEEN = {
    "read": "first seen by a read",
    "snapshot": "first seen in a snapshot",
    "summary": "first seen in a recorded diff",
    "attachment": "first seen in an attachment",
    "revert": "brought back by a revert",
}
"""What showed lines that no recorded call had written, by the name of the tool."""


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
    known = [revision for revision in file.revisions if revision.whole is not None]
    known = known[: next(n for n, revision in enumerate(known, start=1) if revision is best)]
    if len({revision.message_id for revision in known}) < 2:
        return Writers()
    if (best.size or 0) * len(known) > _MOST_TEXT:
        return Writers(is_too_long=True)
    lines = blame(FileHistory(file.path, tuple(known)))
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
    if line.tool in _SEEN:
        return line.session_id, line.message_id, line.tool
    turn = prompts.turn(line.session_id, line.message_id)
    return line.session_id, line.message_id if turn is None else turn.prompt_id, ""


def _row(lines: Sequence[Line], numbers: Sequence[int], prompts: Prompts, page: str) -> Row:
    one = max(lines, key=lambda line: line.time)
    session = prompts.session(page, one.session_id, one.message_id)
    if one.tool in _SEEN:
        prompt = markdown.Markdown(", ".join(filter(None, [_SEEN[one.tool], session])))
    else:
        prompt = prompts.asked(page, one.session_id, one.message_id, _MOST_PROMPT) or session
    return Row(_ranges(numbers), prompt or markdown.Markdown("not recorded"), one.time)


def _ranges(numbers: Sequence[int]) -> str:
    """``1-3, 7 and 2 more``, counted from 1."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] = number + 1
        else:
            found.append([number + 1, number + 1])
    named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:MOST_RANGES])
    return named if len(found) <= MOST_RANGES else f"{named} and {len(found) - MOST_RANGES} more"
