"""The pages that were made of what is forgotten, which the service writes anew.

They are queued in the batch of the removal, so that a crash loses none. Trees that are no longer where they were
written are left alone, and so is a page that a person edited: the new one lies beside it, as after any run.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from daemon import records
from daemon.archive import Archive, Batch, keys
from daemon.model import Json, Target

_TREES = "trees"
"""Where the pages of a target are, with a line on it for the index of all targets."""
_EMPTIED: Json = {"summary": "", "is_quoted": False, "log": []}
"""What of that line quotes the records."""
_NAME = "to be written anew"
_QUEUE = keys.target("", _NAME)
_FRONT_PAGE = "README.md"


def drop_values(archive: Archive, batch: Batch, target: str) -> None:
    """Remove in this batch what is stored of a target, but for where its pages are."""
    for name in archive.target_names(target):
        if name != _TREES:
            batch.delete(keys.target(target, name))
    trees: Json = archive.target_get(target, _TREES) or {}
    if trees:
        emptied = {place: tree | _EMPTIED for place, tree in trees.items()}
        batch.put(keys.target(target, _TREES), records.dumps(emptied))


def of_targets(archive: Archive, targets: Iterable[str]) -> list[Json]:
    """The trees of pages of these targets: ``[{path, root, folder}]``."""
    stored = ((target, archive.target_get(target, _TREES) or {}) for target in targets)
    trees = [
        {"path": target, "root": tree["root"], "folder": tree["folder"]}
        for target, by_place in stored
        for tree in by_place.values()
    ]
    return [tree for tree in trees if os.path.isfile(os.path.join(folder(tree), _FRONT_PAGE))]


def folder(tree: Json) -> str:
    """The folder with the pages."""
    return os.path.join(tree["root"], tree["folder"])


def queue(archive: Archive, batch: Batch, trees: Iterable[Json]) -> None:
    """Let these be written anew, and those that wait already."""
    waiting_now = waiting(archive)
    waiting_now += [tree for tree in trees if tree not in waiting_now]
    if waiting_now:
        batch.put(_QUEUE, records.dumps(waiting_now))


def waiting(archive: Archive) -> list[Json]:
    """The trees that are to be written anew."""
    trees: list[Json] = archive.target_get("", _NAME) or []
    return trees


def done(archive: Archive, tree: Json) -> None:
    """Take a tree out of the queue."""
    left = [other for other in waiting(archive) if other != tree]
    batch = archive.batch()
    if left:
        batch.put(_QUEUE, records.dumps(left))
    else:
        batch.delete(_QUEUE)
    archive.commit(batch)


def target_of(tree: Json, followed: Mapping[str, Target]) -> Target:
    """What has to run for a tree: the target as it is followed, else once; it also runs where nothing is left."""
    path = tree["path"]
    at = _moment(tree["folder"].removeprefix(path.strip("/")))
    if at is None and path in followed and followed[path].refresh != "once":
        return replace(followed[path], output=tree["root"])
    return Target(path=path, refresh="scheduled", at=at, output=tree["root"])


def _moment(suffix: str) -> int | None:
    """The moment of the tree of an earlier state, from the end of its name."""
    for form in ("@%Y-%m-%dT%H%M%SZ", "@%Y-%m-%dT%H%M%S.%fZ"):
        try:
            moment = dt.datetime.strptime(suffix, form).replace(tzinfo=dt.UTC)
        except ValueError:
            continue
        return round(moment.timestamp() * 1000)
    return None
