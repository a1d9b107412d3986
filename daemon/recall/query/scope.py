"""Which sessions, times and kinds a query is limited to, decided before anything is searched.

Limits on sessions (scope, project, directory, title, archived) are applied here, to the records as they are now, and
reach the indexes as a set of session ids. The other limits reach them unchanged. Nothing is filtered after a search, so
new messages cannot hide old ones. Limits that make no sense are a BadRequest; harmless ones are a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import get_args

from daemon.archive import Archive
from daemon.archive.paths import names
from daemon.errors import BadRequest
from daemon.index import Filters
from daemon.model import Kind
from daemon.moments import parse_span, parse_time
from daemon.recall.catalog import Row
from daemon.recall.query import Recall, Type, conditions
from daemon.recall.query.conditions import Condition
from daemon.recall.query.directories import Fits, Place, absolute, fits_current, is_within, normal, place_of, several
from daemon.redact import redact

TEXT = (Kind.PROMPT, Kind.ANSWER, Kind.TITLE)
TOOL = (Kind.TOOL_INPUT, Kind.TOOL_OUTPUT, Kind.TASK)
TYPES: dict[str, tuple[str, ...]] = {"all": (), "text": TEXT, "tool": TOOL, "reasoning": (Kind.REASONING,)}

_LOWER = ("after", "last", "from", "since")
_UPPER = ("before", "to", "until")


@dataclass(frozen=True, slots=True)
class SectionFilter:
    """The requested kinds and tools; empty means any."""

    kinds: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    def has(self, kind: str, tool: str) -> bool:
        """Whether a text of this kind and tool passes."""
        return (not self.kinds or kind in self.kinds) and (not self.tools or tool in self.tools)


ANYTHING = SectionFilter()


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to search: `rounds` are (relevance, filters), searched one after the other until there are enough results.

    `limited_by` names the filters in force, `emptied_by` the one that no session passes. `eligible` is the number of
    sessions that pass. directoryRelevance is measured from `place`. `section_filter` has the kinds and tools to show.
    `condition` is what each result must also fulfil.
    """

    rounds: tuple[tuple[str, Filters], ...]
    eligible: int
    limited_by: tuple[str, ...] = ()
    emptied_by: str = ""
    warnings: tuple[str, ...] = ()
    place: Place | None = None
    section_filter: SectionFilter = ANYTHING
    condition: Condition | None = None


def resolve(request: Recall, rows: Mapping[str, Row], cwd: str, now: int) -> Scope:
    """The scope of a question asked from the directory `cwd` ("" where that is unknown) at `now` (epoch ms).

    Raises:
        BadRequest: a session that is not in the archive, a time that cannot be read, limits that contradict each
            other, a scope that needs `cwd`.
    """
    warnings: list[str] = []
    after, before = bounds(request, now, warnings)
    kinds = _kinds(request)
    warnings += _unsaid(request.role, kinds)
    top = absolute(request.directory, cwd, "directory")
    base = top or (normal(cwd) if cwd.startswith("/") else "")
    place = place_of(rows, base, climbs=not top) if base else None
    if place is not None and top and (request.within == "project" or request.fallback):
        warnings += several(place)
    condition = conditions.parse(request.where, now)
    steps = [*_session_steps(request, rows, cwd, warnings), *_directory_steps(request, place), *_where_steps(condition)]
    fallback = request.fallback and bool(request.directory.strip())
    main = [step for step in steps if not (fallback and step[0] == "directory")]
    fit, emptied_by = _matching_sessions(rows, main, request.sessions)
    path = absolute(request.path, cwd, "path")
    filters = Filters(
        role="" if request.role == "all" else request.role,
        kinds=kinds,
        tools=(request.toolName.strip(),) if request.toolName.strip() else (),
        after=after,
        before=before,
        path=path,
        deleted={"only": True, "exclude": False}.get(request.deleted),
    )
    filters = conditions.prefilter(filters, condition) if condition else filters
    rounds: tuple[tuple[str, Filters], ...]
    if fallback and place is not None:
        rounds = _buckets(fit, filters, place, is_all=len(fit) == len(rows))
    else:
        rounds = (("", _within_sessions(filters, fit, len(fit) == len(rows))),)
    limits = {
        "time": after is not None or before is not None,
        "type": request.type != "all",
        "kinds": bool(request.kinds),
        "role": request.role != "all",
        "toolName": bool(filters.tools),
        "path": bool(path),
        "deleted": request.deleted != "include",
        "where": condition is not None,
        "sessionsLimit": bool(request.sessions),
    }
    limited = [name for name, *_ in main] + [name for name, is_on in limits.items() if is_on]
    section_filter = SectionFilter(filters.kinds, filters.tools)
    return Scope(
        rounds, len(fit), tuple(dict.fromkeys(limited)), emptied_by, tuple(warnings), place, section_filter, condition
    )


def by_all_names(archive: Archive, scope: Scope) -> Scope:
    """The same scope, but a filter by path also matches the former names of the path."""
    path = next((filters.path for _, filters in scope.rounds), "")
    former = tuple(dict.fromkeys(name.old for name in names(archive.files, path)[1:])) if path else ()
    if not former:
        return scope
    return replace(
        scope, rounds=tuple((relevance, replace(filters, former=former)) for relevance, filters in scope.rounds)
    )


# -- times -----------------------------------------------------------------------------------------------------------


def bounds(request: Recall, now: int, warnings: list[str]) -> tuple[int | None, int | None]:
    """(first ms, first ms that is too late); the tightest of several bounds on one side.

    Raises:
        BadRequest: a time that cannot be read, or nothing can be between the two.
    """
    lower = _tightest(request, _LOWER, now, warnings, max)
    upper = _tightest(request, _UPPER, now, warnings, min)
    if lower and upper and lower[0] >= upper[0]:
        raise BadRequest(
            f"`{lower[1]}` ({_day(lower[0])}) is not before `{upper[1]}` ({_day(upper[0])}), so no moment is between "
            'them; write for example `from="30d ago"` and `to=now`'
        )
    return (lower[0] if lower else None), (upper[0] if upper else None)


def _tightest(
    request: Recall,
    names: tuple[str, ...],
    now: int,
    warnings: list[str],
    tightest: Callable[[list[tuple[int, str]]], tuple[int, str]],
) -> tuple[int, str] | None:
    limits = []
    for name in names:
        value = request.from_ if name == "from" else getattr(request, name)
        if value is None or _is_nothing(name, value, warnings):
            continue
        try:
            moment = _moment(name, value, now)
        except BadRequest as error:  # as with OpenCode's recall plugin, a malformed time is no reason to answer nothing
            warnings.append(f"{error}; it was ignored, so the answer is not limited by it")
        else:
            limits += [(moment, name)] if moment is not None else []
    return tightest(limits) if limits else None


def _moment(name: str, value: float | str, now: int) -> int | None:
    if name == "last":
        return parse_time(str(value), now, name) if parse_span(str(value)) is not None else None
    is_end = name in {"to", "until"}
    moment = parse_time(value, now, name, is_end=is_end)
    return moment + is_end if moment is not None else None


def _is_nothing(name: str, value: float | str, warnings: list[str]) -> bool:
    """Whether the value means "no limit": agents fill in 0 or -1 for that."""
    try:
        is_nothing = float(value) <= 0
    except ValueError:
        return False
    if is_nothing:
        warnings.append(f"`{name}` {value} is ignored: a time is a positive number of milliseconds, or a text")
    return is_nothing


def _day(ms: int) -> str:
    return f"{datetime.fromtimestamp(min(max(ms, 0), 253_402_300_799_000) / 1000, UTC):%Y-%m-%d %H:%M}Z"


# -- kinds -----------------------------------------------------------------------------------------------------------


def _kinds(request: Recall) -> tuple[str, ...]:
    if request.toolName.strip() and request.type in {"text", "reasoning"}:
        raise BadRequest(
            f"`toolName` {request.toolName!r} with `type={request.type}` finds nothing: tools have no such text; "
            "leave `type` out, or use `type=tool`"
        )
    known = [str(kind) for kind in Kind]
    unknown = [kind for kind in request.kinds if kind not in known]
    if unknown:
        raise BadRequest(f"`kinds` {unknown[0]!r} is unknown: use any of {', '.join(known)}")
    kinds = tuple(request.kinds)
    if request.toolName.strip() and kinds:
        kinds = tuple(kind for kind in kinds if kind in TOOL)
        if not kinds:
            raise BadRequest(
                f"`toolName` {request.toolName!r} with `kinds` {', '.join(request.kinds)} finds nothing: tools have no "
                f"such text; leave `kinds` out, or use any of {', '.join(TOOL)}"
            )
    of_type = TYPES[request.type] if request.type in get_args(Type) else ()
    if not kinds or not of_type:
        return kinds or tuple(map(str, of_type))
    both = tuple(kind for kind in kinds if kind in of_type)
    if not both:
        raise BadRequest(
            f"`kinds` {', '.join(request.kinds)} and `type={request.type}` have nothing in common; "
            "leave one of them out"
        )
    return both


_OF_USERS = frozenset({Kind.PROMPT, Kind.TITLE, Kind.TASK})


def _unsaid(role: str, kinds: tuple[str, ...]) -> list[str]:
    """A warning where messages of this role have no text of these kinds."""
    is_unsaid = {"user": _OF_USERS.isdisjoint(kinds), "assistant": set(kinds) == {Kind.PROMPT}}.get(role, False)
    named = ", ".join(kinds)
    return [f"`role={role}`: such messages hardly have any {named}; leave `role` out"] if kinds and is_unsaid else []


# -- sessions --------------------------------------------------------------------------------------------------------


def _session_steps(request: Recall, rows: Mapping[str, Row], cwd: str, warnings: list[str]) -> list[tuple[str, Fits]]:
    steps: list[tuple[str, Fits]] = []
    session_id, project, title = (
        request.sessionID.strip(),
        request.projectID.strip(),
        " ".join(request.title.split()).casefold(),
    )
    if session_id:
        if session_id not in rows:
            raise BadRequest(
                f"session {redact(session_id)!r} is not in the archive; `recall_sessions()` lists those that are, and "
                "without `sessionID` all are searched"
            )
        steps.append(("sessionID", lambda row: row.id == session_id))
    elif request.scope != "global":
        steps.append(("scope", fits_current(request.scope, rows, cwd, warnings)))
    if project:
        steps.append(("projectID", lambda row: row.project_id == project))
    if title:
        steps.append(("title", lambda row: title in " ".join(row.title.split()).casefold()))
    if request.archived != "include":
        steps.append(("archived", lambda row: (row.archived is not None) == (request.archived == "only")))
    return steps


def _where_steps(condition: Condition | None) -> list[tuple[str, Fits]]:
    if condition is None:
        return []
    return [("where", lambda row: condition.holds(facts_of(row)) is not False)]


def facts_of(row: Row) -> dict[str, object]:
    """The fields of a session that a condition may test."""
    return {"session": row.id, "project": row.project_id, "directory": normal(row.directory)}


def _directory_steps(request: Recall, place: Place | None) -> list[tuple[str, Fits]]:
    if not request.directory.strip() or place is None:
        return []
    top = place.directory
    if request.within == "project":
        return [("directory", place.is_project)]
    if request.within == "exact":
        return [("directory", lambda row: normal(row.directory) == top)]
    return [("directory", lambda row: is_within(row.directory, top))]


def _matching_sessions(rows: Mapping[str, Row], steps: list[tuple[str, Fits]], newest: int) -> tuple[list[Row], str]:
    """The sessions that pass every step, and the name of the first step that none passes."""
    fit = list(rows.values())
    for name, passes in steps:
        fit = [row for row in fit if passes(row)]
        if not fit:
            return [], name
    if newest:
        fit = sorted(fit, key=lambda row: (-row.updated, row.id))[:newest]
    return fit, ""


def _within_sessions(filters: Filters, fit: list[Row], is_all: bool) -> Filters:
    if is_all:
        return filters
    if len(fit) == 1:
        return replace(filters, session_id=fit[0].id)  # the fastest filter of the indexes
    return replace(filters, sessions=frozenset(row.id for row in fit))


def _buckets(fit: list[Row], filters: Filters, place: Place, *, is_all: bool) -> tuple[tuple[str, Filters], ...]:
    """The sessions in buckets, nearest first."""
    sorted_: dict[str, list[Row]] = {"exact": [], "project": [], "global": []}
    for row in fit:
        relevance = place.relevance(row)
        sorted_["global" if relevance == "unknown" else relevance].append(row)
    return tuple(
        (name, _within_sessions(filters, bucket, is_all and len(bucket) == len(fit)))
        for name, bucket in sorted_.items()
        if bucket
    )
