"""The call that hands out the archive's rows for a backup; the client writes them (archive.backup)."""

from __future__ import annotations

import time

from daemon import __version__
from daemon.app.calls.files import FileCalls
from daemon.archive.backup.making import pieces
from daemon.archive.backup.manifest import Contents
from daemon.control import answers, calls
from daemon.control.calls import BackupSegment, OnPart, Progress


class BackupCalls(FileCalls):
    """A part of the engine, as FileCalls."""

    def backup(self, request: calls.Backup, progress: Progress, on_part: OnPart) -> answers.Backup:
        """See calls.Backup.

        Raises:
            ArchiveCorrupt: a row failed its checksum.
            Retry: the service is stopping.
        """
        warnings = self.current(progress)
        contents, made = Contents(), int(time.time() * 1000)
        for segment, file in pieces(self.archive.stored_rows(), frozenset(request.have), contents):
            on_part(BackupSegment(segment.sha256, segment.size, segment.rows, file))
        return answers.Backup(
            archive=str(self.archive.directory),
            version=__version__,
            schema=contents.schema,
            made=made,
            counts={name: contents.counts.get(name, 0) for name in ("sessions", "messages", "parts")},
            large=[answers.BackedUpRecord(record.sha256, record.size) for record in contents.large.values()],
            warnings=warnings,
        )
