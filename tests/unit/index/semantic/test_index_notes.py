"""The notes' collection over a real embedded Chroma: what is found and for whom, and that messages are as without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daemon.embed import Vector
from daemon.errors import BadInput, IndexBroken
from daemon.index import Entry, Filters, NoteRow, VectorRow
from daemon.index.semantic import Semantic
from daemon.index.semantic.process import WorkerIndex
from daemon.model import Chunk, Document
from daemon.worker import Worker

DIMS = 16


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).standard_normal(DIMS).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def note(number: int, *, owner: str = "house", **more: Any) -> NoteRow:
    """A note whose vector is `unit(number)`."""
    fields: dict[str, Any] = {"target": "shop", "question": "why", "created": 5, "text": f"text {number}"}
    return NoteRow(f"{owner}-{number}", owner, vector=unit(number), **(fields | more))


def opened(root: Path, fingerprint: str = "model-1") -> Semantic:
    return Semantic(root / "semantic", fingerprint, DIMS)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Semantic]:
    made = opened(tmp_path)
    yield made
    made.close()


def found(index: Semantic, number: int, owner: str = "house", limit: int = 30, **more: Any) -> list[str]:
    return [match.id for match in index.notes.query(unit(number), owner, limit, **more)]


def test_the_nearest_note_comes_first_with_its_target_and_similarity(index: Semantic):
    index.notes.upsert([note(number, target=f"target {number}") for number in range(20)])
    best, *others = index.notes.query(unit(7), "house", 5)
    assert (best.id, best.target) == ("house-7", "target 7")
    assert best.score == pytest.approx(1, abs=1e-4)
    assert len(others) == 4
    assert [each.score for each in others] == sorted((each.score for each in others), reverse=True)


def test_nothing_is_found_where_nothing_is(index: Semantic):
    assert found(index, 1) == []
    assert index.notes.ids("house") == set()
    assert index.notes.count() == 0
    index.notes.probe()
    index.notes.remove(["house-1"])


def test_archives_that_share_a_collection_see_their_own_notes_only(index: Semantic):
    index.notes.upsert([note(1), note(1, owner="other"), note(2, owner="other", target="barn")])
    assert found(index, 1, "house") == ["house-1"]
    assert index.notes.ids("other") == {"other-1", "other-2"}
    assert index.notes.ids("other", "barn") == {"other-2"}
    assert index.notes.ids("house", "barn") == set()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {"house-1", "house-2", "house-3"}),
        ({"besides": "why"}, {"house-2", "house-3"}),
        ({"until": 7}, {"house-1", "house-2"}),
        ({"until": 6, "besides": "why"}, set()),
        ({"limit": 0}, set()),
    ],
)
def test_what_a_question_may_not_see_is_left_out(index: Semantic, asked: dict[str, Any], expected: set[str]):
    index.notes.upsert([note(1), note(2, question="how", created=7), note(3, question="how", created=8)])
    assert set(found(index, 1, **asked)) == expected


def test_what_may_be_seen_is_found_among_many_that_may_not(index: Semantic):
    index.notes.upsert([note(number) for number in range(700)] + [note(1000, question="how")])
    assert found(index, 3, limit=5, besides="why") == ["house-1000"]


def test_removed_notes_are_gone_and_the_others_are_not(index: Semantic):
    index.notes.upsert([note(number) for number in range(1200)])
    assert index.notes.count() == 1200
    index.notes.remove([f"house-{number}" for number in range(1100)])
    assert index.notes.ids("house") == {f"house-{number}" for number in range(1100, 1200)}
    assert found(index, 5, limit=200).count("house-5") == 0
    assert found(index, 1150)[0] == "house-1150"
    index.notes.probe()


def test_notes_that_are_replaced_again_and_again_stay_to_be_found(index: Semantic):
    for turn in range(25):
        index.notes.upsert([note(1000 * turn + number) for number in range(60)])
        index.notes.remove([f"house-{1000 * (turn - 1) + number}" for number in range(60)])
    assert all(found(index, 24_000 + number)[0] == f"house-{24_000 + number}" for number in range(60))


def test_messages_are_counted_searched_and_proven_as_without_notes(index: Semantic, tmp_path: Path, worker: Worker):
    entry = Entry(Document("m1", "ses_1", (), ()), "user", 5, 0, "", "prj", "/p")
    index.upsert([VectorRow(Chunk("m1", 0, "a message", ("prompt",), ()), unit(1), entry)])
    before = index.query(unit(1), Filters(), 10)
    index.notes.upsert([note(number) for number in range(1, 80)])
    assert index.query(unit(1), Filters(), 10) == before
    assert (index.count(), index.notes.count()) == (1, 79)
    index.keep({"m1": ()})
    assert (index.count(), index.notes.count()) == (0, 79)
    index.upsert([VectorRow(Chunk("m1", 0, "a message", ("prompt",), ()), unit(1), entry)])
    index.close()
    WorkerIndex(worker, tmp_path / "semantic", "model-1", DIMS, sample=[("m1#0", unit(1))])


def test_two_fingerprints_never_mix(tmp_path: Path, index: Semantic):
    index.notes.upsert([note(1)])
    index.close()
    other = opened(tmp_path, "model-2")
    try:
        assert other.notes.ids("house") == set()
    finally:
        other.close()
    again = opened(tmp_path)
    try:
        assert found(again, 1) == ["house-1"]
    finally:
        again.close()


def test_an_index_that_was_opened_anew_is_not_taken_for_whole(tmp_path: Path, index: Semantic):
    index.notes.upsert([note(1)])
    index.notes.is_whole = True
    index.close()
    again = opened(tmp_path)
    try:
        assert not again.notes.is_whole
        assert found(again, 1) == ["house-1"]
    finally:
        again.close()


@pytest.mark.parametrize("vector", [np.zeros(DIMS), np.full(DIMS, np.nan), np.ones(DIMS - 1)])
def test_an_unfindable_vector_is_refused_and_nothing_is_written(index: Semantic, vector: Any):
    bad = NoteRow("house-2", "house", "shop", "why", 5, "text", vector.astype(np.float32))
    with pytest.raises(BadInput, match="house-2"):
        index.notes.upsert([note(1), bad])
    assert index.notes.count() == 0
    with pytest.raises(BadInput, match="the query"):
        index.notes.query(bad.vector, "house", 5)


def test_text_that_is_no_utf8_does_not_stop_the_others(index: Semantic):
    index.notes.upsert([note(1, text="half \ud800", facts={"about": "/p/\udcff"}), note(2)])
    assert found(index, 1) == ["house-1", "house-2"]


def test_what_fails_is_named_and_both_collections_share_the_patience(index: Semantic):
    index._client.delete_collection("reconstitution_notes_v1-model-1")
    for _ in range(3):
        with pytest.raises(IndexBroken, match="Chroma failed while listing its notes"):
            index.notes.ids("house")
    with pytest.raises(IndexBroken, match="not asked any more after 3 equal failures"):
        index.count()


def test_a_closed_index_says_so(index: Semantic):
    index.close()
    with pytest.raises(IndexBroken, match="closed"):
        index.notes.count()


@pytest.mark.parametrize("file", ["data_level0.bin", "header.bin"])
def test_damaged_notes_are_found_out_before_they_are_opened(tmp_path: Path, index: Semantic, worker: Worker, file: str):
    index.notes.upsert([note(number) for number in range(2500)])
    index.close()
    WorkerIndex(worker, tmp_path / "semantic", "model-1", DIMS).close()
    stored = next((tmp_path / "semantic").glob(f"*/{file}"))
    stored.write_bytes(stored.read_bytes()[: stored.stat().st_size // 2])
    with pytest.raises(IndexBroken):
        WorkerIndex(worker, tmp_path / "semantic", "model-1", DIMS)
