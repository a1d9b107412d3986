"""Whether this archive filled an index directory: both have the same name for it, from when it was first filled."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from pathlib import Path

from daemon.archive import STAGES, Archive
from daemon.filesystem import durable
from daemon.index.semantic.process import PARKED
from daemon.redact import fingerprint

_NAME = "belongs-to"


def has_name(place: Path) -> bool:
    """Whether an archive has filled this directory."""
    return (place / _NAME).exists()


def is_ours(archive: Archive, stage: str, place: Path) -> bool:
    """Whether this archive filled this directory, whatever the model."""
    name = _name(place)
    return name != "" and name == archive.note(f"{stage} index")


def claim(archive: Archive, stage: str, place: Path, contents: str = "") -> int:
    """Check that this archive filled this directory; if not, put everything into the outbox again.

    Returns the number of messages that wait because of it. The name is in the directory, so that it moves with it. It
    is written last.
    """
    if is_ours(archive, stage, place) and _name(place).endswith(f" {contents}"):
        return 0
    name = f"{secrets.token_hex(8)} {contents}"
    waiting = archive.enqueue_all(stage)
    archive.set_note(f"{stage} index", name)
    durable.atomic_write(place / _NAME, name.encode())
    return waiting


def redact_anew(archive: Archive) -> int:
    """Index every message again if the redaction rules have changed since the indexes were filled; returns how many."""
    if archive.note("redaction") == fingerprint():
        return 0
    archive.secrets.forget()
    waiting = max(archive.enqueue_all(stage) for stage in STAGES)
    archive.set_note("redaction", fingerprint())
    return waiting


def remove(directory: Path) -> None:
    """Delete both indexes beneath this directory, and those that were set aside. Nobody may have them open."""
    for name in STAGES:
        for place in (directory / name, directory / f"{name}{PARKED}"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(place)


def _name(place: Path) -> str:
    note = place / _NAME
    return note.read_text(encoding="utf-8", errors="replace") if note.exists() else ""
