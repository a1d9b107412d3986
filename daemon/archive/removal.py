"""Puts the removal of sessions, messages and parts into one batch: records, versions, edits, and what hangs on them.

An object is removed with the last record that names it: a snapshot may be named by several sessions. LevelDB's files
still hold the removed bytes until they are written anew (store.erasure).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.forgotten import CONTENT, DIFFS, MESSAGE, OUTPUT, SESSION, Forgotten
from daemon.archive.objects import Entry, Objects
from daemon.archive.session_records import remaining_secrets
from daemon.archive.store import Store
from daemon.model import FileEdit, Json, Message

_BLOB = re.compile(rb'"blob":"([0-9a-f]{40})"')
_SNAPSHOT = re.compile(rb'"snapshot":"([0-9a-f]{40})"')
_PLACES = re.compile(r"(?:message |session |session_diff of |todo list of )?(.*?)(?:#\d+)?", re.DOTALL)
"""What the quarantine calls a record, around its id: a message, a session, its diff or todo list, a chunk."""
_STEP = 5000


class Removal:
    """One removal. Name the sessions and messages, then call `finish` once, then commit the batch."""

    def __init__(self, store: Store, objects: Objects, forgotten: Forgotten, batch: Batch) -> None:
        self._store, self._objects, self._forgotten, self._batch = store, objects, forgotten, batch
        self.sessions: set[str] = set()
        self.messages: set[str] = set()
        self.places: set[str] = set()
        """Paths whose recorded edits are removed."""
        self.objects: set[str] = set()
        """Ids of the objects that are removed, known after `finish`."""
        self._shortened: set[str] = set()
        """Sessions of which something else stays."""
        self._trees: set[str] = set()
        """Those from which entries are taken out."""
        self._roots: set[str] = set()
        self._spills: set[str] = set()

    def session(self, session_id: str) -> None:
        """Remove a session with all its messages."""
        for message_id in self._batch.message_ids(session_id):
            self._message(message_id)
        extra = records.load_object(self._store.get(keys.session_extra(session_id)) or b"{}")
        self._edits(extra.get("edits", ()))
        self._roots |= _ids(_SNAPSHOT, self._store.get(keys.session_extra(session_id)))
        self._batch.counts["sessions"] -= self._batch.get(keys.session_meta(session_id)) is not None
        self._drop(keys.session_prefix(session_id))
        self._forgotten.add(self._batch, SESSION, session_id)
        self.sessions.add(session_id)

    def message(self, message_id: str) -> None:
        """Remove a message of a session that stays, and the session's diff, which tells what the message changed."""
        session_id = (self._batch.state(message_id) or {})["session"]
        self._message(message_id)
        self._batch.remove_from_order(session_id, message_id)
        extra = records.load_object(self._batch.get(keys.session_extra(session_id)) or b"{}")
        if extra.get("diffs"):
            self._edits(extra.get("edits", ()))
            extra |= {"diffs": [], "diff_time": 0, "edits": []}
            self._batch.put(keys.session_extra(session_id), records.dumps(extra))
        self._forgotten.add(self._batch, DIFFS, session_id)
        self._forgotten.add(self._batch, MESSAGE, message_id)
        self._shortened.add(session_id)

    # -- records that stay, without something ----------------------------------------------------------------------

    def shorten(self, message: Message, replaced: Mapping[str, bytes], edits: Iterable[FileEdit]) -> None:
        """Replace records of a message that stays, by part id, "" for its own. Versions of replaced parts go.

        `edits` are those of what is left.
        """
        for part_id, raw in replaced.items():
            if part_id:
                self._output_of(self._store.get(keys.part(message.id, part_id)) or b"")
                for key, version in self._store.scan(keys.part_versions(message.id, part_id)):
                    self.version(key, version)
            self._batch.put(keys.part(message.id, part_id) if part_id else keys.message_raw(message.id), raw)
        before = (self._batch.state(message.id) or {}).get("edits", [])
        self._batch.renew_edits(message.id, edits)
        after = (self._batch.state(message.id) or {}).get("edits", [])
        for place in before:
            self._roots |= _ids(_BLOB, self._store.get(keys.file_edit(*place)))
        self._edits([place for place in before if place not in after])
        self._shortened.add(message.session_id)

    def version(self, key: bytes, raw: bytes) -> None:
        """Remove a version that was kept aside."""
        self._output_of(raw)
        self._batch.drop(key)

    def session_extra(self, session_id: str, extra: Json, is_meant: Callable[[str], bool]) -> None:
        """Store a session's data beside its messages, without the edits of such paths."""
        self._roots |= _ids(_SNAPSHOT, self._store.get(keys.session_extra(session_id)))
        gone = [place for place in extra.get("edits", []) if is_meant(place[0])]
        self._edits(gone)
        kept = [place for place in extra.get("edits", []) if place not in gone]
        self._batch.put(keys.session_extra(session_id), records.dumps(extra | {"edits": kept}))

    def forgotten_paths(self, record_id: str, places: Iterable[str], part_ids: Iterable[str] = ()) -> None:
        """Keep away what a message or session had of these paths."""
        self._forgotten.add_paths(self._batch, record_id, places, part_ids)

    def output(self, path: str) -> None:
        """Remove the content of a spilled output, whoever names it."""
        self._roots |= {(self._store.get(keys.spill(path)) or b"").decode()} - {""}
        self._batch.delete(keys.spill(path))
        self._forgotten.add(self._batch, OUTPUT, path)

    def entries(self, tree_id: str, place: str, names: Iterable[str]) -> bool:
        """Take entries out of the tree of a snapshot, which is of the folder `place`; returns whether it had one."""
        tree = self._objects.tree(tree_id) or {}
        there = [name for name in names if name in tree]
        for name in there:
            waiting = [(f"{place.rstrip('/')}/{name}", tree[name][1])]
            while waiting:
                path, object_id = waiting.pop()
                if not self._forgotten.add(self._batch, CONTENT, path, object_id):
                    continue
                self._roots.add(object_id)
                inner = (self._objects.tree(object_id) or {}).items()
                waiting += [(f"{path}/{inner_name}", inner_id) for inner_name, (_, inner_id) in inner]
        if there:
            self._forgotten.add(self._batch, CONTENT)
            self._objects.withhold(self._batch, tree_id, there)
            self._trees.add(tree_id)
        return bool(there)

    def _output_of(self, raw: bytes) -> None:
        """Note the spilled output that a part names."""
        if b"outputPath" in raw:
            self._spills |= _spilled(raw)

    def finish(self, pulse: Callable[[int], None] = lambda _: None) -> None:
        """Remove what waits or is noted for them, and the objects that nothing else names."""
        for session_id in self._shortened:
            self._secrets(session_id)
        self._noted()
        for prefix in (b"cache:", b"exp:"):
            self._drop(prefix)
        self._unnamed(pulse)

    # -- records -------------------------------------------------------------------------------------------------

    def _message(self, message_id: str) -> None:
        state = self._batch.state(message_id)
        if state is None:
            return
        self._edits(state.get("edits", ()))
        for prefix in keys.message_prefixes(message_id):
            for key, raw in self._store.scan(prefix):
                self._output_of(raw)
                self._batch.drop(key)
        self._batch.delete(keys.unread(message_id))
        self._batch.counts["messages"] -= 1
        self._batch.counts["parts"] -= len(state["parts"])
        self.messages.add(message_id)

    def _edits(self, places: Iterable[list[object]]) -> None:
        for place in places:
            key = keys.file_edit(*place)  # type: ignore[arg-type]  # as they were stored
            self._roots |= _ids(_BLOB, self._store.get(key))
            self._batch.delete(key)
            path = str(place[0])
            self._batch.delete(keys.view(path))
            self._batch.outdate(path)
            self.places.add(path)

    def _drop(self, prefix: bytes) -> None:
        for key in self._store.keys(prefix):
            self._batch.drop(key)

    def _secrets(self, session_id: str) -> None:
        """Keep those secrets of a session that one of its remaining messages holds."""
        key = keys.session_secrets(session_id)
        secrets = records.load_object(self._store.get(key) or b"{}")
        kept = remaining_secrets(self._batch, session_id, secrets)
        if not kept:
            self._batch.delete(key)
        elif len(kept) < len(secrets):
            self._batch.put(key, records.dumps(kept))

    def _noted(self) -> None:
        """Remove their cursors, and their entries in the outbox, the quarantine and among unknown types."""
        for key in (*self._store.keys(keys.OUTBOX), *self._store.keys(b"unk:")):
            if keys.last_field(key) in self.messages:
                self._batch.drop(key)
        for key in self._store.keys(b"cur:"):
            _, _, session_id, unit = (keys.unescape(field) for field in key.decode("utf-8", "replace").split(":", 3))
            if session_id in self.sessions or unit in self.messages:
                self._batch.drop(key)
        for key in self._store.keys(keys.QUARANTINE):
            place = _PLACES.fullmatch(keys.last_field(key))
            if place is not None and place[1] in self.sessions | self.messages:
                self._batch.drop(key)

    # -- objects -------------------------------------------------------------------------------------------------

    def _unnamed(self, pulse: Callable[[int], None]) -> None:
        spills = {keys.spill(path) for path in self._spills}
        if spills:
            spills -= self._still_spilled(pulse)
        for key in spills:
            self._roots |= {(self._store.get(key) or b"").decode()} - {""}
            self._batch.delete(key)
        for path in self._spills:
            self._batch.delete(keys.skipped(path))
        if not self._roots and not self._spills:
            return
        kept: set[str] = set()
        for root in self._named(pulse):
            self._reach(root, kept)
        for root in self._roots:
            self._reach(root, self.objects, kept)
        for object_id in sorted(self.objects):
            for key in (keys.stored_object(object_id), keys.skipped(object_id), keys.settled(object_id)):
                self._batch.delete(key)
        for name in (*self.objects, *(path for path in self._spills if keys.spill(path) in spills)):
            self._batch.delete(keys.capture_queue(name))

    def _reach(self, root: str, reached: set[str], besides: Collection[str] = frozenset()) -> None:
        """Add an object and all beneath it, without what is beneath one that is known already."""
        waiting = [root]
        while waiting:
            object_id = waiting.pop()
            if object_id not in reached and object_id not in besides:
                reached.add(object_id)
                waiting += [id_ for _, id_ in self._entries(object_id).values()]

    def _entries(self, tree_id: str) -> Mapping[str, Entry]:
        """A tree's entries as they are after the removal."""
        if tree_id in self._trees:
            return self._objects.entries(self._batch, tree_id)
        return self._objects.tree(tree_id) or {}

    def _named(self, pulse: Callable[[int], None]) -> Iterator[str]:
        """The objects that remaining records name."""
        for number, (key, raw) in enumerate(self._store.scan(b"file:")):
            if number % _STEP == 0:
                pulse(number)
            if b'"blob"' in raw and key not in self._batch.changes:
                yield from _ids(_BLOB, raw)
        for key, raw in self._store.scan(b"sess:"):
            if key.endswith(b":extra") and key not in self._batch.changes:
                yield from _ids(_SNAPSHOT, raw)
        yield from self._named_anew()
        for key, raw in self._store.scan(keys.SPILL):
            if self._batch.changes.get(key, raw) is not None:
                yield raw.decode()

    def _named_anew(self) -> Iterator[str]:
        """The objects that records name which the batch writes."""
        for key in list(self._batch.changes):
            if key.startswith((b"file:", b"sess:")):
                yield from _ids(_SNAPSHOT if key.endswith(b":extra") else _BLOB, self._batch.get(key))

    def _still_spilled(self, pulse: Callable[[int], None]) -> set[bytes]:
        """Those of the spilled outputs that a remaining part names, as in a copy of a session."""
        still: set[bytes] = set()
        for prefix in (b"part:", b"partwas:"):
            for number, (key, raw) in enumerate(self._store.scan(prefix)):
                if number % _STEP == 0:
                    pulse(number)
                if b"outputPath" in raw and key not in self._batch.changes:  # nor does what it is replaced by
                    still |= {keys.spill(path) for path in _spilled(raw)}
        return still


def _ids(pattern: re.Pattern[bytes], raw: bytes | None) -> set[str]:
    return {match.decode() for match in pattern.findall(raw or b"")}


def _spilled(raw: bytes) -> set[str]:
    state = records.table(records.load_object(raw).get("state"))
    return {records.text(records.table(state.get("metadata")).get("outputPath"))} - {""}
