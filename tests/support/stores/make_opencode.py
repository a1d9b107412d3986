"""Small OpenCode stores built by script, in the shapes that the real ones have: a JSON tree, a database, OpenCode 2.

Each builder owns one store and changes it the way OpenCode does: in place, row by row, file by file.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

T0 = 1_795_230_000_000
"""A moment in November 2026, epoch ms."""


_JOURNAL = """
CREATE TABLE IF NOT EXISTS event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text);
CREATE TABLE IF NOT EXISTS event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
    data text NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE INDEX IF NOT EXISTS event_aggregate_type_seq_idx ON event (aggregate_id, type, seq);
"""


def user(message_id: str, session_id: str, created: int = T0, **more: Any) -> dict[str, Any]:
    return {"id": message_id, "sessionID": session_id, "role": "user", "time": {"created": created}, **more}


def assistant(
    message_id: str, session_id: str, created: int = T0, completed: int | None = T0 + 500, **more: Any
) -> dict[str, Any]:
    time = {"created": created} | ({"completed": completed} if completed else {})
    return {"id": message_id, "sessionID": session_id, "role": "assistant", "time": time, **more}


def text(part_id: str, message_id: str, session_id: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": part_id, "sessionID": session_id, "messageID": message_id, "type": "text", "text": content, **more}


def tool(part_id: str, message_id: str, session_id: str, name: str, state: dict[str, Any]) -> dict[str, Any]:
    ids = {"id": part_id, "sessionID": session_id, "messageID": message_id}
    return {**ids, "type": "tool", "callID": "c_" + part_id, "tool": name, "state": state}


def session(session_id: str, directory: str = "/home/dev/p", title: str = "A session", **more: Any) -> dict[str, Any]:
    times = {"time": {"created": T0, "updated": T0}}
    return {
        "id": session_id,
        "version": "1.1.65",
        "projectID": "pid",
        "directory": directory,
        "title": title,
        **times,
        **more,
    }


class JsonStore:
    """``storage/`` as OpenCode up to 1.1.65 writes it: pretty-printed, no final newline, in place."""

    def __init__(self, data_dir: Path) -> None:
        self.storage = data_dir / "storage"
        self.storage.mkdir(parents=True)

    def _write(self, relative: str, value: Any) -> Path:
        path = self.storage / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value, indent=2))
        return path

    def session(self, record: dict[str, Any]) -> Path:
        return self._write(f"session/{record['projectID']}/{record['id']}.json", record)

    def message(self, record: dict[str, Any], *parts: dict[str, Any]) -> None:
        self._write(f"message/{record['sessionID']}/{record['id']}.json", record)
        for part in parts:
            self.part(part)

    def part(self, record: dict[str, Any]) -> Path:
        return self._write(f"part/{record['messageID']}/{record['id']}.json", record)

    def raw(self, relative: str, content: str) -> Path:
        return self._write(relative, content)

    def drop_message(self, session_id: str, message_id: str) -> None:
        """As the clean-up after a revert does: the parts stay."""
        (self.storage / "message" / session_id / f"{message_id}.json").unlink()


class Database:
    """``opencode.db`` as OpenCode 1.2 and later writes it: WAL, one commit per row."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(
            """
            CREATE TABLE IF NOT EXISTS session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL,
                title text NOT NULL, version text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
            CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
                time_updated integer NOT NULL, data text NOT NULL);
            CREATE TABLE IF NOT EXISTS part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
                time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
            CREATE INDEX IF NOT EXISTS part_session_idx ON part (session_id);
            CREATE INDEX IF NOT EXISTS part_message_idx ON part (message_id);
            CREATE INDEX IF NOT EXISTS message_session_idx ON message (session_id);
            """
        )
        self.now = T0

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def session(self, record: dict[str, Any]) -> None:
        time = record["time"]
        values = (
            record["id"],
            record["projectID"],
            record.get("parentID"),
            record["directory"],
            record["title"],
            record["version"],
        )
        self.connection.execute(
            "INSERT OR REPLACE INTO session VALUES (?,?,?,?,?,?,?,?,?)",
            (*values, time["created"], self._tick(), time.get("archived")),
        )

    def message(self, record: dict[str, Any], *parts: dict[str, Any], updated: int | None = None) -> None:
        data = {name: value for name, value in record.items() if name not in ("id", "sessionID")}
        self._put("message", (record["id"], record["sessionID"]), record["time"]["created"], updated, json.dumps(data))
        for part in parts:
            self.part(part, updated=updated)

    def part(self, record: dict[str, Any], updated: int | None = None) -> None:
        data = {name: value for name, value in record.items() if name not in ("id", "sessionID", "messageID")}
        self._put("part", (record["id"], record["messageID"], record["sessionID"]), T0, updated, json.dumps(data))

    def _put(self, table: str, ids: tuple[str, ...], created: int, updated: int | None, data: str) -> None:
        values = (*ids, created, updated or self._tick(), data)
        marks = ",".join("?" * len(values))
        update = "ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data"
        self.connection.execute(f"INSERT INTO {table} VALUES ({marks}) {update}", values)

    def event(self, session_id: str, type_: str, data: Any, at: int | None = None) -> int:
        """One more line of the journal that OpenCode 1.18 keeps; its number. Text stands as it is given."""
        self.connection.executescript(_JOURNAL)
        top = self.connection.execute("SELECT seq FROM event_sequence WHERE aggregate_id = ?", (session_id,)).fetchone()
        seq = top[0] + 1 if top else 0
        self.connection.execute("INSERT OR REPLACE INTO event_sequence VALUES (?, ?, NULL)", (session_id, seq))
        id_ = f"evt_{((at or self._tick()) * 4096 + seq % 4096) & ((1 << 48) - 1):012x}{seq:014d}"
        body = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
        self.connection.execute("INSERT INTO event VALUES (?,?,?,?,?)", (id_, session_id, seq, type_, body))
        return int(seq)

    def journaled(self, record: dict[str, Any], *parts: dict[str, Any]) -> None:
        """A message as 1.18 writes it: each record into its row and into the journal."""
        self.message(record)
        self.event(record["sessionID"], "message.updated.1", {"sessionID": record["sessionID"], "info": record})
        for part in parts:
            self.part(part)
            self.event(part["sessionID"], "message.part.updated.1", {"sessionID": part["sessionID"], "part": part})

    def remove_message(self, session_id: str, message_id: str) -> None:
        """As the clean-up after a revert does: rows go, the journal gains a line."""
        self.execute("DELETE FROM part WHERE message_id = ?", message_id)
        self.execute("DELETE FROM message WHERE id = ?", message_id)
        self.event(session_id, "message.removed.1", {"sessionID": session_id, "messageID": message_id})

    def remove_part(self, session_id: str, message_id: str, part_id: str) -> None:
        self.execute("DELETE FROM part WHERE id = ?", part_id)
        ids = {"sessionID": session_id, "messageID": message_id, "partID": part_id}
        self.event(session_id, "message.part.removed.1", ids)

    def execute(self, sql: str, *arguments: Any) -> None:
        self.connection.execute(sql, arguments)

    def close(self) -> None:
        self.connection.close()


class Database2:
    """The tables of OpenCode 2 in a database file (new, or beside older tables)."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.executescript(
            """
            CREATE TABLE session_v2 (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text,
                time_created integer, time_updated integer, time_archived integer, time_suspended integer);
            CREATE TABLE IF NOT EXISTS session_message (id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
                time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
            """
        )
        self.now = T0

    def session(self, session_id: str, title: str | None = "A newer session", directory: str = "/home/dev/p") -> None:
        self.now += 1
        self.connection.execute(
            "INSERT OR REPLACE INTO session_v2 VALUES (?,?,?,?,?,?,?,?,?,?)",
            (session_id, "pid", None, directory, title, "2.0.1", T0, self.now, None, None),
        )

    def message(self, message_id: str, session_id: str, type_: str, seq: int, data: dict[str, Any]) -> None:
        self.now += 1
        body = json.dumps({"time": {"created": T0 + seq}} | data)
        self.connection.execute(
            "INSERT OR REPLACE INTO session_message VALUES (?,?,?,?,?,?,?)",
            (message_id, session_id, type_, seq, T0 + seq, self.now, body),
        )

    def close(self) -> None:
        self.connection.close()


def one_written_file(data_dir: Path, name: str, content: str) -> JsonStore:
    """A store with one session, `ses_NAME` in /work/NAME, whose message `msg_NAME` wrote a.txt there."""
    store, ids = JsonStore(data_dir), (f"msg_{name}", f"ses_{name}")
    store.session(session(ids[1], directory=f"/work/{name}"))
    wrote = {
        "status": "completed",
        "input": {"filePath": f"/work/{name}/a.txt", "content": f"{content}\n"},
        "output": "Wrote file successfully.",
        "title": "a.txt",
        "metadata": {"exists": False},
        "time": {"start": T0 + 100, "end": T0 + 200},
    }
    parts = text(f"prt_{name}_1", *ids, f"a {content}"), tool(f"prt_{name}_2", *ids, "write", wrote)
    store.message(assistant(*ids), *parts)
    return store
