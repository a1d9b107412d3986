"""Snapshot repositories are read whatever git does to them, and never written."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daemon import records
from daemon.archive.objects import parse_tree
from daemon.opencode.snapshots import Snapshots
from tests.conftest import Sample
from tests.support.stores.git_trees import Repository, everything, git

MOST = 8 << 20
FILES = {
    "a.txt": b"one\r\ntwo",
    "empty": b"",
    "deep/er/b.bin": bytes(range(256)) * 40,
    "deep/c.txt": b"c\n" * 500,
    "caf\u00e9 x.txt": b"accents",
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def snapshots(data: Path) -> Iterator[Snapshots]:
    snapshots = Snapshots(data)
    yield snapshots
    snapshots.close()


def descend(snapshots: Snapshots, tree: str, folder: str = "") -> dict[str, bytes]:
    found = snapshots.read(tree, MOST)
    assert found.kind == "tree", found.reason
    files: dict[str, bytes] = {}
    for name, (mode, id_) in parse_tree(found.raw).items():
        if mode == 0o040000:
            files |= descend(snapshots, id_, f"{folder}{name}/")
        else:
            files[folder + name] = snapshots.read(id_, MOST).raw
    return files


@pytest.mark.parametrize("place", ["pid", "pid/worktree"])
@pytest.mark.parametrize("packed", [False, True])
def test_both_layouts_are_read_loose_and_packed(data: Path, snapshots: Snapshots, place: str, packed: bool) -> None:
    repository = Repository(data, place, data.parent / "work")
    tree = repository.write(FILES)
    if packed:
        repository.pack(tree)
        assert not repository.loose(tree).exists()
    before = everything(data)
    snapshots.refresh()
    assert descend(snapshots, tree) == FILES
    assert everything(data) == before


def test_a_delta_in_a_pack_is_resolved_and_its_size_known_before(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    body = b"".join(b"line %d\n" % number for number in range(5000))
    trees = [repository.write({"big.txt": body + b"end %d\n" % number}) for number in range(4)]
    repository.pack(*trees)
    snapshots.refresh()
    for number, tree in enumerate(trees):
        assert descend(snapshots, tree) == {"big.txt": body + b"end %d\n" % number}
        id_ = records.blob_id(body + b"end %d\n" % number)
        found = snapshots.read(id_, 1000)
        assert (found.kind, found.size, found.raw) == ("blob", len(body) + 6, b"")


def test_a_large_loose_file_is_told_by_its_size_alone(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    repository.write({"zeros": b"\0" * (3 << 20)})
    snapshots.refresh()
    found = snapshots.read(records.blob_id(b"\0" * (3 << 20)), 1 << 20)
    assert (found.size, found.raw) == (3 << 20, b"")


def test_a_read_only_directory_is_read_and_left_as_it_is(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid/worktree", data.parent / "work")
    first = repository.write(FILES)
    repository.pack(first)
    second = repository.write({"late.txt": b"loose"})
    for path in [data, *data.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    before = everything(data)
    try:
        snapshots.refresh()
        assert descend(snapshots, first) == FILES
        assert descend(snapshots, second) == FILES | {"late.txt": b"loose"}
        assert everything(data) == before
    finally:
        for path in [data, *data.rglob("*")]:
            path.chmod(path.stat().st_mode | stat.S_IWUSR)


@pytest.mark.parametrize("relative", [False, True])
def test_alternates_are_followed_in_a_ring_and_into_nothing(data: Path, snapshots: Snapshots, relative: bool) -> None:
    repository = Repository(data, "pid/worktree", data.parent / "work")
    project = Repository(data.parent / "elsewhere", "git", data.parent / "work")
    tree = project.write(FILES)
    theirs, ours = project.directory / "objects", repository.directory / "objects"
    line = os.path.relpath(theirs, ours) if relative else str(theirs)
    (ours / "info").mkdir(exist_ok=True)
    (ours / "info" / "alternates").write_text(f"# a note\n/nowhere/objects\n{line}\n")
    (theirs / "info").mkdir(exist_ok=True)
    (theirs / "info" / "alternates").write_text(f"{ours}\n")
    own = repository.write({"own.txt": b"own"})
    assert not repository.loose(tree).exists()
    snapshots.refresh()
    assert snapshots.number == 2
    assert descend(snapshots, tree) == FILES
    assert descend(snapshots, own) == FILES | {"own.txt": b"own"}
    assert snapshots.read("ab" * 20, MOST).reason == "gone: in none of 2 folders of git objects"
    shutil.rmtree(project.directory)
    snapshots.refresh()
    assert snapshots.number == 1
    assert snapshots.read(tree, MOST).reason.startswith("gone")


def test_repacking_while_we_read_is_no_trouble(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    tree = repository.write(FILES)
    snapshots.refresh()
    assert descend(snapshots, tree) == FILES
    repository.pack(tree)  # what was loose is in a pack
    assert descend(snapshots, tree) == FILES
    other = repository.write({"more.txt": b"more"})
    repository.pack(tree, other)
    packs = sorted((repository.directory / "objects" / "pack").glob("*"), key=lambda path: path.stat().st_mtime_ns)
    for path in packs[:2]:  # the older pack goes, as with `git gc`
        path.unlink()
    assert descend(snapshots, other) == FILES | {"more.txt": b"more"}


def test_gits_own_collection_drops_what_no_index_names_and_keeps_the_rest(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    old = repository.write({"a.txt": b"old"})
    new = repository.write({"a.txt": b"new", "b.txt": b"b"})
    snapshots.refresh()
    assert descend(snapshots, old) == {"a.txt": b"old"}
    git("gc", "-q", "--prune=now", directory=repository.directory)
    assert snapshots.read(old, MOST).reason.startswith("gone")
    assert snapshots.read(records.blob_id(b"new"), MOST).raw == b"new"  # the index still names it
    assert repository.track() == new
    assert descend(snapshots, new) == {"a.txt": b"new", "b.txt": b"b"}


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other", "noise"])
def test_a_damaged_object_gives_a_reason_unless_it_is_whole_elsewhere(
    data: Path, snapshots: Snapshots, damage: str
) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    content = b"".join(b"line %d\n" % number for number in range(300))
    repository.write({"a.txt": content, "b.txt": b"b"})
    path, other = repository.loose(records.blob_id(content)), repository.loose(records.blob_id(b"b"))
    raw = bytearray(path.read_bytes())
    path.chmod(0o644)
    raw[len(raw) // 2] ^= 4
    damaged = {
        "empty": b"",
        "cut": bytes(raw[:40]),
        "flipped": bytes(raw),
        "other": other.read_bytes(),
        "noise": b"noise" * 9,
    }
    path.write_bytes(damaged[damage])
    snapshots.refresh()
    found = snapshots.read(records.blob_id(content), MOST)
    assert (found.kind, found.raw) == ("", b"")
    assert "damaged" in found.reason
    Repository(data, "second", data.parent / "second").write({"x": content})
    snapshots.refresh()
    assert snapshots.read(records.blob_id(content), MOST).raw == content


def test_a_damaged_pack_gives_a_reason_and_spares_the_others(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    tree = repository.write(FILES)
    repository.pack(tree)
    [pack] = (repository.directory / "objects" / "pack").glob("*.pack")
    raw = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(raw[: len(raw) // 3])
    own = repository.write({"own.txt": b"own"})
    snapshots.refresh()
    assert ".pack: cannot be read" in snapshots.read(tree, MOST).reason
    assert snapshots.read(own, MOST).kind == "tree"
    pack.write_bytes(raw)
    assert descend(snapshots, tree) == FILES


def test_a_commit_is_neither_file_nor_folder(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    tree = repository.write(FILES)
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    commit = git(*identity, "commit-tree", "-m", "m", tree, directory=repository.directory)
    snapshots.refresh()
    assert "neither" in snapshots.read(commit, MOST).reason


def opened(folder: Path) -> int:
    """How many descriptors of this process are of files beneath it; Python closes those of earlier tests at any time."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            count += descriptor.readlink().is_relative_to(folder)
    return count


def test_descriptors_stay_bounded_and_are_released(data: Path, snapshots: Snapshots) -> None:
    repository = Repository(data, "pid", data.parent / "work")
    trees = []
    for number in range(60):
        trees.append(repository.write({"a.txt": b"%d" % number}))
        repository.pack(trees[-1])
    assert opened(data) == 0
    snapshots.refresh()
    for number, tree in enumerate(trees):
        assert descend(snapshots, tree) == {"a.txt": b"%d" % number}
        assert 0 < opened(data) <= 2 * 50
    assert snapshots.read("ab" * 20, MOST).reason.startswith("gone")
    snapshots.close()
    assert opened(data) == 0
    assert descend(snapshots, trees[0]) == {"a.txt": b"0"}


def test_no_snapshots_at_all_is_a_reason(snapshots: Snapshots) -> None:
    snapshots.refresh()
    assert snapshots.read("ab" * 20, MOST).reason == "gone: in none of 0 folders of git objects"


def test_the_sample_holds_the_known_states_of_its_first_file(sample: Callable[[str], Sample]) -> None:
    root = sample("sqlite").data_dir
    before = everything(root)
    snapshots = Snapshots(root)
    snapshots.refresh()
    sizes = set()
    for folder in (root / "snapshot").glob("*/*/objects/??"):
        for path in folder.iterdir():
            found = snapshots.read(folder.name + path.name, MOST)
            assert found.kind
            if found.kind == "tree":
                entry = parse_tree(found.raw).get("app.py")
                sizes.add(len(snapshots.read(entry[1], MOST).raw) if entry else None)
    snapshots.close()
    assert {None, 344, 352, 521} <= sizes
    assert everything(root) == before
