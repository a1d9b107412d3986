"""Records of a session and its messages: events, the todo list, and the secrets recognised in it.

Secrets are in the archive beside the records that contain them, and nowhere else. Reading a session or a message makes
its secrets known for later redaction (daemon.redact.known).

The parts of a message are read here too: all at once, one by one if they are large together, or as files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock, RLock

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.own_records import OwnRecords
from daemon.archive.store import Store
from daemon.archive.store.bodies import size_of
from daemon.filesystem.large_files import LargeFiles
from daemon.model import LARGE, Json, Part, Parts
from daemon.redact import known

_MOST_SESSIONS = 4096
"""Sessions whose values are kept in memory."""


class SessionRecords:
    """Events are kept for ever; of a todo list only the last state, by source."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def events(self, session_id: str) -> list[Json]:
        """The session's events in order of time, then id: ``{id, sessionID, type, time, data}``, `data` as recorded."""
        events = [records.load_object(raw) for _, raw in self._store.scan(keys.session_event(session_id))]
        return sorted(
            events, key=lambda event: (records.integer(records.table(event.get("time")).get("created")), event["id"])
        )

    def put_event(self, batch: Batch, session_id: str, event_id: str, raw: bytes) -> None:
        """Store an event; a newer state of it replaces the older one."""
        batch.put(keys.session_event(session_id, event_id), raw)

    def versions(self, session_id: str) -> Iterator[tuple[bytes, bytes]]:
        """The session's former records that say something of their own, with their keys."""
        return self._store.scan(keys.session_versions(session_id))

    def todos(self, session_id: str) -> list[Json]:
        """The todo list in its last state, in order: ``{content, status, priority, …}`` as recorded."""
        by_source = self._load(session_id)
        newest: Json = max(by_source.values(), key=lambda listing: records.integer(listing.get("time")), default={})
        items: list[Json] = newest.get("items", [])
        return items

    def put_todos(self, batch: Batch, session_id: str, source: str, items: Sequence[Json], time: int) -> bool:
        """Store a source's current list; `time` (epoch ms) is its last change. Returns whether it was new.

        An empty list counts only if the source had a list before, because each session begins without one.
        """
        raw = batch.get(keys.session_todos(session_id))
        by_source = {} if raw is None else records.load_object(raw)
        before = by_source.get(source, {"items": []})
        if list(items) == before["items"]:
            return False
        entry = {"items": list(items), "time": max(time, before.get("time", 0))}
        batch.put(keys.session_todos(session_id), records.dumps(by_source | {source: entry}))
        return True

    def _load(self, session_id: str) -> Json:
        raw = self._store.get(keys.session_todos(session_id))
        return {} if raw is None else records.load_object(raw)


class KnownSecrets:
    """The known secrets of each session, value -> kind. Thread-safe as the archive is."""

    def __init__(self, archive: OwnRecords, store: Store, lock: RLock) -> None:
        self._archive = archive
        self._store = store
        self._write = lock
        self._cached: dict[str, dict[str, str]] = {}
        self._filling = Lock()
        self._changes = 0

    def learn(self, session_id: str) -> None:
        """Hide the session's values in everything that this piece of work redacts from now on.

        Reading a session or a message does this, so call it only if you have its words from elsewhere.
        """
        if values := self.of(session_id):
            known.learn(values)

    def of(self, session_id: str) -> dict[str, str]:
        """The secrets recognised in a session so far."""
        secrets = self._cached.get(session_id)
        if secrets is None:
            changes = self._changes  # before the read, so that a concurrent write is read next time
            raw = self._store.get(keys.session_secrets(session_id))
            secrets = {} if raw is None else records.load_object(raw)
            with self._filling:
                if len(self._cached) >= _MOST_SESSIONS:
                    self._cached.clear()
                if changes == self._changes:
                    self._cached[session_id] = secrets
        return secrets

    def reread(self) -> None:
        """Read all of them again, because the stored values have changed."""
        with self._filling:
            self._changes += 1
            self._cached.clear()

    def add(self, session_id: str, values: Mapping[str, str]) -> None:
        """Store more of them; the session's messages that contain one are indexed again."""
        with self._write:
            have = self.of(session_id)
            new = {value: kind for value, kind in values.items() if value not in have}
            if not new:
                return
            batch = self._archive.batch()
            batch.put(keys.session_secrets(session_id), records.dumps(have | new))
            needles = _needles(new)
            for message_id in batch.message_ids(session_id):
                state = batch.state(message_id)
                if state is not None and _holds(_raws(batch, message_id, state["parts"]), needles):
                    batch.enqueue(message_id, state["created"], state["hash"])
            self._archive.commit(batch)
            with self._filling:
                self._changes += 1
                self._cached[session_id] = have | new

    def forget(self) -> None:
        """Drop all of them, because the rules for secrets have changed; indexing finds them again."""
        with self._write:
            batch = self._archive.batch()
            for key in list(self._store.keys(b"sess:")):
                if key.endswith(b":secrets"):
                    batch.delete(key)
            self._archive.commit(batch)
            self.reread()


def remaining_secrets(batch: Batch, session_id: str, secrets: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's secrets that one of its messages holds, as they are after the batch."""
    kept: dict[str, str] = {}
    for message_id in batch.message_ids(session_id):
        state = batch.state(message_id)
        for value in (secrets.keys() - kept.keys()) if state is not None else ():
            if _holds(_raws(batch, message_id, (state or {})["parts"]), _needles([value])):
                kept[value] = secrets[value]
    return kept


def _needles(values: Iterable[str]) -> list[bytes]:
    """How these values may stand in a record."""
    return [text.encode("utf-8", "replace") for value in values for text in (value, json.dumps(value)[1:-1])]


def _raws(batch: Batch, message_id: str, parts: list[str]) -> Iterator[bytes]:
    yield batch.get(keys.message_raw(message_id)) or b""
    for part_id in parts:
        yield batch.get(keys.part(message_id, part_id)) or b""


def _holds(raws: Iterator[bytes], needles: list[bytes]) -> bool:
    return any(needle in raw for raw in raws for needle in needles)


def parts_of(store: Store, message_id: str, state: Json) -> Sequence[Part]:
    """The parts in the message's state, in order, each in its current version.

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
    """The records that are stored as files: ``{message, part, sha256, bytes, place, origin, file}``, by size.

    `part` is empty for a message's own record, `place` is where it was read, `origin` its generation and time
    (ingest.versions). The largest comes first.
    """
    entries = [records.load_object(raw) for _, raw in store.scan(keys.LARGE)]
    named = [entry | {"file": str(files.path(entry["sha256"]))} for entry in entries]
    return sorted(named, key=lambda entry: -entry["bytes"])


def drop_unnamed(store: Store, files: LargeFiles) -> None:
    """Remove the files of large records that newer versions have replaced, or that no commit refers to."""
    files.remove_except({entry["sha256"] for entry in large_records(store, files)})


def _large_part(store: Store, message_id: str, part_id: str, session_id: str) -> Part:
    return records.large_part(partial(_raw, store, message_id, part_id), message_id, session_id)


def _raw(store: Store, message_id: str, part_id: str) -> bytes:
    raw = store.get(keys.part(message_id, part_id))
    if raw is None:
        raise store.corrupt(f"part {part_id} of message {message_id} is gone")
    return raw
