"""What is said beside the results: what was searched, what is missing, what to try where there is little or nothing.

Pure functions: what they need of the indexes is handed in. A suggestion is ``{reason, action, example}``, its example
the arguments of a next call. No hint claims more than was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daemon.model import Json
from daemon.recall.asked import Recall
from daemon.recall.catalog import Row
from daemon.recall.filters import Scope
from daemon.recall.group import Find
from daemon.recall.rank import Query, Tier, split
from daemon.recall.snippet import counted, one_line
from daemon.redact import redact

MOST_WORDS = 4
"""Absent words of a query for which near spellings are looked up."""

_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "time": ("before", "after", "last", "from", "to", "since", "until"),
    "directory": ("directory", "within", "fallback"),
    "sessionsLimit": ("sessions",),
}
_OF_SESSIONS = frozenset({"sessionID", "scope", "projectID", "title", "archived", "directory", "sessionsLimit"})


@dataclass(frozen=True, slots=True)
class Missing:
    """What of a query was not found: `parts` are its names and words that no candidate holds.

    `unwritten` are those of its words that moreover no text has at all: a word of a long question may stand somewhere
    and be in none of the candidates.
    """

    parts: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()


def absent(query: Query, held: set[str], frequencies: Mapping[str, int]) -> Missing:
    """What no candidate holds; `held` are the names and words that candidates do, in lower case.

    `frequencies` tells of terms of the query, in lower case, in how many texts they stand.
    """
    pieces = split(held)
    words = [word for word in query.words if word not in pieces]
    names = [name for name in query.named if name.lower() not in held]
    return Missing((*names, *words), tuple(word for word in words if frequencies.get(word) == 0))


def spelt(missing: Sequence[str], near: Callable[[str], Sequence[tuple[str, int]]], asked: Recall) -> list[Json]:
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
                "action": f"ask for {other!r} if that was meant"
                + ("" if asked.match == "fuzzy" else ", or use match 'fuzzy'"),
                "example": _without(asked) | {"query": _replaced(redact(asked.query), redact(word), other)},
            }
        )
    return made


def _replaced(text: str, word: str, other: str) -> str:
    """`text` with `other` for `word`, in whatever case it stands there; `other` alone where it does not."""
    made, times = re.subn(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _: other, text, flags=re.IGNORECASE)
    return made if times else other


def word_warnings(
    query: Query,
    mode: str,
    finds: Sequence[Find],
    missing: Missing,
    *,
    is_inside: bool,
    is_limited: bool,
    is_sure: bool,
) -> list[str]:
    """What must be said so that nobody takes another name, or a mere likeness, for what was asked for.

    `is_inside`: the words stand only in longer ones; `is_limited`: filters were on, so not all texts were searched;
    `is_sure`: words were searched to the end.
    """
    nothing = "no text within the filters holds" if is_limited else "no recorded text holds"
    if not is_sure:
        nothing = "no text that could be searched holds"
    if mode not in {"smart", "hybrid", "fuzzy"}:
        return []
    named = ", ".join(repr(redact(word)) for word in missing.parts)
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
    unwritten = ", ".join(repr(redact(word)) for word in missing.unwritten)
    absent_words = [f"{nothing} {unwritten}; these results hold the other words"] if unwritten else []
    if query.is_exact and mode != "fuzzy":  # near spellings have no tiers
        return _name_warnings(query, finds, nothing) + absent_words
    alike = sum(find.mode == "semantic" for find in finds)
    said = [f"the last {_results(alike)} only similar in meaning"] if alike and query.is_short else []
    near = sum(bool(find.near) for find in finds)
    return absent_words + said + ([f"{_results(near)} only a near spelling: see near"] if near else [])


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
            "example": _without(asked, *scope.limited_by),
        }
    ]


def other_mode(asked: Recall, query: Query) -> list[Json]:
    """Another way to ask, where nothing was found."""
    if asked.match in {"literal", "regex"}:
        action = "use match 'hybrid': words in any order, stemmed, and meaning"
        example = _without(asked, "match")
        return [{"reason": f"nothing {asked.match} was found", "action": action, "example": example}]
    if query.is_exact and not query.words:
        action = "use match 'semantic' for what is only similar, or 'literal' for a part of a longer name"
        example = _without(asked) | {"match": "literal"}
        return [{"reason": "a bare name is only answered by that name", "action": action, "example": example}]
    return []


def _without(asked: Recall, *names: str) -> Json:
    """The arguments as they were asked, but for those of the named filters; such as are the default go unsaid."""
    gone = {argument for name in names for argument in _ARGUMENTS.get(name, (name,))}
    defaults = Recall(query="")
    example: Json = {}
    for name, argument in zip(Recall.__struct_fields__, Recall.__struct_encode_fields__, strict=True):
        value: Any = getattr(asked, name)
        if argument not in gone and value != getattr(defaults, name):
            example[argument] = _redacted(value)
    return example


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    return [redact(one) for one in value] if isinstance(value, list) else value


# -- near misses -----------------------------------------------------------------------------------------------------


def held_by(find: Find, query: Query, mode: str) -> str:
    """In words, what a near miss that was found in `mode` holds of the query: no more than was seen in it."""
    if mode in {"literal", "regex"}:
        return "holds it"
    if find.near:
        return "holds words that are spelt nearly so"
    if not find.is_own:
        return "follows messages that hold some of the words"
    if query.is_exact and find.grade == Tier.INSIDE:
        return "holds it inside a longer name"
    is_whole = mode == "smart" and find.grade == Tier.WHOLE  # else only the terms tell whether it holds the names
    held = split(find.terms) | (split(query.named) if is_whole else set())
    return "holds all of the words" if held >= split((*query.named, *query.words)) else "holds some of the words"


def near_misses(
    finds: Sequence[Find], rows: Mapping[str, Row], reason: Callable[[Find], str], most: int = 3
) -> list[Json]:
    """The sessions of finds that are no answer, best first, each with why it is none, as `reason` says of a find."""
    made: dict[str, Json] = {}
    for find in finds:
        if len(made) == most:
            break
        if find.session_id in made:
            continue
        row = rows.get(find.session_id)
        terms = [redact(there) for _, there in find.near] or [redact(term) for term in find.terms]
        made[find.session_id] = {
            "sessionID": find.session_id,
            "title": one_line(redact(row.title)) if row else "",
            "directory": redact(row.directory) if row else "",
            "reason": reason(find),
            "terms": list(dict.fromkeys(terms)),
        }
    return list(made.values())
