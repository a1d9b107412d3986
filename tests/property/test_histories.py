"""Random histories of a small OpenCode on a real folder: what is proven is true, and how it was taken in changes nothing.

Laws: (a) a proven revision is what the file was at its time, and still is at every later moment until the next revision,
unless the path was changed from outside since and nothing has shown it; (b) looking half-way and going on gives the
histories of looking once; (c) the order in which sessions are taken in does not matter; (d) with snapshots, a history
of tools alone ends proven for every file.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from daemon import records
from daemon.archive import Archive, merged
from daemon.files import FileHistory, Files, Revision
from daemon.model import Session
from daemon.transcript.evidence.edits import edits
from tests.property.model_rules import NEW, OLD
from tests.property.model_sessions import Model
from tests.property.plans import ACTIONS, TOOL_ACTIONS, Player
from tests.support.examples import examples

ci = settings(
    max_examples=examples(40),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


@dataclass
class Stored:
    """What OpenCode's store held at one moment; `removed` are messages that a revert took out before it."""

    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)


def stored(model: Model, entries: int | None = None) -> Stored:
    """The store after the first `entries` of the journal."""
    found = Stored()
    for entry in model.journal[:entries]:
        data = entry.data
        if entry.kind == "session":
            found.sessions[data["id"]] = data
        elif entry.kind == "message":
            found.messages[data["id"]] = data
        elif entry.kind == "part":
            found.parts.setdefault(data["messageID"], {})[data["id"]] = data
        else:
            found.removed.add(data["id"])
    return found


def take_in(archive: Archive, model: Model, store: Stored, sessions: Sequence[str] | None = None) -> None:
    """What the intake does, for all sessions of a store in the order given."""
    batch = archive.batch()
    for path in model.trees.glob("objects/??/*"):
        head, _, body = zlib.decompress(path.read_bytes()).partition(b"\0")
        if not head.startswith(b"commit"):
            archive.objects.put(batch, "t" if head.startswith(b"tree") else "b", body)
    for session_id in sessions or list(store.sessions):
        data = store.sessions[session_id]
        time = data["time"]
        session = Session(
            session_id, data["projectID"], data["directory"], data["title"], time["created"], time["updated"],
            records.dumps(data), parent_id=data.get("parentID"), version=data["version"],
        )  # fmt: skip
        batch.session(session, "model", 1)
        for message in store.messages.values():
            if message["sessionID"] != session_id:
                continue
            parts = [records.part(records.dumps(p), "", "") for p in store.parts.get(message["id"], {}).values()]
            read = records.message(records.dumps(message), tuple(parts), session_id)
            whole, versions, gone, _ = merged(archive.message(read.id), read)
            hash_ = records.digest(whole.raw, *(part.raw for part in whole.parts))
            batch.message(
                whole, source="model", generation=1, hash_=hash_, edits=edits(whole, session),
                versions=versions, gone=gone,
            )  # fmt: skip
            if message["id"] in store.removed:
                batch.tombstone(message["id"], model.clock)
    archive.commit(batch)


@contextmanager
def played(version: str, git: bool, actions: Sequence[Any], start: int) -> Iterator[tuple[Model, Path]]:
    """A model that has lived through `actions`, and a folder for archives."""
    with tempfile.TemporaryDirectory(prefix="histories-") as name:
        folder = Path(name).resolve()
        model = Model(folder / "w", folder / "trees", version, git=git)
        player = Player(model, start)
        for action in actions:
            player.play(action)
        yield model, folder


def wrong(histories: Sequence[FileHistory], model: Model, checkpoints: int) -> list[str]:
    """Where law (a) does not hold, by the first `checkpoints` of the truth."""
    points = model.truth[:checkpoints]
    found = []
    for history in histories:
        for revision, later in zip_longest(history.revisions, history.revisions[1:]):
            # A patch that moves, and a multiedit, are several revisions of which only the last one stood on the disk.
            if later is None or (later.part_id, later.time) != (revision.part_id, revision.time):
                found += _wrong_then(history.path, revision, model, checkpoints)
        for number, point in enumerate(points):
            is_last = number + 1 == len(points) or points[number + 1].time > point.time
            if not (point.settled and is_last) or history.path in point.blind:
                continue
            revision = history.at(point.time)
            truth = point.files.get(history.path)
            if revision is not None and revision.proven and _content(revision) != truth:
                found.append(f"{history.path} at {point.time} was {truth!r}, not {_told(revision)}")
    return found


def _wrong_then(path: str, revision: Revision, model: Model, checkpoints: int) -> list[str]:
    """A proven revision that was not one of the states about its own time."""
    points = model.truth[:checkpoints]
    at = [number for number, point in enumerate(points) if point.time <= revision.time]
    last = at[-1] if at else 0
    first = last
    # Overlapping calls: any state since the last settled moment before.
    while first and not (points[first].settled and points[first].time < revision.time):
        first -= 1
    overlaps = last + 1 < len(points) and not points[last + 1].settled
    window = points[first : last + 1 + overlaps]
    if not revision.proven or any(path in point.blind for point in window):
        return []
    if any(_content(revision) == point.files.get(path) for point in window):
        return []
    return [f"{path} about {revision.time} was {[p.files.get(path) for p in window]!r}, not {_told(revision)}"]


def _content(revision: Revision) -> bytes | None:
    return None if revision.deleted else revision.content


def _told(revision: Revision) -> str:
    return f"{_content(revision)!r} ({revision.grade}: {revision.tool} {revision.operation} {revision.time} {revision.evidence} {revision.note})"


def _explain(model: Model) -> None:
    for entry in model.journal:
        state = entry.data.get("state", {})
        if state.get("status") in ("completed", "error") or (entry.kind != "part"):
            detail = f"{entry.data.get('tool', '')} {state.get('input', '')} {state.get('error', '')} {state.get('time', '')}"
            note(f"{entry.kind} {entry.data.get('role', '')} {detail} {entry.data.get('revert', '')}")
        elif entry.data.get("type") in ("step-start", "step-finish", "patch"):
            note(f"{entry.data['type']} {entry.data.get('files', '')}")


HISTORY = {
    "version": st.sampled_from([OLD, NEW]),
    "git": st.booleans(),
    "start": st.integers(0, 3),
    "actions": st.lists(ACTIONS, min_size=1, max_size=8),
}


_WRITE = ("write", 0, 1, 0, "ok")
_FAILING = ("failing", 0, 0, 0, "ok")
_REVERTED = [("outside", 0, 0), ("step", 0, [_WRITE, _FAILING], False), ("revert", 0, 0), ("step", 0, [_WRITE], False)]
_WRITTEN_MEANWHILE = [
    ("step", 1, [_WRITE], False), ("revert", 1, 0), ("step", 0, [("write", 0, 3, 0, "ok")], False), ("prompt", 1),
]  # fmt: skip
_MADE_AGAIN = [
    ("step", 0, [("printf", 2, 0, 0, "ok")], True),
    ("step", 0, [("delete", 2, 0, 0, "ok"), ("printf", 2, 0, 0, "ok")], True),
]


@settings(ci)
@given(**HISTORY, cut=st.integers(1, 1000))
@example(version=OLD, git=True, start=0, actions=_REVERTED, cut=1)  # the turn's diff is older than the revert
@example(version=NEW, git=True, start=2, actions=_WRITTEN_MEANWHILE, cut=909)  # written while a revert was pending
def test_what_is_proven_is_true_whenever_one_looks(
    version: str, git: bool, start: int, actions: list[Any], cut: int
) -> None:
    """Laws (a) and (b), with a look at any moment of the history."""
    with played(version, git, actions, start) as (model, folder):
        _explain(model)
        with taken_in(folder / "once", model) as found:
            _holds(wrong(found, model, len(model.truth)))
            at_once = facts(found)
        entries = cut % len(model.journal) + 1
        while entries < len(model.journal) and model.journal[entries].kind not in ("session", "message", "part"):
            entries += 1  # OpenCode removes what a revert covers within milliseconds: half of that is no state to judge
        with Archive(folder / "twice") as archive:
            take_in(archive, model, stored(model, entries))
            half = Files(archive).histories(str(model.root))
            _holds(wrong(half, model, model.journal[entries - 1].checkpoints))
            take_in(archive, model, stored(model))
            _holds(differences(at_once, facts(Files(archive).histories(str(model.root)))))


def _holds(broken: Sequence[str]) -> None:
    assert not broken, "\n".join(broken)


def differences(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> list[str]:
    """What the second telling says otherwise."""
    names = sorted(one.keys() | other.keys())
    return [f"{name}:\n  {one.get(name)}\n  {other.get(name)}" for name in names if one.get(name) != other.get(name)]


@contextmanager
def taken_in(folder: Path, model: Model, sessions: Sequence[str] | None = None) -> Iterator[list[FileHistory]]:
    """All histories of an archive that took in the whole store; contents are read while it is open."""
    with Archive(folder) as archive:
        take_in(archive, model, stored(model), sessions)
        yield Files(archive).histories(str(model.root))


def facts(histories: Sequence[FileHistory]) -> dict[str, list[tuple[Any, ...]]]:
    """All that is said of each path, in values that compare."""
    return {
        history.path: [
            (r.time, r.part_id, str(r.operation), _content(r), r.deleted, str(r.grade), tuple(r.evidence), r.note)
            for r in history.revisions
        ]
        for history in histories
    }


@settings(ci, max_examples=examples(60))
@given(**HISTORY, data=st.data())
def test_the_order_in_which_sessions_come_does_not_matter(
    version: str, git: bool, start: int, actions: list[Any], data: st.DataObject
) -> None:
    """Law (c)."""
    with played(version, git, actions, start) as (model, folder):
        order = data.draw(st.permutations(list(stored(model).sessions)))
        with taken_in(folder / "one", model) as one, taken_in(folder / "other", model, order) as other:
            _holds(differences(facts(one), facts(other)))


@settings(ci, max_examples=examples(80))
@given(version=HISTORY["version"], start=HISTORY["start"], actions=st.lists(TOOL_ACTIONS, min_size=1, max_size=10))
@example(version=NEW, start=0, actions=_MADE_AGAIN)  # the second tree is the first one again
def test_with_snapshots_what_tools_made_ends_proven(version: str, start: int, actions: list[Any]) -> None:
    """Law (d): refusing everything does not pass."""
    with played(version, True, actions, start) as (model, folder):
        _explain(model)
        if not any(action[0] == "step" for action in actions):
            return  # nothing has looked at the folder
        with taken_in(folder / "archive", model) as histories:
            found = {history.path: history.latest for history in histories}
            missed = [
                f"{path} is {truth!r}, told {_told(last) if (last := found.get(path)) else None}"
                for path, truth in model.truth[-1].files.items()
                if (last := found.get(path)) is None or not last.proven or _content(last) != truth
            ]
            _holds(missed)
