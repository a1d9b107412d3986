"""What OpenCode recorded, read by the tests themselves: they must not trust the readers they check.

Both layouts come out alike: each message with its parts, every record with its ids. Only what OpenCode itself still
counts as existing is read; part files whose message is gone are left out.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon.archive import Archive


@dataclass(frozen=True)
class Recorded:
    """One message as it stands in the source."""

    session: str
    data: dict[str, Any]
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_source(data_dir: Path) -> dict[str, Recorded]:
    """Message id -> record, from the database if there is one, else from the tree of JSON files."""
    database = data_dir / "opencode.db"
    return from_database(database) if database.exists() else from_files(data_dir / "storage")


def read_quiet_source(data_dir: Path, quiet_s: float = 0.7, timeout_s: float = 90) -> dict[str, Recorded]:
    """The source once it has stopped changing.

    OpenCode goes on writing after it has answered: 1.1 puts a summary into the person's message when the turn is over,
    even if the session has been deleted meanwhile, which brings that one message back.
    """
    deadline = time.monotonic() + timeout_s
    before = read_source(data_dir)
    while time.monotonic() < deadline:
        time.sleep(quiet_s)
        now = read_source(data_dir)
        if now == before:
            return now
        before = now
    raise AssertionError(f"{data_dir} still changes after {timeout_s} s")


def from_files(storage: Path) -> dict[str, Recorded]:
    """As `read_source`, of a tree."""
    found = {}
    for file in storage.glob("message/*/*.json"):
        data = json.loads(file.read_bytes())
        parts = [json.loads(part.read_bytes()) for part in storage.glob(f"part/{data['id']}/*.json")]
        found[data["id"]] = Recorded(data["sessionID"], data, {part["id"]: part for part in parts})
    return found


def from_database(path: Path) -> dict[str, Recorded]:
    """As `read_source`, of a database."""
    found = {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for message, session, data in database.execute("select id, session_id, data from message"):
            found[message] = Recorded(session, {"id": message, "sessionID": session} | json.loads(data))
        for part, message, session, data in database.execute("select id, message_id, session_id, data from part"):
            ids = {"id": part, "messageID": message, "sessionID": session}
            found[message].parts[part] = ids | json.loads(data)
    return found


def differences(source: dict[str, Recorded], archive: Archive) -> list[str]:
    """Every way in which the archive's living messages are not exactly the source's; empty when they are."""
    ordered = [message for session in archive.sessions() for message in archive.message_ids(session.id)]
    kept = list(archive.all_message_ids())
    living = {message for message in kept if not archive.is_deleted(message)}
    found = [f"{message} stands twice in a conversation" for message in _twice(ordered)]
    found += [f"{message} stands twice in the archive" for message in _twice(kept)]
    found += [f"{message} is missing" for message in source.keys() - living]
    found += [f"{message} is not in the source" for message in living - source.keys()]
    found += [f"{message} is in no conversation" for message in living - set(ordered)]
    for message in source.keys() & living:
        found += _different_message(source[message], message, archive)
    return sorted(found)


def _twice(ids: list[str]) -> set[str]:
    return {name for name in ids if ids.count(name) > 1}


def _different_message(source: Recorded, message_id: str, archive: Archive) -> list[str]:
    message = archive.message(message_id)
    if message is None:
        return [f"{message_id} cannot be read"]
    found = []
    if message.session_id != source.session:
        found.append(f"{message_id} is in {message.session_id}, not in {source.session}")
    if message.data != source.data:
        found.append(f"{message_id}: {_first_difference(source.data, message.data)}")
    ids = [part.id for part in message.parts]
    if ids != sorted(source.parts):
        found.append(f"{message_id} has the parts {ids}, not {sorted(source.parts)}")
    for part in message.parts:
        expected = source.parts.get(part.id)
        if expected is not None and part.data != expected:
            found.append(f"{message_id} {part.id}: {_first_difference(expected, part.data)}")
    return found


def _first_difference(expected: dict[str, Any], got: dict[str, Any]) -> str:
    name = next(name for name in sorted(expected.keys() | got.keys()) if expected.get(name) != got.get(name))
    return f"{name} is {str(got.get(name))[:200]!r}, not {str(expected.get(name))[:200]!r}"
