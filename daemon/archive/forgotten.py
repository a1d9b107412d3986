"""What was forgotten: hashes of the ids of sessions and messages, so that no scan archives them again.

OpenCode may still have them. The list holds no ids and no contents. It is small, so all of it is in memory.
"""

from __future__ import annotations

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.model import Json

SESSION, MESSAGE, DIFFS = "session", "message", "diffs of session"
"""Kinds of ids. DIFFS: a session of which a message was forgotten; its `session_diff` file tells what that changed."""


class Forgotten:
    """The list of one archive, and the forgetting that is not complete yet. Safe from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: frozenset[bytes] = frozenset()
        self.reread()

    def reread(self) -> None:
        """Read the list again, after a commit that added to it."""
        self._known = frozenset(self._store.keys(keys.FORGOTTEN))

    def __len__(self) -> int:
        return len(self._known)

    def has(self, kind: str, *names: str) -> bool:
        """Whether this id was forgotten."""
        return bool(self._known) and keys.forgotten(kind, *names) in self._known

    def has_session(self, session_id: str, parent_id: str | None = None) -> bool:
        """Whether a session was forgotten, or its parent: a sub-agent's session goes with the one that started it."""
        return self.has(SESSION, session_id) or (bool(parent_id) and self.has(SESSION, str(parent_id)))

    def add(self, batch: Batch, kind: str, *names: str) -> None:
        """Put an id on the list, in the batch that removes what it names."""
        batch.put(keys.forgotten(kind, *names), b"")

    # -- the forgetting under way --------------------------------------------------------------------------------

    def pending(self) -> Json:
        """The stage of a forgetting that was begun and is not complete (daemon.forget.erasure); empty if there is none.

        It holds no ids either.
        """
        raw = self._store.get(keys.FORGETTING)
        return {} if raw is None else records.load_object(raw)

    def set_pending(self, batch: Batch, stage: Json) -> None:
        """Note the stage; an empty one ends the forgetting."""
        if stage:
            batch.put(keys.FORGETTING, records.dumps(stage))
        else:
            batch.delete(keys.FORGETTING)
