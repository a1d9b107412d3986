"""The bytes of revisions: every one comes back, whatever followed it, and thousands of them stay small."""

from __future__ import annotations

import hashlib
import itertools
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.files.content import Content
from daemon.records import blob_id
from tests.support.examples import examples
from tests.support.stores.replaying import edit, history, write


def _chained(versions: list[bytes]) -> list[Content]:
    """As a track keeps them: each is told of the one that followed."""
    kept = [Content(data) for data in versions]
    for older, newer in itertools.pairwise(kept):
        older.settle(newer)
    return kept


_PIECES = st.lists(st.sampled_from([b"", b"x", b"\0" * 1500, b"lines\n" * 400, bytes(range(256)) * 12]), max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_PIECES.map(b"".join), min_size=1, max_size=90))
def test_every_version_comes_back_with_its_own_size_hash_and_id(versions: list[bytes]) -> None:
    for data, kept in zip(versions, _chained(versions), strict=True):
        assert kept.data == data
        assert kept.size == len(data)
        assert kept.sha256 == hashlib.sha256(data).hexdigest()
        assert kept.id == blob_id(data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a" * 4000, b"a" * 4001),  # what is common at the front and at the end may overlap
        (b"a" * 4001, b"a" * 4000),
        (b"ab" * 2000, b"ab" * 3000 + b"a"),
        (b"a" * 3000 + b"b" * 3000, b"a" * 3000 + b"c" + b"b" * 3000),
        (b"a" * 3000, b""),
        (b"a" * 3000, b"b" * 3000),
        (b"\r\n" * 1024, b"\n" * 1024),
    ],
)
def test_a_difference_leads_back_where_beginning_and_end_are_alike(old: bytes, new: bytes) -> None:
    first, second = _chained([old, new])
    assert (first.data, second.data) == (old, new)


def test_an_old_version_costs_a_bounded_number_of_steps_and_is_right() -> None:
    versions = [b"head\n" * 1000 + b"%d" % n + b"\ntail" * 1000 for n in range(500)]
    kept = _chained(versions)
    assert [one.data for one in kept] == versions
    whole = sum(one._data is not None for one in kept)
    assert 2 <= whole <= 500 // 32


def test_a_version_that_came_back_settles_into_itself_without_a_loop() -> None:
    a, b = Content(b"a" * 5000), Content(b"a" * 5000 + b"b")
    a.settle(b)
    b.settle(a)
    a.settle(a)
    assert (a.data, b.data) == (b"a" * 5000, b"a" * 5000 + b"b")


def test_contents_are_the_same_when_their_bytes_are() -> None:
    old, new = _chained([b"a" * 5000, b"a" * 5000 + b"b"])
    known = {blob_id(b"x"): b"x"}
    blob = Content(None, id_=blob_id(b"x"), load=known.get)
    assert old == Content(b"a" * 5000)
    assert old != new
    assert blob == Content(b"x")
    assert blob != Content(b"y")
    assert hash(blob) == hash(Content(b"x"))
    assert (blob.size, blob.data, blob.sha256) == (1, b"x", hashlib.sha256(b"x").hexdigest())


def test_a_blob_that_is_not_archived_has_an_id_and_nothing_else() -> None:
    gone = Content(None, id_="0" * 40, load={}.get)
    assert (gone.id, gone.data, gone.size, gone.sha256) == ("0" * 40, None, -1, "")


def test_a_blob_is_not_held_in_memory_and_not_settled_into() -> None:
    data = b"a" * 5000
    blob = Content(None, id_=blob_id(data), load={blob_id(data): data}.get)
    before = Content(data + b"b")
    before.settle(blob)
    assert before.data == data + b"b"
    assert blob._data is None
    assert blob.data == data


def test_5000_edits_of_100_kb_stay_small_and_each_version_is_right() -> None:
    line = "".join(random.Random(1).choices("abcdefgh ", k=99)) + "\n"
    text = "mark 0\n" + line * 1000
    events = [write(0, "/w/a", text)]
    events += [edit(n + 1, "/w/a", f"mark {n}\n", f"mark {n + 1}\n") for n in range(5000)]
    tracemalloc.start()
    try:
        found = history("/w/a", events)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 40 << 20  # 500 MB when each is kept whole
    assert len(found.revisions) == 5001
    for n in (0, 1, 63, 64, 65, 2500, 4999, 5000):
        assert found.revisions[n].content == f"mark {n}\n{line * 1000}".encode()
        assert found.revisions[n].proven
