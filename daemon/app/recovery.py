"""The rooms that recover files, put together: evidence at intake, capture of snapshots, histories of files."""

from __future__ import annotations

from collections.abc import Callable

from daemon.archive import Archive
from daemon.config import Config
from daemon.files import Files
from daemon.ingest import Capture, Captured, Evidence
from daemon.opencode.snapshots import Snapshots


class Recovery:
    """Built once by the engine, over its archive; close it before that."""

    def __init__(self, archive: Archive, config: Config) -> None:
        first, *further = config.opencode_dirs
        self._snapshots = Snapshots(first, *further)
        self._capture = Capture(
            archive,
            self._snapshots,
            data_dir=first,
            further=further,
            capture_mb=config.archive.capture_mb,
            capture_gb=config.archive.capture_gb,
            free_mb=config.limits.free_mb,
        )
        self.evidence = Evidence(archive, self._capture, first, config.limits.record_mb, further)
        self.files = Files(archive)
        self.captured = 0
        """Objects captured so far."""

    def capture(self, within_s: float, progress: Callable[[int, int], None]) -> Captured:
        """Bring older archives up to what this version draws from records, then capture what is queued.

        Raises:
            DiskFull: the disk is nearly full.
        """
        self.evidence.renew(progress)
        done = self._capture.run(within_s, progress)
        self.captured += done.trees + done.files
        return done

    def close(self) -> None:
        """Let go of OpenCode's snapshot files."""
        self._snapshots.close()
