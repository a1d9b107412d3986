"""Which of two versions of a record is kept: the fuller one, and nothing that was ever read is lost.

OpenCode rewrites a part for every token, later blanks or truncates outputs, and some tools strip before and after
(docs/reliability.md, S10). Pure functions over parsed records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from daemon.model import Json

_BOOKKEEPING = frozenset({"id", "sessionID", "messageID", "parentID", "callID", "type", "status", "role", "raw"})
_SETTLED = {"pending": 0, "streaming": 0, "running": 1, "completed": 2, "error": 2}


def leaves(value: Any) -> Iterator[str]:
    """Every text in a record that says something (not ids, types and states)."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _BOOKKEEPING:
                yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)


def contains(new: Json, old: Json) -> bool:
    """Whether everything that `old` says stands in `new` too; trailing white space does not count.

    OpenCode trims a text when its stream ends, so the last version of a text is shorter than the one before.
    """
    whole = "\0".join(leaves(new))
    return all(leaf.rstrip() in whole for leaf in leaves(old))


def settledness(data: Json) -> int:
    """0 begun, 1 in progress, 2 final."""
    state = data.get("state")
    if isinstance(state, dict):
        return _SETTLED.get(str(state.get("status")), 1)
    time = data.get("time")
    if isinstance(time, dict) and ("start" in time or "created" in time):
        return 2 if time.get("end") or time.get("completed") else 1
    return 2


def choose(old: Json, new: Json) -> tuple[bool, bool]:
    """(whether `new` replaces `old` as the current version, whether the other one must be kept aside).

    >>> choose({"text": "full answer"}, {"text": ""})
    (False, False)
    """
    if contains(new, old) and settledness(new) >= settledness(old):
        return True, False
    if contains(old, new) and settledness(new) <= settledness(old):
        return False, False
    if settledness(new) != settledness(old):
        return settledness(new) > settledness(old), True
    return _size(new) >= _size(old), True


def choose_message(old: Json, new: Json) -> tuple[bool, bool]:
    """As `choose`, for the records of messages: the diffs of a turn are made anew after each of its steps.

    What an earlier step's diffs say is then no longer so, however much it was; it is kept aside.
    """
    summary = new.get("summary")
    if not isinstance(summary, dict) or not isinstance(summary.get("diffs"), list):
        return choose(old, new)
    was = old.get("summary")
    rest = [{name: value for name, value in data.items() if name != "summary"} for data in (old, new)]
    replaces, aside = choose(*rest)
    return replaces, aside or (isinstance(was, dict) and not contains(summary, was))


def _size(data: Json) -> int:
    return sum(len(leaf) for leaf in leaves(data))
