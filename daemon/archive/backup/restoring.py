"""Makes an archive of a backup, in a directory that does not exist or is empty.

It is built beside its place and renamed when it is whole and was read back. So whenever this is interrupted, the place
is as it was, and the next run removes what is left.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from daemon.archive.backup.checking import check
from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.making import Progress
from daemon.archive.backup.manifest import Manifest
from daemon.archive.store import Store
from daemon.archive.store.segments import pairs
from daemon.errors import ArchiveLocked, BadBackup, DiskFull, OutputRefused
from daemon.filesystem import durable
from daemon.filesystem.disk_space import FULL, free_bytes
from daemon.filesystem.large_files import LargeFiles

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def restore(folder: BackupFolder, name: str, goal: Path, known_schema: int, progress: Progress) -> Manifest:
    """Make an archive of the backup with the manifest `name`, at the absolute path `goal`.

    Raises:
        BadBackup: it is damaged or newer than this version. Nothing was changed.
        OutputRefused: `goal` is not a place for it.
        ArchiveLocked: another process has an archive there.
        DiskFull: there is no space.
    """
    refuse_taken(goal)
    manifest = folder.manifest(name)
    if manifest.schema > known_schema:
        raise BadBackup(
            f"{name}: its archive has schema {manifest.schema}, this Reconstitute knows up to {known_schema}; upgrade "
            f"Reconstitute to version {manifest.version} or later"
        )
    [checked] = check(folder, progress, [name])
    if checked.damage:
        more = f" (and {len(checked.damage) - 1} more files)" if len(checked.damage) > 1 else ""
        raise BadBackup(f"{checked.damage[0]}{more}; nothing was restored; use a copy of the backup, or an older one")
    with _errors_named(goal), _built_beside(goal, manifest.size) as place:
        _fill(folder, manifest, place, progress)
        _read_back(folder, manifest, place, progress)
        for record in manifest.large:
            if record.sha256 not in manifest.missing:
                folder.copy_large(record, folder.large_files, LargeFiles(place / "large"))
    return manifest


def refuse_taken(goal: Path) -> None:
    """Check that `goal` does not exist or is an empty directory.

    Raises:
        OutputRefused: it is something else.
        ArchiveLocked: another process has an archive there.
    """
    try:
        names = os.listdir(goal)
    except FileNotFoundError:
        if goal.is_symlink():
            raise OutputRefused(f"{goal}: is a link to nothing; remove it, or name another directory") from None
        return
    except OSError as error:
        raise OutputRefused(f"{goal}: {error.strerror}; name a new directory") from error
    if not names:
        return
    if (goal / "daemon.lock").is_file():
        with open(goal / "daemon.lock", "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveLocked(
                    f"{goal}: in use by another Reconstitute (pid {lock.read(20).decode().strip()}); stop it first"
                ) from None
    raise OutputRefused(
        f"{goal}: is not empty, and nothing is written over an archive; move it aside first, as with "
        f"mv {goal} {goal}.old, or name another directory with --to"
    )


def _fill(folder: BackupFolder, manifest: Manifest, place: Path, progress: Progress) -> None:
    store = Store(place)
    try:
        for number, segment in enumerate(manifest.segments, start=1):
            store.write_stored(pairs(folder.segment(segment.sha256)))
            progress("restoring segments", number, len(manifest.segments))
    finally:
        store.close()


def _read_back(folder: BackupFolder, manifest: Manifest, place: Path, progress: Progress) -> None:
    """Compare each row with the backup. Opening the store again also writes the dictionaries to files."""
    store = Store(place)
    try:
        rows = store.stored_rows()
        for number, segment in enumerate(manifest.segments, start=1):
            if any(pair != next(rows, None) for pair in pairs(folder.segment(segment.sha256))):
                raise OutputRefused(f"{place}: reads back other than it was written; see to the disk")
            progress("comparing segments", number, len(manifest.segments))
        if next(rows, None) is not None:
            raise OutputRefused(f"{place}: holds more than was written; see to the disk")
    finally:
        store.close()


@contextmanager
def _built_beside(goal: Path, size: int) -> Iterator[Path]:
    """A new directory beside `goal`, which gets its name if the block ends well, and is removed otherwise."""
    prefix = f".{goal.name}.restoring-"
    goal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for leftover in goal.parent.glob(f"{prefix}*"):
        _remove_abandoned(leftover)
    free = free_bytes(goal.parent)
    if free < size:
        raise DiskFull(f"{goal.parent}: {free >> 20} MB free, and the archive needs {(size >> 20) + 1}; free some")
    place = Path(tempfile.mkdtemp(prefix=prefix, dir=goal.parent))
    with ExitStack() as stack:
        stack.callback(os.close, _locked(place))
        try:
            yield place
            with durable.Root(goal.parent) as root:
                root.rename(place.name, goal.name)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise


def _locked(place: Path) -> int:
    descriptor = os.open(place, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove_abandoned(leftover: Path) -> None:
    """Remove the directory of a restore that was killed, but not one that is under way."""
    try:
        descriptor = _locked(leftover)
    except OSError:
        return
    try:
        shutil.rmtree(leftover)
    finally:
        os.close(descriptor)


@contextmanager
def _errors_named(goal: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        cause = error.strerror or str(error)
        if error.errno in FULL:
            raise DiskFull(f"{goal}: {cause}; nothing was restored; free some space there") from error
        raise OutputRefused(f"{goal}: {cause}; nothing was restored; name another directory with --to") from error
