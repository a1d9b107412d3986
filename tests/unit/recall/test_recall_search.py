"""A query becomes an answer, by a real archive and a real lexical index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.errors import BadRequest, IndexBroken, ModelUnavailable, ReconstituteError
from daemon.index import Filters
from daemon.ingest.outbox import LexicalDrain
from daemon.model import Json
from daemon.recall.query import Recall
from daemon.recall.search import RecallEngine
from tests.support.stores.recorded_sessions import MINUTE, FailingLexical, FailingModel, Recorded, call, recorded

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Recorded]:
    with recorded(tmp_path, {"car": "vehicle", "automobile": "vehicle"}) as made:
        made.session("ses_a", "/home/dev/shop", "Rate limits")
        made.say("ses_a", "user", "Please add a rate limit to the checkout service.")
        made.say(
            "ses_a", "assistant", "I set rateLimit to 5.", call("bash", output="rateLimit=5\n" * 50, command="env")
        )
        made.session("ses_b", "/home/dev/garage", f"Garage {SECRET}")
        made.say("ses_b", "user", "My automobile needs a page.")
        made.say("ses_b", "assistant", "The page for rateLimiter statistics is done.")
        made.index()
        yield made


def _ids(answer) -> list[str]:
    return [hit.message_id for hit in answer.hits]


def test_words_and_meaning_are_fused_and_a_message_is_one_hit(house: Recorded):
    answer = house.recall().search("rate limit checkout")
    assert answer.hits[0].message_id == "msg_0001"
    assert answer.hits[0].mode == "hybrid"
    assert len(set(_ids(answer))) == len(answer.hits)
    assert answer.degraded == ()


def test_meaning_finds_what_no_word_finds(house: Recorded):
    assert _ids(house.recall().search("car", match="semantic"))[0] == "msg_0003"
    answer = house.recall().search("car")
    assert answer.hits[0].message_id == "msg_0003"
    assert answer.hits[0].mode == "semantic"


def test_the_only_text_with_the_word_beats_newer_ones_of_similar_meaning(house: Recorded):
    house.session("ses_c", "/home/dev/mixed")
    only = house.say("ses_c", "user", "Among many other things an automobile is parked beside the long old wall.")
    house.say("ses_c", "user", "vehicle")
    house.index()
    assert set(_ids(house.recall().search("automobile"))[:2]) == {only, "msg_0003"}
    answer = house.recall().search("automobile wall")
    assert _ids(answer)[0] == only


def test_an_exact_word_pair_ranks_above_texts_with_one_of_the_words(house: Recorded):
    house.session("ses_c", "/home/dev/shell")
    phrase = house.say("ses_c", "assistant", "sh: 1: foo: not found, and so the build was stopped early that day")
    house.say("ses_c", "assistant", "Found 1 matches")
    house.index()
    assert _ids(house.recall().search("not found"))[0] == phrase


def test_absent_words_are_named_and_results_are_called_similar(house: Recorded):
    answer = house.recall().search("car")
    assert any("no current text contains 'car'" in warning for warning in answer.warnings)
    nothing = house.recall().search("ECONNREFUSED")
    assert nothing.hits == ()
    assert any("no current text contains 'econnrefused'" in warning for warning in nothing.warnings)
    assert house.recall().search("automobile").warnings == ()


def test_a_word_that_is_only_part_of_longer_ones_is_not_said_to_be_nowhere(house: Recorded):
    answer = house.recall().search("utomob")
    assert any("'utomob' occurs only inside longer words" in warning for warning in answer.warnings)


def test_a_half_embedded_archive_ranks_what_has_the_words_first(house: Recorded):
    house.session("ses_c", "/home/dev/half")
    house.clock -= 60 * MINUTE  # older than what is embedded
    late = house.say("ses_c", "user", "the harbour crane moves slowly over the northern quay at night")
    LexicalDrain(house.archive, house.lexical, 1024).step(100)
    answer = house.recall().search("how slowly does the crane over the northern quay move")
    assert _ids(answer)[0] == late


def test_an_absent_identifier_finds_nothing_or_its_nearest_spelling_with_a_warning(house: Recorded):
    answer = house.recall().search("quuxLimitz")
    assert answer.hits == ()
    assert any("'quuxLimitz'" in warning for warning in answer.warnings)
    answer = house.recall().search("rateLimitz")
    assert answer.hits
    assert any("'rateLimitz'; these are results for 'rateLimit" in warning for warning in answer.warnings)


def test_an_absent_identifier_in_a_question_leaves_only_similar_results(house: Recorded):
    answer = house.recall().search("what about getCar for my automobile page")
    assert answer.hits
    assert any("no current text contains 'getCar'" in warning for warning in answer.warnings)


def test_a_longer_name_stands_below_the_name_itself_whatever_its_rank(house: Recorded):
    ids = _ids(house.recall().search("rateLimit"))
    assert set(ids[:2]) == {"msg_0001", "msg_0002"}
    assert ids[2:] in ([], ["msg_0004"])


def test_literal_is_the_text_as_it_stands_newest_first(house: Recorded):
    answer = house.recall().search("RATELIMIT", match="literal")
    assert _ids(answer) == ["msg_0004", "msg_0002"]
    assert {hit.mode for hit in answer.hits} == {"literal"}
    assert house.recall().search("rate limit of", match="literal").hits == ()


def test_a_hit_says_where_it_is_from_and_its_title_is_redacted(house: Recorded):
    hit = house.recall().search("automobile").hits[0]
    assert (hit.session_id, hit.directory, hit.role, hit.kind) == ("ses_b", "/home/dev/garage", "user", "prompt")
    assert SECRET not in hit.title
    assert "automobile" in hit.snippet


def test_filters_hold_in_every_mode(house: Recorded):
    for mode in ("literal", "semantic", "hybrid"):
        hits = house.recall().search("page", match=mode, filters=Filters(session_id="ses_b")).hits
        assert hits
        assert {hit.session_id for hit in hits} == {"ses_b"}
        assert house.recall().search("page", match=mode, filters=Filters(directory="/home/dev/none")).hits == ()


def test_the_limit_holds_and_of_equals_the_newer_comes_first(house: Recorded):
    house.session("ses_c", "/home/dev/twins")
    older, newer = (house.say("ses_c", "user", "the same zebra words") for _ in range(2))
    house.index()
    answer = house.recall(semantic=None).search("zebra", limit=1)
    assert _ids(answer) == [newer]
    twins = Filters(session_id="ses_c")
    assert _ids(house.recall().search("zebra", match="semantic", limit=2, filters=twins)) == [newer, older]


def test_a_message_with_many_matching_parts_does_not_crowd_others_out(house: Recorded):
    house.session("ses_c", "/home/dev/crowd")
    house.say("ses_c", "user", *[f"walrus number {number}" for number in range(120)])
    house.say("ses_c", "user", "one walrus")
    house.index()
    assert len(house.recall().search("walrus", match="literal", limit=2).hits) == 2


def test_what_openCode_deleted_is_found_and_said_to_be_deleted(house: Recorded):
    house.delete("msg_0003")
    answer = house.recall().search("automobile")
    assert any("deleted in OpenCode" in warning for warning in answer.warnings)


def test_without_a_semantic_index_hybrid_answers_by_words_and_says_so(house: Recorded):
    answer = house.recall(semantic=None).search("automobile")
    assert _ids(answer) == ["msg_0003"]
    assert any(warning.startswith("meaning was not searched") for warning in answer.warnings)
    assert answer.degraded


@pytest.mark.parametrize(("mode", "is_needed"), [("semantic", True), ("hybrid", False)])
def test_a_question_waits_longer_for_the_semantic_index_if_words_cannot_answer(
    house: Recorded, mode: str, *, is_needed: bool
):
    waits: list[bool] = []
    house.recall(prepare=waits.append).search("automobile", match=mode)
    assert waits == [is_needed]


@pytest.mark.parametrize("error", [ModelUnavailable("the model is down"), RuntimeError("rust panicked")])
def test_a_failing_model_is_reported_and_never_an_error_in_hybrid(house: Recorded, error: Exception):
    told: list[tuple[str, Exception]] = []
    recall = house.recall(embedder=FailingModel(error), on_failure=lambda index, error: told.append((index, error)))
    answer = recall.search("automobile")
    assert _ids(answer) == ["msg_0003"]
    assert any(str(error) in warning for warning in answer.warnings)
    assert told == [("semantic", error)]
    with pytest.raises(ReconstituteError, match=str(error)):
        recall.search("automobile", match="semantic")


def test_a_closed_semantic_index_is_reported_and_words_still_answer(house: Recorded):
    house.vectors.close()
    answer = house.recall().search("automobile")
    assert _ids(answer) == ["msg_0003"]
    assert answer.degraded
    with pytest.raises(ReconstituteError):
        house.recall().search("automobile", match="semantic")


def test_a_torn_lexical_index_is_reported_and_meaning_still_answers(house: Recorded):
    torn = house.recall(lexical=FailingLexical(IndexBroken("the word index is torn")))
    answer = torn.search("car")
    assert answer.hits[0].message_id == "msg_0003"
    assert any("the word index is torn" in warning for warning in answer.warnings)
    with pytest.raises(IndexBroken, match="torn"):
        torn.search("car", match="literal")


def test_semantic_filters_hold_while_the_lexical_index_is_damaged(house: Recorded):
    told: list[str] = []
    mine = Filters(directory="/home/dev/garage")
    torn = house.recall(
        lexical=FailingLexical(IndexBroken("the word index is torn")), on_failure=lambda index, _: told.append(index)
    )
    whole = _ids(house.recall().search("car", "semantic", filters=mine))
    assert whole == _ids(torn.search("car", "semantic", filters=mine)) == ["msg_0003", "msg_0004"]
    assert set(told) == {"lexical"}  # the semantic index did nothing wrong and must not be rebuilt
    house.lexical.remove([f"msg_000{n}" for n in range(1, 5)])
    house.archive.enqueue_all("lexical")  # it will have them again, but has not yet
    assert _ids(house.recall().search("car", "semantic", filters=mine)) == whole


def test_when_neither_index_answers_the_error_is_that_of_the_words(house: Recorded):
    recall = house.recall(semantic=None, lexical=FailingLexical(IndexBroken("no words")))
    with pytest.raises(IndexBroken, match="no words"):
        recall.search("automobile")


@pytest.mark.parametrize(
    ("query", "mode", "limit", "says"),
    [
        ("  ", "hybrid", 10, "empty"),
        ("x" * 10_001, "hybrid", 10, "10001"),
        ("(", "regex", 10, "regular expression"),
        ("x", "hybrid", 0, "limit 0"),
        ("x", "hybrid", 201, "limit 201"),
    ],
)
def test_a_senseless_search_is_refused_with_what_is_wrong(house: Recorded, query, mode, limit, says):
    with pytest.raises(BadRequest, match=says):
        house.recall().search(query, mode, limit)


def test_messages_that_wait_to_be_indexed_are_announced(house: Recorded):
    house.say("ses_b", "user", "not yet indexed")
    answer = house.recall().search("indexed")
    assert any("1 message is not searchable by words" in warning for warning in answer.warnings)


def test_a_hit_the_archive_does_not_have_is_left_out_and_said(house: Recorded, tmp_path: Path):
    with recorded(tmp_path / "other") as other:
        other.session("ses_x", "/x")
        answer = RecallEngine(other.archive, house.lexical, lambda: house.vectors, house.embedder).search("automobile")
    assert answer.hits == ()
    assert any("not in the archive" in warning for warning in answer.warnings)


@pytest.mark.parametrize("match", ["literal", "smart", "hybrid"])
@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
def test_results_can_be_skipped(house: Recorded, match: str, sort: str):
    """Nothing is advised behind the last result: the query has found something."""
    for number in range(12):
        house.say("ses_b", "user", f"The heron came back, for the time {number}.")
    house.index()

    def page(**more: int) -> Json:
        return house.recall().answer(Recall(query="heron", match=match, sort=sort, **more))

    everything = [result["messageID"] for result in page(results=12)["results"]]
    assert len(everything) == 12
    pages = [page(results=5, offset=offset) for offset in (0, 5, 10)]
    assert [result["messageID"] for answer in pages for result in answer["results"]] == everything
    assert [answer["truncated"] for answer in pages] == [True, True, False]
    beyond = page(results=5, offset=12)
    assert (beyond["results"], beyond["suggestions"], beyond["nearMisses"]) == ([], [], [])
    assert not [warning for warning in beyond["warnings"] if "heron" in warning]
