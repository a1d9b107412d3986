"""The parts of an archived message: all at once, one by one where they are large together, or as files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from daemon import records
from daemon.archive import keys
from daemon.archive.store import Store
from daemon.archive.store.bodies import size_of
from daemon.filesystem.large_files import LargeFiles
from daemon.model import LARGE, Json, Part, Parts


def parts_of(store: Store, message_id: str, state: Json) -> Sequence[Part]:
    """The parts that the message's state names, in order, each the fullest version seen.

    Raises:
        ArchiveCorrupt: one is gone.
    """
    ids: list[str] = state["parts"]
    parts: list[Part] = []
    size = 0
    for part_id in ids:
        size += size_of(store.stored(keys.part(message_id, part_id)) or b"")
        if size > LARGE:
            return Parts(ids, lambda number: _large_part(store, message_id, ids[number], state["session"]))
        parts.append(records.part(_raw(store, message_id, part_id), message_id, state["session"]))
    return tuple(parts)


def large_records(store: Store, files: LargeFiles) -> list[Json]:
    """The records that are kept whole as files: ``{message, part, sha256, bytes, place, origin, file}``, by size.

    `part` is empty for a message's own record, `place` is where it was read, `origin` says how new it is there
    (ingest.versions). The largest comes first.
    """
    entries = [records.load_object(raw) for _, raw in store.scan(keys.LARGE)]
    named = [entry | {"file": str(files.path(entry["sha256"]))} for entry in entries]
    return sorted(named, key=lambda entry: -entry["bytes"])


def drop_unnamed(store: Store, files: LargeFiles) -> None:
    """Remove the files of large records that newer versions have replaced, or that no commit came to name."""
    files.remove_others({entry["sha256"] for entry in large_records(store, files)})


def _large_part(store: Store, message_id: str, part_id: str, session_id: str) -> Part:
    return records.large_part(partial(_raw, store, message_id, part_id), message_id, session_id)


def _raw(store: Store, message_id: str, part_id: str) -> bytes:
    raw = store.get(keys.part(message_id, part_id))
    if raw is None:
        raise store.corrupt(f"part {part_id} of message {message_id} is gone")
    return raw
