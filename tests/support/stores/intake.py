"""An intake over an archive, with the evidence and capture that belong to it, for tests that need no engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daemon.archive import Archive
from daemon.ingest import Capture, Evidence, Intake
from daemon.opencode.snapshots import Snapshots


def intake_of(archive: Archive, data_dir: Path | None = None, **options: Any) -> Intake:
    """`data_dir` is OpenCode's; without one there are no snapshots and no session_diff files."""
    place = data_dir or archive.directory / "no-opencode"
    exclusion = options.get("exclusion")
    capture = Capture(archive, Snapshots(place), data_dir=place, exclusion=exclusion)
    return Intake(archive, evidence=Evidence(archive, capture, place, 64, exclusion=exclusion), **options)
