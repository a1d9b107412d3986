"""Making a backup: one side reads the archive, the other writes into the folder.

They may be two processes: the service reads, and the command writes, so that a backup goes wherever the user may write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from daemon.archive.backup.folder import BackupFolder
from daemon.archive.backup.manifest import Contents, LargeRecord, Segment
from daemon.archive.store.segments import compressed, segments
from daemon.errors import BadBackup
from daemon.filesystem.large_files import LargeFiles

HASH = 32
"""Characters of a hash by which a segment is known to be there already."""

Progress = Callable[[str, int, int | None], None]
"""Called with what is done, how much of it, and of how much."""


class Piece(NamedTuple):
    """A segment and its compressed form, which is None if the folder has it already."""

    segment: Segment
    compressed: bytes | None


def pieces(rows: Iterable[tuple[bytes, bytes]], have: Collection[str], contents: Contents) -> Iterator[Piece]:
    """Cut rows into segments, without the bytes of those in `have` (hashes cut to HASH); fills `contents`."""
    for content, count in segments(contents.noting(rows)):
        digest = hashlib.sha256(content).hexdigest()
        segment = Segment(digest, len(content), count)
        yield Piece(segment, None if digest[:HASH] in have else compressed(content))


class Making:
    """One backup that is being written into its folder."""

    def __init__(self, folder: BackupFolder, progress: Progress) -> None:
        self._folder = folder
        self._progress = progress
        self.segments: list[Segment] = []
        self.written: dict[str, int] = {}
        """The new segments: hash -> bytes of the file."""
        self.copied: dict[str, int] = {}
        """The new large records: hash -> bytes."""
        self._manifests = folder.manifests()
        self._former = set(folder.stored_segments())
        """Hashes of files that were there before, whole or not."""
        self.damaged: dict[str, str] = {}
        """Segments in the folder that are damaged, with the reason, but for those that were written again."""

    def whole_segments(self) -> list[str]:
        """Check all segments that are in the folder; returns the hashes, cut to HASH, of those that are whole."""
        stored, whole = self._folder.stored_segments(), list[str]()
        for number, sha256 in enumerate(stored, start=1):
            try:
                self._folder.segment(sha256)
            except BadBackup as error:
                self.damaged[sha256] = str(error)
            else:
                whole.append(sha256[:HASH])
            self._progress("checking segments", number, len(stored))
        return whole

    def begin(self) -> None:
        """Before rows are read, again or for the first time; what was written stays written."""
        self.segments.clear()

    def put(self, piece: Piece) -> None:
        """Take the next segment."""
        segment, file = piece
        if file is not None and segment.sha256 not in self.written:
            self.written[segment.sha256] = len(file)  # before: an error may come after the file has its name
            self._folder.put_segment(segment.sha256, file)
            self.damaged.pop(segment.sha256, None)
        self.segments.append(segment)
        self._progress("segments", len(self.segments), None)

    def copy_large(self, records: Collection[LargeRecord], source: LargeFiles) -> list[str]:
        """Copy the large records that the folder lacks; returns the hashes of those that the archive lacks."""
        missing = []
        for number, record in enumerate(records, start=1):
            try:
                self._folder.check_large(record)
            except BadBackup:
                if self._folder.large_files.path(record.sha256).exists():
                    self._former.add(record.sha256)
                try:
                    self.copied[record.sha256] = record.size
                    self._folder.copy_large(record, source, self._folder.large_files)
                except (FileNotFoundError, BadBackup):
                    del self.copied[record.sha256]
                    missing.append(record.sha256)
            self._progress("large records", number, len(records))
        return missing

    def undo(self) -> None:
        """Remove what is new, because there was no space for all of it; nothing if its manifest is there already."""
        if self._folder.manifests() != self._manifests:
            return
        self._folder.drop_segments([sha256 for sha256 in self.written if sha256 not in self._former])
        for sha256 in self.copied.keys() - self._former:
            self._folder.large_files.path(sha256).unlink(missing_ok=True)
