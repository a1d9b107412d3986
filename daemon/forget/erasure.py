"""What follows a removal, in stages that the archive remembers: the next start goes on where the last one was ended.

1. `indexes`: both are deleted; the archive fills new ones. Chroma's SQLite and tantivy's segments keep deleted texts.
2. `vectors`: those of texts that no message has any more are removed.
3. `files`: LevelDB is written anew (archive.store.erasure), because its files and its dictionary keep deleted bytes.

Before all of them, backups in the archive's directory are removed, which were made before migrations.

No stage needs to know what was removed, so nothing names it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from daemon.archive import Archive
from daemon.archive.migrations import backups_before
from daemon.errors import DiskFull, Retry
from daemon.filesystem.disk_space import free_bytes
from daemon.ingest import Entries
from daemon.ingest.outbox import chunk_digest, chunks_of
from daemon.model import Json

INDEXES, VECTORS, FILES = "indexes", "vectors", "files"
BEGIN: Json = {"stage": INDEXES}
_SPARE = 64 << 20

Step = Callable[[Json], None]
"""Told of the progress; may raise, which leaves the rest for the next start."""


def is_pending(archive: Archive) -> bool:
    """Whether an erasure was begun and has not ended."""
    return bool(archive.forgotten.pending())


def indexes_are_due(archive: Archive) -> bool:
    """Whether the indexes still have texts that were removed, so that nobody may open them."""
    return archive.forgotten.pending().get("stage") == INDEXES


def indexes_deleted(archive: Archive) -> None:
    """Note that the indexes were deleted."""
    _note(archive, {"stage": VECTORS})


def check_space(archive: Archive) -> None:
    """Check that there is room for the archive to be written anew.

    Raises:
        DiskFull: there is not.
    """
    needed, free = 2 * archive.figures()["bytes"] + _SPARE, free_bytes(archive.directory)
    if free < needed:
        raise DiskFull(
            f"{archive.directory}: {free >> 20} MB free; to forget something the whole archive is written anew, which "
            f"takes up to {needed >> 20} MB for a while; free some space"
        )


def complete(archive: Archive, kb: tuple[int, int], step: Step) -> None:
    """Do the stages after the indexes that are still due. `kb` are limits.indexed_kb and limits.embedded_kb.

    Raises:
        Retry: the archive was read all the time, or a backup cannot be removed; call it again.
        DiskFull: there is not enough space; call it again.
    """
    if is_pending(archive):
        _remove_backups(archive)
    if archive.forgotten.pending().get("stage") == VECTORS:
        archive.drop_vectors(_texts(archive, kb, step))
        _note(archive, {"stage": FILES})
    pending = archive.forgotten.pending()
    if pending.get("stage") != FILES:
        return
    erasure = archive.erasure(lambda phase, done: step({"phase": phase, "done": done, "total": None}))
    if "dictionary" not in pending:
        step({"phase": "writing the archive anew", "done": 0, "total": None})
        pending |= {"dictionary": erasure.dictionary()}
        _note(archive, pending)
    erasure.run(pending["dictionary"])
    step({"phase": "written anew", "done": 1, "total": 1})
    _note(archive, {})


def _remove_backups(archive: Archive) -> None:
    for folder in backups_before(archive.directory):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
            raise Retry(f"{folder} is a backup from before an upgrade and cannot be removed: {reason}") from error


def _texts(archive: Archive, kb: tuple[int, int], step: Step) -> set[str]:
    """The hashes of all texts that are embedded, whatever the settings."""
    indexed_kb, embedded_kb = kb
    entries, digests = Entries(archive, indexed_kb, windows=False), set[str]()
    total = archive.message_count()
    for number, message_id in enumerate(list(archive.all_message_ids())):
        step({"phase": "comparing vectors", "done": number, "total": total})
        entry = entries.of(message_id)
        if entry is not None:
            spoken, tools = chunks_of(entry.document, embedded_kb, "all")
            digests.update(chunk_digest(chunk) for chunk in (*spoken, *tools))
    return digests


def _note(archive: Archive, stage: Json) -> None:
    batch = archive.batch()
    archive.forgotten.set_pending(batch, stage)
    archive.commit(batch)
