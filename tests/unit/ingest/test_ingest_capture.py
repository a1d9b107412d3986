"""Capture: what messages name is archived before git prunes it, each content once, within limits, through crashes."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import records
from daemon.archive import Archive
from daemon.archive.objects import UNKNOWN
from daemon.errors import Retry
from daemon.ingest.capture import Capture
from daemon.ingest.scan_result import Captured
from daemon.model import FileEdit, Operation
from daemon.opencode.snapshots import Snapshots
from tests.conftest import Sample
from tests.support.refusals import nobodys_folder, refused
from tests.support.stores.git_trees import Repository, everything

T0 = 1_795_000_000_000
FILES = {"a.txt": b"one", "deep/b.txt": b"two", "deep/er/c.txt": b"three", "other/d.txt": b"four"}


class Place:
    """A data directory, its archive, and a clock."""

    def __init__(self, root: Path) -> None:
        self.data, self.root, self.now = root / "data", root, T0 / 1000
        (self.data / "tool-output").mkdir(parents=True)
        self.snapshots = Snapshots(self.data)
        self.archive = Archive(root / "archive")

    def reopen(self) -> None:
        self.archive.close()
        self.archive = Archive(self.root / "archive")

    def repository(self) -> Repository:
        return Repository(self.data, "pid/worktree", self.root / "work")

    def capture(self, mb: int = 8, gb: int = 8, free_mb: int = 0) -> Capture:
        return Capture(
            self.archive,
            self.snapshots,
            data_dir=self.data,
            capture_mb=mb,
            capture_gb=gb,
            free_mb=free_mb,
            clock=lambda: self.now,
        )

    def want(self, *trees: str, capture: Capture | None = None, time: int = T0 - 3_600_000) -> None:
        batch = self.archive.batch()
        (capture or self.capture()).want(batch, [edit(tree, time) for tree in trees])
        self.archive.commit(batch)

    def want_file(self, path: str, time: int = T0 - 3_600_000) -> None:
        batch = self.archive.batch()
        self.capture().want_file(batch, path, time)
        self.archive.commit(batch)

    def files(self, tree: str) -> dict[str, bytes | None]:
        return {path: self.archive.objects.blob(id_) for path, _, id_ in self.archive.objects.walk(tree)}


def edit(blob: str, time: int, operation: Operation = Operation.SNAPSHOT) -> FileEdit:
    return FileEdit("/work", time, "ses_1", "msg_1", "prt_1", "", operation, blob=blob)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.snapshots.close()
    place.archive.close()


def test_a_named_tree_is_archived_whole_and_survives_its_repository(place: Place) -> None:
    repository = place.repository()
    tree = repository.write(FILES)
    before = everything(place.data)
    place.want(tree)
    done = place.capture().run(60)
    assert (done.trees, done.files, done.bytes > 15, done.left_out, done.waiting) == (4, 4, True, 0, 0)
    assert everything(place.data) == before
    shutil.rmtree(repository.directory)
    place.reopen()
    assert place.files(tree) == FILES
    assert place.archive.objects.number == 8
    assert place.capture().run(60) == Captured()


def test_a_tree_that_differs_little_costs_little(place: Place) -> None:
    repository = place.repository()
    place.want(repository.write(FILES))
    capture = place.capture()
    capture.run(60)
    shutil.rmtree(repository.directory / "objects" / "pack", ignore_errors=True)
    repository.loose(records.blob_id(b"four")).unlink()  # what is skipped is not even looked for
    (repository.worktree / "deep" / "b.txt").write_bytes(b"changed")
    tree = repository.track()
    place.want(tree)
    done = capture.run(60)
    assert (done.trees, done.files, done.left_out) == (2, 1, 0)
    assert place.files(tree) == FILES | {"deep/b.txt": b"changed"}


def test_a_tree_that_is_done_is_not_queued_again(place: Place) -> None:
    tree = place.repository().write(FILES)
    place.want(tree, tree)
    assert place.capture().waiting() == 1
    place.capture().run(60)
    place.want(tree)
    assert place.capture().waiting() == 0


def test_links_are_kept_and_submodules_skipped(place: Place) -> None:
    repository = place.repository()
    repository.write(FILES)
    (repository.worktree / "link").symlink_to("a.txt")
    tree = repository.track()
    raw = place.snapshots
    raw.refresh()
    content = raw.read(tree, 1 << 20).raw + b"160000 module\0" + b"\7" * 20
    again = _store_tree(repository, content)
    place.want(again)
    done = place.capture().run(60)
    assert done.left_out == 0
    assert place.files(again) == FILES | {"link": b"a.txt"}


def _store_tree(repository: Repository, raw: bytes) -> str:
    whole = b"tree %d\0" % len(raw) + raw
    id_ = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    repository.loose(id_).parent.mkdir(exist_ok=True)
    repository.loose(id_).write_bytes(zlib.compress(whole))
    return id_


def test_blobs_that_edits_name_are_captured_too(place: Place) -> None:
    place.repository().write(FILES)
    batch = place.archive.batch()
    capture = place.capture()
    named = [records.blob_id(b"one"), records.blob_id(b"one")[:7], "", "../../../etc/passwd"]
    capture.want(batch, [edit(blob, T0 - 3_600_000, Operation.STATE) for blob in named])
    place.archive.commit(batch)
    assert (capture.waiting(), capture.run(60).files) == (1, 1)
    assert place.archive.objects.blob(records.blob_id(b"one")) == b"one"


def test_a_file_over_the_size_limit_is_skipped_until_the_limit_is_raised(place: Place) -> None:
    large = os.urandom(3 << 20)
    tree = place.repository().write(FILES | {"deep/large.bin": large})
    place.want(tree)
    done = place.capture(mb=1).run(60)
    assert (done.files, done.left_out, done.waiting) == (4, 1, 0)
    id_ = records.blob_id(large)
    assert place.archive.objects.missing(id_) == "too large: 3145728 bytes, larger than archive.capture_mb = 1"
    assert place.archive.objects.find(tree, "deep/large.bin") == (0o100644, id_)
    place.want(tree, capture=place.capture(mb=1))
    assert place.capture().waiting() == 0
    place.want(tree, capture=place.capture(mb=8))
    done = place.capture(mb=8).run(60)
    assert (done.files, done.left_out) == (1, 0)
    assert place.files(tree) == FILES | {"deep/large.bin": large}
    assert place.archive.objects.missing(id_) == ""


def test_nothing_is_captured_where_the_limit_is_zero(place: Place) -> None:
    tree = place.repository().write(FILES)
    place.want(tree, capture=place.capture(gb=0))
    assert place.capture(gb=0).waiting() == 0
    place.want(tree)
    assert place.capture(gb=0).run(60) == Captured(waiting=1)
    assert place.archive.objects.number == 0


def test_beyond_the_total_files_are_left_out_and_trees_still_tell_of_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {f"{number}.bin": os.urandom(1 << 20) for number in range(8)}
    tree = place.repository().write(contents)
    place.want(tree)
    capture = place.capture()
    monkeypatch.setattr(capture, "_total", 3 << 20)  # the configuration counts in GB
    done = capture.run(60)
    assert (done.trees, done.files, done.left_out) == (1, 2, 6)  # the tree's own bytes count too
    kept = {path: content for path, content in place.files(tree).items() if content is not None}
    assert len(kept) == 2
    assert kept.items() <= contents.items()
    assert len(place.files(tree)) == 8
    lost = [path for path in contents if path not in kept]
    reasons = {place.archive.objects.missing(records.blob_id(contents[path])) for path in lost}
    assert reasons == {"limit reached: archive.capture_gb = 8"}
    assert place.archive.objects.size <= 3 << 20


def test_a_missing_tree_is_given_up_and_captured_when_seen_again(place: Place) -> None:
    tree = "ab" * 20
    place.want(tree, time=T0)
    assert place.capture().run(60) == Captured(waiting=1)
    assert place.archive.objects.missing(tree) == ""
    place.now += 61
    done = place.capture().run(60)
    assert (done.left_out, done.waiting) == (1, 0)
    assert place.archive.objects.missing(tree).startswith("gone")
    assert list(place.archive.objects.walk(tree)) == [("", UNKNOWN, tree)]
    place.want(tree, time=T0 + 61_000)
    assert place.capture().waiting() == 1


def test_a_tree_named_before_it_is_written_is_captured_once_it_exists(place: Place) -> None:
    elsewhere = Repository(place.root / "later", "pid", place.root / "work")
    tree = elsewhere.write(FILES)
    place.want(tree, time=T0)
    assert place.capture().run(60).waiting == 1
    shutil.copytree(elsewhere.directory, place.data / "snapshot" / "pid")
    place.now += 3
    assert place.capture().run(60).files == 4
    assert place.files(tree) == FILES


def test_a_time_in_the_future_does_not_keep_an_entry_for_ever(place: Place) -> None:
    place.want("ab" * 20, time=T0 + 10**9)
    assert place.capture().run(60).waiting == 1
    place.now += 121
    assert place.capture().run(60).waiting == 0


def test_missing_blobs_are_retried_when_their_tree_is_seen_again(place: Place) -> None:
    repository = place.repository()
    tree = repository.write(FILES)
    hidden = repository.loose(records.blob_id(b"two"))
    hidden.rename(place.root / "hidden")
    place.want(tree)
    assert place.capture().run(60).left_out == 1
    assert place.archive.objects.missing(records.blob_id(b"two")).startswith("gone")
    assert place.files(tree)["deep/b.txt"] is None
    (place.root / "hidden").rename(hidden)
    place.want(tree)
    assert place.capture().waiting() == 0
    place.now += 601
    place.want(tree)
    assert place.capture().run(60).files == 1
    assert place.files(tree) == FILES


def test_a_missing_folder_is_unknown_and_the_rest_is_there(place: Place) -> None:
    repository = place.repository()
    tree = repository.write(FILES)
    place.snapshots.refresh()
    place.want(tree)
    place.capture().run(60)
    _, deep = place.archive.objects.find(tree, "deep") or (0, "")
    fresh = Place(place.root / "fresh")
    shutil.copytree(place.data / "snapshot", fresh.data / "snapshot")
    (fresh.data / "snapshot" / "pid" / "worktree" / "objects" / deep[:2] / deep[2:]).unlink()
    fresh.want(tree)
    assert fresh.capture().run(60).left_out == 1
    assert fresh.archive.objects.find(tree, "deep/b.txt") == (UNKNOWN, deep)
    assert fresh.files(tree) == {"a.txt": b"one", "other/d.txt": b"four", "deep": None}
    fresh.archive.close()


def test_a_crash_between_commits_loses_nothing_and_counts_nothing_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {f"d{number % 5}/{number}.bin": os.urandom(30_000) for number in range(60)}
    tree = place.repository().write(contents)
    place.want(tree)
    monkeypatch.setattr("daemon.ingest.capture._COMMIT_BYTES", 100_000)
    crashes = 0
    for stop in range(1, 100):
        told: list[tuple[int, int]] = []

        def crash(done: int, total: int, told: list[tuple[int, int]] = told, stop: int = stop) -> None:
            told.append((done, total))
            if len(told) == min(stop, 3):
                raise OSError(errno.EIO, "the power went")

        capture = place.capture()
        try:
            capture.run(60, crash)
        except OSError:
            crashes += 1
            place.reopen()
            continue
        break
    assert crashes > 3
    place.capture().run(60)
    assert place.capture().waiting() == 0
    assert place.files(tree) == contents
    place.reopen()
    trees = 6
    assert place.archive.objects.number == len(contents) + trees
    raw = sum(len(content) for content in contents.values())
    assert raw < place.archive.objects.size < raw + 60 * 60


def test_the_smallest_budget_comes_to_an_end(place: Place) -> None:
    tree = place.repository().write(FILES)
    place.want(tree)
    runs = 0
    while place.capture().run(0).waiting:
        runs += 1
        assert runs < 20
    assert runs > 3
    assert place.files(tree) == FILES


def test_a_nearly_full_disk_stops_it_before_anything_is_read(place: Place) -> None:
    place.want(place.repository().write(FILES))
    with pytest.raises(Retry, match=r"limits\.free_mb"):
        place.capture(free_mb=1 << 40).run(60)
    assert place.capture().waiting() == 1


def test_a_spilled_output_is_kept_under_the_path_that_was_recorded(place: Place) -> None:
    (place.data / "tool-output" / "tool_1").write_bytes(b"long output")
    recorded = "/home/somebody/opencode/tool-output/tool_1"  # the data directory was moved since
    place.want_file(recorded)
    place.now = (place.data / "tool-output" / "tool_1").stat().st_mtime + 1
    assert place.capture().run(60).waiting == 1  # it may still be being written
    place.now += 2
    assert place.capture().run(60) == Captured(files=1, bytes=11)
    (place.data / "tool-output" / "tool_1").unlink()
    id_ = place.archive.objects.spill(recorded)
    assert id_ is not None
    assert place.archive.objects.blob(id_) == b"long output"
    place.want_file(recorded)
    assert place.capture().waiting() == 0


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large"])
def test_a_spill_that_is_no_plain_file_within_the_limit_is_left_out(place: Place, kind: str) -> None:
    path = place.data / "tool-output" / "tool_1"
    secret = place.root / "secret"
    secret.write_bytes(b"secret")
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x" * ((1 << 20) + 1))
    place.want_file(str(path))
    place.now = path.lstat().st_mtime + 3600
    done = place.capture(mb=1).run(60)
    assert (done.files, done.left_out, done.waiting) == (0, 1, 0)
    assert place.archive.objects.missing(str(path)) != ""
    assert place.archive.objects.spill(str(path)) is None


@pytest.mark.parametrize(
    "path", ["tool-output/x", "/etc/passwd", "/d/tool-output/", "/d/tool-output/..", "/tool-output/a\0"]
)
def test_a_path_elsewhere_is_never_queued(place: Place, path: str) -> None:
    place.want_file(path)
    assert place.capture().waiting() == 0


def test_the_trees_of_the_sample_hold_the_states_that_were(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    source = sample("sqlite").data_dir
    place = Place(tmp_path / "mine")
    shutil.copytree(source / "snapshot", place.data / "snapshot")
    trees = []
    place.snapshots.refresh()
    for folder in sorted((place.data / "snapshot").glob("*/*/objects/??")):
        for path in folder.iterdir():
            id_ = folder.name + path.name
            if place.snapshots.read(id_, 1 << 20).kind == "tree":
                trees.append(id_)
    place.want(*trees)
    done = place.capture().run(60)
    assert done.waiting == 0
    shutil.rmtree(place.data / "snapshot")
    starts = {tree[:8]: tree for tree in trees}
    found = [
        place.archive.objects.find(starts[name], "app.py") for name in ("c1c48098", "3adc75bb", "92ec5334", "ad4a4f99")
    ]
    sizes = [entry and len(place.archive.objects.blob(entry[1]) or b"") for entry in found]
    assert sizes == [None, 344, 352, 521]
    place.snapshots.close()
    place.archive.close()


@pytest.mark.parametrize("kind", ["link", "file", "name"])
def test_a_spill_that_can_never_be_read_does_not_wait(place: Place, kind: str) -> None:
    folder = place.data / "tool-output"
    if kind != "name":
        folder.rmdir()
    if kind == "link":
        folder.symlink_to(place.root)
    elif kind == "file":
        folder.write_text("no folder")
    path = str(folder / ("x" * 300 if kind == "name" else "tool_1"))
    place.want_file(path)
    done = place.capture().run(60)
    assert (done.left_out, done.waiting) == (1, 0)
    assert "cannot be read" in place.archive.objects.missing(path)


@pytest.mark.parametrize("kind", ["tree", "blob", "pack", "idx", "alternates"])
def test_what_the_system_refuses_stays_queued_and_is_captured_later(place: Place, kind: str) -> None:
    """As on a failing disk, or with too many open files: nothing says that it is gone, however old it is."""
    repository = place.repository()
    tree = repository.write(FILES)
    path = repository.loose(tree if kind == "tree" else records.blob_id(b"two"))
    if kind in ("pack", "idx"):
        repository.pack(tree)
        (path,) = repository.directory.glob(f"objects/pack/*.{kind}")
    elif kind == "alternates":
        objects = place.root / "elsewhere"
        shutil.move(repository.directory / "objects", objects)
        path = repository.directory / "objects/info/alternates"
        path.parent.mkdir(parents=True)
        path.write_text(f"{objects}\n")
    place.want(tree)
    with refused(path):
        done = place.capture().run(60)
        assert (done.left_out, done.waiting, str(path.stem) in done.refusal) == (0, 1, True)
    assert place.archive.objects.missing(tree) == place.archive.objects.missing(records.blob_id(b"two")) == ""
    done = place.capture().run(60)
    assert (done.left_out, done.waiting, done.refusal) == (0, 0, "")
    assert place.files(tree) == FILES


@pytest.mark.parametrize("closed", ["", "pid", "pid/worktree", "pid/worktree/objects", "pid/worktree/objects/pack"])
@pytest.mark.parametrize("mode", [0o000, 0o400], ids=oct)
def test_a_folder_of_snapshots_that_may_not_be_read_is_not_gone(closed: str, mode: int) -> None:
    with nobodys_folder() as folder:
        place = Place(folder)
        repository = place.repository()
        tree = repository.write(FILES)
        repository.pack(tree)
        place.want(tree)
        (place.data / "snapshot" / closed).chmod(mode)
        done = place.capture().run(60)
        (place.data / "snapshot" / closed).chmod(0o700)
        assert (done.left_out, done.waiting) == (0, 1)
        assert place.capture().run(60).waiting == 0
        assert place.files(tree) == FILES
        place.snapshots.close()
        place.archive.close()


def test_what_stays_refused_is_tried_after_a_pause_and_delays_nothing(place: Place) -> None:
    repository = place.repository()
    first, second = repository.write({"a": b"one"}), repository.write({"a": b"two"})
    capture = place.capture()
    place.want(first, capture=capture, time=1)
    place.want(second, capture=capture, time=2)
    with refused(repository.loose(first)):
        assert capture.run(60, everything=False).waiting == 1
        assert place.files(second) == {"a": b"two"}
    assert capture.run(60, everything=False).waiting == 1
    assert capture.run(60, everything=True).waiting == 0
    assert place.files(first) == {"a": b"one"}


def test_an_output_refused_in_one_folder_is_not_given_up_for_another(place: Place) -> None:
    """The other data directory says that it is no file, which says nothing of the first."""
    path = place.data / "tool-output" / "tool_1"
    path.write_bytes(b"long output")
    os.utime(path, (1, 1))
    other = place.root / "other" / "tool-output" / "tool_1"
    other.mkdir(parents=True)
    capture = Capture(place.archive, place.snapshots, data_dir=place.data, further=[place.root / "other"])
    place.want_file(str(path))
    with refused(path):
        assert (capture.run(60).waiting, place.archive.objects.missing(str(path))) == (1, "")
    assert (capture.run(60).files, capture.waiting()) == (1, 0)
