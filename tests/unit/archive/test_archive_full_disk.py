"""The archive on a disk that fills up: what was acknowledged stays, the rest is taken later, once."""

from __future__ import annotations

import base64
import contextlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.archive import Archive
from daemon.archive.store import Store
from daemon.errors import DiskFull
from daemon.filesystem.disk_space import is_full
from tests.support.processes.small_disk import SmallDisk, with_small_disks
from tests.support.stores.make_opencode import T0, text, user
from tests.unit.archive.test_archive import make, put

MB = 1 << 20


def write(archive: Archive, number: int, size: int) -> str:
    name = f"msg_{number:03}"
    noise = base64.b85encode(random.Random(number).randbytes(size * 4 // 5)).decode()  # hardly to be compressed
    put(archive, make(user(name, "ses_1", T0 + number), text(f"prt_{number}", name, "ses_1", noise)))
    return name


def write_until_full(archive: Archive, first: int, size: int) -> list[str]:
    """The messages that were acknowledged before the disk was full."""
    done: list[str] = []

    def fill() -> None:
        for number in range(first, first + 10_000):
            done.append(write(archive, number, size))  # noqa: PERF401 - what was done counts when it raises

    with pytest.raises(DiskFull, match="No space left"):
        fill()
    return done


@with_small_disks
@pytest.mark.parametrize("leave", [0, 5_000, 70_000, MB])
def test_a_commit_that_found_no_room_is_made_again_and_none_is_lost(request, tmp_path: Path, leave: int) -> None:
    disk = SmallDisk(tmp_path / "small", 40)
    try:
        with Archive(disk.path / "a") as archive:
            done = [write(archive, number, 30_000) for number in range(20)]
            for size in (300, 30_000, 9_000_000 // 10):
                disk.fill(leave)
                done += write_until_full(archive, len(done), size)
                with pytest.raises(DiskFull):
                    write(archive, len(done), size)  # LevelDB itself is not asked again
                with pytest.raises(DiskFull):
                    archive.mend()
                assert [archive.message(name) is not None for name in done] == [True] * len(done)
                disk.make_room()
                archive.mend()
                done.append(write(archive, len(done), size))
        with Archive(disk.path / "a") as archive:
            assert archive.message_ids("ses_1") == sorted(archive.all_message_ids()) == done
            assert archive.figures()["messages"] == archive.figures()["parts"] == len(done)
            assert archive.waiting("lexical") == len(archive.outbox("lexical", 10_000)) == len(done)
    finally:
        disk.close()


def bodies(archive: Archive) -> int:
    """Pieces of large values, and marks of commits that have yet to come."""
    return sum(1 for prefix in (b"body:", b"ahead:") for _ in archive._store.keys(prefix))


@with_small_disks
def test_pieces_of_a_commit_that_found_no_room_are_removed(request, tmp_path: Path) -> None:
    """Each new try would otherwise leave its pieces behind, and fill the disk by itself."""
    disk = SmallDisk(tmp_path / "small", 200)
    try:
        with Archive(disk.path / "a") as archive:
            done = [write(archive, 0, 3 * MB)]
            pieces = bodies(archive)
            for leave in (6 * MB, 9 * MB, 12 * MB):
                begun = archive.batch()
                begun.put(b"obj:x", b"x" * 2 * MB)
                disk.fill(leave)
                with pytest.raises(DiskFull):
                    write(archive, 1, 20 * MB)
                disk.make_room()
                archive.mend()
                assert bodies(archive) == pieces
                with pytest.raises(DiskFull, match="begun before"):
                    archive.commit(begun)  # its pieces are gone
                with pytest.raises(DiskFull, match="begun before"):
                    begun.put(b"obj:y", b"y" * 5 * MB)
            done.append(write(archive, 1, 20 * MB))
        with Archive(disk.path / "a") as archive:
            assert archive.message_ids("ses_1") == done
            assert bodies(archive) > pieces
            for name in done:
                message = archive.message(name)
                assert message is not None
                assert sum(len(part.raw) for part in message.parts) > 2 * MB
    finally:
        disk.close()


@with_small_disks
@pytest.mark.parametrize("leave", [0, 5_000, 2 * MB])
def test_a_start_on_a_full_disk_keeps_what_was_acknowledged(request, tmp_path: Path, leave: int) -> None:
    disk = SmallDisk(tmp_path / "small", 60)
    try:
        with Archive(disk.path / "a") as archive:
            done = [write(archive, 0, 3 * MB)]
            pieces = bodies(archive)
            begun = archive.batch()
            begun.put(b"obj:x", random.Random(0).randbytes(9 * MB))  # and killed
        disk.fill(leave)
        with contextlib.suppress(DiskFull), Archive(disk.path / "a") as archive:
            assert archive.message_ids("ses_1") == done
        disk.make_room()
        with Archive(disk.path / "a") as archive:
            assert bodies(archive) == pieces
            done.append(write(archive, 1, 3 * MB))
            assert [archive.message(name) is not None for name in done] == [True, True]
    finally:
        disk.close()


@with_small_disks
def test_what_is_being_read_is_not_closed_under_its_reader(request, tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "small", 40)
    try:
        with Archive(disk.path / "a") as archive:
            done = [write(archive, number, 1000) for number in range(50)]
            reading: Iterator[str] = archive.all_message_ids()
            found = [next(reading)]
            disk.fill()
            write_until_full(archive, len(done), 30_000)
            disk.make_room()
            with pytest.raises(DiskFull, match="being read"):
                archive.mend()
            found += reading
            assert found == done
            ended = threading.Event()

            def keep_reading() -> None:
                while not ended.is_set():
                    assert archive.message(done[0]) is not None

            reader = threading.Thread(target=keep_reading)
            reader.start()
            archive.mend()
            ended.set()
            reader.join()
            write(archive, len(done), 30_000)
    finally:
        disk.close()


class Late(Store):
    """Fault injection: a sync fails after the record has reached the log."""

    is_late = False

    def write(self, changes, fresh=()) -> None:
        super().write(changes, fresh)
        if self.is_late:
            self.has_failed = True
            raise DiskFull("No space left on device")


def test_a_commit_that_failed_and_is_there_all_the_same_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.archive.Store", Late)
    with Archive(tmp_path / "a") as archive:
        write(archive, 0, 100)
        begun = archive.batch()
        begun.counts["messages"] += 1
        begun.put(b"meta:note:x", b"y")
        Late.is_late = True
        with pytest.raises(DiskFull):
            write(archive, 1, 100)
        Late.is_late = False
        archive.mend()
        with pytest.raises(DiskFull, match="begun before"):
            archive.commit(begun)
        write(archive, 1, 100)
        assert archive.message_count() == len(list(archive.all_message_ids())) == 2
        assert archive.waiting("lexical") == 2


@with_small_disks
def test_an_archive_is_not_begun_on_a_full_disk_and_is_when_there_is_room(request, tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "small", 8)
    try:
        disk.fill()
        for _ in range(2):
            with pytest.raises(Exception, match="No space left") as refused:
                Archive(disk.path / "a")
            assert is_full(refused.value)
        disk.make_room()
        with Archive(disk.path / "a") as archive:
            write(archive, 0, 100)
    finally:
        disk.close()
