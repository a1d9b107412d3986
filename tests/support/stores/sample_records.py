"""The records of a sample archive, read in the plainest way: for tests of what is made of records, without our sources."""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from daemon import records
from daemon.model import Message, Session
from tests.conftest import Sample


@dataclass
class Records:
    """What a data directory holds, read in the plainest way; `removed` are messages of which only parts are left."""

    sessions: dict[str, Session] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)


def _session(data: dict[str, Any], raw: bytes) -> Session:
    return Session(data["id"], "", data.get("directory", ""), "", 0, 0, raw, version=data.get("version", ""))


def _from_json(storage: Path) -> Records:
    found = Records()
    for file in storage.glob("session/*/*.json"):
        data = records.load_object(file.read_bytes())
        found.sessions[data["id"]] = _session(data, file.read_bytes())
    for folder in sorted(storage.glob("part/*")):
        parts = tuple(records.part(file.read_bytes(), folder.name, "") for file in sorted(folder.glob("*.json")))
        owner = parts[0].session_id
        file = storage / "message" / owner / f"{folder.name}.json"
        if file.exists():
            found.messages.append(records.message(file.read_bytes(), parts, owner))
        else:
            raw = records.dumps({"id": folder.name, "sessionID": owner, "role": "assistant"})
            found.messages.append(records.message(raw, parts, owner))
            found.removed.add(folder.name)
    return found


def _from_database(data_dir: Path, tmp_path: Path) -> Records:
    copy = shutil.copytree(data_dir, tmp_path / "copy")
    found = Records()
    with closing(sqlite3.connect(f"file:{copy / 'opencode.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        for row in database.execute("select id, directory, version, revert from session"):
            found.sessions[row["id"]] = _session(dict(row), records.dumps(dict(row)))
        parts = defaultdict(list)
        for row in database.execute("select id, message_id, session_id, data from part order by id"):
            fields = {"id": row["id"], "messageID": row["message_id"], "sessionID": row["session_id"]}
            parts[row["message_id"]].append(records.part(records.with_fields(fields, row["data"]), "", ""))
        for row in database.execute("select id, session_id, data from message"):
            raw = records.with_fields({"id": row["id"], "sessionID": row["session_id"]}, row["data"])
            found.messages.append(records.message(raw, tuple(parts[row["id"]])))
    return found


def load(sample: Sample, tmp_path: Path) -> Records:
    """The database where there is one, else the JSON tree."""
    if (sample.data_dir / "opencode.db").exists():
        return _from_database(sample.data_dir, tmp_path)
    return _from_json(sample.data_dir / "storage")
