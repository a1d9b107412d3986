"""What was forgotten: hashes of ids, so that no scan archives it again.

OpenCode may still have it. The list holds no ids, no paths and no contents. It is small, so all of it is in memory.

Of a path, each message and session that had something of it is on the list, with the hash of both: what is read of them
again is compared path by path, whatever the ids of the parts. Work of later messages is archived.
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.model import Json

SESSION, MESSAGE, DIFFS = "session", "message", "diffs of session"
"""Kinds of ids. DIFFS: a session of which a message was forgotten; its `session_diff` file tells what that changed."""

PATHS, PATH, PART = "paths of", "path", "part"
"""PATHS: a message or session of which a path was forgotten. PATH: it, with the path. PART: a message with a part,
or a session with a text that it has beside its messages."""

CONTENT, OUTPUT, LARGE = "content", "output", "large record"
"""CONTENT: a path with the id of a snapshot's object. OUTPUT: the file of a spilled output. LARGE: a message,
with a part.
"""


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

    def add(self, batch: Batch, kind: str, *names: str) -> bool:
        """Put an id on the list, in the batch that removes what it names; returns whether it was not there."""
        return batch.put(keys.forgotten(kind, *names), b"")

    def add_paths(self, batch: Batch, record_id: str, places: Iterable[str], part_ids: Iterable[str] = ()) -> None:
        """Put what a message or session had of these paths on the list."""
        self.add(batch, PATHS, record_id)
        for place in places:
            self.add(batch, PATH, record_id, place)
        for part_id in part_ids:
            self.add(batch, PART, record_id, part_id)

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
