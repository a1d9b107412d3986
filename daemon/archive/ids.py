"""Ids in short: which session or message a beginning, or a beginning and an end, stands for.

The beginning of OpenCode's ids is a time. So ids that begin alike are neighbours among the keys, and few: we read those
alone. The end is random and tells neighbours apart. `daemon.display.short_id` writes this form, as `msg_0057..a4v80`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec

from daemon.archive import Archive
from daemon.display import ID_GAP
from daemon.errors import BadRequest

T = TypeVar("T", bound=msgspec.Struct)

_FIELDS = ("anchor", "messageID", "session", "sessionID")
"""Arguments of calls that take an id."""
_CONDITIONS = frozenset({"session", "sessionID"})
"""Fields of the condition `where` that do."""
_MOST = 5
"""Candidates that are named for an ambiguous id."""


def with_whole_ids(archive: Archive, query: T) -> T:
    """The arguments of a call, with the whole id in place of one in short.

    Raises:
        BadRequest: an id in short is ambiguous.
    """
    given = {name: value for name in _FIELDS if isinstance(value := getattr(query, name, None), str)}
    changes: dict[str, Any] = {name: whole_id(archive, value) for name, value in given.items()}
    if where := getattr(query, "where", None):
        changes["where"] = _condition(archive, where, is_id=False)
    return msgspec.structs.replace(query, **changes)


def whole_id(archive: Archive, text: str) -> str:
    """The id that `text` stands for; `text` itself if it is an id, or no id is like it.

    Raises:
        BadRequest: it stands for several.
    """
    name = text.strip()
    kind = {"ses_": "session", "msg_": "message"}.get(name[:4])
    if kind is None or _is_id(archive, name):
        return text
    begin, gap, end = name.partition(ID_GAP)
    ids = archive.all_session_ids(begin) if kind == "session" else archive.all_message_ids(begin)
    matches = list(islice((each for each in ids if each[len(begin) :].endswith(end)), _MOST + 1))
    if len(matches) > 1:
        how = "begin and end" if gap else "begin"
        candidates = ", ".join(matches[:_MOST]) + (" and more" if len(matches) > _MOST else "")
        raise BadRequest(f"{kind} {name!r} is ambiguous; give more of the id; these {how} so: {candidates}")
    return matches[0] if matches else text


def _is_id(archive: Archive, text: str) -> bool:
    return archive.state(text) is not None or archive.session(text) is not None or bool(archive.message_ids(text))


def _condition(archive: Archive, value: object, *, is_id: bool) -> object:
    """A condition (recall.query.conditions), or a value in it that is an id."""
    if isinstance(value, Mapping):
        return {name: _condition(archive, each, is_id=is_id or name in _CONDITIONS) for name, each in value.items()}
    if isinstance(value, list):
        return [_condition(archive, each, is_id=is_id) for each in value]
    return whole_id(archive, value) if is_id and isinstance(value, str) else value
