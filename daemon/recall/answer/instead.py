"""What must be said where something else was searched for than the words of the question."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from daemon.display import shorten
from daemon.model import Kind
from daemon.recall.query.parse import Query
from daemon.redact import redact

_LONGEST_SHOWN = 80


def other_names(instead: Sequence[tuple[str, str]], *, is_limited: bool, is_any: bool) -> list[str]:
    """Where no text has a name, and the results are for another one: (name, what was searched for instead)."""
    nothing = "no current text within the filters holds" if is_limited else "no current text holds"
    rest = "these are results for" if is_any else "what was searched for instead is"
    return [f"{nothing} {_shown(name)}; {rest} {_shown(other)}" for name, other in instead]


def days_alone(query: Query, kinds: Collection[str]) -> list[str]:
    """Where days are all that was asked for; `kinds` are those of the results."""
    days = ", ".join(map(str, query.days))
    if not kinds:
        return [f"none of the newest messages of {days} passes the filters"]
    listed = "prompts" if set(kinds) == {Kind.PROMPT} else "messages within the filters"
    return [f"no words to search for besides the days: these are the {listed} of {days}"]


def empty_days(query: Query, *, is_limited: bool) -> list[str]:
    """Where days that the question names have no message, so that what names them was searched as words."""
    nothing = "no message within the filters is" if is_limited else "no message is"
    return [f"{nothing} of {_shown(text)} ({days})" for text, days in query.empty_days]


def other_days(query: Query, times: Sequence[int]) -> list[str]:
    """Where results, made at these epoch ms, are not of the days that the question names beside other words."""
    bounds = [days.bounds for _, days in query.dated]
    others = sum(not any(first <= time < past for first, past in bounds) for time in times)
    if not bounds or not others:
        return []
    named = " or ".join(f"{_shown(text)} ({days})" for text, days in query.dated)
    count = f"{others} of {len(times)} results {'is' if others == 1 else 'are'} not"
    said = "none of these results is" if others == len(times) else count
    return [f"{said} of {named}; `after` and `before` limit a search to days"]


def _shown(text: str) -> str:
    return repr(shorten(redact(text), _LONGEST_SHOWN))
