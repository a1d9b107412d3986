"""What a session has besides its messages: events, such as a change of the model, and its todo list."""

from __future__ import annotations

from collections.abc import Sequence

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.model import Json


class SessionRecords:
    """Events are kept for ever; of a todo list its last state, by source."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def events(self, session_id: str) -> list[Json]:
        """The session's events in order of time, then id: ``{id, sessionID, type, time, data}``, `data` as recorded."""
        found = [records.load_object(raw) for _, raw in self._store.scan(keys.session_event(session_id))]
        return sorted(
            found, key=lambda one: (records.integer(records.table(one.get("time")).get("created")), one["id"])
        )

    def put_event(self, batch: Batch, session_id: str, event_id: str, raw: bytes) -> None:
        """Keep an event; a newer state of it replaces the older one."""
        batch.put(keys.session_event(session_id, event_id), raw)

    def todos(self, session_id: str) -> list[Json]:
        """The todo list in its last state, in order: ``{content, status, priority, …}`` as recorded."""
        by_source = self._load(session_id)
        newest: Json = max(by_source.values(), key=lambda one: records.integer(one.get("time")), default={})
        items: list[Json] = newest.get("items", [])
        return items

    def put_todos(self, batch: Batch, session_id: str, source: str, items: Sequence[Json], time: int) -> bool:
        """Keep what a source says now; `time` (epoch ms) is when it was last changed. Answers whether it was new.

        An empty list is a state only where the source had one that was not: each session begins without one.
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
