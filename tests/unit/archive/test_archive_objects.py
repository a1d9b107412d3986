"""Objects of the archive: content by git id, each once, counted exactly, never said to be absent where it is unknown."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive
from daemon.archive.objects import BLOB, FOLDER, SUBMODULE, TREE, UNKNOWN, object_id, parse_tree
from daemon.errors import BadRecord


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as archive:
        yield archive


def entry(name: str | bytes, mode: int, id_: str) -> bytes:
    raw = name.encode() if isinstance(name, str) else name
    return b"%o %b\0" % (mode, raw) + bytes.fromhex(id_)


def keep(archive: Archive, kind: str, raw: bytes) -> str:
    batch = archive.batch()
    id_ = archive.objects.put(batch, kind, raw)
    archive.commit(batch)
    return id_


@given(st.binary(max_size=300))
def test_the_id_of_a_blob_is_gits(content: bytes) -> None:
    assert records.blob_id(content) == object_id(BLOB, content)


def test_ids_are_those_that_git_itself_computes() -> None:
    content = b"one\r\ntwo\0three"
    said = subprocess.run(["git", "hash-object", "--stdin"], input=content, capture_output=True, check=True)
    assert records.blob_id(content) == said.stdout.decode().strip()
    assert object_id(TREE, b"") == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_blob_is_kept_and_counted_once(archive: Archive, tmp_path: Path) -> None:
    id_ = keep(archive, BLOB, b"content")
    keep(archive, BLOB, b"content")
    first, second = archive.batch(), archive.batch()  # two threads' batches, begun before either is committed
    archive.objects.put(first, BLOB, b"other")
    archive.objects.put(second, BLOB, b"other")
    archive.commit(first)
    archive.commit(second)
    assert (archive.objects.number, archive.objects.size) == (2, 12)
    archive.close()
    with Archive(tmp_path / "archive") as again:
        assert again.objects.blob(id_) == b"content"
        assert again.objects.has(id_)
        assert (again.objects.number, again.objects.size) == (2, 12)


def test_content_that_does_not_fit_its_id_is_refused(archive: Archive) -> None:
    batch = archive.batch()
    with pytest.raises(BadRecord, match="another content"):
        archive.objects.put(batch, BLOB, b"content", records.blob_id(b"other"))
    assert not batch.changes


def test_a_blob_is_no_tree_and_a_tree_no_blob(archive: Archive) -> None:
    blob, tree = keep(archive, BLOB, b""), keep(archive, TREE, b"")
    assert archive.objects.tree(blob) is None
    assert archive.objects.blob(tree) is None
    assert archive.objects.tree(tree) == {}


def test_names_that_are_not_utf8_keep_their_bytes() -> None:
    id_ = records.blob_id(b"")
    assert parse_tree(entry(b"caf\xe9 x", 0o100644, id_)) == {"caf\udce9 x": (0o100644, id_)}


@pytest.mark.parametrize(
    "raw",
    [
        b"x",
        b"100644 a",
        b"100644 a\0" + b"\1" * 19,
        b"100644",
        b" a\0" + b"\1" * 20,
        b"100689 a\0" + b"\1" * 20,
        b"1000000644 a\0" + b"\1" * 20,
        b"100644 \0" + b"\1" * 20,
        b"100644 ..\0" + b"\1" * 20,
        b"100644 a/b\0" + b"\1" * 20,
    ],
)
def test_a_malformed_tree_is_refused(archive: Archive, raw: bytes) -> None:
    batch = archive.batch()
    with pytest.raises(BadRecord):
        archive.objects.put(batch, TREE, raw)
    assert not batch.changes


@given(st.binary(max_size=80))
def test_any_bytes_are_a_tree_or_refused(raw: bytes) -> None:
    try:
        entries = parse_tree(raw)
    except BadRecord:
        return
    assert all(name and "/" not in name for name in entries)


def test_a_walk_names_files_links_and_what_is_not_kept(archive: Archive) -> None:
    blob, gone = records.blob_id(b"content"), "ab" * 20
    inner = keep(archive, TREE, entry("b.txt", 0o100755, blob) + entry("link", 0o120000, blob))
    outer = keep(archive, TREE, entry("a", FOLDER, inner) + entry("m", SUBMODULE, gone) + entry("z", FOLDER, gone))
    assert sorted(archive.objects.walk(outer)) == [
        ("a/b.txt", 0o100755, blob),
        ("a/link", 0o120000, blob),
        ("z", UNKNOWN, gone),
    ]
    assert list(archive.objects.walk(gone)) == [("", UNKNOWN, gone)]


def test_finding_tells_absent_from_unknown(archive: Archive) -> None:
    blob, gone = records.blob_id(b"content"), "ab" * 20
    inner = keep(archive, TREE, entry("b.txt", 0o100755, blob))
    outer = keep(archive, TREE, entry("a", FOLDER, inner) + entry("z", FOLDER, gone))
    find = archive.objects.find
    assert find(outer, "") == (FOLDER, outer)
    assert find(outer, "a/b.txt") == (0o100755, blob)
    assert find(outer, "a") == (FOLDER, inner)
    assert find(outer, "a/c") is None
    assert find(outer, "a/b.txt/c") is None
    assert find(outer, "z/any") == (UNKNOWN, gone)
    assert find(gone, "a") == (UNKNOWN, gone)
    kept_later = keep(archive, TREE, b"")
    assert find(kept_later, "a") is None


def test_a_tree_that_was_unknown_is_known_once_it_is_kept(archive: Archive) -> None:
    id_ = object_id(TREE, b"")
    assert archive.objects.tree(id_) is None
    assert not archive.objects.has(id_)
    keep(archive, TREE, b"")
    assert archive.objects.has(id_)
    assert archive.objects.tree(id_) == {}


def test_depth_is_no_trouble(archive: Archive) -> None:
    batch, id_, mode = archive.batch(), records.blob_id(b""), 0o100644
    for _ in range(3000):
        id_, mode = archive.objects.put(batch, TREE, entry("d", mode, id_)), FOLDER
    archive.commit(batch)
    [(path, mode, _)] = archive.objects.walk(id_)
    assert (path.count("d"), mode) == (3000, 0o100644)


def test_what_was_left_out_has_its_reason_until_it_is_kept(archive: Archive) -> None:
    id_ = records.blob_id(b"content")
    batch = archive.batch()
    archive.objects.skip(batch, id_, "too large: 7 bytes")
    archive.commit(batch)
    assert archive.objects.missing(id_) == "too large: 7 bytes"
    keep(archive, BLOB, b"content")
    assert archive.objects.missing(id_) == ""
    batch = archive.batch()
    archive.objects.skip(batch, id_, "gone")
    assert not batch.changes


def test_spilled_output_is_found_by_its_path(archive: Archive) -> None:
    batch = archive.batch()
    id_ = archive.objects.put_spill(batch, "/data/tool-output/tool_1", b"long")
    archive.commit(batch)
    assert archive.objects.spill("/data/tool-output/tool_1") == id_ == records.blob_id(b"long")
    assert archive.objects.spill("/data/tool-output/tool_2") is None
