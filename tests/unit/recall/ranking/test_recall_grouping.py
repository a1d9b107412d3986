"""One result a group, and a first page that no session fills."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daemon.index import Match
from daemon.recall.ranking.grouping import Result, diverse, falling, gathered, grouped, without_echoes


def _find(message: str, session: str, score: float = 1.0, part: str = "p", **more) -> Result:
    match = Match(message, score, part, "prompt")
    return Result(message, session, more.pop("project", "prj"), 0, match, "smart", score, **more)


FINDS = [
    _find("m1", "a", part="p1"),
    _find("m1", "a", part="p2"),
    _find("m2", "b", project="other"),
    _find("m3", "a"),
]


def test_the_first_of_a_group_stands_for_it_and_says_how_many_there_are():
    counted = {level: [(find.message_id, find.hits) for find in grouped(FINDS, level)] for level in LEVELS}
    assert counted == LEVELS


LEVELS = {
    "part": [("m1", 1), ("m1", 1), ("m2", 1), ("m3", 1)],
    "message": [("m1", 2), ("m2", 1), ("m3", 1)],
    "session": [("m1", 3), ("m2", 1)],
    "project": [("m1", 3), ("m2", 1)],
}


def test_a_session_gets_half_the_page_while_others_have_similar_results():
    finds = [_find(f"a{n}", "a", 1.0 - n / 100) for n in range(8)] + [_find(f"b{n}", "b", 0.6) for n in range(3)]
    page = diverse(finds, 4)
    assert [find.message_id for find in page[:4]] == ["a0", "a1", "b0", "b1"]
    assert "moved up" in page[2].reasons[0]
    assert page[0].reasons == ()


def test_what_is_weaker_or_of_a_worse_grade_is_not_moved_up():
    weak = [_find(f"a{n}", "a") for n in range(4)] + [_find("b", "b", 0.4)]
    assert [find.session_id for find in diverse(weak, 4)[:4]] == ["a"] * 4
    worse = [_find(f"a{n}", "a") for n in range(4)] + [_find("b", "b", 1.0, band=3)]
    assert [find.session_id for find in diverse(worse, 4)[:4]] == ["a"] * 4
    far = [_find(f"a{n}", "a", relevance="exact") for n in range(4)] + [_find("b", "b", relevance="global")]
    assert [find.session_id for find in diverse(far, 4)[:4]] == ["a"] * 4


def test_several_good_messages_outweigh_one_but_not_a_better_grade():
    several = [_find("m1", "one", 0.9), _find("m2", "many", 0.85), _find("m3", "many", 0.8), _find("m4", "many", 0.8)]
    assert [(find.session_id, find.message_id, find.hits) for find in gathered(several, "session")] == [
        ("many", "m2", 3),
        ("one", "m1", 1),
    ]
    graded = [_find("m1", "one", 0.9), *[_find(f"m{n}", "many", 0.9, band=1) for n in range(2, 9)]]
    assert [find.session_id for find in gathered(graded, "session")] == ["one", "many"]
    parts = [_find("m1", "one", 0.9), *[_find("m2", "many", 0.85, part=f"p{n}") for n in range(9)]]
    assert [find.session_id for find in gathered(parts, "session")] == ["one", "many"]


def test_a_match_from_context_is_dropped_if_that_context_is_shown():
    echo = _find("m9", "a", sources=("windows",))
    alone = _find("m8", "c", sources=("windows",))
    own = _find("m1", "a", sources=("lexical", "windows"))
    assert [find.message_id for find in without_echoes([echo, own, alone])] == ["m1", "m8"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=20), st.integers(1, 10))
def test_diversity_loses_nothing_and_repeats_nothing(told: list[tuple[str, float]], page: int):
    finds = [_find(f"m{n}", session, score) for n, (session, score) in enumerate(told)]
    moved = diverse(finds, page)
    assert sorted(find.message_id for find in moved) == sorted(find.message_id for find in finds)
    assert moved == diverse(finds, page)
    if finds:
        assert moved[0].message_id == "m0"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), max_size=20), st.integers(1, 10))
def test_scores_fall_along_what_was_moved_and_nothing_else_changes(told: list[tuple[str, float]], page: int):
    finds = [_find(f"m{n}", session, score) for n, (session, score) in enumerate(told)]
    moved = diverse(finds, page)
    shown = falling(moved)
    assert [find.score for find in shown] == sorted((find.score for find in shown), reverse=True)
    assert [find.message_id for find in shown] == [find.message_id for find in moved]
    assert all(now.score <= then.score for now, then in zip(shown, moved, strict=True))
