"""Backups of an archive into a folder, and archives made of them: by real files, without a service."""

from __future__ import annotations

import errno
import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from daemon.archive import SCHEMA, Archive
from daemon.archive.backup.checking import check
from daemon.archive.backup.folder import MARKER, BackupFolder
from daemon.archive.backup.making import Making, pieces
from daemon.archive.backup.manifest import Contents, Manifest, decoded
from daemon.archive.backup.restoring import restore
from daemon.archive.store.compression import DamagedError
from daemon.archive.store.segments import compressed, decompressed, pairs, segments
from daemon.errors import ArchiveLocked, BadBackup, DiskFull, OutputRefused, Retry
from daemon.filesystem import durable
from tests.support.processes.small_disk import SmallDisk, with_small_disks
from tests.support.stores.make_opencode import T0, text, user
from tests.unit.archive.test_archive import make, put

Rows = list[tuple[bytes, bytes]]


def quiet(_phase: str, _done: int, _total: int | None) -> None:
    """A progress that shows nothing."""


def write(archive: Archive, first: int, count: int, size: int = 200) -> None:
    for number in range(first, first + count):
        name = f"msg_{number:05}"
        words = random.Random(number).randbytes(size).hex()
        put(archive, make(user(name, "ses_1", T0 + number), text(f"prt_{number}", name, "ses_1", words)))


def back_up(archive: Archive, to: Path, made: int = T0, keep: int = 3) -> Making:
    with BackupFolder.to_write(to, archive.directory, [archive.directory]) as folder:
        making = Making(folder, quiet)
        have = making.whole_segments()
        contents = Contents()
        for piece in pieces(archive.stored_rows(), have, contents):
            making.put(piece)
        large = list(contents.large.values())
        missing = making.copy_large(large, archive.large_files)
        counts = {"messages": contents.counts["messages"]}
        folder.add(
            Manifest(
                schema=contents.schema, version="0", archive=str(archive.directory), made=made, counts=counts,
                segments=making.segments, large=large, missing=missing,
            )
        )  # fmt: skip
        folder.remove_old(keep)
    return making


def restored(to: Path, goal: Path, known_schema: int = SCHEMA) -> Manifest:
    with BackupFolder.to_read(to) as folder:
        return restore(folder, folder.newest(), goal, known_schema, quiet)


def damage_in(to: Path) -> list[str]:
    with BackupFolder.to_read(to) as folder:
        return [damage for result in check(folder, quiet) for damage in result.damage]


def tree(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive") as made:
        write(made, 0, 40)
        yield made


# -- segments ------------------------------------------------------------------------------------------------------------

ROWS = st.dictionaries(st.binary(min_size=1, max_size=9), st.binary(max_size=50)).map(lambda rows: sorted(rows.items()))


@given(ROWS)
def test_segments_hold_the_same_rows_in_the_same_order(rows: Rows) -> None:
    cut = list(segments(iter(rows)))
    assert [pair for segment, _ in cut for pair in pairs(decompressed(compressed(segment)))] == rows
    assert [count for _, count in cut] == [len(list(pairs(segment))) for segment, _ in cut]


def test_one_more_row_leaves_the_other_segments_as_they_were() -> None:
    noise = random.Random(1)
    rows = {f"{number:08}".encode(): noise.randbytes(2000) for number in range(40_000)}
    before = {segment for segment, _ in segments(iter(sorted(rows.items())))}
    rows[b"00020000x"] = b"new"
    after = {segment for segment, _ in segments(iter(sorted(rows.items())))}
    assert len(before) > 10
    assert 1 <= len(after - before) <= 2


@given(st.binary(max_size=200), st.data())
def test_a_damaged_segment_is_noticed_or_the_same(segment: bytes, data: st.DataObject) -> None:
    file = bytearray(compressed(segment))
    place = data.draw(st.integers(0, len(file) - 1))
    file[place] ^= data.draw(st.integers(1, 255))
    try:
        assert decompressed(bytes(file)) == segment
    except DamagedError:
        pass


def test_a_segment_that_ends_in_a_row_is_damaged() -> None:
    [(segment, _)] = segments(iter([(b"key", b"value")]))
    for size in range(1, len(segment)):
        with pytest.raises(DamagedError):
            list(pairs(segment[:size]))


# -- backups -------------------------------------------------------------------------------------------------------------


def test_a_restored_archive_has_the_same_rows(tmp_path: Path, archive: Archive) -> None:
    rows = list(archive.stored_rows())
    back_up(archive, tmp_path / "to")
    manifest = restored(tmp_path / "to", tmp_path / "new")
    assert (manifest.counts, manifest.schema) == ({"messages": 40}, SCHEMA)
    with Archive(tmp_path / "new") as new:
        assert list(new.stored_rows()) == rows
        assert [message.id for message in new.messages("ses_1")] == [f"msg_{number:05}" for number in range(40)]
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o700


def test_a_restored_archive_has_its_dictionary_twice(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 300, 8000)
        numbers = [row for row in archive.stored_rows() if row[0].startswith(b"dict:")]
        assert len(numbers) == 1
        back_up(archive, tmp_path / "to")
        files = tree(tmp_path / "archive" / "dictionaries")
        texts = [message.parts[0].data["text"] for message in archive.messages("ses_1")]
    restored(tmp_path / "to", tmp_path / "new")
    assert tree(tmp_path / "new" / "dictionaries") == files
    with Archive(tmp_path / "new") as new:
        assert [message.parts[0].data["text"] for message in new.messages("ses_1")] == texts


def test_a_dictionary_that_leveldb_lost_is_in_the_backup(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 300, 8000)
        [lost] = [key for key, _ in archive.stored_rows() if key.startswith(b"dict:")]
        archive._store.write_stored([(lost, None)])
        assert lost in dict(archive.stored_rows())


def test_only_new_segments_are_written(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        write(archive, 0, 300, 100_000)
        first = back_up(archive, tmp_path / "to")
        assert len(first.written) == len(first.segments) > 5
        assert back_up(archive, tmp_path / "to", T0 + 1).written == {}
        write(archive, 2000, 1)
        assert 1 <= len(back_up(archive, tmp_path / "to", T0 + 2).written) <= 3
    assert damage_in(tmp_path / "to") == []


def test_files_are_private(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (tmp_path / "to").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert (tmp_path / "to").stat().st_mode & 0o777 == 0o700


def test_old_backups_go_with_what_only_they_need(tmp_path: Path, archive: Archive) -> None:
    for number in range(4):
        write(archive, 100 * number, 3)
        back_up(archive, tmp_path / "to", T0 + number, keep=2)
    with BackupFolder.to_read(tmp_path / "to") as folder:
        manifests = [folder.manifest(name) for name in folder.manifests()]
        assert [manifest.made for manifest in manifests] == [T0 + 2, T0 + 3]
        named = {segment.sha256 for manifest in manifests for segment in manifest.segments}
        assert set(folder.stored_segments()) == named
        assert folder.newest(T0 + 2) == folder.manifests()[0]
        with pytest.raises(BadBackup, match="no backup of that time"):
            folder.newest(T0 + 1)


def test_nothing_is_removed_while_a_manifest_is_damaged(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    [manifest] = (tmp_path / "to" / "manifests").iterdir()
    manifest.write_bytes(manifest.read_bytes().replace(b'"messages": 40', b'"messages": 41'))
    before = tree(tmp_path / "to" / "segments")
    write(archive, 100, 1)
    with pytest.raises(BadBackup, match="hash in its name"):
        back_up(archive, tmp_path / "to", T0 + 1, keep=1)
    assert before.items() <= tree(tmp_path / "to" / "segments").items()
    assert "hash in its name" in damage_in(tmp_path / "to")[0]


def test_a_damaged_segment_is_written_again(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    [segment] = (tmp_path / "to" / "segments").iterdir()
    whole = segment.read_bytes()
    segment.write_bytes(whole[:50])
    assert back_up(archive, tmp_path / "to", T0 + 1).damaged == {}
    assert segment.read_bytes() == whole
    assert damage_in(tmp_path / "to") == []


@pytest.mark.parametrize("kind", ["flipped", "short", "gone", "a link", "a folder"])
def test_damage_is_named_and_not_restored(tmp_path: Path, archive: Archive, kind: str) -> None:
    back_up(archive, tmp_path / "to")
    [segment] = (tmp_path / "to" / "segments").iterdir()
    whole = segment.read_bytes()
    segment.unlink()
    if kind == "flipped":
        segment.write_bytes(whole[:700] + bytes([whole[700] ^ 255]) + whole[701:])
    elif kind == "short":
        segment.write_bytes(whole[:-1])
    elif kind == "a link":
        segment.symlink_to(tmp_path / "elsewhere")
    elif kind == "a folder":
        segment.mkdir()
    [damage] = damage_in(tmp_path / "to")
    assert str(segment) in damage
    with pytest.raises(BadBackup, match="nothing was restored"):
        restored(tmp_path / "to", tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "to"]


def test_a_backup_is_one_moment_while_messages_are_written(tmp_path: Path, archive: Archive) -> None:
    """The rows of a backup are those of one commit: counts, order and messages agree with each other."""
    ends = threading.Event()

    def keep_writing() -> None:
        number = 1000
        while not ends.is_set():
            write(archive, number, 1)
            number += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for number in range(6):
            back_up(archive, tmp_path / "to", T0 + number, keep=1)
            restored(tmp_path / "to", tmp_path / f"new{number}")
    finally:
        ends.set()
        writer.join()
    sizes = []
    for number in range(6):
        with Archive(tmp_path / f"new{number}") as new:
            ids = new.message_ids("ses_1")
            assert ids == [f"msg_{n:05}" for n in [*range(40), *range(1000, 1000 + len(ids) - 40)]]
            assert sorted(new.all_message_ids()) == ids
            assert [len(message.parts) for message in new.messages("ses_1")] == [1] * len(ids)
            assert new.figures()["messages"] == new.figures()["parts"] == len(ids)
            assert new.waiting("lexical") == len(new.outbox("lexical", 100_000)) == len(ids)
            sizes.append(len(ids))
    assert sizes == sorted(sizes)
    assert len(set(sizes)) > 1


def test_an_archive_that_is_closed_ends_a_backup(tmp_path: Path, archive: Archive) -> None:
    write(archive, 100, 200, 20_000)
    rows = archive.stored_rows()
    next(rows)
    archive.close()
    with pytest.raises(Retry, match="closed"):
        list(rows)


# -- places --------------------------------------------------------------------------------------------------------------


def _foreign(place: Path) -> None:
    place.mkdir()
    (place / "notes.txt").write_text("mine")


PLACES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "other files": (_foreign, "holds other files \\('notes.txt'\\)"),
    "a file": (lambda place: place.write_text("mine"), "is a file"),
    "a link to nothing": (lambda place: place.symlink_to("nothing"), "in the way"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_place_that_is_not_for_backups_is_refused(tmp_path: Path, archive: Archive, case: str) -> None:
    prepare, message = PLACES[case]
    prepare(tmp_path / "to")
    with pytest.raises(OutputRefused, match=message):
        back_up(archive, tmp_path / "to")
    if case == "other files":
        assert tree(tmp_path / "to") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("place", [".", "large", "new/deeper", "../link"])
def test_a_place_in_the_archive_is_refused(tmp_path: Path, archive: Archive, place: str) -> None:
    (tmp_path / "link").symlink_to(archive.directory)
    before = tree(archive.directory).keys()
    with pytest.raises(OutputRefused, match="lies in"):
        back_up(archive, Path(os.path.normpath(archive.directory / place)))
    assert tree(archive.directory).keys() == before


def test_backups_of_another_archive_are_left_alone(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    before = tree(tmp_path / "to")
    with Archive(tmp_path / "other") as other:
        write(other, 0, 1)
        with pytest.raises(OutputRefused, match=f"holds backups of the archive {archive.directory}"):
            back_up(other, tmp_path / "to")
    assert tree(tmp_path / "to") == before


def test_a_second_backup_at_once_is_refused(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    with BackupFolder.to_write(tmp_path / "to", archive.directory):
        with pytest.raises(Retry, match="another command"):
            back_up(archive, tmp_path / "to")
        with pytest.raises(Retry, match="another command"):
            damage_in(tmp_path / "to")
    with BackupFolder.to_read(tmp_path / "to"):
        assert damage_in(tmp_path / "to") == []
        with pytest.raises(Retry, match="another command"):
            back_up(archive, tmp_path / "to")


def test_a_newer_format_or_schema_is_refused(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    with pytest.raises(BadBackup, match="schema 2, this Reconstitute knows up to 1; upgrade"):
        restored(tmp_path / "to", tmp_path / "new", known_schema=1)
    marker = tmp_path / "to" / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | {"format": 2}))
    with pytest.raises(BadBackup, match="format 2, this Reconstitute knows 1; upgrade"):
        restored(tmp_path / "to", tmp_path / "new")
    with pytest.raises(BadBackup, match="format 2"):
        back_up(archive, tmp_path / "to")
    assert not (tmp_path / "new").exists()


def test_a_manifest_of_a_newer_format_is_refused() -> None:
    newer = Manifest(format=9, schema=1, version="", archive="", made=T0, counts={}, segments=[], large=[])
    with pytest.raises(BadBackup, match="format 9"):
        decoded(newer.name, newer.encoded())
    older = Manifest(schema=1, version="", archive="", made=T0, counts={}, segments=[], large=[])
    assert decoded(older.name, older.encoded()) == older


def test_a_folder_without_backups_is_not_restored(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(BadBackup, match="holds no backups"):
            restored(place, tmp_path / "new")


def test_nothing_is_written_over_an_archive(tmp_path: Path, archive: Archive) -> None:
    back_up(archive, tmp_path / "to")
    with pytest.raises(ArchiveLocked, match=f"pid {os.getpid()}"):
        restored(tmp_path / "to", archive.directory)
    archive.close()
    before = tree(archive.directory)
    with pytest.raises(OutputRefused, match="move it aside first"):
        restored(tmp_path / "to", archive.directory)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputRefused, match="name a new directory"):
        restored(tmp_path / "to", tmp_path / "file")
    assert tree(archive.directory) == before
    (tmp_path / "empty").mkdir()
    restored(tmp_path / "to", tmp_path / "empty")
    assert (tmp_path / "empty" / "leveldb").is_dir()


# -- disks ---------------------------------------------------------------------------------------------------------------


@with_small_disks
def test_a_full_disk_leaves_the_earlier_backup(request, tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "small", 16)
    try:
        with Archive(tmp_path / "archive") as archive:
            write(archive, 0, 100, 20_000)
            back_up(archive, disk.path / "to")
            before = tree(disk.path / "to")
            write(archive, 100, 200, 100_000)
            with pytest.raises(DiskFull, match="the earlier backups there are whole"):
                back_up(archive, disk.path / "to", T0 + 1)
            assert before.items() <= tree(disk.path / "to").items()
            assert damage_in(disk.path / "to") == []
            back_up(archive, tmp_path / "to")
            disk.fill()
            with pytest.raises(DiskFull, match="free some"):
                restored(tmp_path / "to", disk.path / "new")
        assert sorted(path.name for path in disk.path.iterdir() if path.name != ".filler") == ["to"]
    finally:
        disk.close()


# -- large records -------------------------------------------------------------------------------------------------------


def test_undoing_leaves_alone_what_an_earlier_backup_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that the folder has may be sent again, and writing it may fail before the file is replaced."""
    rows = [(b"a%05d" % number, os.urandom(200)) for number in range(3000)]
    with BackupFolder.to_write(tmp_path / "to", tmp_path / "archive") as folder:
        for attempt in range(2):
            making = Making(folder, quiet)
            for piece in pieces(rows, [], Contents()):
                if attempt:
                    monkeypatch.setattr(durable.Root, "_fill", full)
                    with pytest.raises(OSError, match="No space"):
                        making.put(piece)
                else:
                    making.put(piece)
        stored = folder.stored_segments()
        making.undo()
        assert folder.stored_segments() == stored != []


def test_undoing_leaves_a_backup_whose_manifest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may be full when the manifest has its name already."""
    with BackupFolder.to_write(tmp_path / "to", tmp_path / "archive") as folder:
        making = Making(folder, quiet)
        for piece in pieces([(b"a", b"1")], [], Contents()):
            making.put(piece)
        written = Manifest(
            schema=SCHEMA, version="1", archive="/a", made=T0, counts={}, segments=making.segments, large=[]
        )
        folder.add(written)
        making = Making(folder, quiet)
        for piece in pieces([(b"b", b"2")], [], Contents()):
            making.put(piece)
        newer = structs.replace(written, made=T0 + 1, segments=making.segments)
        monkeypatch.setattr(durable.Root, "_settle", full)
        with pytest.raises(OSError, match="No space"):
            folder.add(newer)
        monkeypatch.undo()
        making.undo()
        assert folder.newest() == newer.name
    assert damage_in(tmp_path / "to") == []


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def keep_large(archive: Archive, message_id: str, content: bytes) -> str:
    sha256 = archive.large_files.keep([content], len(content))
    batch = archive.batch()
    batch.put_large(message_id, "", {"sha256": sha256, "bytes": len(content)})
    archive.commit(batch)
    return sha256


def test_large_records_are_copied_once_checked_and_restored(tmp_path: Path, archive: Archive) -> None:
    first = keep_large(archive, "msg_1", b"large" * 1000)
    assert list(back_up(archive, tmp_path / "to").copied) == [first]
    second = keep_large(archive, "msg_2", b"larger" * 1000)
    assert list(back_up(archive, tmp_path / "to", T0 + 1).copied) == [second]
    copy = tmp_path / "to" / "large" / first
    assert copy.stat().st_nlink == archive.large_files.path(first).stat().st_nlink == 1
    restored(tmp_path / "to", tmp_path / "new")
    assert tree(tmp_path / "new" / "large") == tree(archive.directory / "large")
    copy.write_bytes(b"other")
    assert damage_in(tmp_path / "to") == [f"{copy}: is damaged: its content does not match its name"] * 2
    with pytest.raises(BadBackup, match=first):
        restored(tmp_path / "to", tmp_path / "newer")
    assert list(back_up(archive, tmp_path / "to", T0 + 2).copied) == [first]
    assert damage_in(tmp_path / "to") == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_large_record_that_the_archive_has_lost_is_named(tmp_path: Path, archive: Archive, is_damaged: bool) -> None:
    lost, kept = keep_large(archive, "msg_1", b"lost"), keep_large(archive, "msg_2", b"kept")
    if is_damaged:
        archive.large_files.path(lost).write_bytes(b"other")
    else:
        archive.large_files.path(lost).unlink()
    back_up(archive, tmp_path / "to")
    assert damage_in(tmp_path / "to") == []
    assert restored(tmp_path / "to", tmp_path / "new").missing == [lost]
    assert list(tree(tmp_path / "new" / "large")) == [kept]


def test_a_large_record_that_no_backup_needs_is_removed(tmp_path: Path, archive: Archive) -> None:
    keep_large(archive, "msg_1", b"first version")
    back_up(archive, tmp_path / "to")
    newest = keep_large(archive, "msg_1", b"second version")
    back_up(archive, tmp_path / "to", T0 + 1, keep=1)
    assert list(tree(tmp_path / "to" / "large")) == [newest]
