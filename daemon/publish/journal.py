"""The commit of a tree: operations are staged with an intent, then executed; after a crash, by the next publisher.

A staging folder without an intent is discarded. One with an intent is executed, from any point and as often as needed.
An operation leaves alone what was changed after it was planned (docs/reliability.md, P3).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator

import orjson

from daemon.errors import OutputRefused
from daemon.filesystem.durable import Root
from daemon.model import Json
from daemon.publish.naming import beside, folders_above

STAGING = ".reconstitute.next"
CURRENT = "current"
"""The word in the name of the current page beside one that a person edited."""

_INTENT = "intent.json"


class Staging:
    """The operations of one tree; their contents are written beside the trees at once.

    An operation is ``{path, before, after, staged}`` (put content number `staged` at `path`) or ``{path, before}``
    (remove it). It is executed only if the file's sha256 is still `before` (None: no file). Content that `carries` what
    a person wrote on another page is put beside `path` if it cannot be put there.
    """

    def __init__(self, root: Root, folder: str, spare_bytes: int) -> None:
        self.path = f"{STAGING}/{sha256(folder.encode())[:16]}"
        self.operations: list[Json] = []
        self._root = root
        self._folder = folder
        self._spare = spare_bytes
        self._bytes = 0
        self._number = 0

    def put(self, path: str, data: bytes, before: str | None, *, carries: bool = False) -> None:
        """Stage `data` for `path`.

        Raises:
            OutputRefused: too little space is free for the staged contents and the spare bytes.
        """
        needed, free = self._bytes + 2 * len(data) + self._spare, self._root.free_bytes()
        if free < needed:  # what is staged is written already and counts twice
            root, mega = self._root.path, 1_000_000
            text = f"{root}: {free // mega} MB free, {needed // mega} MB needed to publish; free some space"
            raise OutputRefused(text) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._root.write(f"{self.path}/{self._number}", data)
        operation = {"path": path, "before": before, "after": sha256(data), "staged": self._number}
        self.operations.append(operation | ({"carries": True} if carries else {}))
        self._number += 1
        self._bytes += len(data)

    def remove(self, path: str, before: str) -> None:
        """Plan the removal of `path`."""
        self.operations.append({"path": path, "before": before})

    def make_folders(self) -> None:
        """Make the folders that the operations need."""
        for goal in sorted({op["path"].rpartition("/")[0] for op in self.operations if "staged" in op} - {""}):
            self._root.mkdir(goal)

    def commit(self) -> None:
        """Write the intent. From now on the operations will be executed, even after a crash."""
        intent = {"folder": self._folder, "operations": self.operations}
        self._root.write(f"{self.path}/{_INTENT}", as_json(intent))


@contextlib.contextmanager
def staged(root: Root, folder: str, spare_bytes: int) -> Iterator[Staging]:
    """A context in which operations are staged; committed at its end, discarded if it ends by an exception.

    Raises:
        OSError: the disk is full or fails; the tree is as it was.
    """
    staging = Staging(root, folder, spare_bytes)
    try:
        with root.batched():
            yield staging
            staging.make_folders()
        if staging.operations:
            staging.commit()
    except Exception:
        # The disk may be too full even for this. Then the next publisher discards it, because it has no intent.
        with contextlib.suppress(OSError):
            _discard(root, staging.path)
        raise


def recover(root: Root) -> int:
    """Execute or discard what is staged in `root`; returns how many trees were completed."""
    completed = 0
    for name in root.list(STAGING):
        staging = f"{STAGING}/{name}"
        if exists(root, f"{staging}/{_INTENT}"):
            roll_forward(root, staging)
            completed += 1
        else:
            _discard(root, staging)
    _sweep(root)
    return completed


def roll_forward(root: Root, staging: str) -> None:
    """Execute an intent; may be repeated from any point. A page edited since the plan is left as it is."""
    data = root.read(f"{staging}/{_INTENT}") or b""
    try:
        intent = orjson.loads(data)
        folder, operations = intent["folder"], intent["operations"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = f"{root.path / staging / _INTENT}: damaged; remove that folder, then the tree is compared anew"
        raise OutputRefused(text) from None
    with root.batched():
        for operation in operations:
            _execute(root, staging, operation)
        _prune(root, folder, [op["path"] for op in operations if "staged" not in op])
    _discard(root, staging)


def _execute(root: Root, staging: str, operation: Json) -> None:
    path = operation["path"]
    if "staged" not in operation:
        if current(root, path) == operation["before"]:
            removed = f"{staging}/removed"
            root.rename(path, removed)
            if current(root, removed) != operation["before"] and not exists(root, path):
                root.rename(removed, path)  # it was saved between the check and the removal
        return
    content = f"{staging}/{operation['staged']}"
    if not exists(root, content):
        return  # this rename was made before the crash
    actual = current(root, path)
    if actual == operation["before"]:
        if actual is None or not root.exchange(content, path):
            root.rename(content, path)
            return
        actual = operation["after"]
    if actual == operation["after"]:
        # The old page is in the staging folder now. If it was saved between the check and the exchange, it goes back.
        if current(root, content) == operation["before"]:
            return
        root.exchange(content, path)
    if operation.get("carries"):
        names = (beside(path, CURRENT, number) for number in itertools.count(1))
        root.rename(content, next(name for name in names if root.stat(name) is None))


def _prune(root: Root, folder: str, removed: Iterable[str]) -> None:
    """Remove the folders that removed pages leave empty, inside the tree's own folder."""
    emptied = {
        outer for path in removed for outer in folders_above(path) if outer.startswith(f"{folder}/" if folder else "")
    }
    for path in sorted(emptied, key=len, reverse=True):
        if root.stat(path) and not root.list(path):
            root.remove(path)


def _discard(root: Root, staging: str) -> None:
    """Remove a staging folder, the intent first, because the rest has no effect without it."""
    root.remove(f"{staging}/{_INTENT}")
    with root.batched():
        for name in root.list(staging):
            root.remove(f"{staging}/{name}")
    root.remove(staging)
    _sweep(root)


def _sweep(root: Root) -> None:
    """Remove the folder of the staging folders when it is empty."""
    if not root.list(STAGING):
        root.remove(STAGING)


def exists(root: Root, path: str) -> bool:
    """Whether anything is at `path`; False if a file or a link is in the way of its folder."""
    try:
        return root.stat(path) is not None
    except OutputRefused:
        return False


def current(root: Root, path: str) -> str | None:
    """The sha256 of the file at `path`; None if nothing is there, "" if a link or folder is."""
    try:
        data = root.read(path)
    except OutputRefused:
        return ""
    return None if data is None else sha256(data)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def as_json(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
