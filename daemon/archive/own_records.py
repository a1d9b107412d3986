"""Our own records beside OpenCode's: the memory of targets, cached replies, embeddings, notes."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.model import Vector

CONTENTS = "semantic contents"
"""The note of the semantic index's contents (outbox.index_contents), readable without opening it or its model."""
_AT_ONCE = 1000


class OwnRecords(ABC):
    """The part of Archive for our own records; Archive provides the store."""

    _unread_changes = 0
    _unread: tuple[int, str, int] = (-1, "", 0)
    """(state of `_unread_changes`, contents, count) at the last count."""
    _store: Store
    _clock: Callable[[], int]

    @abstractmethod
    def batch(self) -> Batch:
        """See Archive."""

    @abstractmethod
    def commit(self, batch: Batch) -> None:
        """See Archive."""

    def _load(self, key: bytes) -> Any | None:
        raw = self._store.get(key)
        return None if raw is None else records.loads(raw)

    def target_get(self, path: str, name: str) -> Any | None:
        """The value stored for a target under `name`."""
        return self._load(keys.target(path, name))

    def target_put(self, path: str, name: str, value: object) -> None:
        """Store something for a target."""
        self.target_put_all(path, {name: value})

    def target_put_all(self, path: str, values: Mapping[str, object], drop: Iterable[str] = ()) -> None:
        """Store several values for a target by name, and remove others, in one commit."""
        batch = self.batch()
        for name in drop:
            batch.delete(keys.target(path, name))
        for name, value in values.items():
            batch.put(keys.target(path, name), records.dumps(value))
        self.commit(batch)

    def targets(self) -> list[str]:
        """The targets with stored values, sorted; a target is an absolute path."""
        names = {keys.unescape(key.decode().split(":")[1]) for key in self._store.keys(keys.TARGET)}
        return sorted(path for path in names if path.startswith("/"))

    def target_names(self, path: str, prefix: str = "") -> list[str]:
        """The names of a target's stored values that begin with `prefix`, sorted."""
        start = keys.target(path, prefix)
        return sorted(keys.unescape(key.decode().rsplit(":", 1)[1]) for key in self._store.keys(start))

    def target_drop(self, path: str, names: Iterable[str]) -> None:
        """Remove a target's values with these names."""
        self.target_put_all(path, {}, names)

    def cache_get(self, kind: str, key: str) -> Any | None:
        """A cached value that has not expired."""
        entry = self._load(keys.cache(kind, key))
        return entry["value"] if entry is not None and entry["expires_at"] > self._clock() else None

    def cache_put(self, kind: str, key: str, value: object, ttl_s: float) -> None:
        """Cache a value. The expiry index saves a scan of all values in `sweep_cache`."""
        batch = self.batch()
        expires = self._clock() + int(ttl_s * 1000)
        batch.put(keys.cache(kind, key), records.dumps({"value": value, "expires_at": expires}))
        batch.put(keys.expiry(expires, keys.cache(kind, key)), b"")
        self.commit(batch)

    def sweep_cache(self) -> int:
        """Remove expired values; returns their number."""
        batch = self.batch()
        now = self._clock()
        swept = 0
        for key in list(self._store.keys(b"exp:")):
            expires, name = int(key[4:17]), key[18:]
            if expires > now:
                break
            batch.delete(key)
            entry = self._load(name)
            if entry is not None and entry["expires_at"] <= now:
                batch.delete(name)
                swept += 1
        self.commit(batch)
        return swept

    def note(self, name: str) -> str:
        """A short fact of ours that must survive a restart, such as which index directory this archive fills."""
        return (self._store.get(keys.note(name)) or b"").decode()

    def notes(self, prefix: str) -> list[str]:
        """The names of the notes that begin with `prefix`."""
        start = keys.note(prefix)
        return [keys.unescape(key.decode().rsplit(":", 1)[1]) for key in self._store.keys(start)]

    def set_note(self, name: str, text: str) -> None:
        """Remember it."""
        batch = self.batch()
        batch.put(keys.note(name), text.encode())
        self.commit(batch)

    def put_unread(self, contents: str, unread: Mapping[str, bool]) -> None:
        """Store for each of these messages whether an index of these contents lacks it, because it is not legible.

        For one caller at a time.
        """
        batch, added = self.batch(), 0
        for message_id, is_unread in unread.items():
            key, now = keys.unread(message_id), contents.encode() if is_unread else None
            before = self._store.get(key)
            if now is not None and now != before:
                batch.put(key, now)
                added += 1
            elif now is None and before is not None:
                batch.delete(key)
                added -= before == contents.encode()
        if not len(batch):
            return
        counted, is_counted = self._unread[2], self._unread[:2] == (self._unread_changes, contents)
        self._unread_changes += 1  # so that a count during this write is repeated
        self.commit(batch)
        self._unread_changes += 1
        if is_counted:
            self._unread = (self._unread_changes, contents, counted + added)

    def vector(self, fingerprint: str, sha256: str) -> Vector | None:
        """The stored embedding of a chunk's text."""
        raw = self._store.get(keys.vector(fingerprint, sha256))
        return None if raw is None else np.frombuffer(raw, dtype=np.float32)

    def put_vectors(self, fingerprint: str, vectors: Sequence[tuple[str, Vector]]) -> None:
        """Store embeddings, so that the index can be rebuilt without the model."""
        batch = self.batch()
        for sha256, vector in vectors:
            batch.put(keys.vector(fingerprint, sha256), np.ascontiguousarray(vector, dtype=np.float32).tobytes())
        self.commit(batch)

    def drop_vectors(self, kept: Collection[str]) -> int:
        """Remove the embeddings of all texts but those with these hashes; returns their number."""
        dropped = 0
        names = (key for key in self._store.keys(keys.VECTOR) if keys.last_field(key) not in kept)
        while group := list(itertools.islice(names, _AT_ONCE)):
            batch = self.batch()
            for key in group:
                batch.drop(key)
            self.commit(batch)
            dropped += len(group)
        return dropped

    def unread_among(self, message_ids: Iterable[str]) -> set[str]:
        """Those that the last opened semantic index lacks, because its model cannot read them."""
        contents = self.note(CONTENTS).encode()
        return {i for i in message_ids if self._store.get(keys.unread(i)) == contents} if self.unread() else set()

    def unread(self, contents: str = "") -> int:
        """How many messages an index of these contents lacks, because its model cannot read them.

        Without `contents` it is the last opened semantic index. Counted once, then cached.
        """
        contents, changes = contents or self.note(CONTENTS), self._unread_changes
        if self._unread[:2] != (changes, contents):
            count = sum(1 for _, value in self._store.scan(keys.UNREAD) if value == contents.encode())
            self._unread = (changes, contents, count)
        return self._unread[2]
