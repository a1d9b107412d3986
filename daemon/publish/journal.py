"""The commit of a tree: operations staged with an intent, then carried out, by whoever comes first after a crash.

A staging folder without an intent never happened and is discarded; one with it is carried out, from any point and as
often as needed. What an operation finds changed since it was planned, it leaves alone (docs/reliability.md, P3).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence

import orjson

from daemon.errors import OutputRefused
from daemon.fsio import Root
from daemon.model import Json
from daemon.publish.naming import folders_above

STAGING = ".reconstitute.next"
_INTENT = "intent.json"


def stage(root: Root, folder: str, operations: Sequence[Json], content: Sequence[bytes]) -> str:
    """Write `content` and last the intent beside the trees, make the folders needed; the staging folder's path.

    An operation is ``{path, before, after, staged}`` (put content number `staged` at `path`) or ``{path, before}``
    (remove it), each done only where the file's sha256 still is `before` (None: there is none).

    Raises:
        OSError: the disk is full or fails; the tree is as it was.
    """
    staging = f"{STAGING}/{sha256(folder.encode())[:16]}"
    with _discarded_on_failure(root, staging):
        with root.batched():
            for number, data in enumerate(content):
                root.write(f"{staging}/{number}", data)
            for goal in sorted({op["path"].rpartition("/")[0] for op in operations if "staged" in op} - {""}):
                root.mkdir(goal)
        root.write(f"{staging}/{_INTENT}", as_json({"folder": folder, "operations": operations}))
    return staging


def recover(root: Root) -> int:
    """Carry out or discard what is staged in `root`; how many trees were completed."""
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
    """Carry out an intent; may be repeated from any point. A page edited since the plan is left as it is."""
    data = root.read(f"{staging}/{_INTENT}") or b""
    try:
        intent = orjson.loads(data)
        folder, operations = intent["folder"], intent["operations"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = f"{root.path / staging / _INTENT}: damaged; remove that folder, then the tree is compared anew"
        raise OutputRefused(text) from None
    with root.batched():
        for operation in operations:
            _carry_out(root, staging, operation)
        _prune(root, folder, [op["path"] for op in operations if "staged" not in op])
    _discard(root, staging)


def _carry_out(root: Root, staging: str, operation: Json) -> None:
    path = operation["path"]
    if "staged" not in operation:
        if current(root, path) == operation["before"]:
            root.remove(path)
        return
    staged = f"{staging}/{operation['staged']}"
    # Without the staged file this rename was made before the crash.
    if exists(root, staged) and current(root, path) == operation["before"]:
        root.rename(staged, path)


def _prune(root: Root, folder: str, removed: Iterable[str]) -> None:
    """Remove the folders that removed pages leave empty, inside the tree's own folder."""
    emptied = {
        outer for path in removed for outer in folders_above(path) if outer.startswith(f"{folder}/" if folder else "")
    }
    for path in sorted(emptied, key=len, reverse=True):
        if root.stat(path) and not root.list(path):
            root.remove(path)


def _discard(root: Root, staging: str) -> None:
    """Remove a staging folder, the intent first: without it the rest means nothing."""
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


@contextlib.contextmanager
def _discarded_on_failure(root: Root, staging: str) -> Iterator[None]:
    try:
        yield
    except OSError:
        # The disk may be too full even for this: then the next publishing discards it, for there is no intent.
        with contextlib.suppress(OSError):
            _discard(root, staging)
        raise


def exists(root: Root, path: str) -> bool:
    """Whether anything stands at `path`; a file or a link in the way of its folder means no."""
    try:
        return root.stat(path) is not None
    except OutputRefused:
        return False


def current(root: Root, path: str) -> str | None:
    """The sha256 of the file at `path`; None where nothing is, "" where no file can be: a link, a folder is there."""
    try:
        data = root.read(path)
    except OutputRefused:
        return ""
    return None if data is None else sha256(data)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def as_json(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
