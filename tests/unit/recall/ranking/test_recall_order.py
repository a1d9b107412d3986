"""Lists of candidates become one order."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.index import Match
from daemon.recall import weights
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.query import names, parse
from daemon.recall.query.parse import Hold, Tier
from daemon.recall.ranking.order import NOT_LOOKED_AT, Archived, ordered
from daemon.recall.ranking.tiers import MOST_READ, held_terms


def _match(message: str, text: str = "", *, score: float = 1.0, kind: str = "prompt", **more) -> Match:
    return Match(message, score, more.pop("part", f"prt_{message}"), kind, text=text, **more)


def _order(query: str, lists: dict[str, list[Match]], mode: str = "hybrid", needed: int = 10, newer: str = ""):
    found = CandidateLists(lists=lists)
    ids = sorted(found.best())
    archived = {i: Archived("ses", "prj", 2 if i == newer else 1) for i in ids}
    return ordered(parse.parse(query), mode, found, archived, needed, is_partly_embedded=False)


def test_what_holds_the_name_stands_above_what_ranks_better():
    lists = {
        "lexical": [
            _match("inside", "the rateLimiter of old"),
            _match("whole", "we set rateLimit", terms=("rateLimit",)),
        ],
        "semantic": [_match("alike", "throttling", score=0.9, part=""), _match("inside", "", score=0.8, part="")],
    }
    finds = _order("where is rateLimit set", lists)
    assert [(find.message_id, find.grade) for find in finds] == [
        ("whole", Tier.WHOLE),
        ("inside", Tier.INSIDE),
        ("alike", Tier.NONE),
    ]
    assert [find.mode for find in finds] == ["smart", "hybrid", "semantic"]


def test_a_bare_name_is_answered_by_nothing_else():
    lists = {"semantic": [_match("alike", "throttling", score=0.9, part="")]}
    assert _order("rateLimit", lists) == []


def test_a_name_in_a_text_too_long_to_search_is_not_lost():
    long = "x " * MOST_READ + "--dry-run"
    finds = _order("--dry-run", {"lexical": [], "named": [_match("m", long)]})
    assert [(find.message_id, find.grade) for find in finds] == [("m", Tier.INSIDE)]


def test_no_more_texts_are_looked_through_than_are_needed():
    lists = {"lexical": [], "named": [_match(f"m{n:02}", "a -v b") for n in range(20)]}
    grades = [find.grade for find in _order("-v", lists, needed=3)]
    assert grades == [0] * 3 + [NOT_LOOKED_AT] * 17


def test_of_equals_the_newer_comes_first():
    even = {"lexical": [_match("b", "x"), _match("a", "x")]}
    assert _order("plain words of a question", even, newer="b")[0].message_id == "b"
    assert _order("plain words of a question", even, newer="a")[0].message_id == "a"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what did we say of the quay on 3 March 2026", "asked"),
        ("what did we say of the quay in March", "asked"),
        ("what did we say of the quay", "better"),
        ("what did we say of the quay on 4 March 2025", "better"),
    ],
)
def test_the_day_named_in_a_question_outranks_better_words_elsewhere(query: str, first: str):
    found = CandidateLists(lists={"lexical": [_match("better", "quay", score=2.0), _match("asked", "quay", score=1.0)]})
    days = {"better": 1_700_000_000_000, "asked": 1_772_539_200_000}  # the latter 2026-03-03 at noon
    archived = {i: Archived("ses", "prj", created) for i, created in days.items()}
    finds = ordered(parse.parse(query), "hybrid", found, archived, 10, is_partly_embedded=False, explain=True)
    assert finds[0].message_id == first
    assert ["a day that the question names" in find.reasons[0] for find in finds] == [first == "asked", False]


def test_what_a_day_adds_is_said_and_only_where_it_was_added():
    lists = {"lexical": [_match("other", "-v")], "named": [_match("asked", "-v")], "semantic": [_match("asked")]}
    archived = {"other": Archived("ses", "prj", 0), "asked": Archived("ses", "prj", 1_772_539_200_000)}
    for mode, adds in {"hybrid": True, "smart": True, "semantic": False, "literal": False}.items():
        asked = parse.parse("-v on 3 March 2026")
        finds = ordered(asked, mode, CandidateLists(lists=lists), archived, 10, is_partly_embedded=False, explain=True)
        assert [f"names adds {weights.DAY:.3f}" in find.reasons[0] for find in finds if find.message_id == "asked"] == [
            adds
        ], mode


def test_one_session_supplies_at_most_half_of_the_searched_texts():
    named = [_match(f"m{n:02}", "a -v b") for n in range(20)]
    found = CandidateLists(lists={"lexical": [], "named": [*named, _match("x", "a -v b"), _match("y", "a -vv b")]})
    archived = {i: Archived("noisy" if i < "x" else "quiet", "prj", -int(i > "m99")) for i in found.best()}
    finds = ordered(parse.parse("-v"), "smart", found, archived, 4, is_partly_embedded=False)
    assert [(find.message_id, find.grade) for find in finds[-2:]] == [("x", Tier.WHOLE), ("y", Tier.INSIDE)]
    assert all(find.grade == Tier.WHOLE for find in finds[:-1])


def test_literal_results_are_newest_first_and_conversation_before_output():
    lists = {"named": [_match("old"), _match("new")], "tools": [_match("newest", kind="tool_output")]}
    assert [find.message_id for find in _order("x", lists, "literal", newer="new")] == ["new", "old", "newest"]


def test_several_matching_parts_of_a_message_are_results_best_first():
    lists = {"lexical": [_match("m", part="p1"), _match("n"), _match("m", part="p2", score=0.2)]}
    finds = _order("some longer question of words", lists, "smart")
    assert [(find.message_id, find.match.part_id) for find in finds] == [("m", "p1"), ("m", "p2"), ("n", "prt_n")]
    assert finds[1].score < finds[0].score


def test_a_million_characters_are_looked_through_in_a_blink():
    text = "rate of things, limits of rates; " * 30_000
    began = time.process_time()
    assert parse.tier(parse.parse("rateLimit"), text) is Tier.NONE
    assert names.stands_in("rates limit", text) is False
    assert time.process_time() - began < 30  # a regular expression that ignores case takes many times that


@given(
    st.dictionaries(
        st.sampled_from(["lexical", "named", "windows", "semantic", "phrase"]),
        st.lists(st.sampled_from("abcdef"), max_size=8),
    ),
    st.sampled_from(["plain words of a long question", "two words", "rateLimit", "why rateLimit"]),
    st.sampled_from(["smart", "hybrid", "fuzzy", "semantic", "literal"]),
)
def test_scores_fall_and_no_find_comes_twice(told: dict[str, list[str]], query: str, mode: str):
    lists = {name: [_match(i, "rateLimit", score=0.5) for i in ids] for name, ids in told.items()}
    finds = _order(query, lists, mode)
    first = {find.message_id: find.score for find in reversed(finds)}
    best = [first[i] for i in dict.fromkeys(find.message_id for find in finds)]
    assert best == sorted(best, reverse=True)
    assert all(0 <= find.score <= 1 for find in finds)
    keys = [find.key("part") for find in finds]
    assert len(keys) == len(set(keys))


# -- what holds it as it stands --------------------------------------------------------------------------------------


def test_an_old_text_with_the_phrase_beats_the_newest_printed_ones():
    dumps = [_match(f"dump{n}", "copper gasket", kind="tool_output", score=9e11 + n) for n in range(5)]
    apart = _match("apart", "a gasket of copper", terms=("copper", "gasket"))
    old = _match("old", "We settled on the copper gasket.", score=0.2, terms=("copper", "gasket"))
    finds = _order("copper gasket", {"lexical": [apart, old], "phrase": [], "printed": dumps})
    assert [find.message_id for find in finds][:2] == ["old", "apart"]
    assert [find.grade for find in finds] == [Hold.PHRASE] + [Hold.ALL] * 6


def test_what_was_said_is_looked_through_however_much_was_printed():
    dumps = [_match(f"dump{n}", "x " * (MOST_READ // 4), kind="tool_output", terms=("copper",)) for n in range(4)]
    said = _match("said", "the copper gasket", score=0.1, terms=("copper", "gasket"))
    assert _order("copper gasket", {"lexical": [*dumps, said]})[0].message_id == "said"


LONGER = {
    "parseConfig": "fix parseConfigs please",
    "parse_config": "fix parse_config2 please",
    "connectOnc": "it is raised by connectOnce",
    '"drops row"': "the filter drops rows",
    '"gasket"': "several gaskets",
}


@pytest.mark.parametrize(("query", "text"), LONGER.items())
def test_a_name_inside_a_longer_one_is_not_the_name(query: str, text: str):
    name = query.strip('"')
    # The word index holds `"drops row"` as two words, and a word in its other forms; a literal stands anywhere.
    lists = {"lexical": [_match("m", text, terms=tuple(name.split()))] if query.startswith('"') else []}
    lists["named"] = [_match("m", text, score=9e11, terms=(name,))]
    found = CandidateLists(lists=lists)
    assert name.lower() not in held_terms(parse.parse(query), found)
    finds = _order(query, lists)
    assert [(find.grade, find.score) for find in finds] == [(Tier.INSIDE, 0.5)]


def test_a_semantic_match_that_contains_the_name_counts_as_by_words():
    lists = {
        "lexical": [],
        "semantic": [_match("m", "fix parseConfigs", score=0.9, part="")],
        "named": [_match("m", "fix parseConfigs", terms=("parseConfig",))],
    }
    find = _order("parseConfig", lists)[0]
    assert (find.mode, find.is_by_words) == ("hybrid", True)


MATCHED = st.tuples(
    st.sampled_from("abcdef"),
    st.sampled_from(["p1", "p2"]),
    st.floats(0.01, 20),
    st.sampled_from(["prompt", "tool_output"]),
)


@given(
    st.dictionaries(
        st.sampled_from(["lexical", "named", "tools", "windows", "semantic", "phrase", "printed"]),
        st.lists(MATCHED, max_size=8),
    ),
    st.sampled_from(["plain words of a long question", "two words", "rateLimit", "why rateLimit"]),
    st.sampled_from(["smart", "hybrid"]),
)
def test_the_first_finds_of_messages_fall_and_so_do_the_parts_of_each(told, query: str, mode: str):
    literal = {"named", "tools", "phrase", "printed"}  # whose scores are times
    lists = {
        name: [
            _match(i, "two words", score=score * (1e11 if name in literal else 0.05), part=part, kind=kind)
            for i, part, score, kind in some
        ]
        for name, some in told.items()
    }
    finds = _order(query, lists, mode)
    by_message: dict[str, list[float]] = {}
    for find in finds:
        by_message.setdefault(find.message_id, []).append(find.score)
    firsts = [scores[0] for scores in by_message.values()]
    assert firsts == sorted(firsts, reverse=True)
    assert all(scores == sorted(scores, reverse=True) for scores in by_message.values())


def test_a_distant_meaning_is_no_result_without_the_words():
    def near(scores: dict[str, float], *by_words: str) -> set[str]:
        meaning = [Match(message_id, score) for message_id, score in scores.items()]
        return CandidateLists(
            {"semantic": meaning, "lexical": [Match(message_id, 1.0) for message_id in by_words]}
        ).similar()

    assert near({"near": 0.6, "so-so": 0.28, "words": 0.05}, "words", "other") == {"near", "words"}
    assert near({"unrelated": 0.2}) == set()
