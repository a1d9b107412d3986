"""A commit being filled: all results of a pass, written as one synced batch or not at all.

A batch reads through itself, so that the second message of a session sees the order the first one left. It decides what
a record becomes in the archive: current version, version kept aside, tombstone. What is large is written ahead
(bodies), so that a batch stays small however large its messages are.
"""

from __future__ import annotations

import bisect
import itertools
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from daemon import records
from daemon.archive import keys, merge
from daemon.archive.store import Store
from daemon.archive.store.changes import Changes
from daemon.model import FileEdit, Json, Message, Operation, Session

STAGES = ("lexical", "semantic")
_PROCESS, _tokens = secrets.token_hex(6).encode(), itertools.count()
_READERS = 2
"""How many later messages are indexed together with a message's words (daemon.transcript.chunks)."""


class Batch(Changes):
    """Puts and deletes, in memory, until Archive.commit writes them."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.counts = {"sessions": 0, "messages": 0, "parts": 0}
        self._orders: dict[str, list[str]] = {}
        self._reordered: set[str] = set()
        """Sessions whose order is written when the batch is finished: once, however many messages come."""

    def _load(self, key: bytes) -> Json | None:
        raw = self.get(key)
        return None if raw is None else records.load_object(raw)

    def finish(self) -> None:
        """See Changes."""
        for session_id in self._reordered:
            self.put(keys.session_order(session_id), records.dumps(self._orders[session_id]))
        self._reordered = set()
        super().finish()

    # -- sessions ------------------------------------------------------------------------------------------------

    def session(self, session: Session, source: str, generation: int) -> bool:
        """Record a session; answers whether anything changed.

        Of several sources the one of the newest generation wins, then the one that was updated last. What the winner
        leaves blank is filled from the other, whose record is kept aside where it says something of its own.
        """
        old = self._load(keys.session_meta(session.id))
        read: Json = {
            "id": session.id,
            "project_id": session.project_id,
            "directory": session.directory,
            "title": session.title,
            "parent_id": session.parent_id,
            "created": session.created,
            "updated": session.updated,
            "archived": session.archived,
            "version": session.version,
            "raw": session.raw.decode("utf-8", "replace"),
            "generation": generation,
            "source": source,
        }
        current, fallback = (old, read) if old is not None and _is_older(read, old) else (read, old or read)
        filled = {name: current[name] or fallback[name] for name in ("project_id", "directory", "title", "version")}
        sources = sorted({source, *(old or {}).get("sources", [])})
        entry = current | filled | {"sources": sources, "deleted": None}
        self._keep_session_version(session.id, fallback["raw"].encode(), current["raw"].encode())
        if old == entry:
            return False
        if old is not None and old["raw"] != entry["raw"] and ('"revert"' in old["raw"] or '"revert"' in entry["raw"]):
            for message_id in self._order_of(session.id):
                self._outdate_edits(message_id)
        self.counts["sessions"] += old is None
        self.put(keys.session_meta(session.id), records.dumps(entry))
        return True

    def places(self, session_id: str) -> set[str]:
        """The paths that the archived messages of a session changed or read."""
        states = (self._load(keys.message_state(message_id)) or {} for message_id in self._order_of(session_id))
        return {place[0] for state in states for place in state.get("edits", ())}

    def _keep_session_version(self, session_id: str, old: bytes, new: bytes) -> None:
        """Keep the former record, because a former title, or the diff of an undone revert, is nowhere else."""
        if old != new and not merge.contains(records.load_object(new), records.load_object(old)):
            self.put(keys.session_version(session_id, records.digest(old)), old)

    def forget_session_source(self, session_id: str, source: str, now: int) -> bool:
        """The source no longer has this session; if no other source has it, leave a tombstone."""
        entry = self._load(keys.session_meta(session_id))
        return entry is not None and self._drop_source(keys.session_meta(session_id), entry, source, now)

    # -- messages ------------------------------------------------------------------------------------------------

    def message(
        self,
        message: Message,
        *,
        source: str,
        generation: int,
        hash_: str,
        edits: Iterable[FileEdit],
        versions: Iterable[tuple[str | None, bytes]] = (),
        gone: Iterable[str] = (),
        unknown: Iterable[str] = (),
        origins: Json | None = None,
    ) -> set[str]:
        """Store a message, already merged with the archived one, and put it into the outbox; returns its edits' paths.

        `versions` are (part id or None for the message itself, raw bytes) to keep aside; `gone` are the parts that the
        source has dropped and we have not, `unknown` the part types that this version does not know. `origins` tell
        where each record came from (ingest.versions).
        """
        old = self._load(keys.message_state(message.id))
        for part_id, raw in versions:
            self.put(_version_key(message.id, part_id, raw), raw)
        part_names = self._replace_records(message) if old is not None else self._put_records(message)
        state: Json = {
            "hash": hash_,
            "session": message.session_id,
            "created": message.created,
            "generation": generation,
            "sources": sorted({source, *(old or {}).get("sources", [])}),
            "deleted": None,
            "parts": part_names,
            "gone": sorted(gone),
            "edits": self._edits(edits, old.get("edits", [])) if old is not None else self._first_edits(edits),
            "origins": origins or {},
        }
        self.counts["messages"] += old is None
        self.counts["parts"] += len(message.parts) - len((old or {}).get("parts", []))
        self.put(keys.message_state(message.id), records.dumps(state))
        for type_ in unknown:
            self.put(keys.unknown(type_, message.id), b"")
        self._order(message.session_id, message.id, message.created)
        self.enqueue(message.id, message.created, hash_)
        self._enqueue_readers(message.session_id, message.id)
        return {place[0] for place in state["edits"]}

    def _put_records(self, message: Message) -> list[str]:
        """Put a new message's own record and those of its parts; returns the ids of the parts."""
        names: list[str] = []
        self.put_fresh(keys.message_raw(message.id), message.raw)
        for part in message.parts:
            names.append(part.id)
            self.put_fresh(keys.part(message.id, part.id), part.raw)
        return names

    def _replace_records(self, message: Message) -> list[str]:
        """As `_put_records`, for an archived message; a version that is current again is not kept aside too."""
        names: list[str] = []
        self.put(keys.message_raw(message.id), message.raw)
        self.delete(_version_key(message.id, None, message.raw))
        for part in message.parts:
            raw = part.raw
            names.append(part.id)
            self.put(keys.part(message.id, part.id), raw)
            self.delete(_version_key(message.id, part.id, raw))
        return names

    def message_ids(self, session_id: str) -> list[str]:
        """In conversation order, as they will be after the commit."""
        return list(self._order_of(session_id))

    def _order_of(self, session_id: str) -> list[str]:
        """As `message_ids`, read and parsed once; after a change call `_reorder`."""
        order = self._orders.get(session_id)
        if order is None:
            order = records.loads(self.get(keys.session_order(session_id)) or b"[]")
            self._orders[session_id] = order
        return order

    def _reorder(self, session_id: str, order: list[str]) -> None:
        self._orders[session_id] = order
        self._reordered.add(session_id)

    def state(self, message_id: str) -> Json | None:
        """As Archive.state, as it will be after the commit."""
        return self._load(keys.message_state(message_id))

    def drop_message(self, message_id: str) -> None:
        """Remove a record that never was a message, also from the indexes. The session's later messages move up."""
        state = self.state(message_id)
        if state is None:
            return
        order = self._order_of(state["session"])
        for remaining_id in order:  # their places have changed, and the first one is found by the session's title
            remaining_state = self._load(keys.message_state(remaining_id)) or state
            self.enqueue(remaining_id, remaining_state["created"], remaining_state["hash"])
        self.remove_from_order(state["session"], message_id)
        self.delete(keys.message_raw(message_id))
        self.delete(keys.message_state(message_id))
        self.counts["messages"] -= 1

    def remove_from_order(self, session_id: str, message_id: str) -> None:
        """Take a message out of the session's conversation order."""
        self._reorder(session_id, [i for i in self._order_of(session_id) if i != message_id])

    def drop_session(self, session_id: str) -> None:
        """Remove a session whose only records were removed by `drop_message`."""
        if self.get(keys.session_meta(session_id)) is not None:
            self.delete(keys.session_meta(session_id))
            self._reordered.discard(session_id)
            self.delete(keys.session_order(session_id))
            self.counts["sessions"] -= 1

    def keep_source(self, message_id: str, source: str) -> None:
        """Note that another source, not newer, has this message too; removes a tombstone."""
        state = self.state(message_id)
        if state is not None and (source not in state["sources"] or state["deleted"] is not None):
            if state["deleted"] is not None:
                self._outdate_edits(message_id)
                self.enqueue(message_id, state["created"], state["hash"])
            state |= {"sources": sorted({source, *state["sources"]}), "deleted": None}
            self.put(keys.message_state(message_id), records.dumps(state))

    def tombstone(self, message_id: str, now: int) -> None:
        """The source has removed the message and left its parts; our copy stays."""
        state = self.state(message_id)
        if state is not None and state["deleted"] is None:
            self._outdate_edits(message_id)
            self.enqueue(message_id, state["created"], state["hash"])
            self.put(keys.message_state(message_id), records.dumps(state | {"deleted": now}))

    def forget_message_source(self, message_id: str, source: str, now: int) -> bool:
        """The source no longer has this message; if no other source has it, leave a tombstone."""
        state = self._load(keys.message_state(message_id))
        self._outdate_edits(message_id)
        is_gone = state is not None and self._drop_source(keys.message_state(message_id), state, source, now)
        if is_gone and state is not None:
            self.enqueue(message_id, state["created"], state["hash"])
        return is_gone

    def _drop_source(self, key: bytes, entry: Json, source: str, now: int) -> bool:
        if source not in entry["sources"]:
            return False
        remaining = [name for name in entry["sources"] if name != source]
        entry |= {"sources": remaining, "deleted": entry["deleted"] if remaining else now}
        self.put(key, records.dumps(entry))
        return not remaining

    def _order(self, session_id: str, message_id: str, created: int) -> None:
        """Keep the session's conversation order: time first, id second (ids wrapped on 2026-08-14)."""
        order, own = self._order_of(session_id), (created, message_id)

        def rank(id_: str) -> tuple[int, str]:
            state = self._load(keys.message_state(id_))
            return (state["created"] if state else 0, id_)

        if message_id in order:
            place = order.index(message_id)
            near = list(map(rank, order[max(0, place - 1) : place + 2]))
            if near == sorted(near):
                return
            self._enqueue_readers(session_id, message_id)  # its time has changed: these follow another message now
            order.remove(message_id)
        is_last = not order or rank(order[-1]) < own  # the usual case
        place = len(order) if is_last else bisect.bisect_left(order, own, key=rank)
        order.insert(place, message_id)
        self._reorder(session_id, order)

    def _first_edits(self, edits: Iterable[FileEdit]) -> list[list[Any]]:
        """As `_edits`, for a new message."""
        places: list[list[Any]] = []
        for place, value in _placed(edits):
            self.put_fresh(keys.file_edit(*place), value)
            self.outdate(place[0])
            places.append(list(place))
        return places

    def _edits(self, edits: Iterable[FileEdit], old: list[Any]) -> list[list[Any]]:
        """Store each edit under its path, a move or copy also under its target; returns the places."""
        places: list[list[Any]] = []
        for place, value in _placed(edits):
            if self.put(keys.file_edit(*place), value):
                self.outdate(place[0])
            places.append(list(place))
        for place in old:
            if place not in places:
                self.delete(keys.file_edit(*place))
                self.outdate(place[0])
        return places

    def renew_edits(self, message_id: str, edits: Iterable[FileEdit]) -> None:
        """Store the edits of a message whose records have not changed, because we now read more from them."""
        state = self.state(message_id)
        if state is not None:
            state["edits"] = self._edits(edits, state.get("edits", []))
            self.put(keys.message_state(message_id), records.dumps(state))

    def outdate(self, path: str) -> None:
        """Mark the stored end state of a path as outdated.

        The value is new each time, so that a concurrent rebuild does not mistake this mark for an older one.
        """
        self.changes[keys.outdated(path)] = _token()

    def _outdate_edits(self, message_id: str) -> None:
        for place in (self._load(keys.message_state(message_id)) or {}).get("edits", ()):
            self.outdate(place[0])

    def session_extra(self, session_id: str, extra: Json, edits: Iterable[FileEdit]) -> bool:
        """Store data of the session itself, and the file edits that follow from it; returns whether it was new."""
        key = keys.session_extra(session_id)
        old = self._load(key) or {}
        entry = extra | {"edits": old.get("edits", [])}
        if old == entry:
            return False
        entry["edits"] = self._edits(edits, old.get("edits", []))
        self.put(key, records.dumps(entry))
        for message_id in self._order_of(session_id):
            self._outdate_edits(message_id)
        return True

    def large(self, message_id: str, part_id: str) -> Json | None:
        """The reference that `put_large` has stored for this record."""
        return self._load(keys.large(message_id, part_id))

    def put_large(self, message_id: str, part_id: str, reference: Json) -> None:
        """Note that a record of this message (`part_id`, or its own) is a file; see session_records.large_records."""
        self.put(keys.large(message_id, part_id), records.dumps({"message": message_id, "part": part_id} | reference))

    # -- queue, cursor, quarantine -------------------------------------------------------------------------------

    def enqueue(self, message_id: str, created: int, hash_: str) -> None:
        """Put a message into the outbox: archived, but not yet indexed and embedded."""
        for stage in STAGES:
            self.enqueue_in(stage, message_id, created, hash_)

    def _enqueue_readers(self, session_id: str, message_id: str) -> None:
        """Put the next messages into the outbox, because their windows contain this message. The last one has none."""
        order = self._order_of(session_id)
        if message_id in order[-1:]:
            return
        place = order.index(message_id) + 1
        for reader_id in order[place : place + _READERS]:
            state = self._load(keys.message_state(reader_id))
            if state is not None:
                self.enqueue_in("lexical", reader_id, state["created"], state["hash"])

    def enqueue_in(self, stage: str, message_id: str, created: int, hash_: str) -> None:
        """Put a message into the outbox of one stage.

        The value is new each time, so that a concurrent indexer, which returns the old value, does not remove this
        entry. The hash would not do, because it stays the same when only the session's title has changed.
        """
        self.changes[keys.outbox(stage, created, message_id)] = b"%b %b" % (hash_.encode(), _token())

    def mark(self, source: str, session_id: str, unit: str, stamp: str | None) -> None:
        """Move the cursor of one unit (a message, or "" for the session's own record); None forgets it."""
        key = keys.cursor(source, session_id, unit)
        if stamp is None:
            self.delete(key)
        else:
            self.put(key, stamp.encode("utf-8", "replace"))

    def quarantine(self, source: str, place: str, entry: Json) -> None:
        """Note that a record is unreadable: reason, size, hash, stamp."""
        self.put(keys.quarantine(source, place), records.dumps(entry))

    def release(self, source: str, place: str) -> None:
        """Remove the note, because the record has been read or is gone."""
        self.delete(keys.quarantine(source, place))


def _token() -> bytes:
    """A value that was never used before: random once per process, then counted."""
    return _PROCESS + b"%x" % next(_tokens)


def _placed(edits: Iterable[FileEdit]) -> Iterator[tuple[tuple[str, int, str, int], bytes]]:
    """Each edit with its place, a move or copy also at its target: ((path, time, part id, number), as stored)."""
    for number, edit in enumerate(edits):
        value = records.edit_to_json(edit)
        yield (edit.path, edit.time, edit.part_id, number), value
        if edit.operation in (Operation.MOVE, Operation.COPY) and edit.other not in (None, edit.path):
            yield (str(edit.other), edit.time, edit.part_id, number), value


def _is_older(read: Json, stored: Json) -> bool:
    """Whether a session's record that we just read is older than the stored one, from another source."""
    source = stored.get("source", "")
    if read["source"] == source or (not source and read["generation"] == stored["generation"]):
        return False  # a source's current record is newer than its former one
    return bool(
        (read["generation"], read["updated"], read["source"]) < (stored["generation"], stored["updated"], source)
    )


def _version_key(message_id: str, part_id: str | None, raw: bytes) -> bytes:
    name = records.digest(raw)
    return keys.message_version(message_id, name) if part_id is None else keys.part_version(message_id, part_id, name)
