"""What is said beside the results: what was searched, what is missing, what to try where there is little or nothing.

Pure functions: what they need of the indexes is handed in. A suggestion is ``{reason, action, example}``, its example
the arguments of a next call. No hint claims more than was looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from daemon import records
from daemon.display import counted, one_line, shorten
from daemon.model import Json
from daemon.recall.catalog import Row
from daemon.recall.query import Recall, names
from daemon.recall.query.names import Stands
from daemon.recall.query.parse import Query, Tier, as_asked, split
from daemon.recall.query.scope import Scope
from daemon.recall.ranking.grouping import Result
from daemon.redact import redact, redact_value

MOST_WORDS = 4
"""Absent words of a query for which near spellings are looked up."""
_MOST_LISTED = 8
_LONGEST_SHOWN = 80
_SAYS_LITTLE = frozenset({"many", "much", "often", "ever"})
"""Words of a question that ask and name nothing: that no text has them is no news."""

_UNSPELT = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
"""Names with digits, which the index does not have among the words that it knows near spellings of."""

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
    if set(query.words) - _SAYS_LITTLE or query.named:
        words = [word for word in words if word not in _SAYS_LITTLE]
    names = [name for name in query.named if name.lower() not in held]
    return Missing((*names, *words), tuple(word for word in words if frequencies.get(word) == 0))


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


_UNSEARCHABLE = (
    "the query holds what looks like a secret; texts are searched without their secrets, so it is found nowhere"
)


def is_only_similar(query: Query, mode: str, results: Sequence[Result]) -> bool:
    """Whether there are results and none holds what was asked for: a word of the query, or the name that it is.

    Whoever asks for meaning gets it: words were not searched then, so nothing can be said of them.
    """
    if mode == "semantic":
        return False
    if not any(result.is_by_words for result in results):
        return bool(results)
    is_bare_name = query.is_exact and not query.words
    return is_bare_name and mode in {"smart", "hybrid"} and all(result.grade == Tier.NONE for result in results)


def word_warnings(
    query: Query,
    mode: str,
    results: Sequence[Result],
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
    if redact(query.text) != query.text:  # whether it is recorded must not be told either
        return [_UNSEARCHABLE]
    nothing = "no current text within the filters holds" if is_limited else "no current text holds"
    if not is_sure:
        nothing = "no text that could be searched holds"
    if mode == "literal":
        return _inside_only((query.text.strip(),), results) if _is_one_name(query) else []
    if mode not in {"smart", "hybrid", "fuzzy"}:
        return []
    if not any(result.is_by_words for result in results):
        unsought = [] if is_inside or any(result.spelling_pairs for result in results) else _unsought(query.named)
        return [_wordless(query, results, nothing, is_inside=is_inside), *unsought]
    unwritten = missing.unwritten
    held = "a part of that" if set(unwritten).issuperset(as_asked(query)) else "the other words"
    absent_words = [f"{nothing} {_as_words(unwritten)}; these results hold {held}"] if unwritten else []
    if query.is_exact and mode != "fuzzy":
        return _name_warnings(query, results, nothing) + absent_words
    if mode == "fuzzy":  # near spellings have no tiers
        warnings = _absent_names(query, missing, nothing, is_inside=is_inside)
    else:
        alike = sum(result.mode == "semantic" for result in results)
        warnings = [f"the last {_results(alike)} only similar in meaning"] if alike and query.is_short else []
    if not query.is_exact and _is_one_name(query):
        warnings += _inside_only((query.phrase,), results)
    similar = sum(bool(result.spelling_pairs) for result in results)
    return absent_words + warnings + ([f"{_results(similar)} only a near spelling: see near"] if similar else [])


def _wordless(query: Query, results: Sequence[Result], nothing: str, *, is_inside: bool) -> str:
    """Where no result holds a word as it was asked for."""
    wanted = _listed(as_asked(query)) or _shown(query.text)
    is_near = any(result.spelling_pairs for result in results)
    rest = "these results are only similar in meaning" if results else "nothing was found"
    if results and all(not result.is_own for result in results):
        rest = "these messages come shortly after others that hold some of it"
    if is_inside:
        advice = ": see near" if is_near else f"; `match=literal` finds it there{f'; {rest}' if results else ''}"
        inside = [query.phrase] if query.phrase else as_asked(query)
        return _inside_longer(inside, "words") + advice
    if is_near:
        return f"{nothing} {wanted}; these results hold words that are spelt nearly so"
    is_looked_up = query.is_exact or len(as_asked(query)) <= 1
    return f"{nothing} {wanted if is_looked_up else _as_words(as_asked(query))}; {rest}"


def _name_warnings(query: Query, results: Sequence[Result], nothing: str) -> list[str]:
    named = _listed(query.named)
    best = min((result.grade for result in results), default=int(Tier.NONE))
    without = sum(result.grade == Tier.NONE for result in results)
    if best == Tier.NONE:
        rest = "hold other words of the query" if query.words else "are only similar"
        return [f"{nothing} {named}; these results {rest}", *_unsought(query.named)]
    warnings = []
    if best == Tier.SOME:
        warnings.append(f"no message holds all of {named}")
    if best == Tier.INSIDE:
        warnings.append(_inside_longer(query.named))
    if without:
        warnings.append(f"the last {'result does' if without == 1 else f'{without} results do'} not hold {named}")
    return warnings


def _absent_names(query: Query, missing: Missing, nothing: str, *, is_inside: bool) -> list[str]:
    """Where results are in the order of near spellings: what of the names none of them is."""
    absent = [name for name in query.named if name in missing.parts]
    rest = "these results hold other words of the query, or such as are spelt nearly so"
    if not absent:
        return []
    if not is_inside:
        return [f"{nothing} {_listed(absent)}; {rest}", *_unsought(absent)]
    return [f"{_inside_longer(absent)}; {rest}"]


def _unsought(absent: Sequence[str]) -> list[str]:
    """Which absent names no near spelling is looked for: so that nobody takes them for looked up in this way too."""
    unsought = [name for name in absent if _UNSPELT.search(name)]
    return [f"typing errors are only looked for in words of letters alone, not in {_listed(unsought)}"] * bool(unsought)


def _inside_longer(named: Sequence[str], ones: str = "names") -> str:
    if len(named) == 1:
        return f"{_listed(named)} occurs only inside longer {ones}{_otherwise(named)}"
    return f"none of {_listed(named)} occurs but inside longer {ones}{_otherwise(named)}"


def _is_one_name(query: Query) -> bool:
    """Whether the whole query is a name, or a compound such as ``max-shard`` that may be one."""
    return query.named == (query.text.strip(),) or ("-" in query.phrase and " " not in query.phrase)


def _inside_only(named: Sequence[str], results: Sequence[Result]) -> list[str]:
    """Where a part of a text was asked for that looks like a name, and each result has it in a longer one."""
    texts = [result.match.text for result in results if result.is_by_words and result.match.text]
    if not texts or any(names.stands(name, text) is Stands.WHOLE for text in texts for name in named):
        return []
    return [f"these results hold {_listed(named)} only inside longer names{_otherwise(named)}"]


def _otherwise(named: Sequence[str]) -> str:
    """What a name in which marks count may be found as besides."""
    is_plain = all(re.fullmatch(r"[^\W_][\w -]*[^\W_]", name) for name in named)
    return "" if is_plain else ", or with other marks"


def _as_words(words: Sequence[str]) -> str:
    """What was looked for as words only: it may well stand inside longer ones."""
    return f"{_listed(words)} as {'a word' if len(words) == 1 else 'words'}"


def _listed(words: Sequence[str]) -> str:
    more = f" and {len(words) - _MOST_LISTED} more" if len(words) > _MOST_LISTED else ""
    return ", ".join(map(_shown, words[:_MOST_LISTED])) + more


def _shown(text: str) -> str:
    return repr(shorten(redact(text), _LONGEST_SHOWN))


def _results(number: int) -> str:
    return "result is" if number == 1 else f"{number} results are"


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
