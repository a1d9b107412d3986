"""A target's sessions in time: as a list for every reader, and as a Mermaid diagram where a picture helps.

Guarantees: a label in the diagram is letters, digits and a few harmless marks, so that no title is taken for Mermaid's
syntax; the list says all that the diagram says. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from daemon import markdown
from daemon.reconstitute.scope import Involved

FEWEST, MOST = 2, 25
"""Sessions between which a diagram helps: one is no timeline, and more are a line too wide to read."""
_MOST_FILES = 5
_MOST_LABEL = 60
_MARKS = " -.,_()'"
_DROPPED = '@#"`*'


@dataclass(frozen=True, slots=True)
class Entry:
    """One session in the list, with links to the first `files` it touched here, and how many `more` there are."""

    one: Involved
    files: tuple[markdown.Markdown, ...]
    more: int


def entries(
    sessions: Sequence[Involved], touched: Mapping[str, Sequence[str]], refer: Callable[[str], markdown.Markdown]
) -> list[Entry]:
    """The list; `touched` are the files of each session id, `refer` makes one a link."""
    made = []
    for one in sessions:
        files = touched.get(one.session.id, ())
        shown = tuple(refer(relative) for relative in files[:_MOST_FILES])
        made.append(Entry(one, shown, max(0, len(files) - _MOST_FILES)))
    return made


def diagram(sessions: Sequence[Involved]) -> markdown.Markdown | None:
    """A fence of Mermaid, one period a day (a minute, where all was on one day); None where it would not help."""
    known = [one for one in sessions if "T" in markdown.iso(one.session.created)]
    if not FEWEST <= len(sessions) <= MOST or len(known) < len(sessions):
        return None
    ordered = sorted(known, key=lambda one: (one.session.created, one.session.id))
    days = {markdown.day(one.session.created) for one in ordered}
    lines = ["timeline"]
    for period, group in groupby(ordered, _minute if len(days) == 1 else _day):
        lines.append("    " + " : ".join([period, *(label(one.title) for one in group)]))
    return markdown.fence("\n".join(lines), "mermaid")


def label(title: str) -> str:
    """`title` as text that has no meaning to Mermaid; never empty."""
    kept = (c for c in title if c not in _DROPPED)
    harmless = "".join(c if c.isalnum() or c in _MARKS else " " for c in kept)
    line = " ".join(harmless.split()).lstrip(_MARKS).rstrip(" -.,_(")
    return (line if len(line) <= _MOST_LABEL else line[: _MOST_LABEL - 1].rstrip() + "…") or "without title"


def _day(one: Involved) -> str:
    return markdown.day(one.session.created)


def _minute(one: Involved) -> str:
    """A colon would end it."""
    return markdown.iso(one.session.created)[:16].replace("T", " ").replace(":", ".")
