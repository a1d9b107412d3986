"""The archive's file records: recorded edits by path, stored end states, and aliases of folders.

The end states ("views") are derived from the edits. A commit that changes a path's edits also marks its end state as
outdated, and it is then rebuilt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from daemon import records
from daemon.archive import keys
from daemon.archive.batch import Batch
from daemon.archive.store import Store
from daemon.model import FileEdit, Json, Operation

Values = Mapping[str, bytes]
"""A value for each of some paths."""
NONE: Values = MappingProxyType({})
_OF_PROGRAMS = tuple(
    b'"operation":"%b"' % operation.value.encode()  # the quotes would have a backslash in a text
    for operation in (Operation.RUN, Operation.UNCLEAR, Operation.FOLDER)
)
_OF_TREES = (Operation.SNAPSHOT, Operation.STEP)


def _path(key: bytes, prefix: bytes) -> str:
    return key[len(prefix) :].split(b"\0", 1)[0].decode("utf-8", "surrogatepass").replace("%00", "\0")


class FileRecords:
    """The file part of one archive. Paths are absolute."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.generation = 0
        """How often end states and links were stored since the start."""

    def edits(self, path: str) -> list[FileEdit]:
        """All recorded changes and observations of one path, including moves and copies to it, in time order."""
        return [records.edit_from_json(raw) for _, raw in self._store.scan(keys.file_prefix(path))]

    def moves(self, path: str) -> Iterator[FileEdit]:
        """Only the moves of a path. A folder may have thousands of other edits, which are not read."""
        for _, raw in self._store.scan(keys.file_prefix(path)):
            if b'"move"' in raw and (edit := records.edit_from_json(raw)).operation is Operation.MOVE:
                yield edit

    def beneath(self, folder: str) -> Iterator[FileEdit]:
        """The same for everything beneath a folder, path by path."""
        for _, raw in self._store.scan(keys.folder_prefix(folder)):
            yield records.edit_from_json(raw)

    def snapshots(self, folder: str) -> Iterator[FileEdit]:
        """Only the snapshots whose folder this is, in time order. It may be a path with thousands of other edits."""
        for _, raw in self._store.scan(keys.file_prefix(folder)):
            if b'"snapshot"' in raw and (edit := records.edit_from_json(raw)).operation is Operation.SNAPSHOT:
                yield edit

    def of_trees(self) -> Iterator[FileEdit]:
        """The observations that name the tree of a snapshot."""
        for _, raw in self._store.scan(b"file:"):
            if b'"blob":"' in raw and (edit := records.edit_from_json(raw)).operation in _OF_TREES and edit.blob:
                yield edit

    def paths(self, prefix: str = "/") -> Iterator[str]:
        """Recorded paths equal to `prefix` or beneath it, sorted, including folders with events of their own."""
        last = ""
        base = prefix.rstrip("/")
        for key in self._store.keys(b"file:" + base.encode("utf-8", "replace")):
            path = _path(key, b"file:")
            if path != last and (path == base or path.startswith(base + "/")):
                last = path
                yield path

    def has_own(self, path: str) -> bool:
        """Whether something is recorded of this very path."""
        return self._has(keys.file_prefix(path))

    def is_recorded(self, path: str) -> bool:
        """Whether something is recorded of a path or of what is beneath it."""
        return self._has(keys.file_prefix(path)) or self._has(keys.folder_prefix(path))

    def is_alone(self, path: str) -> bool:
        """Whether something is recorded of a path, and nothing of what is beneath it."""
        return self._has(keys.file_prefix(path)) and not self._has(keys.folder_prefix(path))

    def has_view(self, path: str) -> bool:
        """Whether there is a stored end state at or beneath a path."""
        return self.view(path) is not None or self._has(keys.view(path + "/"))

    def _has(self, prefix: bytes) -> bool:
        return next(iter(self._store.keys(prefix)), None) is not None

    def sizes(self) -> tuple[dict[str, int], set[str]]:
        """The bytes of the recorded edits of each path, and those of which more is recorded than that programs ran.

        With folders come the work trees that snapshots of them were taken of.
        """
        sizes: dict[str, int] = defaultdict(int)
        whole: set[str] = set()
        for key, raw in self._store.scan(b"file:"):
            path = _path(key, b"file:")
            sizes[path] += len(raw)
            if path not in whole and not any(operation in raw for operation in _OF_PROGRAMS):
                whole.add(path)
            if b'"snapshot"' in raw and (edit := records.edit_from_json(raw)).operation is Operation.SNAPSHOT:
                whole.add(edit.other or path)
        return sizes, whole

    # -- end states ----------------------------------------------------------------------------------------------

    def view(self, path: str) -> bytes | None:
        """The stored end state of one path."""
        return self._store.get(keys.view(path))

    def views(self, prefix: str = "/") -> Iterator[bytes]:
        """The stored end state of each path at or beneath `prefix`."""
        base = prefix.rstrip("/")
        own = self.view(base) if base else None
        if own is not None:
            yield own
        for _, raw in self._store.scan(keys.view(base + "/")):
            yield raw

    def put_views(self, batch: Batch, prefixes: Iterable[str], rows: Values) -> None:
        """`rows` are now the end states of all paths at or beneath `prefixes`; an empty one is removed."""
        for prefix in prefixes:
            base = prefix.rstrip("/")
            old = [keys.view(base)] if base else []
            for key in [*old, *self._store.keys(keys.view(base + "/"))]:
                if _path(key, keys.view()) not in rows:
                    batch.delete(key)
        for path, row in rows.items():
            if row:
                batch.put(keys.view(path), row)
            else:
                batch.delete(keys.view(path))

    def links(self) -> dict[str, bytes]:
        """Folder -> its stored symbolic links (daemon.files.events.links), as of the last end states."""
        return {_path(key, keys.links()): raw for key, raw in self._store.scan(keys.links())}

    def put_links(self, batch: Batch, links: Values) -> None:
        """Store the links of these folders; an empty value removes those of a folder."""
        for folder, raw in links.items():
            if raw:
                batch.put(keys.links(folder), raw)
            else:
                batch.delete(keys.links(folder))

    def drop_views(self, batch: Batch, prefix: str) -> None:
        """Remove the end states of all paths at or beneath `prefix`, and mark them as outdated."""
        self.put_views(batch, [prefix], {})
        batch.outdate(prefix)

    def outdated(self) -> dict[str, bytes]:
        """Paths whose edits have changed since the end states were made, each with its mark."""
        return {_path(key, keys.outdated()): mark for key, mark in self._store.scan(keys.outdated())}

    def current(self, batch: Batch, marks: Values) -> None:
        """Remove these marks, because the end states of these paths are up to date."""
        for path, mark in marks.items():
            if batch.get(keys.outdated(path)) == mark:
                batch.delete(keys.outdated(path))

    # -- sessions and folders ------------------------------------------------------------------------------------

    def session_extra(self, session_id: str) -> Json:
        """The data stored by Batch.session_extra; empty if there is none."""
        raw = self._store.get(keys.session_extra(session_id))
        extra: Json = {} if raw is None else records.loads(raw)
        return records.table(extra)

    def aliases(self) -> dict[str, str]:
        """Old folder -> its new name."""
        return {_path(key, keys.alias()): raw.decode() for key, raw in self._store.scan(keys.alias())}

    def set_alias(self, batch: Batch, old: str, new: str | None) -> None:
        """Note that `old` has become `new`; None removes the alias."""
        if new is None:
            batch.delete(keys.alias(old))
        else:
            batch.put(keys.alias(old), new.encode("utf-8", "replace"))
        batch.outdate("/")  # because the name is also in the evidence of every move
