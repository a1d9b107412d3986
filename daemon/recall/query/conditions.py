"""Conditions on messages, in the syntax of vector stores: ``{"role": "user", "time": {"$gte": "7d"}}``.

Fields are role, kind, tool, session, project, directory and time; several in one object must all hold. A condition is
evaluated with the facts known so far: True, False, or None if they do not decide it. So it can limit a search before
anything is found (`prefilter`), and decide on each result (`Condition.holds`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from daemon.errors import BadRequest
from daemon.index import Filters, Match
from daemon.model import Kind, Message
from daemon.moments import parse_time
from daemon.records import text
from daemon.redact import redact

ROLES = ("user", "assistant")
_KNOWN: dict[str, tuple[str, ...]] = {"role": ROLES, "kind": tuple(map(str, Kind))}
_ALIASES = {"sessionID": "session", "projectID": "project", "toolName": "tool", "created": "time"}
FIELDS = ("role", "kind", "tool", "session", "project", "directory", "time")
_Span: TypeAlias = tuple[int, int]
"""The first and the last epoch ms of a day, week or month; twice the same for a moment."""
_OF_SETS = {"$in": True, "$nin": False}
_ORDER: dict[str, Callable[[int, _Span], bool]] = {
    "$gt": lambda moment, span: moment > span[1],
    "$gte": lambda moment, span: moment >= span[0],
    "$lt": lambda moment, span: moment < span[0],
    "$lte": lambda moment, span: moment <= span[1],
}
_DEEPEST = 20

Facts: TypeAlias = Mapping[str, Any]
"""Known values of a message, by field."""
Holds: TypeAlias = Callable[[Facts], bool | None]


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition; `values` are those that it names, by field."""

    holds: Holds
    values: Mapping[str, frozenset[Any]]

    def possible(self, field: str, values: Collection[Any]) -> list[Any]:
        """Those of `values` that a message may have in this field."""
        return [value for value in values if self.holds({field: value}) is not False]

    def tools(self) -> list[str] | None:
        """The tools that a part must be of; None if other tools pass, or parts without a tool."""
        named = self.values.get("tool", frozenset())
        return None if not named or self.holds({"tool": ""}) is not False else self.possible("tool", sorted(named))

    def times(self) -> tuple[int | None, int | None] | None:
        """(first, first after the last) epoch ms that may pass, None for no bound; None if no time passes."""
        moments = self.values.get("time", frozenset())
        if not moments:
            return None, None
        around = sorted({moment + step for moment in moments for step in (-1, 0, 1)})
        passing = self.possible("time", around)
        if not passing:
            return None
        return (None if passing[0] == around[0] else passing[0]), (
            None if passing[-1] == around[-1] else passing[-1] + 1
        )


def parse(value: Mapping[str, Any], now: int) -> Condition | None:
    """The condition; None for an empty one. Relative times count from `now` (epoch ms).

    Raises:
        BadRequest: an unknown field, operator or value, or an invalid structure.
    """
    if not value:
        return None
    values: dict[str, set[Any]] = {}
    holds = _condition(value, now, values, 0)
    return Condition(holds, {field: frozenset(field_values) for field, field_values in values.items()})


def _condition(value: object, now: int, values: dict[str, set[Any]], depth: int) -> Holds:
    if not isinstance(value, Mapping) or not value:
        raise _bad(value, 'is no condition; write an object such as {"role": "user"}')
    if depth > _DEEPEST:
        raise BadRequest(f"`where`: conditions are nested deeper than {_DEEPEST}; write a flatter one")
    parts = []
    for key, inner in value.items():
        if key in {"$and", "$or"}:
            if not isinstance(inner, list) or not inner:
                raise _bad(key, "takes a list of conditions, at least one")
            several = [_condition(each, now, values, depth + 1) for each in inner]
            parts.append(_all(several) if key == "$and" else _any(several))
        else:
            parts.append(_about(key, inner, now, values))
    return _all(parts)


def _all(parts: list[Holds]) -> Holds:
    def holds(facts: Facts) -> bool | None:
        results = [part(facts) for part in parts]
        return False if False in results else None if None in results else True

    return holds


def _any(parts: list[Holds]) -> Holds:
    def holds(facts: Facts) -> bool | None:
        results = [part(facts) for part in parts]
        return True if True in results else None if None in results else False

    return holds


def _about(key: str, condition: object, now: int, values: dict[str, set[Any]]) -> Holds:
    field = _ALIASES.get(key, key)
    if field not in FIELDS:
        raise _bad(key, f"is no field; use {', '.join(FIELDS)}, $and or $or")
    operators = condition if isinstance(condition, Mapping) else {"$eq": condition}
    if not operators:
        raise _bad(key, 'has no condition; write a value, or an operator such as {"$ne": "user"}')
    return _all([_compared(field, operator, value, now, values) for operator, value in operators.items()])


def _compared(field: str, operator: str, value: object, now: int, values: dict[str, set[Any]]) -> Holds:
    known = values.setdefault(field, set())

    def read(value: object) -> Any:
        parsed = _span(value, now) if field == "time" else _value(field, value)
        known.update(parsed if field == "time" else (parsed,))
        return parsed

    def is_among(fact: Any, among: Collection[Any]) -> bool:
        return any(first <= fact <= last for first, last in among) if field == "time" else fact in among

    if operator in _OF_SETS:
        if not isinstance(value, list) or not value:
            raise _bad(operator, f"of {field} takes a list of values, at least one")
        among, is_in = frozenset(map(read, value)), _OF_SETS[operator]
        return lambda facts: None if field not in facts else is_among(facts[field], among) is is_in
    if operator in _ORDER:
        if field != "time":
            raise _bad(operator, f"compares times; of {field} use $eq, $ne, $in or $nin")
        bound, is_so = read(value), _ORDER[operator]
        return lambda facts: None if field not in facts else is_so(facts[field], bound)
    if operator not in {"$eq", "$ne"}:
        raise _bad(operator, f"is no operator; use $eq, $ne, $in, $nin, {', '.join(_ORDER)}")
    operand, is_equal = (read(value),), operator == "$eq"
    return lambda facts: None if field not in facts else is_among(facts[field], operand) is is_equal


def _span(value: object, now: int) -> _Span:
    if not isinstance(value, bool) and isinstance(value, int | float | str):
        first, last = parse_time(value, now, "where"), parse_time(value, now, "where", is_end=True)
        if first is not None and last is not None:
            return first, last
    raise _bad(value, "is no time; write epoch milliseconds or a date like 2026-01-31")


def _value(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _bad(value, f"is no {field}; write a text")
    known = _KNOWN.get(field)
    if known and value.strip() not in known:
        raise _bad(value, f"is no {field}; use {', '.join(known)}")
    stripped = value.strip()
    return (stripped.rstrip("/") or "/") if field == "directory" else stripped


def _bad(value: object, why: str) -> BadRequest:
    return BadRequest(f"`where`: {redact(str(value))[:80]!r} {why}")


def prefilter(filters: Filters, condition: Condition) -> Filters:
    """Filters that pass everything that may fulfil the condition, and as little else as possible.

    Raises:
        BadRequest: nothing can fulfil it together with the other filters.
    """
    roles = condition.possible("role", (filters.role,) if filters.role else ROLES)
    all_kinds = filters.kinds or _KNOWN["kind"]
    kinds, tools, times = condition.possible("kind", all_kinds), condition.tools(), condition.times()
    if filters.tools:
        tools = condition.possible("tool", filters.tools)
    after = max((at for at in (filters.after, times[0]) if at is not None), default=None) if times else None
    before = min((at for at in (filters.before, times[1]) if at is not None), default=None) if times else None
    is_no_time = times is None or (after is not None and before is not None and after >= before)
    for name, is_empty in (("role", not roles), ("kind", not kinds), ("tool", tools == []), ("time", is_no_time)):
        if is_empty:
            raise BadRequest(
                f"`where` contradicts itself or another filter: no message has such a {name}; leave one out"
            )
    return replace(
        filters,
        role=roles[0] if len(roles) == 1 else "",
        kinds=filters.kinds if len(kinds) == len(all_kinds) else tuple(kinds),
        tools=filters.tools if tools is None else tuple(tools),
        after=after,
        before=before,
    )


def kinds_of(message: Message, match: Match, title: str) -> list[tuple[str, str]]:
    """(kind, tool) of each text of a message that a match without a part may belong to.

    A chunk may hold several texts, also the session's `title` if its text has it; `title` is empty if titles are not
    shown. A match by neighbours counts as the prose of its message.
    """
    spoken = Kind.PROMPT if message.role == "user" else Kind.ANSWER
    if not match.record:
        return [(str(spoken), "")]
    is_titled = bool(title.strip()) and redact(title).strip() in match.text
    pairs = [(str(Kind.TITLE), "")] if is_titled else []
    for part in message.parts:
        tool = text(part.data.get("tool"))
        kinds = {"text": (spoken,), "reasoning": (Kind.REASONING,), "tool": (Kind.TOOL_INPUT, Kind.TOOL_OUTPUT)}
        pairs += [(str(kind), tool) for kind in kinds.get(part.type, (Kind.TASK,))]
    return pairs
