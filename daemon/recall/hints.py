"""What is said beside the results: what was searched, what is missing, what to try where there is little or nothing.

Pure functions: what they need of the indexes is handed in. A suggestion is ``{reason, action, example}``, its example
the arguments of a next call. No hint claims more than was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daemon.model import Json
from daemon.recall.asked import Recall
from daemon.recall.catalog import Row
from daemon.recall.filters import Scope
from daemon.recall.group import Find
from daemon.recall.rank import Query, Tier
from daemon.recall.snippet import counted, one_line
from daemon.redact import redact

MOST_WORDS = 4
"""Absent words of a query for which near spellings are looked up."""

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "time": ("before", "after", "last", "from", "to", "since", "until"),
    "directory": ("directory", "within"),
    "sessionsLimit": ("sessions",),
}


def absent(query: Query, held: set[str]) -> list[str]:
    """The names and words of a query that no find holds; `held` are those that finds do, in lower case."""
    pieces = {piece for term in held for piece in term.split()} | held
    names = [name for name in query.named if name.lower() not in pieces]
    return names + [word for word in query.words if word not in pieces]


def spelt(missing: Sequence[str], near: Callable[[str], Sequence[tuple[str, int]]], query: Query) -> list[Json]:
    """A suggestion for each absent word that something is spelt like; `near` gives (word, number of parts)."""
    made = []
    for word in missing[:MOST_WORDS]:
        found = [(other, parts) for other, parts in near(word) if other.lower() != word.lower()]
        if not found:
            continue
        other = redact(found[0][0])
        others = ", ".join(f"{redact(name)!r} ({counted(parts, 'part')})" for name, parts in found)
        made.append(
            {
                "reason": f"no recorded text that was searched holds {redact(word)!r}; spelt nearly so: {others}",
                "action": f"ask for {other!r} if that was meant, or use match 'fuzzy'",
                "example": {"query": redact(query.text).replace(redact(word), other)},
            }
        )
    return made


def word_warnings(
    query: Query, mode: str, finds: Sequence[Find], missing: Sequence[str], *, is_inside: bool, is_limited: bool
) -> list[str]:
    """What must be said so that nobody takes another name, or a mere likeness, for what was asked for.

    `is_inside`: the words stand only in longer ones; `is_limited`: filters were on, so not all texts were searched.
    """
    nothing = "no text within the filters holds" if is_limited else "no recorded text holds"
    if mode not in {"smart", "hybrid", "fuzzy"}:
        return []
    named = ", ".join(repr(redact(word)) for word in missing)
    if not any(find.is_by_words for find in finds):
        wanted = ", ".join(repr(redact(word)) for word in (*query.named, *query.words)) or repr(redact(query.text))
        if is_inside:
            return [f"{wanted} occurs only inside longer words; match 'literal' finds it there"]
        if any(find.near for find in finds):
            return [f"{nothing} {named or wanted}; these results hold words that are spelt nearly so"]
        rest = "these results are only similar in meaning" if finds else "nothing was found"
        if finds and all(not find.is_own for find in finds):
            rest = "these messages only follow such that hold some of it"
        return [f"{nothing} {wanted}; {rest}"]
    if query.is_exact:
        return _name_warnings(query, finds, nothing)
    alike = sum(find.mode == "semantic" for find in finds)
    said = [f"the last {_results(alike)} only similar in meaning"] if alike and query.is_short else []
    near = sum(bool(find.near) for find in finds)
    return said + ([f"{_results(near)} only a near spelling: see near"] if near else [])


def _name_warnings(query: Query, finds: Sequence[Find], nothing: str) -> list[str]:
    named = ", ".join(repr(redact(name)) for name in query.named)
    best = min((find.grade for find in finds), default=int(Tier.NONE))
    without = sum(find.grade == Tier.NONE for find in finds)
    if best == Tier.NONE:
        return [f"{nothing} {named}; these results are only similar"]
    said = []
    if best == Tier.SOME:
        said.append(f"no message holds all of {named}")
    if best == Tier.INSIDE:
        said.append(f"{named} occurs only inside longer names")
    if without:
        said.append(f"the last {'result does' if without == 1 else f'{without} results do'} not hold {named}")
    return said


def _results(number: int) -> str:
    return "result is" if number == 1 else f"{number} results are"


# -- filters ---------------------------------------------------------------------------------------------------------


def emptied(asked: Recall, scope: Scope, rows: Mapping[str, Row]) -> tuple[list[str], list[Json]]:
    """(warnings, suggestions) where a filter leaves no session at all to be searched."""
    name = scope.emptied_by
    if not name:
        return [], []
    values = {
        "directory": asked.directory,
        "title": asked.title,
        "projectID": asked.projectID,
        "scope": asked.scope,
        "archived": asked.archived,
    }
    value = redact(str(values.get(name, "")))
    reason = f"{name} {value!r}: none of the {counted(len(rows), 'recorded session')} fits it and the filters before it"
    action = f"leave {name} out, or look at what there is with recall_sessions"
    return [reason], [{"reason": reason, "action": action, "example": _without(asked, name)}]


def limiting(asked: Recall, scope: Scope, known: int) -> list[Json]:
    """Suggestions where filters are on and nothing was found."""
    if scope.emptied_by or not scope.limited_by:
        return []
    names = ", ".join(scope.limited_by)
    return [
        {
            "reason": f"only {counted(scope.eligible, 'session')} of {known} searched, limited by {names}",
            "action": "search without these filters",
            "example": _without(asked, *scope.limited_by),
        }
    ]


def other_mode(asked: Recall, query: Query) -> list[Json]:
    """Another way to ask, where nothing was found."""
    text = redact(query.text)
    if asked.match in {"literal", "regex"}:
        action = "use match 'hybrid': words in any order, stemmed, and meaning"
        return [{"reason": f"nothing {asked.match} was found", "action": action, "example": {"query": text}}]
    if query.is_exact and not query.words:
        action = "use match 'semantic' for what is only similar, or 'literal' for a part of a longer name"
        example = {"query": text, "match": "literal"}
        return [{"reason": "a bare name is only answered by that name", "action": action, "example": example}]
    return []


def _without(asked: Recall, *names: str) -> Json:
    """The arguments as they were asked, but for those of the named filters."""
    gone = {argument for name in names for argument in _ARGUMENTS.get(name, (name,))}
    defaults = Recall(query="")
    example: Json = {"query": redact(asked.query)}
    for argument in ("match", "scope", "sessionID", "directory", "type", "role", "toolName", "title", "last", "group"):
        value: Any = getattr(asked, argument)
        if argument not in gone and value != getattr(defaults, argument):
            example[argument] = redact(value)
    return example


# -- near misses -----------------------------------------------------------------------------------------------------


def near_misses(finds: Sequence[Find], rows: Mapping[str, Row], reason: str, most: int = 3) -> list[Json]:
    """The sessions of finds that are no answer, best first, each with why it is none; `reason` is for all of them."""
    made: dict[str, Json] = {}
    for find in finds:
        row = rows.get(find.session_id)
        terms = [redact(there) for _, there in find.near] or [redact(term) for term in find.terms]
        if find.session_id not in made and len(made) < most:
            made[find.session_id] = {
                "sessionID": find.session_id,
                "title": one_line(redact(row.title)) if row else "",
                "directory": redact(row.directory) if row else "",
                "reason": reason,
                "terms": list(dict.fromkeys(terms)),
            }
    return list(made.values())
