"""The guard over real stores, mutilated for real: what opens has its recall proven, what does not is named."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from daemon.errors import IndexBroken
from daemon.index import Entry, VectorRow
from daemon.index.semantic import Semantic
from daemon.index.semantic.process import WorkerIndex, park
from daemon.model import Chunk, Document
from daemon.worker import Worker

DIMS, ROWS, TIMEOUT_S = 32, 1400, 60
PRINT = "model-1"


def vectors(rows=ROWS):
    made = np.random.default_rng(5).standard_normal((rows, DIMS)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def rows_of(made):
    entry = Entry(Document("m", "s", ()), "user", 1, 0, "", "", "/")
    return [VectorRow(Chunk(f"m{n}", 0, f"text {n}"), vector, entry) for n, vector in enumerate(made)]


def sample(made=None, every=20):
    made = vectors() if made is None else made
    return [(f"m{n}#0", made[n]) for n in range(0, len(made), every)]


def check(place, held, fingerprint=PRINT, dims=DIMS, timeout_s=TIMEOUT_S):
    """Open it in a worker, which raises IndexBroken for what is not whole, and end that."""
    WorkerIndex(Worker(), place, fingerprint, dims, sample=held, timeout_s=timeout_s).close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """More than a thousand rows, so that Chroma has flushed its vector files, and a tail that it has not."""
    place = tmp_path_factory.mktemp("store") / "semantic"
    index = Semantic(place, PRINT, DIMS)
    index.upsert(rows_of(vectors()))
    index.close()
    return place


@pytest.fixture
def copy(store, tmp_path):
    place = tmp_path / "semantic"
    shutil.copytree(store, place)
    return place


def segment(place):
    (found,) = (path for path in place.iterdir() if path.is_dir())
    return found


def halve(name):
    def harm(place):
        os.truncate(segment(place) / name, (segment(place) / name).stat().st_size // 2)

    return harm


def empty(name):
    return lambda place: os.truncate(segment(place) / name, 0)


def delete(name):
    return lambda place: (segment(place) / name).unlink()


def noise(name):
    def harm(place):
        path = segment(place) / name
        path.write_bytes(random.Random(3).randbytes(path.stat().st_size))

    return harm


def grow(name):
    return lambda place: os.truncate(segment(place) / name, 3_560_000_000_000)


def flip_database(offset):
    def harm(place):
        path = place / "chroma.sqlite3"
        data = bytearray(path.read_bytes())
        data[offset if offset < 100 else offset % len(data)] ^= 0xFF
        path.write_bytes(data)

    return harm


HARMS = {
    **{
        f"{what.__name__} {name}": what(name)
        for what in (halve, empty, delete)
        for name in ("header.bin", "data_level0.bin", "link_lists.bin")
    },
    "halve length.bin": halve("length.bin"),
    "delete index_metadata.pickle": delete("index_metadata.pickle"),
    "noise data_level0.bin": noise("data_level0.bin"),
    "grow link_lists.bin": grow("link_lists.bin"),
    "delete the segment": lambda place: shutil.rmtree(segment(place)),
    "halve the database": lambda place: os.truncate(
        place / "chroma.sqlite3", (place / "chroma.sqlite3").stat().st_size // 2
    ),
    "delete the database": lambda place: (place / "chroma.sqlite3").unlink(),
    "empty the database": lambda place: os.truncate(place / "chroma.sqlite3", 0),
    "flip the database's header": flip_database(5),
    **{f"flip the database at page {page}": flip_database(4096 * page) for page in (1, 20, 60)},
}
CERTAIN = {
    "grow link_lists.bin",
    "delete the segment",
    "halve data_level0.bin",
    "empty data_level0.bin",
    "halve header.bin",
    "noise data_level0.bin",
    "delete the database",
    "empty the database",
    "halve the database",
    "flip the database's header",
}


@pytest.mark.parametrize("harm", HARMS)
def test_damage_is_named_or_recall_is_proven_whole(copy, harm):
    HARMS[harm](copy)
    try:
        check(copy, sample())
    except IndexBroken as error:
        verdict = "broken" if str(copy) in str(error) else f"unnamed: {error}"
    else:
        # said to be healthy: then every single row must be found (in a child of its own, in case it is not)
        check(copy, sample(every=1))
        verdict = "whole"
    assert verdict == "broken" or (verdict == "whole" and harm not in CERTAIN)


@pytest.mark.usefixtures("worker_of_its_own")
def test_a_whole_store_passes_and_is_unchanged(copy):
    check(copy, sample(every=7))
    index = Semantic(copy, PRINT, DIMS)
    assert index.count() == ROWS
    index.close()


def test_vectors_that_are_not_in_the_store_fail_it(copy):
    with pytest.raises(IndexBroken, match="m0#0"):
        check(copy, [("m0#0", vectors()[1])])
    with pytest.raises(IndexBroken, match="gone#0"):
        check(copy, [("gone#0", vectors()[0])])


def test_no_store_yet_and_a_new_fingerprint_are_healthy(copy, tmp_path):
    # `check` raises for whatever is not.
    check(tmp_path / "none" / "semantic", [])
    check(copy, [], "model-2", 2 * DIMS)


@pytest.mark.usefixtures("worker_of_its_own")
def test_a_store_of_another_version_is_refused_with_that_reason(copy):
    (copy / "version").write_text("chromadb 0.6.3\n")
    with pytest.raises(IndexBroken, match=r"0\.6\.3"):
        check(copy, sample())


@pytest.mark.usefixtures("worker_of_its_own")
def test_a_store_that_cannot_be_opened_in_time_is_broken(copy):
    with pytest.raises(IndexBroken, match=r"no answer in 0\.05 s; it must be rebuilt"):
        check(copy, sample(), timeout_s=0.05)


@pytest.mark.usefixtures("worker_of_its_own")
def test_a_crash_in_the_child_is_told_by_its_signal_and_leaves_us_alive(copy):
    halve("header.bin")(copy)  # chromadb 1.5.9 reads past the end of what is left
    with pytest.raises(IndexBroken, match=r"it cannot be opened: its process has ended .SIG(SEGV|BUS|ABRT)"):
        check(copy, sample())


def test_parking_keeps_one_damaged_store_and_makes_room_for_a_new_one(copy):
    (copy / "mark").write_text("first")
    aside = park(copy)
    assert not copy.exists()
    assert (aside / "mark").read_text() == "first"
    index = Semantic(copy, PRINT, DIMS)
    index.close()
    (copy / "mark").write_text("second")
    assert park(copy) == aside
    assert (aside / "mark").read_text() == "second"
    assert sorted(path.name for path in copy.parent.iterdir()) == [aside.name]
    assert park(copy) == aside, "parking what is not there is no error"
    assert aside.exists()


WRITER = """
    import sys
    import numpy as np
    from pathlib import Path
    from daemon.index import Entry, VectorRow
    from daemon.index.semantic import Semantic
    from daemon.model import Chunk, Document

    made = np.load(sys.argv[2])
    entry = Entry(Document("m", "s", ()), "user", 1, 0, "", "", "/")
    index = Semantic(Path(sys.argv[1]), "model-1", made.shape[1])
    for start in range(0, len(made), 100):
        index.upsert([VectorRow(Chunk(f"m{n}", 0, f"text {n}"), made[n], entry) for n in range(start, start + 100)])
        print(start + 100, flush=True)
"""


def test_after_a_kill_the_guard_tells_a_whole_store_from_a_damaged_one(tmp_path):
    place, data = tmp_path / "semantic", tmp_path / "vectors.npy"
    made = vectors(4000)
    np.save(data, made)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), place, data], stdout=subprocess.PIPE, text=True
    )
    written = 0
    for line in process.stdout:
        written = int(line)
        if written >= 1500:
            process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    try:
        check(place, sample(made[:written], every=9))
    except IndexBroken:
        park(place)
        index = Semantic(place, PRINT, DIMS)
        index.upsert(rows_of(made[:written]))
        index.close()
    # `check` raises if a single row is missing.
    check(place, sample(made[:written], every=1))
    assert written >= 1500


def test_a_cleared_index_holds_nothing_of_any_model(copy):
    index = WorkerIndex(Worker(), copy, PRINT, DIMS)
    index.clear()
    index.close()
    for fingerprint in (PRINT, "model-2"):
        again = WorkerIndex(Worker(), copy, fingerprint, DIMS)
        assert again.count() == 0
        again.close()
