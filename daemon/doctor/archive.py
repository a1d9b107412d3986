"""The archive: its records can be read, and its times agree with the clock."""

from __future__ import annotations

import os
from collections.abc import Iterator

from daemon.control.answers import Check
from daemon.display import counted
from daemon.doctor.rows import Subject, attention, broken, ok
from daemon.moments import written_local

_MINUTE, _DAY = 60_000, 86_400_000
_AHEAD_MS = 5 * _MINUTE
"""Clocks of two machines that share a folder may differ by so much."""
_RESTORE = (
    "stop the service, copy the directory away, and restore it from a backup; docs/reliability.md says what else helps"
)


def archive(subject: Subject) -> Iterator[Check]:
    """It is open, and holds so much."""
    figures = subject.archive.figures()
    counts = ", ".join(counted(figures[name], name[:-1]) for name in ("sessions", "messages", "parts"))
    yield ok("archive", f"{subject.config.archive_dir}: opens; {counts}")


def forgetting(subject: Subject) -> Iterator[Check]:
    """Nothing that was forgotten waits to be erased from the files."""
    if subject.archive.forgotten.pending():
        message = "what was forgotten is found nowhere, but its bytes are still in the archive's files"
        if subject.is_served:
            going_on = "the service goes on erasing them, but not in safe mode"
            yield attention("forgetting", f"{message}; {going_on}", "reconstitute status")
        else:
            yield attention("forgetting", message, "reconstitute index")


def checksums(subject: Subject) -> Iterator[Check]:
    """Its entries are as they were written: a sample, or all."""
    result = subject.archive.verify(subject.on_entries)
    if result.wrong:
        more = f", and {result.wrong - len(result.named)} more" if result.wrong > len(result.named) else ""
        yield broken("records", "; ".join(result.named) + more, _RESTORE)
        return
    read = f"{counted(result.messages, 'message')} and {counted(result.objects, 'object')} read"
    if subject.on_entries is None:
        yield ok("records", f"a sample of {read}, each as it was written; `doctor(full=true)` reads all")
    else:
        yield ok("records", f"all {result.entries} entries read, among them {read}, each as it was written")


def clock(subject: Subject) -> Iterator[Check]:
    """No record and no file of the archive is from the future."""
    ahead = (subject.newest or 0) - subject.now
    written = max((_written(entry) for entry in os.scandir(subject.config.archive_dir / "leveldb")), default=0)
    fix = "timedatectl set-ntp true"
    if ahead > _DAY:
        message = (
            f"the newest record is from {written_local(subject.newest or 0)}: the clock is far behind, or was wrong"
        )
        yield attention(
            "clock", f"{message} when it was recorded; `last` and `since` of searches miss records then", fix
        )
    elif ahead > _AHEAD_MS:
        message = f"the newest record is {ahead // _MINUTE} minutes in the future"
        yield attention("clock", f"{message}: the clock is behind, or was ahead when it was recorded", fix)
    elif written - subject.now > _AHEAD_MS:
        message = f"the archive was written {(written - subject.now) // _MINUTE} minutes in the future"
        yield attention("clock", f"{message}: the clock has gone back", fix)
    else:
        yield ok("clock", "no record and no file of the archive is from the future")


def _written(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
    except FileNotFoundError:  # LevelDB has compacted meanwhile
        return 0
