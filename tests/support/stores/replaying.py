"""Histories straight from edits, without an archive, and archives that hold nothing but edits.

For tests of what a replay concludes. Events are built by `event` and its short forms, at whole seconds after START:

    history("/w/a", [write(1, "/w/a", "x"), move(2, "/w/a", "/w/b")])
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from daemon import records
from daemon.archive import Archive
from daemon.archive.objects import BLOB, TREE
from daemon.files.events import ordered
from daemon.files.history import FileHistory, Revision
from daemon.files.replay import World, replay
from daemon.model import FileEdit, Message, Operation, Session
from daemon.records import blob_id
from tests.support.stores.records import START

Entry = tuple[int, str]


class Objects:
    """Blobs and trees in memory; trees are named by any text."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._trees: dict[str, dict[str, Entry]] = {}

    def put(self, files: Mapping[str, bytes | tuple[int, bytes]], name: str) -> str:
        """A tree of files by their relative paths; bytes, or (mode, bytes)."""
        names: dict[str, Entry] = {}
        inner: dict[str, dict[str, bytes | tuple[int, bytes]]] = {}
        for path, given in files.items():
            folder, _, rest = path.partition("/")
            if rest:
                inner.setdefault(folder, {})[rest] = given
                continue
            mode, content = given if isinstance(given, tuple) else (0o100644, given)
            self._blobs[blob_id(content)] = content
            names[path] = (mode, blob_id(content))
        for folder, beneath in inner.items():
            key = self.put(beneath, f"{sorted((k, v) for k, v in beneath.items())!r}")  # equal content, equal id
            names[folder] = (0o040000, key)
        self._trees[name] = names
        return name

    def put_blob(self, content: bytes) -> str:
        self._blobs[blob_id(content)] = content
        return blob_id(content)

    def has(self, object_id: str) -> bool:
        return object_id in self._blobs or object_id in self._trees

    def blob(self, object_id: str) -> bytes | None:
        return self._blobs.get(object_id)

    def tree(self, object_id: str) -> Mapping[str, Entry] | None:
        return self._trees.get(object_id)

    def find(self, tree_id: str, path: str) -> Entry | None:
        found: Entry = (0o040000, tree_id)
        for name in path.split("/") if path else ():
            if found[0] != 0o040000:
                return None
            names = self._trees.get(found[1])
            if names is None:
                return 0, found[1]
            if name not in names:
                return None
            found = names[name]
        return found


def world(edits: Iterable[FileEdit], objects: Objects | None = None) -> World:
    """A replay of these edits, in any order."""
    return replay(ordered(edits), objects or Objects())


def history(path: str, edits: Iterable[FileEdit], objects: Objects | None = None) -> FileHistory:
    """What a replay of these edits, in any order, makes of one path."""
    return world(edits, objects).history(path)


def last(path: str, edits: Iterable[FileEdit], objects: Objects | None = None) -> Revision:
    """The newest revision of a path that has one."""
    found = history(path, edits, objects).latest
    assert found is not None, f"nothing is known of {path}"
    return found


def grade_and_content(revision: Revision | None) -> tuple[str, bytes | None]:
    """What a revision says in short: its grade, "gone" for a certain deletion, and its content.

    What is certain but for a byte order mark counts as proven here: which reads leave that open is told elsewhere.
    """
    assert revision is not None
    if revision.deleted and revision.proven:
        return "gone", None
    return "proven" if revision.mark_unknown else revision.grade.value, revision.content


# -- events ----------------------------------------------------------------------------------------------------------


def at(second: float) -> int:
    """Epoch ms."""
    return START + int(1000 * second)


def event(second: float, operation: Operation, path: str, tool: str = "bash", **fields: Any) -> FileEdit:
    """One event; each second is a message with one part unless told otherwise."""
    name = f"{int(1000 * second):09d}"
    named: dict[str, Any] = {"session_id": "ses_1", "message_id": f"msg_{name}", "part_id": f"prt_{name}"}
    named |= {"version": "1.18.33"} | fields
    return FileEdit(path=path, time=at(second), tool=tool, operation=operation, **named)


def _with(fields: dict[str, Any], **usual: Any) -> dict[str, Any]:
    return usual | fields


def write(second: float, path: str, content: str, **fields: Any) -> FileEdit:
    return event(second, Operation.WRITE, path, **_with(fields, tool="write", content=content, existed=False))


def append(second: float, path: str, content: str, **fields: Any) -> FileEdit:
    return event(second, Operation.APPEND, path, content=content, **fields)


def edit(second: float, path: str, old: str, new: str, **fields: Any) -> FileEdit:
    return event(second, Operation.EDIT, path, **_with(fields, tool="edit", old=old, new=new))


def delete(second: float, path: str, **fields: Any) -> FileEdit:
    return event(second, Operation.DELETE, path, **fields)


def move(second: float, path: str, other: str, **fields: Any) -> FileEdit:
    return event(second, Operation.MOVE, path, other=other, **fields)


def copy(second: float, path: str, other: str, **fields: Any) -> FileEdit:
    return event(second, Operation.COPY, path, other=other, **fields)


def read(second: float, path: str, content: str, **fields: Any) -> FileEdit:
    """A complete read, as the versions show it in which line ends and final newline can be seen."""
    return event(second, Operation.READ, path, **_with(fields, tool="read", content=content))


def lines(second: float, path: str, first: int, *shown: str, **fields: Any) -> FileEdit:
    """A read of some lines."""
    span = f"lines {first} to {first + len(shown) - 1}"
    return event(second, Operation.READ_RANGE, path, "read", **_with(fields, content="\n".join(shown), note=span))


def state(second: float, path: str, content: str | None, **fields: Any) -> FileEdit:
    """What a recorded diff shows."""
    return event(second, Operation.STATE, path, **_with(fields, tool="summary", content=content))


def snapshot(second: float, tree: str, root: str, **fields: Any) -> FileEdit:
    """A tree of `root`; `scope` is the session's folder in it."""
    scope = fields.pop("scope", root)
    return event(second, Operation.SNAPSHOT, scope, **_with(fields, tool="", other=root, blob=tree, note="finish"))


def unclear(second: float, path: str, **fields: Any) -> FileEdit:
    return event(second, Operation.UNCLEAR, path, **_with(fields, note="it may have changed"))


def run(second: float, folder: str, content: str | None = None, **fields: Any) -> FileEdit:
    return event(second, Operation.RUN, folder, **_with(fields, content=content, note="a program ran"))


# -- archives --------------------------------------------------------------------------------------------------------


def archived_session(session_id: str = "ses_1", directory: str = "/w", **fields: Any) -> Session:
    record: dict[str, Any] = {"id": session_id, "directory": directory, "time": {"updated": START}} | fields.pop(
        "record", {}
    )
    values: dict[str, Any] = {
        "project_id": "global",
        "title": "",
        "created": START,
        "updated": START,
        "version": "1.18.33",
    } | fields
    return Session(id=session_id, directory=directory, raw=records.dumps(record), **values)


def keep(
    archive: Archive, edits: Iterable[FileEdit], session: Session | None = None, *, gone: Iterable[str] = ()
) -> None:
    """Messages that hold these edits, one for each message id, into the archive; their source lost the parts `gone`."""
    by_message: dict[tuple[str, str], list[FileEdit]] = defaultdict(list)
    for one in edits:
        by_message[one.session_id, one.message_id].append(one)
    batch = archive.batch()
    known = {session_id for session_id, _ in by_message}
    for session_id in sorted(known):
        given = session if session is not None and session.id == session_id else archived_session(session_id)
        if session is not None or archive.session(session_id) is None:
            batch.session(given, "s", 1)
    for (session_id, message_id), own in by_message.items():
        created = min(one.time for one in own)
        data = {"id": message_id, "sessionID": session_id, "role": "assistant", "time": {"created": created}}
        message = Message(message_id, session_id, "assistant", created, data, records.dumps(data))
        hash_ = records.digest(message.raw)
        batch.message(message, source="s", generation=1, hash_=hash_, edits=own, gone=gone)
    archive.commit(batch)


def remove(archive: Archive, *message_ids: str, now: int) -> None:
    """Their source no longer has these messages."""
    batch = archive.batch()
    for message_id in message_ids:
        batch.tombstone(message_id, now)
    archive.commit(batch)


def keep_tree(archive: Archive, files: Mapping[str, bytes | tuple[int, bytes]], *, blobs: bool = True) -> str:
    """A git tree of these files into the archive; without `blobs` their contents are not captured."""
    batch = archive.batch()

    def put(inside: Mapping[str, bytes | tuple[int, bytes]]) -> str:
        names: dict[str, tuple[int, str]] = {}
        folders: dict[str, dict[str, bytes | tuple[int, bytes]]] = defaultdict(dict)
        for path, given in inside.items():
            folder, slash, rest = path.partition("/")
            if slash:
                folders[folder][rest] = given
                continue
            mode, content = given if isinstance(given, tuple) else (0o100644, given)
            names[folder] = mode, archive.objects.put(batch, BLOB, content) if blobs else blob_id(content)
        for folder, beneath in folders.items():
            names[folder] = 0o040000, put(beneath)
        raw = b"".join(
            b"%o %b\0" % (mode, name.encode()) + bytes.fromhex(i) for name, (mode, i) in sorted(names.items())
        )
        return archive.objects.put(batch, TREE, raw)

    tree = put(files)
    archive.commit(batch)
    return tree
