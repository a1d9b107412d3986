"""Stores contents by their git id, each once: blobs and trees of snapshots, and spilled tool output.

An object is stored under the hash of its content, so it cannot be changed unnoticed; an object that was left out has
its reason instead. Answers distinguish "absent" from "unknown": a path beneath a tree that is not stored is never
reported as absent. The capture queue is here too; `ingest/capture.py` decides what is captured, and when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.archive.store.bodies import size_of
from daemon.errors import BadRecord

BLOB, TREE = "b", "t"
FOLDER, SUBMODULE, UNKNOWN = 0o040000, 0o160000, 0
"""Modes of git's tree entries; UNKNOWN is used for a tree that is not stored, so that its content is unknown."""

Entry = tuple[int, str]
"""Mode and object id."""

_TYPES = {BLOB: b"blob", TREE: b"tree"}
_CACHED_TREES = 1024
_CACHED_IDS = 1 << 16
_ID_BYTES = 20
_WITHHELD = 0
"""The mode, which git never writes, of an entry that has only the hash of a name that was forgotten."""


def object_id(kind: str, raw: bytes) -> str:
    """Git's id of an object: the SHA-1 over its type, length and content, in lower-case hexadecimal."""
    return hashlib.sha1(b"%b %d\0" % (_TYPES[kind], len(raw)) + raw, usedforsecurity=False).hexdigest()


def parse_tree(raw: bytes) -> dict[str, Entry]:
    """Git's tree format: for each entry the mode in octal digits, a space, the name, NUL, and 20 bytes of id.

    Names that are not UTF-8 keep their bytes as surrogates.

    Raises:
        BadRecord: cut short, or with a name that no file can have.
    """
    return {name: entry for name, entry in _entries(raw) if entry[0] != _WITHHELD}


def withheld(raw: bytes) -> frozenset[str]:
    """The hashes of names that a stored tree no longer has, because what was at them was forgotten."""
    return frozenset(name for name, (mode, _) in _entries(raw) if mode == _WITHHELD)


def _entries(raw: bytes) -> Iterator[tuple[str, Entry]]:
    place = 0
    while place < len(raw):
        space = raw.find(b" ", place, place + 8)
        end = raw.find(b"\0", space)
        after = end + 1 + _ID_BYTES
        mode, name = raw[place : max(space, place)], raw[space + 1 : max(end, 0)]
        if space < 0 or end < 0 or after > len(raw) or not mode.isdigit() or set(mode) & set(b"89"):
            raise BadRecord(f"a git tree that is malformed at byte {place}")
        if name in (b"", b".", b"..") or b"/" in name:
            raise BadRecord(f"a git tree with the impossible name {name!r}")
        yield name.decode("utf-8", "surrogateescape"), (int(mode, 8), raw[end + 1 : after].hex())
        place = after


def _hashed(tree_id: str, name: str) -> str:
    return hashlib.sha256(f"{tree_id}\0{name}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Objects:
    """The objects of one archive; `counts` gives the archive's counts. Safe from several threads."""

    def __init__(self, store: Store, counts: Callable[[], Mapping[str, int]]) -> None:
        self._store = store
        self._get = store.get
        self._counts = counts
        # Missing trees are not cached, because they may be captured later (an exception is never cached).
        self._parsed = lru_cache(maxsize=_CACHED_TREES)(self._parse)
        self._withheld = lru_cache(maxsize=_CACHED_TREES)(lambda id_: withheld(self._content(id_, TREE) or b""))
        self._present = lru_cache(maxsize=_CACHED_IDS)(self._look)

    @property
    def size(self) -> int:
        """Bytes of all objects together, uncompressed."""
        return self._counts().get("object_bytes", 0)

    @property
    def number(self) -> int:
        """How many there are."""
        return self._counts().get("objects", 0)

    def has(self, object_id: str) -> bool:
        """Whether its content is stored. Only "no" is looked up again; `forget_cached` follows a removal."""
        try:
            return self._present(object_id)
        except LookupError:
            return False

    def kind(self, batch: Batch, object_id: str) -> str:
        """BLOB, TREE, or empty if it is not stored; includes the changes of a batch."""
        return (batch.get(keys.stored_object(object_id)) or b"")[:1].decode()

    def blob(self, object_id: str) -> bytes | None:
        """A blob's content; None if it is not stored (see `missing`) or is a tree."""
        return self._content(object_id, BLOB)

    def tree(self, object_id: str) -> Mapping[str, Entry] | None:
        """A tree's entries, name -> (mode, id); None if it is not stored (see `missing`) or is a blob."""
        try:
            return self._parsed(object_id)
        except LookupError:
            return None

    def entries(self, batch: Batch, tree_id: str) -> dict[str, Entry]:
        """A tree's entries, including the changes of a batch; empty if it is not stored."""
        value = batch.get(keys.stored_object(tree_id)) or b""
        return parse_tree(value[1:]) if value[:1] == TREE.encode() else {}

    def walk(self, tree_id: str) -> Iterator[tuple[str, int, str]]:
        """Every file and link beneath a tree: (path relative to it, mode, id), folder by folder.

        Their contents may be stored or not: see `blob` and `missing`. A tree that is not stored is yielded as (its
        path, UNKNOWN, its id), because its content is unknown. Submodules are left out.
        """
        folders = [("", tree_id)]
        while folders:
            folder, folder_id = folders.pop()
            entries = self.tree(folder_id)
            if entries is None:
                yield folder, UNKNOWN, folder_id
                continue
            for name, (mode, id_) in entries.items():
                path = f"{folder}/{name}" if folder else name
                if mode == FOLDER:
                    folders.append((path, id_))
                elif mode != SUBMODULE:
                    yield path, mode, id_

    def find(self, tree_id: str, path: str) -> Entry | None:
        """(mode, id) of a relative path; "" is the tree itself. None if it is certainly absent.

        (UNKNOWN, id of the tree) if a tree on the way is not stored, or was there and was forgotten.
        """
        entry: Entry = FOLDER, tree_id
        for name in path.split("/") if path else ():
            mode, id_ = entry
            if mode != FOLDER:
                return None
            entries = self.tree(id_)
            if entries is None:
                return UNKNOWN, id_
            if name not in entries:
                return (UNKNOWN, id_) if _hashed(id_, name) in self._withheld(id_) else None
            entry = entries[name]
        return entry

    def missing(self, object_id: str) -> str:
        """Why it was left out: too large, gone at the source, limit reached; empty if it was not."""
        return (self._get(keys.skipped(object_id)) or b"").decode("utf-8", "replace")

    def spill(self, path: str) -> str | None:
        """The blob of a spilled tool output, by the absolute path that OpenCode recorded."""
        raw = self._get(keys.spill(path))
        return None if raw is None else raw.decode()

    # -- filling -------------------------------------------------------------------------------------------------

    def put(self, batch: Batch, kind: str, raw: bytes, expected: str = "") -> str:
        """Store an object, unless it is already stored; returns its id.

        Raises:
            BadRecord: its id is not `expected`, or it is a malformed tree. Nothing was put.
        """
        id_ = object_id(kind, raw)
        if expected and id_ != expected:
            raise BadRecord(f"object {expected} has another content than its id says")
        if kind == TREE:
            parse_tree(raw)
        batch.put(keys.stored_object(id_), kind.encode() + raw)
        batch.delete(keys.skipped(id_))
        return id_

    def withhold(self, batch: Batch, tree_id: str, names: Collection[str]) -> None:
        """Take entries out of a stored tree; only the hashes of their names stay, so that they do not count as absent.

        Its content is then another than its id says.
        """
        value = batch.get(keys.stored_object(tree_id)) or b""
        if not names or value[:1] != TREE.encode():
            return
        entries = [(f"{mode:o}", name, id_) for name, (mode, id_) in _entries(value[1:]) if name not in names]
        entries += [("0", _hashed(tree_id, name), "0" * 2 * _ID_BYTES) for name in sorted(names)]
        raw = b"".join(
            f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(id_) for mode, name, id_ in entries
        )
        batch.put(keys.stored_object(tree_id), TREE.encode() + raw)

    def skip(self, batch: Batch, object_id: str, reason: str) -> None:
        """Store why an object was left out, unless the object is stored."""
        if batch.get(keys.stored_object(object_id)) is None:
            batch.put(keys.skipped(object_id), reason.encode("utf-8", "replace"))

    def put_spill(self, batch: Batch, path: str, raw: bytes) -> str:
        """Store a spilled tool output under its recorded path; returns its id."""
        id_ = self.put(batch, BLOB, raw)
        batch.put(keys.spill(path), id_.encode())
        return id_

    def counted(self, changes: Mapping[bytes, bytes | None]) -> dict[str, int]:
        """`counts` as they are after the commit of `changes`: exact, because they are written with them.

        Counted at the commit, because another thread may have committed the same object since the batch was begun.
        """
        number, size = self.number, self.size
        for key, value in changes.items():
            if not key.startswith(keys.OBJECT):
                continue
            before = self._store.stored(key)
            number += (value is not None) - (before is not None)
            size += _content_size(value) - _content_size(before)
        return {"objects": number, "object_bytes": size}

    def forget_cached(self) -> None:
        """Drop what is cached of objects, because some were removed."""
        self._parsed.cache_clear()
        self._present.cache_clear()
        self._withheld.cache_clear()

    # -- the capture queue ---------------------------------------------------------------------------------------

    def capture_queue(self) -> list[tuple[str, bytes]]:
        """The queue: (object id or absolute path, value)."""
        start = len(keys.capture_queue())
        return [(keys.unescape(key[start:].decode()), value) for key, value in self._store.scan(keys.capture_queue())]

    def want(self, batch: Batch, name: str, value: bytes) -> None:
        """Add an entry to the queue, durable with the batch."""
        batch.put(keys.capture_queue(name), value)

    def unwant(self, batch: Batch, name: str, value: bytes) -> None:
        """Remove an entry from the queue, unless it was added again with another value."""
        if batch.get(keys.capture_queue(name)) == value:
            batch.delete(keys.capture_queue(name))

    def settle(self, batch: Batch, tree_id: str, remark: str) -> None:
        """Note that everything beneath a tree is stored or left out; `remark` says what was left out, or is empty."""
        batch.put(keys.settled(tree_id), remark.encode())

    def settled(self, batch: Batch, tree_id: str) -> str | None:
        """The remark of a settled tree, None for any other; includes the changes of the batch."""
        raw = batch.get(keys.settled(tree_id))
        return None if raw is None else raw.decode()

    # -- reading -------------------------------------------------------------------------------------------------

    def _look(self, object_id: str) -> bool:
        if self._get(keys.stored_object(object_id)) is None:
            raise LookupError(object_id)
        return True

    def _content(self, object_id: str, kind: str) -> bytes | None:
        value = self._get(keys.stored_object(object_id))
        return value[1:] if value is not None and value[:1] == kind.encode() else None

    def _parse(self, object_id: str) -> Mapping[str, Entry]:
        raw = self._content(object_id, TREE)
        if raw is None:
            raise LookupError(object_id)
        return MappingProxyType(parse_tree(raw))


def _content_size(value: bytes | None) -> int:
    """The size of a stored object without its kind."""
    return 0 if value is None else size_of(value) - 1
