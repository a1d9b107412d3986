"""Puts and deletes for one commit, which `get` already sees; large values are written ahead (bodies)."""

from __future__ import annotations

from daemon.archive.store import Store
from daemon.archive.store.bodies import Body
from daemon.errors import DiskFull

_LARGE = 1 << 20
"""Bytes of a value that is always written ahead."""

_FULL = 8 << 20
"""Bytes; a batch of this size writes ahead every value that is not small."""

_SMALL = 1 << 10
_AT_ONCE = 4 << 20
"""Bytes of a write ahead, about."""


class Changes:
    """Puts and deletes, in memory or written ahead, until Archive.commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.begun = store.times_mended
        """How many writes had been mended at the start; changes from before a mend are not written after it."""
        self.changes: dict[bytes, bytes | None] = {}
        self.fresh: set[bytes] = set()
        """Keys that the archive did not have, so that nothing is looked up for them."""
        self.size = 0
        """Bytes of all values that the commit will write."""
        self._ahead: dict[bytes, bytes | None] = {}
        self._ahead_size = 0

    def __len__(self) -> int:
        return len(self.changes)

    def get(self, key: bytes) -> bytes | None:
        """The value after the commit."""
        if key not in self.changes:
            return self._store.get(key)
        body = Body.parse(self.changes[key])
        return self.changes[key] if body is None else body.whole(self._get_ahead)

    def put(self, key: bytes, value: bytes) -> bool:
        """Write `value`, unless it is already there; returns whether it was not."""
        stored = self.changes[key] if key in self.changes else self._store.stored(key)
        body = Body.parse(stored)
        if stored == value if body is None else body.holds(value):
            return False
        self._set(key, value)
        return True

    def put_fresh(self, key: bytes, value: bytes) -> None:
        """Write `value` under a key that the archive certainly does not have."""
        if key not in self.changes:
            self.fresh.add(key)
        self._set(key, value)

    def delete(self, key: bytes) -> None:
        """Remove `key`, if it is there."""
        if (self.changes[key] if key in self.changes else self._store.stored(key)) is not None:
            self._set(key, None)

    def drop(self, key: bytes) -> None:
        """Remove a key that the archive certainly has."""
        self._set(key, None)

    def finish(self) -> None:
        """Finish writing ahead; call this just before the commit.

        Raises:
            DiskFull: there is no space, or there was none since this batch was begun: fill a new one.
        """
        self._flush_ahead()

    def _flush_ahead(self) -> None:
        self.check_begun()
        if self._ahead:
            self._store.write(self._ahead)
        self._ahead, self._ahead_size = {}, 0

    def check_begun(self) -> None:
        """Check that no failed write was mended meanwhile, which would have removed what this batch wrote ahead.

        Raises:
            DiskFull: one was.
        """
        if self.begun != self._store.times_mended:
            raise DiskFull("begun before a failed write was mended; it is done again")

    def _set(self, key: bytes, value: bytes | None) -> None:
        is_full = self.size + len(value or b"") > _FULL
        if value is not None and (len(value) > _LARGE or (is_full and len(value) > _SMALL)):
            value = self._write_ahead(value)
        replaced = self.changes.get(key)
        unused = Body.parse(replaced)
        if unused is not None:
            self.changes.pop(unused.mark(), None)  # the next start removes bodies without a reference
        self.size += len(value or b"") - len(replaced or b"")
        self.changes[key] = value

    def _write_ahead(self, value: bytes) -> bytes:
        """The reference to a new body, whose mark the commit removes."""
        body = Body.of(value)
        self._put_ahead(body.mark(), str(body.size).encode())
        for key, piece in body.cut(value):
            self._put_ahead(key, piece)
        self.changes[body.mark()] = None
        return body.reference()

    def _put_ahead(self, key: bytes, value: bytes) -> None:
        self._ahead[key] = value
        self._ahead_size += len(value)
        if self._ahead_size >= _AT_ONCE:
            self._flush_ahead()

    def _get_ahead(self, key: bytes) -> bytes | None:
        return self._ahead[key] if key in self._ahead else self._store.stored(key)
