"""The folder that holds backups: whose it is, who may write in it, and what is in it.

Guarantees: nothing is written into a folder that holds anything but backups of the same archive. One process writes at
a time, and none while another reads. Each file is read back after it was written. A full disk or a lost permission is
an error that leaves all earlier backups as they were.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

from daemon import records
from daemon.archive.backup.manifest import FORMAT, LargeRecord, Manifest, decoded, name_time, time_in
from daemon.archive.store.compression import DamagedError
from daemon.archive.store.segments import decompressed
from daemon.errors import BadBackup, BadRecord, DiskFull, OutputRefused, Retry
from daemon.filesystem import durable
from daemon.filesystem.disk_space import FULL
from daemon.filesystem.large_files import LargeFiles
from daemon.filesystem.regular_file import NotRegularError, opened

MARKER = "reconstitute-backup.json"
_LOCK = "lock"
_NOT_OURS = frozenset({"lost+found"})
_MANIFESTS, _SEGMENTS, _LARGE = "manifests", "segments", "large"
_ABOUT = (
    "Backups of an archive of Reconstitute. `reconstitute backup --check` checks them, `reconstitute restore-archive` "
    "makes an archive of one. Copy the whole folder, or none of it."
)
_PIECE = 1 << 20


class BackupFolder:
    """Open it with `to_write` or `to_read`."""

    def __init__(self, path: Path, root: durable.Root) -> None:
        self.path = path
        self.large_files = LargeFiles(path / _LARGE)
        self._root = root

    # -- opening -------------------------------------------------------------------------------------------------

    @classmethod
    @contextmanager
    def to_write(cls, path: Path, archive: Path, forbidden: Sequence[Path] = ()) -> Iterator[Self]:
        """The folder at the absolute `path`, made if needed, for backups of the archive in the directory `archive`.

        It must not lie in one of the folders `forbidden`.

        Raises:
            OutputRefused: it is not a place for them, or cannot be written; nothing was changed.
            DiskFull: there is no space.
            Retry: another process uses it.
        """
        for folder in forbidden:
            if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
                raise OutputRefused(f"{path}: lies in {folder}, which backups must not be in; name another folder")
        place = os.path.realpath(archive)
        with _errors_named(path), ExitStack() as stack:
            _refuse_foreign(path)
            root = stack.enter_context(durable.Root(path))
            stack.callback(os.close, _lock(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX))
            marker = root.read(MARKER, _PIECE)
            if marker is None:
                about = {"about": _ABOUT, "format": FORMAT, "archive": place}
                root.write(MARKER, records.dumps(about) + b"\n")
            else:
                _check_marker(path, marker, place)
            yield cls(path, root)

    @classmethod
    @contextmanager
    def to_read(cls, path: Path) -> Iterator[Self]:
        """The folder at the absolute `path`, which is not changed.

        Raises:
            BadBackup: there are no backups, or a newer Reconstitute made them.
            Retry: a backup is being written there.
        """
        marker = path / MARKER
        if not marker.is_file():
            raise BadBackup(f"{path}: holds no backups ({MARKER} is missing); name the folder that `backup` wrote to")
        with _errors_named(path), ExitStack() as stack:
            root = stack.enter_context(durable.Root(path))
            with suppress(FileNotFoundError, PermissionError):  # a copy, or a disk that is read-only
                stack.callback(os.close, _lock(path, os.O_RDONLY, fcntl.LOCK_SH))
            _check_marker(path, root.read(MARKER, _PIECE) or b"", None)
            yield cls(path, root)

    # -- manifests -----------------------------------------------------------------------------------------------

    def manifests(self) -> list[str]:
        """The names of all manifests, oldest first."""
        return [name for name in self._root.list(_MANIFESTS) if name.endswith(".json") and not name.startswith(".")]

    def newest(self, until: int | None = None) -> str:
        """The name of the newest manifest, or of the newest that was made until then (epoch ms).

        Raises:
            BadBackup: there is none.
        """
        names = self.manifests()
        chosen = [name for name in names if until is None or name[:20] <= name_time(until)]
        if not chosen:
            oldest = f"; the oldest is {names[0]}" if names else ""
            raise BadBackup(f"{self.path}: there is no backup{'' if until is None else ' of that time'}{oldest}")
        return chosen[-1]

    def manifest(self, name: str) -> Manifest:
        """One manifest.

        Raises:
            BadBackup: it is damaged, or a newer Reconstitute wrote it.
        """
        try:
            return decoded(name, self._root.read(f"{_MANIFESTS}/{name}") or b"")
        except OutputRefused as error:
            raise BadBackup(str(error)) from error

    def time_for(self, made: int) -> int:
        """The time of a new backup, later than that of all others even if the clock was set back."""
        return max(made, *(time_in(name) + 1 for name in self.manifests()[-1:]), 0)

    def add(self, manifest: Manifest) -> None:
        """Write a manifest, after everything that it names."""
        self._write(f"{_MANIFESTS}/{manifest.name}", manifest.encoded())

    def remove_old(self, keep: int) -> int:
        """Remove all but the newest `keep` backups, then the files that no other one needs; returns how many backups.

        While a manifest is damaged nothing is removed, because what it needs is not known.

        Raises:
            BadBackup: one is.
        """
        names = self.manifests()
        kept = [self.manifest(name) for name in names]
        removed = names[:-keep]
        for name in removed:
            self._root.remove(f"{_MANIFESTS}/{name}")
        needed = {f"{segment.sha256}.zst" for manifest in kept[len(removed) :] for segment in manifest.segments}
        with self._root.batched():
            for name in self._root.list(_SEGMENTS):
                if name not in needed:
                    self._root.remove(f"{_SEGMENTS}/{name}")
            for name in self._root.list(_MANIFESTS):
                if name.endswith(".tmp"):  # of a backup that was killed
                    self._root.remove(f"{_MANIFESTS}/{name}")
        self.large_files.remove_except({file.sha256 for manifest in kept[len(removed) :] for file in manifest.large})
        return len(removed)

    # -- segments ------------------------------------------------------------------------------------------------

    def stored_segments(self) -> list[str]:
        """The hashes of all segments that have a file, whole or not."""
        return [name.removesuffix(".zst") for name in self._root.list(_SEGMENTS) if name.endswith(".zst")]

    def segment(self, sha256: str) -> bytes:
        """A segment.

        Raises:
            BadBackup: it is missing or damaged.
        """
        name = f"{_SEGMENTS}/{sha256}.zst"
        try:
            file = self._root.read(name)
            if file is None:
                raise BadBackup(f"{self.path / name}: is missing")
            content = decompressed(file)
        except (DamagedError, OutputRefused) as error:
            raise BadBackup(f"{self.path / name}: is damaged: {error}") from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise BadBackup(f"{self.path / name}: is damaged: its content does not match the hash in its name")
        return content

    def put_segment(self, sha256: str, compressed: bytes) -> None:
        """Write a segment."""
        self._write(f"{_SEGMENTS}/{sha256}.zst", compressed)

    def drop_segments(self, hashes: Sequence[str]) -> None:
        """Remove segments that no manifest names."""
        for sha256 in hashes:
            self._root.remove(f"{_SEGMENTS}/{sha256}.zst")

    @contextmanager
    def batched(self) -> Iterator[None]:
        """Within this block folders are synced only once, at the end."""
        with self._root.batched():
            yield

    # -- large records -------------------------------------------------------------------------------------------

    def check_large(self, record: LargeRecord) -> None:
        """Check a large record.

        Raises:
            BadBackup: it is missing or damaged.
        """
        path = self.large_files.path(record.sha256)
        try:
            with opened(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise BadBackup(f"{path}: is missing") from None
        except NotRegularError as error:
            raise BadBackup(f"{path}: {error.strerror}") from error
        if digest != record.sha256:
            raise BadBackup(f"{path}: is damaged: its content does not match its name")

    def copy_large(self, record: LargeRecord, source: LargeFiles, goal: LargeFiles) -> None:
        """Copy a large record from one directory to another, and read the copy back.

        Raises:
            FileNotFoundError: it is not there.
            BadBackup: it is damaged.
        """
        path = source.path(record.sha256)
        with opened(path) as file:
            digest = goal.keep(iter(lambda: file.read(_PIECE), b""), record.size)
        if digest != record.sha256:
            raise BadBackup(f"{path}: is damaged: its content does not match its name")
        with opened(goal.path(digest)) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise OutputRefused(f"{goal.path(digest)}: reads back other than it was written; see to the disk")

    def _write(self, name: str, data: bytes) -> None:
        self._root.write(name, data)
        if self._root.read(name) != data:
            raise OutputRefused(f"{self.path / name}: reads back other than it was written; see to the disk")


def _lock(path: Path, flags: int, kind: int) -> int:
    """A descriptor that holds the folder's lock until it is closed."""
    descriptor = os.open(path / _LOCK, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Retry(
            f"{path}: another command is writing or checking backups there; run this one again when that has ended"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_foreign(path: Path) -> None:
    """Refuse a place that holds anything else than backups."""
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise OutputRefused(f"{path}: is a file; name a new folder") from None
    others = [name for name in names - _NOT_OURS - {_LOCK} if not name.endswith(".tmp")]
    if MARKER not in names and others:
        raise OutputRefused(f"{path}: holds other files ({min(others)!r}); name a new or an empty folder")


def _check_marker(path: Path, marker: bytes, archive: str | None) -> None:
    try:
        state = records.load_object(marker)
    except BadRecord as error:
        raise BadBackup(f"{path / MARKER}: is damaged: {error}; restore it from a copy of the folder") from error
    if state.get("format") != FORMAT:
        raise BadBackup(
            f"{path}: has format {state.get('format')}, this Reconstitute knows {FORMAT}; upgrade Reconstitute, "
            "or name another folder"
        )
    if archive is not None and state.get("archive") != archive:
        raise OutputRefused(f"{path}: holds backups of the archive {state.get('archive')}; name another folder")


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Name the folder and the fix when the disk refuses."""
    try:
        yield
    except BrokenPipeError:  # whoever reads our progress is gone
        raise
    except OSError as error:
        cause = error.strerror or str(error)
        if error.errno in FULL:
            raise DiskFull(f"{path}: {cause}; the earlier backups there are whole; free some space there") from error
        raise OutputRefused(
            f"{error.filename or path}: {cause}; the earlier backups in {path} are whole; check the folder and its disk"
        ) from error
