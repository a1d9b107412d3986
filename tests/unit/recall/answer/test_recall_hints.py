"""What is said beside the results, and what is suggested."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from daemon.index import Filters, Match
from daemon.model import Json
from daemon.recall.answer import query_warnings, suggestions
from daemon.recall.catalog import Row
from daemon.recall.query import Recall, parse
from daemon.recall.query.parse import Tier
from daemon.recall.query.scope import Scope
from daemon.recall.ranking.grouping import Result

EVERY = {
    "match": "smart",
    "scope": "project",
    "sessionID": "ses",
    "projectID": "prj",
    "directory": "/work",
    "within": "exact",
    "fallback": True,
    "type": "text",
    "kinds": ["prompt"],
    "role": "user",
    "toolName": "bash",
    "path": "/work/a.py",
    "title": "limits",
    "before": 9,
    "after": "2026-01-31",
    "last": "7d",
    "from": "30d ago",
    "to": "now",
    "since": "30d",
    "until": "1d",
    "where": {"role": "user"},
    "threshold": 0.5,
    "archived": "only",
    "deleted": "exclude",
    "group": "session",
    "sort": "newest",
    "results": 5,
    "offset": 5,
    "width": 100,
    "explain": True,
    "expand": "context",
    "expandResults": 2,
    "window": 1,
    "expandBudgetMessages": 3,
    "expandBudgetChars": 900,
    "expandBudgetTokens": 100,
    "sessions": 4,
}


def _asked(query: str, **told) -> Recall:
    return msgspec.convert({"query": query} | told, Recall)


def _scope(*limited: str, eligible: int = 3, emptied: str = "") -> Scope:
    return Scope((("", Filters()),), eligible, limited, emptied)


# -- suggestions -----------------------------------------------------------------------------------------------------


def test_a_suggestion_leaves_out_what_it_names_and_nothing_else():
    asked = _asked("kettle", **EVERY)
    assert set(EVERY) == set(Recall.__struct_encode_fields__) - {"query"}
    _, made = suggestions.emptied(asked, _scope("directory", emptied="directory"), {})
    gone = {"directory", "within", "fallback", "offset"}
    assert made[0]["example"] == {"query": "kettle"} | {k: v for k, v in EVERY.items() if k not in gone}
    times = suggestions.limiting(asked, _scope("time"), 3)[0]["example"]
    assert set(EVERY) - set(times) == {"before", "after", "last", "from", "to", "since", "until", "offset"}
    assert msgspec.convert(times, Recall).query == "kettle"


SPELT = {
    ("ECONNREFUSD", "smart"): "ECONNREFUSED",
    ("why Econnrefusd, again", "smart"): "why ECONNREFUSED, again",
    ('"ECONNREFUSD" econnrefusds', "hybrid"): '"ECONNREFUSED" econnrefusds',
}


@pytest.mark.parametrize(("asked", "query"), SPELT.items(), ids=str)
def test_a_correction_replaces_the_word_in_any_letter_case(asked, query: str):
    text, match = asked
    told = _asked(text, match=match, role="user")
    made = suggestions.spelt(["econnrefusd"], lambda _: [("ECONNREFUSED", 2)], told)
    expected: Json = {"query": query, "role": "user"} | ({"match": match} if match != "hybrid" else {})
    assert made[0]["example"] == expected


def test_only_who_has_not_used_fuzzy_is_advised_to():
    actions = {
        match: suggestions.spelt(["gorila"], lambda _: [("gorilla", 1)], _asked("gorila", match=match))[0]["action"]
        for match in ("smart", "fuzzy", "hybrid")
    }
    assert {match: "`match=fuzzy`" in action for match, action in actions.items()} == {
        "smart": True,
        "fuzzy": False,
        "hybrid": True,
    }


LIMITS = {  # (filters, sessions that fit, sessions known): what is said
    (("time",), 58, 58): "only some messages of each session were searched, limited by time",
    (("scope", "time"), 58, 58): "only some messages of each session were searched, limited by `scope`, time",
    (("scope",), 58, 58): "",
    (("directory", "projectID"), 2, 58): "only 2 of 58 sessions searched, limited by `directory`, `projectID`",
}


@pytest.mark.parametrize(("case", "says"), LIMITS.items(), ids=str)
def test_dropping_filters_is_suggested_if_they_excluded_something(case, says: str):
    names, eligible, known = case
    made = suggestions.limiting(_asked("kettle"), _scope(*names, eligible=eligible), known)
    assert [one["reason"] for one in made] == ([says] if says else [])


# -- what is missing -------------------------------------------------------------------------------------------------

MISSING = {
    ("foo-bar", ("foo-bar",)): ((), ()),
    ("don't panic", ("don't",)): (("panic",), ("panic",)),
    ("gorila zanzibar", ("zanzibar",)): (("gorila",), ("gorila",)),
    ("why parseConfig zanzibar", ("zanzibar",)): (("parseConfig",), ()),
    ("seldom zanzibar", ("zanzibar",)): (("seldom",), ()),
}


@pytest.mark.parametrize(("case", "expected"), MISSING.items(), ids=str)
def test_what_is_missing_is_told_from_what_no_text_has(case, expected):
    query, held = case
    counts = {"panic": 0, "gorila": 0, "zanzibar": 3, "seldom": 1, "parseconfig": 0}
    missing = query_warnings.absent(parse.parse(query), set(held), counts)
    assert (missing.parts, missing.unwritten) == expected


def _find(*terms: str, grade: int = 0, mode: str = "smart", **more) -> Result:
    match = Match("m", 1.0, "p", "prompt", terms=terms)
    return Result("m", "s", "prj", 0, match, mode, 1.0, grade, terms, sources=("lexical",), **more)


def _said(query: str, finds: list[Result], missing: query_warnings.MissingTerms, **more: bool) -> str:
    told = {"is_inside": False, "is_limited": False, "is_sure": True} | more
    return "\n".join(query_warnings.word_warnings(parse.parse(query), "smart", finds, missing, **told))


def test_a_word_that_no_text_has_is_named_although_others_were_found():
    missing = query_warnings.MissingTerms(("gorila", "seldom"), ("gorila",))
    said = _said("gorila seldom zanzibar", [_find("zanzibar")], missing)
    assert said == "no current text contains 'gorila' as a word; these results contain the other words"
    assert _said("zanzibar", [_find("zanzibar")], query_warnings.MissingTerms()) == ""


def test_a_long_query_is_not_repeated_whole_in_the_warnings():
    for text in (
        "x" * 9000,
        " ".join(f"word{n}x" for n in range(500)),
        " ".join(f"gorila{'a' * n}" for n in range(99)),
    ):
        query = parse.parse(text)
        missing = query_warnings.absent(query, set(), dict.fromkeys(query.words, 0))
        for finds in ([], [_find("zanzibar")]):
            assert len(_said(text, finds, missing)) < 2000


def test_words_that_only_ask_are_not_missed():
    asked = parse.parse("how many gorillas and how often")
    missing = query_warnings.absent(asked, {"gorillas"}, {"many": 0, "often": 0, "gorillas": 2})
    assert missing == query_warnings.MissingTerms()
    assert query_warnings.absent(parse.parse("many"), set(), {"many": 0}).parts == ("many",)


def test_nothing_is_called_absent_when_the_search_was_incomplete():
    missing = query_warnings.MissingTerms(("gorila",), ("gorila",))
    for finds in ([], [_find("zanzibar")]):
        said = _said("gorila zanzibar", finds, missing, is_sure=False)
        assert "no text that could be searched contains" in said
        assert "no current text" not in said


NEAR_MISSES = {
    "literal": ("zanzibar gorilla", "literal", _find("zanzibar gorilla", mode="literal"), "contains it"),
    "all words": ("zanzibar gorilla", "smart", _find("zanzibar", "gorilla"), "contains all of the words"),
    "some words": ("zanzibar gorilla", "smart", _find("zanzibar"), "contains some of the words"),
    "the name": ("parseConfig", "smart", _find("parseConfig"), "contains all of the words"),
    "a longer name": (
        "parseConfi",
        "smart",
        _find("parseConfi", grade=Tier.INSIDE),
        "contains it inside a longer name",
    ),
    "no name": ("why parseConfi", "fuzzy", _find("why", mode="fuzzy"), "contains some of the words"),
    "a near word": (
        "zanzibr",
        "fuzzy",
        _find(mode="fuzzy", spelling_pairs=(("zanzibr", "zanzibar"),)),
        "contains words with similar spellings",
    ),
}


@pytest.mark.parametrize(("query", "mode", "find", "says"), NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_a_near_miss_claims_no_more_than_was_seen_of_it(query: str, mode: str, find: Result, says: str):
    assert suggestions.held_by(find, parse.parse(query), mode) == says


class _Asked(dict[str, Row]):
    """Rows that remember which of them were looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []

    def get(self, session_id: str, default=None):
        self.ids.append(session_id)
        return super().get(session_id, default)


def test_of_many_near_misses_only_the_sessions_shown_are_looked_at():
    finds = [replace(_find(f"word{number}"), session_id=name) for number, name in enumerate("aabacbdea")]
    rows, reasons = _Asked(), []
    made = suggestions.near_misses(finds, rows, lambda find: reasons.append(find.terms) or "near")
    assert [(one["sessionID"], one["terms"]) for one in made] == [("a", ["word0"]), ("b", ["word2"]), ("c", ["word4"])]
    assert rows.ids == ["a", "b", "c"]
    assert reasons == [("word0",), ("word2",), ("word4",)]
