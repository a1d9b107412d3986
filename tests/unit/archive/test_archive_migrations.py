"""Archives of older versions: backed up, migrated in steps, refused if they are newer."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from daemon.archive import SCHEMA, Archive, keys, migrations
from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.restoring import restore
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt, DiskFull
from daemon.ingest.evidence import move_events
from tests.unit.archive.test_archive_backup import damage_in, quiet

FIXTURES = Path(__file__).parents[2] / "fixtures"
RELEASED = {"0.1": 1}
"""Each released version with its schema. tests/fixtures has an archive of each, which its own code made: that of 0.1 by
`index` from the sessions in held-1.15.13.tar.gz."""


def unpacked(version: str, place: Path) -> Path:
    with tarfile.open(FIXTURES / f"archive-{version}.tar.gz") as file:
        file.extractall(place, filter="data")
    return place


def rows(place: Path) -> dict[bytes, bytes]:
    store = Store(place)
    try:
        return {key: store.get(key) or b"" for key, _ in store.stored_rows()}
    finally:
        store.close()


def texts(archive: Archive) -> dict[str, list[object]]:
    """Each message that said something, with its parts."""
    messages = (archive.message(message_id) for message_id in archive.all_message_ids())
    return {message.id: [part.data for part in message.parts] for message in messages if message and message.parts}


def test_there_is_a_step_and_a_fixture_for_each_older_schema() -> None:
    assert list(migrations.MIGRATIONS) == list(range(1, SCHEMA))
    assert {version for version in RELEASED if (FIXTURES / f"archive-{version}.tar.gz").is_file()} == set(RELEASED)


@pytest.mark.parametrize("version", RELEASED)
def test_an_archive_of_each_release_is_migrated_and_loses_nothing(version: str, tmp_path: Path) -> None:
    before = rows(unpacked(version, tmp_path / "a"))
    assert before[keys.SCHEMA] == str(RELEASED[version]).encode()
    kept = {key: value for key, value in before.items() if not key.endswith(b":ollama")}
    assert len(kept) < len(before)
    with Archive(tmp_path / "a") as archive:
        after = {key: archive._store.get(key) for key, _ in archive.stored_rows()}
        assert int(after.pop(keys.SCHEMA) or 0) == SCHEMA
        assert after.pop(keys.MIGRATION)
        assert after == {key: value for key, value in kept.items() if key != keys.SCHEMA}
        assert archive.backup_before_migration() == tmp_path / "a" / f"before-schema-{SCHEMA}"
        assert (len(list(archive.sessions())), archive.figures()["messages"]) == (6, 43)
        assert len(texts(archive)) > 30
        said = texts(archive)
        move_events(archive)
        assert texts(archive) == said


@pytest.mark.parametrize("version", RELEASED)
def test_the_backup_before_a_migration_is_the_way_back(version: str, tmp_path: Path) -> None:
    before = rows(unpacked(version, tmp_path / "a"))
    with Archive(tmp_path / "a") as archive:
        archive.set_note("something", "newer")
    (tmp_path / "a").rename(tmp_path / "aside")
    folder = tmp_path / "aside" / f"before-schema-{SCHEMA}"
    assert damage_in(folder) == []
    with BackupFolder.to_read(folder) as backups:
        restore(backups, backups.newest(), tmp_path / "a", SCHEMA, quiet)
    assert rows(tmp_path / "a") == before


def test_a_migration_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """And its backup stays the one of the archive as it was before."""
    before = rows(unpacked("0.1", tmp_path / "a"))
    write, left, tries = Store.write, 0, 0

    def failing(store: Store, *changes: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        write(store, *changes)

    with mock.patch.object(Store, "write", failing), mock.patch.object(migrations, "_AT_ONCE", 20):
        while True:
            left = tries
            try:
                Archive(tmp_path / "a").close()
                break
            except KeyboardInterrupt:
                tries += 1
    assert tries >= 3
    with Archive(tmp_path / "a") as archive:
        assert not [key for key, _ in archive.stored_rows() if key.endswith(b":ollama")]
        folder = archive.backup_before_migration()
    assert folder is not None
    with BackupFolder.to_read(folder) as backups:
        assert backups.manifest(backups.newest()).schema == 1
        restore(backups, backups.newest(), tmp_path / "back", SCHEMA, quiet)
    assert rows(tmp_path / "back") == before


def test_without_room_for_the_backup_nothing_is_migrated(tmp_path: Path) -> None:
    before = rows(unpacked("0.1", tmp_path / "a"))
    with (
        mock.patch.object(migrations, "free_bytes", return_value=1000),
        pytest.raises(DiskFull, match="the backup before an upgrade"),
    ):
        Archive(tmp_path / "a")
    assert rows(tmp_path / "a") == before
    Archive(tmp_path / "a").close()


def test_a_migration_gives_signs_of_life_and_an_opening_none(tmp_path: Path) -> None:
    steps: list[int] = []
    for _ in range(2):
        Archive(
            unpacked("0.1", tmp_path / "a") if not steps else tmp_path / "a", on_step=lambda: steps.append(1)
        ).close()
        assert len(steps) == 2


def test_the_status_forgets_a_backup_that_was_removed(tmp_path: Path) -> None:
    with Archive(unpacked("0.1", tmp_path / "a")) as archive:
        folder = archive.backup_before_migration()
        assert folder is not None
        folder.rename(tmp_path / "elsewhere")
        assert archive.backup_before_migration() is None


def test_a_newer_archive_is_refused_with_the_advice(tmp_path: Path) -> None:
    with Archive(tmp_path / "a") as archive:
        archive._store.write({keys.SCHEMA: b"99"})
    before = rows(tmp_path / "a")
    with pytest.raises(ArchiveCorrupt, match=r"schema 99.*upgrade it, or move.*before-schema-99"):
        Archive(tmp_path / "a")
    assert rows(tmp_path / "a") == before
