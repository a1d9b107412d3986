"""A session that has more hits than a list of candidates holds does not hide the others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daemon.index import Filters, Match
from daemon.model import Json, Session
from daemon.recall.candidates.lists import CandidateLists
from daemon.recall.query import Recall
from daemon.recall.ranking.grouping import together
from tests.support.stores.recorded_sessions import Recorded, WordEmbedder, call, recorded

QUIET = [f"quiet{number}" for number in range(6)]
MODES = ("smart", "literal", "regex", "fuzzy", "semantic", "hybrid")


def test_a_chunk_of_two_looks_counts_once_though_only_one_tells_its_text():
    told = Match("msg_a", 0.9, kind="prompt", text="a text", record="msg_a#0")
    bare = [Match("msg_a", 0.9, record="msg_a#0"), Match("msg_a", 0.8, record="msg_a#1")]
    lists = together(CandidateLists({"semantic": [told]}), CandidateLists({"semantic": bare})).lists
    assert lists == {"semantic": [told, bare[1]]}
    assert together(CandidateLists({"semantic": bare}), CandidateLists({"semantic": [told]})).lists == lists


def _session(made: Recorded, sid: str, project: str, directory: str) -> None:
    made.clock += 60_000
    batch = made.archive.batch()
    batch.session(Session(sid, project, directory, "A title", made.clock, made.clock, b"{}"), "test", 2)
    made.archive.commit(batch)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """The quiet sessions come first and the noisy one last: it is the newest, and has the shortest texts."""
    with recorded(tmp_path_factory.mktemp("house")) as made:
        for number, quiet in enumerate(QUIET):
            _session(made, quiet, f"prj{number // 2}", f"/work/{quiet}")
            made.say(quiet, "user", f"the kubernetes ingress setup of team {number}, please look at ingress_class")
            made.say(quiet, "assistant", f"Your kubernetes ingress needs class nginx, variant {number}: ingress_class.")
        _session(made, "noisy", "prj0", "/work/noisy")
        for number in range(120):
            made.say("noisy", "user", f"kubernetes ingress attempt {number} ingress_class")
            made.say("noisy", "assistant", f"kubernetes ingress attempt {number} ingress_class failed")
        _session(made, "tools", "prj0", "/work/tools")
        for number in range(60):
            made.say("tools", "assistant", call("bash", output=f"kubelet line {number} of the log", command="make log"))
        _session(made, "talk", "prj1", "/work/talk")
        made.say("talk", "assistant", call("bash", output="kubelet line of another log", command="make log"))
        made.index()
        yield made


def _ask(house: Recorded, query: str, **asked: Any) -> Json:
    return house.recall(budget_s=60.0).answer(Recall(query=query, **asked))


def _sessions(answer: Json) -> list[str]:
    return [one["sessionID"] for one in answer["results"]]


@pytest.mark.parametrize("query", ["kubernetes ingress", "why is the kubernetes ingress broken in the cluster"])
@pytest.mark.parametrize("match", MODES)
def test_one_session_gets_no_more_than_half_of_a_page_in_any_mode(house: Recorded, match: str, query: str):
    if match in {"literal", "regex"} and " " in query:
        query = "kubernetes ingress"
    answer = _ask(house, query, match=match)
    assert len(answer["results"]) == 10
    assert Counter(_sessions(answer))["noisy"] <= 5, _sessions(answer)
    assert len(set(_sessions(answer)) & set(QUIET)) >= 3
    scores = [one["score"] for one in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert answer["truncated"] is True


@pytest.mark.parametrize("query", ["ingress_class", '"kubernetes ingress"', "what is the ingress_class of the nginx"])
@pytest.mark.parametrize("match", ["smart", "hybrid"])
def test_names_and_phrases_are_found_in_the_other_sessions_too(house: Recorded, match: str, query: str):
    answer = _ask(house, query, match=match)
    assert Counter(_sessions(answer))["noisy"] <= 5, _sessions(answer)
    assert {one["why"]["confidence"] for one in answer["results"]} <= {"high", "medium"}


@pytest.mark.parametrize("match", MODES)
def test_groups_are_not_starved_by_one_session(house: Recorded, match: str):
    answer = _ask(house, "kubernetes ingress", match=match, group="session", results=7)
    assert set(_sessions(answer)) == {*QUIET, "noisy"}
    every = _ask(house, "kubernetes ingress", match=match, group="session", results=50)
    assert match == "semantic" or every["truncated"] is False
    projects = _ask(house, "kubernetes ingress", match=match, group="project", results=3)
    assert {one["projectID"] for one in projects["results"]} == {"prj0", "prj1", "prj2"}


class _Listening(WordEmbedder):
    """A model that keeps what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Any) -> list[Any]:
        self.texts += texts
        return super().embed(texts)


class _Counted:
    """A semantic index that counts its questions."""

    def __init__(self, vectors: Any) -> None:
        self._vectors = vectors
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vectors, name)

    def query(self, *asked: Any, **more: Any) -> Any:
        self.asked += 1
        return self._vectors.query(*asked, **more)


def test_an_answer_that_takes_several_looks_embeds_its_question_once(house: Recorded):
    model, vectors = _Listening(), _Counted(house.vectors)
    recall = house.recall(embedder=model, semantic=vectors, budget_s=60.0)
    recall.answer(Recall(query="kubernetes ingress", match="semantic"))
    assert vectors.asked > 1
    assert model.texts == ["kubernetes ingress"]


def test_what_tools_printed_in_one_session_does_not_hide_another(house: Recorded):
    for match in ("literal", "smart", "hybrid"):
        assert "talk" in _sessions(_ask(house, "kubelet line", match=match)), match


class _Counting:
    """The word index, and what it was asked."""

    def __init__(self, lexical: Any) -> None:
        self._lexical = lexical
        self.asked: list[frozenset[str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lexical, name)

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        self.asked.append(filters.besides)
        return self._lexical.search(query, filters, limit, least_prose=least_prose)


SINGLE = {
    "a session that is asked for": {"query": "kubernetes ingress", "sessionID": "noisy"},
    "a directory with one session": {"query": "kubernetes ingress", "directory": "/work/noisy"},
    "few results": {"query": "kubernetes nginx variant 3"},
    "no more than one": {"query": "kubernetes ingress", "results": 1},
}


@pytest.mark.parametrize("asked", SINGLE.values(), ids=SINGLE)
def test_nobody_looks_twice_where_there_is_nothing_to_gain(house: Recorded, asked: Json):
    counting = _Counting(house.lexical)
    answer = house.recall(lexical=counting, budget_s=60.0).answer(Recall(match="smart", **asked))
    assert answer["results"]
    assert counting.asked == [frozenset()]


def test_the_second_look_leaves_out_the_session_that_fills_the_first(house: Recorded):
    counting = _Counting(house.lexical)
    house.recall(lexical=counting, budget_s=60.0).answer(Recall(query="kubernetes ingress", match="smart"))
    assert counting.asked == [frozenset(), frozenset({"noisy"})]


class _SlowSecond(_Counting):
    """Fault injection: an index whose second answer takes longer than anybody waits: until `gate` is open."""

    gate = threading.Event()

    def search(self, query: str, filters: Filters, limit: int, *, least_prose: int = 0) -> list[Match]:
        if filters.besides:
            self.gate.wait(60)
        return super().search(query, filters, limit, least_prose=least_prose)


def test_a_second_look_takes_about_as_long_as_the_first_at_most(house: Recorded):
    slow = _SlowSecond(house.lexical)
    began = time.monotonic()
    answer = house.recall(lexical=slow, budget_s=10.0).answer(Recall(query="kubernetes ingress", match="smart"))
    assert time.monotonic() - began < 30  # the gate is closed for a minute
    slow.gate.set()
    assert len(answer["results"]) == 10
    assert (answer["degradeKind"], answer["truncated"]) == ("none", True)


def test_two_looks_together_are_one_list_each_match_once_and_best_first():
    one, two, three = (Match(f"m{n}", score, "p", "prompt") for n, score in ((1, 3.0), (2, 2.0), (3, 2.5)))
    first = CandidateLists({"lexical": [one, two], "named": [two]}, warnings=["said"], states={"lexical": "used"})
    more = CandidateLists({"lexical": [three, two], "named": [three], "windows": [one]}, late=["late"], is_inside=True)
    both = together(first, more)
    assert both.lists == {"lexical": [one, three, two], "named": [two, three], "windows": [one]}
    assert (both.warnings, both.late, both.states, both.is_inside) == (["said"], [], {"lexical": "used"}, True)
    assert together(replace(more, lists={"phrase": [one]}), first).is_inside is False


def test_a_page_of_texts_that_nobody_looked_at_is_diverse_too(tmp_path: Path):
    """More texts hold the name in one session than are looked through for a page."""
    with recorded(tmp_path) as made:
        made.session("quiet", "/w")
        made.say("quiet", "user", "we once set max_shard_count and went on with other things for the rest of the day")
        made.session("noisy", "/w")
        for number in range(45):
            made.say("noisy", "user", f"max_shard_count {number}")
        made.index()
        assert "quiet" in _sessions(_ask(made, "max_shard_count", match="smart"))
