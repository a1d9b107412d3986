"""The semantic index over a real embedded Chroma: what is found, what is refused, what a failure becomes."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import time
import zlib
from contextlib import contextmanager
from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings

from daemon.errors import BadInput, IndexBroken, Retry
from daemon.index import Entry, Filters, NoteRow, VectorRow
from daemon.index.semantic import PREFIX, Semantic
from daemon.model import Chunk, Document
from tests.support.processes.ports import free_port

DIMS = 16
ANY = Filters()


def unit(seed, dims=DIMS):
    vector = np.random.default_rng(seed).standard_normal(dims).astype(np.float32)
    return vector / np.linalg.norm(vector)


def row(
    mid, number=0, *, seed=None, text="some text", kinds=("prompt",), tools=(), paths=(), session="ses_1", **fields
):
    values = {
        "role": "user",
        "created": 5,
        "message_index": 2,
        "session_title": "",
        "project_id": "prj",
        "directory": "/p",
    }
    entry = Entry(Document(mid, session, (), paths), **{**values, **fields})
    vector = unit(zlib.crc32(f"{mid} {number}".encode()) if seed is None else seed)
    return VectorRow(Chunk(mid, number, text, kinds, tools), vector, entry)


@pytest.fixture
def index(tmp_path):
    made = Semantic(tmp_path / "semantic", "model-1", DIMS)
    yield made
    made.close()


def stored(index, *records):
    return dict(zip(records, index._collection.get(ids=list(records))["metadatas"], strict=True))


def test_the_nearest_chunk_comes_first_with_its_similarity(index):
    index.upsert([row(f"m{n}", seed=n, text=f"text {n}", tools=("bash",)) for n in range(20)])
    best, *others = index.query(unit(7), ANY, 5)
    assert (best.message_id, best.text, best.kind, best.tool) == ("m7", "text 7", "prompt", "bash")
    assert best.score == pytest.approx(1, abs=1e-5)
    assert [m.score for m in others] == sorted((m.score for m in others), reverse=True)


def test_an_empty_index_answers_nothing(index):
    assert index.query(unit(1), ANY, 5) == []
    assert index.count() == 0
    index.probe([])


def test_metadata_is_as_designed_and_leaves_no_stale_keys(index):
    index.upsert(
        [row("m1", paths=("/p/a.py", "/p/b.py"), kinds=("prompt", "title"), tools=("edit",), session_title="T")]
    )
    assert stored(index, "m1#0")["m1#0"] == {
        "session_id": "ses_1",
        "session_title": "T",
        "message_id": "m1",
        "message_index": 2,
        "role": "user",
        "created_at": 5,
        "project_id": "prj",
        "directory": "/p",
        "deleted": False,
        "paths": ["/p/a.py", "/p/b.py"],
        "kinds": ["prompt", "title"],
        "tools": ["edit"],
    }
    index.upsert([row("m1", kinds=("answer",))])
    assert {k: v for k, v in stored(index, "m1#0")["m1#0"].items() if k in {"paths", "kinds", "tools"}} == {
        "kinds": ["answer"]
    }


def written(index):
    """How many records Chroma's log of writes has had."""
    with contextlib.closing(sqlite3.connect(index._place / "chroma.sqlite3")) as database:
        (last,) = database.execute("SELECT max(seq_id) FROM embeddings_queue").fetchone()
    return last


def test_rows_that_are_there_as_they_are_are_not_written_again(index):
    rows = [row(f"m{n}", seed=n, tools=("bash",), paths=("/p/a",), text=f"text {n} \ud800") for n in range(700)]
    index.upsert(rows)
    had = written(index)
    index.upsert(rows)
    assert written(index) == had
    index.upsert([*rows[:5], row("m5", seed=5, text="other"), row("m6", seed=6666, text="text 6"), *rows[7:]])
    assert written(index) == had + 2
    assert [m.text for m in index.query(unit(5), ANY, 1)] == ["other"]
    assert [m.message_id for m in index.query(unit(6666), ANY, 1)] == ["m6"]


def test_what_is_only_told_anew_of_a_row_leaves_its_vector_and_text(index):
    index.upsert([row(f"m{n}", seed=n, text=f"text {n}", tools=("bash",), session_title="old") for n in range(20)])
    index.prepare()
    had = written(index)
    index.upsert([row("m7", seed=7, text="text 7", kinds=("answer",), session_title="new")])
    assert written(index) == had + 1
    data = stored(index, "m7#0")["m7#0"]
    assert (data["session_title"], data["kinds"], "tools" in data) == ("new", ["answer"], False)
    (match,) = index.query(unit(7), Filters(kinds=("answer",)), 5)
    assert (match.text, match.kind, match.tool) == ("text 7", "answer", "")
    assert match.score == pytest.approx(1, abs=1e-5)


def test_filters_match_after_a_failed_write_is_repeated(index, monkeypatch):
    index.upsert([row("m1", seed=1)])
    index.prepare()
    anew = [row("m2", seed=2), row("m1", seed=1, kinds=("answer",))]
    with monkeypatch.context() as broken:
        broken.setattr(index._collection, "update", lambda **_: (_ for _ in ()).throw(OSError("torn")))
        with pytest.raises(IndexBroken, match="torn"):
            index.upsert(anew)
    index.upsert(anew)
    assert [m.message_id for m in index.query(unit(2), Filters(kinds=("prompt",)), 5, lambda *_: None)] == ["m2"]
    assert [m.message_id for m in index.query(unit(2), Filters(kinds=("answer",)), 5, lambda *_: None)] == ["m1"]


def test_an_upsert_replaces_text_and_vector_and_the_last_equal_id_counts(index):
    index.upsert([row("m1", seed=1, text="old")])
    index.upsert([row("m1", seed=2, text="newer"), row("m1", seed=3, text="newest")])
    (match,) = index.query(unit(3), ANY, 5)
    assert (match.text, index.count()) == ("newest", 1)
    assert match.score == pytest.approx(1, abs=1e-5)


def test_more_rows_than_chroma_takes_at_once_are_paged(index):
    index.upsert([row(f"m{n}", seed=n) for n in range(1300)])
    assert index.count() == 1300
    index.probe([(f"m{n}#0", unit(n)) for n in range(0, 1300, 13)])


def test_keep_forgets_the_chunks_that_are_not_named(index):
    index.upsert([row("m1", n) for n in range(12)] + [row("m10", 0)])
    index.keep({"m1": ("m1#0", "m1#1", "m1#2")})
    assert index.count() == 4
    index.keep({"m1": ()})
    assert index.count() == 1
    index.keep({"unknown": ()})
    assert [m.message_id for m in index.query(unit(1), ANY, 5)] == ["m10"]


FILTERED = [
    row("a", created=10, directory="/p/one", paths=("/p/one/src/a.py", "/etc/hosts"), deleted=True),
    row("b", created=20, session="ses_2", role="assistant", kinds=("answer", "reasoning"), directory="/p/one/sub"),
    row("c", created=30, kinds=("tool_output",), tools=("bash", "grep"), directory="/p/onetwo", project_id="other"),
]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (ANY, "abc"),
        (Filters(session_id="ses_2"), "b"),
        (Filters(project_id="other"), "c"),
        (Filters(directory="/p/one"), "ab"),
        (Filters(directory="/p/one/"), "ab"),
        (Filters(directory="/"), "abc"),
        (Filters(role="user"), "ac"),
        (Filters(kinds=("reasoning", "tool_output")), "bc"),
        (Filters(kinds=("title",)), ""),
        (Filters(tools=("grep",)), "c"),
        (Filters(after=20), "bc"),
        (Filters(before=20), "a"),
        (Filters(after=10, before=30, role="assistant", session_id="ses_2"), "b"),
        (Filters(sessions=frozenset()), ""),
        (Filters(sessions=frozenset({"ses_2", "ses_3"})), "b"),
        (Filters(sessions=frozenset({"ses_2", *(f"ses_none{n}" for n in range(1000))})), "b"),
        (Filters(path="/p/one/src"), "a"),
        (Filters(path="/etc/hosts"), "a"),
        (Filters(path="/etc/host"), ""),
        (Filters(deleted=True), "a"),
        (Filters(deleted=False, before=40), "bc"),
    ],
)
@pytest.mark.parametrize("crowd", [0, 400])
def test_filters_hold_and_find_even_what_is_far_away(index, filters, expected, crowd):
    # the crowd is nearer to the question than what the filter wants
    index.upsert(
        [
            row(
                f"x{n}",
                seed=1,
                role="system",
                kinds=("task",),
                directory="/elsewhere",
                created=40,
                session="ses_9",
                project_id="x",
            )
            for n in range(crowd)
        ]
    )
    index.upsert(FILTERED)
    found = {m.message_id for m in index.query(unit(1), filters, 1000)}
    assert {mid for mid in found if not mid.startswith("x")} == set(expected)
    if filters not in (ANY, Filters(directory="/"), Filters(after=20)):
        assert found == set(expected)
        assert {m.message_id for m in index.query(unit(1), filters, 3)} == set(expected)


@pytest.mark.parametrize(
    "vector",
    [np.zeros(DIMS), np.full(DIMS, np.nan), np.full(DIMS, np.inf), np.ones(DIMS - 1), np.ones((1, DIMS))],
    ids=["zero", "nan", "inf", "short", "nested"],
)
def test_an_unfindable_vector_is_refused_and_nothing_is_written(index, vector):
    good = row("good")
    bad = VectorRow(Chunk("bad", 0, "t"), vector.astype(np.float32), good.entry)
    with pytest.raises(BadInput, match="bad#0"):
        index.upsert([good, bad])
    with pytest.raises(BadInput):
        index.query(vector.astype(np.float32), ANY, 5)
    assert index.count() == 0


def test_text_that_is_no_utf8_does_not_stop_the_others(index):
    index.upsert([row("m1", text="lone \ud800 surrogate", session_title="\udfff"), row("m2")])
    assert index.count() == 2


def test_two_fingerprints_never_mix(tmp_path):
    one, two = (Semantic(tmp_path / "semantic", f"model-{n}", DIMS + n) for n in (1, 2))
    one.upsert([VectorRow(row("m1").chunk, unit(1, DIMS + 1), row("m1").entry)])
    assert (one.count(), two.count()) == (1, 0)
    one.close()
    two.close()


def test_what_was_put_in_is_there_after_reopening(tmp_path):
    for _ in range(2):
        index = Semantic(tmp_path / "semantic", "model-1", DIMS)
        index.upsert([row("m1", seed=1)])
        index.close()
        index.close()
    index = Semantic(tmp_path / "semantic", "model-1", DIMS)
    assert index.count() == 1
    index.probe([("m1#0", unit(1))])
    index.close()


def test_the_probe_notices_a_missing_record_another_vector_and_a_lost_text(index):
    index.upsert([row("m1", seed=1), row("m2", seed=2), row("m3", seed=3, text="")])
    with pytest.raises(IndexBroken, match="misses record m9#0"):
        index.probe([("m1#0", unit(1)), ("m9#0", unit(9))])
    with pytest.raises(IndexBroken, match="m2#0 holds another vector"):
        index.probe([("m2#0", unit(1))])
    with pytest.raises(IndexBroken, match="m3#0"):
        index.probe([("m3#0", unit(3))])


def test_many_equal_texts_hide_hardly_any_other(tmp_path):
    """Chroma builds its graph by chance: with 400 equal vectors as they are it lost all three others in every graph,
    moved apart one of them in 6 of 120 graphs.
    """
    hidden = []
    for number in range(6):
        index = Semantic(tmp_path / f"semantic{number}", "model-1", DIMS)
        index.upsert([row(f"same{n}", seed=1) for n in range(400)] + [row(f"other{n}", seed=10 + n) for n in range(3)])
        hidden += [n for n in range(3) if index.query(unit(10 + n), ANY, 1)[0].message_id != f"other{n}"]
        assert len(index.query(unit(1), ANY, 1000)) == 403
        index.close()
    assert len(hidden) <= 3


def test_many_equal_texts_do_not_fail_the_probe(index):
    index.upsert([row(f"m{n}", seed=1) for n in range(60)])
    # `probe` raises IndexBroken for a vector that it does not find.
    index.probe([(f"m{n}#0", unit(1)) for n in range(60)])
    with pytest.raises(IndexBroken):
        index.probe([("m0#0", unit(2))])


def test_a_store_of_another_chromadb_version_is_not_opened(tmp_path):
    place = tmp_path / "semantic"
    Semantic(place, "model-1", DIMS).close()
    (place / "version").write_text("chromadb 0.6.3\n")
    with pytest.raises(IndexBroken, match=r"0\.6\.3"):
        Semantic(place, "model-1", DIMS)
    (place / "version").unlink()
    with pytest.raises(IndexBroken, match="no version"):
        Semantic(place, "model-1", DIMS)


def test_a_failure_of_chroma_is_named_and_three_equal_ones_end_the_asking(tmp_path):
    place = tmp_path / "semantic"
    index = Semantic(place, "model-1", DIMS)
    client = chromadb.PersistentClient(str(place), settings=Settings(anonymized_telemetry=False))
    client.delete_collection(f"{PREFIX}model-1")
    for _ in range(3):
        with pytest.raises(IndexBroken, match=r"failed while counting") as first:
            index.count()
    assert str(place) in str(first.value)
    with pytest.raises(IndexBroken, match="not asked any more"):
        index.query(unit(1), ANY, 5)
    client.close()  # type: ignore[attr-defined]  # only the embedded client has it
    index.close()


def test_a_closed_index_says_so(index):
    index.close()
    with pytest.raises(IndexBroken, match="closed"):
        index.count()


def test_importing_the_module_does_not_import_chroma():
    code = "import sys, daemon.index.semantic, daemon.index.semantic.process; print('chromadb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_library_that_cannot_be_imported_leaves_the_store_as_it_is(tmp_path, monkeypatch):
    """As in the middle of an upgrade."""
    monkeypatch.setitem(sys.modules, "chromadb", None)
    with pytest.raises(ModuleNotFoundError):  # its process ends with it, see test_worker.py
        Semantic(tmp_path, "m", DIMS)


def test_a_server_that_is_not_there_is_tried_again_later_not_rebuilt(tmp_path):
    with pytest.raises(Retry, match="does not answer"):
        Semantic("http://127.0.0.1:9", "model-1", DIMS)


def test_a_chroma_server_serves_like_a_directory_and_may_be_absent(tmp_path):
    with serving(tmp_path) as url:
        index = opened(url)
        index.upsert([row(f"m{n}", seed=n, tools=("bash",)) for n in range(30)] + FILTERED)
        index.upsert([row("m7", seed=7)])
        assert stored(index, "m7#0")["m7#0"].get("tools") is None
        assert index.query(unit(7), ANY, 3)[0].message_id == "m7"
        assert {m.message_id for m in index.query(unit(1), Filters(kinds=("reasoning", "tool_output")), 5)} == {
            "b",
            "c",
        }
        index.keep({"m7": ()})
        index.probe([("m3#0", unit(3))])
        assert index.count() == 32
        index.notes.upsert([NoteRow("n1", "house", "shop", "why", 5, "noted", unit(1))])
        assert [match.id for match in index.notes.query(unit(1), "house", 3)] == ["n1"]
        assert (index.notes.ids("house", "shop"), index.count()) == ({"n1"}, 32)
    for _ in range(4):
        with pytest.raises(Retry, match="does not answer"):
            index.count()
        with pytest.raises(Retry, match="does not answer"):
            index.notes.ids("house")
    index.close()


@contextmanager
def serving(place):
    """A Chroma server with its data in a folder beneath `place`; its URL."""
    port = free_port()
    chroma = Path(sys.executable).with_name("chroma")
    command = [chroma, "run", "--path", place / "server", "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def opened(url):
    deadline = time.monotonic() + 60
    while True:
        try:
            return Semantic(url, "model-1", DIMS)
        except Retry:
            assert time.monotonic() < deadline
            time.sleep(0.2)
