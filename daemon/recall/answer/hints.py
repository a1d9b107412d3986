"""What to try where there is little or nothing: suggestions of a next call, and near misses.

Pure functions: what they need of the indexes is handed in. A suggestion is ``{reason, action, example}``, its example
the arguments of a next call. No hint claims more than was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daemon import records
from daemon.display import counted, one_line
from daemon.model import Json
from daemon.recall.catalog import Row
from daemon.recall.query import Recall
from daemon.recall.query.parse import Query, Tier, split
from daemon.recall.query.scope import Scope
from daemon.recall.ranking.grouping import Result
from daemon.redact import redact, redact_value

MOST_WORDS = 4
"""Absent words of a query for which near spellings are looked up."""


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "time": ("before", "after", "last", "from", "to", "since", "until"),
    "directory": ("directory", "within", "fallback"),
    "sessionsLimit": ("sessions",),
}
_OF_SESSIONS = frozenset({"sessionID", "scope", "projectID", "title", "archived", "directory", "sessionsLimit"})


def spelt(missing: Sequence[str], similar: Callable[[str], Sequence[tuple[str, int]]], request: Recall) -> list[Json]:
    """A suggestion for each absent word that something is spelt like; `similar` gives (word, number of parts)."""
    made = []
    for word in missing[:MOST_WORDS]:
        results = [(other, parts) for other, parts in similar(word) if other.lower() != word.lower()]
        if not results:
            continue
        other = redact(results[0][0])
        others = ", ".join(f"{redact(name)!r} ({counted(parts, 'part')})" for name, parts in results)
        made.append(
            {
                "reason": f"no current text that was searched has {redact(word)!r} whole; spelt nearly so: {others}",
                "action": f"ask for {other!r} if that was meant"
                + ("" if request.match == "fuzzy" else ", or use `match=fuzzy`"),
                "example": _without(request) | {"query": _replaced(redact(request.query), redact(word), other)},
            }
        )
    return made


def beyond(suggestion: Json, request: Recall, scope: Scope) -> Json:
    """A suggestion of `spelt` that finds something only without the filters."""
    action = f"{suggestion['action']}; only what the filters ({limits(scope)}) leave out has it"
    example = _without(request, *scope.limited_by) | {"query": suggestion["example"]["query"]}
    return suggestion | {"action": action, "example": example}


def _replaced(text: str, word: str, other: str) -> str:
    """`text` with `other` for `word`, in whatever case it stands there; `other` alone where it does not."""
    made, times = re.subn(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: other, text, flags=re.IGNORECASE)
    return made if times else other


# -- filters ---------------------------------------------------------------------------------------------------------


def limits(scope: Scope) -> str:
    """The filters in force, as arguments."""
    return ", ".join(map(_limit, scope.limited_by))


def _limit(name: str) -> str:
    return {"time": "time", "sessionsLimit": "`sessions`"}.get(name, f"`{name}`")


def emptied(request: Recall, scope: Scope, rows: Mapping[str, Row]) -> tuple[list[str], list[Json]]:
    """(warnings, suggestions) where a filter leaves no session at all to be searched."""
    name = scope.emptied_by
    if not name:
        return [], []
    values = {
        "directory": request.directory,
        "title": request.title,
        "projectID": request.projectID,
        "scope": request.scope,
        "archived": request.archived,
        "where": records.dumps(request.where).decode(),
    }
    value = redact(str(values.get(name, "")))
    reason = (
        f"{_limit(name)} {value!r}: none of the {counted(len(rows), 'recorded session')} fits it and the other filters"
    )
    action = f"leave {_limit(name)} out, or look at what there is with `recall_sessions()`"
    return [reason], [{"reason": reason, "action": action, "example": _without(request, name)}]


def limiting(request: Recall, scope: Scope, known: int) -> list[Json]:
    """Suggestions where filters are on and nothing was found."""
    if scope.emptied_by or not scope.limited_by:
        return []
    names = limits(scope)
    if scope.eligible < known:
        reason = f"only {scope.eligible} of {counted(known, 'session')} searched, limited by {names}"
    elif set(scope.limited_by) <= _OF_SESSIONS:
        return []  # they left nothing out
    else:
        reason = f"of each session only what fits was searched, limited by {names}"
    return [
        {
            "reason": reason,
            "action": "search without these filters",
            "example": _without(request, *scope.limited_by),
        }
    ]


def other_tool(request: Recall, tool: str) -> list[Json]:
    """Where nothing was found of a tool, but something of `tool`, which is written in another case."""
    wanted, there = redact(request.toolName.strip()), redact(tool)
    reason = f"`toolName` is a tool's exact name: nothing fits {wanted!r}, something fits {there!r}"
    return [{"reason": reason, "action": f"ask for {there!r}", "example": _without(request) | {"toolName": there}}]


def other_modes(request: Recall, query: Query) -> tuple[str, ...]:
    """Modes that may find something where nothing was found, the likeliest first."""
    if request.match in {"literal", "regex"}:
        return ("hybrid",)
    is_bare = query.is_exact and not query.words
    return tuple(mode for mode in ("literal", "fuzzy", "semantic") if mode != request.match) if is_bare else ()


def other_mode(request: Recall, mode: str) -> list[Json]:
    """Another way to ask, where nothing was found."""
    reason = "a bare name is only answered by that name"
    if request.match in {"literal", "regex"}:
        reason = f"nothing {request.match} was found"
    return [{"reason": reason, "action": f"use `match={mode}` {_FINDS[mode]}", "example": _in_mode(request, mode)}]


_FINDS = {
    "hybrid": "for words in any order, stemmed, and meaning",
    "literal": "for a part of a longer name",
    "fuzzy": "for near spellings, and the pieces of a name",
    "semantic": "for what is only similar",
}


def _in_mode(request: Recall, mode: str) -> Json:
    return _without(request, "match") | ({} if mode == Recall(query="").match else {"match": mode})


def _without(request: Recall, *names: str) -> Json:
    """The arguments as they were asked, but for those of the named filters; such as are the default go unsaid."""
    gone = {argument for name in names for argument in _ARGUMENTS.get(name, (name,))}
    defaults = Recall(query="")
    example: Json = {}
    for name, argument in zip(Recall.__struct_fields__, Recall.__struct_encode_fields__, strict=True):
        value: Any = getattr(request, name)
        if argument not in gone and value != getattr(defaults, name):
            example[argument] = _redacted(value)
    return example


def _redacted(value: object) -> Any:
    return redact(value) if isinstance(value, str) else redact_value(value)


# -- near misses -----------------------------------------------------------------------------------------------------


def held_by(result: Result, query: Query, mode: str) -> str:
    """In words, what a near miss that was found in `mode` holds of the query: no more than was seen in it."""
    if mode in {"literal", "regex"}:
        return "holds it"
    if result.spelling_pairs:
        is_inside = any(wanted.lower() in there.lower() for wanted, there in result.spelling_pairs)
        return "holds it inside a longer name" if is_inside else "holds words that are spelt nearly so"
    if not result.is_own:
        return "follows messages that hold some of the words"
    if query.is_exact and result.grade == Tier.INSIDE:
        return "holds it inside a longer name"
    is_whole = mode == "smart" and result.grade == Tier.WHOLE  # else only the terms tell whether it holds the names
    held = split(result.terms) | (split(query.named) if is_whole else set())
    return "holds all of the words" if held >= split((*query.named, *query.words)) else "holds some of the words"


def near_misses(
    results: Sequence[Result], rows: Mapping[str, Row], reason: Callable[[Result], str], most: int = 3
) -> list[Json]:
    """The sessions of finds that are no answer, best first, each with why it is none, as `reason` says of a find."""
    made: dict[str, Json] = {}
    for result in results:
        if len(made) == most:
            break
        if result.session_id in made:
            continue
        row = rows.get(result.session_id)
        terms = [redact(there) for _, there in result.spelling_pairs] or [redact(term) for term in result.terms]
        made[result.session_id] = {
            "sessionID": result.session_id,
            "title": one_line(redact(row.title)) if row else "",
            "directory": redact(row.directory) if row else "",
            "reason": reason(result),
            "terms": list(dict.fromkeys(terms)),
        }
    return list(made.values())
