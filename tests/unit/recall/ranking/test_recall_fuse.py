"""Words and meaning in one order, weighed by the question."""

from __future__ import annotations

from dataclasses import asdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.index import Match
from daemon.recall import weights
from daemon.recall.candidates.stats import QueryStats, text_to_embed
from daemon.recall.ranking.fuse import Fused, features_of, fuse, meaning_weight
from daemon.recall.weights import COMMON_NAME

FACTS = QueryStats(1000, {"quay": 3, "crane": 5, "moved": 200})


def _words(message_id: str, score: float, *terms: str) -> Match:
    return Match(message_id, score, terms=terms)


def _ids(fused: list[Fused]) -> list[str]:
    return [one.message_id for one in fused]


def test_a_result_by_words_and_by_meaning_beats_either_alone():
    words = [_words("both", 9.0, "quay", "crane"), _words("words", 9.0, "quay", "crane")]
    meant = [Match("both", 0.6), Match("meant", 0.6)]
    assert _ids(fuse(words, words, meant, FACTS))[0] == "both"


def test_a_list_with_only_common_words_ranks_below_meaning():
    common = [_words("common", 9.0, "moved")]
    meant = [Match("meant", 0.6), Match("common", 0.2)]
    assert _ids(fuse(common, common, meant, FACTS)) == ["meant", "common"]


def test_a_list_with_the_rare_words_ranks_above_a_nearer_meaning():
    rare = [_words("rare", 9.0, "quay", "crane")]
    meant = [Match("meant", 0.6), Match("rare", 0.2)]
    assert _ids(fuse(rare, rare, meant, FACTS)) == ["rare", "meant"]


@pytest.mark.parametrize("facts", [QueryStats(1000, {"rateLimit": 4}, is_exact=True)])
def test_where_a_name_is_asked_for_meaning_only_decides_among_equals(facts: QueryStats):
    words = [_words("b", 5.0, "rateLimit"), _words("a", 5.0, "rateLimit")]
    assert _ids(fuse(words, [], [Match("other", 1.0), Match("b", 0.5)], facts)) == ["b", "a", "other"]


def test_a_question_around_a_name_is_understood_too():
    asked = {"rateLimit": 4, "answer": 9, "refused": 2}
    words = [_words("b", 5.0, "rateLimit"), _words("a", 5.0, "rateLimit")]
    meant = [Match("a", 0.9), Match("b", 0.2)]
    facts = {worded: QueryStats(1000, asked, is_exact=True, is_worded=worded) for worded in (False, True)}
    assert meaning_weight(facts[False]) < meaning_weight(facts[True]) < meaning_weight(FACTS)
    nearer = {worded: fuse(words, [], meant, some)[0] for worded, some in facts.items()}
    assert nearer[True].parts["meaning"] > nearer[False].parts["meaning"] > 0


def test_among_equal_words_the_part_with_the_closest_words_comes_first():
    facts = QueryStats(1000, FACTS.frequencies, neighbours=(("quay", "crane"),))
    texts = {"apart": "the crane and all that was on the old quay", "close": "the quay's crane"}
    words = [Match(name, 2.0, text=text, terms=("quay", "crane")) for name, text in texts.items()]
    assert _ids(fuse(words, [], [], FACTS)) == ["apart", "close"]
    assert _ids(fuse(words, [], [], facts)) == ["close", "apart"]
    assert fuse(words, [], [], facts)[0].parts["proximity"] > 0


def test_proximity_is_measured_only_in_a_bounded_amount_of_text():
    facts = QueryStats(1000, FACTS.frequencies, neighbours=(("quay", "crane"),))
    words = [Match(f"m{number:04}", 2.0, text="x " * 2000 + "quay crane") for number in range(100)]
    words.append(Match("last", 2.0, text="quay crane", terms=("quay", "crane")))
    assert fuse(words, [], [], facts)[0].score < fuse(words[-1:], [], [], facts)[0].score


def test_meaning_does_not_outweigh_words_while_messages_wait_for_vectors():
    words = [_words("words", 9.0, "crane")]
    meant = [Match("embedded", 0.9)]
    half = QueryStats(FACTS.documents, FACTS.frequencies, is_partly_embedded=True)
    assert _ids(fuse(words, [], meant, FACTS))[0] == "embedded"
    assert _ids(fuse(words, words, meant, half))[0] == "words"


def test_meaning_counts_as_far_as_the_model_can_read_the_question():
    none, half, most, whole = (meaning_weight(QueryStats(9, {}, legible=share)) for share in (0.0, 0.5, 0.75, 1.0))
    assert 0.0 == none == half < most < whole == weights.FEATURES["meaning"]


def test_meaning_counts_less_the_fewer_words_of_the_question_the_model_knows():
    none, few, half, whole = (meaning_weight(QueryStats(9, {}, known=share)) for share in (0.0, 0.2, 0.5, 1.0))
    assert 0.0 < none < few < half == whole == weights.FEATURES["meaning"]


def test_meaning_does_not_outweigh_words_of_texts_that_the_model_cannot_read():
    words, meant = [_words("words", 9.0, "crane")], [Match("embedded", 0.9), Match("farther", 0.5)]
    half = QueryStats(FACTS.documents, FACTS.frequencies, legible_texts=0.5)
    assert _ids(fuse(words, [], meant, FACTS))[0] == "embedded"
    assert _ids(fuse(words, [], meant, half)) == ["words", "embedded", "farther"]


def test_a_message_counts_by_its_best_part_and_its_best_chunk():
    meant = [Match("a", 0.2), Match("a", 0.8), Match("a", 0.5)]
    assert fuse([], [], meant, FACTS)[0].score == pytest.approx(fuse([], [], [Match("a", 0.8)], FACTS)[0].score)


def test_each_source_tells_what_it_added():
    one = fuse([_words("a", 2.0, "quay")], [_words("a", 3.0, "quay")], [Match("a", 0.5)], FACTS)[0]
    assert {name for name, added in one.parts.items() if added} == {"words", "window", "coverage", "meaning"}
    assert sum(one.parts.values()) == pytest.approx(one.score)


@pytest.mark.parametrize(
    ("left_out", "order"),
    [
        ("semantic", ["x", "y"]),
        ("words", ["y", "x"]),
    ],
)
def test_without_one_of_the_sources_the_others_order_stands(left_out: str, order: list[str]):
    words = [] if left_out == "words" else [_words("x", 9.0, "quay"), _words("y", 3.0, "quay")]
    meant = [] if left_out == "semantic" else [Match("y", 0.7), Match("x", 0.4)]
    assert _ids(fuse(words, words, meant, FACTS)) == order


def test_nothing_found_is_nothing():
    assert fuse([], [], [], QueryStats(0, {})) == []


COMMON = QueryStats(100, {"Anna": 60, "paint": 2, "Painted": 2, "Postgres": 3, "session": 90, "app.Anna": 50})


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("What has Anna painted?", "What has I painted?"),
        ("What colour is Anna's car?", "What colour is my car?"),
        ("Why did we leave Postgres?", "Why did we leave Postgres?"),
        ("why does the session vanish", "why does the session vanish"),
        ("what does app.Anna return", "what does app.Anna return"),
        ("Anna", "Anna"),
        ("Anna and Anna", "Anna and I"),
        ("", ""),
    ],
)
def test_only_names_in_nearly_all_texts_become_i_before_embedding(asked: str, left: str):
    assert text_to_embed(asked, COMMON) == left


def test_a_name_counts_as_common_from_its_share_of_the_texts():
    rare = QueryStats(1000, {"Anna": int(1000 * COMMON_NAME)})
    assert text_to_embed("what did Anna paint", rare) == "what did Anna paint"
    assert text_to_embed("what did Anna paint", QueryStats(0, {})) == "what did Anna paint"


def test_terms_are_worth_their_rarity():
    assert FACTS.coverage(("quay", "crane")) > 0.8
    assert FACTS.coverage(("moved",)) < 0.2
    assert FACTS.coverage(("quay", "quay", "unasked")) == FACTS.coverage(("quay",))
    assert QueryStats(10, {}).coverage(("quay",)) == 0.0
    assert QueryStats(10, {"a": 12}).rarity("a") > 0


# Rounded: 5e-324, once drawn, becomes 0 by scaling, and a score of 0 is another thing than the smallest one above it.
_SCORES = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(-1, 1).map(lambda x: round(x, 9))), max_size=12)


_MATCHES = st.lists(
    st.builds(
        Match,
        st.sampled_from("abcdef"),
        st.floats(-1, 5).map(lambda x: round(x, 6)),
        text=st.sampled_from(("", "the quay's crane", "crane and quay")),
        terms=st.lists(st.sampled_from(tuple(FACTS.frequencies)), unique=True).map(tuple),
        length=st.integers(0, 5000),
    ),
    max_size=8,
)


@given(_MATCHES, _MATCHES, _MATCHES)
def test_every_feature_is_a_share_and_has_one_weight(words, windows, meant):
    facts = QueryStats(1000, FACTS.frequencies, neighbours=(("quay", "crane"),))
    found = features_of(words, windows, meant, facts)
    assert set(found) == {match.message_id for match in (*words, *windows, *meant)} - _nowhere(words, windows, meant)
    assert all(0.0 <= value <= 1.0 for features in found.values() for value in asdict(features).values())
    for fused in fuse(words, windows, meant, facts):
        features = asdict(found[fused.message_id])
        assert fused.parts == {name: weights.FEATURES[name] * value for name, value in features.items()}
        assert fused.score == pytest.approx(sum(fused.parts.values()))


def _nowhere(words: list[Match], windows: list[Match], meant: list[Match]) -> set[str]:
    """Messages of lists by words that score nothing at all."""
    scored = [some for some in (words, windows) if max((match.score for match in some), default=0.0) > 0]
    every = {match.message_id for some in (words, windows) for match in some}
    return every - {match.message_id for some in (*scored, meant) for match in some}


@given(_MATCHES, _MATCHES, _MATCHES, st.randoms())
def test_the_order_does_not_depend_on_the_order_within_lists(words, windows, meant, random):
    def mixed(matches: list[Match]) -> list[Match]:
        return random.sample(matches, len(matches))

    unique = list({match.message_id: match for match in windows}.values())
    assert fuse(mixed(words), mixed(unique), mixed(meant), FACTS) == fuse(words, unique, meant, FACTS)


@given(st.floats(-1, 1), st.floats(-1, 1), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_nearer_meaning_and_a_shorter_message_never_lower_a_score(near, far, short, long):
    near, far, short, long = max(near, far), min(near, far), min(short, long), max(short, long)

    def score(cosine: float, length: int) -> float:
        window = Match("a", 2.0, terms=("quay",), length=length)
        return fuse([], [window], [Match("a", cosine)], FACTS)[0].score

    assert score(near, short) >= score(far, long)


@given(_SCORES, _SCORES, _SCORES, st.floats(0.01, 1000))
def test_each_candidate_comes_once_whatever_the_scale_of_word_scores(words, windows, meant, factor):
    def lists(scale: float) -> list[Fused]:
        lexical = [_words(i, abs(score) * scale, "quay") for i, score in words]
        wide = [_words(i, abs(score) * scale, "crane") for i, score in windows]
        return fuse(lexical, wide, [Match(i, score) for i, score in meant], FACTS)

    plain, scaled = lists(1.0), lists(factor)
    assert len(set(_ids(plain))) == len(plain)
    assert set(_ids(plain)) <= {i for some in (words, windows, meant) for i, _ in some}
    scores = [one.score for one in plain]
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(scores))
    assert {one.message_id: one.score for one in scaled} == pytest.approx(
        {one.message_id: one.score for one in plain}, abs=1e-6
    )
