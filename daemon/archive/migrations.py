"""Migrations: the steps that bring an archive of an older version to the current layout, in order.

Before the first step the archive is backed up, into a folder in its directory. Each step can be repeated, and the
schema is raised after each, so a migration that was interrupted goes on at the next start. The way back is that backup:
move the archive aside, restore that folder in it with `reconstitute restore-archive`, and install the older version.
The folder stays until the user removes it; the status names it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from daemon import __version__, log, records
from daemon.archive import keys
from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.making import Making, pieces
from daemon.archive.backup.manifest import Contents, Manifest
from daemon.archive.store import Store
from daemon.errors import ArchiveCorrupt, DiskFull
from daemon.filesystem.disk_space import free_bytes
from daemon.filesystem.large_files import LargeFiles
from daemon.model import Json

SCHEMA = 2
"""The version of the keys and values. 2: values are compressed, and replays are not stored."""

_BACKUP = "before-schema-"
"""Begins the names of the folders with the backups before migrations."""

_LOG = log.get("archive")
_AT_ONCE = 5000


def bring_up_to_date(store: Store, directory: Path, on_step: Callable[[], None]) -> None:
    """Give a new archive its schema, and an older one the current layout; `on_step` is called after each small step.

    Raises:
        ArchiveCorrupt: a newer Reconstitute wrote it.
        DiskFull: there is no space for the backup; nothing was migrated.
    """
    schema = int(store.get(keys.SCHEMA) or 0)
    if schema > SCHEMA:
        raise ArchiveCorrupt(
            f"{directory}: the archive has schema {schema}, this Reconstitute knows up to {SCHEMA}; upgrade it, or "
            "move the directory aside and restore the backup from before the upgrade, which is in it (before-schema-"
            f"{schema}), with `reconstitute restore-archive`"
        )
    if not schema:
        store.write({keys.SCHEMA: str(SCHEMA).encode()})
    if not 0 < schema < SCHEMA:
        return
    if _state(store).get("to") != SCHEMA:  # else it was interrupted after the backup
        name = _backed_up(store, directory, schema, on_step)
        store.write({keys.MIGRATION: records.dumps({"from": schema, "to": SCHEMA, "backup": name})})
    for version, step in MIGRATIONS.items():
        if version >= schema:
            _LOG.info("migration", archive=str(directory), schema=version + 1)
            step(store, on_step)
            store.write({keys.SCHEMA: str(version + 1).encode()})


def _backed_up(store: Store, directory: Path, schema: int, on_step: Callable[[], None]) -> str:
    """Back the archive up into a folder in its directory, where the service may always write; returns its name."""
    path = directory / f"{_BACKUP}{SCHEMA}"
    large_files = LargeFiles(directory / "large")
    contents = Contents()
    needed = 2 * store.bytes_on_disk() + sum(file.stat().st_size for file in large_files.directory.glob("*"))
    if free_bytes(directory) < needed:
        raise DiskFull(
            f"{directory}: less than {(needed >> 20) + 1} MB free, which the backup before an upgrade of the "
            "archive needs; free some"
        )
    _LOG.info("backup before a migration", archive=str(directory), schema=schema, folder=str(path))
    with BackupFolder.to_write(path, directory) as folder:
        making = Making(folder, lambda *_: on_step())
        have = frozenset(making.whole_segments())
        with folder.batched():
            for piece in pieces(store.stored_rows(), have, contents):
                making.put(piece)
        large = list(contents.large.values())
        missing = making.copy_large(large, large_files)
        folder.add(
            Manifest(
                schema=schema, version=__version__, archive=str(directory), made=int(time.time() * 1000),
                counts={name: contents.counts.get(name, 0) for name in ("sessions", "messages", "parts")},
                segments=making.segments, large=large, missing=missing,
            )
        )  # fmt: skip
    return path.name


def backup_before(store: Store, directory: Path) -> Path | None:
    """The folder with the backup that was made before the last migration, while it is there."""
    name = _state(store).get("backup")
    return directory / name if name and (directory / name).is_dir() else None


def backups_before(directory: Path) -> list[Path]:
    """The folders with backups from before migrations, finished or not; a link leads to what is the user's."""
    return sorted(path for path in directory.glob(f"{_BACKUP}*") if path.is_dir() and not path.is_symlink())


def _state(store: Store) -> Json:
    """The last migration, which may be unfinished: ``{from, to, backup}``."""
    return records.load_object(store.get(keys.MIGRATION) or b"{}")


def _drop_replays(store: Store, on_step: Callable[[], None]) -> None:
    """Remove the messages in Ollama's form that schema 1 stored, because they are now made on demand."""
    replays = (key for key in store.keys(b"msg:") if key.endswith(b":ollama"))
    while batch_keys := list(itertools.islice(replays, _AT_ONCE)):
        store.write(dict.fromkeys(batch_keys))
        on_step()


MIGRATIONS: dict[int, Callable[[Store, Callable[[], None]], None]] = {1: _drop_replays}
"""The step from each older schema to the next, in order. tests/fixtures has an archive of each released layout."""
